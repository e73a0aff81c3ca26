//! The tiers where there is no native code: without feature `jit`, or on a host that has no back end yet.

use super::record::Record;
use super::{Next, evaluated};
use crate::records::instance::InstanceRecord;
use crate::records::module::ModuleRecord;
use crate::records::quiescence::Domain;
use crate::records::stats::Stats;
use crate::records::walk::NativeFrame;
use crate::{Config, Engine, Error, Module, Result, Tier};
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use weir_bytecode::{FuncType, Module as Bytecode};
use weir_contract::{Helper, HelperAddress, InstanceCtx, Status};

/// What the tiers keep per engine.
#[derive(Debug, Default)]
pub(crate) struct EngineState {
    /// What all modules did.
    pub(super) record: Mutex<Record>,
}

impl EngineState {
    /// The state of an engine with these settings.
    ///
    /// # Errors
    /// None: nothing is compiled of which to tell.
    pub fn new(_config: &Config, _quiescence: &Arc<Domain>) -> Result<EngineState> {
        Ok(EngineState::default())
    }
}

/// What the tiers keep per module.
#[derive(Debug, Default)]
pub(crate) struct ModuleState {
    pub(super) record: Mutex<Record>,
    pub(super) evaluated: evaluated::Functions,
}

impl ModuleState {
    /// The state of a module that has just been loaded.
    pub fn new(_engine: &Engine, _bytecode: &Bytecode) -> ModuleState {
        ModuleState::default()
    }
}

/// Whether this build and host can do what the settings ask for.
///
/// # Errors
/// They cannot.
pub(crate) fn check(config: &Config) -> Result<()> {
    match config.tier {
        Tier::Auto | Tier::Interpreter | Tier::Ssa => Ok(()),
        Tier::Native | Tier::Cranelift => Err(Error::msg("this build has no compiler")),
    }
}

/// Ticks of a function before anybody asks about it: none if it is to be profiled or evaluated, else they never run out.
pub(crate) fn first_ticks(engine: &Engine, _bytes: u32) -> i32 {
    if engine.config().profiles() || engine.config().tier == Tier::Ssa { 0 } else { i32::MAX }
}

/// Ticks of a function before it is compiled: they never run out.
pub(crate) fn compile_ticks(_engine: &Engine, _bytes: u32) -> i32 {
    i32::MAX
}

/// The permanent entry stub of function `func`, which is defined in `module`: asked when a reference to it is made. Null
/// where there is no native code at all.
pub(crate) fn entry_stub(_module: &ModuleRecord, _func: u32) -> *const u8 {
    ptr::null()
}

/// Nothing calls them.
pub(crate) fn helpers(_engine: &Engine) -> *const [HelperAddress; Helper::COUNT] {
    ptr::null()
}

/// The entry stub of host functions of type `ty`: asked when one is given to a store.
pub(crate) fn host_stub(_engine: &Engine, _ty: &FuncType) -> *const u8 {
    ptr::null()
}

/// There are no native frames.
///
/// # Safety
/// None.
pub(crate) unsafe fn native_frames(_engine: &Engine, _exit_fp: usize, _visit: &mut dyn FnMut(NativeFrame<'_>)) {}

/// Makes sure that this thread can take a trap: there is nothing to do.
pub(crate) fn prepare_thread(_engine: &Engine) -> Result<()> {
    Ok(())
}

/// What happened in a module.
pub(crate) fn module_stats(module: &Module) -> Stats {
    let mut stats = Stats { validate_ms: module.record().validate_ns as f64 / 1e6, ..Stats::default() };
    module.record().tier.record.lock().unwrap_or_else(PoisonError::into_inner).report(&mut stats);
    stats.functions.total = module.record().code.len() as u64;
    stats
}

/// What happened in all modules of an engine.
pub(crate) fn engine_stats(engine: &Engine) -> Stats {
    let mut stats = Stats::default();
    engine.record().tier.record.lock().unwrap_or_else(PoisonError::into_inner).report(&mut stats);
    stats
}

/// Begins the profile of function `func`, whose ticks ran out, if there is to be one, or its evaluation.
#[cold]
pub(crate) fn ask(instance: &InstanceRecord, func: u32, at: Option<u32>) -> Next {
    let module = instance.module.record();
    if module.engine.config().tier == Tier::Ssa {
        return evaluated::ask(module, func, at);
    }
    let code = module.func_code(func);
    if let Some(body) = module.bytecode.body(func)
        && module.engine.config().profiles()
    {
        code.begin_profile(&module.bytecode, body);
    }
    code.ticks.store(i32::MAX, Ordering::Relaxed);
    Next::Interpret
}

/// Calls code of function `func` of `instance`, which is its SSA; arguments and results are slots at `args`, above which
/// `value_sp` must lie.
///
/// # Safety
/// `code` is the entry of code for that function, and `args` has room for its arguments and its results.
pub(crate) unsafe fn call(instance: *mut InstanceCtx, _func: u32, code: *const u8, args: *mut u64) -> Status {
    // SAFETY: the caller's promise.
    unsafe { evaluated::call(instance, code, args) }
}

/// Continues an interpreter frame at a loop in its OSR body; the function's results are left at `fp`.
///
/// # Safety
/// `code` is an OSR body for function `func` and the loop at which the frame at `fp` stands.
pub(crate) unsafe fn call_osr(_instance: *mut InstanceCtx, _func: u32, _code: *const u8, _fp: *mut u64) -> Status {
    unreachable!("there is no native code")
}
