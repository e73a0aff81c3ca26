//! Compiles an entry, places its code in memory and publishes it.

use super::entry::{Code, Key, Level};
use super::running::Compiling;
use super::state::{NativeModule, begin_profile, engine_of, state_of};
use super::{evict, policy};
use super::{publish, stored};
use crate::code::{CodeError, Unplaced, Window};
use crate::compilation::request::{Counts, back_ends, request};
use crate::records::module::ModuleRecord;
use crate::records::profile::Counters;
use crate::records::stats::{Fallback, RefusedBy};
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use std::{ptr, slice};
use weir_contract::Entry;
use weir_contract::code::RelocTarget;
use weir_contract::profile::CounterCounts;
use weir_contract::unplaced::UnplacedCode;
use weir_jit::compile::{Context, Options};
use weir_jit::meter::Ended;
use weir_jit::{Backend, Compiled, Packed, Refusal};

/// Stored code is not used.
#[derive(Debug)]
pub(super) struct Unused;

/// The result of compiling.
#[derive(Default)]
struct Attempt<'m> {
    /// The counts for the compilation, unless baseline code was requested.
    counts: Option<Counts<'m>>,
    /// The code, if a back end succeeded.
    compiled: Option<Compiled>,
    /// The refusals, in the order in which the back ends were tried.
    refusals: Vec<Fallback>,
    /// Messages of panics in the compiler. They are also among the refusals.
    panics: Vec<String>,
    /// Time spent in attempts that failed.
    refused: Duration,
    /// Whether it was stopped.
    stopped: bool,
}

/// Compiles a queued entry and publishes its code. `wanted` says whether a thread waits for the code. Returns `None` if
/// every back end refused, there is no room, or `stop` returned true. A panic in the compiler counts as a refusal.
pub(super) fn compile_and_install(
    module: &Arc<ModuleRecord>,
    key: Key,
    backend: Backend,
    wanted: bool,
    stop: &dyn Fn() -> bool,
) -> Option<Code> {
    let Key { func, entry, .. } = key;
    let (engine, state) = (engine_of(module.engine.record()), state_of(module));
    let policy = &engine.policy;
    let (mut options, mut counters) = (&engine.options, None);
    if backend == Backend::Baseline && (options.counts || options.ticks) {
        if options.counts {
            // Without a profile the code does not count.
            let _ = begin_profile(module, func, CounterCounts::of(module.body(func)?));
            counters = module.func_code(func).counters().and_then(Counters::offset);
        }
        let several = module.engine.record().stripes.are_several();
        options = match (options.counts && counters.is_none(), policy.stripes(several)) {
            (true, _) => &engine.uncounted,
            (false, true) => &engine.striped,
            (false, false) => options,
        };
    }
    if key.level == Level::Top && policy.leaves(entry, !state.entries().get(key).replaced()) {
        options = &engine.leaving;
    }
    let is_kept = entry == Entry::Call && module.shelf.as_ref().is_some_and(|shelf| shelf.keeps());
    let end = || policy::end_of(module.body_range(func).len() as u32, key.level, Instant::now());
    let running = is_kept.then(|| state.running.begin(key, end()));
    let mut attempt = compile(module, key, back_ends(backend), options, stop);
    if attempt.stopped {
        // Later processes will compile it. A listener may have kept the module, and request it again.
        state.entries().stopped(key);
        running.into_iter().for_each(Compiling::cut_off);
        return None;
    }
    // Other modules may have a thread while code is packed and installed, which counts no steps. It is too late to stop.
    let _ = stop();
    let packed = attempt.compiled.take().zip(module.body(func)).map(|(compiled, body)| compiled.pack(body));
    let _ = stop();
    let keeps = !ptr::eq(options, &engine.uncounted);
    install(module, key, attempt, packed, counters, (wanted, keeps))
}

