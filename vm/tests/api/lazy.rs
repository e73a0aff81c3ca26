//! Functions that are validated before their first execution.

use crate::common;
use weir::{Config, Error, Instance, InvalidModule, Module, Store, Tier};

const TIERS: [Tier; 6] = [Tier::Interpreter, Tier::Baseline, Tier::Native, Tier::Cranelift, Tier::Ssa, Tier::Auto];

fn lazy(tier: Tier) -> Config {
    let mut config = Config::new();
    config.tier(tier).lazy_validation(true).synchronous_compilation(true).tier_up_threshold(Some(2));
    config
}

fn instantiate(config: &Config, wat: &str) -> (Store<()>, Instance) {
    let engine = common::engine(config).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &Module::new(&engine, wat).unwrap(), &[]).unwrap();
    (store, instance)
}

/// `bad` leaves an i64 in place of an i32; it is reached in every possible way.
const MODULE: &str = r#"(module
    (type $t (func (param i32) (result i32)))
    (table funcref (elem $bad))
    (func $bad (export "bad") (type $t) i64.const 0)
    (func (export "call") (type $t) (call $bad (local.get 0)))
    (func (export "call_indirect") (type $t) (call_indirect (type $t) (local.get 0) (i32.const 0)))
    (func (export "call_ref") (type $t) (call_ref $t (local.get 0) (ref.func $bad)))
    (func (export "return_call") (type $t) (return_call $bad (local.get 0)))
    (func (export "return_call_indirect") (type $t) (return_call_indirect (type $t) (local.get 0) (i32.const 0)))
    (func (export "around") (type $t) (if (result i32) (local.get 0) (then (call $bad (local.get 0))) (else (i32.const 5))))
    (func $sum (export "sum") (type $t)
        (if (result i32) (local.get 0)
            (then (i32.add (local.get 0) (call $sum (i32.sub (local.get 0) (i32.const 1)))))
            (else (i32.const 0)))))"#;

fn call(store: &mut Store<()>, instance: Instance, name: &str, arg: i32) -> Result<i32, Error> {
    instance.get_typed_func::<i32, i32>(&mut *store, name)?.call(store, arg)
}

#[test]
fn valid_functions_run_and_invalid_ones_trap_whenever_they_are_called() {
    for tier in TIERS.into_iter().filter(|&tier| common::is_built(tier)) {
        let (mut store, instance) = instantiate(&lazy(tier), MODULE);
        for n in [3, 100, 3] {
            assert_eq!(call(&mut store, instance, "sum", n).unwrap(), n * (n + 1) / 2, "{tier:?}");
        }
        assert_eq!(call(&mut store, instance, "around", 0).unwrap(), 5, "{tier:?}");
        for name in ["bad", "call", "call_indirect", "call_ref", "return_call", "return_call_indirect", "around"] {
            for _ in 0..4 {
                let error = call(&mut store, instance, name, 1).unwrap_err();
                let invalid = error.downcast_ref::<InvalidModule>().unwrap_or_else(|| panic!("{tier:?} {name}: {error:?}"));
                assert!(invalid.message.contains("type mismatch"), "{tier:?} {name}: {invalid}");
            }
        }
        assert_eq!(call(&mut store, instance, "sum", 4).unwrap(), 10, "{tier:?}");
    }
}

#[test]
fn the_backtrace_names_who_called_an_invalid_function() {
    let (mut store, instance) = instantiate(&lazy(Tier::Interpreter), MODULE);
    let error = call(&mut store, instance, "call", 1).unwrap_err();
    assert_eq!(error.wasm_backtrace().unwrap().frames()[0].func_index(), 1);
    let error = call(&mut store, instance, "bad", 1).unwrap_err();
    assert_eq!(error.wasm_backtrace().unwrap().frames()[0].func_index(), 0);
}

#[test]
fn everything_but_the_bodies_is_validated_at_once() {
    let engine = common::engine(&lazy(Tier::Interpreter)).unwrap();
    let wat = r#"(module (global i32 (i64.const 0)))"#;
    assert!(Module::new(&engine, wat).unwrap_err().is::<InvalidModule>());
    let bytes = wat::parse_str(MODULE).unwrap();
    assert!(Module::validate(&engine, &bytes).unwrap_err().is::<InvalidModule>());
    assert!(Module::new(&common::default_engine(), MODULE).unwrap_err().is::<InvalidModule>());
}

#[test]
fn only_called_functions_count_as_called() {
    let (mut store, instance) = instantiate(&lazy(Tier::Interpreter), MODULE);
    call(&mut store, instance, "around", 0).unwrap();
    let stats = instance.module(&store).stats();
    assert_eq!((stats.functions.total, stats.functions.called), (8, 1));
}

/// Threads that call the same functions of one module for the first time.
#[test]
fn threads_share_a_module_that_is_validated_as_it_runs() {
    let functions = 200;
    let mut wat = String::from("(module (func $f0 (param i32) (result i32) (local.get 0))");
    for i in 1..=functions {
        let before = i - 1;
        wat += &format!("(func $f{i} (param i32) (result i32) (i32.add (i32.const 1) (call $f{before} (local.get 0))))");
    }
    wat += &format!("(export \"f\" (func $f{functions})))");
    for tier in [Tier::Interpreter, Tier::Ssa, Tier::Auto].into_iter().filter(|&tier| common::is_built(tier)) {
        let engine = common::engine(&lazy(tier)).unwrap();
        let module = Module::new(&engine, &wat).unwrap();
        std::thread::scope(|scope| {
            for start in 0..4 {
                let (engine, module) = (&engine, &module);
                scope.spawn(move || {
                    let mut store = Store::new(engine, ());
                    let instance = Instance::new(&mut store, module, &[]).unwrap();
                    for n in start..start + 5 {
                        assert_eq!(call(&mut store, instance, "f", n).unwrap(), n + functions);
                    }
                });
            }
        });
    }
}
