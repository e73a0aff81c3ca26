//! The slow path of the interpreter's tick counter: when a function's ticks run out, finds or requests its code.

use super::entry::{Action, Code, Key, Level};
use super::held::Held;
use super::install::{Unused, compile_and_install};
use super::policy::{self, Decision, Exit, NEVER};
use super::queue::{COMPILER_STACK, NoThread};
use super::requests::Job;
use super::state::{NativeModule, begin_profile, engine_of, state_of};
use super::{earlier, evict, fill, publish, stored};
use crate::code::{Crossing, Runner};
use crate::records::engines::Next;
use crate::records::module::ModuleRecord;
use crate::records::profile::Counters;
use crate::records::stack::with_room;
use crate::records::stats::{Fallback, RefusedBy};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use weir_contract::Entry;
use weir_contract::profile::CounterCounts;
use weir_jit::Backend;

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
    let body = module.body(func).expect("a function that runs has a validated body");
    let top = Key::top(func, Entry::Call);
    let stored_top = stored::has(module, top) && state.entries().is_cold(top);
    let stored = stored::has(module, top) || stored::has(module, Key::baseline(func));
    if !stored
        && code.counters().is_none()
        && let Some(ticks) = engine.policy.profile_ticks(body.len())
        && begin_profile(module, func, CounterCounts::of(body))
    {
        code.reset_ticks(ticks);
        return Next::Interpret;
    }
    let bytes = body.len();
    evict_under_stress(module);
    let cold = || state.entries().is_cold(top);
    if !stored_top && let Some(left) = engine.policy.until_top(bytes, code.ticks_taken(), cold) {
        // Not hot enough for the optimiser.
        code.reset_ticks(left);
        return leave_interpreter(module, at, begin_baseline(module, func, at, left), Runner::Baseline);
    }
    let (next, ticks) = request_top(module, func, at);
    code.reset_ticks(ticks);
    match next {
        Some(code) => leave_interpreter(module, at, Next::Enter(code.0), Runner::Optimised),
        None if engine.policy.bridges() => {
            leave_interpreter(module, at, begin_baseline(module, func, at, ticks), Runner::Baseline)
        }
        None => Next::Interpret,
    }
}

/// Returns the baseline code of a function, for its call or for the loop with this index, or lets it be interpreted if there is
/// none yet. The code requests better code after `ticks` ticks.
fn begin_baseline(module: &Arc<ModuleRecord>, func: u32, at: Option<u32>, ticks: i32) -> Next {
    let Ok(native) = state_of(module).native(module) else { return Next::Interpret };
    let code = match find(module, Key::baseline(func)) {
        Found::Ready(code) => code,
        Found::Later(again) => {
            // A function that has run in stored code alone is not ready for the interpreter, and then has no ticks.
            if module.bodies.is_ready(&module.bytecode, func) {
                module.func_code(func).reset_ticks(again.min(ticks));
            }
            return Next::Interpret;
        }
    };
    let entry = match at {
        None => Some(code.0),
        Some(index) => native.code.header(code.0, index),
    };
    let Some(entry) = entry else { return Next::Interpret };
    module.func_code(func).arm_baseline(native.code.ticks(func), ticks);
    if at.is_some() {
        count_loop_entry(module);
    }
    Next::Enter(entry)
}

/// Counts an entry of compiled code from a running loop.
fn count_loop_entry(module: &ModuleRecord) {
    for entries in [&state_of(module).osr_entries, &engine_of(module.engine.record()).osr_entries] {
        entries.fetch_add(1, Ordering::Relaxed);
    }
}

