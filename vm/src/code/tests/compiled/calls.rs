//! Calls of every kind: the places of arguments and results, the pinned register, and the use of stack.

use super::super::rig::World;
use super::{Guest, OUTSIDE};
use weir_bytecode::Trap;
use weir_contract::{InstanceCtx, MAX_NATIVE_FRAME, TableEntry};
use weir_jit::Refusal;
use weir_jit::ir::eval::Callee;

/// `i32 f64 i64 f32` over and over: beyond 12 integers and 16 floats in all, so both classes overflow.
fn mixture(n: usize) -> Vec<&'static str> {
    (0..n).map(|i| ["i32", "f64", "i64", "f32"][i % 4]).collect()
}

/// A function that calls or tail-calls `callee` with its parameters, those of each type in reverse order, and returns
/// the results of the call.
fn forwarder(index: u32, callee: u32, params: &[&str], results: &[&str], tail: bool) -> String {
    let mut text = format!("func {index} ({}) -> ({})\n b0:\n", params.join(", "), results.join(", "));
    for (i, ty) in params.iter().enumerate() {
        text += &format!("v{i}: {ty} = param {i}\n");
    }
    let reversed: Vec<String> = reversal(params).iter().map(|i| format!("v{i}")).collect();
    if tail {
        return text + &format!("return_call f{callee}({})\n", reversed.join(", "));
    }
    let first = params.len();
    text += &format!("v{first}: {} = call f{callee}({})\n", results[0], reversed.join(", "));
    for (i, ty) in results.iter().enumerate().skip(1) {
        text += &format!("v{}: {ty} = result {i} v{first}\n", first + i);
    }
    let list: Vec<String> = (0..results.len()).map(|i| format!("v{}", first + i)).collect();
    text + &format!("return {}\n", list.join(", "))
}

/// For each parameter, the one of the same type that takes its place.
fn reversal(params: &[&str]) -> Vec<usize> {
    let same = |ty: &str| (0..params.len()).filter(|&i| params[i] == ty).collect::<Vec<_>>();
    (0..params.len())
        .map(|i| {
            let same = same(params[i]);
            let at = same.iter().position(|&j| j == i).unwrap();
            same[same.len() - 1 - at]
        })
        .collect()
}

fn values(types: &[&str], salt: u64) -> Vec<u64> {
    let narrow = |ty: &str| ty == "i32" || ty == "f32";
    types
        .iter()
        .enumerate()
        .map(|(i, ty)| ((i as u64 + 1) * 0x1_0000_0101 * salt) & if narrow(ty) { 0xffff_ffff } else { u64::MAX })
        .collect()
}

/// Native → native → "interpreted", and the results back through all: through registers and overflow slots.
fn arguments_and_results_arrive_whatever_their_number() {
    for (n_params, n_results) in [(1, 1), (3, 4), (12, 1), (28, 4), (60, 4), (300, 4)] {
        let (params, results) = (mixture(n_params), mixture(n_results));
        let func = format!("(func (param {}) (result {}) unreachable)", params.join(" "), results.join(" "));
        let mut guest = Guest::new(&format!("(module {func} {func} {func})"));
        for tail in [false, true] {
            guest.define(&forwarder(0, 1, &params, &results, tail));
            guest.define(&forwarder(1, 2, &params, &results, !tail));
            let args = values(&params, 3);
            OUTSIDE.with_borrow_mut(|outside| outside.calls.clear());
            let answered = guest.call(0, &args).unwrap();
            let calls = OUTSIDE.with_borrow(|outside| outside.calls.clone());
            let wide = args.iter().map(|&arg| arg.into()).collect();
            assert_eq!(calls, [(Callee::Direct(2), wide)], "twice reversed");
            let direct = guest.call(2, &args).unwrap();
            assert_eq!(answered, direct, "what function 2 answers");
        }
    }
}

/// A native callee of many results.
fn many_results() {
    let results = mixture(100);
    let list = results.join(" ");
    let mut guest = Guest::new(&format!("(module (func (result {list}) unreachable) (func (result {list}) unreachable))"));
    let mut text = format!("func 1 () -> ({})\n b0:\n", results.join(", "));
    for (i, ty) in results.iter().enumerate() {
        text += &format!("v{i}: {ty} = const {i}{}\n", if ty.starts_with('f') { ".0" } else { "" });
    }
    let names: Vec<String> = (0..100).map(|i| format!("v{i}")).collect();
    guest.define(&(text + &format!("return {}\n", names.join(", "))));
    guest.define(&forwarder(0, 1, &[], &results, false));
    let expected: Vec<u64> = results
        .iter()
        .enumerate()
        .map(|(i, &ty)| match ty {
            "f32" => u64::from((i as f32).to_bits()),
            "f64" => (i as f64).to_bits(),
            _ => i as u64,
        })
        .collect();
    assert_eq!(guest.call(0, &[]), Ok(expected));
}