/// Places code of an earlier process in memory and publishes it. A thread waits for it. Returns `None` if there is no room for the code.
///
/// # Errors
/// There is none for its counters: it is as if there were no stored code from now on.
pub(super) fn install_stored(module: &Arc<ModuleRecord>, key: Key, code: UnplacedCode<'_>) -> Result<Option<Code>, Unused> {
    let counters = counters_of(module, key, &code).ok_or(Unused)?;
    let (engine, state) = (engine_of(module.engine.record()), state_of(module));
    let Ok(native) = state.native(module) else { return Ok(None) };
    let (backend, len) = (code.backend, code.code.len());
    let failures = state.entries().get(key).failures();
    let unplaced = || vec![Unplaced { func: key.func, entry: key.entry, counters, code: code.clone() }];
    let Ok(code) = place(module, native, &unplaced, len, failures) else {
        state.entries().no_room(key, failures + 1, |count| engine.policy.backoff(count));
        return Ok(None);
    };
    // SAFETY: the code is installed, the module lives, and only ready code can be retired.
    unsafe { engine.listeners.report_stored(module, key.func, backend, slice::from_raw_parts(code.0, len)) };
    ready(module, native, key, code, true);
    Ok(Some(code))
}

/// Code of an earlier process that is in memory, and not published yet.
pub(super) struct Placed {
    key: Key,
    backend: Backend,
    code: Code,
    len: usize,
}

