//! `random_get`.

use crate::ctx::WasiCtx;
use crate::guest::{Buffer, Guest};
use crate::outcome::{Failure, Outcome};

pub(crate) fn random_get(ctx: &mut WasiCtx, guest: &mut Guest<'_>, at: u32, len: u32) -> Outcome {
    ctx.nondeterministic("random_get")?;
    let bytes = guest.slice_mut(Buffer { at, len })?;
    if u64::from(len) > ctx.max_random_size {
        let message = format!("requested len {len} exceeds limit {}", ctx.max_random_size);
        return Err(Failure::End(weir::Error::msg(message)));
    }
    Ok(ctx.random.fill(bytes)?)
}
