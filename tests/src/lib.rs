//! Shared parts of the test suites.

pub mod acceptance;
mod bodies;
mod compiled;
pub mod costs;
pub mod counted_loops;
pub mod coverage;
pub mod crossings;
pub mod damaged;
pub mod dataflow;
pub mod differential;
pub mod elsewhere;
pub mod engines;
pub mod failure;
pub mod filetest;
pub mod generate;
pub mod host;
pub mod hostile;
pub mod legacy;
pub mod machine_check;
pub mod pass_sets;
pub mod profiles;
pub mod random_ssa;
pub mod reduce;
pub mod rng;
pub mod scratch;
pub mod side_tables;
pub mod smith;
pub mod snapshots;
pub mod state;
pub mod stub_check;
pub mod suspended;
pub mod targets;
pub mod vector_loops;

/// Whether tests rewrite their expected output instead of comparing with it: `WEIR_BLESS=1` in the environment.
///
/// # Panics
/// If the variable has a value other than `1`, `0` and the empty string.
pub fn blessing() -> bool {
    match std::env::var("WEIR_BLESS") {
        Ok(value) if value == "1" => true,
        Ok(value) if value.is_empty() || value == "0" => false,
        Err(std::env::VarError::NotPresent) => false,
        other => panic!("WEIR_BLESS is 1, 0 or unset, not {other:?}"),
    }
}

/// The documents' Rust examples, run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
#[doc = include_str!("../../docs/coming-from-wasmtime.md")]
#[doc = include_str!("../../docs/coming-from-wasmi.md")]
#[doc = include_str!("../../docs/guide.md")]
pub struct Documents;
