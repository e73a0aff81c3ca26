//! The slow path of the interpreter's tick counter: when a function's ticks run out, finds or requests its code.

use super::entry::{Action, Code};
use super::install::compile_and_install;
use super::policy::{self, Decision, NEVER};
use super::queue::{COMPILER_STACK, NoThread};
use super::state::{engine_of, state_of};
use super::{evict, publish};
use crate::records::engines::Next;
use crate::records::module::ModuleRecord;
use crate::records::stack::with_room;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_contract::Entry;

/// The code of an entry, if there is any now.
enum Found {
    /// Code.
    Ready(Code),
    /// No code yet: check again after this many ticks.
    Later(i32),
}

/// See [`Engines::tier_up`](crate::records::engines::Engines::tier_up).
#[cold]
pub(super) fn tier_up(module: &Arc<ModuleRecord>, func: u32, at: Option<u32>) -> Next {
    let (engine, state) = (engine_of(module.engine.record()), state_of(module));
    let code = module.func_code(func);
    let body = module.bytecode.body(func).expect("a function that runs has a validated body");
    if code.counters().is_none()
        && let Some(ticks) = engine.policy.profile_ticks(body.len())
    {
        code.begin_profile(&module.bytecode, body);
        code.reset_ticks(ticks);
        return Next::Interpret;
    }
    let call = find(module, func, Entry::Call);
    if let Some((victim, retired)) = engine.policy.stress_victim(module.code.len()) {
        evict::at_random(module, module.bytecode.imported_funcs + victim as u32, retired);
    }
    let osr = at.map(|at| find(module, func, Entry::Osr(body.loops[at as usize].pc)));
    let (next, ticks) = match (osr, call) {
        (None, Found::Ready(ready)) => (Next::Enter(ready.0), engine.policy.next_ticks()),
        (Some(Found::Ready(ready)), _) => {
            state.osr_entries.fetch_add(1, Ordering::Relaxed);
            engine.osr_entries.fetch_add(1, Ordering::Relaxed);
            (Next::Enter(ready.0), engine.policy.next_ticks())
        }
        (None, Found::Later(ticks)) | (Some(Found::Later(ticks)), Found::Ready(_)) => (Next::Interpret, ticks),
        (Some(Found::Later(ticks)), Found::Later(other)) => (Next::Interpret, ticks.min(other)),
    };
    code.reset_ticks(ticks);
    next
}

/// Returns the code of an entry. If there is none, the policy decides whether to compile it.
fn find(module: &Arc<ModuleRecord>, func: u32, entry: Entry) -> Found {
    let (engine, state) = (engine_of(module.engine.record()), state_of(module));
    let policy = &engine.policy;
    let bytes = module.bytecode.body(func).map_or(0, |body| body.len());
    let native = state.native(module);
    let mut entries = state.entries();
    match entries.request(func, entry) {
        Action::Run(code) => {
            if let (Entry::Call, Ok(native)) = (entry, native) {
                publish::publish(module, native, func, code);
            }
            return Found::Ready(code);
        }
        Action::Wait => return Found::Later(policy.next_ticks()),
        Action::Never => return Found::Later(policy.refused_ticks()),
        Action::BackOff => return Found::Later(policy.backoff_ticks(bytes)),
        Action::Decide => (),
    }
    if entry != Entry::Call && entries.osr_bodies(func) >= policy::osr_bodies(bytes) {
        return Found::Later(policy.next_ticks());
    }
    let decision = match native {
        Ok(_) if entry == Entry::Call && module.engine.config().interprets(&module.bytecode, func) => Decision::Refuse,
        Ok(_) => policy.decide(entry),
        Err(_) => Decision::Interpret(NEVER),
    };
    match decision {
        Decision::Interpret(ticks) => Found::Later(ticks),
        Decision::Refuse => {
            entries.refused(func, entry, true);
            Found::Later(policy.refused_ticks())
        }
        Decision::Compile(backend) => {
            entries.queued(func, entry);
            drop(entries);
            match with_room(COMPILER_STACK, || compile_and_install(module, func, entry, backend, true)) {
                Some(Some(code)) => Found::Ready(code),
                Some(None) => Found::Later(policy.backoff_ticks(bytes)),
                None => no_thread(module, func, entry),
            }
        }
        Decision::Queue(backend) => {
            entries.queued(func, entry);
            drop(entries);
            // A queued compilation does not keep its module alive.
            let weak = Arc::downgrade(module);
            let queued = engine.queue.push(policy::priority(bytes, entry), move || {
                if let Some(module) = weak.upgrade() {
                    compile_and_install(&module, func, entry, backend, false);
                }
            });
            match queued {
                Ok(()) => Found::Later(policy.next_ticks()),
                Err(NoThread) => no_thread(module, func, entry),
            }
        }
    }
}

/// Backs off for a queued entry that cannot be compiled now, because there is no compiler thread and not enough native
/// stack here.
fn no_thread(module: &Arc<ModuleRecord>, func: u32, entry: Entry) -> Found {
    let policy = &engine_of(module.engine.record()).policy;
    state_of(module).entries().no_room(func, entry, 0, |count| policy.backoff(count));
    Found::Later(policy.backoff_ticks(module.bytecode.body(func).map_or(0, |body| body.len())))
}
