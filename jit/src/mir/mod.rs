//! Machine code for any target: the phases of the back end from instruction selection to emission.
//!
//! ```text
//! flow       SSA's blocks with critical edges split, rare ones last            selection begins with it
//! code       instructions in blocks, register lists, jump tables, constants
//! frequency  probabilities, counts of tables and loops to block frequencies    decides which are rare
//! allocate   the allocator's client; assigns registers and spill slots         phase `regalloc`
//! layout     order of the blocks, loop rotation, jumps to jumps                phase `layout`
//! print      text of code after any of these phases; `parse` reads it back
//! verify     the rules that hold after each phase
//! ```
//!
//! The layer depends on no instruction set: an instruction set implements [`isa::Inst`].

#![deny(clippy::wildcard_enum_match_arm, reason = "a new kind of control or place must be named by the compiler")]

pub mod allocate;
pub mod code;
pub mod flow;
pub mod frequency;
pub mod isa;
pub mod layout;
pub mod list;
pub mod parse;
pub mod pool;
pub mod print;
pub mod text;
pub mod verify;

#[cfg(test)]
mod tests;

pub use code::{Allocation, CodeBlock, Layout, MachineCode, Packed, Stage};
pub use flow::{Flow, Origin};
pub use isa::{Control, FlagSet, Inst};
pub use list::{Blocks, RegList, Regs, Target};
