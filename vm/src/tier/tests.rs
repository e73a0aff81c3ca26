//! Panics in the compiler.

use crate::records::events::{CompiledBy, TierEventKind};
use crate::records::module::ModuleRecord;
use crate::{Config, Engine, Instance, Module, Store, Tier};
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
