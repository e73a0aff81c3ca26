//! Transitions between interpreter, native code and host: tail calls in constant stack, OSR, traps through every
//! mixture.
//!
//! `Config::interpret_calls` keeps one function interpreted while its neighbours are compiled, and each test checks
//! this by the engine's statistics.

use std::sync::atomic::{AtomicU64, Ordering};
use weir::{Caller, Config, Engine, Error, Instance, Linker, Module, Store, Tier, Trap};
use weir_tests::engines::engine;

fn engine_of(tier: Tier, configure: impl FnOnce(&mut Config)) -> Engine {
    let mut config = Config::new();
    config.tier(tier).synchronous_compilation(true);
    configure(&mut config);
    engine(&config).expect("the configuration is supported")
}

fn instantiate(engine: &Engine, text: &str) -> (Store<()>, Instance, Module) {
    let module = Module::new(engine, text).expect("a valid module");
    let mut store = Store::new(engine, ());
    let instance = Instance::new(&mut store, &module, &[]).expect("it imports nothing");
    (store, instance, module)
}

/// Two functions that tail-call each other with different signatures, the wider one through the overflow area.
const PING_PONG: &str = r#"(module
    (table 1 funcref)
    (func $narrow (export "run") (param $n i64) (param $sum i64) (result i64)
        (if (i64.eqz (local.get $n)) (then (return (local.get $sum))))
        (return_call $wide
            (local.get $n) (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4)
            (i64.const 5) (i64.const 6) (local.get $sum) (i64.const 8)
            (f64.const 0) (f64.const 1) (f64.const 2) (f64.const 3) (f64.const 4)
            (f64.const 5) (f64.const 6) (f64.const 7) (f64.const 8.5) (i32.const 9)))
    (func $wide
        (param $n i64) (param i64 i64 i64 i64 i64 i64) (param $sum i64) (param i64)
        (param f64 f64 f64 f64 f64 f64 f64 f64) (param $late f64) (param i32) (result i64)
        (return_call $narrow
            (i64.sub (local.get $n) (i64.const 1))
            (i64.add (local.get $sum) (i64.trunc_f64_s (local.get $late))))))"#;

#[test]
fn tail_calls_between_engines_take_constant_stack() {
    // The evaluator is slow.
    for (tier, rounds) in
        [(Tier::Native, 5_000_000), (Tier::Cranelift, 5_000_000), (Tier::Baseline, 5_000_000), (Tier::Ssa, 100_000)]
    {
        let engine = engine_of(tier, |config| {
            config.interpret_calls(&["wide"]);
        });
        let (mut store, instance, module) = instantiate(&engine, PING_PONG);
        let run = instance.get_typed_func::<(i64, i64), i64>(&mut store, "run").unwrap();
        assert_eq!(run.call(&mut store, (rounds, 0)).unwrap(), 8 * rounds, "{tier:?}: twice as many tail calls");
        let stats = module.stats();
        let compiled = stats.functions.native + stats.functions.cranelift + stats.functions.baseline;
        assert_eq!(compiled + stats.functions.evaluated, 1, "{tier:?}: one function is not interpreted");
        assert_eq!(stats.functions.interpreted, 1, "{tier:?}: the other is interpreted");
    }
}

#[test]
fn tail_calls_within_one_engine_take_constant_stack() {
    let tiers = [Tier::Interpreter, Tier::Native, Tier::Cranelift, Tier::Baseline, Tier::Auto].map(|tier| (tier, 1_000_000));
    for (tier, rounds) in tiers.into_iter().chain([(Tier::Ssa, 100_000)]) {
        let engine = engine_of(tier, |_| ());
        let (mut store, instance, _) = instantiate(&engine, PING_PONG);
        let run = instance.get_typed_func::<(i64, i64), i64>(&mut store, "run").unwrap();
        assert_eq!(run.call(&mut store, (rounds, 0)).unwrap(), 8 * rounds, "{tier:?}");
    }
}

