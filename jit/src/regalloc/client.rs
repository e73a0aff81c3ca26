//! The interface between an allocator and the code it allocates for.
//!
//! Code is a sequence of instructions cut into blocks, in SSA form over virtual registers with block parameters.
//! Critical edges are split, and only a block with a single successor passes arguments to it.

use std::ops::Range;

/// A bank of registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Class {
    /// General-purpose registers, 64 bits.
    Int = 0,
    /// Vector registers.
    Float = 1,
}

/// A register as an instruction names it: virtual before allocation, physical after it. Physical registers are
/// numbered below 64, bit 5 is the class; of a virtual one bit 0 is the class, and bit 1 says that it is *wide*: that
/// its value takes all 128 bits of a vector register, and so 16 bytes in memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg(u32);

impl Reg {
    /// No register.
    pub const NONE: Reg = Reg(u32::MAX);
    /// How many numbers physical registers have.
    pub const PHYSICAL: usize = Reg::FIRST_VIRTUAL as usize;
    const FIRST_VIRTUAL: u32 = 64;

    /// The general-purpose register with this encoding.
    pub const fn int(encoding: u8) -> Reg {
        Reg(encoding as u32)
    }

    /// The vector register with this encoding.
    pub const fn float(encoding: u8) -> Reg {
        Reg(32 + encoding as u32)
    }

    /// The physical register of `class` with this encoding.
    pub const fn physical(class: Class, encoding: u8) -> Reg {
        Reg(32 * class as u32 + encoding as u32)
    }

    /// The `n`-th virtual register; numbers are shared by the classes and widths.
    pub const fn new_virtual(class: Class, n: u32) -> Reg {
        Reg(Reg::FIRST_VIRTUAL + (n << 2 | class as u32))
    }

    /// The `n`-th virtual register, a wide one.
    pub const fn new_wide(n: u32) -> Reg {
        Reg(Reg::FIRST_VIRTUAL + (n << 2 | 2 | Class::Float as u32))
    }

    /// Whether this is no register.
    pub const fn is_none(self) -> bool {
        self.0 == Reg::NONE.0
    }

    /// Whether this is a virtual register.
    pub const fn is_virtual(self) -> bool {
        self.0 >= Reg::FIRST_VIRTUAL && !self.is_none()
    }

    /// Whether this is a physical register.
    pub const fn is_physical(self) -> bool {
        self.0 < Reg::FIRST_VIRTUAL
    }

    /// Number of a virtual register.
    pub const fn index(self) -> usize {
        debug_assert!(self.is_virtual());
        ((self.0 - Reg::FIRST_VIRTUAL) >> 2) as usize
    }

    /// Number of a physical register, below [`Reg::PHYSICAL`].
    pub const fn number(self) -> usize {
        debug_assert!(self.is_physical());
        self.0 as usize
    }

    /// Encoding of a physical register.
    pub const fn encoding(self) -> u8 {
        debug_assert!(self.is_physical());
        (self.0 & 31) as u8
    }

    /// Its bank.
    pub const fn class(self) -> Class {
        let float = if self.is_virtual() { self.0 & 1 != 0 } else { self.0 & 32 != 0 };
        if float { Class::Float } else { Class::Int }
    }

    /// Whether this is a wide virtual register.
    pub const fn is_wide(self) -> bool {
        self.is_virtual() && self.0 & 2 != 0
    }
}

impl std::fmt::Debug for Reg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.is_none(), self.is_virtual(), self.class()) {
            (true, ..) => f.write_str("_"),
            (_, true, Class::Int) => write!(f, "v{}", self.index()),
            (_, true, Class::Float) if self.is_wide() => write!(f, "x{}", self.index()),
            (_, true, Class::Float) => write!(f, "f{}", self.index()),
            (_, false, Class::Int) => write!(f, "int{}", self.encoding()),
            (_, false, Class::Float) => write!(f, "float{}", self.encoding()),
        }
    }
}

/// A set of physical registers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RegSet(u64);

impl RegSet {
    /// Nothing.
    pub const EMPTY: RegSet = RegSet(0);

    /// With `reg` too.
    #[must_use]
    pub const fn with(self, reg: Reg) -> RegSet {
        debug_assert!(reg.is_physical());
        RegSet(self.0 | 1 << reg.0)
    }

    /// Without `reg`.
    #[must_use]
    pub const fn without(self, reg: Reg) -> RegSet {
        debug_assert!(reg.is_physical());
        RegSet(self.0 & !(1 << reg.0))
    }

    /// Whether `reg` is in it.
    pub const fn contains(self, reg: Reg) -> bool {
        self.0 >> reg.0 & 1 != 0
    }

