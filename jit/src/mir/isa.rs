//! The properties of an instruction set that the machine layer needs.

use super::list::RegList;
use super::text::Line;
use crate::regalloc::{AllocationError, Operand, Place, Reg, RegSet};
use std::fmt;

/// The control flow after an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// To the next instruction.
    Next,
    /// To the block's only successor.
    Jump,
    /// To the first successor, or to the second one.
    Branch,
    /// To a successor, by the jump table with this index.
    Table(u32),
    /// From a call to the last successor, or, if it throws an exception, to one of the others. Those edges leave from the call, and
    /// the registers that it preserves have the values from before it.
    Try,
    /// To one of the successors, by an exception as above, or out of the function.
    Throw,
    /// Out of the function, or into a trap.
    Leave,
}

/// A set of the flags that comparisons set and conditions read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlagSet(u8);

impl FlagSet {
    /// The empty set.
    pub const EMPTY: FlagSet = FlagSet(0);
    /// Equal, or zero.
    pub const ZERO: FlagSet = FlagSet(1);
    /// Negative.
    pub const SIGN: FlagSet = FlagSet(2);
    /// Unsigned overflow.
    pub const CARRY: FlagSet = FlagSet(4);
    /// Signed overflow.
    pub const OVERFLOW: FlagSet = FlagSet(8);
    /// Unordered, of floats.
    pub const PARITY: FlagSet = FlagSet(16);

    /// The union of two sets.
    #[must_use]
    pub const fn and(self, other: FlagSet) -> FlagSet {
        FlagSet(self.0 | other.0)
    }

    /// Whether the set contains all flags of `other`.
    pub const fn contains(self, other: FlagSet) -> bool {
        self.0 & other.0 == other.0
    }
}

/// An instruction of an instruction set.
pub trait Inst: Copy + PartialEq + fmt::Debug + 'static {
    /// A jump table with at most this many entries besides the default is emitted as comparisons, a longer one as an indirect
    /// jump.
    const COMPARED_ENTRIES: usize;
    /// Allocatable registers that a call destroys. They are allocated first.
    const CALLER_SAVED: RegSet;
    /// Allocatable registers that a call preserves. A function that uses one saves it in its frame.
    const CALLEE_SAVED: RegSet;

    /// The offset in the module of its Wasm instruction, or 0.
    fn pc(&self) -> u32;

    /// This instruction with another pc.
    #[must_use]
    fn at(self, pc: u32) -> Self;

    /// The control flow after it.
    fn control(&self) -> Control;

    /// The index of its [`RegList`], if it has one.
    fn list(&self) -> Option<u32>;

    /// Sets the index of its register list or jump table.
    fn set_index(&mut self, index: u32);

    /// Whether it is a call that returns here.
    fn is_call(&self) -> bool;

    /// Whether it is a call that does not return here, but to this function's caller.
    fn is_tail_call(&self) -> bool;

    /// Calls `f` with each of its virtual registers, without changing them. [`Inst::assign`] visits them in the same order.
    fn operands(&mut self, lists: &mut [RegList], f: impl FnMut(Operand));

    /// Replaces each virtual register by the next place.
    ///
    /// # Errors
    /// A place is a spill slot where the instruction needs a register.
    fn assign(&mut self, lists: &mut [RegList], next: impl FnMut() -> Place) -> Result<(), AllocationError>;

    /// Calls `f` with each of its register operands and its current place. Physical registers, spill slots and registers in
    /// addresses are included. The index of a [`Constraint::Reuse`](crate::regalloc::Constraint) counts the operands that this
    /// visits. Changes nothing.
    fn places(&mut self, lists: &mut [RegList], f: impl FnMut(Operand, Place));

    /// The flags that it reads.
    fn flags_read(&self) -> FlagSet;

    /// The flags that may be read after it, or `None` if it preserves the flags, as the allocator's copies do.
    fn flags_defined(&self) -> Option<FlagSet>;

    /// Registers that it destroys besides its definitions.
    fn clobbers(&self, lists: &[RegList]) -> RegSet;

    /// Checks its fields other than registers and spill slots: it must not have an operand that its shape lacks, and immediates
    /// must fit their fields.
    ///
    /// # Errors
    /// A description of the error.
    fn check(&self, pool_bytes: usize) -> Result<(), String>;

    /// Name of a physical register.
    fn register_name(reg: Reg) -> &'static str;

    /// Its name: the mnemonic, with the width and the condition if it has them.
    fn name(&self) -> String;

    /// The instruction with this name, without operands. `list` is the index of its register list if it has one.
    fn named(name: &str, list: u32) -> Option<Self>;

    /// Writes an instruction without a register list: `dst = name operands`. The machine layer adds the successors.
    ///
    /// # Errors
    /// The errors of `f`.
    fn write(&self, f: &mut dyn fmt::Write) -> fmt::Result;

    /// Parses the operands of this instruction, which [`Inst::named`] has returned: `dst` is the text before ` = `, and `line`
    /// is the text after the name.
    ///
    /// # Errors
    /// The expected item.
    fn read(&mut self, dst: Option<Reg>, line: &mut Line<'_>) -> Result<(), String>;
}
