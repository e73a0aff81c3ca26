//! Compiler threads: a guest whose functions take long to compile delays neither other guests nor the end of the engine.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{compiler_threads, until};

use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;
use weir::{Config, Engine, Instance, Module, Store, Tier, TierEventKind};

/// A function of some hundred kilobytes, whose compilation takes seconds.
fn long() -> String {
    let mut body = String::new();
    for i in 0..12_000 {
        let (a, b) = (i % 7, (i * 5 + 3) % 8);
        write!(
            body,
            "(if (i32.lt_u (local.get {a}) (i32.const {i})) (then (local.set {b} (i32.add (local.get {a}) (local.get {b})))))"
        )
        .expect("a string grows");
    }
    format!(r#"(module (func (export "f") (param i32) (local i32 i32 i32 i32 i32 i32 i32) {body}))"#)
}

/// Makes an engine with one compiler thread, and a list of the functions for which there is code, by the number of the module's functions.
fn engine() -> (Engine, Arc<Mutex<Vec<u64>>>) {
    let compiled = Arc::new(Mutex::new(Vec::new()));
    let list = compiled.clone();
    let mut config = Config::new();
    config.tier(Tier::Auto).baseline(false).compiler_threads(1).tier_up_threshold(Some(1));
    let engine = common::engine_with_events(&config, move |event| {
        if let TierEventKind::Compiled { .. } = event.kind {
            list.lock().expect("no test panics").push(event.module.stats().functions.total);
        }
    });
    (engine.expect("the engine is made"), compiled)
}

/// One test, because it counts the threads of the process.
#[test]
fn a_long_compilation_delays_neither_other_modules_nor_the_end_of_the_engine() {
    if !common::is_built(Tier::Native) {
        return;
    }
    let (engine, compiled) = engine();
    let call = |text: &str, times: usize| {
        let module = Module::new(&engine, text).expect("it is valid");
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).expect("it has no imports");
        let f = instance.get_typed_func::<i32, ()>(&mut store, "f").expect("it is exported");
        (0..times).for_each(|_| f.call(&mut store, 1).expect("it does not trap"));
        (store, module, f)
    };
    let hostile = call(&long(), 2);
    until(|| compiler_threads() > 0);
    // Its compilation begins.
    sleep(Duration::from_millis(20));
    let (mut store, module, f) = call(r#"(module (func) (func (export "f") (param i32)))"#, 2);
    until(|| {
        f.call(&mut store, 1).expect("it does not trap");
        !compiled.lock().expect("no test panics").is_empty()
    });
    assert!(hostile.1.stats().functions.fallbacks.is_empty(), "its compilation is running");
    assert_eq!(*compiled.lock().expect("no test panics"), [2], "the module with two functions comes first");
    drop((hostile, store, module, f));
    let weak = engine.weak();
    drop(engine);
    until(|| compiler_threads() == 0);
    assert!(weak.upgrade().is_none(), "a job has held the engine, and has ended");
    assert_eq!(*compiled.lock().expect("no test panics"), [2], "the long compilation did not end with code");
}
