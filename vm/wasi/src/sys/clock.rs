//! The host's clocks.

use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

/// A clock of the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Clock {
    /// Time since 1970.
    Realtime,
    /// Time since an arbitrary start; never set.
    Monotonic,
    /// Processor time of this process.
    ProcessCpu,
    /// Processor time of this thread.
    ThreadCpu,
}

impl Clock {
    fn id(self) -> ClockId {
        match self {
            Clock::Realtime => ClockId::Realtime,
            Clock::Monotonic => ClockId::Monotonic,
            Clock::ProcessCpu => ClockId::ProcessCPUTime,
            Clock::ThreadCpu => ClockId::ThreadCPUTime,
        }
    }

    /// Returns the time in nanoseconds. `None` before 1970 and after 2554.
    pub fn now(self) -> Option<u64> {
        nanoseconds(clock_gettime(self.id()))
    }

    /// Returns the resolution in nanoseconds.
    pub fn resolution(self) -> Option<u64> {
        nanoseconds(clock_getres(self.id()))
    }
}

fn nanoseconds(time: Timespec) -> Option<u64> {
    u64::try_from(time.tv_sec).ok()?.checked_mul(1_000_000_000)?.checked_add(time.tv_nsec as u64)
}
