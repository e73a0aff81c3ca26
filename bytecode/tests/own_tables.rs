//! Private tables: all their functions are those of the instance.

use weir_bytecode::Module;
use weir_bytecode::effects::Effects;
use weir_bytecode::validate::{Options, parse_with};

fn parsed(text: &str, options: Options) -> Module {
    let bytes = wat::parse_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    parse_with(bytes.into(), options).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Of a module with an imported function 0, a function `$own`, and these fields.
fn own_elements(fields: &str) -> Vec<Option<u64>> {
    let text = format!(r#"(module (import "m" "f" (func)) {fields} (func $own))"#);
    let module = parsed(&text, Options::default());
    (0..module.tables.len() as u32).map(|table| module.own_elements(table)).collect()
}

#[test]
fn tables_that_nothing_else_reaches_have_functions_of_their_instance() {
    for fields in [
        "(table 7 funcref)",
        "(table 7 9 funcref) (elem (i32.const 1) $own $own)",
        "(table 7 funcref) (elem (i32.const 1) funcref (ref.func $own) (ref.null func))",
        "(table 7 (ref null func) (ref.func 1))",
        "(table i64 7 funcref) (elem (i64.const 1) func $own)",
        // Nothing writes these into the table.
        "(table 7 funcref) (elem func 0) (elem declare func 0)",
        "(table 7 funcref) (func (drop (table.get (i32.const 1))) (drop (table.size)) (call_indirect (i32.const 1)))",
    ] {
        assert_eq!(own_elements(fields), [Some(7)], "{fields}");
    }
}

#[test]
fn tables_that_others_reach_may_have_other_functions() {
    for fields in [
        r#"(table (import "m" "t") 7 funcref)"#,
        r#"(table (export "t") 7 funcref)"#,
        r#"(table 7 funcref) (export "t" (table 0))"#,
        "(table 7 funcref) (elem (i32.const 1) $own 0)",
        "(table 7 funcref) (elem (i32.const 1) funcref (ref.func $own) (ref.func 0))",
        r#"(global (import "m" "g") funcref) (table 7 funcref) (elem (i32.const 1) funcref (global.get 0))"#,
        "(table 7 (ref null func) (ref.func 0))",
        r#"(global (import "m" "g") funcref) (table 7 funcref (global.get 0))"#,
        "(table 7 funcref) (func (table.set (i32.const 0) (ref.null func)))",
        "(table 7 funcref) (func (drop (table.grow (ref.null func) (i32.const 0))))",
        "(table 7 funcref) (func (table.fill (i32.const 0) (ref.null func) (i32.const 0)))",
        "(table 7 funcref) (func (table.copy (i32.const 0) (i32.const 0) (i32.const 0)))",
        "(table 7 funcref) (elem $e func) (func (table.init $e (i32.const 0) (i32.const 0) (i32.const 0)))",
        // In code that is never reached.
        "(table 7 funcref) (func unreachable (table.set (i32.const 0) (ref.null func)))",
    ] {
        assert_eq!(own_elements(fields), [None], "{fields}");
    }
}

/// The index of `$own` in table 0 of a module with these fields.
fn own_index(fields: &str) -> Option<u64> {
    let text = format!(r#"(module (import "m" "f" (func)) {fields} (func $own) (func $two))"#);
    parsed(&text, Options::default()).own_index(0, 1)
}

#[test]
fn calls_through_a_private_table_reach_its_functions_of_the_type() {
    let of = |fields: &str| {
        let text = format!(
            r#"(module (import "m" "f" (func)) (type $t (func (param i32))) {fields} (func $a (param i32)) (func $b (param i32)) (func $c))"#
        );
        let module = parsed(&text, Options::default());
        let ty = (0..).zip(&module.types).find(|(_, ty)| ty.params.len() == 1).expect("there is such a type").0;
        let callees = module.own_callees(0, ty).map(Iterator::collect::<Vec<u32>>);
        (callees, module.only_callee(0, ty))
    };
    for (fields, callees, only) in [
        ("(table 7 funcref) (elem (i32.const 3) $a $c)", vec![1], Some(1)),
        ("(table 7 funcref) (elem (i32.const 3) $c $b $b)", vec![2, 2], Some(2)),
        ("(table 7 funcref) (elem (i32.const 3) $a $c $b)", vec![1, 2], None),
        ("(table 7 funcref) (elem (i32.const 3) $a) (elem (i32.const 3) $b)", vec![1, 2], None),
        ("(table 7 funcref) (elem (i32.const 1) funcref (ref.null func) (ref.func $b))", vec![2], Some(2)),
        ("(table 7 (ref null func) (ref.func $a)) (elem (i32.const 1) $b)", vec![1, 2], None),
        ("(table 7 (ref null func) (ref.func $a))", vec![1], Some(1)),
        ("(table 7 funcref) (elem (i32.const 3) $c)", vec![], None),
        // Another table has it.
        ("(table 7 funcref) (table 7 funcref) (elem (table 1) (i32.const 0) func $a)", vec![], None),
    ] {
        assert_eq!(of(fields), (Some(callees), only), "{fields}");
    }
    for fields in [
        r#"(table (export "t") 7 funcref) (elem (i32.const 3) $a)"#,
        "(table 7 funcref) (elem (i32.const 3) $a) (func (table.set (i32.const 0) (ref.null func)))",
        "(table 7 funcref) (elem (i32.const 3) $a 0)",
    ] {
        assert_eq!(of(fields), (None, None), "{fields}");
    }
}

#[test]
fn a_function_that_a_private_table_has_once_has_an_index() {
    for (fields, index) in [
        ("(table 7 funcref) (elem (i32.const 3) $own)", 3),
        ("(table 7 funcref) (elem (i32.const 1) $two $two $own $two)", 3),
        ("(table 7 funcref) (elem (i32.const 1) $two) (elem (i32.const 2) $two $own) (elem (i32.const 6) $two)", 3),
        ("(table 7 funcref) (elem (i32.const 2) funcref (ref.null func) (ref.func $own))", 3),
        ("(table i64 7 funcref) (elem (i64.const 3) func $own)", 3),
        // Other tables have it, too.
        ("(table 7 funcref) (table 1 funcref) (elem (i32.const 0) $own) (elem (table 1) (i32.const 0) func $own)", 0),
        (
            r#"(table 7 funcref) (table (export "t") 1 funcref) (elem (table 1) (i32.const 0) func $own) (elem (i32.const 6) $own)"#,
            6,
        ),
    ] {
        assert_eq!(own_index(fields), Some(index), "{fields}");
    }
    for fields in [
        "(table 7 funcref)",
        "(table 7 funcref) (elem (i32.const 3) $two)",
        "(table 7 funcref) (elem (i32.const 3) $own $own)",
        "(table 7 funcref) (elem (i32.const 3) $own) (elem (i32.const 5) $own)",
        // A later segment replaces it.
        "(table 7 funcref) (elem (i32.const 3) $own) (elem (i32.const 3) $two)",
        "(table 7 funcref) (elem (i32.const 3) $two) (elem (i32.const 1) $own)",
        // Instantiation fails, perhaps when another table already has the function.
        "(table 7 funcref) (elem (i32.const 7) $own)",
        "(table 7 funcref) (elem (i32.const -1) $own)",
        "(table 7 funcref) (table 1 funcref) (elem (table 1) (i32.const 1) func $two) (elem (i32.const 0) $own)",
        r#"(global (import "m" "g") i32) (table 7 funcref) (elem (global.get 0) $own)"#,
        "(table 7 (ref null func) (ref.func $own))",
        r#"(table (export "t") 7 funcref) (elem (i32.const 3) $own)"#,
    ] {
        assert_eq!(own_index(fields), None, "{fields}");
    }
}

#[test]
fn an_instruction_writes_one_table() {
    let tables = "(table 1 funcref)".repeat(80);
    for (written, instruction) in [
        (1, "(table.set 1 (i32.const 0) (ref.null func))"),
        (2, "(table.copy 2 1 (i32.const 0) (i32.const 0) (i32.const 0))"),
        (3, "(table.init 3 $e (i32.const 0) (i32.const 0) (i32.const 0))"),
        (62, "(table.fill 62 (i32.const 0) (ref.null func) (i32.const 0))"),
        // From 63 on they share a bit.
        (63, "(drop (table.grow 79 (ref.null func) (i32.const 0)))"),
    ] {
        let own = own_elements(&format!("{tables} (elem $e func) (func {instruction})"));
        let others: Vec<usize> = (0..80).filter(|&table| own[table].is_none()).collect();
        assert_eq!(others, if written == 63 { (63..80).collect() } else { vec![written] }, "{instruction}");
    }
}

#[test]
fn bodies_that_are_not_validated_may_do_everything() {
    let text = "(module (table 7 funcref) (func))";
    let lazy = parsed(text, Options { lazy: true, ..Options::default() });
    assert_eq!((lazy.effects, lazy.own_elements(0)), (Effects::ALL, None));
}

#[test]
fn what_any_thread_has_seen_counts() {
    // Each thread has 128 KiB of code at least.
    let long = format!("(func {})", "nop ".repeat(10_000)).repeat(70);
    let write = "(func (table.set (i32.const 0) (ref.null func)))";
    for fields in [format!("{write} {long}"), format!("{long} {write}"), format!("{long} {write} {long}")] {
        let bytes = wat::parse_str(format!("(module (table 7 funcref) {fields})")).unwrap();
        for threads in [1, 2, 5] {
            let module = parse_with(bytes.clone().into(), Options { threads, ..Options::default() }).unwrap();
            assert_eq!(module.own_elements(0), None, "{threads} threads");
        }
    }
}
