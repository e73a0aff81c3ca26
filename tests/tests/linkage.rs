//! Frames that move between engines at loop headers and function entries, compared with the interpreter.

use weir::{Config, Engine, Instance, Module, Store, Tier, Val};
use weir_tests::engines::engine;

fn engine_of(tier: Tier, configure: impl FnOnce(&mut Config)) -> Engine {
    let mut config = Config::new();
    config.tier(tier).synchronous_compilation(true).consume_fuel(true);
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
