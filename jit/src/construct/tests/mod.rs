//! Tests of the shape of the SSA, of robustness, and of agreement with the bytecode.

mod cytron;
mod limits;
mod oracle;
mod random;
mod reference;

use super::{BuildStats, build};
use crate::analysis::verify;
use crate::ir::{Entry, Func, Op, Value, print};
use crate::request::Options;
use bumpalo::Bump;
use weir_bytecode::{Module, validate};

fn module(text: &str) -> Module {
    validate::parse(wat::parse_str(text).unwrap().into()).unwrap()
}

/// The first phi of `func` whose operands are all one other value, if there is one.
fn trivial_phi(func: &Func<'_>) -> Option<Value> {
    func.blocks().flat_map(|block| func.phis(block)).find(|&phi| {
        let mut others: Vec<Value> = func.args(phi).iter().copied().filter(|&arg| arg != phi).collect();
        others.dedup();
        others.len() < 2
    })
}

/// The options that add operations to the code.
fn all_options() -> Options {
    Options { fuel: true, poll: true, ..Options::default() }
}

/// Builds and verifies every form of every function, and passes text and counters to `check`.
fn each_form(text: &str, options: &Options, mut check: impl FnMut(u32, Entry, &str, BuildStats)) {
    let module = module(text);
    for (i, body) in module.bodies.iter().enumerate() {
        let merged = Options { peel_limit: 0, ..options.clone() };
        let loops = body.loops.iter().flat_map(|info| [(Entry::Osr(info.pc), options), (Entry::Osr(info.pc), &merged)]);
        for (entry, options) in std::iter::once((Entry::Call, options)).chain(loops) {
            let (arena, mut stats) = (Bump::new(), BuildStats::default());
            let index = module.imported_funcs + i as u32;
            let func = build(&arena, &module, index, entry, options, &mut stats).unwrap();
            if let Err(error) = verify::verify(&func, Some(&module)) {
                panic!("{error}\n{}", print::print(&func));
            }
            assert_eq!(trivial_phi(&func), None);
            assert_eq!(stats.counters.phis as usize, func.blocks().map(|block| func.phis(block).count()).sum::<usize>());
            check(index, entry, &print::print(&func), stats);
        }
    }
}

#[test]
fn a_loop_has_phis_for_variables_that_change() {
    let text = r#"(module (func (param i32 i32) (result i32) (local i32 i64)
        loop $l
          local.get 2 local.get 1 i32.add local.set 2
          local.get 0 i32.const 1 i32.sub local.tee 0
          br_if $l
        end
        local.get 2 local.get 1 i32.add))"#;
    each_form(text, &Options::default(), |_, _, text, stats| {
        assert_eq!((stats.counters.phis, stats.counters.trivial_phis), (2, 0), "{text}");
        assert!(!text.contains(Op::Poll.name()) && !text.contains(Op::Fuel.name()));
    });
}

/// The text of the only function of a module with these fields, built for entry by a call.
fn built(fields: &str) -> (String, BuildStats) {
    let mut result = None;
    each_form(&format!("(module {fields})"), &Options::default(), |_, entry, text, stats| {
        if entry == Entry::Call {
            result = Some((text.to_string(), stats));
        }
    });
    result.expect("there is a function")
}

/// The lines of a function's SSA, without the first one and without pcs.
fn lines(text: &str) -> Vec<String> {
    let line = |line: &str| line.split('@').next().unwrap().trim().to_string();
    text.lines().skip(1).map(line).collect()
}

#[test]
fn variables_that_a_nest_of_loops_does_not_assign_pass_through() {
    let (text, stats) = built(
        "(func (param i32 i32) (result i32)
           loop loop loop
             local.get 0 local.get 1 i32.sub local.tee 0 br_if 0 local.get 0 br_if 1 local.get 0 br_if 2
           end end end
           local.get 1)",
    );
    // Three headers, each with a phi for local 0; none was placed for local 1.
    assert_eq!((stats.counters.phis, stats.counters.trivial_phis), (3, 0), "{text}");
}

