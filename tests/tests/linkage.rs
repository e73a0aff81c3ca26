//! Frames that move between engines at loop headers and function entries, compared with the interpreter.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir::{CompiledBy, Config, Engine, Instance, Module, Store, Tier, TierEventKind, Val};
use weir_tests::crossings;
use weir_tests::differential;
use weir_tests::engines::{engine, engine_with_events};
use weir_tests::generate::switching;

fn engine_of(tier: Tier, configure: impl FnOnce(&mut Config)) -> Engine {
    let mut config = Config::new();
    // Calls that are inlined would not cross.
    config.tier(tier).synchronous_compilation(true).consume_fuel(true).passes_off(&["inline"]);
    configure(&mut config);
    engine(&config).expect("the configuration is supported")
}

/// Functions whose frames are left and entered at loops:
/// - `many` has operands below the loop and loop parameters, and returns more results of each class than there are
///   registers;
/// - `vectors` has slots of 16 bytes;
/// - `deep` calls itself in its loop, so that frames of all engines alternate;
/// - `tail` tail-calls from its loop to a function of another type;
/// - `traps` traps in its loop.
const LOOPS: &str = r#"(module
    (memory 1)
    (type $sink (func (param i32 f64 i64) (result i64)))
    (table funcref (elem $sink))
    (func (export "many") (param $n i32) (param $x f64)
        (result i32 i64 i64 i64 i64 i64 i64 i64 i64 i64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f32)
        (local $i i32) (local $a i64) (local $y f32) (local $never i64)
        (i32.const 17) (i64.const 23)
        (loop $again (param i32 i64) (result i32 i64)
            (local.set $a (i64.add (local.get $a)))
            (i32.add (local.get $i))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (local.set $x (f64.add (local.get $x) (f64.convert_i32_s (local.get $i))))
            (local.set $y (f32.demote_f64 (local.get $x)))
            (i64.xor (local.get $a) (i64.const 0x55))
            (br_if $again (i32.lt_u (local.get $i) (local.get $n))))
        (local.get $never) (i64.const 1) (local.get $a) (i64.const 3) (i64.const 4) (i64.const 5) (i64.const 6) (i64.const 7)
        (f64.const 0) (f64.const 1) (local.get $x) (f64.const 3) (f64.const 4) (f64.const 5) (f64.const 6) (f64.const 7)
        (local.get $x) (local.get $y))
    (func (export "vectors") (param $n i32) (param $v v128) (result v128 i32 v128) (local $i i32) (local $sum v128)
        (v128.const i32x4 1 2 3 4)
        (loop $again
            (local.set $sum (i32x4.add (local.get $sum) (local.get $v)))
            (local.set $v (i8x16.shuffle 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 0 (local.get $v) (local.get $v)))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $again (i32.lt_u (local.get $i) (local.get $n))))
        (local.get $i) (local.get $sum))
    (func $deep (export "deep") (param $n i32) (result i32) (local $i i32) (local $sum i32)
        (if (i32.eqz (local.get $n)) (then (return (i32.const 1))))
        (loop $again
            (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 3)) (call $deep (i32.sub (local.get $n) (i32.const 1)))))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $again (i32.lt_u (local.get $i) (i32.const 3))))
        (local.get $sum))
    (func $sink (type $sink) (i64.add (local.get 2) (i64.trunc_f64_s (local.get 1))))
    (func (export "tail") (param $n i32) (result i64) (local $i i32) (local $x f64)
        (loop $again
            (local.set $x (f64.add (local.get $x) (f64.const 1.5)))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (if (i32.ge_u (local.get $i) (local.get $n))
                (then (return_call_indirect (type $sink) (local.get $i) (local.get $x) (i64.const 9) (i32.const 0))))
            (br $again))
        (unreachable))
    (func (export "traps") (param $n i32) (result i32) (local $i i32)
        (loop $again
            (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
            (if (i32.ge_u (local.get $i) (local.get $n)) (then (unreachable)))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br $again))
        (unreachable)))"#;

const VECTOR: u128 = 0x0123_4567_89AB_CDEF_1122_3344_5566_7788;

