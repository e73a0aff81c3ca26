//! Counts of what host functions do, and of the host values that guests ask for.

use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir::{Error, Result};

/// What host functions have done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostUse {
    /// Host values that were made.
    pub values: u64,
    /// Calls of the guest that a host function made while the guest was calling it.
    pub entered: u64,
    /// Those of them whose trap, or other error, the host function passed on.
    pub passed: u64,
    /// Those of them after whose error the host function went on.
    pub caught: u64,
    /// Errors of host functions themselves.
    pub failed: u64,
}

impl AddAssign for HostUse {
    fn add_assign(&mut self, other: HostUse) {
        let HostUse { values, entered, passed, caught, failed } = other;
        self.values += values;
        self.entered += entered;
        self.passed += passed;
        self.caught += caught;
        self.failed += failed;
    }
}

impl fmt::Display for HostUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HostUse { values, entered, passed, caught, failed } = self;
        write!(
            f,
            "{values} host values; {entered} calls of guests by host functions, which passed on {passed} errors and caught {caught}; \
             {failed} errors of host functions"
        )
    }
}

/// Counters of a store, which its host functions share.
#[derive(Clone, Default, Debug)]
pub struct Uses(Arc<Counters>);

#[derive(Default, Debug)]
struct Counters {
    made: AtomicU64,
    dropped: AtomicU64,
    /// Calls of the guest by the host that have not ended.
    open: AtomicU64,
    entered: AtomicU64,
    passed: AtomicU64,
    caught: AtomicU64,
    failed: AtomicU64,
}

fn increment(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl Uses {
    /// Calls of the guest by the host that may be open at a time. Each takes native stack, of which tiers need different amounts, and a
    /// program must not run out of it in one tier alone.
    const OPEN: u64 = 8;

    /// The number of host values that were made, and of those that were dropped.
    pub fn values(&self) -> [u64; 2] {
        [&self.0.made, &self.0.dropped].map(get)
    }

    /// Returns all counts, after the end of the store.
    ///
    /// # Errors
    /// A host value was not dropped.
    pub fn at_end(&self) -> Result<HostUse> {
        let [values, dropped] = self.values();
        if values != dropped {
            return Err(Error::msg(format!("{values} host values were made, and {dropped} dropped")));
        }
        let Counters { entered, passed, caught, failed, .. } = &*self.0;
        Ok(HostUse { values, entered: get(entered), passed: get(passed), caught: get(caught), failed: get(failed) })
    }

    /// Counts a call of the guest by the host, which is open until the guard is dropped; `None` if too many are.
    pub(super) fn enter(&self) -> Option<Open<'_>> {
        if get(&self.0.open) >= Uses::OPEN {
            return None;
        }
        increment(&self.0.open);
        increment(&self.0.entered);
        Some(Open(&self.0.open))
    }

    pub(super) fn passed(&self) {
        increment(&self.0.passed);
    }

    pub(super) fn caught(&self) {
        increment(&self.0.caught);
    }

    pub(super) fn failed(&self) {
        increment(&self.0.failed);
    }

    pub(super) fn make(&self, number: i64) -> HostValue {
        increment(&self.0.made);
        HostValue { number, uses: self.clone() }
    }
}

/// An open call of the guest by the host.
pub(super) struct Open<'u>(&'u AtomicU64);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A host value, which is its number.
pub(super) struct HostValue {
    pub number: i64,
    uses: Uses,
}

impl Drop for HostValue {
    fn drop(&mut self) {
        increment(&self.uses.0.dropped);
    }
}