/// The ticks of a function's baseline code have run out, at its entry or at the loop with this index. Returns the address at which the
/// code continues, if that is elsewhere. `room` is whether the native stack has room for an activation of the interpreter.
#[cold]
pub(crate) fn tier_up_baseline(module: &Arc<ModuleRecord>, func: u32, at: Option<u32>, room: bool) -> Option<*const u8> {
    let (engine, state) = (engine_of(module.engine.record()), state_of(module));
    let Ok(native) = state.native(module) else { return None };
    let code = module.func_code(func);
    evict_under_stress(module);
    let cold = || state.entries().is_cold(Key::top(func, Entry::Call));
    let bytes = module.body(func).map_or(0, |body| body.len());
    if let Some(left) = engine.policy.not_hot(bytes, code.executed(native.code.ticks(func)), cold) {
        // A stripe that has no ticks yet.
        code.arm_baseline(native.code.ticks(func), left);
        return None;
    }
    let (next, ticks) = request_top(module, func, at);
    code.arm_baseline(native.code.ticks(func), ticks);
    let crossing = if at.is_some() { Crossing::Loop } else { Crossing::Entry };
    if room && engine.policy.stress_resumes() {
        count_crossing(module, crossing, Runner::Baseline, Runner::Interpreter);
        return Some(interpreter(module, native, func, at));
    }
    if next.is_some() {
        count_crossing(module, crossing, Runner::Baseline, Runner::Optimised);
    }
    next.map(|code| code.0)
}

/// Counts that an interpreted frame continues in code of `to` at a loop, if it does.
fn leave_interpreter(module: &ModuleRecord, at: Option<u32>, next: Next, to: Runner) -> Next {
    if let (Some(_), Next::Enter(_)) = (at, &next) {
        count_crossing(module, Crossing::Loop, Runner::Interpreter, to);
    }
    next
}

/// Counts a crossing, if the engine counts them.
fn count_crossing(module: &ModuleRecord, crossing: Crossing, from: Runner, to: Runner) {
    if let Some(crossings) = engine_of(module.engine.record()).space().ok().and_then(|space| space.crossings()) {
        crossings.count(crossing, from, to);
    }
}

/// The ticks of an OSR body have run out at the loop with this index. Returns the address at which its frame continues, if that is elsewhere,
/// and the ticks until this is called again. `room` is as for [`tier_up_baseline`].
///
/// The first body of a loop was compiled with the counts from the loop's beginning. If it has run for long, it is left for code that
/// counts, and the loop is compiled again, to code that is not left. The loops around that of the body are entries of their own.
#[cold]
pub(crate) fn leave_osr(module: &Arc<ModuleRecord>, func: u32, index: u32, room: bool) -> (Option<*const u8>, i64) {
    let (engine, state) = (engine_of(module.engine.record()), state_of(module));
    let (policy, ticks) = (&engine.policy, engine.policy.osr_ticks());
    let Ok(native) = state.native(module) else { return (None, ticks) };
    let Some(body) = module.body(func) else { return (None, ticks) };
    let key = Key::top(func, Entry::Osr(body.loops[index as usize].pc));
    evict_under_stress(module);
    // The code that replaced it would not be made, or it would go on being the code of its loop, to which its frame would return at once.
    let stays = fill::is_late(module, func, key.entry, body.len()) || !evict::retires();
    let exit = {
        let mut entries = state.entries();
        match policy.stress_exit() {
            Some(Exit::NewCode) if entries.get(key).backoffs() >= policy::MAX_STRESS_EVICTIONS => Exit::Code,
            Some(Exit::Profile) if entries.get(key).backoffs() >= policy::MAX_STRESS_EVICTIONS => Exit::Baseline,
            Some(exit) => exit,
            None if stays => Exit::Stay,
            None if entries.expired(key, policy.osr_expiries(body.len())) => Exit::Profile,
            None if entries.get(key).replaced() => Exit::Code,
            None => Exit::Stay,
        }
    };
    if matches!(exit, Exit::NewCode | Exit::Profile) {
        evict::replace(module, key);
        // It may have been retired for the code of calls, which this frame does not run.
        state.entries().end_backoff(Key::baseline(func));
    }
    let interpreted = || room.then(|| (interpreter(module, native, func, Some(index)), Runner::Interpreter));
    let found = match exit {
        Exit::Stay => None,
        Exit::Code | Exit::NewCode => match find(module, key) {
            Found::Ready(code) => {
                count_loop_entry(module);
                Some((code.0, Runner::Optimised))
            }
            Found::Later(_) => None,
        },
        Exit::Profile | Exit::Baseline => match begin_baseline(module, func, Some(index), policy.backoff_ticks(body.len())) {
            Next::Enter(code) => Some((code, Runner::Baseline)),
            Next::Interpret => interpreted(),
        },
        Exit::Interpreter => interpreted(),
    };
    let Some((target, to)) = found else { return (None, ticks) };
    for exits in [&state.osr_exits, &engine.osr_exits] {
        exits.fetch_add(1, Ordering::Relaxed);
    }
    // Under stress, `Code` may be the body that the frame runs in.
    if exit != Exit::Code || !policy.is_stressed() {
        count_crossing(module, Crossing::Loop, Runner::Optimised, to);
    }
    (Some(target), ticks)
}

