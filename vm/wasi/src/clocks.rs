//! The clocks that a program sees.

use crate::errno::Errno;
use crate::sys::clock::Clock;

pub(crate) const REALTIME: u32 = 0;
pub(crate) const MONOTONIC: u32 = 1;

/// The host's clocks, or virtual ones that only the program's own calls advance.
#[derive(Debug, Default)]
pub(crate) enum Clocks {
    #[default]
    Host,
    /// Nanoseconds since the program's start, when the wall clock was at [`START`].
    Virtual(u64),
}

/// 2000-01-01 00:00 UTC, in nanoseconds.
const START: u64 = 946_684_800_000_000_000;
/// Each reading of a virtual clock advances it by this, so that a program that polls the clock sees time pass.
const TICK: u64 = 1_000;

impl Clocks {
    /// Returns the time of a clock in nanoseconds. `EOVERFLOW` for a time before 1970 or after 2554.
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

    /// Returns the resolution of a clock in nanoseconds.
    pub fn resolution(&self, clock: u32) -> Result<u64, Errno> {
        let host = host_clock(clock)?;
        match self {
            Clocks::Host => host.resolution().ok_or(Errno::Overflow),
            Clocks::Virtual(_) => Ok(TICK),
        }
    }

    /// Advances virtual clocks to at least this time of the monotonic clock. Returns whether the clocks are virtual.
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

fn host_clock(clock: u32) -> Result<Clock, Errno> {
    match clock {
        REALTIME => Ok(Clock::Realtime),
        MONOTONIC => Ok(Clock::Monotonic),
        2 => Ok(Clock::ProcessCpu),
        3 => Ok(Clock::ThreadCpu),
        _ => Err(Errno::Inval),
    }
}
