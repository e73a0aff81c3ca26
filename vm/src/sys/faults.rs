//! Functions that count their calls and fail when a test requests it.

use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A function of the operating-system layer. It counts its calls and fails while a [`FaultInjection`] says so.
#[derive(Debug)]
pub struct Function {
    name: &'static str,
    /// Whether the other fields are in use.
    armed: AtomicBool,
    calls: AtomicU64,
    failed: AtomicU64,
    /// The first call that fails, and the first after it that does not.
    first: AtomicU64,
    end: AtomicU64,
    errno: AtomicI32,
}

impl Function {
    /// Creates a function that does not fail. Names are unique: package, module and function.
    #[must_use]
    pub const fn new(name: &'static str) -> Function {
        Function {
            name,
            armed: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            first: AtomicU64::new(0),
            end: AtomicU64::new(0),
            errno: AtomicI32::new(0),
        }
    }

    /// Returns the name: package, module and function, such as `weir::mapping::reserve`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the number of calls since [`FaultInjection::fail`].
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// Returns the number of injected failures since [`FaultInjection::fail`].
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::SeqCst)
    }

    /// Counts a call. The function calls this first, and returns the error.
    ///
    /// # Errors
    /// The error to inject.
    pub fn enter(&self) -> io::Result<()> {
        if !self.armed.load(Ordering::SeqCst) {
            return Ok(());
        }
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if call < self.first.load(Ordering::SeqCst) || call >= self.end.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.failed.fetch_add(1, Ordering::SeqCst);
        Err(io::Error::from_raw_os_error(self.errno.load(Ordering::SeqCst)))
    }
}

/// The permission to make functions fail. One test of a process has it at a time. Dropping it ends all failures.
#[derive(Debug)]
pub struct FaultInjection {
    armed: Vec<&'static Function>,
    _alone: MutexGuard<'static, ()>,
}

impl FaultInjection {
    /// Waits until no other test injects faults. No function fails yet.
    #[must_use]
    pub fn begin() -> FaultInjection {
        static ALONE: Mutex<()> = Mutex::new(());
        FaultInjection { armed: Vec::new(), _alone: ALONE.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Makes `function` fail: its calls are counted from 1 again, and those in `calls` fail with `errno`.
    pub fn fail(&mut self, function: &'static Function, calls: impl RangeBounds<u64>, errno: i32) {
        let first = match calls.start_bound() {
            Bound::Included(&call) => call,
            Bound::Excluded(&call) => call.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match calls.end_bound() {
            Bound::Included(&call) => call.saturating_add(1),
            Bound::Excluded(&call) => call,
            Bound::Unbounded => u64::MAX,
        };
        function.armed.store(false, Ordering::SeqCst);
        function.calls.store(0, Ordering::SeqCst);
        function.failed.store(0, Ordering::SeqCst);
        function.first.store(first, Ordering::SeqCst);
        function.end.store(end, Ordering::SeqCst);
        function.errno.store(errno, Ordering::SeqCst);
        function.armed.store(true, Ordering::SeqCst);
        self.armed.push(function);
    }
}

impl Drop for FaultInjection {
    fn drop(&mut self) {
        for function in &self.armed {
            function.armed.store(false, Ordering::SeqCst);
        }
    }
}