fn calls_agree_with_the_evaluator() {
    let mut guest = Guest::new(
        "(module (memory 1) (global (mut i32) (i32.const 0))
           (func (param i32 i64) (result i64) unreachable)
           (func (param i64 f32) (result i64 i32 f64) unreachable)
           (func unreachable)
           (func (param i32 i64) (result i64) unreachable))",
    );
    guest.agree(
        "func 0 (i32, i64) -> i64
         b0:
           v0: i32 = param 0
           v1: i64 = param 1
           v2: f32 = convert_s v0
           store v0, v1
           global_set g0 v0
           v3: i64 = call f1(v1, v2)
           v4: i32 = result 1 v3
           v5: f64 = result 2 v3
           call f2()
           v6: i64 = load v0
           v7: i32 = global_get g0
           v8: i32 = add v7, v4
           v9: i64 = add v6, v3
           v10: i64 = reinterpret v5
           v11: i64 = xor v9, v10
           branch v0, b1, b2
         b1:
           return_call f3(v8, v11)
         b2:
           return v11",
        &[&[0, 5], &[16, 0xffff_ffff_ffff]],
    );
}

/// A million tail calls between two functions of different signatures, both with arguments in overflow slots.
fn tail_calls_need_no_stack() {
    let (a, b) = (mixture(30), mixture(40));
    let (a_list, b_list) = (a.join(" "), b.join(" "));
    let mut guest = Guest::new(&format!(
        "(module (func (param {a_list}) (result i64) unreachable) (func (param {b_list}) (result i64) unreachable))"
    ));
    let step = |index: u32, from: &[&str], to: &[&str]| {
        let mut text = format!("func {index} ({}) -> i64\n b0:\n", from.join(", "));
        for (i, ty) in from.iter().enumerate() {
            text += &format!("v{i}: {ty} = param {i}\n");
        }
        // Parameter 2 counts down, parameter 26, which neither has a register for, is handed along.
        let args: Vec<String> = (0..to.len()).map(|i| if i == 2 { "v100".into() } else { format!("v{}", i % 28) }).collect();
        text + &format!(
            "v101: i64 = const 1\n v100: i64 = sub v2, v101\n v102: i32 = eqz v2\n branch v102, b2, b1\n b1:\n return_call f{}({})\n b2:\n return v26\n",
            1 - index,
            args.join(", ")
        )
    };
    guest.define(&step(0, &a, &b));
    guest.define(&step(1, &b, &a));
    let mut args = values(&a, 1);
    args[2] = 1_000_000;
    args[26] = 4711;
    assert_eq!(guest.call(0, &args), Ok(vec![4711]));
}

const TABLE: &str = "(module
    (type $f (func (param i64) (result i64))) (type $other (func (result i64)))
    (table 4 funcref) (table i64 4 funcref)
    (func (param i64 i32) (result i64) unreachable)
    (func (param i64 i64) (result i64) unreachable)
    (func (type $f) unreachable))";

/// Element 1 of each table is function 2, of another instance; element 2 has another type; the others are null.
fn fill_tables(guest: &mut Guest, other: *mut InstanceCtx) {
    for table in &mut guest.world.tables {
        let entry = TableEntry { cell: guest.code.cell(2), sig: guest.sig_ids[0], padding: 0, instance: other, reference: 1 };
        // SAFETY: tables have four elements.
        unsafe {
            *table.entries.add(1) = entry;
            *table.entries.add(2) = TableEntry { sig: guest.sig_ids[1], ..entry };
        }
    }
}

