//! The SSA that everything between bytecode and machine code works on.
//!
//! [`ops`] is TABLE 2; [`func`] the container; [`print`], [`parse`] and [`verify`] its text and its rules; [`eval`]
//! runs it, and so is the oracle of every pass.

pub mod eval;
pub mod func;
pub mod ops;
pub mod parse;
pub mod print;
pub mod verify;

pub use func::{Block, Entry, Func, Inst, Value};
pub use ops::{Effect, Fields, Op, Type};
pub use parse::{ParseError, parse};
pub use print::print;
