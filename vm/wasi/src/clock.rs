//! `clock_*`.

use crate::ctx::WasiCtx;
use crate::guest::Guest;
use crate::outcome::Outcome;

pub(crate) fn clock_res_get(ctx: &mut WasiCtx, guest: &mut Guest<'_>, clock: u32, resolution: u32) -> Outcome {
    ctx.nondeterministic("clock_res_get")?;
    Ok(guest.write_u64(resolution, ctx.clocks.resolution(clock)?)?)
}

/// Ignores `_precision`: the clocks are always as precise as possible.
pub(crate) fn clock_time_get(ctx: &mut WasiCtx, guest: &mut Guest<'_>, clock: u32, _precision: u64, time: u32) -> Outcome {
    ctx.nondeterministic("clock_time_get")?;
    Ok(guest.write_u64(time, ctx.clocks.now(clock)?)?)
}
