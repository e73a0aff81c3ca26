//! The tier that evaluates SSA. A function is translated at its first call to SSA, optimised as for a back end, and
//! [`weir_jit::ir::eval()`] executes it.
//!
//! The address of a function's [`Translation`] is stored in the pointer that other tiers use for native code, with
//! [`call`] as the function that enters it. So this tier adds no cost to the others. Functions that cannot be
//! translated are interpreted.
//!
//! Each call by the guest is a recursive call of the evaluator, limited by the native stack; a chain of tail calls is a
//! loop. Nothing is kept on the value stack: arguments are read before anything runs, and results are written last.

mod world;

use crate::compilation::options::options;
use crate::compilation::record::Record;
use crate::compilation::request::{Counts, request};
use crate::interp::{self, Exit};
use crate::records::config::Config;
use crate::records::engines::{Engines, Next};
use crate::records::events::TierEventKind;
use crate::records::failure::Failure;
use crate::records::func_code::Enter;
use crate::records::instance::{Owner, instance_of, owner_of};
use crate::records::module::ModuleRecord;
use crate::records::stack::{native_overflow, read_slot, with_room, write_slot};
use crate::records::stats::{Fallback, RefusedBy, Stats};
use crate::records::store::store_of;
use crate::records::walk::{EvaluatorActivation, Position, record_position};
use bumpalo::Bump;
use std::any::Any;
use std::cell::Cell;
use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weir_bytecode::Trap;
use weir_contract::{FuncRef, InstanceCtx, StackCtx, Status, slot_words};
use weir_jit::Options;
use weir_jit::compile::{CompileStats, translate};
use weir_jit::ir::{Entry, EvalError, Func, Outcome, eval};
use weir_jit::{Backend, Refusal};
use world::Guest;

/// The translations of a module's functions, by index; `None` if a function cannot be translated.
#[derive(Debug, Default)]
struct Functions(Mutex<HashMap<u32, Option<Box<Translation>>>>);

/// A function as SSA.
#[derive(Debug)]
struct Translation {
    /// Allocated in the arena, and dropped before it.
    func: Func<'static>,
    _arena: Arena,
}

// SAFETY: once it is made nothing is allocated in its arena, so nothing in it changes.
unsafe impl Send for Translation {}
// SAFETY: as above.
unsafe impl Sync for Translation {}

/// Owns an arena that other values refer to.
#[derive(Debug)]
struct Arena(*mut Bump);

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: it came from a box, and all references into it are gone.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// Native stack for translating one function. The guest's own thread may have less left.
const TRANSLATOR_STACK: usize = 1 << 20;

/// The tier.
#[derive(Debug)]
pub(super) struct Evaluator {
    options: Options,
    /// The statistics of all modules.
    record: Mutex<Record>,
}

/// The state that the tier keeps per module.
#[derive(Debug, Default)]
struct ModuleState {
    functions: Functions,
    record: Mutex<Record>,
}

fn state_of(module: &ModuleRecord) -> &ModuleState {
    module.tier.downcast_ref().expect("this engine made it")
}

impl Evaluator {
    /// Creates the tier for an engine with these settings.
    pub fn new(config: &Config) -> Evaluator {
        Evaluator { options: options(config), record: Mutex::default() }
    }

    /// Returns the translation of function `func`; makes it at the first call.
    fn translation(&self, module: &Arc<ModuleRecord>, func: u32) -> Option<*const u8> {
        let mut made = None;
        let mut functions = state_of(module).functions.0.lock().unwrap_or_else(PoisonError::into_inner);
        let translation = functions.entry(func).or_insert_with(|| {
            let no_room = || Fallback::new(func, RefusedBy::Stack, "there is no room to translate the function".into());
            let translated = with_room(TRANSLATOR_STACK, || self.translate(module, func)).unwrap_or_else(|| Err(no_room()));
            let (translation, result) = match translated {
                Ok((translation, stats)) => (Some(translation), Ok(stats)),
                Err(refusal) => (None, Err(refusal)),
            };
            made = Some(result);
            translation
        });
        let address = translation.as_ref().map(|translation| ptr::from_ref(&**translation).cast());
        // The callback may call into this module's statistics.
        drop(functions);
        if let Some(made) = made {
            self.report_translation(module, func, &made);
        }
        address
    }

