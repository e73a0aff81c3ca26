//! From WebAssembly bytes to a validated [`Module`] with side tables. This crate knows nothing of execution.
//!
//! [`validate::parse`] reads a module; [`opcodes`] is TABLE 1; [`instrs`] walks validated code and [`mod@print`] shows it;
//! [`semantics`] holds the one meaning of every numeric instruction, which the interpreter, constant folding and the IR
//! evaluator call.

mod body;
pub mod fusion;
pub mod instrs;
pub mod module;
pub mod opcodes;
pub mod print;
mod reader;
pub mod semantics;
pub mod sidetable;
pub mod trap;
pub mod types;
pub mod validate;

pub use instrs::{Imm, Instr, Instrs};
pub use module::{FuncBody, Module};
pub use opcodes::Opcode;
pub use trap::Trap;
pub use types::{FuncType, ValType};
