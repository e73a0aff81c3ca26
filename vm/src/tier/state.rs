//! The data that the tier keeps for each engine and module.

use super::entry::{Entries, Key};
use super::listeners::Listeners;
use super::policy::{self, Policy};
use super::queue::Queue;
use super::reclaim::Reclaimer;
use super::running::Running;
use crate::code::{CodeError, CodeSpace, CounterMemory, Hooks, ModuleCode, RetiredCode, Stubs};
use crate::compilation::options::options;
use crate::compilation::record::Record;
use crate::records::config::Config;
use crate::records::engine::EngineRecord;
use crate::records::error::Result;
use crate::records::module::ModuleRecord;
use crate::records::profile::Memory;
use crate::records::quiescence::Domain;
use crate::sys::barrier;
use crate::sys::lock::{Guard, Lock, Rank};
use std::any::Any;
use std::collections::VecDeque;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Instant;
use weir_contract::profile::CounterCounts;
use weir_contract::{EntryCell, Helper, HelperAddress};
use weir_jit::compile::Options;

/// Makes the table of the runtime functions that compiled code calls.
pub(crate) type HelperTable = fn() -> [HelperAddress; Helper::COUNT];

/// The tier's data for an engine.
#[derive(Debug)]
pub(crate) struct EngineState {
    pub(super) policy: Policy,
    pub(super) options: Options,
    /// The same for code that is prepared to be replaced.
    pub(super) leaving: Options,
    /// The options of baseline code that several stores may run.
    pub(super) striped: Options,
    /// The options of baseline code whose counters are out of its reach.
    pub(super) uncounted: Options,
    pub(super) max_code_size: usize,
    count_crossings: bool,
    hooks: Hooks,
    helpers: HelperTable,
    /// Code memory, made with the first module; an error is the reason why there is no native code.
    space: OnceLock<Result<Arc<CodeSpace>, String>>,
    pub(super) queue: Queue,
    /// Statistics of all modules.
    pub(super) record: Mutex<Record>,
    pub(super) osr_entries: AtomicU64,
    pub(super) resumed: AtomicU64,
    pub(super) osr_exits: AtomicU64,
    pub(super) listeners: Listeners,
    /// All ready code, in the order of the second-chance sweep.
    pub(super) bodies: Mutex<VecDeque<Body>>,
    pub(super) reclaimer: Arc<Reclaimer<RetiredCode>>,
    /// Bytes of code retired since code was last reclaimed.
    pub(super) retired_bytes: AtomicUsize,
}

/// An entry that was ready when it was added. Its code may have been retired since.
#[derive(Debug)]
pub(super) struct Body {
    pub module: Weak<ModuleRecord>,
    pub key: Key,
}

impl EngineState {
    /// Creates the data of an engine with these settings. Its stores register in `quiescence`; `hooks` and `helpers`
    /// are the functions that its code calls.
    ///
    /// # Errors
    /// The profiler's file can't be written.
    pub fn new(config: &Config, quiescence: &Arc<Domain>, hooks: Hooks, helpers: HelperTable) -> Result<EngineState> {
        // Often there are no other threads yet.
        barrier::prepare();
        let threads = if config.parallel_compilation { policy::compiler_threads() } else { 1 };
        Ok(EngineState {
            policy: Policy::new(config),
            options: options(config),
            leaving: Options { leaves: true, ..options(config) },
            striped: Options { striped: true, ..options(config) },
            uncounted: Options { counts: false, striped: true, ..options(config) },
            max_code_size: config.max_code_size,
            count_crossings: config.count_crossings,
            hooks,
            helpers,
            space: OnceLock::new(),
            queue: Queue::new(config.compiler_threads.unwrap_or(threads)),
            record: Mutex::default(),
            osr_entries: AtomicU64::new(0),
            resumed: AtomicU64::new(0),
            osr_exits: AtomicU64::new(0),
            listeners: Listeners::new(config)?,
            bodies: Mutex::default(),
            reclaimer: Arc::new(Reclaimer::new(quiescence.clone())),
            retired_bytes: AtomicUsize::new(0),
        })
    }

    /// Returns the engine's code memory, made at the first call, or the reason why there is none.
    #[inline]
    pub(crate) fn space(&self) -> Result<&Arc<CodeSpace>, &String> {
        let make = || {
            let space =
                CodeSpace::new(self.hooks, &(self.helpers)(), self.options.signals, self.max_code_size, self.count_crossings);
            space.map_err(|error| error.to_string())
        };
        self.space.get_or_init(make).as_ref()
    }

    /// Returns the entry cell of functions that have no thunk: native code of other modules can call them, and gets an error. Null
    /// if there is no native code at all.
    pub(super) fn no_entry(&self) -> *const EntryCell {
        self.space().map_or(ptr::null(), |space| space.no_entry())
    }
}

/// Returns the tier's data of an engine that has this tier.
#[inline]
pub(crate) fn engine_of(engine: &EngineRecord) -> &EngineState {
    let engines: &dyn Any = &*engine.engines;
    engines.downcast_ref().expect("the engine has this tier")
}