#[test]
fn a_join_has_a_phi_where_values_differ() {
    let arms = |first: &str, second: &str| {
        built(&format!("(func (param i32 i32) (result i32) local.get 0 if {first} else {second} end local.get 1)")).1
    };
    assert_eq!(arms("i32.const 1 local.set 1", "").counters.phis, 1);
    assert_eq!(arms("local.get 0 local.set 1", "local.get 0 local.set 1").counters.phis, 0);
    let same = arms("local.get 1 local.set 1", "").counters;
    assert_eq!((same.phis, same.trivial_phis), (0, 0));
    // Results of labels are joined in the same way.
    let of_label = |first: &str, second: &str| {
        let text = format!("(func (param i32 i32) (result i32) local.get 0 if (result i32) {first} else {second} end)");
        built(&text).1.counters.phis
    };
    assert_eq!(of_label("local.get 0", "local.get 1"), 1);
    assert_eq!(of_label("local.get 1", "local.get 1"), 0);
}

#[test]
fn a_loop_parameter_is_a_phi_unless_nothing_comes_back() {
    let count = |branch: &str| {
        let text = format!("(func (param i32) (result i32) i32.const 5 loop (param i32) (result i32) {branch} end)");
        let (text, stats) = built(&text);
        (stats.counters.phis, stats.counters.trivial_phis, text.matches("branch").count())
    };
    assert_eq!(count("i32.const 1 i32.add local.get 0 br_if 0"), (1, 0, 1));
    // The same value comes back.
    assert_eq!(count("local.get 0 br_if 0"), (0, 1, 1));
    assert_eq!(count("i32.const 0 br_if 0"), (0, 1, 0));
}

#[test]
fn constants_fold_and_take_edges_away() {
    let (text, _) = built(
        "(func (param i32) (result i32)
           i32.const 6 i32.const 7 i32.mul i32.const 42 i32.ne
           if unreachable end
           block i32.const 1 br_if 0 local.get 0 return end
           i32.const 2 if (result i32) local.get 0 else i32.const 9 end
           i32.const 0 i32.add)",
    );
    let expected =
        ["b0:", "v0: i32 = param 0", "v1: i32 = const 6", "v2: i32 = const 7", "v3: i32 = const 42", "v4: i32 = const 0"];
    assert_eq!(lines(&text)[..6], expected, "{text}");
    assert!(!text.contains("trap") && !text.contains("branch") && !text.contains("add"), "{text}");
    assert!(text.trim_end().contains("return v0"), "{text}");
}

#[test]
fn nothing_folds_to_a_nan_or_a_trap() {
    for (op, ty) in [("i32.div_u", "i32"), ("i32.rem_s", "i32"), ("f64.div", "f64"), ("f64.sub", "f64")] {
        let constants = if op == "f64.sub" { "f64.const inf f64.const inf" } else { "T.const 0 T.const 0" };
        let (text, _) = built(&format!("(func (result {ty}) {} {op})", constants.replace('T', ty)));
        assert!(text.contains("div") || text.contains("rem") || text.contains("fsub"), "{text}");
    }
    let (text, _) = built("(func (result i32) i32.const 0x80000000 i32.const -1 i32.div_s)");
    assert!(text.contains("div_s"), "{text}");
    let (text, _) = built("(func (result i32) f32.const nan i32.trunc_f32_s)");
    assert!(text.contains("trunc_s"), "{text}");
}

#[test]
fn equal_pure_operations_of_a_block_are_one() {
    let twice = "local.get 0 local.get 1 i32.add local.get 0 local.get 1 i32.add";
    assert_eq!(built(&format!("(func (param i32 i32) (result i32) {twice} i32.mul)")).0.matches("add").count(), 1);
    // Instructions that may trap are not shared.
    let divisions = twice.replace("add", "div_u");
    assert_eq!(built(&format!("(func (param i32 i32) (result i32) {divisions} i32.mul)")).0.matches("div_u").count(), 2);
}

#[test]
fn branches_to_the_function_return() {
    let (text, stats) = built(
        "(func (param i32) (result i32 i64)
           i32.const 1 i64.const 2 local.get 0 br_if 0
           local.get 0 br_table 0 0 0)",
    );
    assert_eq!((text.matches("return").count(), text.matches("br_table").count(), stats.counters.phis), (2, 0, 0), "{text}");
    let (text, stats) = built(
        "(func (param i32) (result i32)
           block (result i32) local.get 0 local.get 0 br_table 0 1 1 0 end i32.const 1 i32.add)",
    );
    assert_eq!(
        (text.matches("return").count(), text.matches("[b2, b1, b1, b2]").count(), stats.counters.phis),
        (2, 1, 0),
        "{text}"
    );
}