/// Calls each function some times. Returns results and traps, fuel and the number of frames that continued in the interpreter.
fn run(engine: &Engine) -> (Vec<String>, u64, u64) {
    let module = Module::new(engine, LOOPS).expect("a valid module");
    let mut store = Store::new(engine, ());
    store.set_fuel(1 << 30).unwrap();
    let instance = Instance::new(&mut store, &module, &[]).expect("it imports nothing");
    let mut seen = Vec::new();
    for n in [1, 2, 5, 60, 3, 300] {
        let calls: [(&str, Vec<Val>, usize); 5] = [
            ("many", vec![Val::I32(n), Val::F64(0.25f64.to_bits())], 20),
            ("vectors", vec![Val::I32(n), Val::V128(VECTOR.into())], 3),
            ("deep", vec![Val::I32(n.min(5))], 1),
            ("tail", vec![Val::I32(n)], 1),
            ("traps", vec![Val::I32(n)], 1),
        ];
        for (name, args, results) in calls {
            let func = instance.get_func(&mut store, name).unwrap();
            let mut values = vec![Val::I32(0); results];
            let called = func.call(&mut store, &args, &mut values);
            seen.push(match called {
                Ok(()) => format!("{name} {n}: {values:?}"),
                Err(error) => format!("{name} {n}: {error:?}"),
            });
        }
    }
    (seen, store.get_fuel().unwrap(), module.stats().resumed)
}

/// Baseline code continues in the interpreter at random headers and entries.
#[test]
fn frames_that_resume_in_the_interpreter_compute_the_same() {
    let (expected, fuel, _) = run(&engine_of(Tier::Interpreter, |_| ()));
    let mut resumed = 0;
    for seed in 0..150 {
        for signals in [true, false] {
            let stressed = engine_of(Tier::Auto, |config| {
                config.stress(Some(seed)).signals_based_traps(signals);
            });
            let (seen, left, frames) = run(&stressed);
            assert_eq!((seen, left), (expected.clone(), fuel), "seed {seed}, signals {signals}");
            resumed += frames;
        }
    }
    assert!(resumed > 1000, "{resumed} frames continued in the interpreter");
}

/// One call, whose loop takes one arm until `switch` and the other from there on.
const PHASES: &str = r#"(module
    (func (export "run") (param $n i32) (param $switch i32) (result i64) (local $i i32) (local $sum i64)
        (loop $again
            (if (i32.lt_u (local.get $i) (local.get $switch))
                (then (local.set $sum (i64.add (local.get $sum) (i64.extend_i32_u (local.get $i)))))
                (else (local.set $sum (i64.xor (i64.rotl (local.get $sum) (i64.const 5)) (i64.const 0x9E3779B97F4A7C15)))))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $again (i32.lt_u (local.get $i) (local.get $n))))
        (local.get $sum)))"#;

/// The first OSR body is compiled when only one arm has been taken. Its frame leaves it, counts, and ends in a second one.
#[test]
fn a_loop_whose_counts_mislead_ends_in_a_second_osr_body() {
    let run = |tier, threshold| {
        let bodies = Arc::new(AtomicU64::new(0));
        let compiled = bodies.clone();
        let mut config = Config::new();
        config.tier(tier).synchronous_compilation(true).tier_up_threshold(Some(threshold));
        let engine = engine_with_events(&config, move |event| {
            if let (Some(_), TierEventKind::Compiled { by: CompiledBy::Native, .. }) = (event.osr, &event.kind) {
                compiled.fetch_add(1, Ordering::Relaxed);
            }
        });
        let engine = engine.expect("the configuration is supported");
        let module = Module::new(&engine, PHASES).expect("a valid module");
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).expect("it imports nothing");
        let run = instance.get_typed_func::<(i32, i32), i64>(&mut store, "run").unwrap();
        let result = run.call(&mut store, (100_000, 1000)).unwrap();
        (result, bodies.load(Ordering::Relaxed), module)
    };
    let (expected, ..) = run(Tier::Interpreter, 1);
    for threshold in [50, 100, 300] {
        let (result, bodies, module) = run(Tier::Auto, threshold);
        let stats = module.stats();
        assert_eq!((result, bodies, stats.osr_exits), (expected, 2, 1), "threshold {threshold}: {stats:?}");
        // OSR bodies do not count, so that these are the counts with which the second was compiled.
        let profile = module.profile(0).expect("it was profiled");
        let [then, other] = *profile.branches[0].counts else { panic!("an `if`: {profile}") };
        assert!(other > then, "threshold {threshold}: {profile}");
        assert!(u64::from(then) + u64::from(other) < 10_000, "the rest ran in OSR bodies: {profile}");
    }
}

/// `run` makes three calls whose callee makes a tail call; the callee of `fails` traps.
const CALLS: &str = r#"(module
    (func $triple (param i32) (result i32) (i32.mul (local.get 0) (i32.const 3)))
    (func $jumps (param i32) (result i32) (return_call $triple (local.get 0)))
    (func $traps (unreachable))
    (func (export "run") (param i32) (result i32)
        (i32.add (call $jumps (local.get 0)) (i32.add (call $jumps (local.get 0)) (call $jumps (local.get 0)))))
    (func (export "fails") (call $traps)))"#;

