//! The runner of scripts accepts an assertion only if it is true: each directive here is right, or wrong by one detail.

#[allow(dead_code, reason = "this test uses one kind of engine")]
#[path = "../../../tests/src/engines.rs"]
mod engines;

use engines::engine;
use weir::Config;
use weir_wast::run;

const MODULE: &str = r#"
(module
  (table 2 funcref)
  (func (export "one") (result i32) i32.const 1)
  (func (export "nan") (result f32) f32.const nan:0x400001)
  (func (export "div") (result i32) (i32.div_s (i32.const 1) (i32.const 0)))
  (func (export "deep") (call 3))
  (func (export "func-null") (result funcref) ref.null func)
  (func (export "extern-null") (result externref) ref.null extern)
  (func (export "func") (result funcref) (ref.func 0))
  (func (export "extern") (param externref) (result externref) local.get 0)
  (func (export "call-null") (call_indirect (i32.const 1)))
  (func (export "non-null") (result i32) (ref.as_non_null (ref.null func)) drop i32.const 1))
"#;

/// The messages of the failures in a script of `MODULE` and this directive.
fn failures(directive: &str) -> Vec<String> {
    // As `weir wast` does it.
    let engine = engine(Config::new().wasm_legacy_exceptions(true)).unwrap();
    let report = run(&engine, None, &format!("{MODULE}{directive}")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((report.skipped, report.passed as usize + report.failures.len()), (0, 2), "{directive}: {report:?}");
    report.failures.into_iter().map(|failure| failure.message).collect()
}

fn accepted(directives: &[&str]) {
    for directive in directives {
        assert_eq!(failures(directive), [""; 0], "{directive}");
    }
}

fn refused(directives: &[&str]) {
    for directive in directives {
        assert_eq!(failures(directive).len(), 1, "{directive} is accepted");
    }
}

#[test]
fn invalid_and_malformed_are_not_the_same() {
    accepted(&[
        r#"(assert_invalid (module (func (result i32) i64.const 0)) "type mismatch")"#,
        r#"(assert_invalid (module quote "(func (result i32) i64.const 0)") "type mismatch")"#,
        r#"(assert_malformed (module binary "\00asm\01\00\00\00\01") "unexpected end")"#,
        r#"(assert_malformed (module binary "\00asm\01\00\00\00" "\01\04\01\60\00\00" "\03\02\01\00") "function and code section have inconsistent lengths")"#,
        r#"(assert_malformed (module quote "(func i32.cnst 0)") "unknown operator")"#,
        r#"(assert_invalid (module (func try (result i32) i64.const 0 catch_all i32.const 0 end drop)) "type mismatch")"#,
        r#"(assert_invalid (module (func try rethrow 0 catch_all end)) "invalid rethrow label")"#,
        // The section that counts data segments is missing, which is an error of the format.
        r#"(assert_malformed (module binary "\00asm\01\00\00\00" "\01\04\01\60\00\00" "\03\02\01\00" "\05\03\01\00\01" "\0a\0e\01\0c\00\41\00\41\00\41\00\fc\08\00\00\0b" "\0b\03\01\01\00") "data count section required")"#,
    ]);
    refused(&[
        r#"(assert_malformed (module (func (result i32) i64.const 0)) "type mismatch")"#,
        r#"(assert_malformed (module quote "(func (result i32) i64.const 0)") "type mismatch")"#,
        r#"(assert_invalid (module binary "\00asm\01\00\00\00\01") "unexpected end")"#,
        r#"(assert_invalid (module binary "\00asm\01\00\00\00" "\01\04\01\60\00\00" "\03\02\01\00") "function and code section have inconsistent lengths")"#,
        // Text that the parser refuses is malformed, whatever the assertion is.
        r#"(assert_invalid (module quote "(func i32.cnst 0)") "unknown operator")"#,
        r#"(assert_invalid (module quote "(func (call $nowhere))") "unknown func")"#,
        // Both are accepted.
        r#"(assert_invalid (module) "type mismatch")"#,
        r#"(assert_malformed (module binary "\00asm\01\00\00\00") "unexpected end")"#,
    ]);
}

#[test]
fn refusals_have_the_message_that_is_asserted() {
    refused(&[
        r#"(assert_invalid (module (func (result i32) i64.const 0)) "type mismatch: expected i32, found f32")"#,
        r#"(assert_invalid (module (func (result i32) i64.const 0)) "unknown local")"#,
        r#"(assert_invalid (module (func (result i32) i64.const 0)) "mismatch")"#,
        r#"(assert_invalid (module (func (result i32) i64.const 0)) "")"#,
        r#"(assert_malformed (module binary "\00asm\01\00\00\00\01") "magic header not detected")"#,
        r#"(assert_malformed (module binary "\00asm\01\00\00\00\01") "")"#,
        r#"(assert_malformed (module quote "(func i32.cnst 0)") "illegal character")"#,
        r#"(assert_malformed (module quote "(func i32.cnst 0)") "")"#,
        r#"(assert_unlinkable (module (import "no" "thing" (func))) "incompatible import type")"#,
        r#"(assert_unlinkable (module (import "no" "thing" (func))) "")"#,
    ]);
    accepted(&[r#"(assert_unlinkable (module (import "no" "thing" (func))) "unknown import")"#]);
}

#[test]
fn traps_have_the_message_that_is_asserted() {
    accepted(&[
        r#"(assert_trap (invoke "div") "integer divide by zero")"#,
        r#"(assert_trap (invoke "div") "integer divide")"#,
        r#"(assert_trap (invoke "non-null") "null reference")"#,
        r#"(assert_trap (invoke "call-null") "uninitialized element")"#,
        r#"(assert_exhaustion (invoke "deep") "call stack exhausted")"#,
    ]);
    refused(&[
        r#"(assert_trap (invoke "div") "")"#,
        r#"(assert_trap (invoke "div") "divide by zero")"#,
        r#"(assert_trap (invoke "div") "integer divide by zero, or something longer")"#,
        r#"(assert_trap (invoke "div") "integer overflow")"#,
        r#"(assert_trap (invoke "one") "integer divide by zero")"#,
        r#"(assert_trap (invoke "non-null") "null structure reference")"#,
        r#"(assert_trap (invoke "call-null") "uninitialized element 5")"#,
        r#"(assert_exhaustion (invoke "deep") "")"#,
        r#"(assert_exhaustion (invoke "one") "call stack exhausted")"#,
    ]);
}

#[test]
fn references_have_the_type_that_is_asserted() {
    accepted(&[
        r#"(assert_return (invoke "func-null") (ref.null func))"#,
        r#"(assert_return (invoke "func-null") (ref.null nofunc))"#,
        r#"(assert_return (invoke "func-null") (ref.null))"#,
        r#"(assert_return (invoke "extern-null") (ref.null extern))"#,
        r#"(assert_return (invoke "extern-null") (ref.null noextern))"#,
        r#"(assert_return (invoke "func") (ref.func))"#,
        r#"(assert_return (invoke "extern" (ref.extern 7)) (ref.extern 7))"#,
        r#"(assert_return (invoke "extern" (ref.extern 7)) (ref.extern))"#,
        r#"(assert_return (invoke "extern" (ref.null extern)) (ref.null extern))"#,
    ]);
    refused(&[
        r#"(assert_return (invoke "func-null") (ref.null extern))"#,
        r#"(assert_return (invoke "func-null") (ref.null any))"#,
        r#"(assert_return (invoke "func-null") (ref.func))"#,
        r#"(assert_return (invoke "extern-null") (ref.null func))"#,
        r#"(assert_return (invoke "extern-null") (ref.extern))"#,
        r#"(assert_return (invoke "func") (ref.null func))"#,
        r#"(assert_return (invoke "func") (ref.extern))"#,
        // The function cannot be identified.
        r#"(assert_return (invoke "func") (ref.func 0))"#,
        r#"(assert_return (invoke "extern" (ref.extern 7)) (ref.extern 8))"#,
        r#"(assert_return (invoke "extern" (ref.extern 7)) (ref.func))"#,
        r#"(assert_return (invoke "extern" (ref.extern 7)) (ref.null extern))"#,
    ]);
}

#[test]
fn numbers_have_the_bits_that_are_asserted() {
    accepted(&[
        r#"(assert_return (invoke "one") (i32.const 1))"#,
        r#"(assert_return (invoke "nan") (f32.const nan:arithmetic))"#,
        r#"(assert_return (invoke "nan") (f32.const nan:0x400001))"#,
    ]);
    refused(&[
        r#"(assert_return (invoke "one") (i32.const 2))"#,
        r#"(assert_return (invoke "one") (i64.const 1))"#,
        r#"(assert_return (invoke "one"))"#,
        r#"(assert_return (invoke "one") (i32.const 1) (i32.const 1))"#,
        r#"(assert_return (invoke "nan") (f32.const nan:canonical))"#,
        r#"(assert_return (invoke "nan") (f32.const nan:0x400002))"#,
    ]);
}
