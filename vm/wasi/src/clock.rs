//! `clock_*`.

use crate::answer::Answer;
use crate::ctx::WasiCtx;
use crate::guest::Guest;

pub(crate) fn clock_res_get(ctx: &mut WasiCtx, guest: &mut Guest<'_>, clock: u32, resolution: u32) -> Answer {
    Ok(guest.write_u64(resolution, ctx.clocks.resolution(clock)?)?)
}

/// The clocks are as precise as they can be, whatever `_precision` asks for.
pub(crate) fn clock_time_get(ctx: &mut WasiCtx, guest: &mut Guest<'_>, clock: u32, _precision: u64, time: u32) -> Answer {
    Ok(guest.write_u64(time, ctx.clocks.now(clock)?)?)
}
