//! `clock_*`, and the clocks for [`poll`](crate::poll).

use crate::Answer;
use crate::ctx::WasiCtx;
use crate::errno::Errno;
use crate::guest::Guest;
use crate::sys::clock::Clock;

pub(crate) const REALTIME: u32 = 0;
pub(crate) const MONOTONIC: u32 = 1;

/// The host's clocks, or one that only the program's own doings move.
#[derive(Debug, Default)]
pub(crate) enum Clocks {
    #[default]
    Host,
    /// Nanoseconds since the program's start. The wall clock showed [`START`] then.
    Virtual(u64),
}

/// 2000-01-01 00:00 UTC, in nanoseconds.
const START: u64 = 946_684_800_000_000_000;
/// How far looking at a virtual clock moves it, so that a program that waits by looking sees time pass.
const TICK: u64 = 1_000;

impl Clocks {
    /// The time of a clock in nanoseconds. `EOVERFLOW` for a time before 1970 or after 2554.
    pub fn now(&mut self, clock: u32) -> Result<u64, Errno> {
        let host = host_clock(clock)?;
        match self {
            Clocks::Host => host.now().ok_or(Errno::Overflow),
            Clocks::Virtual(time) => {
                *time = time.saturating_add(TICK);
                Ok(if clock == REALTIME { time.saturating_add(START) } else { *time })
            }
        }
    }

    fn resolution(&self, clock: u32) -> Result<u64, Errno> {
        let host = host_clock(clock)?;
        match self {
            Clocks::Host => host.resolution().ok_or(Errno::Overflow),
            Clocks::Virtual(_) => Ok(TICK),
        }
    }

    /// Lets virtual clocks show at least this time of the monotonic one; whether they are virtual.
    pub fn skip_to(&mut self, deadline: u64) -> bool {
        match self {
            Clocks::Host => false,
            Clocks::Virtual(time) => {
                *time = deadline.max(*time);
                true
            }
        }
    }

    pub fn are_virtual(&self) -> bool {
        matches!(self, Clocks::Virtual(_))
    }
}

pub(crate) fn clock_res_get(ctx: &mut WasiCtx, guest: &mut Guest<'_>, clock: u32, resolution: u32) -> Answer {
    Ok(guest.write_u64(resolution, ctx.clocks.resolution(clock)?)?)
}

/// The clocks are as precise as they can be, whatever `_precision` asks for.
pub(crate) fn clock_time_get(ctx: &mut WasiCtx, guest: &mut Guest<'_>, clock: u32, _precision: u64, time: u32) -> Answer {
    Ok(guest.write_u64(time, ctx.clocks.now(clock)?)?)
}

fn host_clock(clock: u32) -> Result<Clock, Errno> {
    match clock {
        REALTIME => Ok(Clock::Realtime),
        MONOTONIC => Ok(Clock::Monotonic),
        2 => Ok(Clock::ProcessCpu),
        3 => Ok(Clock::ThreadCpu),
        _ => Err(Errno::Inval),
    }
}
