//! The native back end: SSA to x86-64.
//!
//! `lower` selects instructions of TABLE 3 (`insts`) over virtual registers; [`mir`](crate::mir) allocates registers
//! and orders the blocks; `emit` writes bytes. The processor must support x86-64-v3 (AVX, BMI1, BMI2, LZCNT, POPCNT,
//! and AVX2 for functions with vectors): three-operand float instructions, shifts by any register, and bit counts
//! without special cases are worth more than support for processors from before 2013. These can use the other back end.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new operation, or row of TABLE 3, must be named by the compiler")]

pub(crate) mod abi;
mod assembler;
mod code;
pub(crate) mod condition;
mod disassemble;
#[cfg(test)]
mod effects;
mod emit;
pub(crate) mod encode;
#[cfg(test)]
mod encodings;
pub(crate) mod forms;
mod frame;
pub(crate) mod insts;
mod isa;
mod line;
mod lower;
mod processor;

pub use code::Code;
pub use disassemble::disassemble;
pub use emit::emit;
pub use insts::Inst;
pub use lower::lower;
pub use processor::{check as check_processor, has_avx2};
