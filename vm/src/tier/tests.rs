//! Panics in the compiler, and the compilations of the queue.

use super::requests::Job;
use super::state::{engine_of, state_of};
use crate::records::events::{CompiledBy, TierEventKind};
use crate::records::module::ModuleRecord;
use crate::records::stats::RefusedBy;
use crate::{Config, Engine, Instance, Module, Store, Tier};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use weir_jit::Backend;

/// Panics for functions with certain names, like a faulty compiler.
pub(super) fn fault(module: &ModuleRecord, func: u32, backend: Backend) {
    match module.bytecode.func_name(func) {
        Some("panics") => panic!("a seeded fault"),
        Some("panics natively") if backend == Backend::Native => panic!("a seeded fault"),
        _ => (),
    }
}

/// Calls the functions until nothing is left to compile. Returns results, events and the module.
fn run(config: &mut Config, names: [&str; 2]) -> (Vec<(u32, String)>, Module, Engine) {
    let reported = Arc::new(Mutex::new(Vec::new()));
    let listener = reported.clone();
    config.tier_up_threshold(Some(2)).on_tier_event(move |event| {
        let what = match &event.kind {
            TierEventKind::Panicked { message, .. } => format!("panicked: {message}"),
            TierEventKind::Refused { by, reason, interpreted: true, .. } => format!("interpreted: {by}: {reason}"),
            TierEventKind::Refused { by, reason, interpreted: false, .. } => format!("refused: {by}: {reason}"),
            TierEventKind::Translated { .. } => "translated".to_owned(),
            TierEventKind::Compiled { by, .. } => format!("compiled: {}", *by == CompiledBy::Native),
            TierEventKind::Retired { .. } => "retired".to_owned(),
            TierEventKind::NoNativeCode { reason } => format!("no native code: {reason}"),
        };
        listener.lock().unwrap().push((event.func.unwrap_or(u32::MAX), what));
    });
    let engine = Engine::new(config).unwrap();
    let [first, second] = names;
    let text = format!(
        r#"(module
            (func $a (@name "{first}") (export "a") (result i32) (i32.const 1))
            (func $b (@name "{second}") (export "b") (result i32) (i32.const 2)))"#
    );
    let module = Module::new(&engine, text).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let begun = Instant::now();
    let settled = |what: &str| what.starts_with("compiled") || what.starts_with("interpreted");
    while (0..2).any(|func| !reported.lock().unwrap().iter().any(|(of, what)| *of == func && settled(what))) {
        for (name, result) in [("a", 1), ("b", 2)] {
            let func = instance.get_typed_func::<(), i32>(&mut store, name).unwrap();
            assert_eq!(func.call(&mut store, ()).unwrap(), result);
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{reported:?}");
    }
    // There may be another event of the compilation that settled it.
    engine_of(engine.record()).queue.wait_idle();
    let mut reported = reported.lock().unwrap().clone();
    reported.sort();
    (reported, module, engine)
}

#[test]
fn a_panic_of_the_baseline_compiler_is_reported_and_ends_nothing() {
    let (reported, module, engine) = run(Config::new().tier(Tier::Baseline), ["panics", "works"]);
    assert!(reported.contains(&(0, "panicked: a seeded fault".to_owned())), "{reported:?}");
    let refused = (0, "interpreted: the baseline compiler: the compiler panicked: a seeded fault".to_owned());
    assert!(reported.contains(&refused), "{reported:?}");
    for stats in [module.stats(), engine.stats()] {
        let functions = &stats.functions;
        assert_eq!((stats.compiler_panics, functions.baseline, functions.interpreted), (1, 1, 1), "{functions:?}");
    }
}

