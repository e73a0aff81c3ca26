//! Clocks.

use rustix::time::{ClockId, clock_gettime};

/// Returns nanoseconds of the system's monotonic clock.
pub(crate) fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
