//! Blocks, loops and branches.

use super::{run, run_trap};
use crate::Trap;

#[test]
fn br_table_takes_the_default_for_any_other_index() {
    let wat = "(module (func (export \"f\") (param i32) (result i32)
        (block (block (block (block (br_table 2 0 1 3 (local.get 0)))
            (return (i32.const 10))) (return (i32.const 11))) (return (i32.const 12))) (i32.const 13)))";
    for (index, expected) in [(0, 12), (1, 10), (2, 11), (3, 13), (4, 13), (i32::MAX, 13), (-1, 13), (i32::MIN, 13)] {
        assert_eq!(run::<_, i32>(wat, index).unwrap(), expected, "{index}");
    }
}

#[test]
fn br_table_with_more_labels_than_a_byte_counts() {
    let labels: String = (0..300).map(|i| if i % 3 == 0 { "1 " } else { "0 " }).collect();
    let wat = format!(
        "(module (func (export \"f\") (param i32) (result i32)
            (block (block (br_table {labels} 0 (local.get 0))) (return (i32.const 0))) (i32.const 1)))"
    );
    for index in [0, 1, 2, 3, 126, 127, 128, 129, 297, 298, 299, 300, 1000] {
        let expected = i32::from(index < 300 && index % 3 == 0);
        assert_eq!(run::<_, i32>(&wat, index).unwrap(), expected, "{index}");
    }
}

#[test]
fn branches_keep_results_and_drop_what_is_below() {
    let wat = "(module (func (export \"f\") (param i32) (result i32 i64 i32)
        (i32.const 5)
        (block (result i32 i64)
            (i32.const 99) (i64.const 98)
            (i32.const 1) (i64.const 2)
            (br_if 0 (local.get 0))
            (drop) (drop) (drop) (drop)
            (i32.const 3) (i64.const 4)
            (br 0))
        (i32.const 6)
        (br 0)))";
    // The 5 stays below the function's results and is discarded with its frame.
    assert_eq!(run::<_, (i32, i64, i32)>(wat, 1).unwrap(), (1, 2, 6));
    assert_eq!(run::<_, (i32, i64, i32)>(wat, 0).unwrap(), (3, 4, 6));
}

#[test]
fn loops_with_parameters() {
    // gcd(a, b) with both on the operand stack.
    let wat = "(module (func (export \"f\") (param i64 i64) (result i64)
        (local.get 0) (local.get 1)
        (loop (param i64 i64) (result i64)
            (local.set 1) (local.set 0)
            (if (result i64) (i64.eqz (local.get 1))
                (then (local.get 0))
                (else
                    (local.get 1)
                    (i64.rem_u (local.get 0) (local.get 1))
                    (br 1))))))";
    assert_eq!(run::<_, i64>(wat, (1071i64, 462i64)).unwrap(), 21);
    assert_eq!(run::<_, i64>(wat, (17i64, 0i64)).unwrap(), 17);
}

#[test]
fn a_branch_out_of_nested_loops() {
    let wat = "(module (func (export \"f\") (param i32) (result i32) (local i32 i32)
        (block $done (loop $outer
            (local.set 2 (i32.const 0))
            (loop $inner
                (local.set 1 (i32.add (local.get 1) (i32.const 1)))
                (br_if $done (i32.ge_u (local.get 1) (local.get 0)))
                (local.set 2 (i32.add (local.get 2) (i32.const 1)))
                (br_if $inner (i32.lt_u (local.get 2) (i32.const 7))))
            (br $outer)))
        (i32.add (i32.mul (local.get 1) (i32.const 10)) (local.get 2))))";
    assert_eq!(run::<_, i32>(wat, 24).unwrap(), 242);
}

#[test]
fn an_if_without_else() {
    let wat = "(module (func (export \"f\") (param i32) (result i32) (local i32)
        (if (local.get 0) (then (local.set 1 (i32.const 1))))
        (if (i32.eqz (local.get 0)) (then) (else (local.set 1 (i32.add (local.get 1) (i32.const 10)))))
        (local.get 1)))";
    assert_eq!(run::<_, i32>(wat, 5).unwrap(), 11);
    assert_eq!(run::<_, i32>(wat, 0).unwrap(), 0);
}

#[test]
fn a_branch_to_the_functions_own_label_returns() {
    let wat = "(module
        (func $g (param i32) (result i32)
            (i32.const 1) (i32.const 2)
            (block (result i32) (br_table 0 1 (i32.const 3) (local.get 0)))
            (i32.add) (i32.add))
        (func (export \"f\") (param i32) (result i32) (i32.add (i32.const 100) (call $g (local.get 0)))))";
    assert_eq!(run::<_, i32>(wat, 0).unwrap(), 106);
    assert_eq!(run::<_, i32>(wat, 1).unwrap(), 103);
}

#[test]
fn types_of_blocks_and_selects_with_several_bytes() {
    // Enough types that the block's type index takes two bytes.
    let types: String = (0..70).map(|i| format!("(type (func {}))", "(param i32) ".repeat(i))).collect();
    let wat = format!(
        "(module {types} (type $pair (func (param i32) (result i32 i32)))
            (func (export \"f\") (result i32)
                (block (type $pair) (i32.const 1) (i32.const 2))
                (i32.sub)))"
    );
    let wat = wat.replace("(block (type $pair) (i32.const 1) (i32.const 2))", "(i32.const 7) (block (type $pair) (i32.const 2))");
    assert_eq!(run::<_, i32>(&wat, ()).unwrap(), 5);
}

#[test]
fn many_locals() {
    let wat = "(module (func (export \"f\") (param i64) (result i64) (local i32 i64)
        LOCALS
        (local.set 299 (local.get 0))
        (local.set 130 (i64.add (local.get 299) (local.tee 128 (i64.const 5))))
        (i64.add (local.get 130) (i64.add (local.get 128) (local.get 298)))))";
    let wat = wat.replace("LOCALS", &format!("(local {})", "i64 ".repeat(300)));
    assert_eq!(run::<_, i64>(&wat, 100i64).unwrap(), 110);
}

#[test]
fn traps_in_their_own_words() {
    let body = |body: &str| run_trap(&format!("(module (func (export \"f\") {body}))"), ());
    assert_eq!(body("unreachable"), Trap::UnreachableCodeReached);
    assert_eq!(body("(drop (i32.div_s (i32.const 1) (i32.const 0)))"), Trap::IntegerDivisionByZero);
    assert_eq!(body("(drop (i64.div_s (i64.const 0x8000000000000000) (i64.const -1)))"), Trap::IntegerOverflow);
    assert_eq!(body("(drop (i32.trunc_f64_s (f64.const nan)))"), Trap::BadConversionToInteger);
    assert_eq!(body("(drop (i32.trunc_f64_u (f64.const 4294967296)))"), Trap::IntegerOverflow);
}
