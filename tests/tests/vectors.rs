//! Vectors where engines meet: functions with vectors among functions without, some compiled and some not.

use weir::{Config, Engine, Instance, Module, Store, Tier, Trap};

/// `$narrow` and `$wide` hand over to each other, by calls or by tail calls, until a counter is 0, and add 1 and 3 each time,
/// `$wide` by way of a loop in a third function, which it calls through a table.
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
    for tier in [Tier::Interpreter, Tier::Native, Tier::Cranelift] {
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
            let engine = Engine::new(&config).unwrap();
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
        let engine = Engine::new(&config).unwrap();
        let module = Module::new(&engine, text).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let func = instance.get_typed_func::<i32, i32>(&mut store, "f").unwrap();
        for _ in 0..5 {
            assert_eq!(func.call(&mut store, 1).unwrap(), 1);
        }
        let error = func.call(&mut store, 0).unwrap_err();
        assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::IntegerDivideByZero));
        let frames: Vec<u32> = error.wasm_backtrace().unwrap().frames().iter().map(|frame| frame.func_index()).collect();
        assert_eq!(frames, [2, 1, 0], "{config:?}");
    }
}
