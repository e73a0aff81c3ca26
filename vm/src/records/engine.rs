//! What stores and modules share: settings, signature identities, the epoch.

use crate::records::census::Census;
use crate::records::config::{Config, LoopKind};
use crate::records::engines::Engines;
use crate::records::memory::Reservations;
use crate::records::quiescence::Domain;
use crate::records::signatures::Signatures;
use crate::records::stack::Stacks;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};

/// Settings and the state that modules and stores of a process share. Cheap to clone; clones are the same engine.
#[derive(Clone, Debug)]
pub struct Engine(Arc<EngineRecord>);

/// An engine that is not kept alive: what a clock thread holds that is to end with it.
#[derive(Clone, Debug)]
pub struct EngineWeak(Weak<EngineRecord>);

/// What an [`Engine`] is a handle of.
#[derive(Debug)]
pub(crate) struct EngineRecord {
    pub config: Config,
    /// That of the settings: every activation of the interpreter reads it.
    pub loop_kind: LoopKind,
    pub signatures: Signatures,
    pub epoch: AtomicU64,
    /// Value stacks for its next stores,
    pub stacks: Stacks,
    /// and address space for their memories.
    pub reservations: Reservations,
    /// The quiescence words of its stores.
    pub quiescence: Arc<Domain>,
    /// What makes code, if anything does.
    pub engines: Box<dyn Engines>,
    /// What its modules count.
    pub census: Census,
}

impl EngineWeak {
    /// The engine, if anything still keeps it alive.
    pub fn upgrade(&self) -> Option<Engine> {
        self.0.upgrade().map(Engine)
    }
}

impl Engine {
    /// The handle of a new engine.
    pub(crate) fn of(record: EngineRecord) -> Engine {
        Engine(Arc::new(record))
    }

    /// Its settings.
    pub fn config(&self) -> &Config {
        &self.0.config
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

    pub(crate) fn record(&self) -> &EngineRecord {
        &self.0
    }
}