/// Guards in optimised code of `func` have failed that should hold, the last one by the profile of `counted`, of which it has a copy if
/// it is another function. Returns how many may fail in code of the store until this is called again, for the function with the last of
/// them.
///
/// A function for which this is called several times is profiled and compiled again, once: the calls have other targets now. So is
/// `counted`, which would not count in its optimised code. Both count from 0, while they back off as functions do whose code was retired.
#[cold]
pub(crate) fn missed(module: &Arc<ModuleRecord>, func: u32, counted: u32) -> i64 {
    let (engine, state) = (engine_of(module.engine.record()), state_of(module));
    let misses = engine.policy.misses();
    let bytes = module.body_range(func).len() as u32;
    let expired = || state.entries().expired(Key::top(func, Entry::Call), policy::MISSES_EXPIRIES);
    if !evict::retires() || fill::is_late(module, func, Entry::Call, bytes) || !expired() {
        return misses;
    }
    // The counts of `counted` are new if it was replaced before.
    let counted = Some(counted).filter(|&counted| counted != func && state.entries().expired(Key::top(counted, Entry::Call), 0));
    for func in [Some(func), counted].into_iter().flatten() {
        if let Some(shelf) = &module.shelf {
            shelf.pass_over(func, stored::grade(Level::Top));
        }
        evict::replace(module, Key::top(func, Entry::Call));
        state.entries().end_backoff(Key::baseline(func));
        module.func_code(func).counters().into_iter().for_each(Counters::clear);
    }
    misses
}

/// Returns the stub through which native code continues in the interpreter: at the entry of a function, whose calls it then interprets, or
/// at the loop with this index.
fn interpreter(module: &Arc<ModuleRecord>, native: &NativeModule, func: u32, at: Option<u32>) -> *const u8 {
    if at.is_some() {
        for resumed in [&state_of(module).resumed, &engine_of(module.engine.record()).resumed] {
            resumed.fetch_add(1, Ordering::Relaxed);
        }
        return native.stubs(module, func).resume.as_ptr();
    }
    evict::at_random(module, func, false);
    native.code.thunk(func)
}

/// Finds or requests the best code of a function: for its call and, if the function is at a loop, for the loop, unless
/// [code for calls comes first](fill::prefers_calls). Returns the code in which to continue, and the ticks until the next request.
fn request_top(module: &Arc<ModuleRecord>, func: u32, at: Option<u32>) -> (Option<Code>, i32) {
    let engine = engine_of(module.engine.record());
    let call = find(module, Key::top(func, Entry::Call));
    let pc = |at: u32| module.body(func).map(|body| Entry::Osr(body.loops[at as usize].pc));
    let has_decided = || !state_of(module).entries().is_open(Key::top(func, Entry::Call));
    let at = at.filter(|_| has_decided() || !fill::prefers_calls(module));
    let osr = at.and_then(pc).map(|entry| find(module, Key::top(func, entry)));
    match (osr, call) {
        (None, Found::Ready(ready)) => (Some(ready), engine.policy.next_ticks(Level::Top)),
        (Some(Found::Ready(ready)), _) => {
            count_loop_entry(module);
            (Some(ready), engine.policy.next_ticks(Level::Top))
        }
        (None, Found::Later(ticks)) | (Some(Found::Later(ticks)), Found::Ready(_)) => (None, ticks),
        (Some(Found::Later(ticks)), Found::Later(other)) => (None, ticks.min(other)),
    }
}

