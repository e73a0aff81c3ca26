//! Events of the tiers.

use crate::common;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use weir::{CompiledBy, Config, Instance, Module, Store, Tier, TierEvent, TierEventKind};

const TEXT: &str = r#"(module
    (func $sum (export "sum") (param i64) (result i64) (local i64)
        (loop
            (local.set 1 (i64.add (local.get 1) (local.get 0)))
            (br_if 0 (i64.ne (local.tee 0 (i64.sub (local.get 0) (i64.const 1))) (i64.const 0))))
        (local.get 1))
    (func (export "unnamed") (result i64) (call $sum (i64.const 9))))"#;

/// The events of running both functions.
fn events(config: &mut Config) -> Vec<(String, bool, usize)> {
    let reported = Arc::new(Mutex::new(Vec::new()));
    // Retired bytes, and the other events.
    let others = Arc::new(Mutex::new((0, Vec::new())));
    let (listener, other) = (reported.clone(), others.clone());
    config.synchronous_compilation(true);
    let listen = move |event: &TierEvent<'_>| {
        let at_loop = event.osr.is_none_or(|pc| event.module.bytecode().bytes[pc as usize] == 0x03);
        match &event.kind {
            TierEventKind::Compiled { by, code, .. } if at_loop => {
                listener.lock().unwrap().push((event.name(), *by == CompiledBy::Native, code.len()));
            }
            TierEventKind::Retired { bytes, .. } if at_loop => other.lock().unwrap().0 += *bytes as u64,
            _ => other.lock().unwrap().1.push(format!("{} {:?}", event.name(), event.kind)),
        }
    };
    let engine = common::engine_with_events(config, listen).unwrap();
    let module = Module::new(&engine, TEXT).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let sum = instance.get_typed_func::<i64, i64>(&mut store, "sum").unwrap();
    assert_eq!(sum.call(&mut store, 1000).unwrap(), 500_500);
    let unnamed = instance.get_typed_func::<(), i64>(&mut store, "unnamed").unwrap();
    assert_eq!(unnamed.call(&mut store, ()).unwrap(), 45);
    let stats = module.stats();
    // Each is a compilation or its end, of a loop only where there is one.
    assert_eq!(*others.lock().unwrap(), (stats.retired_bytes, Vec::new()));
    let code: usize = reported.lock().unwrap().iter().map(|&(.., len)| len).sum();
    assert_eq!(code as u64, stats.code_bytes);
    let reported = reported.lock().unwrap();
    reported.clone()
}

#[test]
fn every_compilation_is_reported() {
    let names =
        |reported: Vec<(String, bool, usize)>| reported.into_iter().map(|(name, native, _)| (name, native)).collect::<Vec<_>>();
    assert_eq!(names(events(Config::new().tier(Tier::Native))), [("sum".into(), true), ("function 1".into(), true)]);
    if common::is_built(Tier::Cranelift) {
        let reported = names(events(Config::new().tier(Tier::Cranelift)));
        assert_eq!(reported, [("sum".into(), false), ("function 1".into(), false)]);
    }
    assert_eq!(events(Config::new().tier(Tier::Interpreter)), []);
    let tiering = names(events(Config::new().tier_up_threshold(Some(100))));
    assert!(tiering.iter().any(|(name, native)| name.starts_with("sum loop 0x") && *native), "{tiering:?}");
}

#[test]
fn a_panic_in_the_callback_is_caught() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let mut config = Config::new();
    config.tier(Tier::Native);
    let panicking = move |_: &TierEvent<'_>| {
        counted.fetch_add(1, Ordering::Relaxed);
        panic!("this message is expected");
    };
    let engine = common::engine_with_panicking_events(&config, panicking).unwrap();
    let module = Module::new(&engine, TEXT).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let sum = instance.get_typed_func::<i64, i64>(&mut store, "sum").unwrap();
    assert_eq!(sum.call(&mut store, 10).unwrap(), 55);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[test]
