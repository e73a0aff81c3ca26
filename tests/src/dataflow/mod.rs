//! Classical data flow: liveness, reaching definitions and available expressions, as instances of one solver that iterates over
//! the graph.
//!
//! No phase of the compiler uses them: for the memory pass, the solver costs 5 % of a compilation and finds almost
//! nothing more (`docs/decisions/040-data-flow-in-extended-blocks.md`). They are references for tests: the liveness of
//! the allocator, [`weir_jit::graph::liveness`], is compared with the solver's.

pub mod available;
pub mod liveness;
pub mod reaching;
pub mod solver;
pub mod uses;
