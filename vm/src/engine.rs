//! What stores and modules share: settings, signature identities, the epoch.

use crate::runtime::signatures::Signatures;
use crate::stats::Stats;
use crate::{Config, Result, tier};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Settings and the state that modules and stores of a process share. Cheap to clone; clones are the same engine.
#[derive(Clone, Debug)]
pub struct Engine(Arc<EngineRecord>);

#[derive(Debug)]
pub(crate) struct EngineRecord {
    pub config: Config,
    pub signatures: Signatures,
    pub epoch: AtomicU64,
    pub tier: tier::EngineState,
}

impl Default for Engine {
    /// An engine with default settings.
    fn default() -> Engine {
        Engine::from_config(Config::default())
    }
}

impl Engine {
    /// An engine with these settings.
    ///
    /// # Errors
    /// The settings contradict each other or ask for what this host or build cannot do.
    pub fn new(config: &Config) -> Result<Engine> {
        tier::check(config)?;
        Ok(Engine::from_config(config.clone()))
    }

    fn from_config(config: Config) -> Engine {
        let tier = tier::EngineState::new(&config);
        Engine(Arc::new(EngineRecord { config, signatures: Signatures::default(), epoch: AtomicU64::new(0), tier }))
    }

    /// Its settings.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// Advances the epoch: stores whose deadline it reaches are interrupted, if the engine was made with
    /// [`Config::epoch_interruption`]. May be called from any thread and from a signal handler.
    pub fn increment_epoch(&self) {
        self.0.epoch.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether both are clones of one engine.
    pub fn same(a: &Engine, b: &Engine) -> bool {
        Arc::ptr_eq(&a.0, &b.0)
    }

    /// What happened so far in all modules of this engine.
    pub fn stats(&self) -> Stats {
        tier::engine_stats(self)
    }

    pub(crate) fn record(&self) -> &EngineRecord {
        &self.0
    }
}
