//! The clocks that a program sees.

use crate::clocks::{HostMonotonicClock, HostWallClock, host_monotonic, monotonic_clock, wall_clock};
use crate::errno::Errno;
use crate::sys::clock::Clock;
use std::time::Duration;

pub(crate) const REALTIME: u32 = 0;
pub(crate) const MONOTONIC: u32 = 1;
const PROCESS_CPU: u32 = 2;
const THREAD_CPU: u32 = 3;

/// Clocks of the host or the embedder, or virtual ones that only the program's own calls advance.
pub(crate) enum Clocks {
    Given {
        wall: Box<dyn HostWallClock + Send>,
        monotonic: Box<dyn HostMonotonicClock + Send>,
    },
    /// Nanoseconds since the program's start, when the wall clock was at [`START`].
    Virtual(u64),
}

/// 2000-01-01 00:00 UTC, in nanoseconds.
const START: u64 = 946_684_800_000_000_000;
/// Each reading of a virtual clock advances it by this, so that a program that polls the clock sees time pass.
const TICK: u64 = 1_000;

impl Default for Clocks {
    /// The host's.
    fn default() -> Clocks {
        Clocks::Given { wall: wall_clock(), monotonic: monotonic_clock() }
    }
}

impl Clocks {
    /// Returns the time of a clock in nanoseconds. `EOVERFLOW` for a time after 2554.
    pub fn now(&mut self, clock: u32) -> Result<u64, Errno> {
        match (self, clock) {
            (Clocks::Virtual(time), REALTIME..=THREAD_CPU) => {
                *time = time.saturating_add(TICK);
                Ok(if clock == REALTIME { time.saturating_add(START) } else { *time })
            }
            (Clocks::Given { wall, .. }, REALTIME) => nanoseconds(wall.now()),
            (Clocks::Given { monotonic, .. }, MONOTONIC) => Ok(monotonic.now()),
            (Clocks::Given { .. }, PROCESS_CPU) => Clock::ProcessCpu.now().ok_or(Errno::Overflow),
            (Clocks::Given { .. }, THREAD_CPU) => Clock::ThreadCpu.now().ok_or(Errno::Overflow),
            _ => Err(Errno::Inval),
        }
    }

    /// Returns the resolution of a clock in nanoseconds.
    pub fn resolution(&self, clock: u32) -> Result<u64, Errno> {
        match (self, clock) {
            (Clocks::Virtual(_), REALTIME..=THREAD_CPU) => Ok(TICK),
            (Clocks::Given { wall, .. }, REALTIME) => nanoseconds(wall.resolution()),
            (Clocks::Given { monotonic, .. }, MONOTONIC) => Ok(monotonic.resolution()),
            (Clocks::Given { .. }, PROCESS_CPU) => Clock::ProcessCpu.resolution().ok_or(Errno::Overflow),
            (Clocks::Given { .. }, THREAD_CPU) => Clock::ThreadCpu.resolution().ok_or(Errno::Overflow),
            _ => Err(Errno::Inval),
        }
    }

    /// Returns the time on the clock by which a program waits, in nanoseconds: the host's monotonic one, unless clocks are virtual. A
    /// clock of the embedder says for how long to wait, but need not advance meanwhile.
    pub fn waited(&mut self) -> u64 {
        match self {
            Clocks::Given { .. } => host_monotonic(),
            Clocks::Virtual(time) => {
                *time = time.saturating_add(TICK);
                *time
            }
        }
    }

    /// Advances virtual clocks to at least this time of the monotonic clock. Returns whether the clocks are virtual.
    pub fn skip_to(&mut self, deadline: u64) -> bool {
        match self {
            Clocks::Given { .. } => false,
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

fn nanoseconds(time: Duration) -> Result<u64, Errno> {
    u64::try_from(time.as_nanos()).map_err(|_| Errno::Overflow)
}
