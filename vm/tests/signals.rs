//! `Config::signals_based_traps(false)`: no handlers are installed, and every trap still occurs. All engines of this
//! process use this setting, because handlers are never removed.

mod common;

use common::is_built;
use weir::{Config, Instance, Module, Store, Tier, Trap};

/// The signals that some handler in this process catches, a bit each, bit 0 for signal 1.
fn caught() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap()
}

/// A trap of every kind, of operands that the compiler knows and of operands that it does not know, which are the
/// function's parameters.
const TRAPS: &[(&str, Trap)] = &[
    ("(unreachable)", Trap::UnreachableCodeReached),
    ("(drop (i32.div_s (i32.const 1) (local.get $zero)))", Trap::IntegerDivisionByZero),
    ("(drop (i32.div_u (i32.const 1) (local.get $zero)))", Trap::IntegerDivisionByZero),
    ("(drop (i64.rem_s (i64.const 1) (i64.extend_i32_s (local.get $zero))))", Trap::IntegerDivisionByZero),
    ("(drop (i64.rem_u (i64.const 1) (i64.extend_i32_s (local.get $zero))))", Trap::IntegerDivisionByZero),
    ("(drop (i32.div_s (i32.const 1) (i32.const 0)))", Trap::IntegerDivisionByZero),
    ("(drop (i32.div_s (i32.const 0x80000000) (i32.sub (local.get $zero) (i32.const 1))))", Trap::IntegerOverflow),
    (
        "(drop (i64.div_s (i64.const 0x8000000000000000) (i64.extend_i32_s (i32.sub (local.get $zero) (i32.const 1)))))",
        Trap::IntegerOverflow,
    ),
    ("(drop (i32.trunc_f32_s (f32.demote_f64 (local.get $nan))))", Trap::BadConversionToInteger),
    ("(drop (i64.trunc_f64_u (local.get $nan)))", Trap::BadConversionToInteger),
    ("(drop (i32.trunc_f64_s (local.get $big)))", Trap::IntegerOverflow),
    ("(drop (i32.trunc_f64_u (f64.const -1)))", Trap::IntegerOverflow),
    ("(drop (i64.trunc_f64_s (local.get $big)))", Trap::IntegerOverflow),
    ("(drop (i64.trunc_f32_u (f32.demote_f64 (local.get $big))))", Trap::IntegerOverflow),
    ("(drop (i32.load (i32.const -1)))", Trap::MemoryOutOfBounds),
    ("(i64.store8 offset=65536 (local.get $zero) (i64.const 0))", Trap::MemoryOutOfBounds),
    ("(drop (i32.load $wide (i64.const -1)))", Trap::MemoryOutOfBounds),
    ("(memory.fill (i32.const 65536) (i32.const 0) (i32.const 1))", Trap::MemoryOutOfBounds),
    ("(drop (table.get 0 (i32.const 3)))", Trap::TableOutOfBounds),
    ("(call_indirect (type $none) (i32.const 3))", Trap::TableOutOfBounds),
    ("(call_indirect (type $none) (local.get $zero))", Trap::IndirectCallToNull),
    ("(drop (call_indirect (type $i) (i32.const 1)))", Trap::BadSignature),
    ("(call_ref $none (ref.null $none))", Trap::NullReference),
    ("(drop (ref.as_non_null (ref.null func)))", Trap::NullReference),
    ("(call $deep)", Trap::StackOverflow),
    ("(loop (br 0))", Trap::OutOfFuel),
];

#[test]
fn every_trap_is_one_without_a_handler() {
    let before = caught();
    let tiers = [Tier::Interpreter, Tier::Baseline, Tier::Native, Tier::Cranelift, Tier::Auto];
    for tier in tiers.into_iter().filter(|&tier| is_built(tier)) {
        let mut config = Config::new();
        config.tier(tier).signals_based_traps(false).consume_fuel(true);
        let engine = common::engine(config.synchronous_compilation(true).tier_up_threshold(Some(1))).unwrap();
        for &(body, expected) in TRAPS {
            let wat = format!(
                r#"(module
                    (type $none (func)) (type $i (func (result i32)))
                    (memory 1) (memory $wide i64 1) (table 3 funcref) (elem (i32.const 1) $caller)
                    (func $deep (param) (call $deep) (call $caller))
                    (func $inner (param $zero i32) (param $nan f64) (param $big f64) {body})
                    (func $caller (export "run") (call $inner (i32.const 0) (f64.const nan) (f64.const 1e300))))"#
            );
            let module = Module::new(&engine, &wat).unwrap();
            let mut store = Store::new(&engine, ());
            store.set_fuel(1000).unwrap();
            let instance = Instance::new(&mut store, &module, &[]).unwrap();
            let run = instance.get_typed_func::<(), ()>(&mut store, "run").unwrap();
            for _ in 0..2 {
                store.set_fuel(if expected == Trap::OutOfFuel { 1000 } else { 1 << 32 }).unwrap();
                let error = run.call(&mut store, ()).unwrap_err();
                assert_eq!(error.downcast_ref::<Trap>(), Some(&expected), "{tier:?}: {body}");
                let frames = error.wasm_backtrace().unwrap().frames();
                let inner = frames.iter().position(|frame| frame.func_name() == Some("inner"));
                assert!(inner.is_some() || expected == Trap::StackOverflow, "{tier:?}: {body}: {error:?}");
                assert!(inner.is_none_or(|at| frames[at + 1].func_name() == Some("caller")), "{tier:?}: {body}: {error:?}");
            }
            if tier != Tier::Interpreter && is_built(Tier::Native) {
                let functions = module.stats().functions;
                // `inner` may be inlined.
                assert!(functions.baseline + functions.native + functions.cranelift >= 1, "{tier:?}: {body}: {functions:?}");
            }
        }
    }
    assert_eq!(caught(), before, "signals that are caught");
    for (signal, name) in [(4, "SIGILL"), (8, "SIGFPE")] {
        assert_eq!(before >> (signal - 1) & 1, 0, "{name}: no handler in this process catches it");
    }
}