/// Calls of `$spin` are interpreted; its loop continues in an OSR body, which tail-calls through the table.
const LOOPS: &str = r#"(module
    (table 1 funcref)
    (func $spin (export "run") (param $n i64) (param $sum i64) (result i64) (local $i i64)
        (if (i64.eqz (local.get $n)) (then (return (local.get $sum))))
        (loop $again
            (local.set $sum (i64.add (local.get $sum) (i64.const 1)))
            (local.set $i (i64.add (local.get $i) (i64.const 1)))
            (br_if $again (i64.lt_u (local.get $i) (i64.const 4))))
        (return_call_indirect (param i64 i64) (result i64)
            (i64.sub (local.get $n) (i64.const 1)) (local.get $sum) (i32.const 0)))
    (func $back (param $n i64) (param $sum i64) (result i64)
        (return_call $spin (local.get $n) (local.get $sum)))
    (elem (i32.const 0) $back))"#;

#[test]
fn tail_calls_out_of_osr_bodies_take_constant_stack() {
    let engine = engine_of(Tier::Auto, |config| {
        config.tier_up_threshold(Some(1)).interpret_calls(&["spin"]);
    });
    let (mut store, instance, module) = instantiate(&engine, LOOPS);
    let run = instance.get_typed_func::<(i64, i64), i64>(&mut store, "run").unwrap();
    assert_eq!(run.call(&mut store, (5_000_000, 0)).unwrap(), 20_000_000, "ten million tail calls");
    let stats = module.stats();
    // Calls of `$spin` are interpreted, so each enters the OSR body again. That body makes `$spin` a compiled function.
    assert!(stats.osr_entries > 4_999_000, "{stats:?}");
    assert_eq!((stats.functions.native, stats.functions.interpreted), (2, 0), "{stats:?}");
}

#[test]
fn forced_tier_switches_change_nothing() {
    let mut osr_entries = 0;
    for seed in 0..6 {
        for (text, interpreted) in [(LOOPS, "spin"), (LOOPS, ""), (PING_PONG, "wide"), (PING_PONG, "")] {
            let engine = engine_of(Tier::Auto, |config| {
                config.stress(Some(seed)).interpret_calls(&[interpreted]);
            });
            let (mut store, instance, module) = instantiate(&engine, text);
            let run = instance.get_typed_func::<(i64, i64), i64>(&mut store, "run").unwrap();
            let step = if text.contains("$wide") { 8 } else { 4 };
            assert_eq!(run.call(&mut store, (200_000, 0)).unwrap(), step * 200_000, "seed {seed}");
            osr_entries += module.stats().osr_entries;
        }
    }
    assert!(osr_entries > 10_000, "only {osr_entries} OSR entries");
}

#[test]
fn a_hot_loop_is_continued_in_native_code() {
    let text = r#"(module (func (export "run") (param $n i32) (result i64) (local $i i32) (local $sum i64)
        (loop $outer
            (loop $inner
                (local.set $sum (i64.add (local.get $sum) (i64.extend_i32_u (local.get $i))))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br_if $inner (i32.and (local.get $i) (i32.const 7))))
            (br_if $outer (i32.lt_u (local.get $i) (local.get $n))))
        (local.get $sum)))"#;
    for threshold in [1, 2, 3, 10, 100, 1000] {
        let engine = engine_of(Tier::Auto, |config| {
            config.tier_up_threshold(Some(threshold));
        });
        let (mut store, instance, module) = instantiate(&engine, text);
        let run = instance.get_typed_func::<i32, i64>(&mut store, "run").unwrap();
        assert_eq!(run.call(&mut store, 8000).unwrap(), 7999 * 8000 / 2);
        if threshold > 1 {
            assert!(module.stats().osr_entries > 0, "threshold {threshold}");
        }
    }
}