    /// Translates a function.
    fn translate(&self, module: &ModuleRecord, func: u32) -> Result<(Box<Translation>, CompileStats), Fallback> {
        let counts = Counts::new(module, func, Entry::Call);
        // The request needs a back end, but none is run.
        let request = request(module, func, Entry::Call, Backend::Native, Some(&counts), &self.options);
        let mut stats = CompileStats::default();
        let arena = Arena(Box::into_raw(Box::default()));
        // SAFETY: the arena lives until it is dropped, which is after the function.
        let translated: Result<Func<'static>, Refusal> = translate(unsafe { &*arena.0 }, &mut Bump::new(), &request, &mut stats);
        match translated {
            Ok(translated) => Ok((Box::new(Translation { func: translated, _arena: arena }), stats)),
            Err(refusal) => Err(Fallback::new(func, RefusedBy::Construction, refusal.to_string())),
        }
    }

    /// Reports a translation, or its refusal, to the statistics and to the embedder.
    fn report_translation(&self, module: &Arc<ModuleRecord>, func: u32, made: &Result<CompileStats, Fallback>) {
        for record in [&state_of(module).record, &self.record] {
            record.lock().unwrap_or_else(PoisonError::into_inner).add_evaluated(made.as_ref());
        }
        let Some(callback) = &module.engine.config().tier_events else { return };
        let kind = match made {
            Ok(stats) => TierEventKind::Translated {
                time: Duration::from_nanos(stats.phases.iter().map(|&(_, nanoseconds)| nanoseconds).sum()),
            },
            Err(Fallback { by, reason, .. }) => TierEventKind::Refused { by: *by, reason, interpreted: true },
        };
        callback.call(module.clone(), Some(func), None, kind);
    }
}

impl Engines for Evaluator {
    fn module_state(&self) -> Box<dyn Any + Send + Sync> {
        Box::new(ModuleState::default())
    }

    fn first_ticks(&self, _bytes: u32) -> i32 {
        0
    }

    /// Interprets functions that cannot be translated. A function whose ticks run out at a loop stays in the
    /// interpreter.
    #[cold]
    unsafe fn tier_up(&self, instance: *mut InstanceCtx, func: u32, at: Option<u32>) -> Next {
        // SAFETY: the caller's promise.
        let module = unsafe { instance_of(instance) }.module.record();
        let code = module.func_code(func);
        // The function will never be translated.
        code.reset_ticks(i32::MAX);
        if at.is_some() || module.engine.config().interprets(&module.bytecode, func) {
            return Next::Interpret;
        }
        let Some(address) = self.translation(module, func) else { return Next::Interpret };
        // Without native code there are no cells, and nothing is withdrawn: this is the only write.
        code.set_enter(call);
        code.native.store(address.cast_mut(), Ordering::Release);
        Next::Enter(address)
    }

    unsafe fn enter_osr(&self, _instance: *mut InstanceCtx, _func: u32) -> Enter {
        unreachable!("no loop has code of its own")
    }

    fn report(&self, module: Option<&(dyn Any + Send + Sync)>, stats: &mut Stats) {
        let record = match module {
            Some(state) => &state.downcast_ref::<ModuleState>().expect("this engine made it").record,
            None => &self.record,
        };
        record.lock().unwrap_or_else(PoisonError::into_inner).report(stats);
    }
}

