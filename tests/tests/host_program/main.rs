//! A host program written for wasmtime compiles and behaves the same with Weir instead, on every tier.

use weir as wasmtime;

#[expect(clippy::disallowed_methods, reason = "it is a program for wasmtime")]
mod program;

use wasmtime::{Config, Result, Tier};
use weir_tests::engines::abort_on_panics;

/// Runs the program on engines in which a panic of the compiler ends the process.
fn run(configure: impl Fn(&mut Config)) -> Result<()> {
    program::run(&|config: &mut Config| {
        abort_on_panics(config, |_| ());
        configure(config);
    })
}

#[test]
fn on_the_default_tiers() -> Result<()> {
    run(|_| ())
}

#[test]
fn in_the_interpreter() -> Result<()> {
    run(|config: &mut Config| {
        config.tier(Tier::Interpreter);
    })
}

#[test]
fn in_baseline_code() -> Result<()> {
    run(|config: &mut Config| {
        config.tier(Tier::Baseline);
    })
}

#[test]
fn in_native_code() -> Result<()> {
    run(|config: &mut Config| {
        config.tier(Tier::Native).synchronous_compilation(true);
    })
}

#[test]
fn in_native_code_with_explicit_checks() -> Result<()> {
    run(|config: &mut Config| {
        config.tier(Tier::Native).synchronous_compilation(true).guard_regions(false);
    })
}

#[test]
fn in_cranelifts_code() -> Result<()> {
    run(|config: &mut Config| {
        config.tier(Tier::Cranelift).synchronous_compilation(true);
    })
}

#[test]
fn evaluated_as_ssa() -> Result<()> {
    run(|config: &mut Config| {
        // A call takes more stack than in other tiers.
        config.tier(Tier::Ssa).max_wasm_stack(2 << 20);
    })
}

#[test]
fn while_tiering_at_once() -> Result<()> {
    run(|config: &mut Config| {
        config.synchronous_compilation(true).tier_up_threshold(Some(1));
    })
}
