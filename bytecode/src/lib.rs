//! From WebAssembly bytes to a validated [`Module`] with side tables. This crate does not execute them.
//!
//! [`validate::parse`] reads a module. [`opcodes`] is TABLE 1, and [`lanes`] has the operations on vectors that it names.
//! [`cost`] is a table of fuel, for hosts only. [`account`] counts the memory that a module takes.
//! [`mod@stored`] writes the result for a later process. [`instrs`] reads validated code, [`walk`] finds the types of its operands, [`verify`] checks its side tables, and
//! [`mod@print`] shows it. [`semantics`] holds the only definition of every numeric instruction, which the interpreter,
//! constant folding and the IR evaluator call.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new opcode, class or lane operation must be named by the compiler")]

mod access;
pub mod account;
mod body;
mod bytes;
pub mod cost;
pub mod effects;
pub mod file;
pub mod fusion;
pub mod hints;
pub mod instrs;
pub mod lanes;
pub mod module;
pub mod names;
pub mod opcodes;
mod own_tables;
mod part;
mod places;
pub mod print;
mod reader;
pub mod semantics;
pub mod shape;
pub mod sidetable;
mod size;
pub mod stored;
pub mod trap;
pub mod types;
pub mod validate;
pub mod verify;
pub mod walk;

pub use bytes::{Bytes, Parts, Unreadable};
pub use instrs::{Imm, Instr, Instrs};
pub use module::{FuncBody, Module};
pub use opcodes::Opcode;
pub use part::Part;
pub use places::{Places, PlainSegment};
pub use trap::Trap;
pub use types::{FuncType, ValType};
