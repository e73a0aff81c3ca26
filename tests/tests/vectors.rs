//! Vectors at transitions between engines: functions with vectors among functions without, some compiled and some not.

use weir::{Config, Func, Instance, Module, Store, Tier, Trap, V128};
use weir_tests::engines::engine;

/// `$narrow` and `$wide` call or tail-call each other until a counter is 0, and add 1 and 3 each time. `$wide` does so
/// through a loop in a third function, which it calls through a table.
fn mixed(call: &str) -> String {
    format!(
        r#"(module
            (type $t (func (param i32 f64) (result f64 i32)))
            (table funcref (elem $spin))
            (func $narrow (export "narrow") (type $t)
                (if (i32.eqz (local.get 0)) (then (return (local.get 1) (i32.const 1))))
                ({call} $wide (i32.sub (local.get 0) (i32.const 1)) (f64.add (local.get 1) (f64.const 1))))
            (func $wide (export "wide") (type $t) (local v128)
                (if (i32.eqz (local.get 0)) (then (return (local.get 1) (i32.const 2))))
                (local.set 2 (i32x4.splat (local.get 0)))
                (call_indirect (type $t) (local.get 0) (local.get 1) (i32.const 0))
                (if (i32.ne (i32x4.extract_lane 3 (local.get 2))) (then unreachable))
                (local.set 1)
                ({call} $narrow (i32.sub (local.get 0) (i32.const 1)) (local.get 1)))
            (func $spin (type $t) (local i32)
                (loop $again
                    (local.set 1 (f64.add (local.get 1) (f64.const 0.5)))
                    (br_if $again (i32.lt_u (local.tee 2 (i32.add (local.get 2) (i32.const 1))) (i32.const 6))))
                (local.get 1) (local.get 0)))"#
    )
}

fn configurations() -> Vec<Config> {
    let mut all = Vec::new();
    for tier in [Tier::Interpreter, Tier::Native, Tier::Cranelift, Tier::Baseline, Tier::Ssa] {
        let mut config = Config::new();
        all.push(config.tier(tier).synchronous_compilation(true).clone());
    }
    for threshold in [1, 2, 3] {
        let mut config = Config::new();
        all.push(config.synchronous_compilation(true).tier_up_threshold(Some(threshold)).clone());
    }
    for seed in 0..4 {
        all.push(Config::new().stress(Some(seed)).clone());
    }
    all
}

#[test]
fn functions_of_both_widths_call_each_other_across_engines() {
    let (mut compiled, mut osr_entries) = (0, 0);
    for config in configurations() {
        // Every call from native to interpreted code takes some native stack.
        for (call, rounds) in [("call", 50), ("return_call", 50_000)] {
            let engine = engine(&config).unwrap();
            let module = Module::new(&engine, mixed(call)).unwrap();
            let mut store = Store::new(&engine, ());
            let instance = Instance::new(&mut store, &module, &[]).unwrap();
            for (name, last) in [("narrow", 1), ("wide", 2)] {
                let func = instance.get_typed_func::<(i32, f64), (f64, i32)>(&mut store, name).unwrap();
                let found = func.call(&mut store, (2 * rounds, 0.25));
                let found = found.unwrap_or_else(|error| panic!("{call} {name} {config:?}: {error:?}"));
                assert_eq!(found, (4.0 * f64::from(rounds) + 0.25, last), "{call} {name} {config:?}");
            }
            let functions = module.stats().functions;
            compiled += functions.native + functions.cranelift;
            osr_entries += module.stats().osr_entries;
        }
    }
    assert!(compiled > 10 && osr_entries > 0, "{compiled} functions compiled, {osr_entries} OSR entries");
}

#[test]
fn a_trap_below_both_widths_has_the_whole_backtrace() {
    let text = "(module
        (func $a (export \"f\") (param i32) (result i32) (call $b (local.get 0)))
        (func $b (param i32) (result i32) (local v128) (call $c (local.get 0)))
        (func $c (param i32) (result i32) (i32.div_u (i32.const 1) (local.get 0))))";
    for config in configurations() {
        let engine = engine(&config).unwrap();
        let module = Module::new(&engine, text).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let func = instance.get_typed_func::<i32, i32>(&mut store, "f").unwrap();
        for _ in 0..5 {
            assert_eq!(func.call(&mut store, 1).unwrap(), 1);
        }
        let error = func.call(&mut store, 0).unwrap_err();
        assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::IntegerDivisionByZero));
        let frames: Vec<u32> = error.wasm_backtrace().unwrap().frames().iter().map(|frame| frame.func_index()).collect();
        assert_eq!(frames, [2, 1, 0], "{config:?}");
    }
}

