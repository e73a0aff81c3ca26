//! Clocks of one's own.

use crate::sys::clock::Clock;
use std::time::Duration;

/// A clock that shows the time of day. See [`WasiCtxBuilder::wall_clock`](crate::WasiCtxBuilder::wall_clock).
///
/// ```
/// use std::time::Duration;
/// use weir_wasi::{HostWallClock, WasiCtxBuilder};
///
/// /// It is always noon.
/// struct Noon;
///
/// impl HostWallClock for Noon {
///     fn resolution(&self) -> Duration {
///         Duration::from_secs(1)
///     }
///
///     fn now(&self) -> Duration {
///         Duration::from_secs(12 * 60 * 60)
///     }
/// }
///
/// let ctx = WasiCtxBuilder::new().wall_clock(Noon).build_p1();
/// # drop(ctx);
/// ```
pub trait HostWallClock: Send {
    /// Returns the time between two values of the clock.
    fn resolution(&self) -> Duration;

    /// Returns the time since 1970-01-01 00:00 UTC. A program gets nanoseconds, and the error number `overflow` after the year 2554.
    fn now(&self) -> Duration;
}

/// A clock that never goes back. See [`WasiCtxBuilder::monotonic_clock`](crate::WasiCtxBuilder::monotonic_clock).
///
/// ```
/// use weir_wasi::clocks::{HostMonotonicClock, MonotonicClock};
///
/// /// A clock with the resolution of a microsecond.
/// struct Coarse(MonotonicClock);
///
/// impl HostMonotonicClock for Coarse {
///     fn resolution(&self) -> u64 {
///         1_000
///     }
///
///     fn now(&self) -> u64 {
///         self.0.now() / 1_000 * 1_000
///     }
/// }
///
/// assert_eq!(Coarse(MonotonicClock::new()).now() % 1_000, 0);
/// ```
pub trait HostMonotonicClock: Send {
    /// Returns the time between two values of the clock, in nanoseconds.
    fn resolution(&self) -> u64;

    /// Returns the time since a start of the clock's own, in nanoseconds.
    fn now(&self) -> u64;
}

/// The host's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct WallClock;

impl WallClock {
    /// Creates the clock.
    pub fn new() -> Self {
        WallClock
    }
}

impl HostWallClock for WallClock {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(Clock::Realtime.resolution().unwrap_or(1))
    }

    /// 0 before 1970.
    fn now(&self) -> Duration {
        Clock::Realtime.now().map_or(Duration::ZERO, Duration::from_nanos)
    }
}

/// The host's monotonic clock, which begins when it is created.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    /// The start on the host's clock, in nanoseconds.
    start: u64,
}

impl Default for MonotonicClock {
    fn default() -> Self {
        MonotonicClock::new()
    }
}

impl MonotonicClock {
    /// Creates the clock, and starts it.
    pub fn new() -> Self {
        MonotonicClock { start: host_monotonic() }
    }
}

impl HostMonotonicClock for MonotonicClock {
    fn resolution(&self) -> u64 {
        Clock::Monotonic.resolution().unwrap_or(1)
    }

    fn now(&self) -> u64 {
        host_monotonic().saturating_sub(self.start)
    }
}

/// Returns the time of the host's monotonic clock in nanoseconds: it lasts for 584 years.
pub(crate) fn host_monotonic() -> u64 {
    Clock::Monotonic.now().unwrap_or(u64::MAX)
}

/// Returns the host's monotonic clock, started now.
pub fn monotonic_clock() -> Box<dyn HostMonotonicClock + Send> {
    Box::new(MonotonicClock::new())
}

/// Returns the host's wall clock.
pub fn wall_clock() -> Box<dyn HostWallClock + Send> {
    Box::new(WallClock)
}
