//! Events of the tiers, as the embedder sees them.

use crate::records::events::{self, Callback, Event, TierEventKind};
use crate::records::module::{Module, ModuleRecord};
use std::sync::Arc;

/// An event of a tier: see [`Config::on_tier_event`](crate::Config::on_tier_event).
#[derive(Debug)]
#[non_exhaustive]
pub struct TierEvent<'a> {
    /// The module.
    pub module: &'a Module,
    /// Index of the function; `None` for an event of the module, which is [`TierEventKind::NoNativeCode`].
    pub func: Option<u32>,
    /// For an OSR body, the offset in the module of the `loop` at which it begins; `None` for code that is called.
    pub osr: Option<u32>,
    /// The kind of event.
    pub kind: TierEventKind<'a>,
}

impl TierEvent<'_> {
    /// Returns the function's name in the module's name section, or `function N`; with the loop's offset for an OSR
    /// body. For an event of the module, returns `the module`.
    pub fn name(&self) -> String {
        self.func.map_or_else(|| "the module".into(), |func| events::name(self.module.bytecode(), func, self.osr))
    }
}

/// Wraps the embedder's callback for the configuration.
pub(crate) fn callback(callback: impl Fn(&TierEvent<'_>) + Send + Sync + 'static) -> Callback {
    Callback(Arc::new(move |Event { module, func, osr, kind }| {
        let record = module.clone().downcast::<ModuleRecord>().expect("an event is of a module");
        callback(&TierEvent { module: &Module::of(record), func, osr, kind });
    }))
}
