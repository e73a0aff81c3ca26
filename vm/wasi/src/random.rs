//! `random_get`.

use crate::Answer;
use crate::ctx::WasiCtx;
use crate::errno::Errno;
use crate::guest::{Buffer, Guest};
use rustix::rand::{GetRandomFlags, getrandom};

pub(crate) fn random_get(_: &mut WasiCtx, guest: &mut Guest<'_>, at: u32, len: u32) -> Answer {
    let mut rest = guest.slice_mut(Buffer { at, len })?;
    while !rest.is_empty() {
        let filled = match getrandom(&mut *rest, GetRandomFlags::empty()) {
            Err(rustix::io::Errno::INTR) => 0,
            filled => filled.map_err(Errno::from)?,
        };
        rest = &mut rest[filled..];
    }
    Ok(())
}
