//! The official specification suite, on every tier.

use weir::{Config, Tier};
use weir_tests::spec::{Summary, run};

/// Runs the suite and checks that it is the whole suite.
fn suite(config: &Config, fuel: Option<u64>) -> Summary {
    let summary = run(config, fuel).unwrap_or_else(|complaints| panic!("\n{complaints}"));
    println!("{} directives passed, {} were skipped", summary.passed, summary.skipped);
    assert!(summary.passed > 31_000 && summary.skipped < 100, "{summary:?}");
    summary
}

#[test]
fn interpreter() {
    let summary = suite(Config::new().tier(Tier::Interpreter), None);
    assert_eq!(summary.stats.functions.native + summary.stats.functions.cranelift, 0);
}

#[test]
fn interpreter_with_fuel_and_polls() {
    let mut config = Config::new();
    suite(config.tier(Tier::Interpreter).consume_fuel(true).epoch_interruption(true), Some(u64::MAX));
}