/// The tier's data for a module.
#[derive(Debug)]
pub(super) struct ModuleState {
    /// Cells and code, made with the first instance; an error is the reason why there is no native code.
    code: OnceLock<Result<NativeModule, String>>,
    /// Whether its first instance was made.
    pub prepared: AtomicBool,
    /// When functions began to be compiled that earlier processes executed.
    pub began: OnceLock<Instant>,
    /// The compilations whose code is kept.
    pub running: Running,
    /// The number of jobs that hold the module: see [`held`](super::held).
    pub holders: Mutex<usize>,
    /// The steps that its compilations took.
    pub steps: AtomicU64,
    /// Whether the absence of native code was reported as an event.
    pub no_native_reported: AtomicBool,
    entries: Lock<Entries>,
    pub record: Mutex<Record>,
    pub osr_entries: AtomicU64,
    /// Frames that went from native code to the interpreter at a loop.
    pub resumed: AtomicU64,
    /// Frames that left an OSR body at a loop.
    pub osr_exits: AtomicU64,
}

/// A module's cells and code, and the stubs for the types of its functions.
#[derive(Debug)]
pub(super) struct NativeModule {
    pub code: ModuleCode,
    reclaimer: Arc<Reclaimer<RetiredCode>>,
}

impl NativeModule {
    /// Returns the stubs of function `func` of `module`, to which this belongs.
    ///
    /// # Panics
    /// If the function is imported.
    pub fn stubs(&self, module: &ModuleRecord, func: u32) -> &Stubs {
        self.code.stubs_of_type(module.bytecode.funcs[func as usize])
    }
}

impl Drop for NativeModule {
    fn drop(&mut self) {
        for code in self.reclaimer.remove(|code| code.is_of(&self.code)) {
            // SAFETY: no instance of the module is left, so nothing runs in its code or refers to it.
            unsafe { code.free(self.code.space()) };
        }
    }
}

/// Returns the tier's data of a module whose engine has this tier.
#[inline]
pub(super) fn state_of(module: &ModuleRecord) -> &ModuleState {
    module.tier.downcast_ref().expect("the module's engine has this tier")
}

/// Counters that code reaches.
#[derive(Debug)]
struct Reached(CounterMemory);

impl Memory for Reached {
    fn stripe(&self, stripe: usize) -> Option<&[AtomicU32]> {
        self.0.stripe(stripe)
    }

    fn offset(&self) -> Option<u32> {
        Some(self.0.offset())
    }
}

/// Begins the profile of a function, in memory that its code reaches if it can have code. Returns whether there is one now, or the module has
/// no memory left for it.
pub(super) fn begin_profile(module: &ModuleRecord, func: u32, counts: CounterCounts) -> bool {
    let native = state_of(module).native(module).ok();
    let allocate = |count| native?.code.alloc_counters(count).map(Reached);
    module.func_code(func).begin_profile(&module.bytecode.account, counts, allocate)
}

/// Makes cells and code of a module. The outer error is the reason why the engine has no native code.
fn add_module(module: &ModuleRecord) -> Result<Result<NativeModule, CodeError>, String> {
    let engine = engine_of(module.engine.record());
    let space = engine.space().map_err(String::clone)?;
    let code = space.add_module(ptr::from_ref(module).addr(), &module.bytecode, &module.sig_ids);
    Ok(code.map(|code| NativeModule { code, reclaimer: engine.reclaimer.clone() }))
}

impl Default for ModuleState {
    fn default() -> ModuleState {
        ModuleState {
            code: OnceLock::new(),
            prepared: AtomicBool::new(false),
            began: OnceLock::new(),
            running: Running::default(),
            holders: Mutex::new(0),
            steps: AtomicU64::new(0),
            no_native_reported: AtomicBool::new(false),
            entries: Lock::new(Rank::Entries, Entries::default()),
            record: Mutex::default(),
            osr_entries: AtomicU64::new(0),
            resumed: AtomicU64::new(0),
            osr_exits: AtomicU64::new(0),
        }
    }
}

impl ModuleState {
    /// Locks the entries of the module and returns them.
    pub fn entries(&self) -> Guard<'_, Entries> {
        self.entries.lock()
    }

    /// Returns cells and code of the module to which this belongs, made at the first call, or the reason why there are
    /// none.
    #[inline]
    pub fn native(&self, module: &ModuleRecord) -> Result<&NativeModule, &String> {
        self.code.get_or_init(|| self.make_native(module)).as_ref()
    }

    /// Makes cells and code of the module before [`ModuleState::native`] does, if there is room. Without it, the caller can make some.
    ///
    /// # Errors
    /// [`CodeError::Full`]
    pub fn prepare(&self, module: &ModuleRecord) -> Result<(), CodeError> {
        if self.code.get().is_some() {
            return Ok(());
        }
        // One thread at a time: others would make the same, and take room for it.
        let _entries = self.entries();
        if self.code.get().is_some() {
            return Ok(());
        }
        match add_module(module) {
            Ok(Err(error @ CodeError::Full(_))) => return Err(error),
            Ok(Ok(native)) => drop(self.code.set(Ok(native))),
            Ok(Err(_)) | Err(_) => {}
        }
        Ok(())
    }

    #[cold]
    fn make_native(&self, module: &ModuleRecord) -> Result<NativeModule, String> {
        let engine = engine_of(module.engine.record());
        let made = add_module(module).and_then(|made| made.map_err(|error| error.to_string()));
        if let Err(reason) = &made {
            for record in [&self.record, &engine.record] {
                record.lock().unwrap_or_else(PoisonError::into_inner).no_native(reason);
            }
        }
        made
    }

    /// Returns the bytes of the module's code that were freed while the module lived.
    pub fn freed_bytes(&self) -> u64 {
        match self.code.get() {
            Some(Ok(native)) => native.code.freed_bytes(),
            _ => 0,
        }
    }
}
