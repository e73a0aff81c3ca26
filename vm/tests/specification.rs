//! The specification suite on the interpreter. Builds without a compiler run it as well; the tests of `weir-tests` run it on the
//! tiers that compile.

mod common;

use weir::{Config, FunctionStats, Stats, Tier};
use weir_spec::Summary;

/// Functions that a back end or the baseline compiler has compiled.
fn compiled(stats: &Stats) -> u64 {
    let FunctionStats { native, cranelift, baseline, .. } = &stats.functions;
    native + cranelift + baseline
}

/// Runs the suite.
fn suite(config: &Config, fuel: Option<u64>) -> Summary {
    suite_changed(config, fuel, |module| module)
}

/// Runs the suite with changed modules. A build without a compiler has no executable memory afterwards.
fn suite_changed(config: &Config, fuel: Option<u64>, change: fn(Vec<u8>) -> Vec<u8>) -> Summary {
    let engines = [common::engine(config).unwrap()];
    let summary = weir_spec::run_changed(&engines, fuel, change).unwrap_or_else(|complaints| panic!("\n{complaints}"));
    let compiled = summary.count(compiled);
    println!("{} directives, {} skipped; {compiled} functions compiled", summary.directives, summary.skipped);
    assert!(summary.called > 7_000, "{} functions", summary.called);
    if !common::is_built(Tier::Native) {
        assert_eq!((compiled, summary.interpreted), (0, summary.called));
        #[cfg(target_os = "linux")]
        assert_eq!(common::executable_memory(), [""; 0]);
    }
    summary
}

/// Runs the suite with `config` on the interpreter.
fn interpreter(config: &mut Config, fuel: Option<u64>) {
    interpreted(&suite(config.tier(Tier::Interpreter), fuel));
}

/// The same with a vector in every function, so that all slots have two words.
fn interpreter_in_wide_slots(config: &mut Config, fuel: Option<u64>) {
    interpreted(&suite_changed(config.tier(Tier::Interpreter), fuel, weir_spec::widen));
}

/// Checks that every called function was interpreted.
fn interpreted(summary: &Summary) {
    assert_eq!(summary.interpreted, summary.called);
    assert_eq!(summary.count(|stats| compiled(stats) + stats.functions.evaluated), 0);
}

#[test]
fn assembly() {
    interpreter(&mut Config::new(), None);
}

#[test]
fn portable() {
    interpreter(Config::new().portable_interpreter(true), None);
}

#[test]
fn fuel_and_polls() {
    interpreter(Config::new().consume_fuel(true).epoch_interruption(true), Some(u64::MAX));
}

#[test]
fn fuel_and_polls_portable() {
    let mut config = Config::new();
    interpreter(config.portable_interpreter(true).consume_fuel(true).epoch_interruption(true), Some(u64::MAX));
}

#[test]
fn polls_and_canonical_nans() {
    interpreter(Config::new().epoch_interruption(true).deterministic(true), None);
}

#[test]
fn wide_slots() {
    interpreter_in_wide_slots(&mut Config::new(), None);
}

#[test]
fn wide_slots_portable() {
    interpreter_in_wide_slots(Config::new().portable_interpreter(true), None);
}

#[test]
fn wide_slots_with_fuel_and_polls() {
    interpreter_in_wide_slots(Config::new().consume_fuel(true).epoch_interruption(true), Some(u64::MAX));
}

#[test]
fn wide_slots_with_canonical_nans() {
    interpreter_in_wide_slots(Config::new().deterministic(true), None);
}

/// On the tiers of the default settings: those that the build has.
#[test]
fn functions_validated_one_by_one() {
    suite(Config::new().lazy_validation(true), None);
}