/// Calls, tail calls and returns are counted once each. A return is counted when its place on the native stack is used again,
/// and a frame that a trap unwinds does not return.
#[test]
fn crossings_are_counted_once() {
    const CALLS_OF_RUN: u64 = 10;
    const CALLS_OF_FAILS: u64 = 5;
    for (tier, name) in [(Tier::Native, "optimised"), (Tier::Baseline, "baseline")] {
        let engine = engine_of(tier, |config| {
            config.count_crossings(true);
        });
        let module = Module::new(&engine, CALLS).expect("a valid module");
        let mut store = Store::new(&engine, ());
        store.set_fuel(1 << 30).unwrap();
        let instance = Instance::new(&mut store, &module, &[]).expect("it imports nothing");
        let run = instance.get_typed_func::<i32, i32>(&mut store, "run").unwrap();
        let fails = instance.get_typed_func::<(), ()>(&mut store, "fails").unwrap();
        // The first call of each function compiles it.
        assert!(fails.call(&mut store, ()).is_err());
        assert_eq!(run.call(&mut store, 2).unwrap(), 18);
        let before = engine.stats().crossings;
        for _ in 0..CALLS_OF_FAILS {
            assert!(fails.call(&mut store, ()).is_err());
        }
        for _ in 0..CALLS_OF_RUN {
            assert_eq!(run.call(&mut store, 2).unwrap(), 18);
        }
        let stats = engine.stats();
        let of =
            |counts: &[(String, u64)], crossing: &str| counts.iter().find(|(name, _)| name == crossing).expect("a crossing").1;
        let count = |crossing: &str| of(&stats.crossings, crossing) - of(&before, crossing);
        let within = |crossing: &str| count(&format!("{crossing} {name} to {name}"));
        assert_eq!(count(&format!("call interpreter to {name}")), CALLS_OF_RUN + CALLS_OF_FAILS, "{:?}", stats.crossings);
        assert_eq!(within("call"), 3 * CALLS_OF_RUN + CALLS_OF_FAILS, "{:?}", stats.crossings);
        assert_eq!(within("tail call"), 3 * CALLS_OF_RUN, "{:?}", stats.crossings);
        // Without the last ones, but with the last ones of the first calls.
        assert_eq!(within("return"), 3 * CALLS_OF_RUN, "{:?}", stats.crossings);
        assert_eq!(count(&format!("return {name} to interpreter")), CALLS_OF_RUN, "{:?}", stats.crossings);
    }
}

/// Every pair of engines at every kind of crossing, in programs whose frames change the engine at random, compared with the
/// interpreter. `weir-fuzz --stress --switching` is the long form.
#[test]
fn every_engine_follows_every_other() {
    for seed in (0..32).step_by(2) {
        let tiers = differential::tiers(Some(seed));
        let subjects = [tiers[0].clone(), tiers.last().expect("stress is the last tier").clone()];
        let mut program = switching(seed);
        if seed % 4 == 0 {
            program.wasm = weir_spec::widen(program.wasm);
        }
        if let Err(mismatch) = differential::compare(&program, &subjects, (seed * 37) as u8) {
            panic!("seed {seed}: {mismatch}");
        }
    }
    let engines = ["interpreter", "baseline", "optimised"];
    let pairs = engines.iter().flat_map(|from| engines.map(|to| (*from, to)));
    let between = pairs
        .filter(|&pair| pair != ("interpreter", "interpreter"))
        .flat_map(|(from, to)| ["call", "tail call", "return"].map(|crossing| format!("{crossing} {from} to {to}")));
    let at_loops = ["interpreter to baseline", "baseline to interpreter", "interpreter to optimised", "baseline to optimised"];
    let of_osr_bodies = ["optimised to interpreter", "optimised to baseline", "optimised to optimised"];
    let at_loops = at_loops.into_iter().chain(of_osr_bodies).map(|pair| format!("loop {pair}"));
    let at_entries = ["entry baseline to interpreter", "entry baseline to optimised"].map(String::from);
    let sums = crossings::sums();
    for name in between.chain(at_loops).chain(at_entries) {
        let count = sums.iter().find(|(other, _)| *other == name).map_or(0, |(_, count)| *count);
        assert!(count > 0, "{name}: none of {sums:?}");
    }
}
