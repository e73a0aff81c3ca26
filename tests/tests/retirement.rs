//! Code that is retired while its module lives: with a full budget, with threads, with suspended frames, and when a
//! loop's code is no longer needed. Results must stay the same.

use std::sync::{Arc, Mutex};
use weir::{Caller, Config, Error, Instance, Linker, Module, Stats, Store, Tier, TierEventKind, Trap};
use weir_tests::engines::{engine, engine_with_events};

/// The figures that a failed assertion shows: retired, recompiled, bytes made, retired and freed.
fn figures(stats: &Stats) -> [u64; 5] {
    [stats.retired, stats.recompiled, stats.code_bytes, stats.retired_bytes, stats.freed_bytes]
}

/// The number of functions that have had code of any compiler.
fn compiled(stats: &Stats) -> u64 {
    stats.functions.called - stats.functions.interpreted
}

/// The number of functions in [`many`], and the bytes of code that they may have: stubs for all of them and bodies for
/// some.
const FUNCTIONS: i32 = 120;
const BUDGET: usize = 10 << 10;

/// Functions `0` to `FUNCTIONS - 1`, of a hundred bytes of code each, a few of which call others; and `run`, which
/// calls a function by its number.
fn many() -> String {
    let work: String = (1..16)
        .map(|k| format!("(local.set 0 (i32.xor (i32.mul (local.get 0) (i32.const {})) (i32.const {k})))", 2 * k + 1))
        .collect();
    let function = |i: i32| {
        let call = if i % 7 == 6 { format!("(local.set 0 (call ${} (local.get 0)))", i - 1) } else { String::new() };
        format!("(func ${i} (export \"{i}\") (param i32) (result i32) {call} {work} (i32.add (local.get 0) (i32.const {i})))")
    };
    let functions: String = (0..FUNCTIONS).map(function).collect();
    let elems: String = (0..FUNCTIONS).map(|i| format!(" ${i}")).collect();
    format!(
        "(module (type $f (func (param i32) (result i32))) (table {FUNCTIONS} funcref) (elem (i32.const 0){elems})
            (func (export \"run\") (param i32 i32) (result i32)
                (call_indirect (type $f) (local.get 1) (local.get 0)))
            {functions})"
    )
}

/// The result of function `i` of [`many`] for `x`.
fn expected(i: i32, mut x: i32) -> i32 {
    if i % 7 == 6 {
        x = expected(i - 1, x);
    }
    (1..16).fold(x, |x, k| x.wrapping_mul(2 * k + 1) ^ k).wrapping_add(i)
}

#[test]
fn a_program_that_needs_more_code_than_it_may_have_goes_on() {
    for tier in [Tier::Native, Tier::Baseline, Tier::Auto] {
        let mut config = Config::new();
        config.tier(tier).synchronous_compilation(true).tier_up_threshold(Some(3)).max_code_size(BUDGET);
        let engine = engine(&config).unwrap();
        let module = Module::new(&engine, many()).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let run = instance.get_typed_func::<(i32, i32), i32>(&mut store, "run").unwrap();
        // The working set fits, and moves in turn over all functions.
        for phase in 0..3 * FUNCTIONS / 10 {
            for round in 0..2000 {
                let i = (10 * phase + round % 10) % FUNCTIONS;
                assert_eq!(run.call(&mut store, (i, round)).unwrap(), expected(i, round), "{tier:?}: function {i}");
            }
        }
        let stats = module.stats();
        assert!(stats.retired > 20 && stats.recompiled > 20, "{tier:?}: {:?}", figures(&stats));
        assert!(stats.freed_bytes > 0 && stats.freed_bytes <= stats.retired_bytes, "{tier:?}: {:?}", figures(&stats));
        assert!(stats.code_bytes - stats.freed_bytes <= BUDGET as u64, "{tier:?}: {:?}", figures(&stats));
        let functions = [stats.functions.native, stats.functions.baseline];
        assert_eq!(compiled(&stats), FUNCTIONS as u64 + 1, "{tier:?}: each has had code: {:?}", figures(&stats));
        assert_eq!(functions.map(|count| count > 0), [tier != Tier::Baseline, tier != Tier::Native], "{tier:?}");
        drop((store, instance, module));
        // The first module leaves nothing that hinders a second one.
        let module = Module::new(&engine, many()).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let first = instance.get_typed_func::<i32, i32>(&mut store, "0").unwrap();
        for x in 0..10 {
            assert_eq!(first.call(&mut store, x).unwrap(), expected(0, x));
        }
        assert_eq!((compiled(&module.stats()), module.stats().retired), (1, 0), "{tier:?}: there is room");
    }
}

#[test]
fn threads_share_a_module_whose_code_comes_and_goes() {
    // In the background, the threads may finish before the compiler.
    for (stress, synchronous) in [(None, true), (None, false), (Some(1), true), (Some(2), true)] {
        let mut config = Config::new();
        config.tier_up_threshold(Some(3)).max_code_size(BUDGET).stress(stress).synchronous_compilation(synchronous);
        let engine = engine(&config).unwrap();
        let module = Module::new(&engine, many()).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (engine, module) = (&engine, &module);
                scope.spawn(move || {
                    let mut store = Store::new(engine, ());
                    let instance = Instance::new(&mut store, module, &[]).unwrap();
                    let run = instance.get_typed_func::<(i32, i32), i32>(&mut store, "run").unwrap();
                    for round in 0..20_000 {
                        let i = (round / 500 * 10 + round % 10 + 31 * thread) % FUNCTIONS;
                        assert_eq!(run.call(&mut store, (i, round)).unwrap(), expected(i, round), "function {i}");
                    }
                });
            }
        });
        let stats = engine.stats();
        assert!(!synchronous || stats.retired > 10 && stats.freed_bytes > 0, "{stress:?}: {:?}", figures(&stats));
    }
}

