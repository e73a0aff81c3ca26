//! `random_get`.

use crate::answer::Answer;
use crate::ctx::WasiCtx;
use crate::guest::{Buffer, Guest};

pub(crate) fn random_get(ctx: &mut WasiCtx, guest: &mut Guest<'_>, at: u32, len: u32) -> Answer {
    Ok(ctx.random.fill(guest.slice_mut(Buffer { at, len })?)?)
}
