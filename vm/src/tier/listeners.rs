//! Tells embedder and profiler of compiled code.

use super::entry::Code;
use super::perf::Perf;
use crate::records::events::{self, Callback, Event, TierEventKind};
use crate::records::module::ModuleRecord;
use crate::{Config, Error, Result};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weir_contract::Entry;
use weir_jit::{Backend, Compiled};

/// Who is told.
#[derive(Debug)]
pub(super) struct Listeners {
    callback: Option<Callback>,
    perf: Option<Mutex<Perf>>,
}

impl Listeners {
    /// Those that the settings name.
    ///
    /// # Errors
    /// The profiler's file can't be written.
    pub fn new(config: &Config) -> Result<Listeners> {
        let failed = |error| Error::msg(format!("the profiler's file can't be written: {error}"));
        let perf = config.profiler.map(Perf::new).transpose().map_err(failed)?;
        Ok(Listeners { callback: config.tier_events.clone(), perf: perf.map(Mutex::new) })
    }

    /// Tells of a compilation: the code and where it is, or why there is none.
    ///
    /// # Safety
    /// The code is published there, and the module lives.
    pub unsafe fn tell(
        &self,
        module: &Arc<ModuleRecord>,
        func: u32,
        entry: Entry,
        compiled: Option<(Code, &Compiled)>,
        reasons: &[String],
    ) {
        if self.callback.is_none() && self.perf.is_none() {
            return;
        }
        let kind = match compiled {
            Some((Code(address), compiled)) => TierEventKind::Compiled {
                native: compiled.backend == Backend::Native,
                // SAFETY: the caller's promise; code is immutable.
                code: unsafe { std::slice::from_raw_parts(address, compiled.code.len()) },
                time: Duration::from_nanos(compiled.stats.phases.iter().map(|&(_, nanoseconds)| nanoseconds).sum()),
            },
            None => TierEventKind::Refused { reasons },
        };
        if let (Some(perf), TierEventKind::Compiled { code, .. }) = (&self.perf, &kind) {
            let name = events::name(&module.bytecode, func, osr(entry));
            // A profile in which some code has no name is better than none.
            let _ = perf.lock().unwrap_or_else(PoisonError::into_inner).code(&name, code);
        }
        self.call(module, func, entry, kind);
    }

    /// Tells of a panic in the compiler.
    pub fn tell_panic(&self, module: &Arc<ModuleRecord>, func: u32, entry: Entry, message: &str) {
        self.call(module, func, entry, TierEventKind::Panicked { message });
    }

    /// Tells of so many bytes of code that are not used any more.
    pub fn tell_retired(&self, module: &Arc<ModuleRecord>, func: u32, entry: Entry, bytes: usize) {
        self.call(module, func, entry, TierEventKind::Retired { bytes });
    }

    fn call(&self, module: &Arc<ModuleRecord>, func: u32, entry: Entry, kind: TierEventKind<'_>) {
        if let Some(Callback(callback)) = &self.callback {
            let module: Arc<dyn Any + Send + Sync> = module.clone();
            let event = Event { module: &module, func, osr: osr(entry), kind };
            // Compiled code may be below this on the stack, which no panic may pass: the panic's message is all there is of it.
            let _ = catch_unwind(AssertUnwindSafe(|| callback(event)));
        }
    }
}

fn osr(entry: Entry) -> Option<u32> {
    match entry {
        Entry::Call => None,
        Entry::Osr(pc) => Some(pc),
    }
}