/// Under stress, returns a function to the interpreter at random.
fn evict_under_stress(module: &Arc<ModuleRecord>) {
    if let Some((victim, retired)) = engine_of(module.engine.record()).policy.stress_victim(module.code.len()) {
        evict::at_random(module, module.bytecode.imported_funcs + victim as u32, retired);
    }
}

/// Returns the code of an entry. If there is none, the policy decides whether to compile it.
fn find(module: &Arc<ModuleRecord>, key: Key) -> Found {
    let Key { func, entry, level } = key;
    let (engine, state) = (engine_of(module.engine.record()), state_of(module));
    let policy = &engine.policy;
    let bytes = module.body(func).map_or(0, |body| body.len());
    let native = state.native(module);
    let stored = native.is_ok() && stored::has(module, key);
    // It may read a file.
    let is_late = level == Level::Top && fill::is_late(module, func, entry, bytes);
    let mut entries = state.entries();
    match entries.request(key) {
        Action::Run(code) => {
            if let (Entry::Call, Ok(native)) = (entry, native) {
                publish::publish(module, native, key, code);
            }
            return Found::Ready(code);
        }
        Action::Wait => return Found::Later(policy.next_ticks(level)),
        Action::Never => return Found::Later(policy.refused_ticks(level)),
        Action::BackOff => return Found::Later(policy.backoff_ticks(bytes)),
        Action::Decide => (),
    }
    if stored {
        entries.queued(key);
        drop(entries);
        return match earlier::install(module, key) {
            Ok(Some(code)) => Found::Ready(code),
            Ok(None) => Found::Later(policy.backoff_ticks(bytes)),
            Err(Unused) => {
                // The next request is decided as if there were no stored code.
                state.entries().stopped(key);
                Found::Later(policy.next_ticks(level))
            }
        };
    }
    let calls_wait = entries.is_open(Key::top(func, Entry::Call));
    if entry != Entry::Call && entries.osr_bodies(func) >= policy::osr_bodies(bytes, calls_wait) {
        return Found::Later(policy.next_ticks(level));
    }
    let decision = match native {
        Ok(_) if entry == Entry::Call && module.engine.config().interprets(&module.bytecode, func) => Decision::Refuse,
        Ok(_) if module.engine.config().compiles_simply(&module.bytecode, func) => Decision::Compile(Backend::Baseline),
        Ok(_) if level == Level::Baseline => policy.decide_baseline(bytes),
        Ok(_) => policy.decide(entry),
        Err(_) => Decision::Interpret(NEVER),
    };
    match decision {
        Decision::Interpret(ticks) => Found::Later(ticks),
        Decision::Refuse => {
            entries.refused(key, true);
            Found::Later(policy.refused_ticks(level))
        }
        Decision::Compile(backend) => {
            entries.queued(key);
            drop(entries);
            match with_room(COMPILER_STACK, || compile_and_install(module, key, backend, true, &|| false)) {
                Some(Some(code)) => Found::Ready(code),
                Some(None) => Found::Later(policy.backoff_ticks(bytes)),
                None => no_thread(module, key),
            }
        }
        Decision::Queue(_) if is_late => Found::Later(policy.next_ticks(level)),
        Decision::Queue(backend) => {
            entries.queued(key);
            drop(entries);
            let priority = module.hints.priority(&module.bytecode, func);
            let compilation = Compilation {
                module: Arc::downgrade(module),
                id: module.id,
                key,
                backend,
                priority,
                memory: policy::memory(bytes, key.level),
            };
            let queued = engine.queue.push(policy::value(bytes, entry), Box::new(compilation));
            match queued {
                Ok(()) => Found::Later(policy.next_ticks(level)),
                Err(NoThread) => no_thread(module, key),
            }
        }
    }
}

