//! The engine: data that stores and modules share.

use crate::records::census::Census;
use crate::records::config::{Config, LoopKind};
use crate::records::engines::Engines;
use crate::records::error::{Error, Result};
use crate::records::memory::Reservations;
use crate::records::pooling::Quota;
use crate::records::quiescence::Domain;
use crate::records::signatures::Signatures;
#[cfg(feature = "async")]
use crate::records::stack::FiberStacks;
use crate::records::stack::Stacks;
use crate::records::stripes::Stripes;
use crate::sys::fork::Process;
use std::mem;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use weir_bytecode::account::Account;

/// Settings and the state that modules and stores of a process share. Cheap to clone; clones refer to the same engine.
#[derive(Clone, Debug)]
pub struct Engine(Arc<EngineRecord>);

/// A weak reference to an engine, for a clock thread that is to end with the engine.
#[derive(Clone, Default, Debug)]
pub struct EngineWeak(Weak<EngineRecord>);

/// The engine belongs to a process that this one was forked from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the engine was made before this process was forked: it needs an engine of its own")]
pub struct ForkedEngine;

/// The record of an [`Engine`].
///
/// In a forked child process its locks may be held by threads that do not exist there, and its code memory is not mapped. So the handles of an
/// engine, of its modules and of its stores [ask](EngineRecord::is_inherited) before they use it, and what belongs to it is not freed.
#[derive(Debug)]
pub(crate) struct EngineRecord {
    /// The process that made it.
    pub process: Process,
    pub config: Config,
    /// The variant of the interpreter's loop, which each activation of the interpreter reads.
    pub loop_kind: LoopKind,
    pub signatures: Arc<Signatures>,
    pub epoch: AtomicU64,
    /// Value stacks of dropped stores, for new ones.
    pub stacks: Stacks,
    /// Native stacks of finished fibers, for new ones.
    #[cfg(feature = "async")]
    pub fiber_stacks: FiberStacks,
    /// Address space of dropped memories, for new ones.
    pub reservations: Reservations,
    /// The memory that its modules take.
    pub account: Arc<Account>,
    /// What its stores hold together.
    pub quota: Quota,
    /// The quiescence words of its stores.
    pub quiescence: Arc<Domain>,
    /// The stripes of counters that its stores use.
    pub stripes: Arc<Stripes>,
    /// The compiling engine.
    pub engines: Box<dyn Engines>,
    /// Whether `engines` prepares threads, which each outermost invocation reads.
    pub prepares_threads: bool,
    /// The statistics of its modules.
    pub census: Census,
}

impl EngineRecord {
    /// Returns whether it was made by a process that this one was forked from.
    #[inline(always)]
    pub fn is_inherited(&self) -> bool {
        !self.process.is_current()
    }

    /// Checks that this process has made it.
    ///
    /// # Errors
    /// [`ForkedEngine`]
    #[inline]
    pub fn check_process(&self) -> Result<()> {
        if self.is_inherited() { Err(Error::without_stack(ForkedEngine)) } else { Ok(()) }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.0.is_inherited() {
            // It is never the last handle.
            mem::forget(self.0.clone());
        }
    }
}

impl EngineWeak {
    /// Returns the engine, if it is still alive.
    pub fn upgrade(&self) -> Option<Engine> {
        self.0.upgrade().map(Engine)
    }
}

impl Engine {
    /// Creates the handle of a new engine.
    pub(crate) fn of(record: EngineRecord) -> Engine {
        Engine(Arc::new(record))
    }

    /// Returns the settings.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// Returns a handle that does not keep the engine alive.
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

    /// Returns whether both are clones of one engine.
    pub fn same(a: &Engine, b: &Engine) -> bool {
        Arc::ptr_eq(&a.0, &b.0)
    }

    pub(crate) fn record(&self) -> &EngineRecord {
        &self.0
    }
}
