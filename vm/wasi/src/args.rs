//! `args_*` and `environ_*`.

use crate::ctx::WasiCtx;
use crate::errno::Errno;
use crate::guest::{Guest, element, offset};
use crate::outcome::Outcome;

pub(crate) fn args_get(ctx: &mut WasiCtx, guest: &mut Guest<'_>, pointers: u32, bytes: u32) -> Outcome {
    write_strings(&ctx.args, guest, pointers, bytes)
}

pub(crate) fn args_sizes_get(ctx: &mut WasiCtx, guest: &mut Guest<'_>, count: u32, size: u32) -> Outcome {
    write_sizes(&ctx.args, guest, count, size)
}

pub(crate) fn environ_get(ctx: &mut WasiCtx, guest: &mut Guest<'_>, pointers: u32, bytes: u32) -> Outcome {
    write_strings(&ctx.env, guest, pointers, bytes)
}

pub(crate) fn environ_sizes_get(ctx: &mut WasiCtx, guest: &mut Guest<'_>, count: u32, size: u32) -> Outcome {
    write_sizes(&ctx.env, guest, count, size)
}

fn write_strings(strings: &[Vec<u8>], guest: &mut Guest<'_>, pointers: u32, bytes: u32) -> Outcome {
    let mut at = bytes;
    for (i, string) in (0..).zip(strings) {
        guest.write_u32(element(pointers, i, 4)?, at)?;
        guest.write(at, string)?;
        at = offset(at, string.len() as u32)?;
        guest.write(at, &[0])?;
        at = offset(at, 1)?;
    }
    Ok(())
}

fn write_sizes(strings: &[Vec<u8>], guest: &mut Guest<'_>, count: u32, size: u32) -> Outcome {
    let bytes: usize = strings.iter().map(|string| string.len() + 1).sum();
    guest.write_u32(count, u32::try_from(strings.len()).map_err(|_| Errno::Overflow)?)?;
    guest.write_u32(size, u32::try_from(bytes).map_err(|_| Errno::Overflow)?)?;
    Ok(())
}
