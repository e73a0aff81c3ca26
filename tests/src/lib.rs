//! Shared parts of the test suites.

pub mod coverage;
pub mod damaged;
pub mod differential;
pub mod filetest;
pub mod generate;
pub mod pass_sets;
pub mod random_ssa;
pub mod rng;
pub mod smith;
pub mod spec;

/// The README's Rust examples, run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
