//! `clock_*`, and the clocks for [`poll`](crate::poll).

use crate::Answer;
use crate::ctx::WasiCtx;
use crate::errno::Errno;
use crate::guest::Guest;
use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

pub(crate) const MONOTONIC: u32 = 1;

pub(crate) fn clock_res_get(_: &mut WasiCtx, guest: &mut Guest<'_>, clock: u32, resolution: u32) -> Answer {
    let nanoseconds = nanoseconds(clock_getres(host_clock(clock)?))?;
    Ok(guest.write_u64(resolution, nanoseconds)?)
}

/// The clocks are as precise as they can be, whatever `_precision` asks for.
pub(crate) fn clock_time_get(_: &mut WasiCtx, guest: &mut Guest<'_>, clock: u32, _precision: u64, time: u32) -> Answer {
    Ok(guest.write_u64(time, now(clock)?)?)
}

/// What the clock shows, in nanoseconds.
pub(crate) fn now(clock: u32) -> Result<u64, Errno> {
    nanoseconds(clock_gettime(host_clock(clock)?))
}

fn host_clock(clock: u32) -> Result<ClockId, Errno> {
    match clock {
        0 => Ok(ClockId::Realtime),
        MONOTONIC => Ok(ClockId::Monotonic),
        2 => Ok(ClockId::ProcessCPUTime),
        3 => Ok(ClockId::ThreadCPUTime),
        _ => Err(Errno::Inval),
    }
}

/// `EOVERFLOW` for a time before 1970 or after 2554.
fn nanoseconds(time: Timespec) -> Result<u64, Errno> {
    let whole = u64::try_from(time.tv_sec).ok().and_then(|seconds| seconds.checked_mul(1_000_000_000));
    whole.and_then(|whole| whole.checked_add(time.tv_nsec as u64)).ok_or(Errno::Overflow)
}
