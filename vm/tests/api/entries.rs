//! Entries of functions, by which native code calls them.

use crate::common;
use std::ops::Range;
use weir::{Config, Func, Instance, Module, Ref, Store, Tier, Val};

/// A function of each of these shapes of signatures, and one that returns 3.
fn shapes(numbers: Range<usize>) -> String {
    let params = |i: usize| (0..13).map(move |bit| if i >> bit & 1 == 0 { "i64 " } else { "f64 " }).collect::<String>();
    let funcs: String = numbers.map(|i| format!("(func (param {}))", params(i))).collect();
    format!(r#"(module {funcs} (func (export "f") (result i32) i32.const 3))"#)
}

fn compiling_at_once() -> Config {
    let mut config = Config::new();
    config.tier(Tier::Auto).synchronous_compilation(true).tier_up_threshold(Some(1));
    config
}

const NO_ROOM: &str = "native code calls a function for whose entry there was no room in the engine's code memory";

/// A module whose functions cannot have entries is interpreted, and native code of another module that calls one gets an error.
#[test]
fn a_module_without_entries_is_not_entered_by_native_code() {
    if !common::is_built(Tier::Native) {
        return;
    }
    let caller = r#"(module (import "m" "f" (func $f (result i32)))
        (func (export "run") (result i32) (local i32 i32)
            (loop $next (local.set 1 (i32.add (local.get 1) (call $f)))
                (br_if $next (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 1000))))
            (local.get 1)))"#;
    let run = |count: usize| -> (weir::Result<i32>, weir::Result<i32>) {
        let engine = common::engine(&compiling_at_once()).expect("the engine is made");
        let mut store = Store::new(&engine, ());
        let first = Module::new(&engine, shapes(0..count)).expect("it is valid");
        let first = Instance::new(&mut store, &first, &[]).expect("it has no imports");
        let f = first.get_func(&mut store, "f").expect("it is exported");
        let second = Module::new(&engine, caller).expect("it is valid");
        let second = Instance::new(&mut store, &second, &[f.into()]).expect("the import matches");
        let run = second.get_typed_func::<(), i32>(&mut store, "run").expect("it is exported");
        let through_native_code = run.call(&mut store, ());
        (through_native_code, f.typed::<(), i32>(&store).expect("its type").call(&mut store, ()))
    };
    let (through_native_code, from_host) = run(100);
    assert_eq!((through_native_code.expect("it has an entry"), from_host.expect("it has an entry")), (3000, 3));
    let (through_native_code, from_host) = run(5000);
    assert_eq!(from_host.expect("it is interpreted"), 3);
    assert_eq!(through_native_code.expect_err("too many shapes").root_cause().to_string(), NO_ROOM);
}

/// The same for a function of the host, which is made when code memory is full.
#[test]
fn a_host_function_without_an_entry_is_not_entered_by_native_code() {
    if !common::is_built(Tier::Native) {
        return;
    }
    let caller = r#"(module (table (export "t") 1 funcref)
        (func (export "run") (result i32)
            (call_indirect (param f32 i64 i64 f32) (result i32)
                (f32.const 1) (i64.const 2) (i64.const 3) (f32.const 4) (i32.const 0))))"#;
    let run = |full: bool| {
        let mut config = compiling_at_once();
        config.max_code_size(1 << 20);
        let engine = common::engine(&config).expect("the engine is made");
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &Module::new(&engine, caller).expect("it is valid"), &[]).expect("no imports");
        let run = instance.get_typed_func::<(), i32>(&mut store, "run").expect("it is exported");
        for _ in 0..10 {
            run.call(&mut store, ()).expect_err("the element is null");
        }
        if full {
            // Those for which there is no room are interpreted.
            for first in (0..1000).step_by(25).chain(1000..1025) {
                let others = Module::new(&engine, shapes(first..first + if first < 1000 { 25 } else { 1 })).expect("it is valid");
                Instance::new(&mut store, &others, &[]).expect("it has no imports");
            }
            // So are these, which have smaller stubs than the host's function.
            for i in 0..64 {
                let params: String = (0..3).map(|bit| if i >> bit & 1 == 0 { "i64 " } else { "f64 " }).collect();
                let results = ["", "i64", "f64", "i64 i64", "i64 f64", "f64 i64", "f64 f64", "i32"][i >> 3];
                let text = format!("(module (func (param {params}) (result {results}) unreachable))");
                let others = Module::new(&engine, text).expect("it is valid");
                Instance::new(&mut store, &others, &[]).expect("it has no imports");
            }
        }
        let host = Func::wrap(&mut store, |a: f32, b: i64, c: i64, d: f32| a as i32 + b as i32 + c as i32 + d as i32);
        instance
            .get_table(&mut store, "t")
            .expect("it is exported")
            .set(&mut store, 0, Ref::Func(Some(host)))
            .expect("it is there");
        run.call(&mut store, ())
    };
    assert_eq!(run(false).expect("it has an entry"), 10);
    assert_eq!(run(true).expect_err("there is no room").root_cause().to_string(), NO_ROOM);
}

