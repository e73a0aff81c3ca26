//! Calls of every kind: the callee, the stack afterwards, and the positions in a backtrace.

use super::{call, config, frames, instantiate, run, run_trap, trap};
use crate::interp::portable_log;
use crate::{Engine, Error, Func, Instance, Module, Store, Trap};
use std::collections::BTreeSet;
use weir_bytecode::Opcode;

const FIB: &str = "(module (func $f (export \"f\") (param i32) (result i32)
    (if (result i32) (i32.lt_s (local.get 0) (i32.const 2))
        (then (local.get 0))
        (else (i32.add
            (call $f (i32.sub (local.get 0) (i32.const 1)))
            (call $f (i32.sub (local.get 0) (i32.const 2))))))))";

#[test]
fn recursion() {
    assert_eq!(run::<_, i32>(FIB, 20).unwrap(), 6765);
}

/// Counts down in recursive calls.
const DEEP: &str = "(module (func $f (export \"f\") (param i32) (result i32) (local i64 i64)
    (if (result i32) (local.get 0)
        (then (i32.add (i32.const 1) (call $f (i32.sub (local.get 0) (i32.const 1)))))
        (else (i32.const 0)))))";

#[test]
fn recursion_is_bounded_by_the_value_stack_alone() {
    const DEPTH: i32 = 100_000;
    // A frame here is three locals, the header and two operands.
    let slots = 9 * (DEPTH as usize + 1);
    let mut config = config();
    config.value_stack_size(8 * slots);
    let (mut store, instance) = instantiate(&config, DEEP);
    assert_eq!(call::<_, i32>(&mut store, instance, "f", DEPTH).unwrap(), DEPTH);
    let error = call::<_, i32>(&mut store, instance, "f", 2 * DEPTH).unwrap_err();
    assert_eq!(trap(&error), Trap::StackOverflow);
    let backtrace = error.wasm_backtrace().unwrap();
    let depth = backtrace.frames().len() as u64 + backtrace.omitted();
    assert!(depth > DEPTH as u64 && depth < 2 * DEPTH as u64, "{depth}");
    assert_eq!(frames(&error)[0], (0, "call"));
    // The failed call left nothing on the stack.
    assert_eq!(call::<_, i32>(&mut store, instance, "f", DEPTH).unwrap(), DEPTH);
}

#[test]
fn recursion_without_end_traps() {
    assert_eq!(run_trap("(module (func $f (export \"f\") (call $f)))", ()), Trap::StackOverflow);
    let wide = format!("(module (func $f (export \"f\") (local {}) (call $f)))", "i64 ".repeat(40_000));
    assert_eq!(run_trap(&wide, ()), Trap::StackOverflow);
}

