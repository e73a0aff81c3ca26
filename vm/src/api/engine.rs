//! Construction of an engine, its epoch and its statistics.

use crate::exec::engines::engines;
use crate::records::census::Census;
use crate::records::config::Config;
use crate::records::engine::{Engine, EngineRecord};
use crate::records::error::Result;
use crate::records::memory::Reservations;
use crate::records::pooling::Quota;
use crate::records::quiescence::Domain;
use crate::records::stack::Stacks;
use crate::records::stats::Stats;
use crate::sys::fork::Process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

impl Default for Engine {
    /// Creates an engine with default settings.
    fn default() -> Engine {
        Engine::new(&Config::default()).expect("nothing that could fail is asked for")
    }
}

impl Engine {
    /// Creates an engine with these settings.
    ///
    /// # Errors
    /// [`Unavailable`](crate::Unavailable) if this version, host or build lacks something that the settings require, or if they
    /// contradict each other; or the profiler's file can't be written.
    pub fn new(config: &Config) -> Result<Engine> {
        config.check()?;
        let quota = Quota::new(&config.allocation_strategy, config.reserved_bytes())?;
        let quiescence = Arc::new(Domain::default());
        let engines = engines(config, &quiescence)?;
        Ok(Engine::of(EngineRecord {
            process: Process::current(),
            config: config.clone(),
            loop_kind: config.loop_kind(),
            signatures: Arc::default(),
            epoch: AtomicU64::new(0),
            stacks: Stacks::default(),
            #[cfg(feature = "async")]
            fiber_stacks: Default::default(),
            reservations: Reservations::default(),
            account: Arc::new(config.engine_account()),
            quota,
            quiescence,
            stripes: Arc::default(),
            prepares_threads: engines.prepares_threads(),
            engines,
            census: Census::default(),
        }))
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
        self.record().epoch.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the bytes of the host's memory that the engine's modules take. [`Config::max_engine_memory`] limits them.
    ///
    /// ```
    /// use weir::{Engine, Module};
    ///
    /// let engine = Engine::default();
    /// let module = Module::new(&engine, "(module (func))")?;
    /// assert_eq!(engine.host_memory(), module.host_memory());
    /// drop(module);
    /// assert_eq!(engine.host_memory(), 0);
    /// # Ok::<(), weir::Error>(())
    /// ```
    pub fn host_memory(&self) -> usize {
        self.record().account.used()
    }

    /// Returns the statistics of all modules of this engine, including dropped ones; nothing of one that was [made before a
    /// fork](crate::ForkedEngine). Its lists, of refusals and of functions that were compiled, end after some megabytes.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        if self.record().is_inherited() {
            return stats;
        }
        self.record().census.count(&mut stats);
        self.record().engines.report(None, &mut stats);
        stats
    }

    /// Returns the code of the stubs for functions of type `ty`, or of those that depend on no type, which the checker of machine code
    /// checks. `None` without native code.
    #[doc(hidden)]
    pub fn stub_code(&self, ty: Option<&weir_bytecode::FuncType>) -> Option<weir_contract::stubs::StubCode> {
        self.record().engines.stub_code(ty)
    }
}
