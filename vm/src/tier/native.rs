//! The tiers where there is native code: the interface to the interpreter and the runtime.

use super::Next;
pub(crate) use super::compiler::{EngineState, ModuleState};
use super::compiler::{Found, NativeModule};
use super::evaluated;
use super::evict;
pub(crate) use super::unwind::on_unwind;
use crate::records::instance::{InstanceRecord, instance_of};
use crate::records::module::ModuleRecord;
use crate::records::stats::Stats;
use crate::records::walk::NativeFrame;
use crate::{Config, Engine, Error, Module, Result, Tier};
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use weir_bytecode::{FuncBody, FuncType, Module as Bytecode};
use weir_contract::Entry;
use weir_contract::{Helper, HelperAddress, InstanceCtx, Status};

/// Whether this build and host can do what the settings ask for.
///
/// # Errors
/// They cannot.
pub(crate) fn check(config: &Config) -> Result<()> {
    match config.tier {
        Tier::Cranelift if !cfg!(feature = "cranelift") => Err(Error::msg("this build of Weir does not have Cranelift")),
        Tier::Auto | Tier::Interpreter | Tier::Native | Tier::Cranelift | Tier::Ssa => Ok(()),
    }
}

/// Ticks of a function with `bytes` of code before the policy is asked about it.
pub(crate) fn first_ticks(engine: &Engine, bytes: u32) -> i32 {
    engine.record().tier.policy.first_ticks(bytes)
}

/// Ticks of a function with `bytes` of code before it is compiled.
pub(crate) fn compile_ticks(engine: &Engine, bytes: u32) -> i32 {
    engine.record().tier.policy.ticks(bytes)
}

impl ModuleState {
    /// The state of a module that has just been loaded.
    pub fn new(_engine: &Engine, _bytecode: &Bytecode) -> ModuleState {
        ModuleState::default()
    }
}

/// The permanent entry stub of function `func`, which is defined in `module`: asked when a reference to it is made. Null
/// where there is no native code at all.
pub(crate) fn entry_stub(module: &ModuleRecord, func: u32) -> *const u8 {
    module.tier.native(module).map_or(ptr::null(), |native| native.code.entry(func))
}

/// The entry stub of host functions of type `ty`: asked when one is given to a store.
pub(crate) fn host_stub(engine: &Engine, ty: &FuncType) -> *const u8 {
    let stubs = engine.record().tier.space().and_then(|space| space.stubs(ty).ok());
    stubs.map_or(ptr::null(), |stubs| stubs.host.as_ptr())
}

/// What [`InstanceCtx::helpers`] of the engine's instances points to.
pub(crate) fn helpers(engine: &Engine) -> *const [HelperAddress; Helper::COUNT] {
    engine.record().tier.space().map_or(ptr::null(), |space| space.helpers())
}

/// The `reenter` stub that dispatches to function `func` of `module`, or with `osr` to an OSR body of it.
pub(crate) fn reenter_stub(module: &ModuleRecord, func: u32, osr: bool) -> *const u8 {
    let native = native_of(module);
    if osr { native.code.space().reenter_osr() } else { native.stubs[type_of(module, func)].reenter.as_ptr() }
}

/// Asks the policy, because the ticks of function `func` ran out: at a call of it (`at` is `None`), or at the `loop` opcode of
/// its loop `at`. Resets the ticks. May compile, synchronously or by queueing.
#[cold]
pub(crate) fn ask(instance: &InstanceRecord, func: u32, at: Option<u32>) -> Next {
    let module = instance.module.record();
    if module.engine.config().tier == Tier::Ssa {
        return evaluated::ask(module, func, at);
    }
    let tier = &module.engine.record().tier;
    let code = module.func_code(func);
    let body = module.bytecode.body(func).expect("who runs has a body that is validated");
    if code.counters().is_none()
        && let Some(ticks) = tier.policy.profile_ticks(body.len())
    {
        code.begin_profile(&module.bytecode, body);
        code.ticks.store(ticks, Ordering::Relaxed);
        return Next::Interpret;
    }
    let call = ModuleState::find(module, func, Entry::Call);
    if let Some((victim, retired)) = tier.policy.demotes(module.code.len()) {
        evict::at_random(module, module.bytecode.imported_funcs + victim as u32, retired);
    }
    let Some(at) = at else {
        return match call {
            Found::Ready(ready) => {
                code.ticks.store(tier.policy.next_ticks(), Ordering::Relaxed);
                Next::Enter(ready.0)
            }
            Found::Later(ticks) => {
                code.ticks.store(ticks, Ordering::Relaxed);
                Next::Interpret
            }
        };
    };
    let pc = body.loops[at as usize].pc;
    match ModuleState::find(module, func, Entry::Osr(pc)) {
        Found::Ready(ready) => {
            code.ticks.store(tier.policy.next_ticks(), Ordering::Relaxed);
            module.tier.osr_entries.fetch_add(1, Ordering::Relaxed);
            tier.osr_entries.fetch_add(1, Ordering::Relaxed);
            Next::Enter(ready.0)
        }
        Found::Later(ticks) => {
            let ticks = match call {
                Found::Ready(_) => ticks,
                Found::Later(other) => ticks.min(other),
            };
            code.ticks.store(ticks, Ordering::Relaxed);
            Next::Interpret
        }
    }
}