#[test]
fn locals_are_zero_in_every_new_frame() {
    let wat = "(module
        (func $dirty (local i64 i64 i64) (local.set 0 (i64.const -1)) (local.set 1 (i64.const -1)) (local.set 2 (i64.const -1)))
        (func $sum (result i64) (local i64 i64 i64) (i64.add (local.get 0) (i64.add (local.get 1) (local.get 2))))
        (func (export \"f\") (result i64) (call $dirty) (call $sum)))";
    assert_eq!(run::<_, i64>(wat, ()).unwrap(), 0);
}

#[test]
fn several_results_and_many_parameters() {
    let params = "i64 ".repeat(200);
    let gets: String = (0..200).map(|i| format!("(local.get {i})")).collect();
    let consts: String = (0..200).map(|i| format!("(i64.const {i})")).collect();
    let wat = format!(
        "(module
            (func $reverse (param {params}) (result i64 i64 i64) (local.get 199) (local.get 100) (local.get 1))
            (func $all (param {params}) (result {params}) {gets})
            (func (export \"f\") (result i64 i64 i64) (call $reverse (call $all {consts}))))"
    );
    assert_eq!(run::<_, (i64, i64, i64)>(&wat, ()).unwrap(), (199, 100, 1));
}

#[test]
fn tail_calls_need_no_stack() {
    let wat = "(module
        (type $t (func (param i32 i64) (result i64)))
        (table funcref (elem $odd $even))
        (func $even (type $t)
            (if (i32.eqz (local.get 0)) (then (return (local.get 1))))
            (return_call_indirect (type $t)
                (i32.sub (local.get 0) (i32.const 1)) (i64.add (local.get 1) (i64.const 1)) (i32.const 0)))
        (func $odd (type $t) (local i32 i32 i32 i32 i32)
            (i64.const 77)
            (if (i32.eqz (local.get 0)) (then unreachable))
            (return_call $even (i32.sub (local.get 0) (i32.const 1)) (i64.add (local.get 1) (i64.const 1))))
        (func (export \"f\") (param i32) (result i64) (return_call $even (local.get 0) (i64.const 0)))
        (func (export \"inner\") (param i32) (result i64)
            (i64.add (i64.const 1) (call $even (local.get 0) (i64.const 0)))))";
    let mut config = config();
    config.value_stack_size(8 * 64);
    let (mut store, instance) = instantiate(&config, wat);
    const CALLS: i32 = 10_000_000;
    assert_eq!(call::<_, i64>(&mut store, instance, "f", CALLS).unwrap(), i64::from(CALLS));
    assert_eq!(call::<_, i64>(&mut store, instance, "inner", 1000).unwrap(), 1001);
}

#[test]
fn a_tail_call_to_more_parameters_and_locals_than_the_caller_had() {
    let params = "i64 ".repeat(100);
    let consts: String = (0..100).map(|i| format!("(i64.const {i})")).collect();
    let wat = format!(
        "(module
            (func $wide (param {params}) (result i64) (local i64) (i64.add (local.get 99) (local.get 100)))
            (func $narrow (result i64) (return_call $wide {consts}))
            (func (export \"f\") (result i64) (i64.add (call $narrow) (call $narrow))))"
    );
    assert_eq!(run::<_, i64>(&wat, ()).unwrap(), 198);
}

#[test]
fn indirect_calls_check_index_null_and_type() {
    let wat = "(module
        (type $same (func (result i32)))
        (type $also (func (result i32)))
        (type $other (func (result i64)))
        (table 4 funcref)
        (elem (i32.const 0) $one $long)
        (func $one (type $same) (i32.const 1))
        (func $long (type $other) (i64.const 1))
        (func (export \"f\") (param i32) (result i32) (call_indirect (type $also) (local.get 0))))";
    let (mut store, instance) = instantiate(&config(), wat);
    assert_eq!(call::<_, i32>(&mut store, instance, "f", 0).unwrap(), 1);
    for (index, expected) in
        [(1, Trap::BadSignature), (2, Trap::IndirectCallToNull), (4, Trap::TableOutOfBounds), (-1, Trap::TableOutOfBounds)]
    {
        let error = call::<_, i32>(&mut store, instance, "f", index).unwrap_err();
        assert_eq!(trap(&error), expected);
        assert_eq!(frames(&error), [(2, "call_indirect")]);
    }
}

#[test]
fn a_64_bit_table() {
    let wat = "(module (type $t (func (result i32)))
        (table i64 3 funcref) (elem (table 0) (i64.const 2) func $g)
        (func $g (result i32) (i32.const 5))
        (func (export \"f\") (param i64) (result i32) (call_indirect (type $t) (local.get 0))))";
    assert_eq!(run::<_, i32>(wat, 2i64).unwrap(), 5);
    assert_eq!(trap(&run::<_, i32>(wat, 0x1_0000_0002i64).unwrap_err()), Trap::TableOutOfBounds);
}

#[test]
fn a_backtrace_names_the_trapping_instruction_and_the_calls() {
    let wat = "(module
        (type $t (func (param i32)))
        (table funcref (elem $inner))
        (func $inner (param i32) (drop (i32.div_u (i32.const 1) (local.get 0))))
        (func $middle (param i32) (call $inner (i32.const 1)) (call_indirect (type $t) (local.get 0) (i32.const 0)) nop)
        (func (export \"f\") (param i32) nop (call $middle (local.get 0)) nop))";
    let error = run::<_, ()>(wat, 0).unwrap_err();
    assert_eq!(trap(&error), Trap::IntegerDivisionByZero);
    assert_eq!(frames(&error), [(0, "i32.div_u"), (1, "call_indirect"), (2, "call")]);
    assert_eq!(error.wasm_backtrace().unwrap().omitted(), 0);
}

#[test]
fn traps_point_at_the_instruction_itself() {
    for (body, mnemonic) in [
        ("nop nop unreachable", "unreachable"),
        ("(drop (i32.load offset=65536 (i32.const 0)))", "i32.load"),
        ("(i64.store8 offset=1 (i32.const 65535) (i64.const 0))", "i64.store8"),
        ("(drop (i64.trunc_f32_u (f32.const -1)))", "i64.trunc_f32_u"),
        ("(memory.fill (i32.const 0) (i32.const 0) (i32.const -1))", "memory.fill"),
        ("(drop (table.get (i32.const 9)))", "table.get"),
        ("(return_call_indirect (i32.const 9))", "return_call_indirect"),
    ] {
        let wat = format!("(module (memory 1) (table 1 funcref) (func (export \"f\") {body} nop))");
        let error = run::<_, ()>(&wat, ()).unwrap_err();
        assert_eq!(frames(&error), [(0, mnemonic)], "{body}");
    }
}

/// A module `$a` with memory, global and functions, and one that imports its functions.
fn linked() -> (Store<()>, Instance, Instance) {
    let engine = Engine::new(&config()).unwrap();
    let mut store = Store::new(&engine, ());
    store.set_epoch_deadline(u64::MAX);
    let a = Module::new(
        &engine,
        "(module (memory (export \"memory\") 1) (global $g (mut i32) (i32.const 10))
            (func (export \"grow\") (param i32) (result i32)
                (global.set $g (i32.add (global.get $g) (local.get 0)))
                (drop (memory.grow (i32.const 1)))
                (i32.store (i32.const 65536) (global.get $g))
                (global.get $g))
            (func (export \"fail\") unreachable)
            (func (export \"tail\") (param i32) (result i32) (global.get $g)))",
    )
    .unwrap();
    let a = Instance::new(&mut store, &a, &[]).unwrap();
    let imports = ["memory", "grow", "fail", "tail"].map(|name| a.get_export(&mut store, name).unwrap());
    let b = Module::new(
        &engine,
        "(module (import \"a\" \"memory\" (memory 1))
            (import \"a\" \"grow\" (func $grow (param i32) (result i32)))
            (import \"a\" \"fail\" (func $fail))
            (import \"a\" \"tail\" (func $tail (param i32) (result i32)))
            (global $g (mut i32) (i32.const 1000))
            (type $unary (func (param i32) (result i32)))
            (table funcref (elem $grow))
            (func (export \"f\") (param i32) (result i32)
                (i32.add
                    (i32.add (call $grow (local.get 0)) (i32.load (i32.const 65536)))
                    (global.get $g)))
            (func (export \"indirect\") (param i32) (result i32)
                (i32.add (call_indirect (type $unary) (local.get 0) (i32.const 0)) (global.get $g)))
            (func $away (param i32) (result i32) (return_call $tail (local.get 0)))
            (func (export \"tail\") (param i32) (result i32) (i32.add (call $away (local.get 0)) (global.get $g)))
            (func (export \"base\") (param i32) (result i32) (return_call $tail (local.get 0)))
            (func (export \"fail\") (call $fail)))",
    )
    .unwrap();
    let b = Instance::new(&mut store, &b, &imports).unwrap();
    (store, a, b)
}

#[test]
fn calls_between_instances_switch_memory_and_globals() {
    let (mut store, _, b) = linked();
    assert_eq!(call::<_, i32>(&mut store, b, "f", 5).unwrap(), 15 + 15 + 1000);
    assert_eq!(call::<_, i32>(&mut store, b, "indirect", 1).unwrap(), 16 + 1000);
    assert_eq!(call::<_, i32>(&mut store, b, "tail", 0).unwrap(), 16 + 1000);
    assert_eq!(call::<_, i32>(&mut store, b, "base", 0).unwrap(), 16);
    let error = call::<_, ()>(&mut store, b, "fail", ()).unwrap_err();
    assert_eq!(frames(&error), [(1, "unreachable"), (8, "call")]);
}

#[test]
fn host_functions_get_arguments_and_give_results() {
    let engine = Engine::new(&config()).unwrap();
    let mut store = Store::new(&engine, ());
    store.set_epoch_deadline(u64::MAX);
    let module = Module::new(
        &engine,
        "(module (import \"h\" \"mix\" (func $mix (param i32 i64 f32 f64) (result f64 i32)))
            (import \"h\" \"fail\" (func $fail (param i32)))
            (type $t (func (param i32)))
            (table funcref (elem $fail))
            (func (export \"f\") (result f64 i32)
                (i32.const 5) (drop)
                (call $mix (i32.const 1) (i64.const 2) (f32.const 3.5) (f64.const 4.25)))
            (func (export \"tail\") (result f64 i32)
                (return_call $mix (i32.const 1) (i64.const 2) (f32.const 3.5) (f64.const 4.25)))
            (func (export \"fail\") (param i32) (call $fail (local.get 0)))
            (func (export \"fail indirectly\") (param i32) (call_indirect (type $t) (local.get 0) (i32.const 0)))
            (func (export \"fail in place\") (param i32) (return_call $fail (local.get 0))))",
    )
    .unwrap();
    let mix = Func::wrap(&mut store, |a: i32, b: i64, c: f32, d: f64| (f64::from(a) + b as f64 + f64::from(c) + d, a + 41));
    let fail = Func::wrap(&mut store, |code: i32| -> Result<(), Error> { Err(Error::msg(format!("code {code}"))) });
    let instance = Instance::new(&mut store, &module, &[mix.into(), fail.into()]).unwrap();
    assert_eq!(call::<_, (f64, i32)>(&mut store, instance, "f", ()).unwrap(), (10.75, 42));
    assert_eq!(call::<_, (f64, i32)>(&mut store, instance, "tail", ()).unwrap(), (10.75, 42));
    for (name, place) in [("fail", (4, "call")), ("fail indirectly", (5, "call_indirect")), ("fail in place", (6, "return_call"))]
    {
        let error = call::<_, ()>(&mut store, instance, name, 7).unwrap_err();
        assert!(format!("{error:#}").contains("code 7"), "{error:?}");
        assert_eq!(frames(&error), [place]);
    }
}

#[test]
fn a_host_function_that_panics_unwinds_through_the_guest() {
    let engine = Engine::new(&config()).unwrap();
    let mut store = Store::new(&engine, ());
    store.set_epoch_deadline(u64::MAX);
    let wat = "(module (import \"h\" \"panic\" (func $panic)) (func (export \"f\") (call $panic)) (func (export \"g\")))";
    let module = Module::new(&engine, wat).unwrap();
    let panic = Func::wrap(&mut store, || -> () { std::panic::resume_unwind(Box::new("the host's own")) });
    let instance = Instance::new(&mut store, &module, &[panic.into()]).unwrap();
    let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| call::<_, ()>(&mut store, instance, "f", ())));
    assert_eq!(payload.unwrap_err().downcast_ref::<&str>(), Some(&"the host's own"));
    call::<_, ()>(&mut store, instance, "g", ()).unwrap();
}

#[test]
fn the_guest_and_the_host_call_each_other_until_the_stack_ends() {
    let engine = Engine::new(&config()).unwrap();
    let mut store = Store::new(&engine, ());
    store.set_epoch_deadline(u64::MAX);
    let wat = "(module (import \"h\" \"again\" (func $again (param i32) (result i32)))
        (func (export \"f\") (param i32) (result i32)
            (if (result i32) (local.get 0)
                (then (i32.add (i32.const 1) (call $again (i32.sub (local.get 0) (i32.const 1)))))
                (else (i32.const 0)))))";
    let module = Module::new(&engine, wat).unwrap();
    let again = Func::wrap(&mut store, |mut caller: crate::Caller<'_, ()>, depth: i32| -> Result<i32, Error> {
        let func = caller.get_export("f").and_then(|export| export.into_func()).expect("the guest exports f");
        func.typed::<i32, i32>(&caller)?.call(&mut caller, depth)
    });
    let instance = Instance::new(&mut store, &module, &[again.into()]).unwrap();
    assert_eq!(call::<_, i32>(&mut store, instance, "f", 20).unwrap(), 20);
    let error = call::<_, i32>(&mut store, instance, "f", i32::MAX).unwrap_err();
    assert_eq!(trap(&error), Trap::StackOverflow);
    assert_eq!(call::<_, i32>(&mut store, instance, "f", 20).unwrap(), 20);
}

/// Several results, tail calls that need fewer and more slots than their callers, and cleared locals.
#[test]
fn calls_and_returns_in_an_instance_stay_in_assembly() {
    let module = |more: &str| {
        format!(
            "(module
                (type $t (func (param i64 i64) (result i64 i64)))
                (table funcref (elem $swap $sum))
                (func $swap (type $t) {more} (return (local.get 1) (local.get 0)))
                (func $three (param i64) (result i64 i64 i64) {more} local.get 0 i64.const 1 i64.const 2)
                (func $sum (type $t) (local i64) {more}
                    (if (i64.eqz (local.get 0)) (then (return (i64.const 5) (local.get 1))))
                    (local.set 2 (i64.const 9))
                    (return_call $step
                        (i64.sub (local.get 0) (i64.const 1)) (i64.add (local.get 1) (local.get 0)) (i32.const 7)))
                (func $step (param i64 i64 i32) (result i64 i64) (local i64 i64) {more}
                    (return_call_indirect (type $t)
                        (local.get 0) (i64.add (local.get 1) (i64.add (local.get 3) (local.get 4))) (i32.const 1)))
                (func (export \"f\") (result i64) {more}
                    (i64.sub (call $swap (i64.const 1) (i64.const 2)))
                    (i64.sub (call_indirect (type $t) (i64.const 30) (i64.const 50) (i32.const 0)))
                    (i64.add (i64.sub (i64.add (call $three (i64.const 10)))))
                    (i64.add (i64.add (call $sum (i64.const 100) (i64.const 0))))
                    i64.add))"
        )
    };
    let configs = [config(), config().consume_fuel(true).clone(), config().epoch_interruption(true).clone()];
    for (config, more) in configs.iter().flat_map(|config| [(config, ""), (config, "(local v128)")]) {
        let (mut store, instance) = instantiate(config, &module(more));
        let _ = store.set_fuel(u64::MAX >> 1);
        store.set_epoch_deadline(1);
        // The first call of each function leaves, to find its superinstructions.
        let first: i64 = call(&mut store, instance, "f", ()).unwrap();
        portable_log::take();
        let found: i64 = call(&mut store, instance, "f", ()).unwrap();
        assert_eq!(found, first, "{config:?} {more}");
        assert_eq!(found, (2 - 1) + ((50 - 30) + (10 - (1 + 2)) + (5 + 5050)), "{config:?} {more}");
        assert_eq!(
            portable_log::take(),
            BTreeSet::from([Opcode::End]),
            "only the return from the base frame leaves: {config:?} {more}"
        );
    }
}