fn indirect_calls_check_what_they_find() {
    let mut guest = Guest::new(TABLE);
    let instance = guest.world.instance();
    fill_tables(&mut guest, instance);
    for call in ["v9: i64 = call_indirect", "return_call_indirect"] {
        for (func, index, table) in [(0, "i32", 0), (1, "i64", 1)] {
            guest.define(&format!(
                "func {func} (i64, {index}) -> i64\n b0:\n v0: i64 = param 0\n v1: {index} = param 1\n {call} t0 table{table} (v0, v1) @0x31\n{}",
                if call.starts_with('v') { "return v9" } else { "" }
            ));
            let expected = guest.call(2, &[77]).unwrap();
            let dirt = if index == "i32" { 0xabc << 32 } else { 0 };
            assert_eq!(guest.call(func, &[77, dirt | 1]), Ok(expected));
            assert_eq!(guest.call(func, &[77, dirt]), Err(Trap::IndirectCallToNull));
            assert_eq!(guest.trap().1, 0x31);
            assert_eq!(guest.call(func, &[77, dirt | 2]), Err(Trap::BadSignature));
            for outside in [4, 5, 0x7fff_ffff, 0xffff_ffff] {
                assert_eq!(guest.call(func, &[77, outside]), Err(Trap::TableOutOfBounds));
            }
            let far = if index == "i64" { Err(Trap::TableOutOfBounds) } else { Ok(guest.call(2, &[77]).unwrap()) };
            assert_eq!(guest.call(func, &[77, 0x1_0000_0001]), far);
        }
    }
}

