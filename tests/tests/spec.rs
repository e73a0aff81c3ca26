//! The specification suite on every tier that compiles. The tests of `weir-vm` run it on the interpreter.

use weir::{Config, Engine, RoundTrip, Stats, Tier};
use weir_spec::{Summary, run};
use weir_tests::elsewhere::twice;
use weir_tests::engines::engine;
use weir_tests::pass_sets::PassSet;

/// Runs the suite.
fn suite(config: &Config, fuel: Option<u64>) -> Summary {
    suites(std::slice::from_ref(config), fuel)
}

/// Runs the suite on several engines in turn.
fn suites(configs: &[Config], fuel: Option<u64>) -> Summary {
    let engines: Vec<Engine> = configs.iter().map(|config| engine(config).unwrap()).collect();
    let summary = run(&engines, fuel).unwrap_or_else(|complaints| panic!("\n{complaints}"));
    println!(
        "{} directives, {} skipped; {} of {} functions interpreted; {} compiled",
        summary.directives,
        summary.skipped,
        summary.interpreted,
        summary.called,
        compiled(&summary)
    );
    summary
}

/// The number of functions that were compiled, by any back end.
fn compiled(summary: &Summary) -> u64 {
    summary.count(|stats| stats.functions.native + stats.functions.cranelift)
}

#[test]
fn native() {
    all_native(&suite(Config::new().tier(Tier::Native), None));
}

/// Checks that the native back end compiled every called function, vectors and exceptions included.
fn all_native(summary: &Summary) {
    let native = summary.count(|stats| stats.functions.native);
    let refused = summary.count(|stats| stats.functions.fallbacks.len() as u64);
    assert_eq!((native, summary.interpreted, refused), (summary.called, 0, 0), "{:?}", summary.stats);
    assert!(native > 7_000, "{native} functions");
    assert_eq!(summary.count(|stats| stats.functions.cranelift), 0, "{:?}", summary.stats);
}

/// Every module is stored by another process, and made from its bytes here.
#[test]
fn native_from_stored_code() {
    twice("native_from_stored_code", |way| {
        let is_read = matches!(way, RoundTrip::From(_));
        let summary = suite(Config::new().tier(Tier::Native).round_trip(Some(way)), None);
        if is_read {
            all_stored(&summary);
        }
    });
}

/// A third of the modules has baseline code, and the others optimised code.
#[test]
fn both_tiers_from_stored_code() {
    twice("both_tiers_from_stored_code", |way| {
        let is_read = matches!(way, RoundTrip::From(_));
        let summary = suite(Config::new().tier(Tier::Auto).round_trip(Some(way)), None);
        if is_read {
            let [baseline, optimised] =
                [|stats: &Stats| stats.stored.baseline, |stats: &Stats| stats.stored.optimised].map(|of| summary.count(of));
            assert!(
                baseline > 1_000 && optimised > 1_000,
                "{baseline} functions from stored baseline code, {optimised} optimised"
            );
            assert_eq!(summary.count(|stats| stats.stored.damaged), 0, "{:?}", summary.stats);
        }
    });
}

/// Checks that every called function ran in stored code.
fn all_stored(summary: &Summary) {
    let [stored, native] =
        [|stats: &Stats| stats.stored.optimised, |stats: &Stats| stats.functions.native].map(|of| summary.count(of));
    assert!(stored > 7_000 && native == 0, "{stored} functions from stored code, {native} compiled");
    assert_eq!((summary.count(|stats| stats.stored.damaged), summary.interpreted), (0, 0), "{:?}", summary.stats);
}

/// The reason for which Cranelift refuses functions.
const EXCEPTIONS: &str = "handlers of exceptions";

#[test]
fn cranelift() {
    all_cranelift(&suite(Config::new().tier(Tier::Cranelift), None));
}

/// Checks that Cranelift compiled every called function except those that it refuses.
fn all_cranelift(summary: &Summary) {
    let cranelift = summary.count(|stats| stats.functions.cranelift);
    let refusals = summary.stats.iter().flat_map(|stats| &stats.functions.fallbacks);
    let mut reasons: Vec<&str> = refusals.map(|fallback| &*fallback.reason).filter(|why| !why.contains(EXCEPTIONS)).collect();
    for instruction in CRANELIFT_LACKS {
        let known = reasons.iter().position(|reason| reason.contains(instruction));
        reasons.swap_remove(known.unwrap_or_else(|| panic!("Cranelift has code for {instruction} now: strike it from the list")));
    }
    assert_eq!(reasons, [""; 0], "what else Cranelift refuses");
    assert!(summary.interpreted < CRANELIFT_LACKS.len() as u64 + 100, "only what Cranelift refuses is interpreted");
    assert_eq!(cranelift + summary.interpreted, summary.called);
    assert_eq!(summary.count(|stats| stats.functions.native), 0);
    assert!(cranelift > 7_000, "{cranelift} functions");
}