/// A queued compilation. It does not keep its module alive.
struct Compilation {
    module: Weak<ModuleRecord>,
    id: u64,
    key: Key,
    backend: Backend,
    /// See [`Job::priority`].
    priority: u32,
    /// See [`Job::memory`].
    memory: usize,
}

impl Job for Compilation {
    fn module(&self) -> u64 {
        self.id
    }

    fn work(&self) -> Option<u64> {
        let module = self.module.upgrade()?;
        let native = state_of(&module).native(&module).ok()?;
        Some(module.func_code(self.key.func).executed(native.code.ticks(self.key.func)))
    }

    fn goes_first(&self) -> bool {
        self.key.level == Level::Baseline
    }

    fn priority(&self) -> u32 {
        self.priority
    }

    fn memory(&self) -> usize {
        self.memory
    }

    fn drop_stale(&self) {
        if let Some(module) = self.module.upgrade() {
            state_of(&module).entries().dropped(self.key);
        }
    }

    fn run(self: Box<Self>) {
        if let Some(module) = Held::of(&self.module) {
            let state = state_of(&module);
            if let (Level::Baseline, Ok(native)) = (self.key.level, state.native(&module)) {
                let is_cold = state.entries().is_cold(Key::top(self.key.func, Entry::Call));
                publish::arm_baseline(&module, native, self.key.func, is_cold);
            }
            let Key { func, entry, level } = self.key;
            // It may have waited for long.
            let is_late = || level == Level::Top && fill::is_late(&module, func, entry, module.body_range(func).len() as u32);
            if left_its_loop(&module, self.key) {
                return self.drop_stale();
            }
            if is_late() {
                // Later processes may have time for it.
                state.entries().stopped(self.key);
                return fill::again(&module);
            }
            let stops = module.stops();
            compile_and_install(&module, self.key, self.backend, false, &stops);
            if !stops() {
                fill::again(&module);
            }
        }
    }
}

/// Whether a queued entry is a loop in which no frame seems to be any more: none has requested it for [`policy::LEFT`]. New calls of its
/// function do not need it, because they have code.
fn left_its_loop(module: &ModuleRecord, key: Key) -> bool {
    let entries = state_of(module).entries();
    let has_code = || entries.code(Key::top(key.func, Entry::Call)).is_some();
    key.entry != Entry::Call && has_code() && entries.get(key).requested().is_some_and(|last| last.elapsed() > policy::LEFT)
}

/// Backs off for a queued entry that cannot be compiled now, because there is no compiler thread and not enough native
/// stack here.
fn no_thread(module: &Arc<ModuleRecord>, key: Key) -> Found {
    let (engine, state) = (engine_of(module.engine.record()), state_of(module));
    let policy = &engine.policy;
    let mut entries = state.entries();
    let again = entries.get(key).backoffs() > 0;
    entries.no_room(key, 0, |count| policy.backoff(count));
    drop(entries);
    if !again {
        let refusal = Fallback::new(key.func, RefusedBy::Stack, "there is no room to compile the function".into());
        for record in [&state.record, &engine.record] {
            let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
            record.add(module, key.func, key.entry, None, false, std::slice::from_ref(&refusal));
        }
        // SAFETY: there is no code.
        unsafe { engine.listeners.report(module, key.func, key.entry, None, &[refusal]) };
    }
    Found::Later(policy.backoff_ticks(module.body(key.func).map_or(0, |body| body.len())))
}