/// The callee runs in its own instance, and afterwards the caller is back in its own.
fn calls_across_instances_restore_the_pinned_register() {
    let wat = "(module (type (func (param i64) (result i64)))
        (import \"\" \"f\" (func (param i64) (result i64)))
        (global (mut i64) (i64.const 0)) (table (export \"table\") 4 funcref)
        (func (param i64) (result i64) unreachable)
        (func (param i64) (result i64) unreachable)
        (func (param i64 i32) (result i64) unreachable)
        (func (result i64) unreachable))";
    let mut guest = Guest::new(wat);
    assert_eq!(guest.module.own_elements(0), None);
    let mut other = World::new(&guest.module);
    let (layout, sig) = (guest.world.layout, guest.sig_ids[0]);
    *guest.world.tail(layout.global(0)) = 1000;
    *other.tail(layout.global(0)) = 1;
    // The other instance runs on the same store and stack.
    // SAFETY: both contexts are complete.
    unsafe {
        (*other.instance()).stack = &mut *guest.world.stack;
        (*other.instance()).store = &mut *guest.world.store;
    }
    let (cell, instance): (*const _, _) = (guest.code.cell(2), other.instance());
    guest.world.imports[0].cell = cell;
    guest.world.imports[0].instance = instance;
    let element = TableEntry { cell, sig, padding: 0, instance, reference: 1 };
    // SAFETY: tables have four elements.
    unsafe { *guest.world.tables[0].entries = element };
    // Function 2 adds its instance's global.
    guest.define("func 2 (i64) -> i64\n b0:\n v0: i64 = param 0\n v1: i64 = global_get g0\n v2: i64 = add v0, v1\n return v2");

    // The caller itself may have a copy of its instance. Function 4, which it calls next, reads the pinned register.
    guest.define("func 4 () -> i64\n b0:\n v0: i64 = global_get g0\n return v0");
    let after = "v8: i64 = call f4()\n v9: i64 = mul v8, v2\n return v9";
    guest.define(&format!("func 1 (i64) -> i64\n b0:\n v0: i64 = param 0\n v2: i64 = call f0(v0)\n {after}"));
    assert_eq!(guest.call(1, &[5]), Ok(vec![6000]));
    guest.define(&format!(
        "func 3 (i64, i32) -> i64\n b0:\n v0: i64 = param 0\n v1: i32 = const 0\n v2: i64 = call_indirect t0 table0 (v0, v1)\n {after}"
    ));
    assert_eq!(guest.call(3, &[5, 0]), Ok(vec![6000]));
}

/// A call of a function of the same instance that tail-calls into another instance restores the pinned register.
fn foreign_tail_calls_restore_the_pinned_register() {
    let wat = "(module (import \"\" \"f\" (func (param i64) (result i64)))
        (global (mut i64) (i64.const 0))
        (func (param i64) (result i64) unreachable)
        (func (param i64) (result i64) (return_call 0 (local.get 0)))
        (func (result i64) unreachable)
        (func (param i64) (result i64) unreachable))";
    let mut guest = Guest::new(wat);
    assert!(guest.module.effects.foreign_tail_calls);
    let mut other = World::new(&guest.module);
    let layout = guest.world.layout;
    *guest.world.tail(layout.global(0)) = 1000;
    // SAFETY: both contexts are complete.
    unsafe {
        (*other.instance()).stack = &mut *guest.world.stack;
        (*other.instance()).store = &mut *guest.world.store;
    }
    // "Interpreted", in the other instance.
    guest.world.imports[0].cell = guest.code.cell(4);
    guest.world.imports[0].instance = other.instance();
    guest.define("func 2 (i64) -> i64\n b0:\n v0: i64 = param 0\n return_call f0(v0)");
    guest.define("func 1 (i64) -> i64\n b0:\n v0: i64 = param 0\n v1: i64 = call f2(v0)\n v2: i64 = call f3()\n return v2");
    guest.define("func 3 () -> i64\n b0:\n v0: i64 = global_get g0\n return v0");
    assert_eq!(guest.call(1, &[5]), Ok(vec![1000]));
}

fn installing_code_redirects_existing_callers() {
    let mut guest =
        Guest::new("(module (func (param i64) (result i64) unreachable) (func (param i64) (result i64) unreachable))");
    guest.define("func 0 (i64) -> i64\n b0:\n v0: i64 = param 0\n v1: i64 = call f1(v0) @0x25\n return v1");
    let interpreted = guest.call(1, &[3]).unwrap();
    assert_eq!(guest.call(0, &[3]), Ok(interpreted));
    guest.define("func 1 (i64) -> i64\n b0:\n v0: i64 = param 0\n v1: i64 = add v0, v0\n return v1");
    assert_eq!(guest.call(0, &[3]), Ok(vec![6]));
    guest.define("func 1 (i64) -> i64\n b0:\n v0: i64 = param 0\n trap UnreachableCodeReached @0x41");
    assert_eq!(guest.call(0, &[3]), Err(Trap::UnreachableCodeReached));
    let frames = super::SCRIPT.with_borrow_mut(|script| script.backtraces.pop().unwrap());
    assert_eq!(frames.iter().map(|site| (site.func, site.pc)).collect::<Vec<_>>(), [(1, 0x41), (0, 0x25)]);
}

/// A function that has `n` values in its frame at once, and calls `f1` meanwhile or not.
fn crowded(n: usize, call: bool) -> String {
    let mut text = String::from("func 0 (i32) -> i64\n b0:\n v0: i32 = param 0\n");
    for i in 1..=n {
        text += &format!("v{i}: i64 = load v0 +{i}\n");
    }
    if call {
        text += "call f1()\n";
    }
    // From first to last, so that each has to be kept, and as left operands, which cannot be read from memory in place.
    for i in n + 1..2 * n {
        text += &format!("v{i}: i64 = sub v{}, v{}\n", i - n + 1, if i == n + 1 { 1 } else { i - 1 });
    }
    text + &format!("return v{}", 2 * n - 1)
}

const CROWDED: &str = "(module (memory 1) (func (param i32) (result i64) unreachable) (func unreachable))";

/// Four thousand words are more than the stack's reserve can hold.
fn huge_frames_are_refused() {
    let guest = Guest::new(CROWDED);
    let arena = bumpalo::Bump::new();
    let func = weir_jit::ir::parse::parse(&arena, &crowded(4200, true)).unwrap();
    assert_eq!(
        guest.compile(&func).unwrap_err(),
        Refusal::Budget { backend: Some(super::BACKEND.get()), what: "the native frame", limit: MAX_NATIVE_FRAME }
    );
}

fn only_small_leaves_go_without_a_stack_check() {
    let mut guest = Guest::new(CROWDED);
    for (words, call, checked) in [(10, false, false), (10, true, true), (700, false, true)] {
        guest.define(&crowded(words, call));
        guest.headroom = 256 << 10;
        assert!(guest.call(0, &[0]).is_ok());
        guest.headroom = 0;
        let end = if checked { Err(Trap::StackOverflow) } else { Ok(vec![0]) };
        assert_eq!(guest.call(0, &[0]), end, "{words} words");
    }
}

each_back_end! {
    arguments_and_results_arrive_whatever_their_number
    many_results
    calls_agree_with_the_evaluator
    tail_calls_need_no_stack
    indirect_calls_check_what_they_find
    calls_across_instances_restore_the_pinned_register
    foreign_tail_calls_restore_the_pinned_register
    installing_code_redirects_existing_callers
    huge_frames_are_refused
    only_small_leaves_go_without_a_stack_check
}
