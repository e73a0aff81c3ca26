//! The modules whose functions are being compiled. A job in the queue does not keep its module alive, but one that runs does, and with it the
//! engine: it ends early when nothing else does. So a dropped engine is gone, with its threads, as soon as its compilations have noticed.

use super::state::{engine_of, state_of};
use crate::records::module::ModuleRecord;
use std::ops::Deref;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use std::time::Instant;

/// A module that a running job holds.
pub(super) struct Held(Arc<ModuleRecord>);

impl Held {
    /// Holds a module, if it is still there.
    pub fn of(module: &Weak<ModuleRecord>) -> Option<Held> {
        let held = Held(module.upgrade()?);
        *holders(&held) += 1;
        Some(held)
    }

    /// Returns whether only jobs hold the module, so that nobody will call what they compile.
    ///
    /// The count has a job only while it has a reference. No job comes or goes while the count is locked, so that there are no other
    /// references if there are not more than jobs.
    fn is_abandoned(&self) -> bool {
        let holders = holders(self);
        Arc::strong_count(&self.0) <= *holders
    }

    /// Returns the question whether a compilation that begins now is to stop. Asking it also lets other modules have a thread if it takes long.
    pub fn stops(&self) -> impl Fn() -> bool + '_ {
        let began = Instant::now();
        move || {
            engine_of(self.engine.record()).queue.relieve(began);
            self.is_abandoned()
        }
    }
}

impl Deref for Held {
    type Target = Arc<ModuleRecord>;

    fn deref(&self) -> &Arc<ModuleRecord> {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        *holders(&self.0) -= 1;
    }
}

/// Locks the number of running jobs that hold a module.
fn holders(module: &ModuleRecord) -> MutexGuard<'_, usize> {
    state_of(module).holders.lock().unwrap_or_else(PoisonError::into_inner)
}
