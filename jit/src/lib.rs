//! Compiles one function from bytecode to machine code: `(Module, function, profile) → Compiled`. This crate does not
//! depend on the virtual machine that runs the result: it maps no memory, does no I/O, and takes no lock but that under which
//! Cranelift's target is made once.
//!
//! Read [`pipeline`] first: it has the whole compilation. [`weir_contract`] is the interface between compiled code and
//! the runtime.

pub mod analysis;
pub mod baseline;
pub mod compile;
pub mod construct;
#[cfg(feature = "cranelift")]
pub mod cranelift;
pub mod explore;
pub mod form;
pub mod graph;
mod hash_table;
pub mod ir;
pub mod meter;
pub mod mir;
pub mod opt;
pub mod pipeline;
pub mod profile;
pub mod regalloc;
pub mod request;
pub mod seeded;
pub mod settings;
mod slow_growth;
mod stored;
pub mod x64;

pub use compile::compile;
pub use request::{Backend, Compiled, InlinedCall, Inlining, Options, Refusal, Request};
pub use stored::Packed;