/// A program that consists of one call continues in baseline code at its next iteration, and later, at a loop header, in an OSR
/// body.
#[test]
fn a_hot_loop_goes_on_in_baseline_code_and_then_in_an_osr_body() {
    let text = r#"(module (memory 1) (global $calls (mut i32) (i32.const 0))
        (func $called (param f64) (result f64)
            (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
            (f64.mul (local.get 0) (f64.const 0.5)))
        (func (export "run") (param $n i32) (result i64) (local $i i32) (local $sum i64) (local $half f64)
            (local.set $half (f64.const 1024))
            (i32.const 3) (i64.const 5)
            (loop $outer (param i32 i64) (result i32 i64)
                (local.set $sum (i64.add (local.get $sum)))
                (i32.store (i32.const 8))
                (i32.const 8) (i32.load (i32.const 8)) (i64.const 7)
                (loop $inner
                    (local.set $sum (i64.add (local.get $sum) (i64.extend_i32_u (local.get $i))))
                    (local.set $i (i32.add (local.get $i) (i32.const 1)))
                    (br_if $inner (i32.and (local.get $i) (i32.const 7))))
                (if (i32.eqz (i32.and (local.get $i) (i32.const 63)))
                    (then (local.set $half (call $called (local.get $half)))))
                (local.set $sum (i64.add (local.get $sum)))
                (i64.const 11)
                (br_if $outer (i32.lt_u (local.get $i) (local.get $n)))
                (drop) (drop) (drop) (i32.const 0) (i64.const 0))
            (drop) (drop)
            (local.get $sum)))"#;
    let run = |tier, threshold: u32, baseline| {
        let engine = engine_of(tier, |config| {
            config.tier_up_threshold(Some(threshold)).baseline(baseline);
        });
        let (mut store, instance, module) = instantiate(&engine, text);
        let run = instance.get_typed_func::<i32, i64>(&mut store, "run").unwrap();
        (run.call(&mut store, 8000).unwrap(), module.stats())
    };
    let (expected, _) = run(Tier::Interpreter, 1, false);
    // From the interpreter to baseline code and from there to an OSR body. From that, if the loop runs for long, to baseline code
    // and to a second body.
    for (threshold, entries, exits) in [(10, 4, 1), (100, 4, 1), (1000, 2, 0)] {
        let (result, stats) = run(Tier::Auto, threshold, true);
        assert_eq!(result, expected, "threshold {threshold}");
        assert_eq!((stats.osr_entries, stats.osr_exits), (entries, exits), "threshold {threshold}: {stats:?}");
        let (result, stats) = run(Tier::Auto, threshold, false);
        assert_eq!((result, stats.osr_entries), (expected, 1), "threshold {threshold}: interpreter to OSR body: {stats:?}");
    }
    let (result, stats) = run(Tier::Auto, u32::MAX, true);
    assert_eq!((result, stats.functions.baseline, stats.osr_entries), (expected, 0, 0));
}

#[test]
fn the_background_compiler_takes_over() {
    let mut config = Config::new();
    config.tier_up_threshold(Some(50));
    let engine = engine(&config).unwrap();
    let text = r#"(module (func $fib (export "fib") (param i32) (result i32)
        (if (result i32) (i32.lt_u (local.get 0) (i32.const 2))
            (then (local.get 0))
            (else (i32.add
                (call $fib (i32.sub (local.get 0) (i32.const 1)))
                (call $fib (i32.sub (local.get 0) (i32.const 2))))))))"#;
    let (mut store, instance, module) = instantiate(&engine, text);
    let fib = instance.get_typed_func::<i32, i32>(&mut store, "fib").unwrap();
    // The compiler thread decides when. The limit of five minutes allows for a slow machine.
    let started = std::time::Instant::now();
    while module.stats().functions.native == 0 && started.elapsed().as_secs() < 300 {
        assert_eq!(fib.call(&mut store, 15).unwrap(), 610);
    }
    assert_eq!(module.stats().functions.native, 1, "{:?}", module.stats());
    assert_eq!(fib.call(&mut store, 20).unwrap(), 6765);
}

/// Recursion through every engine down to a trap of each kind: `n` levels of native → interpreted → host → native.
const TOWER: &str = r#"(module
    (import "host" "down" (func $host (param i32) (result i32)))
    (table 1 funcref)
    (memory 1)
    (func $native (export "down") (param $n i32) (result i32)
        (if (i32.eqz (local.get $n)) (then (return (call $bottom))))
        (i32.add (i32.const 1) (call $interpreted (local.get $n))))
    (func $interpreted (param $n i32) (result i32)
        (i32.add (i32.const 1) (call $host (local.get $n))))
    (global $how (export "how") (mut i32) (i32.const 0))
    (func $bottom (result i32)
        (block $host (block $deep (block $memory (block $divide (block $unreachable (block $fine
            (br_table $fine $unreachable $divide $memory $deep $host (global.get $how)))
            (return (i32.const 0)))
            (unreachable))
            (return (i32.div_s (i32.const 1) (i32.eqz (global.get $how)))))
            (return (i32.load (i32.const 65533))))
            (return (call $forever)))
        (call $host (i32.const -1)))
    (func $forever (result i32)
        (i32.add (call $forever) (i32.const 1))))"#;

