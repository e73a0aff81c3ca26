//! Reports compilations to the embedder and to a profiler.

use super::entry::Code;
use super::perf::Perf;
use crate::records::events::{self, Callback, CompiledBy, TierEventKind};
use crate::records::module::ModuleRecord;
use crate::records::stats::Fallback;
use crate::{Config, Error, Result};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weir_contract::Entry;
use weir_jit::{Backend, Packed};

/// The receivers of reports.
#[derive(Debug)]
pub(super) struct Listeners {
    callback: Option<Callback>,
    perf: Option<Mutex<Perf>>,
}

impl Listeners {
    /// Creates the receivers that the settings name.
    ///
    /// # Errors
    /// The profiler's file can't be written.
    pub fn new(config: &Config) -> Result<Listeners> {
        let failed = |error| Error::msg(format!("the profiler's file can't be written: {error}"));
        let perf = Perf::new(config.profiler).map_err(failed)?;
        Ok(Listeners { callback: config.tier_events.clone(), perf: perf.map(Mutex::new) })
    }

    /// Reports a compilation: the refusals in order, then the code with its address, if there is any.
    ///
    /// # Safety
    /// The code is published there, and the module lives.
    pub unsafe fn report(
        &self,
        module: &Arc<ModuleRecord>,
        func: u32,
        entry: Entry,
        compiled: Option<(Code, &Packed)>,
        refusals: &[Fallback],
    ) {
        if self.callback.is_none() && self.perf.is_none() {
            return;
        }
        for Fallback { by, reason, .. } in refusals {
            self.call(module, func, entry, TierEventKind::Refused { by: *by, reason, interpreted: compiled.is_none() });
        }
        let Some((Code(address), compiled)) = compiled else { return };
        // SAFETY: the caller's promise; code is immutable.
        let code = unsafe { std::slice::from_raw_parts(address, compiled.code_len) };
        self.name_code(module, func, entry, compiled.backend, code);
        let by = match compiled.backend {
            Backend::Native => CompiledBy::Native,
            Backend::Cranelift => CompiledBy::Cranelift,
            Backend::Baseline => CompiledBy::Baseline,
        };
        let time = Duration::from_nanos(compiled.stats.phases.iter().map(|&(_, nanoseconds)| nanoseconds).sum());
        self.call(module, func, entry, TierEventKind::Compiled { by, code, time });
    }

    /// Reports code of an earlier process, which is entered by calls, to the profiler. The embedder hears of compilations only.
    pub fn report_stored(&self, module: &ModuleRecord, func: u32, backend: Backend, code: &[u8]) {
        self.name_code(module, func, Entry::Call, backend, code);
    }

    /// Gives the profiler the name of code.
    fn name_code(&self, module: &ModuleRecord, func: u32, entry: Entry, backend: Backend, code: &[u8]) {
        let Some(perf) = &self.perf else { return };
        let mut name = events::name(&module.bytecode, func, osr(entry));
        if backend == Backend::Baseline {
            name.push_str(" baseline");
        }
        // A profile in which some code has no name is better than none.
        let _ = perf.lock().unwrap_or_else(PoisonError::into_inner).code(&name, code);
    }

    /// Reports a panic in the compiler.
    pub fn report_panic(&self, module: &Arc<ModuleRecord>, func: u32, entry: Entry, message: &str) {
        self.call(module, func, entry, TierEventKind::Panicked { message });
    }

    /// Reports that code of `bytes` bytes was retired.
    pub fn report_retired(&self, module: &Arc<ModuleRecord>, func: u32, entry: Entry, bytes: usize) {
        self.call(module, func, entry, TierEventKind::Retired { bytes });
    }

    /// Reports that the module has no native code.
    pub fn report_no_native(&self, module: &Arc<ModuleRecord>, reason: &str) {
        if let Some(callback) = &self.callback {
            callback.call(module.clone(), None, None, TierEventKind::NoNativeCode { reason });
        }
    }

    fn call(&self, module: &Arc<ModuleRecord>, func: u32, entry: Entry, kind: TierEventKind<'_>) {
        if let Some(callback) = &self.callback {
            callback.call(module.clone(), Some(func), osr(entry), kind);
        }
    }
}

fn osr(entry: Entry) -> Option<u32> {
    match entry {
        Entry::Call => None,
        Entry::Osr(pc) => Some(pc),
    }
}