/// Code gives way to the stubs of a module, and of a host function, that are made when code memory is full of functions' code.
#[test]
fn code_gives_way_to_entries() {
    if !common::is_built(Tier::Native) {
        return;
    }
    const FUNCTIONS: i32 = 1000;
    let engine = common::engine(compiling_at_once().max_code_size(64 << 10)).expect("the engine is made");
    let mut store = Store::new(&engine, ());
    let work: String =
        (1..10).map(|i| format!("(local.set 0 (i32.xor (i32.mul (local.get 0) (i32.const 7)) (i32.const {i})))")).collect();
    let functions = (0..FUNCTIONS)
        .map(|i| format!(r#"(func (export "{i}") (param i32) (result i32) {work} (i32.add (local.get 0) (i32.const {i})))"#));
    let first = Module::new(&engine, format!("(module {})", functions.collect::<String>())).expect("it is valid");
    let instance = Instance::new(&mut store, &first, &[]).expect("no imports");
    for i in 0..FUNCTIONS {
        let function = instance.get_typed_func::<i32, i32>(&mut store, &i.to_string()).expect("it is exported");
        for _ in 0..3 {
            function.call(&mut store, i).expect("it does not trap");
        }
    }
    let retired = first.stats().retired_bytes;
    assert!(retired > 0, "code memory is full");

    // Each of these has stubs of two kilobytes, for which the gaps between functions have no place.
    for i in 0..10 {
        let params: String = (0..6).map(|bit| if i >> bit & 1 == 0 { "i64 " } else { "f64 " }).collect();
        let text = format!(
            r#"(module (import "" "" (func $host (param f32 {params}))) (func (export "f") (param f64 {params}) (result i32)
            (call $host (f32.const 1) {}) (i32.const 3)))"#,
            (1..7).map(|local| format!("(local.get {local})")).collect::<String>()
        );
        let second = Module::new(&engine, text).expect("it is valid");
        let ty = second.imports().next().and_then(|import| import.ty().func().cloned()).expect("it imports a function");
        let host = Func::new(&mut store, ty, |_, _, _| Ok(()));
        let instance = Instance::new(&mut store, &second, &[host.into()]).expect("the import matches");
        let f = instance.get_func(&mut store, "f").expect("it is exported");
        let arguments: Vec<Val> = f.ty(&store).params().map(|ty| Val::default_for_ty(&ty).expect("numbers have one")).collect();
        // Its own code may have to wait for a second sweep.
        for _ in 0..100 {
            let mut results = [Val::I32(0)];
            f.call(&mut store, &arguments, &mut results).expect("both have entries");
            assert_eq!(results[0].unwrap_i32(), 3);
        }
        assert_eq!((second.stats().functions.native, second.stats().no_native_code), (1, None), "module {i}");
    }
    assert!(first.stats().retired_bytes > retired);
}
