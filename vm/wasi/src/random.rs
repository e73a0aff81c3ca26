//! `random_get`.

use crate::ctx::WasiCtx;
use crate::guest::{Buffer, Guest};
use crate::outcome::Outcome;

pub(crate) fn random_get(ctx: &mut WasiCtx, guest: &mut Guest<'_>, at: u32, len: u32) -> Outcome {
    ctx.nondeterministic("random_get")?;
    Ok(ctx.random.fill(guest.slice_mut(Buffer { at, len })?)?)
}
