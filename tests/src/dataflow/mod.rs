//! Classical data flow: liveness, reaching definitions and available expressions, as instances of one solver that iterates over
//! the graph.
//!
//! No phase of the compiler uses them: for the memory pass, the solver costs 5 % of a compilation and finds next to nothing
//! (`docs/decisions/040-data-flow-in-extended-blocks.md`). They are references for tests: the allocator's liveness, by
//! [`weir_jit::graph::liveness`], is compared with that of the solver.

pub mod available;
pub mod liveness;
pub mod reaching;
pub mod solver;
pub mod uses;
