//! Validation of exception handling, and the side tables that it writes.

use weir_bytecode::validate::{Options, Proposal, Proposals, parse_with};
use weir_bytecode::{Module, print, verify};

/// Parses a module with both forms of the proposal, and verifies the side tables of its functions.
fn module(text: &str) -> Module {
    let options = Options { proposals: Proposals::all(), ..Options::default() };
    let module = parse_with(wat::parse_str(text).unwrap().into(), options).unwrap();
    for func in module.imported_funcs..module.funcs.len() as u32 {
        verify::side_table(&module, func, module.body(func).unwrap(), None).unwrap_or_else(|fault| panic!("{func}: {fault}"));
    }
    module
}

/// The side table of the last function.
fn side_table(text: &str) -> String {
    let module = module(text);
    print::side_table(&module, module.funcs.len() as u32 - 1).to_string()
}

/// The lines of the regions and their handlers, offsets left out.
fn regions(text: &str) -> Vec<String> {
    let table = side_table(text);
    let lines = table.lines().skip_while(|line| *line != "regions").skip(1).take_while(|line| *line != "segments");
    lines.map(|line| line.trim().split_once("height").map_or(line.trim(), |(_, rest)| rest.trim()).to_string()).collect()
}

#[test]
fn the_clauses_of_a_try_table_are_branches() {
    let text = r#"(module
        (tag $a (param i32)) (tag $b (param i64 f32))
        (func (param i32) (result i32)
            (block $all (result exnref)
                (block $b (result i64 f32 exnref)
                    (block $a (result i32)
                        i32.const 8
                        (try_table (param i32) (result i32) (catch $a $a) (catch_ref $b $b) (catch_all_ref $all)
                            (drop) (throw $a (local.get 0))))
                    return)
                unreachable)
            throw_ref))"#;
    assert_eq!(
        regions(text),
        ["0", "catches tag 0 by entry 1", "catches tag 1 with reference by entry 2", "catches all with reference by entry 3"]
    );
    let table = side_table(text);
    assert_eq!(table.lines().filter(|line| line.contains("try_table")).count(), 4, "{table}");
}

#[test]
fn regions_nest_and_end_at_the_first_catch() {
    let text = r#"(module
        (tag $a (param i32)) (tag $b)
        (func (result i32)
            try (result i32) try (result i32) (i32.const 1) catch $a (throw $b) catch_all (i32.const 2) end
            catch $a try (throw $b) catch_all (rethrow 1) end
            catch $b (i32.const 3) end))"#;
    let regions = regions(text);
    assert_eq!(regions[0], "0");
    assert_eq!(regions[1], "catches tag 0 by entry 5, saved in local 0");
    assert_eq!(regions[2], "catches tag 1 by entry 10");
    assert_eq!(regions[3], "0 then region 0");
    assert_eq!(regions[4..6], ["catches tag 0 by entry 1", "catches all by entry 3"]);
    // The payload is below it.
    assert_eq!(regions[6], "1");
    assert_eq!(regions[7], "catches all by entry 7");
}

#[test]
fn delegates_pass_exceptions_to_the_label() {
    let regions = regions(
        r#"(module
        (tag $a)
        (func
            try $outer try $inner
                        try (throw $a) delegate $inner
                        try (throw $a) delegate $outer
                        (block $block try (throw $a) delegate $block)
                        try (throw $a) delegate 2 catch_all try (throw $a) delegate $inner end catch_all end))"#,
    );
    let next = |i: usize| regions[i].split_once("then region ").map_or("none", |(_, next)| next).to_string();
    assert_eq!(regions[0..4], ["0", "catches all by entry 8", "0 then region 0", "catches all by entry 5"], "{regions:?}");
    assert_eq!([next(4), next(5), next(6), next(7), next(8)], ["1", "0", "1", "none", "0"], "{regions:?}");
}

#[test]
fn rethrow_has_a_local_for_each_level() {
    let module = module(
        r#"(module
        (func $f)
        (func (param i32)
            try (call $f) catch_all
                    try (call $f) catch_all (call $f) (rethrow 1) end
                    try (call $f) catch_all (rethrow 0) end end
            try (call $f) catch_all (rethrow 0) end))"#,
    );
    let body = module.body(1).unwrap();
    assert_eq!(body.locals.iter().map(ToString::to_string).collect::<Vec<_>>(), ["i32", "exnref", "exnref"]);
    assert!(body.exceptions && !module.body(0).unwrap().exceptions);
}

#[test]
fn dead_code_has_entries_and_no_regions() {
    let module = module(
        r#"(module
        (tag $a (param i32))
        (func (param i32)
            unreachable
            (block $h (result i32) (try_table (catch $a $h) (catch_all 1) (throw $a (i32.const 1))) unreachable)
            drop
            try (call 0 (i32.const 1)) catch $a drop catch_all (rethrow 0) end
            try delegate 0)
        (func (param i32)
            try unreachable catch $a drop (br 0) catch_all end
            try unreachable delegate 0))"#,
    );
    assert!(module.body(0).unwrap().regions.is_empty() && module.body(0).unwrap().exceptions);
    assert_eq!(module.body(1).unwrap().regions.len(), 2);
}

#[test]
fn the_forms_can_be_refused() {
    let refused = |text: &str, exceptions, legacy_exceptions| {
        let proposals =
            Proposals::default().with(Proposal::Exceptions, exceptions).with(Proposal::LegacyExceptions, legacy_exceptions);
        let options = Options { proposals, ..Options::default() };
        parse_with(wat::parse_str(text).unwrap().into(), options).map_err(|error| error.message)
    };
    let (new, legacy) = ("(module (func (try_table)))", "(module (func try catch_all end))");
    assert!(refused(new, true, false).is_ok() && refused(legacy, true, true).is_ok());
    assert!(refused(new, false, false).is_err());
    let message = refused(legacy, true, false).unwrap_err();
    assert!(message.contains("legacy"), "{message}");
}
