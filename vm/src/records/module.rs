//! Modules: the record, and its handle, which is public because frames of backtraces return it.

use crate::records::body::Bodies;
use crate::records::census::Counts;
use crate::records::config::WasmBacktraceDetails;
use crate::records::engine::Engine;
use crate::records::func_code::FuncCode;
use crate::records::hints::ModuleHints;
use crate::records::image::Images;
use crate::records::kept_profile::KeptProfile;
use crate::records::precompiled::cache::Cached;
use crate::records::precompiled::format::Grade;
use crate::records::precompiled::shelf::Shelf;
use crate::records::signatures::Interned;
use crate::records::stats::{Fallback, Stats};
use crate::records::symbols::{FrameSymbol, Symbols};
use std::any::Any;
use std::mem;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use weir_bytecode::module::ExternIndex;
use weir_bytecode::{FuncBody, Module as Bytecode};
use weir_contract::{Layout, call_words};

/// A loaded and validated module. Cheap to clone; clones refer to the same module.
///
/// ```
/// use weir::{Engine, Module};
///
/// let engine = Engine::default();
/// let module = Module::new(&engine, r#"(module (func (export "f")))"#)?;
/// assert_eq!(module.exports().next().unwrap().name(), "f");
/// # Ok::<(), weir::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Module(Arc<ModuleRecord>);

impl Drop for Module {
    fn drop(&mut self) {
        if self.0.engine.record().is_inherited() {
            // It is never the last handle.
            mem::forget(self.0.clone());
        }
    }
}

impl Module {
    /// Creates the handle of a record.
    pub(crate) fn of(record: Arc<ModuleRecord>) -> Module {
        Module(record)
    }

    /// Returns the name from the module's name section.
    pub fn name(&self) -> Option<&str> {
        self.bytecode().name()
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// Returns whether both are clones of one module.
    pub fn same(a: &Module, b: &Module) -> bool {
        Arc::ptr_eq(&a.0, &b.0)
    }

    /// Returns the result of validation, as plain data.
    pub fn bytecode(&self) -> &Bytecode {
        &self.0.bytecode
    }

    /// Creates a handle of the module with this record.
    ///
    /// # Safety
    /// `record` came out of a `Module`'s `Arc`, and an instance of that module lives.
    pub(crate) unsafe fn from_running(record: *const ModuleRecord) -> Module {
        // SAFETY: the caller's promise: the count is at least one and is incremented.
        unsafe {
            Arc::increment_strong_count(record);
            Module(Arc::from_raw(record))
        }
    }

    pub(crate) fn record(&self) -> &Arc<ModuleRecord> {
        &self.0
    }
}

/// A loaded module, shared by its handles, its instances and the compiler threads.
#[derive(Debug)]
pub(crate) struct ModuleRecord {
    pub engine: Engine,
    pub bytecode: Bytecode,
    pub layout: Layout,
    /// Engine-wide signature identity of each type of the module.
    pub sig_ids: Interned,
    /// One per function defined in the module, in order.
    pub code: Box<[FuncCode]>,
    /// The functions in `code`, as the interpreter sees them. They point into `bytecode` and `code`.
    pub bodies: Bodies,
    /// Indices of the exports, ascending by name.
    pub exports: Box<[u32]>,
    /// Images of its memories.
    pub images: Images,
    /// The kept profile, with [`Config::keep_profiles`](crate::Config::keep_profiles).
    pub kept_profile: Option<KeptProfile>,
    /// Its compilation hints.
    pub hints: ModuleHints,
    /// Its code that outlives a process, if it has such.
    pub shelf: Option<Shelf>,
    /// Its place in a cache, if it has one.
    pub cached: Option<Cached>,
    /// Refusals of functions that were compiled ahead of time.
    pub refusals: Mutex<Vec<Fallback>>,
    /// Its source lines.
    pub symbols: Symbols,
    /// Nanoseconds that decoding and validating took.
    pub validate_ns: u64,
    /// The data that [`Engines`](crate::records::engines::Engines) keeps per module.
    pub tier: Box<dyn Any + Send + Sync>,
    /// Unique in the process. An address is not: another module may have it later.
    pub id: u64,
}

impl ModuleRecord {
    /// Returns the bytes that the record of a module takes, without `bytecode` and what is made later. The other arguments are those of
    /// [`Bodies::new`].
    pub fn size(bytecode: &Bytecode, fuel: bool, fuse: bool) -> usize {
        /// The record itself, and the data that the tier keeps for it.
        const RECORD: usize = 4 << 10;
        let functions = bytecode.bodies.len() * size_of::<FuncCode>() + Bodies::size(bytecode, fuel, fuse);
        RECORD + functions + bytecode.exports.len() * size_of::<u32>() + Interned::size(&bytecode.types)
    }

