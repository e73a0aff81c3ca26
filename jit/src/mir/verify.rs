//! The rules for machine code.
//!
//! Always:
//! - Blocks are not empty, and together they contain all instructions in order. Control leaves a block only at its last
//!   instruction.
//! - A block has as many successors as its last instruction needs; they are different, and none is the entry.
//!   Predecessors are the inverse of successors. Critical edges are split.
//! - Loops nest properly, and outer loops come before inner ones. Unless there are cold blocks, which are moved out of loops, an edge
//!   between two blocks with the same innermost loop, or in none, goes forward, or to that loop's header, which is its first block.
//! - Each register list and each jump table belongs to one instruction, in the order of the instructions; table entries
//!   are indices of successors. `calls` and `restores` agree with the lists. A call destroys all caller-saved registers
//!   except its results; other instructions with a list destroy none.
//! - Fields of instructions other than registers are within the instruction set's limits.
//! - An instruction that reads flags comes after an instruction of its block that sets them, and none in between
//!   changes them.
//!
//! After lowering:
//! - Virtual registers are numbered below `num_regs`. Each is defined once, and every use is dominated by its definition.
//! - The arguments of a block have the classes and widths of its successor's parameters.
//! - Physical registers outside register lists are not allocatable.
//!
//! After allocation:
//! - No virtual register is left; there are no parameters and arguments.
//! - Operands are in places that their constraints allow: any register, a fixed one, or that of another operand.
//! - Copies are sorted, inside the code, and never from slot to slot or between banks. Their slots exist; a slot that
//!   is copied to or from a general-purpose register has 8 bytes.
//! - Every register and slot that an instruction reads was written on each path from the entry, and not destroyed
//!   since.
//! - Callee-saved registers that are written are listed as saved. No copy writes the pinned base.
//!
//! After layout:
//! - Each block is either emitted, or only jumps and is skipped; the entry is emitted first.
//! - A jump to a skipped block goes to the end of its chain of jumps. Only emitted blocks are packed.
//! - A block that ends with a copy of packed blocks jumps to them otherwise, and they end in an indirect jump.
//!
//! [`checker`](crate::regalloc::checker) proves that these places hold the right values. It sees the code before and
//! after allocation.

mod allocated;
mod flags;
mod lowered;
mod structure;

use super::code::MachineCode;
use super::isa::Inst;

/// Checks code after any phase.
///
/// # Errors
/// The first violation.
pub fn verify<I: Inst>(code: &MachineCode<I>) -> Result<(), String> {
    structure::check(code)?;
    flags::check(code)?;
    match &code.allocation {
        None => lowered::check(code)?,
        Some(allocation) => allocated::check(code, allocation)?,
    }
    code.layout.as_ref().map_or(Ok(()), |layout| structure::check_layout(code, layout))
}