/// Places code of an earlier process in memory, for all of these entries, which are queued and whose functions have no other code. The code is in
/// `window` if there is room. Entries that have none wait for no code; those without room for their counters are as if there were no stored code.
pub(super) fn place_all(
    module: &Arc<ModuleRecord>,
    all: Vec<(Key, UnplacedCode<'_>)>,
    window: Option<&mut Window>,
) -> Vec<Placed> {
    let state = state_of(module);
    let (mut what, mut unplaced) = (Vec::with_capacity(all.len()), Vec::with_capacity(all.len()));
    for (key, code) in all {
        match counters_of(module, key, &code) {
            Some(counters) => {
                what.push((key, code.backend, code.code.len()));
                unplaced.push(Unplaced { func: key.func, entry: key.entry, counters, code });
            }
            None => state.entries().stopped(key),
        }
    }
    let Some(placed) = state.native(module).ok().and_then(|native| native.code.install(unplaced, window).ok()) else {
        drop_all(module, what.iter().map(|(key, ..)| *key));
        return Vec::new();
    };
    let placed = what.into_iter().zip(placed);
    placed.map(|((key, backend, len), address)| Placed { key, backend, code: Code(address), len }).collect()
}

/// Publishes code that no thread waits for. Returns the entries that have code now. Code in an `unsealed` window cannot be executed: its entries wait
/// for no code.
///
/// The lock on the entries is released after each `AT_ONCE` functions, for other instances of the module.
pub(super) fn publish_all(module: &Arc<ModuleRecord>, mut all: Vec<Placed>, unsealed: Option<&Window>) -> Vec<Key> {
    const AT_ONCE: usize = 64;
    let (engine, state) = (engine_of(module.engine.record()), state_of(module));
    let Ok(native) = state.native(module) else { return Vec::new() };
    if let Some(window) = unsealed {
        drop_all(module, all.extract_if(.., |placed| window.has(placed.code.0)).map(|placed| placed.key));
    }
    // Another instance may have got other code of these functions meanwhile.
    let (mut installed, mut replaced) = (Vec::with_capacity(all.len()), Vec::new());
    let mut entries = state.entries();
    for (i, Placed { key, backend, code, len }) in all.into_iter().enumerate() {
        if i % AT_ONCE == AT_ONCE - 1 {
            drop(entries);
            entries = state.entries();
        }
        if key.level == Level::Baseline && entries.code(Key::top(key.func, key.entry)).is_some() {
            entries.dropped(key);
            continue;
        }
        if key.level == Level::Top && entries.code(Key::baseline(key.func)).is_some() {
            replaced.push(key.func);
        }
        // SAFETY: the code is installed, the module lives, and only ready code can be retired.
        engine.listeners.report_stored(module, key.func, backend, unsafe { slice::from_raw_parts(code.0, len) });
        if key.level == Level::Baseline {
            publish::arm_baseline(module, native, key.func, true);
        }
        publish::installed(module, native, &mut entries, (key, code), false);
        installed.push(key);
    }
    drop(entries);
    evict::ready_all(module, installed.iter().copied(), &replaced);
    installed
}

/// Entries wait for no code any more.
fn drop_all(module: &ModuleRecord, keys: impl Iterator<Item = Key>) {
    let mut entries = state_of(module).entries();
    keys.for_each(|key| entries.dropped(key));
}

/// Returns where the counters are of an entry with this stored code, if that counts. `None` if there is no room for them or they are out of its
/// reach: then the code is not used, and the function is compiled without counts.
fn counters_of(module: &ModuleRecord, Key { func, level, .. }: Key, code: &UnplacedCode<'_>) -> Option<Option<u32>> {
    if !code.relocs.iter().any(|reloc| matches!(reloc.target, RelocTarget::Counters(_))) {
        return Some(None);
    }
    let _ = begin_profile(module, func, code.counters);
    let offset = module.func_code(func).counters().and_then(Counters::offset);
    if let (None, Some(shelf)) = (offset, &module.shelf) {
        shelf.pass_over(func, stored::grade(level));
    }
    offset.map(Some)
}

/// Publishes the code of an entry.
fn ready(module: &Arc<ModuleRecord>, native: &NativeModule, key: Key, code: Code, wanted: bool) {
    let mut entries = state_of(module).entries();
    publish::installed(module, native, &mut entries, (key, code), wanted);
    drop(entries);
    evict::ready(module, key);
}

/// Places the code of an attempt, which has been taken from it and packed, in memory and publishes it, and reports the attempt. `wanted` is as for
/// [`compile_and_install`]; `keeps` is whether the code may be kept for later processes, for which it need not fit here.
fn install(
    module: &Arc<ModuleRecord>,
    key: Key,
    attempt: Attempt<'_>,
    packed: Option<Packed>,
    counters: Option<u32>,
    (wanted, keeps): (bool, bool),
) -> Option<Code> {
    let Key { func, entry, .. } = key;
    let (engine, state) = (engine_of(module.engine.record()), state_of(module));
    let policy = &engine.policy;
    let native = state.native(module).ok()?;
    let slot = state.entries().get(key);
    let Attempt { counts, mut refusals, panics, refused, compiled: _, stopped: _ } = attempt;
    // An entry that does not fit is reported only the first time.
    let again = slot.backoffs() > 0;
    let mut full = false;
    let installed = packed.and_then(|mut packed| {
        let unplaced = || {
            let code =
                UnplacedCode::read(&packed.bytes, &module.bytecode).expect("the compiler's tables are within code and module");
            vec![Unplaced { func, entry, counters, code }]
        };
        let placed = place(module, native, &unplaced, packed.code_len, slot.failures());
        // After that: what runs now goes first where memory is short.
        let bytes = std::mem::take(&mut packed.bytes);
        if keeps {
            stored::keep(module, key, packed.backend, bytes);
        }
        match placed {
            Ok(code) => Some((code, packed)),
            Err(error) => {
                full = true;
                refusals.push(Fallback::new(func, RefusedBy::CodeMemory, error.to_string()));
                None
            }
        }
    });
    if let (Some(kept), Some(_), Level::Top) = (&module.kept_profile, &installed, key.level) {
        kept.compiled(func, entry, counts.map_or_else(Default::default, Counts::used));
    }
    if !(again && full) {
        // Names are read now, if they have not been: not while the engine's record is locked.
        let _ = module.bytecode.func_name(func);
        for record in [&state.record, &engine.record] {
            let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
            record.add(module, func, entry, installed.as_ref().map(|(_, packed)| packed), again, &refusals);
            record.add_panics(panics.len());
            if !refusals.is_empty() {
                record.add_refused(refused);
            }
        }
        panics.iter().for_each(|message| engine.listeners.report_panic(module, func, entry, message));
        // SAFETY: the code is installed, the module lives, and only ready code can be retired.
        unsafe {
            engine.listeners.report(module, func, entry, installed.as_ref().map(|(code, packed)| (*code, packed)), &refusals);
        }
    }
    let code = installed.map(|(code, _)| code);
    match code {
        None if full => state.entries().no_room(key, slot.failures() + 1, |count| policy.backoff(count)),
        None => state.entries().refused(key, false),
        Some(code) => ready(module, native, key, code, wanted),
    }
    code
}

/// Places `len` bytes of code in memory, evicting other code if necessary. `failures` is the number of times in a row that it did not fit.
fn place<'b>(
    module: &Arc<ModuleRecord>,
    native: &NativeModule,
    unplaced: &dyn Fn() -> Vec<Unplaced<'b>>,
    len: usize,
    failures: u32,
) -> Result<Code, CodeError> {
    let mut placed = native.code.install(unplaced(), None);
    if matches!(placed, Err(CodeError::Full(_) | CodeError::Cells))
        && evict::make_room(engine_of(module.engine.record()), policy::wanted(len, failures))
    {
        placed = native.code.install(unplaced(), None);
    }
    Ok(Code(placed?[0]))
}