    /// Returns the item exported under `name`.
    pub fn export(&self, name: &str) -> Option<ExternIndex> {
        let exports = &self.bytecode.exports;
        let i = self.exports.binary_search_by_key(&name, |&i| &exports[i as usize].name).ok()?;
        Some(exports[self.exports[i] as usize].item)
    }

    /// Returns the places in the source of the instruction at `pc`, which is in function `func`: see [`Symbols::at`]. None if the engine's
    /// settings say so, or nothing is known.
    pub fn symbols_at(&self, func: u32, pc: u32) -> Vec<FrameSymbol> {
        #[cfg(feature = "addr2line")]
        if self.engine.config().has_details() && !self.engine.record().is_inherited() {
            return self.symbols.at(&self.bytecode, func, pc);
        }
        let _ = (func, pc);
        Vec::new()
    }

    /// Returns whether backtraces would have places in the source, or more of them, if the environment variable said so.
    pub fn hides_symbols(&self) -> bool {
        let may_have = self.engine.config().backtrace_details == WasmBacktraceDetails::Environment;
        #[cfg(feature = "addr2line")]
        let may_have = may_have && !self.engine.config().has_details();
        may_have && cfg!(feature = "addr2line") && self.bytecode.has_debugging
    }

    /// Returns the body of function `func`. Code of an earlier process may run before its body is validated, which this does. `None` if the
    /// function is imported or, which no running function is, invalid.
    pub fn body(&self, func: u32) -> Option<&FuncBody> {
        self.bytecode.validated_body(func)?.ok()
    }

    /// Returns whether the bytes of the body of function `func`, which is defined in the module, can be read.
    #[cfg(feature = "jit")]
    pub fn can_read_body(&self, func: u32) -> bool {
        let Range { start, end } = self.body_range(func);
        self.bytecode.bytes.try_part(start as usize..end as usize).is_ok()
    }

    /// Returns where the body of function `func`, which is defined in the module, is in its bytes.
    pub fn body_range(&self, func: u32) -> Range<u32> {
        self.bytecode.bodies[(func - self.bytecode.imported_funcs) as usize].range()
    }

    /// Adds to the module's cache, if it has one, what is missing there. A forked child leaves that to the process that made the module.
    pub fn update_cache(&self) {
        if self.engine.record().is_inherited() {
            return;
        }
        if let (Some(cached), Some(shelf)) = (&self.cached, &self.shelf) {
            let began = Instant::now();
            let called = |body: u32| self.code[body as usize].was_called();
            let engines = &self.engine.record().engines;
            let cut_off = engines.wait_for_code(self);
            cached.update(&self.bytecode, shelf, &called, (began, cut_off), &|| engines.left(self));
        }
    }

    /// Returns the number of words that a call of function `func` needs for its arguments, which its results replace.
    pub fn words(&self, func: u32) -> usize {
        call_words(self.bytecode.func_type(func))
    }

    /// Returns the code pointers and ticks of function `func`, which is defined in the module.
    #[inline]
    pub fn func_code(&self, func: u32) -> &FuncCode {
        &self.code[(func - self.bytecode.imported_funcs) as usize]
    }
}

impl Counts for ModuleRecord {
    fn count(&self, stats: &mut Stats) {
        stats.validate_ms += self.validate_ns as f64 / 1e6;
        stats.body_bytes += self.bytecode.bodies.iter().map(|body| u64::from(body.range().end - body.start())).sum::<u64>();
        stats.accepted_bytes += self.bytecode.accepted_bytes();
        stats.functions.total += self.code.len() as u64;
        stats.functions.fallbacks.extend_from_slice(&self.refusals.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(shelf) = &self.shelf {
            stats.stored.baseline += shelf.taken(Grade::Baseline);
            stats.stored.optimised += shelf.taken(Grade::Optimised);
            stats.stored.damaged += shelf.damaged();
            stats.stored.module_read += self.bytecode.bytes.read();
        }
        if let Some(cached) = &self.cached {
            stats.stored.cache.get_or_insert_with(|| cached.found.clone());
            stats.stored.unwritten = stats.stored.unwritten.take().or_else(|| cached.failure());
        }
        for code in self.code.iter().filter(|code| code.was_called()) {
            stats.functions.called += 1;
            stats.interpreted_bytes += code.ticks_taken();
            stats.functions.interpreted += u64::from(!code.was_compiled());
        }
    }
}

impl Drop for ModuleRecord {
    fn drop(&mut self) {
        self.update_cache();
        self.engine.record().census.remove(self.id, self);
        self.engine.record().engines.dropped(self.id);
    }
}
