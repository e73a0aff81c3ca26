//! Shared parts of the test suites.

pub mod generate;
pub mod rng;
pub mod spec;

/// The README's Rust examples, run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