#[test]
fn a_panic_of_the_compiler_is_reported_and_ends_nothing() {
    let (mut auto, mut native) = (Config::new(), Config::new());
    auto.baseline(false);
    native.tier(Tier::Native);
    for (mut config, place) in [(auto, "in the background"), (native, "on the thread that runs")] {
        let (reported, module, engine) = run(&mut config, ["panics", "works"]);
        let attempts = if cfg!(feature = "cranelift") { 2 } else { 1 };
        let panicked = reported.iter().filter(|(func, what)| (*func, what.as_str()) == (0, "panicked: a seeded fault")).count();
        assert_eq!(panicked, attempts, "{place}: {reported:?}");
        for by in ["the native back end", "Cranelift"].into_iter().take(attempts) {
            let refused = (0, format!("interpreted: {by}: the compiler panicked: a seeded fault"));
            assert!(reported.contains(&refused), "{place}: {reported:?}");
        }
        assert!(reported.contains(&(1, "compiled: true".to_owned())), "{place}: {reported:?}");
        for stats in [module.stats(), engine.stats()] {
            assert_eq!((stats.compiler_panics, stats.functions.native), (attempts as u64, 1), "{place}");
            let reasons: Vec<_> = stats.functions.fallbacks.iter().map(|fallback| (fallback.func, &*fallback.reason)).collect();
            assert_eq!(reasons, vec![(0, "the compiler panicked: a seeded fault"); attempts], "{place}");
            assert!(stats.compile_ms.iter().any(|(phase, ms)| phase == "refused" && *ms > 0.0), "{:?}", stats.compile_ms);
        }
    }
}

#[test]
#[cfg(feature = "cranelift")]
fn another_back_end_compiles_what_one_panics_over() {
    let mut config = Config::new();
    let (reported, module, _) = run(config.tier(Tier::Native), ["panics natively", "works"]);
    let zero: Vec<&str> = reported.iter().filter(|(func, _)| *func == 0).map(|(_, what)| &**what).collect();
    let refused = "refused: the native back end: the compiler panicked: a seeded fault";
    assert_eq!(zero, ["compiled: false", "panicked: a seeded fault", refused]);
    let stats = module.stats();
    assert_eq!((stats.compiler_panics, stats.functions.native, stats.functions.cranelift), (1, 1, 1));
}

/// A job of the module with this identifier that sends when it begins, and ends when it receives or the other side is gone.
struct Blocking(u64, Sender<()>, Receiver<()>);

impl Job for Blocking {
    fn module(&self) -> u64 {
        self.0
    }

    fn work(&self) -> Option<u64> {
        Some(0)
    }

    fn goes_first(&self) -> bool {
        true
    }

    fn drop_stale(&self) {
        unreachable!("it runs at once");
    }

    fn run(self: Box<Self>) {
        self.1.send(()).expect("the test waits");
        let _ = self.2.recv();
    }
}

/// Loads a module in an engine with this threshold and with one compiler thread. The module itself keeps that busy until the sender is
/// dropped: for another one, a thread beyond the limit would be started.
fn load_busy(threshold: u32, text: &str) -> (Engine, Module, Sender<()>) {
    let engine = Engine::new(Config::new().compiler_threads(1).tier_up_threshold(Some(threshold))).unwrap();
    let module = Module::new(&engine, text).unwrap();
    let ((begin, begun), (end, ended)) = (channel(), channel());
    engine_of(engine.record()).queue.push(1.0, Box::new(Blocking(module.record().id, begin, ended))).unwrap();
    begun.recv().unwrap();
    (engine, module, end)
}

/// Calls the export `f` this many times.
fn call(engine: &Engine, module: &Module, times: usize) {
    let mut store = Store::new(engine, ());
    let instance = Instance::new(&mut store, module, &[]).unwrap();
    let func = instance.get_typed_func::<(), i32>(&mut store, "f").unwrap();
    (0..times).for_each(|_| assert_eq!(func.call(&mut store, ()).unwrap(), 1));
}

