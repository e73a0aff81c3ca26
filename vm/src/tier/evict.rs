//! Eviction: a second-chance sweep that chooses code to retire when the engine's budget is used up.
//!
//! Three kinds of tables lead to code: its function's cell for native callers, `FuncCode::native` for the interpreter,
//! and the module's entries for the policy. [`retire`] removes the code from all three while it holds the lock of the
//! entries, without which none of them is written; [`super::reclaim`] frees its memory once no store can run in it.
//! There is one more reference to code: a function that calls itself directly does so by a relative call. A recursion
//! may therefore continue in retired code for any time, but no other call reaches it.
//!
//! Code is retired for one of six reasons: the budget is used up and the sweep found the code not in use; it is an OSR
//! body whose function now has code for its calls; it is the first OSR body of a loop that has run for long; guards of its function
//! often fail; it is baseline code whose function now has optimised code; or the engine is under stress and chose it at random.

use super::entry::{Code, Entries, Key, Level, Swept as State};
use super::policy;
use super::publish::withdraw;
use super::state::{Body, EngineState, engine_of, state_of};
use crate::code::{CodeError, RetiredCode};
use crate::records::module::ModuleRecord;
use crate::records::quiescence::Suspended;
use crate::sys::barrier;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use weir_contract::Entry;

/// Removes the code of a ready entry from all tables. Returns the number of bytes that will be freed.
fn retire(module: &Arc<ModuleRecord>, entries: &mut Entries, key: Key, code: Code) -> usize {
    let engine = engine_of(module.engine.record());
    let Ok(native) = state_of(module).native(module) else { return 0 };
    let bytes = native.code.len_of(code.0);
    engine.retired_bytes.fetch_add(bytes, Ordering::Relaxed);
    engine.reclaimer.retire(|| {
        // Baseline code may have been replaced.
        if is_published(module, key, code) {
            withdraw(module, native, key.func);
        }
        entries.retired(key, |count| engine.policy.backoff(count));
        native.code.unlink(code.0)
    });
    bytes
}

/// The heavy side of the asymmetric fence of [`super::reclaim`]. Returns whether all threads have passed it; false if
/// the system has no membarrier(2).
fn heavy_fence() -> bool {
    #[cfg(test)]
    if tests::REFUSED.get() {
        return false;
    }
    barrier::all_threads()
}

/// Whether code is retired. Without a heavy fence none is, because it could not be reclaimed.
pub(super) fn retires() -> bool {
    #[cfg(test)]
    if tests::REFUSED.get() {
        return false;
    }
    barrier::works()
}

/// Frees the retired code that no store can run in or return to. Returns the bytes that other code can have.
fn reclaim(engine: &EngineState) -> usize {
    let Ok(space) = engine.space() else { return 0 };
    engine.retired_bytes.store(0, Ordering::Relaxed);
    // SAFETY: the reclaimer holds the lock without which the stack is not resumed.
    let walk = |stack: &Suspended, visit: &mut dyn FnMut(usize)| unsafe {
        space.return_addresses(stack.boundary, stack.exit_fp, visit);
    };
    let free = engine.reclaimer.reclaim(heavy_fence, RetiredCode::range, walk);
    // SAFETY: the theorem of `super::reclaim`; nothing else refers to code.
    free.into_iter().map(|code| unsafe { code.reclaim(space) }).sum()
}

/// Reports retired code to statistics and listeners. The caller holds no lock.
fn report(module: &Arc<ModuleRecord>, key: Key, bytes: usize) {
    let engine = engine_of(module.engine.record());
    for record in [&state_of(module).record, &engine.record] {
        record.lock().unwrap_or_else(PoisonError::into_inner).add_retired(bytes as u64);
    }
    engine.listeners.report_retired(module, key.func, key.entry, bytes);
}

/// Adds an entry to the order of the sweep. Before that grows, those of modules are removed that are gone: each would keep the memory of its
/// module's record.
fn add(bodies: &mut VecDeque<Body>, body: Body) {
    let room = bodies.capacity();
    if bodies.len() == room {
        bodies.retain(|body| body.module.strong_count() > 0);
        // Otherwise nearly each entry might find it full.
        if bodies.len() > room / 2 {
            bodies.reserve(room);
        }
    }
    bodies.push_back(body);
}

/// Adds an entry that has become ready to the second-chance sweep. If it is the best code for the function's calls, its
/// baseline code is retired, and so are OSR bodies of the function that were used since the last sweep: new calls do
/// not need them. Without the heavy fence they could not be reclaimed, and stay. If much has been retired, it is
/// reclaimed.
pub(super) fn ready(module: &Arc<ModuleRecord>, key: Key) {
    let body = Body { module: Arc::downgrade(module), key };
    let engine = engine_of(module.engine.record());
    add(&mut engine.bodies.lock().unwrap_or_else(PoisonError::into_inner), body);
    if key == Key::top(key.func, Entry::Call) && retires() {
        retire_all(module, key.func, |key, used| key.level == Level::Baseline || key.entry != Entry::Call && used);
    }
    if engine.retired_bytes.load(Ordering::Relaxed) >= policy::reclaim_bytes(engine.max_code_size) {
        reclaim(engine);
    }
}