fn code_beyond_the_budget_takes_the_place_of_other_code() {
    let functions: String = (0..200).map(|i| format!("(func (export \"{i}\") (result i32) (i32.const {i}))")).collect();
    let run = |budget: usize| {
        let mut config = Config::new();
        let engine = common::engine(config.tier(Tier::Native).max_code_size(budget)).unwrap();
        let call_all = || {
            let module = Module::new(&engine, format!("(module {functions})")).unwrap();
            let mut store = Store::new(&engine, ());
            let instance = Instance::new(&mut store, &module, &[]).unwrap();
            for i in 0..200 {
                let func = instance.get_typed_func::<(), i32>(&mut store, &i.to_string()).unwrap();
                assert_eq!(func.call(&mut store, ()).unwrap(), i);
            }
            let stats = module.stats();
            assert!(stats.functions.fallbacks.iter().all(|fallback| fallback.reason.contains("code memory is full")));
            // All retired code is freed, except the code that the last call without room retired, because its own store
            // was in the guest.
            assert!(stats.retired_bytes - stats.freed_bytes <= 64, "{} of {}", stats.freed_bytes, stats.retired_bytes);
            // The code that is not freed is within the budget.
            assert!(stats.code_bytes - stats.freed_bytes <= budget as u64);
            (stats.functions.native, stats.functions.interpreted, stats.functions.fallbacks.len() as u64, stats.retired)
        };
        let first = call_all();
        assert_eq!(call_all(), first, "a module gives its code back");
        first
    };
    assert_eq!(run(usize::MAX), (200, 0, 0, 0));
    let (native, interpreted, refused, retired) = run(12 << 10);
    // Each function is called once, so the functions called last have code in the end.
    assert!(native > 100 && native + refused == 200, "{native} compiled, {refused} without room");
    assert!(retired > 10 && interpreted == refused, "{retired} gave way, {interpreted} are interpreted");
}

#[test]
fn a_module_without_code_memory_is_reported_once_with_the_reason() {
    let reported = Arc::new(Mutex::new(Vec::new()));
    let listener = reported.clone();
    let mut config = Config::new();
    config.max_code_size(0).synchronous_compilation(true).tier_up_threshold(Some(1));
    let listen = move |event: &TierEvent<'_>| {
        let what = match &event.kind {
            TierEventKind::NoNativeCode { reason, .. } => (*reason).to_owned(),
            _ => format!("{event:?}"),
        };
        listener.lock().unwrap().push((event.name(), event.func, what));
    };
    let expected = |reason: &str| vec![("the module".to_owned(), None, reason.to_owned())];
    // Not even the stubs have room. Where code is asked for, that is an error.
    for tier in [Tier::Native, Tier::Cranelift, Tier::Baseline].into_iter().filter(|&tier| common::is_built(tier)) {
        let engine = common::engine_with_events(config.tier(tier), listen.clone()).unwrap();
        let module = Module::new(&engine, TEXT).unwrap();
        for _ in 0..2 {
            let error = Instance::new(&mut Store::new(&engine, ()), &module, &[]).unwrap_err();
            assert!(error.to_string().contains("code memory is full"), "{error}");
        }
        let reason = module.stats().no_native_code.unwrap();
        assert_eq!(std::mem::take(&mut *reported.lock().unwrap()), expected(&reason), "{tier:?}");
    }
    // If the settings allow interpreting everything, that happens.
    let engine = common::engine_with_events(config.tier(Tier::Auto), listen.clone()).unwrap();
    let module = Module::new(&engine, TEXT).unwrap();
    for _ in 0..2 {
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let sum = instance.get_typed_func::<i64, i64>(&mut store, "sum").unwrap();
        assert_eq!(sum.call(&mut store, 10).unwrap(), 55);
    }
    for stats in [module.stats(), engine.stats()] {
        let reason = stats.no_native_code.unwrap();
        assert!(reason.contains("code memory is full"), "{reason}");
        assert_eq!((stats.functions.called, stats.functions.interpreted, stats.functions.native), (1, 1, 0));
        assert_eq!(*reported.lock().unwrap(), expected(&reason));
    }
    // There is none to miss where none is asked for.
    for tier in [Tier::Interpreter, Tier::Ssa] {
        let engine = common::engine_with_events(config.tier(tier), listen.clone()).unwrap();
        let module = Module::new(&engine, TEXT).unwrap();
        Instance::new(&mut Store::new(&engine, ()), &module, &[]).unwrap();
        assert_eq!(module.stats().no_native_code, None);
    }
    assert_eq!(reported.lock().unwrap().len(), 1);
}

#[test]
fn a_function_counts_for_each_compiler_that_compiled_it() {
    let engine = common::engine(Config::new().synchronous_compilation(true).tier_up_threshold(Some(100))).unwrap();
    let module = Module::new(&engine, TEXT).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let sum = instance.get_typed_func::<i64, i64>(&mut store, "sum").unwrap();
    // Half of the ticks make the baseline compiler compile it, and all of them the native back end.
    let numbers = |calls: i32, stats: weir::Stats| {
        let functions = stats.functions;
        assert_eq!(stats.bytecode_bytes_compiled, u64::from(module.bytecode().body(0).unwrap().len()), "after {calls} calls");
        [functions.called, functions.interpreted, functions.baseline, functions.native, functions.cranelift]
    };
    let mut seen = Vec::new();
    for calls in 1..=200 {
        sum.call(&mut store, 1).unwrap();
        let stats = module.stats();
        if stats.functions.interpreted == 0 {
            assert_eq!(numbers(calls, stats), numbers(calls, engine.stats()));
            seen.push(numbers(calls, module.stats()));
        }
    }
    seen.dedup();
    assert_eq!(seen, [[1, 0, 1, 0, 0], [1, 0, 1, 1, 0]]);
}

