//! A host program written for wasmtime compiles and behaves the same with Weir in its place, on every tier.

use weir as wasmtime;

mod program;

use wasmtime::{Config, Result, Tier};

#[test]
fn on_the_default_tiers() -> Result<()> {
    program::run(&|_| ())
}

#[test]
fn in_the_interpreter() -> Result<()> {
    program::run(&|config: &mut Config| {
        config.tier(Tier::Interpreter);
    })
}

#[test]
fn in_native_code() -> Result<()> {
    program::run(&|config: &mut Config| {
        config.tier(Tier::Native).synchronous_compilation(true);
    })
}

#[test]
fn in_native_code_with_explicit_checks() -> Result<()> {
    program::run(&|config: &mut Config| {
        config.tier(Tier::Native).synchronous_compilation(true).guard_regions(false);
    })
}

#[test]
fn in_cranelifts_code() -> Result<()> {
    program::run(&|config: &mut Config| {
        config.tier(Tier::Cranelift).synchronous_compilation(true);
    })
}

#[test]
fn evaluated_as_ssa() -> Result<()> {
    program::run(&|config: &mut Config| {
        // A call takes more of the stack than in other tiers.
        config.tier(Tier::Ssa).max_wasm_stack(2 << 20);
    })
}

#[test]
fn while_tiering_at_once() -> Result<()> {
    program::run(&|config: &mut Config| {
        config.synchronous_compilation(true).tier_up_threshold(Some(1));
    })
}
