//! Register allocation. A leaf: it knows registers, operands and blocks, and no instruction.
//!
//! [`client`] is what an allocator may ask about the code; [`borrowed`] answers with the crate `regalloc2`.

pub mod borrowed;
pub mod client;

pub use client::{Assignment, Class, Client, Constraint, Move, Operand, Place, Position, Reg, RegSet, Role};