/// Adds entries to the sweep. Baseline code of `replaced` functions is retired, which another instance of the module has got meanwhile.
pub(super) fn ready_all(module: &Arc<ModuleRecord>, keys: impl Iterator<Item = Key>, replaced: &[u32]) {
    let mut bodies = engine_of(module.engine.record()).bodies.lock().unwrap_or_else(PoisonError::into_inner);
    keys.for_each(|key| add(&mut bodies, Body { module: Arc::downgrade(module), key }));
    drop(bodies);
    if retires() {
        replaced.iter().for_each(|&func| retire_all(module, func, |key, _| key.level == Level::Baseline));
    }
}

/// Retires the code of an entry, if it has some, because the function will be compiled again for it. Without the heavy
/// fence the code stays.
pub(super) fn replace(module: &Arc<ModuleRecord>, key: Key) {
    if retires() {
        retire_all(module, key.func, |other, _| other == key);
    }
}

/// Whether calls of the function lead to this code.
fn is_published(module: &ModuleRecord, key: Key, code: Code) -> bool {
    key.entry == Entry::Call && module.func_code(key.func).native.load(Ordering::Relaxed).cast_const() == code.0
}

/// Retires the code of those entries of `func` for which `which` returns true, given the entry and whether it was used
/// since the last sweep.
fn retire_all(module: &Arc<ModuleRecord>, func: u32, which: impl Fn(Key, bool) -> bool) {
    let mut entries = state_of(module).entries();
    let none = entries.osr_bodies(func) == 0 && entries.code(Key::baseline(func)).is_none();
    if none && !which(Key::top(func, Entry::Call), true) {
        return;
    }
    let chosen = entries.ready(func).into_iter().filter(|&(key, _, used)| which(key, used));
    let retired: Vec<(Key, usize)> = chosen.map(|(key, code, _)| (key, retire(module, &mut entries, key, code))).collect();
    drop(entries);
    retired.into_iter().for_each(|(key, bytes)| report(module, key, bytes));
}

/// Tries to free `bytes` of code memory: reclaims retired code and, if that is not enough, retires code that was not
/// used since the sweep last reached it. Returns whether anything was freed.
pub(super) fn make_room(engine: &EngineState, bytes: usize) -> bool {
    let freed = reclaim(engine);
    // Code that is retired but not reclaimed yet will be freed later.
    let mut missing = bytes.saturating_sub(freed + engine.reclaimer.sum(RetiredCode::room));
    // Code retired without the heavy fence is never reclaimed: functions would lose their code and nothing would be
    // freed.
    if missing > 0 && !retires() {
        return freed > 0;
    }
    let mut to_sweep = policy::SWEEP_FACTOR * bytes;
    let bodies = || engine.bodies.lock().unwrap_or_else(PoisonError::into_inner);
    let count = bodies().len();
    for _ in 0..count {
        if missing == 0 || to_sweep == 0 {
            break;
        }
        let Some(body) = bodies().pop_front() else { break };
        let Some(owner) = body.module.upgrade() else { continue };
        match sweep(&owner, body.key) {
            Swept::Gone => {}
            Swept::Used(bytes) => {
                to_sweep = to_sweep.saturating_sub(bytes);
                bodies().push_back(body);
            }
            Swept::Retired(bytes) => {
                missing = missing.saturating_sub(bytes);
                report(&owner, body.key, bytes);
            }
        }
    }
    freed + reclaim(engine) > 0
}

/// Calls `make`, which places stubs in code memory, until there is room for them: code gives way as for other code. That may take several
/// calls, because code that was used has a second chance, and what is freed may not be in one piece.
///
/// # Errors
/// Those of `make`; [`CodeError::Full`] if nothing more gives way.
pub(super) fn with_room<R>(engine: &EngineState, make: impl Fn() -> Result<R, CodeError>) -> Result<R, CodeError> {
    let (mut failures, mut chances) = (0, 2);
    loop {
        let made = make();
        let Err(CodeError::Full(bytes)) = made else { return made };
        chances = if make_room(engine, policy::wanted(bytes, failures)) { 2 } else { chances - 1 };
        failures += 1;
        if chances == 0 || failures == MAX_FAILURES {
            return made;
        }
    }
}

/// After as many failures, a thousand times as much has been wanted as is needed.
const MAX_FAILURES: u32 = 16;

/// The result of sweeping an entry, with the number of bytes of its code.
enum Swept {
    /// The entry has no code, or code that makes no room when it is freed.
    Gone,
    /// The code was used since the last sweep and gets a second chance.
    Used(usize),
    /// The code was not used, and is retired.
    Retired(usize),
}