    /// In one of them.
    #[must_use]
    pub const fn union(self, other: RegSet) -> RegSet {
        RegSet(self.0 | other.0)
    }

    /// In both of them.
    #[must_use]
    pub const fn intersection(self, other: RegSet) -> RegSet {
        RegSet(self.0 & other.0)
    }

    /// Its members, ascending.
    pub fn iter(self) -> impl Iterator<Item = Reg> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let first = rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
            (first < u64::BITS).then_some(Reg(first))
        })
    }
}

impl FromIterator<Reg> for RegSet {
    fn from_iter<I: IntoIterator<Item = Reg>>(regs: I) -> RegSet {
        regs.into_iter().fold(RegSet::EMPTY, RegSet::with)
    }
}

/// What an instruction does with an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Reads it.
    Use,
    /// Writes it.
    Def,
}

/// When: operands that overlap in time get different registers. A use is normally early and a definition late, so that they
/// can share one. An early definition is a scratch register or is written before all uses are read; a late use is
/// read after some definition is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// Before the instruction's effect.
    Early,
    /// After it.
    Late,
}

/// Where an operand must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Constraint {
    /// In a register or a spill slot.
    Any,
    /// In a register.
    Reg,
    /// In this register.
    Fixed(Reg),
    /// A definition: in the register of the operand with this index, a use.
    Reuse(u8),
}

/// A mention of a virtual register in an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operand {
    /// The virtual register.
    pub reg: Reg,
    /// Where it must be.
    pub constraint: Constraint,
    /// Read or written.
    pub role: Role,
    /// When.
    pub position: Position,
}

/// The code to allocate for.
pub trait Client {
    /// How many virtual registers there are.
    fn num_regs(&self) -> usize;
    /// How many instructions there are.
    fn num_insts(&self) -> usize;
    /// How many blocks there are; block 0 is the entry, loops are contiguous.
    fn num_blocks(&self) -> usize;
    /// The instructions of a block.
    fn insts(&self, block: usize) -> Range<u32>;
    /// Successors.
    fn succs(&self, block: usize) -> &[u32];
    /// Predecessors, one entry per edge.
    fn preds(&self, block: usize) -> &[u32];
    /// Virtual registers that a block defines at its head.
    fn params(&self, block: usize) -> &[Reg];
    /// What a block with a single successor passes for that one's parameters.
    fn args(&self, block: usize) -> &[Reg];
    /// Whether an instruction leaves the function.
    fn is_return(&self, inst: usize) -> bool;
    /// The operands of an instruction.
    fn operands(&self, inst: usize) -> &[Operand];
    /// Registers that an instruction destroys besides its definitions.
    fn clobbers(&self, inst: usize) -> RegSet;
    /// Loops as ranges of blocks, each with its header first; properly nested, outer before inner.
    fn loops(&self) -> &[Range<u32>];
    /// How often a block is executed, as a multiple of the function's calls.
    fn frequency(&self, block: usize) -> f32;
    /// Registers to be used first.
    fn preferred(&self) -> RegSet;
    /// Registers to be used when the preferred ones are taken: using one costs saving and restoring it.
    fn others(&self) -> RegSet;
}

/// How much a spill slot holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotWidth {
    /// 8 bytes.
    Word,
    /// 16 bytes.
    Wide,
}

impl SlotWidth {
    /// What a value of this virtual register takes.
    pub fn of(reg: Reg) -> SlotWidth {
        if reg.is_wide() { SlotWidth::Wide } else { SlotWidth::Word }
    }
}

/// Where a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In a physical register.
    Reg(Reg),
    /// In a spill slot, of the width in [`Assignment::slots`].
    Slot(u32),
}

/// A copy that the allocator inserts; never from slot to slot. Between a slot and a vector register it has the slot's
/// width.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move {
    /// The instruction after it; of several copies, the first listed is the first executed.
    pub before: u32,
    /// Source.
    pub from: Place,
    /// Destination.
    pub to: Place,
}

/// The result of an allocation.
#[derive(Debug, Default)]
pub struct Assignment {
    /// Places of all operands, instruction after instruction.
    pub places: Vec<Place>,
    /// Where each instruction's operands begin in `places`.
    pub starts: Vec<u32>,
    /// Inserted copies, ascending by instruction.
    pub moves: Vec<Move>,
    /// The spill slots.
    pub slots: Vec<SlotWidth>,
}

impl Assignment {
    /// The places of an instruction's operands.
    pub fn places(&self, inst: usize) -> &[Place] {
        let end = self.starts.get(inst + 1).map_or(self.places.len(), |&end| end as usize);
        &self.places[self.starts[inst] as usize..end]
    }
}