#[test]
fn baseline() {
    all_baseline(&suite(Config::new().tier(Tier::Baseline), None));
}

#[test]
fn baseline_without_signals() {
    all_baseline(&suite(Config::new().tier(Tier::Baseline).signals_based_traps(false), None));
}

#[test]
fn baseline_with_fuel_polls_and_canonical_nans() {
    let mut config = Config::new();
    config.tier(Tier::Baseline).consume_fuel(true).epoch_interruption(true).deterministic(true);
    all_baseline(&suite(&config, Some(u64::MAX)));
}

/// Checks that the baseline compiler compiled every called function, those with exceptions included.
fn all_baseline(summary: &Summary) {
    let baseline = summary.count(|stats| stats.functions.baseline);
    assert_eq!((baseline, summary.interpreted), (summary.called, 0));
    assert!(baseline > 7_000, "{baseline} functions");
    let others = summary.count(|stats| stats.functions.native + stats.functions.fallbacks.len() as u64);
    assert_eq!(others, 0, "{:?}", summary.stats);
}

/// For each function of the suite that Cranelift refuses, the instruction for which it has no code.
const CRANELIFT_LACKS: [&str; 2] = ["snarrow.i64x2", "uunarrow.i64x2"];

/// In another process there would be no handler; here a handler passes faults of this code on, and they end the
/// process.
#[test]
fn native_without_signals() {
    all_native(&suite(Config::new().tier(Tier::Native).signals_based_traps(false), None));
}

#[test]
fn cranelift_without_signals() {
    all_cranelift(&suite(Config::new().tier(Tier::Cranelift).signals_based_traps(false), None));
}

/// Every object of the collected heap moves at every safepoint, and where it was is inaccessible.
#[test]
fn everything_moves() {
    let moving = |tier| suite(Config::new().tier(tier).gc_stress(true), None);
    moving(Tier::Interpreter);
    all_native(&moving(Tier::Native));
    all_cranelift(&moving(Tier::Cranelift));
    all_baseline(&moving(Tier::Baseline));
    evaluated(&moving(Tier::Ssa));
}

/// The code of construction, without rewrites.
#[test]
fn ssa_as_built() {
    let mut config = Config::new();
    config.tier(Tier::Ssa).rewrite_fuel(Some(0)).consume_fuel(true).epoch_interruption(true);
    let summary = suite(&config, Some(u64::MAX));
    evaluated(&summary);
    assert_eq!(rewrites(&summary), 0);
}

#[test]
fn ssa_as_optimised() {
    let summary = suite(Config::new().tier(Tier::Ssa), None);
    evaluated(&summary);
    assert!(rewrites(&summary) > 100);
}

/// Checks that every called function was evaluated, and none compiled.
fn evaluated(summary: &Summary) {
    let evaluated = summary.count(|stats| stats.functions.evaluated);
    assert_eq!((evaluated, compiled(summary)), (summary.called, 0), "{:?}", summary.stats);
}

/// The number of rewrites by the passes.
fn rewrites(summary: &Summary) -> u64 {
    summary.count(|stats| stats.opt.iter().map(|(_, rewrites)| *rewrites).sum())
}

/// The first call takes one tick, so a function with a loop is entered by OSR, and any other function is compiled when
/// it is called again.
#[test]
fn tiering_at_the_second_tick() {
    let summary = suite(Config::new().tier_up_threshold(Some(2)).synchronous_compilation(true), None);
    assert!(compiled(&summary) > 700);
    assert!(summary.count(|stats| stats.osr_entries) > 100);
}

#[test]
fn tier_switches_at_random() {
    let summary = suite(Config::new().stress(Some(1)), None);
    assert!(compiled(&summary) > 500);
}

/// Every script after some choice of passes.
#[test]
fn native_after_some_passes() {
    let configs: Vec<Config> = PassSet::every().iter().map(PassSet::native).collect();
    all_native(&suites(&configs, None));
}

/// Every script after every choice of passes; this takes minutes: `cargo test --workspace --locked --test spec --
/// --ignored native_after_every_choice_of_passes`
#[test]
#[ignore = "takes minutes"]
fn native_after_every_choice_of_passes() {
    for passes in PassSet::every() {
        let summary = suite(&passes.native(), None);
        all_native(&summary);
        println!("{}: {} directives", passes.name, summary.passed);
    }
}
