//! Ten thousand panics of host functions, traps of each kind and forks, and some hundred stack overflows, take no memory, descriptors or mappings. The
//! next call after each returns the right result.

#![cfg(target_os = "linux")]

mod common;

use common::process::{forked, is_alone};
use common::{is_built, resident};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use weir::{Config, Engine, Instance, Linker, Module, Store, Tier, Trap, TypedFunc};

/// In all tiers together.
const REPETITIONS: usize = 10_000;
/// The number of stack overflows in each tier, which take longer.
const OVERFLOWS: usize = 300;
/// After this many repetitions, the process has everything that it keeps for later, such as a thread's signal stack.
const FIRST: usize = 500;
/// Memory in bytes that the allocator may take meanwhile.
const SLACK: usize = 1 << 20;

const PROGRAM: &str = r#"(module
    (import "host" "panic" (func $panic (param i32) (result i32)))
    (memory 1)
    (table 2 funcref)
    (type $unary (func (param i32) (result i32)))
    (func $deep (param i32) (result i32)
        (if (i32.eqz (local.get 0)) (then (return (call $panic (i32.const 1)))))
        (i32.add (call $deep (i32.sub (local.get 0) (i32.const 1))) (i32.const 1)))
    (func $endless (param i32) (result i32) (i32.add (call $endless (local.get 0)) (i32.const 1)))
    (func (export "f") (param i32) (result i32)
        (if (i32.eq (local.get 0) (i32.const 0)) (then (return (call $deep (i32.const 5)))))
        (if (i32.eq (local.get 0) (i32.const 1)) (then (return (i32.load (i32.const -1)))))
        (if (i32.eq (local.get 0) (i32.const 2)) (then (return (i32.div_s (i32.const 1) (i32.const 0)))))
        (if (i32.eq (local.get 0) (i32.const 3)) (then (unreachable)))
        (if (i32.eq (local.get 0) (i32.const 4)) (then (return (call_indirect (type $unary) (i32.const 0) (i32.const 1)))))
        (if (i32.eq (local.get 0) (i32.const 5)) (then (return (call $endless (i32.const 1)))))
        (i32.add (i32.load (local.get 0)) (i32.const 7))))"#;

/// Descriptors and entries in the map of memory of this process, and its memory.
fn possessions() -> ([usize; 2], usize) {
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("Linux has it").count();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux has it").lines().count();
    ([descriptors, maps], resident())
}

/// Does something many times, and checks that this process has no more afterwards.
fn repeat(what: &str, repetitions: usize, mut once: impl FnMut()) {
    (0..FIRST.min(repetitions / 10)).for_each(|_| once());
    let (had, before) = possessions();
    (0..repetitions).for_each(|_| once());
    let (has, after) = possessions();
    assert_eq!(has, had, "{what}: descriptors and mappings");
    assert!(after.saturating_sub(before) < SLACK, "{what}: {before} bytes, then {after}");
}

/// An instance in each tier.
fn each_tier(mut test: impl FnMut(Tier, &mut Store<()>, &TypedFunc<i32, i32>)) {
    for tier in [Tier::Interpreter, Tier::Baseline, Tier::Native].into_iter().filter(|&tier| is_built(tier)) {
        let mut config = Config::new();
        config.tier(tier).tier_up_threshold(Some(1)).synchronous_compilation(true).max_wasm_stack(64 << 10);
        let engine: Engine = common::engine(&config).unwrap();
        let module = Module::new(&engine, PROGRAM).unwrap();
        let mut linker = Linker::new(&engine);
        linker.func_wrap("host", "panic", |_: i32| -> i32 { panic_any("of the host") }).unwrap();
        let mut store = Store::new(&engine, ());
        let instance: Instance = linker.instantiate(&mut store, &module).unwrap();
        let f = instance.get_typed_func::<i32, i32>(&mut store, "f").unwrap();
        assert_eq!(f.call(&mut store, 6).unwrap(), 7);
        test(tier, &mut store, &f);
    }
}

#[test]
fn ten_thousand_panics_and_traps_take_no_memory() {
    if !is_alone("ten_thousand_panics_and_traps_take_no_memory") {
        return;
    }
    // The messages of ten thousand panics.
    std::panic::set_hook(Box::new(|_| {}));
    each_tier(|tier, store, f| {
        repeat(&format!("panics, {tier:?}"), REPETITIONS / 3, || {
            let panic = catch_unwind(AssertUnwindSafe(|| f.call(&mut *store, 0))).expect_err("the host panics");
            assert_eq!(panic.downcast_ref(), Some(&"of the host"));
            assert_eq!(f.call(&mut *store, 6).unwrap(), 7);
        });
        let traps = [
            Trap::MemoryOutOfBounds,
            Trap::IntegerDivisionByZero,
            Trap::UnreachableCodeReached,
            Trap::IndirectCallToNull,
            Trap::StackOverflow,
        ];
        for (argument, trap) in (1..).zip(traps) {
            let repetitions = if trap == Trap::StackOverflow { OVERFLOWS } else { REPETITIONS / 3 };
            repeat(&format!("{trap:?}, {tier:?}"), repetitions, || {
                let error = f.call(&mut *store, argument).unwrap_err();
                assert_eq!(error.downcast_ref(), Some(&trap));
                assert_eq!(f.call(&mut *store, 6).unwrap(), 7);
            });
        }
    });
}

#[test]
fn ten_thousand_forks_take_no_memory() {
    if !is_alone("ten_thousand_forks_take_no_memory") {
        return;
    }
    each_tier(|tier, store, f| {
        repeat(&format!("forks, {tier:?}"), REPETITIONS / 3, || {
            forked(|| ());
            assert_eq!(f.call(&mut *store, 6).unwrap(), 7);
        });
    });
}
