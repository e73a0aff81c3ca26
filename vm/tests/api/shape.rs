//! Limits on the shape of modules, checked before modules are validated, in each way to load one.

use crate::common;
use weir::{AvgBytesPerFunctionLimit, Config, EnforcedLimits, EnforcedLimitsError, Engine, InvalidModule, Module};

fn engine(limits: EnforcedLimits) -> Engine {
    common::engine(Config::new().enforced_limits(limits)).unwrap()
}

/// The limit that a module exceeds.
fn exceeded(limits: EnforcedLimits, text: &str) -> Option<EnforcedLimitsError> {
    let engine = engine(limits);
    let bytes = wat::parse_str(text).unwrap();
    let error = Module::new(&engine, &bytes).err();
    let exceeded = error.map(|error| *error.downcast_ref::<EnforcedLimitsError>().unwrap_or_else(|| panic!("{error:?}")));
    assert_eq!(Module::validate(&engine, &bytes).is_err(), exceeded.is_some());
    assert_eq!(Module::from_binary(&engine, &bytes).is_err(), exceeded.is_some());
    exceeded
}

#[test]
fn each_limit_is_checked() {
    let none = EnforcedLimits::default();
    type Case = (EnforcedLimits, &'static str, usize, EnforcedLimitsError);
    let cases: [Case; 6] = [
        (
            EnforcedLimits { max_globals: Some(3), ..none },
            "(global i32 (i32.const 0))",
            3,
            EnforcedLimitsError::TooManyGlobals { limit: 3 },
        ),
        (EnforcedLimits { max_functions: Some(5), ..none }, "(func)", 5, EnforcedLimitsError::TooManyFunctions { limit: 5 }),
        (EnforcedLimits { max_tables: Some(2), ..none }, "(table 1 funcref)", 2, EnforcedLimitsError::TooManyTables { limit: 2 }),
        (EnforcedLimits { max_memories: Some(1), ..none }, "(memory 1)", 1, EnforcedLimitsError::TooManyMemories { limit: 1 }),
        (
            EnforcedLimits { max_element_segments: Some(4), ..none },
            "(elem funcref)",
            4,
            EnforcedLimitsError::TooManyElementSegments { limit: 4 },
        ),
        (
            EnforcedLimits { max_data_segments: Some(4), ..none },
            r#"(data "a")"#,
            4,
            EnforcedLimitsError::TooManyDataSegments { limit: 4 },
        ),
    ];
    for (limits, item, most, error) in cases {
        // Imports are not counted.
        let module =
            |count: usize| format!(r#"(module (import "a" "f" (func)) (import "a" "g" (global i32)) {})"#, item.repeat(count));
        assert_eq!(exceeded(limits, &module(most)), None, "{item}");
        assert_eq!(exceeded(limits, &module(most + 1)), Some(error), "{item}");
        assert_eq!(exceeded(none, &module(most + 1)), None, "{item}");
    }
    let limits = EnforcedLimits { max_params: Some(2), max_results: Some(1), ..none };
    assert_eq!(exceeded(limits, "(module (func (param i32 i32) (result i32) unreachable))"), None);
    let many = EnforcedLimitsError::TooManyParameters { limit: 2 };
    assert_eq!(exceeded(limits, "(module (func (param i32 i32 i32)))"), Some(many));
    assert_eq!(exceeded(limits, "(module (rec (type (func)) (type (func (param i32 i32 i32)))))"), Some(many));
    let many = EnforcedLimitsError::TooManyResults { limit: 1 };
    assert_eq!(exceeded(limits, "(module (func unreachable (block (result i32 i64) unreachable) unreachable))"), Some(many));
}

#[test]
fn functions_have_an_average_length() {
    let average = AvgBytesPerFunctionLimit { req_funcs_bytes: 100, min_avg_bytes_per_function: 6 };
    let limits = EnforcedLimits { min_avg_bytes_per_function: Some(average), ..EnforcedLimits::default() };
    // Each body takes three bytes with its length.
    assert_eq!(exceeded(limits, &format!("(module {})", "(func)".repeat(20))), None, "the module is short");
    let module = |nops: usize| format!("(module {})", format!("(func {})", "nop ".repeat(nops)).repeat(50));
    assert_eq!(exceeded(limits, &module(0)), Some(EnforcedLimitsError::MinAvgBytesPerFunction { limit: 6, avg: 3 }));
    assert_eq!(exceeded(limits, &module(3)), None);
}

#[test]
fn modules_are_refused_before_they_are_validated_and_strict_ones_run() {
    let strict = EnforcedLimits::strict();
    // The last body is invalid, and never read.
    let functions = "(func nop nop nop nop nop nop)".repeat(10_001);
    let invalid = format!("(module {functions} (func (result i32)) (data \"\"))");
    assert_eq!(exceeded(strict, &invalid), Some(EnforcedLimitsError::TooManyFunctions { limit: 10_000 }));
    let error = Module::new(&engine(strict), "(module (func (result i32)))").unwrap_err();
    assert!(error.is::<InvalidModule>(), "{error:?}");
    assert_eq!(
        exceeded(strict, r#"(module (memory 1) (func (param i64) (result i64) (local.get 0)) (data (i32.const 0) "x"))"#),
        None
    );
    // What is malformed is refused as always, wherever it is cut off.
    let bytes =
        wat::parse_str("(module (type (func (param i32))) (memory 1) (func) (global i32 (i32.const 1)) (data \"abc\"))").unwrap();
    for end in 0..bytes.len() {
        let error = Module::new(&engine(strict), &bytes[..end]).err();
        assert!(error.is_none_or(|error| !error.is::<EnforcedLimitsError>()), "{end}");
    }
}
