//! The rules for machine code.
//!
//! Always:
//! - Blocks are not empty and together hold all instructions in order; control leaves a block at its last instruction only.
//! - A block has as many successors as its last instruction needs; they are different and none is the entry. Predecessors are the
//!   inverse of successors. Critical edges are split.
//! - Loops are properly nested, outer before inner. An edge between two blocks with the same innermost loop goes forward or to
//!   the header of that loop, which is its first block.
//! - Each register list and each jump table belongs to one instruction, in the order of the instructions; an entry of a table is
//!   one of the successors. `calls` and `restores` say what the lists do. A call destroys the caller-saved registers but its
//!   results, anything else with a list none.
//! - Fields of instructions that are no registers are within the instruction set's limits.
//! - An instruction that reads flags comes after one of its block that sets them, with none between that changes them.
//!
//! After lowering:
//! - Virtual registers are numbered below `num_regs`. Each is defined once, and every use is dominated by its definition.
//! - The arguments of a block have the classes and widths of its successor's parameters.
//! - Physical registers outside of register lists are not allocatable.
//!
//! After allocation:
//! - No virtual register is left, neither as a parameter nor as an argument.
//! - Operands are where their constraints allow: in a register, in the fixed one, in that of another operand.
//! - Copies are sorted, inside the code, never from slot to slot nor between banks. Slots exist; of general-purpose registers they
//!   have 8 bytes.
//! - Every register and slot that an instruction reads was written on each path from the entry, and not destroyed since.
//! - Callee-saved registers that are written are listed as saved. No copy writes the pinned base.
//!
//! After layout:
//! - Each block is either emitted, or only jumps and is skipped; the entry is emitted first.
//! - A jump to a skipped block goes to the end of its chain of jumps. Only emitted blocks are packed.
//!
//! That the values in these places are the right ones is proved by [`checker`](crate::regalloc::checker), which sees the code
//! before and after allocation.

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