#[test]
fn a_waiting_compilation_does_not_keep_its_module() {
    let (engine, module, busy) = load_busy(2, r#"(module (func (export "f") (result i32) (i32.const 1)))"#);
    call(&engine, &module, 20);
    let functions = module.stats().functions;
    assert_eq!((functions.native, functions.baseline), (0, 1), "{functions:?}");
    let record = Arc::downgrade(module.record());
    drop(module);
    assert_eq!(record.strong_count(), 0);
    drop(busy);
    engine_of(engine.record()).queue.wait_idle();
    assert_eq!(engine.stats().functions.native, 0);
}

#[test]
fn a_compilation_that_waits_is_done_when_the_thread_is_free() {
    let (engine, module, busy) = load_busy(2, r#"(module (func (export "f") (result i32) (i32.const 1)))"#);
    call(&engine, &module, 20);
    assert_eq!(module.stats().functions.native, 0);
    drop(busy);
    engine_of(engine.record()).queue.wait_idle();
    assert_eq!(module.stats().functions.native, 1);
    call(&engine, &module, 20);
}

#[test]
fn the_functions_of_a_module_over_its_budget_stay_in_their_tiers() {
    let mut config = Config::new();
    config.synchronous_compilation(true).tier_up_threshold(Some(2));
    let engine = Engine::new(&config).unwrap();
    let load = || Module::new(&engine, r#"(module (func (export "f") (result i32) (i32.const 1)))"#).unwrap();
    let (module, other) = (load(), load());
    state_of(module.record()).steps.store(u64::MAX / 2, Ordering::Relaxed);
    for module in [&module, &other] {
        call(&engine, module, 20);
    }
    let functions = module.stats().functions;
    assert_eq!((functions.native, functions.baseline), (0, 0), "{functions:?}");
    assert!(functions.fallbacks.iter().all(|fallback| fallback.by == RefusedBy::Budget), "{functions:?}");
    assert!(functions.fallbacks[0].reason.starts_with("the compilations of the module exceed the budget of "), "{functions:?}");
    assert_eq!(other.stats().functions.native, 1, "another module has its own budget");
    assert!(state_of(other.record()).steps.load(Ordering::Relaxed) > 0);
}

/// A function of 40 kB of code, and its small neighbour.
#[test]
fn baseline_code_of_a_large_function_comes_from_the_queue() {
    let long = "(drop (i32.add (i32.const 1) (i32.const 2)))".repeat(7000);
    let of_body = |body: &str| format!(r#"(module (func (export "f") (result i32) {body} (i32.const 1)))"#);
    for (text, here) in [(of_body(&long), false), (of_body(""), true)] {
        let (engine, module, busy) = load_busy(100, &text);
        call(&engine, &module, 80);
        assert_eq!(module.stats().functions.baseline, u64::from(here));
        drop(busy);
        engine_of(engine.record()).queue.wait_idle();
        assert_eq!(module.stats().functions.baseline, 1, "{:?}", module.stats().functions);
        call(&engine, &module, 3);
    }
}

/// A suspended stack is walked once for each batch of retired code, and again only while it keeps some of it.
#[cfg(feature = "async")]
#[test]
fn suspended_stacks_are_walked_once_for_each_batch() {
    use super::reclaim::{Reclaimer, enter, resume, suspend};
    use crate::records::quiescence::{Domain, Word};

    let domain = Arc::new(Domain::default());
    let reclaimer = Reclaimer::new(domain.clone());
    let words: Vec<Word> = (0..3).map(|_| Word::new(&domain)).collect();
    for (fiber, word) in words.iter().enumerate() {
        enter(word);
        suspend(word, fiber, (0, 0), true);
    }
    // Code is its address. The last stack returns to 0x10; returns which code was freed, and which stacks were walked.
    let reclaim = || {
        let mut walked = Vec::new();
        let freed = reclaimer.reclaim(
            || true,
            |&code| code..code + 1,
            |stack, visit| {
                walked.push(stack.fiber);
                if stack.fiber == 2 {
                    visit(0x10);
                }
            },
        );
        walked.sort_unstable();
        (freed, walked)
    };
    let retire = |codes: &[usize]| codes.iter().for_each(|&code| reclaimer.retire(|| Some(code)));
    assert_eq!(reclaim(), (vec![], vec![]), "nothing is retired");
    retire(&[0x20, 0x30, 0x40]);
    assert_eq!(reclaim(), (vec![0x20, 0x30, 0x40], vec![0, 1, 2]));
    assert_eq!(reclaim(), (vec![], vec![]));
    retire(&[0x50, 0x10, 0x60]);
    assert_eq!(reclaim(), (vec![0x50, 0x60], vec![0, 1, 2]));
    assert_eq!(reclaim(), (vec![], vec![2]), "what it keeps may be freed after it");
    resume(&words[2], 2);
    super::reclaim::leave(&words[2]);
    assert_eq!(reclaim(), (vec![0x10], vec![]));
    (0..2).for_each(|fiber| resume(&words[fiber], fiber));
}