#[test]
fn code_under_a_suspended_frame_stays_until_the_frame_is_gone() {
    code_under_a_suspended_frame_stays(Tier::Native);
}

#[test]
fn baseline_code_under_a_suspended_frame_stays_until_the_frame_is_gone() {
    code_under_a_suspended_frame_stays(Tier::Baseline);
}

/// `outer` calls the host, which calls everything else, so that the code of `outer` is evicted while `outer` is
/// suspended; then `outer` continues or traps.
fn code_under_a_suspended_frame_stays(tier: Tier) {
    let text = many().replacen(
        "(module",
        r#"(module (import "host" "call" (func $host (param i32) (result i32))) (memory 1)
            (func $outer (export "outer") (param i32) (result i32)
                (i32.load (i32.add (call $host (local.get 0)) (local.get 0))))"#,
        1,
    );
    let retired = Arc::new(Mutex::new(Vec::new()));
    let log = retired.clone();
    let mut config = Config::new();
    config.tier(tier).tier_up_threshold(Some(3)).max_code_size(BUDGET);
    let engine = engine_with_events(&config, move |event| {
        if let TierEventKind::Retired { .. } = event.kind {
            log.lock().unwrap().push(event.name());
        }
    });
    let engine = engine.unwrap();
    let module = Module::new(&engine, text).unwrap();
    // Bytes that were retired before the outermost call.
    let mut store = Store::new(&engine, 0u64);
    let mut linker = Linker::new(&engine);
    let call_all = |mut caller: Caller<'_, u64>, depth: i32| -> Result<i32, Error> {
        if depth > 4 && depth < 8 {
            // Calls again through the suspended frames.
            let outer = caller.get_export("outer").unwrap().into_func().unwrap().typed::<i32, i32>(&caller)?;
            outer.call(&mut caller, depth + 1)?;
        }
        let run = caller.get_export("run").unwrap().into_func().unwrap().typed::<(i32, i32), i32>(&caller)?;
        for round in 0..8 * FUNCTIONS {
            let i = round % FUNCTIONS;
            assert_eq!(run.call(&mut caller, (i, round))?, expected(i, round));
        }
        let stats = caller.engine().stats();
        assert!(stats.freed_bytes <= *caller.data(), "what was retired since the store is in the guest stays");
        Ok(8)
    };
    linker.func_wrap("host", "call", call_all).unwrap();
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let outer = instance.get_typed_func::<i32, i32>(&mut store, "outer").unwrap();
    for round in 0..6 {
        *store.data_mut() = engine.stats().retired_bytes;
        assert_eq!(outer.call(&mut store, round).unwrap(), 0);
        *store.data_mut() = engine.stats().retired_bytes;
        let error = outer.call(&mut store, 65536).unwrap_err();
        assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::MemoryOutOfBounds));
        assert!(format!("{error:?}").contains("outer"), "the frame still has its name: {error:?}");
    }
    let names = retired.lock().unwrap();
    assert!(names.iter().any(|name| name == "outer"), "{names:?}");
    assert!(engine.stats().freed_bytes > 0, "outer calls freed what the ones before them retired");
}

#[test]
fn code_of_a_loop_goes_when_the_function_has_code_of_its_own() {
    // The offset of each loop whose code was retired, and the size of the code.
    let retired = Arc::new(Mutex::new(Vec::new()));
    let listener = retired.clone();
    let mut config = Config::new();
    config.tier_up_threshold(Some(200)).compiler_threads(1).baseline(false);
    let engine = engine_with_events(&config, move |event| {
        if let TierEventKind::Retired { bytes, .. } = event.kind {
            listener.lock().unwrap().push((event.osr, bytes));
        }
    });
    let engine = engine.unwrap();
    let sum = r#"(func (export "sum") (param i32) (result i32) (local i32)
        (loop $again
            (local.set 1 (i32.add (local.get 1) (local.get 0)))
            (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (local.get 1))"#;
    let text = many().replacen("(module", &format!("(module {sum}"), 1);
    // The loop is entered before the function's own code exists if the compiler is busy first and then compiles the loop, which
    // is more urgent. The limit of five minutes allows for a slow machine.
    let started = std::time::Instant::now();
    while retired.lock().unwrap().is_empty() && started.elapsed().as_secs() < 300 {
        let module = Module::new(&engine, &text).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let run = instance.get_typed_func::<(i32, i32), i32>(&mut store, "run").unwrap();
        for round in 0..250 * 20 {
            run.call(&mut store, (round % 20, round)).unwrap();
        }
        let sum = instance.get_typed_func::<i32, i32>(&mut store, "sum").unwrap();
        for _ in 0..1000 {
            assert_eq!(sum.call(&mut store, 5000).unwrap(), 12_502_500);
        }
    }
    let stats = engine.stats();
    assert!(stats.osr_entries > 0 && stats.retired > 0, "{:?}", figures(&stats));
    let retired = retired.lock().unwrap();
    assert_eq!(stats.retired, retired.len() as u64, "each is reported");
    assert!(retired.iter().all(|&(osr, bytes)| osr.is_some() && bytes > 0), "only code of loops: {retired:?}");
}