/// Calls a function of `instance` whose translation is at `code`. Arguments and results are slots at `args`; nothing
/// above is in use.
///
/// # Safety
/// The promise of [`interp::run`], and that `code` is such a translation.
#[cold]
unsafe extern "C" fn call(mut code: *const u8, args: *mut u64, mut instance: *mut InstanceCtx, stack: *mut StackCtx) -> Status {
    // SAFETY: the caller's promise. A tail call leaves its arguments in the slots of the function's own. In this tier a
    // dispatch always leads to a translation, for a call.
    unsafe {
        let value_sp = (*stack).value_sp;
        (*stack).value_sp = args;
        let status = loop {
            let next = match evaluate(instance, &(*code.cast::<Translation>()).func, args) {
                Ok(None) => break Status::Return,
                Ok(Some(next)) => next,
                Err(failure) => {
                    (*store_of(instance)).failure = Some(failure);
                    break Status::Trap;
                }
            };
            let FuncRef { instance: callee, index, .. } = *next;
            if let Owner::Host(host) = owner_of(callee) {
                break host.call(args);
            }
            match interp::run(callee, index, args) {
                Exit::Return => break Status::Return,
                Exit::Trap => break Status::Trap,
                Exit::Dispatch { instance: of, code: next, .. } => (instance, code) = (of, next),
            }
        };
        (*stack).value_sp = value_sp;
        status
    }
}

/// Evaluates a function once. Returns `None` after writing its results at `args`, or the function that it tail-calls
/// after writing the arguments there.
unsafe fn evaluate(instance: *mut InstanceCtx, func: &Func<'_>, args: *mut u64) -> Result<Option<*const FuncRef>, Failure> {
    // SAFETY: the caller's promise: the instance's guest runs, and there is room at `args` for the arguments and results
    // of any function.
    unsafe {
        let record = instance_of(instance);
        let bytecode = record.module.bytecode();
        let scope = &raw const record.scope;
        let body = (*scope).bodies.add((func.index - (*scope).imported_funcs) as usize);
        let at = |pc: u32| Position { pc: (*scope).bytes.add(pc as usize), sp: args, fp: ptr::null_mut(), body, scope };
        let start = bytecode.bodies[(func.index - bytecode.imported_funcs) as usize].start();
        let position = Cell::new(at(start));
        let stack = (*instance).stack;
        let activation = EvaluatorActivation::new(stack);
        activation.activation.link(stack);
        record_position(stack, position.as_ptr());
        let outcome = evaluate_at(instance, func, args, &position);
        // The values are gone.
        activation.set_roots(&[], &[]);
        let outcome = outcome.map_err(|Stopped { why, pc }| {
            let mut failure = match why {
                // A trap of the function itself; the trap of a callee has a backtrace.
                Failure::Trap { trap, frames: None, .. } => Failure::trap_at(trap, record, pc),
                other => other,
            };
            position.set(at(pc));
            failure.capture(store_of(instance));
            failure
        });
        activation.activation.unlink(stack);
        outcome
    }
}

/// The reason why an evaluation stopped, and the instruction.
struct Stopped {
    why: Failure,
    pc: u32,
}

/// Evaluates the function within an activation whose recorded position is `position`.
unsafe fn evaluate_at(
    instance: *mut InstanceCtx,
    func: &Func<'_>,
    args: *mut u64,
    position: &Cell<Position>,
) -> Result<Option<*const FuncRef>, Stopped> {
    // SAFETY: the caller's promise.
    unsafe {
        let failed = |why: Failure, pc: u32| Stopped { why, pc };
        let bytecode = instance_of(instance).module.bytecode();
        let ty = bytecode.func_type(func.index);
        if native_overflow((*instance).stack) {
            let start = bytecode.bodies[(func.index - bytecode.imported_funcs) as usize].start();
            return Err(failed(Trap::StackOverflow.into(), start));
        }
        let words = slot_words(&ty.params);
        let params: Vec<u128> = (0..ty.params.len()).map(|i| read_slot(args.add(i * words), words)).collect();
        let mut guest = Guest::new(instance, position);
        let (slots, words, next) = match eval(func, &mut guest, &params, u64::MAX) {
            Ok(Outcome::Return(results)) => (results, slot_words(&ty.results), None),
            Ok(Outcome::TailCall { callee, args, pc }) => {
                let next = guest.find(callee).map_err(|trap| failed(trap.into(), pc))?;
                (args, slot_words(&guest.callee_type(callee).params), Some(next))
            }
            Err(EvalError::Failed { why, pc }) => return Err(failed(why, pc)),
            Err(EvalError::Steps) => unreachable!("2⁶⁴ steps take centuries"),
        };
        for (i, &slot) in slots.iter().enumerate() {
            write_slot(args.add(i * words), words, slot);
        }
        Ok(next)
    }
}
