//! The SSA form between bytecode and machine code.
//!
//! [`ops`] is TABLE 2; [`func`] is the container, made of [`list`]s in an arena; [`mod@print`] and [`mod@parse`] are
//! its text; [`inlined`] has the positions of inlined code; [`verify`](mod@crate::analysis::verify) has its rules; [`mod@eval`] runs it, as the oracle of every pass;
//! [`mod@fold`] and [`rules`] have constant folding and algebraic rules.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new operation must be named by the compiler")]

pub mod eval;
pub mod fold;
pub mod func;
mod index;
pub mod indices;
pub mod inlined;
pub mod landings;
pub mod list;
pub mod long_vectors;
pub mod ops;
pub mod parse;
pub mod print;
pub mod probability;
#[cfg(test)]
#[expect(clippy::wildcard_enum_match_arm, reason = "an expectation that does not fit a new operation fails")]
mod rows;
pub mod rules;
pub mod sandbox;

pub use eval::{Callee, Caught, EvalError, Outcome, World, eval};
pub use func::{Func, Inst};
pub use index::{Block, Value};
pub use list::{Args, List};
pub use ops::{Calls, Effect, Fields, NO_TAG, Op, Type, family, vector_opcode};
pub use parse::{ParseError, parse};
pub use print::print;
pub use probability::Probability;
pub use weir_contract::Entry;