#[test]
fn calls_are_followed_by_their_results() {
    let (text, _) = built(
        r#"(type $two (func (param i32) (result i32 i64)))
           (import "m" "f" (func $f (type $two))) (table 3 funcref)
           (func (param i32) (result i64)
             local.get 0 call $f
             drop
             local.get 0 call_indirect (type $two)
             drop local.get 0 return_call_indirect (param i32) (result i64))"#,
    );
    let expected = [
        "v1: i32 = call f0(v0)",
        "v2: i64 = result 1 v1",
        "v3: i32 = call_indirect t0 table0 (v1, v0)",
        "v4: i64 = result 1 v3",
        "return_call_indirect t1 table0 (v3, v0)",
    ];
    assert_eq!(lines(&text)[2..], expected);
}

/// The OSR form of the last loop of a one-function module.
fn osr_of_last_loop(func: &str) -> (Vec<String>, BuildStats) {
    let mut last = None;
    each_form(&format!("(module {func})"), &Options::default(), |_, _, text, stats| last = Some((lines(text), stats)));
    last.unwrap()
}

#[test]
fn osr_loads_live_values() {
    // Local 1 is dead, local 2 is overwritten before it is read.
    let (lines, _) = osr_of_last_loop(
        "(func (param i32) (result i64) (local i32 i32 i64)
           i64.const 3
           loop
             i32.const 1 local.set 2
             local.get 3 i64.const 1 i64.add local.set 3
             local.get 0 local.get 2 i32.sub local.tee 0 br_if 0
           end
           local.get 3 i64.add)",
    );
    let mut slots: Vec<&str> = lines.iter().filter_map(|line| line.split("osr_slot ").nth(1)).collect();
    slots.sort_unstable();
    // Two locals of four, and the operand, which is after the frame's header.
    assert_eq!(slots, ["0", "3", "8"]);
}

#[test]
fn osr_of_an_inner_loop_comes_back_through_the_outer_loop() {
    let (lines, stats) = osr_of_last_loop(
        "(func (param i32 i32 i32) (result i32)
           loop $outer
             local.get 1 i32.const 1 i32.add local.set 1
             local.get 1
             loop $inner
               local.get 0 i32.const 1 i32.sub local.tee 0 br_if $inner
             end
             local.tee 0
             br_if $outer
           end
           local.get 2)",
    );
    // The inner header merges local 0, and local 1 and the operand, which only the outer loop changes. Local 2,
    // which nothing assigns, is loaded once.
    assert_eq!(stats.counters.phis, 3, "{lines:#?}");
    assert!(
        lines.contains(&"b0:".to_string()) && lines.iter().any(|line| line.starts_with("b2: preds b1, b0, b2")),
        "{lines:#?}"
    );
}

#[test]
fn osr_omits_code_that_is_never_reached_again() {
    let (lines, stats) = osr_of_last_loop(
        "(func (param i32) (local i32)
           loop $outer
             local.get 0 local.set 1
             local.get 0 br_if $outer
             loop $inner
               local.get 1 i32.const 1 i32.sub local.tee 1 br_if $inner
             end
           end)",
    );
    let blocks = lines.iter().filter(|line| line.starts_with('b') && line.contains(':')).count();
    assert_eq!((blocks, stats.counters.phis), (3, 1), "{lines:#?}");
}

#[test]
fn an_osr_entry_must_be_a_live_loop() {
    let module = module(
        "(module (func unreachable loop br 0 end) (func block br 0 loop br 0 end end) (func i32.const 1 if loop end end))",
    );
    let refusal = |func: u32, pc| {
        let arena = Bump::new();
        build(&arena, &module, func, Entry::Osr(pc), &Options::default(), &mut BuildStats::default())
            .err()
            .map(|error| error.to_string())
    };
    let of_loop = |func: usize| refusal(func as u32, module.bodies[func].loops[0].pc);
    assert_eq!(of_loop(0).as_deref(), Some("there is no SSA for entry into dead code"));
    assert_eq!(of_loop(1).as_deref(), Some("there is no SSA for entry into dead code"));
    assert_eq!(of_loop(2), None);
    assert_eq!(refusal(0, module.bodies[0].entry).as_deref(), Some("there is no SSA for entry at no loop"));
}
