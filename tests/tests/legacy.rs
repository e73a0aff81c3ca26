//! Scripts of the legacy instructions of exceptions, in every tier. The crate with the specification's suite has none, and the crate `wast`
//! reads these instructions in flat text only.

use weir::{Config, Tier};
use weir_tests::engines::engine;

const SCRIPTS: [(&str, &str); 3] = [
    ("catch", include_str!("../legacy/catch.wast")),
    ("rethrow", include_str!("../legacy/rethrow.wast")),
    ("delegate", include_str!("../legacy/delegate.wast")),
];

/// Runs the scripts in every tier, with the legacy instructions and what `change` sets.
fn scripts(fuel: Option<u64>, change: impl Fn(&mut Config)) {
    for tier in [Tier::Interpreter, Tier::Baseline, Tier::Native, Tier::Cranelift, Tier::Ssa, Tier::Auto] {
        let mut config = Config::new();
        config.tier(tier).wasm_legacy_exceptions(true);
        change(&mut config);
        let engine = engine(&config).unwrap();
        for (name, text) in SCRIPTS {
            let report = weir_wast::run(&engine, fuel, text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(report.failures.is_empty() && report.skipped == 0, "{name}, {tier:?}: {:#?}", report.failures);
            assert_eq!(report.passed as usize, text.matches("\n(").count(), "{name}, {tier:?}: directives");
        }
    }
}

#[test]
fn in_every_tier() {
    scripts(None, |_| ());
}

#[test]
fn while_everything_moves() {
    scripts(None, |config| {
        config.gc_stress(true);
    });
}

#[test]
fn with_fuel_and_polls() {
    scripts(Some(u64::MAX), |config| {
        config.consume_fuel(true).epoch_interruption(true);
    });
}

#[test]
fn while_tiers_change_at_random() {
    scripts(None, |config| {
        config.stress(Some(1));
    });
}
