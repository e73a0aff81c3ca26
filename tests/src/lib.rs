//! Shared parts of the test suites.

pub mod generate;
pub mod rng;
