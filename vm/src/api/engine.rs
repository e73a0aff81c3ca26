//! What stores and modules share: settings, signature identities, the epoch.

use crate::api::stats::Stats;
use crate::records::memory::Reservations;
use crate::records::presence::Guests;
use crate::records::signatures::Signatures;
use crate::records::stack::Stacks;
use crate::{Config, Result, tier};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// Settings and the state that modules and stores of a process share. Cheap to clone; clones are the same engine.
#[derive(Clone, Debug)]
pub struct Engine(Arc<EngineRecord>);

/// An engine that is not kept alive: what a clock thread holds that is to end with it.
#[derive(Clone, Debug)]
pub struct EngineWeak(Weak<EngineRecord>);

impl EngineWeak {
    /// The engine, if anything still keeps it alive.
    pub fn upgrade(&self) -> Option<Engine> {
        self.0.upgrade().map(Engine)
    }
}

#[derive(Debug)]
pub(crate) struct EngineRecord {
    pub config: Config,
    pub signatures: Signatures,
    pub epoch: AtomicU64,
    /// Value stacks for its next stores,
    pub stacks: Stacks,
    /// and address space for their memories.
    pub reservations: Reservations,
    /// Its stores.
    pub guests: Arc<Guests>,
    pub tier: tier::EngineState,
}

impl Default for Engine {
    /// An engine with default settings.
    fn default() -> Engine {
        Engine::new(&Config::default()).expect("nothing that could fail is asked for")
    }
}

impl Engine {
    /// An engine with these settings.
    ///
    /// # Errors
    /// The settings contradict each other or ask for what this host or build cannot do.
    pub fn new(config: &Config) -> Result<Engine> {
        tier::check(config)?;
        let tier = tier::EngineState::new(config)?;
        Ok(Engine(Arc::new(EngineRecord {
            config: config.clone(),
            signatures: Signatures::default(),
            epoch: AtomicU64::new(0),
            stacks: Stacks::default(),
            reservations: Reservations::default(),
            guests: Arc::default(),
            tier,
        })))
    }

    /// Its settings.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// Advances the epoch: stores whose deadline it reaches are interrupted, if the engine was made with
    /// [`Config::epoch_interruption`]. May be called from any thread and from a signal handler.
    ///
    /// ```
    /// use std::time::Duration;
    /// use weir::{Config, Engine, Instance, Module, Store, Trap};
    ///
    /// let mut config = Config::new();
    /// config.epoch_interruption(true);
    /// let engine = Engine::new(&config)?;
    /// let module = Module::new(&engine, r#"(module (func (export "spin") (loop (br 0))))"#)?;
    /// let mut store = Store::new(&engine, ());
    /// let spin = Instance::new(&mut store, &module, &[])?.get_typed_func::<(), ()>(&mut store, "spin")?;
    ///
    /// store.set_epoch_deadline(1);
    /// let timer = engine.clone();
    /// std::thread::spawn(move || {
    ///     std::thread::sleep(Duration::from_millis(10));
    ///     timer.increment_epoch();
    /// });
    /// assert_eq!(spin.call(&mut store, ()).unwrap_err().downcast_ref(), Some(&Trap::Interrupt));
    /// # Ok::<(), weir::Error>(())
    /// ```
    pub fn increment_epoch(&self) {
        self.0.epoch.fetch_add(1, Ordering::Relaxed);
    }

    /// A handle that does not keep the engine alive.
    ///
    /// ```
    /// let engine = weir::Engine::default();
    /// let weak = engine.weak();
    /// assert!(weak.upgrade().is_some());
    /// drop(engine);
    /// assert!(weak.upgrade().is_none());
    /// ```
    pub fn weak(&self) -> EngineWeak {
        EngineWeak(Arc::downgrade(&self.0))
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