/// One step of the second-chance sweep. The reference bit of a called function is its pointer to the code: the sweep
/// clears it, and the next call sets it again.
fn sweep(module: &Arc<ModuleRecord>, key: Key) -> Swept {
    let Ok(native) = state_of(module).native(module) else { return Swept::Gone };
    let mut entries = state_of(module).entries();
    if entries.code(key).is_some_and(|code| native.code.keeps_room_of(code.0)) {
        return Swept::Gone;
    }
    let published = entries.code(key).is_some_and(|code| is_published(module, key, code));
    match entries.swept(key, (key.entry == Entry::Call).then_some(published)) {
        State::Gone => Swept::Gone,
        State::Used(code) => {
            if published {
                withdraw(module, native, key.func);
            }
            Swept::Used(native.code.len_of(code.0))
        }
        State::Unused(code) => Swept::Retired(retire(module, &mut entries, key, code)),
    }
}

/// Under stress: makes calls of function `func` enter the interpreter. With `retired` it also retires its code and its
/// OSR bodies, lets refused entries be compiled again, and reclaims.
pub(super) fn at_random(module: &Arc<ModuleRecord>, func: u32, retired: bool) {
    let state = state_of(module);
    let Ok(native) = state.native(module) else { return };
    // A function that is not ready has no ticks, so that its first call makes it ready.
    let is_ready = module.bodies.is_ready(&module.bytecode, func);
    let entries = state.entries();
    if !retired || entries.get(Key::top(func, Entry::Call)).backoffs() >= policy::MAX_STRESS_EVICTIONS {
        withdraw(module, native, func);
        if is_ready {
            module.func_code(func).reset_ticks(engine_of(module.engine.record()).policy.next_ticks(Level::Baseline));
        }
        return;
    }
    drop(entries);
    retire_all(module, func, |_, _| true);
    let engine = engine_of(module.engine.record());
    state.entries().retry_refused(func, |count| engine.policy.backoff(count));
    reclaim(engine);
}

#[cfg(test)]
mod tests {
    use crate::{Config, Engine, Instance, Module, Store, Tier};
    use std::sync::atomic::Ordering;

    thread_local! {
        /// Whether the heavy fence fails on this thread, as on a system without membarrier(2).
        pub static REFUSED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    }

    /// Functions of a hundred bytes of code, with a budget that a fifth of them fill.
    const FUNCTIONS: i32 = 60;
    const BUDGET: usize = 4 << 10;

    /// Calls all functions in turn, three times. Returns bytes retired and freed while the module lived, and the number
    /// of functions that were compiled.
    fn run(engine: &Engine) -> [u64; 3] {
        let functions: String = (0..FUNCTIONS)
            .map(|i| {
                let work: String =
                    (1..8).map(|k| format!("(local.set 0 (i32.mul (local.get 0) (i32.const {})))", 2 * k + i)).collect();
                format!("(func (export \"{i}\") (param i32) (result i32) {work} (local.get 0))")
            })
            .collect();
        let module = Module::new(engine, format!("(module {functions})")).unwrap();
        let mut store = Store::new(engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        for round in 0..3 {
            for i in 0..FUNCTIONS {
                let func = instance.get_typed_func::<i32, i32>(&mut store, &i.to_string()).unwrap();
                for x in 0..64 {
                    let expected = (1..8).fold(x, |x: i32, k| x.wrapping_mul(2 * k + i));
                    assert_eq!(func.call(&mut store, x).unwrap(), expected, "function {i} in round {round}");
                }
            }
        }
        let stats = module.stats();
        [stats.retired_bytes, stats.freed_bytes, stats.functions.native]
    }

    #[test]
    fn a_function_gets_no_ticks_before_it_is_ready() {
        let engine = Engine::new(Config::new().lazy_validation(true)).unwrap();
        let module = Module::new(&engine, "(module (func (export \"f\") (result i32) (i32.const 7)))").unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        // Another thread's call has found no ticks, and makes the function ready next.
        module.record().func_code(0).ticks.store(-1, Ordering::Relaxed);
        super::at_random(module.record(), 0, false);
        let func = instance.get_typed_func::<(), i32>(&mut store, "f").unwrap();
        assert_eq!(func.call(&mut store, ()).unwrap(), 7);
    }

    #[test]
    fn without_membarrier_eviction_retires_nothing() {
        let engine = || {
            let mut config = Config::new();
            config.tier(Tier::Native).synchronous_compilation(true).max_code_size(BUDGET);
            Engine::new(&config).unwrap()
        };
        let [retired, freed, native] = run(&engine());
        assert!(retired > 0 && freed > 0, "with it: {retired} {freed} {native}");

        REFUSED.set(true);
        let refused = engine();
        let [retired, freed, fewer] = run(&refused);
        REFUSED.set(false);
        assert_eq!([retired, freed], [0, 0], "functions that have code keep it");
        assert!(fewer < native, "the budget is used up: {fewer} of {native}");
        assert_eq!(refused.stats().freed_bytes, 0);
        // The first module is gone, and its code with it.
        assert!(run(&refused)[2] >= fewer);
    }
}