#[test]
fn traps_errors_and_panics_cross_every_mixture_of_engines() {
    for tier in [Tier::Interpreter, Tier::Native, Tier::Cranelift, Tier::Baseline, Tier::Ssa] {
        let engine = engine_of(tier, |config| {
            config.interpret_calls(&["interpreted"]);
        });
        let module = Module::new(&engine, TOWER).unwrap();
        let mut store = Store::new(&engine, 0u32);
        let mut linker = Linker::new(&engine);
        linker
            .func_wrap("host", "down", |mut caller: Caller<'_, u32>, n: i32| -> Result<i32, Error> {
                match n {
                    -1 if *caller.data() == 1 => panic!("the host panics"),
                    -1 => Err(Error::msg("the host fails")),
                    n => {
                        let down = caller.get_export("down").unwrap().into_func().unwrap();
                        let down = down.typed::<i32, i32>(&caller)?;
                        Ok(1 + down.call(&mut caller, n - 1)?)
                    }
                }
            })
            .unwrap();
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let down = instance.get_typed_func::<i32, i32>(&mut store, "down").unwrap();
        let how = instance.get_global(&mut store, "how").unwrap();
        for depth in [0, 1, 7] {
            how.set(&mut store, 0.into()).unwrap();
            assert_eq!(down.call(&mut store, depth).unwrap(), 3 * depth, "{tier:?}");
            let expected =
                [Trap::UnreachableCodeReached, Trap::IntegerDivisionByZero, Trap::MemoryOutOfBounds, Trap::StackOverflow];
            for (i, trap) in expected.into_iter().enumerate() {
                how.set(&mut store, (i as i32 + 1).into()).unwrap();
                let error = down.call(&mut store, depth).unwrap_err();
                assert_eq!(error.downcast_ref::<Trap>(), Some(&trap), "{tier:?}, depth {depth}");
            }
            how.set(&mut store, 5.into()).unwrap();
            let error = down.call(&mut store, depth).unwrap_err();
            assert!(format!("{error:?}").contains("the host fails"), "{tier:?}, depth {depth}: {error:?}");
            *store.data_mut() = 1;
            let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| down.call(&mut store, depth)));
            assert_eq!(panic.unwrap_err().downcast_ref::<&str>(), Some(&"the host panics"), "{tier:?}, depth {depth}");
            *store.data_mut() = 0;
        }
        if tier != Tier::Interpreter {
            let functions = module.stats().functions;
            let others = functions.native + functions.cranelift + functions.baseline + functions.evaluated;
            assert!(others >= 3 && functions.interpreted == 1, "{tier:?}: {functions:?}");
        }
    }
}

#[test]
fn a_trap_names_its_place_in_every_tier() {
    let text = r#"(module (memory 1)
        (func $inner (param i32) (result i32) (i32.load offset=4 (local.get 0)))
        (func $outer (export "run") (param i32) (result i32) (i32.add (call $inner (local.get 0)) (i32.const 1))))"#;
    let mut seen = Vec::new();
    for tier in [Tier::Interpreter, Tier::Native, Tier::Cranelift, Tier::Baseline, Tier::Ssa] {
        let engine = engine_of(tier, |_| ());
        let (mut store, instance, _) = instantiate(&engine, text);
        let run = instance.get_typed_func::<i32, i32>(&mut store, "run").unwrap();
        assert_eq!(run.call(&mut store, 65528).unwrap(), 1);
        let error = run.call(&mut store, 65529).unwrap_err();
        seen.push((tier, format!("{error:?}")));
    }
    for (tier, text) in &seen {
        assert_eq!(text, &seen[0].1, "{tier:?} tells another story than the interpreter");
        assert!(text.contains("out of bounds memory access") && text.contains("inner") && text.contains("outer"), "{text}");
    }
}

#[test]
fn several_threads_trap_at_once() {
    static DONE: AtomicU64 = AtomicU64::new(0);
    let engine = engine_of(Tier::Native, |_| ());
    let module =
        Module::new(&engine, r#"(module (memory 1) (func (export "run") (param i32) (result i32) (i32.load8_u (local.get 0))))"#)
            .unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut store = Store::new(&engine, ());
                let instance = Instance::new(&mut store, &module, &[]).unwrap();
                let run = instance.get_typed_func::<i32, i32>(&mut store, "run").unwrap();
                for i in 0..2000 {
                    let result = run.call(&mut store, 65036 + i % 1000);
                    assert_eq!(result.is_ok(), i % 1000 < 500);
                }
                DONE.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(DONE.load(Ordering::Relaxed), 4);
}