/// Compiles an entry without counts, with the first of these back ends that does not refuse it. Also returns the refusals.
pub(super) fn attempt(module: &ModuleRecord, key: Key, back_ends: &[Backend]) -> (Option<Compiled>, Vec<Fallback>) {
    let engine = engine_of(module.engine.record());
    // Any number of stores may run baseline code.
    let options = if key.level == Level::Baseline { &engine.striped } else { &engine.options };
    let Attempt { compiled, refusals, .. } = compile(module, key, back_ends, options, &|| false);
    (compiled, refusals)
}

/// Compiles an entry with the first of these back ends that does not refuse it, until `stop` returns true.
fn compile<'m>(
    module: &'m ModuleRecord,
    key: Key,
    back_ends: &[Backend],
    options: &Options,
    stop: &dyn Fn() -> bool,
) -> Attempt<'m> {
    let Key { func, entry, .. } = key;
    let (state, bytes) = (state_of(module), module.body_range(func).len() as u32);
    thread_local! {
        static CONTEXT: RefCell<Context> = RefCell::default();
    }
    // Baseline code depends on no counts.
    let counts = (key.level != Level::Baseline).then(|| Counts::new(module, func, entry));
    let mut attempt = Attempt { counts, ..Attempt::default() };
    let limit = policy::module_steps(module.bytecode.bytes.len());
    if state.steps.load(Ordering::Relaxed) > limit {
        let reason = format!("the compilations of the module exceed the budget of {limit} steps");
        attempt.refusals.push(Fallback::new(func, RefusedBy::Budget, reason));
        return attempt;
    }
    let Some(body) = module.body(func) else {
        // The function runs in stored code, and its bytes are unreadable.
        attempt.refusals.push(Fallback::new(func, refused_by(None), "the function's body cannot be read".to_owned()));
        return attempt;
    };
    for (tried, &backend) in back_ends.iter().enumerate() {
        if backend == Backend::Cranelift && tried > 0 && !policy::is_for_cranelift(body) {
            let reason = "another back end refuses the function, and Cranelift would take too long".to_owned();
            attempt.refusals.push(Fallback::new(func, RefusedBy::Cranelift, reason));
            break;
        }
        let request = request(module, func, entry, backend, attempt.counts.as_ref(), options);
        let started = Instant::now();
        // A panic in the compiler must end neither the host nor a compiler thread. The compiler's state is discarded.
        let result = catch_unwind(AssertUnwindSafe(|| {
            #[cfg(test)]
            super::tests::fault(module, func, backend);
            CONTEXT.with_borrow_mut(|context| {
                let compiled = weir_jit::compile::compile_until(context, &request, stop);
                state.steps.fetch_add(context.steps(), Ordering::Relaxed);
                compiled
            })
        }));
        match result {
            Ok(Ok(compiled)) => {
                attempt.compiled = Some(compiled);
                break;
            }
            Ok(Err(Refusal::Ended(Ended::Stopped))) => {
                attempt.stopped = true;
                break;
            }
            Ok(Err(refusal)) => {
                let backend = refusal.backend();
                let by = match refusal {
                    Refusal::Ended(_) => RefusedBy::Budget,
                    _ => refused_by(backend),
                };
                attempt.refusals.push(Fallback::new(func, by, refusal.to_string()));
                if backend.is_none() {
                    attempt.refused += started.elapsed();
                    break;
                }
            }
            Err(payload) => {
                CONTEXT.set(Context::default());
                // It may have taken all that a compilation may take.
                state.steps.fetch_add(weir_jit::meter::budget(bytes), Ordering::Relaxed);
                let message = message_of(&*payload);
                let reason = format!("the compiler panicked: {message}");
                attempt.refusals.push(Fallback::new(func, refused_by(Some(backend)), reason));
                attempt.panics.push(message);
            }
        }
        attempt.refused += started.elapsed();
    }
    attempt
}

/// Converts the back end of a refusal. Construction is of no back end.
fn refused_by(backend: Option<Backend>) -> RefusedBy {
    match backend {
        None => RefusedBy::Construction,
        Some(Backend::Native) => RefusedBy::NativeBackEnd,
        Some(Backend::Cranelift) => RefusedBy::Cranelift,
        Some(Backend::Baseline) => RefusedBy::Baseline,
    }
}

/// Returns the message of a panic.
fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