/// Calls code of function `func` of `instance`, if it is native through an `enter` stub; arguments and results are slots at `args`,
/// above which `value_sp` must lie.
///
/// # Safety
/// `code` is the entry of code for that function, and `args` has room for its arguments and its results.
#[inline]
pub(crate) unsafe fn call(instance: *mut InstanceCtx, func: u32, code: *const u8, args: *mut u64) -> Status {
    // SAFETY: the caller's promise; the stub is that of the function's type. Where no code is native, it is SSA.
    unsafe {
        let module = instance_of(instance).module.record();
        match module.tier.native(module) {
            Some(native) => (native.stubs[type_of(module, func)].enter)(code, args, instance, (*instance).stack),
            None => evaluated::call(instance, code, args),
        }
    }
}

/// Continues an interpreter frame at a loop in its OSR body; the function's results are left at `fp`.
///
/// # Safety
/// `code` is an OSR body for function `func` and the loop at which the frame at `fp` stands.
pub(crate) unsafe fn call_osr(instance: *mut InstanceCtx, func: u32, code: *const u8, fp: *mut u64) -> Status {
    // SAFETY: as for `call`.
    unsafe {
        let module = instance_of(instance).module.record();
        let stubs = &native_of(module).stubs[type_of(module, func)];
        (stubs.enter_osr)(code, fp, instance, (*instance).stack)
    }
}

/// Calls `visit` with the native frames of a segment whose stub has the frame pointer `exit_fp`, innermost first.
///
/// # Safety
/// As for [`walk`](crate::records::walk::walk): there is such a segment on this thread's stack.
pub(crate) unsafe fn native_frames(engine: &Engine, exit_fp: usize, visit: &mut dyn FnMut(NativeFrame<'_>)) {
    let Some(space) = engine.record().tier.space() else { return };
    // SAFETY: the caller's promise; modules live while their code is on a stack.
    unsafe {
        space.frames(exit_fp, |site| {
            let module = Module::from_running(site.module as *const ModuleRecord);
            visit(NativeFrame { module: &module, func: site.func, pc: site.pc });
        });
    }
}

/// Makes sure that this thread can take a trap: asked when Rust enters the guest from outside.
///
/// # Errors
/// The system refuses an alternate signal stack.
#[inline]
pub(crate) fn prepare_thread(engine: &Engine) -> Result<()> {
    match engine.record().tier.space() {
        Some(space) => space.prepare_thread().map_err(refused),
        None => Ok(()),
    }
}

#[cold]
fn refused(error: std::io::Error) -> Error {
    Error::new(error)
}

/// What happened in a module.
pub(crate) fn module_stats(module: &Module) -> Stats {
    let record: &Arc<ModuleRecord> = module.record();
    let mut stats = Stats { validate_ms: record.validate_ns as f64 / 1e6, ..Stats::default() };
    record.tier.record.lock().unwrap_or_else(PoisonError::into_inner).report(&mut stats);
    stats.osr_entries = record.tier.osr_entries.load(Ordering::Relaxed);
    stats.functions.total = record.code.len() as u64;
    stats.freed_bytes = record.tier.freed_bytes(record);
    let policy = &record.engine.record().tier.policy;
    for (i, (code, body)) in record.code.iter().zip(&record.bytecode.bodies).enumerate() {
        let func = record.bytecode.imported_funcs + i as u32;
        let asked = record.tier.was_asked(func);
        let first_ticks = |body: &FuncBody| policy.first_ticks(body.len());
        let left = code.ticks.load(Ordering::Relaxed);
        let ticked = policy.is_fixed() && body.get().is_some_and(|body| left != first_ticks(body));
        let called = asked || ticked || code.counters().is_some();
        stats.functions.called += u64::from(called);
        stats.functions.interpreted += u64::from(called && code.native.load(Ordering::Relaxed).is_null());
    }
    stats
}

/// What happened in all modules of an engine.
pub(crate) fn engine_stats(engine: &Engine) -> Stats {
    let tier = &engine.record().tier;
    let mut stats = Stats::default();
    tier.record.lock().unwrap_or_else(PoisonError::into_inner).report(&mut stats);
    stats.osr_entries = tier.osr_entries.load(Ordering::Relaxed);
    stats.freed_bytes = tier.space().map_or(0, |space| space.freed_bytes());
    stats
}

fn native_of(module: &ModuleRecord) -> &NativeModule {
    module.tier.native(module).expect("who has native code has its module's stubs")
}

fn type_of(module: &ModuleRecord, func: u32) -> usize {
    module.bytecode.funcs[func as usize] as usize
}
