//! What the tiers tell the embedder as it happens.

use crate::records::events::{self, Callback, Event, TierEventKind};
use crate::records::module::{Module, ModuleRecord};
use std::sync::Arc;

/// Something that a tier did: see [`Config::on_tier_event`](crate::Config::on_tier_event).
#[derive(Debug)]
#[non_exhaustive]
pub struct TierEvent<'a> {
    /// The module.
    pub module: &'a Module,
    /// Index of the function.
    pub func: u32,
    /// The offset in the module of the `loop` at which code begins that continues a running loop; `None` for code that is called.
    pub osr: Option<u32>,
    /// What happened.
    pub kind: TierEventKind<'a>,
}

impl TierEvent<'_> {
    /// The function's name in the module's name section, or `function N`; with the loop's offset for code of a loop.
    pub fn name(&self) -> String {
        events::name(self.module.bytecode(), self.func, self.osr)
    }
}

/// The callback of a configuration, which calls `callback`.
pub(crate) fn callback(callback: impl Fn(&TierEvent<'_>) + Send + Sync + 'static) -> Callback {
    Callback(Arc::new(move |Event { module, func, osr, kind }| {
        let record = module.clone().downcast::<ModuleRecord>().expect("an event is of a module");
        callback(&TierEvent { module: &Module::of(record), func, osr, kind });
    }))
}
