//! The modules of an engine, for its statistics: living ones, and the sums of dropped ones.

use crate::records::statistic::Accumulate;
use crate::records::stats::Stats;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

/// A module that contributes to the statistics.
pub(crate) trait Counts: Send + Sync {
    /// Adds the module's statistics to `stats`.
    fn count(&self, stats: &mut Stats);
}

/// The most refusals of dropped modules that are kept.
const MAX_FALLBACKS: usize = 10_000;

/// The modules of an engine.
#[derive(Default)]
pub(crate) struct Census(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// Living modules, by identity.
    live: HashMap<u64, Weak<dyn Counts>>,
    /// The sums of dropped modules.
    dropped: Stats,
}

impl Census {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a module.
    pub fn add(&self, id: u64, module: Weak<dyn Counts>) {
        self.inner().live.insert(id, module);
    }

    /// Removes a module that is being dropped, and keeps its counts.
    pub fn remove(&self, id: u64, module: &dyn Counts) {
        let mut inner = self.inner();
        inner.live.remove(&id);
        module.count(&mut inner.dropped);
        inner.dropped.functions.fallbacks.truncate(MAX_FALLBACKS);
    }

    /// Adds the sums over all modules to `stats`.
    pub fn count(&self, stats: &mut Stats) {
        let live = {
            let inner = self.inner();
            stats.add(&inner.dropped);
            inner.live.values().filter_map(Weak::upgrade).collect::<Vec<_>>()
        };
        // Outside the lock: one of these may be the last reference to its module, whose drop takes the lock.
        live.iter().for_each(|module| module.count(stats));
    }
}

impl fmt::Debug for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Census").field("live", &self.inner().live.len()).finish_non_exhaustive()
    }
}