/// `reverse` has more vectors than registers, as parameters and as results; `sum` counts in a vector in a loop; `host`
/// calls a host function.
const VECTORS: &str = r#"(module
    (import "h" "swap" (func $swap (param i32 v128) (result v128 i64)))
    (global $g (mut v128) (v128.const i64x2 100 200))
    (func $reverse (export "reverse")
        (param v128 v128 v128 v128 v128 v128 v128 v128 v128 i64)
        (result i64 v128 v128 v128 v128 v128 v128 v128 v128 v128)
        (local.get 9) (local.get 8) (local.get 7) (local.get 6) (local.get 5)
        (local.get 4) (local.get 3) (local.get 2) (local.get 1) (local.get 0))
    (func (export "twice") (param v128 v128 v128 v128 v128 v128 v128 v128 v128 i64) (result v128) (local i64)
        (call $reverse (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4)
            (local.get 5) (local.get 6) (local.get 7) (local.get 8) (local.get 9))
        (i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23)
        (global.set $g)
        (drop) (drop) (drop) (drop) (drop) (drop) (drop)
        (local.set 10)
        (i64x2.add (global.get $g) (i64x2.splat (local.get 10))))
    (func (export "sum") (param i32) (result i64) (local v128)
        (loop $again
            (local.set 1 (i64x2.add (local.get 1) (v128.const i64x2 1 2)))
            (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (i64.add (i64x2.extract_lane 0 (local.get 1)) (i64x2.extract_lane 1 (local.get 1))))
    (func (export "host") (param i32 v128) (result i64 v128) (local v128 i64)
        (call $swap (local.get 0) (local.get 1))
        (local.set 3)
        (local.set 2)
        (local.get 3)
        (local.get 2)))"#;

#[test]
fn vectors_cross_between_engines_and_host() {
    let (mut native, mut cranelift, mut osr_entries) = (0, 0, 0);
    for config in configurations() {
        let engine = engine(&config).unwrap();
        let module = Module::new(&engine, VECTORS).unwrap();
        let mut store = Store::new(&engine, ());
        let swap = Func::wrap(&mut store, |a: i32, v: V128| (V128::from(v.as_u128().rotate_left(64)), i64::from(a) + 1));
        let instance = Instance::new(&mut store, &module, &[swap.into()]).unwrap();
        let vector = |low: u128, high: u128| V128::from(low | high << 64);
        let args = |n: i64| {
            let v = |i| vector(i, 10 + i);
            (v(0), v(1), v(2), v(3), v(4), v(5), v(6), v(7), v(8), n)
        };
        type Nine<T> = (T, T, T, T, T, T, T, T, T, i64);
        let twice = instance.get_typed_func::<Nine<V128>, V128>(&mut store, "twice").unwrap();
        let sum = instance.get_typed_func::<i32, i64>(&mut store, "sum").unwrap();
        let host = instance.get_typed_func::<(i32, V128), (i64, V128)>(&mut store, "host").unwrap();
        for n in 1..5 {
            // The last two results are vectors 1 and 0: their lower halves, and the number on top.
            assert_eq!(twice.call(&mut store, args(n)).unwrap(), vector(1 + n as u128, n as u128), "{config:?}");
            assert_eq!(sum.call(&mut store, 100 * n as i32).unwrap(), 300 * n, "{config:?}");
            let found = host.call(&mut store, (n as i32, vector(5, 6))).unwrap();
            assert_eq!(found, (n + 1, vector(6, 5)), "{config:?}");
        }
        let stats = module.stats();
        native += stats.functions.native;
        cranelift += stats.functions.cranelift;
        osr_entries += stats.osr_entries;
    }
    assert!(native >= 16 && cranelift >= 4 && osr_entries > 0, "{native}, {cranelift}, {osr_entries} OSR entries");
}