#[test]
fn the_stats_of_an_engine_are_the_sums_over_its_modules_dropped_ones_included() {
    for tier in [Tier::Interpreter, Tier::Auto, Tier::Native, Tier::Ssa] {
        let engine = common::engine(Config::new().tier(tier)).unwrap();
        let mut sums = (0.0, 0, 0, 0);
        let mut kept = Vec::new();
        for i in 0..4 {
            let module = Module::new(&engine, TEXT).unwrap();
            let mut store = Store::new(&engine, ());
            let instance = Instance::new(&mut store, &module, &[]).unwrap();
            if i > 0 {
                let sum = instance.get_typed_func::<i64, i64>(&mut store, "sum").unwrap();
                assert_eq!(sum.call(&mut store, 10).unwrap(), 55);
            }
            let stats = module.stats();
            assert_eq!((stats.functions.total, stats.functions.called), (2, u64::from(i > 0)));
            sums.0 += stats.validate_ms;
            sums.1 += stats.functions.called;
            sums.2 += stats.functions.interpreted;
            sums.3 += stats.functions.native + stats.functions.evaluated;
            if i % 2 == 0 {
                kept.push(module);
            }
        }
        let stats = engine.stats();
        let functions = &stats.functions;
        assert!((stats.validate_ms - sums.0).abs() < 1e-9 && stats.validate_ms > 0.0);
        assert_eq!((functions.total, functions.called), (8, 3));
        assert_eq!((functions.called, functions.interpreted, functions.native + functions.evaluated), (sums.1, sums.2, sums.3));
        // No two modules are mistaken for one, though the record of one may be at the address of another that was dropped.
        let expected = if matches!(tier, Tier::Native | Tier::Ssa) { (0, 3) } else { (3, 0) };
        assert_eq!((functions.interpreted, functions.native + functions.evaluated), expected, "{tier:?}");
    }
}

#[test]
fn bytecode_counts_once_for_a_function_and_its_loops_and_ticks_are_measured() {
    let engine =
        common::engine(Config::new().synchronous_compilation(true).tier_up_threshold(Some(100)).baseline(false)).unwrap();
    let module = Module::new(&engine, TEXT).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let sum = instance.get_typed_func::<i64, i64>(&mut store, "sum").unwrap();
    for _ in 0..3 {
        sum.call(&mut store, 1000).unwrap();
    }
    let stats = module.stats();
    assert!(stats.osr_entries > 0 && stats.functions.native == 1, "{stats:?}");
    assert_eq!(stats.bytecode_bytes_compiled, u64::from(module.bytecode().body(0).unwrap().len()));
    let ticks: Vec<_> = stats.tier_up.iter().map(|up| (up.func, up.ticks)).collect();
    assert_eq!(ticks, [(0, 100)]);
    // A function of which only a loop was compiled is not one that was never compiled.
    let engine =
        common::engine(Config::new().synchronous_compilation(true).tier_up_threshold(Some(100)).interpret_calls(&["sum"]));
    let engine = engine.unwrap();
    let module = Module::new(&engine, TEXT).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    instance.get_typed_func::<i64, i64>(&mut store, "sum").unwrap().call(&mut store, 1000).unwrap();
    let functions = module.stats().functions;
    assert_eq!((functions.called, functions.interpreted, functions.native), (1, 0, 1));
}

#[test]
fn a_function_is_compiled_after_the_bytes_that_it_executes_and_not_after_its_calls() {
    // A straight body of 8 KB, one that leaves it at once, and one of a few bytes.
    let nops = "nop ".repeat(8 << 10);
    let text = format!(
        r#"(module
        (func $long (export "long") {nops})
        (func $left (export "left") return {nops})
        (func $short (export "short")))"#
    );
    for baseline in [false, true] {
        let engine = common::engine(Config::new().synchronous_compilation(true).baseline(baseline)).unwrap();
        let module = Module::new(&engine, &text).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        for name in ["long", "left", "short"] {
            let func = instance.get_typed_func::<(), ()>(&mut store, name).unwrap();
            for _ in 0..1000 {
                func.call(&mut store, ()).unwrap();
            }
        }
        let stats = module.stats();
        let compiled: Vec<u32> = stats.tier_up.iter().map(|up| up.func).collect();
        assert_eq!(compiled, [0], "baseline: {baseline}");
        // Its ticks are a multiple of its length: each call counts all of it.
        let work = u64::from(module.bytecode().body(0).unwrap().work);
        assert_eq!((work, stats.tier_up[0].ticks % work), (8193, 0), "baseline: {baseline}");
        // Those that were interpreted throughout had no baseline code either.
        assert_eq!((stats.functions.native, stats.functions.interpreted), (1, 2), "baseline: {baseline}");
    }
}
