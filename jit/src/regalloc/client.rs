//! The interface between an allocator and the code it allocates for.
//!
//! Code is a sequence of instructions cut into blocks, in SSA form over virtual registers with block parameters.
//! Critical edges are split, and only a block with a single successor passes arguments to it. A block may end with a call, which destroys
//! registers: then each of its successors has one predecessor, and no parameters.

use std::ops::Range;

/// A bank of registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Class {
    /// General-purpose registers of 64 bits.
    Int = 0,
    /// Vector registers.
    Float = 1,
}

/// A register that an instruction names: virtual before allocation, physical after it. Physical registers have numbers
/// below 32, with the class in bit 4. The lower three bits of a virtual register are its kind: a general-purpose register; a
/// vector register whose value takes 8 bytes in memory, or 32, or 16; or a general-purpose register that is *traced*: its value is a
/// reference that the collector follows and may change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg(u32);

impl Reg {
    /// No register.
    pub const NONE: Reg = Reg(u32::MAX);
    /// The number of physical registers that can be numbered.
    pub const PHYSICAL: usize = Reg::FIRST_VIRTUAL as usize;
    /// The number of physical registers of a class that can be numbered.
    pub const OF_CLASS: usize = Reg::PHYSICAL / 2;
    const FIRST_VIRTUAL: u32 = 32;

    /// The general-purpose register with this encoding.
    pub const fn int(encoding: u8) -> Reg {
        Reg(encoding as u32)
    }

    /// The vector register with this encoding.
    pub const fn float(encoding: u8) -> Reg {
        Reg::physical(Class::Float, encoding)
    }

    /// The physical register of `class` with this encoding.
    pub const fn physical(class: Class, encoding: u8) -> Reg {
        debug_assert!((encoding as usize) < Reg::OF_CLASS);
        Reg(Reg::OF_CLASS as u32 * class as u32 + encoding as u32)
    }

    /// The `n`-th virtual register. Classes and widths share the numbers.
    pub const fn new_virtual(class: Class, n: u32) -> Reg {
        Reg(Reg::FIRST_VIRTUAL + (n << 3 | class as u32))
    }

    /// The `n`-th virtual register, for a value of 128 bits.
    pub const fn new_wide(n: u32) -> Reg {
        Reg(Reg::FIRST_VIRTUAL + (n << 3 | 3))
    }

    /// The `n`-th virtual register, for a value of 256 bits.
    pub const fn new_long(n: u32) -> Reg {
        Reg(Reg::FIRST_VIRTUAL + (n << 3 | 2))
    }

    /// The `n`-th virtual register, for a reference that the collector may change.
    pub const fn new_traced(n: u32) -> Reg {
        Reg(Reg::FIRST_VIRTUAL + (n << 3 | 4))
    }

    /// All physical registers, by number.
    pub fn all_physical() -> impl Iterator<Item = Reg> {
        (0..Reg::FIRST_VIRTUAL).map(Reg)
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

    /// The number of a virtual register.
    pub const fn index(self) -> usize {
        debug_assert!(self.is_virtual());
        ((self.0 - Reg::FIRST_VIRTUAL) >> 3) as usize
    }

    /// The number of a physical register, below [`Reg::PHYSICAL`].
    pub const fn number(self) -> usize {
        debug_assert!(self.is_physical());
        self.0 as usize
    }

    /// The encoding of a physical register.
    pub const fn encoding(self) -> u8 {
        debug_assert!(self.is_physical());
        (self.0 % Reg::OF_CLASS as u32) as u8
    }

    /// The register's bank.
    pub const fn class(self) -> Class {
        let float = if self.is_virtual() { self.0 & 3 != 0 } else { self.0 & Reg::OF_CLASS as u32 != 0 };
        if float { Class::Float } else { Class::Int }
    }

    /// Whether this is a virtual register for a value of 128 bits.
    pub const fn is_wide(self) -> bool {
        self.is_virtual() && self.0 & 7 == 3
    }

    /// Whether this is a virtual register for a value of 256 bits.
    pub const fn is_long(self) -> bool {
        self.is_virtual() && self.0 & 7 == 2
    }

    /// Whether this is a virtual register for a reference that the collector may change.
    pub const fn is_traced(self) -> bool {
        self.is_virtual() && self.0 & 7 == 4
    }
}

impl std::fmt::Debug for Reg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.is_none(), self.is_virtual(), self.class()) {
            (true, ..) => f.write_str("_"),
            (_, true, Class::Int) if self.is_traced() => write!(f, "t{}", self.index()),
            (_, true, Class::Int) => write!(f, "v{}", self.index()),
            (_, true, Class::Float) if self.is_wide() => write!(f, "x{}", self.index()),
            (_, true, Class::Float) if self.is_long() => write!(f, "y{}", self.index()),
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
    /// The empty set.
    pub const EMPTY: RegSet = RegSet(0);

    /// This set and `reg`.
    #[must_use]
    pub const fn with(self, reg: Reg) -> RegSet {
        debug_assert!(reg.is_physical());
        RegSet(self.0 | 1 << reg.0)
    }

    /// This set without `reg`.
    #[must_use]
    pub const fn without(self, reg: Reg) -> RegSet {
        debug_assert!(reg.is_physical());
        RegSet(self.0 & !(1 << reg.0))
    }

    /// Whether the set contains `reg`.
    pub const fn contains(self, reg: Reg) -> bool {
        self.0 >> reg.0 & 1 != 0
    }

    /// The union of two sets.
    #[must_use]
    pub const fn union(self, other: RegSet) -> RegSet {
        RegSet(self.0 | other.0)
    }

    /// The intersection of two sets.
    #[must_use]
    pub const fn intersection(self, other: RegSet) -> RegSet {
        RegSet(self.0 & other.0)
    }

    /// The registers of `class` whose encodings are the bits of `mask`.
    pub const fn of_class(class: Class, mask: u16) -> RegSet {
        RegSet((mask as u64) << (Reg::OF_CLASS as u32 * class as u32))
    }

    /// The registers of the set that `keep` accepts.
    #[must_use]
    #[inline]
    pub fn filter(self, keep: impl Fn(Reg) -> bool) -> RegSet {
        let mut rest = self.0;
        let mut kept = 0;
        while rest != 0 {
            let bit = rest & rest.wrapping_neg();
            kept |= if keep(Reg(rest.trailing_zeros())) { bit } else { 0 };
            rest ^= bit;
        }
        RegSet(kept)
    }

    /// The registers of this set that are not in the other.
    #[must_use]
    pub const fn minus(self, other: RegSet) -> RegSet {
        RegSet(self.0 & !other.0)
    }

    /// Whether the set contains no register.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The first register in the set.
    pub const fn first(self) -> Option<Reg> {
        if self.0 == 0 { None } else { Some(Reg(self.0.trailing_zeros())) }
    }

    /// The set's registers, ascending.
    pub fn iter(self) -> impl Iterator<Item = Reg> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let first = rest.trailing_zeros();
            rest &= rest - 1;
            Some(Reg(first))
        })
    }
}

impl FromIterator<Reg> for RegSet {
    fn from_iter<I: IntoIterator<Item = Reg>>(regs: I) -> RegSet {
        regs.into_iter().fold(RegSet::EMPTY, RegSet::with)
    }
}

/// An instruction's access to an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It reads the operand.
    Use,
    /// It writes the operand.
    Def,
}

/// When an operand is read or written. Operands that overlap in time get different registers. A use is normally early
/// and a definition late, so that they can share a register. An early definition is a scratch register, or is written
/// before all uses are read. A late use is read after some definition is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// Before the instruction's effect.
    Early,
    /// After the instruction's effect.
    Late,
}

/// The places where an operand may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Constraint {
    /// In a register or a spill slot.
    Any,
    /// In a register.
    Reg,
    /// In the given register.
    Fixed(Reg),
    /// For a definition: in the same register as the use with this operand index.
    Reuse(u8),
}

/// A use or definition of a virtual register in an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operand {
    /// The virtual register.
    pub reg: Reg,
    /// The places where the register may be.
    pub constraint: Constraint,
    /// Whether it is read or written.
    pub role: Role,
    /// When it is read or written.
    pub position: Position,
}

/// The code to allocate for.
pub trait Client {
    /// The number of virtual registers.
    fn num_regs(&self) -> usize;
    /// The number of instructions.
    fn num_insts(&self) -> usize;
    /// The number of blocks. Block 0 is the entry, and loops are contiguous, but for their [rare blocks](Client::first_rare).
    fn num_blocks(&self) -> usize;
    /// The instructions of a block.
    fn insts(&self, block: usize) -> Range<u32>;
    /// The successors of a block.
    fn succs(&self, block: usize) -> &[u32];
    /// The predecessors of a block, one entry per edge.
    fn preds(&self, block: usize) -> &[u32];
    /// Virtual registers that a block defines at its head.
    fn params(&self, block: usize) -> &[Reg];
    /// The arguments that a block with a single successor passes to its parameters.
    fn args(&self, block: usize) -> &[Reg];
    /// Whether an instruction leaves the function.
    fn is_return(&self, inst: usize) -> bool;
    /// The operands of an instruction.
    fn operands(&self, inst: usize) -> &[Operand];
    /// Registers that an instruction destroys besides its definitions.
    fn clobbers(&self, inst: usize) -> RegSet;
    /// Whether the collector may run during an instruction. Such an instruction clobbers every preferred register, unless it defines
    /// it.
    fn is_safepoint(&self, inst: usize) -> bool;
    /// Loops as ranges of blocks, each starting with its header. They nest properly, and outer loops come before inner ones.
    fn loops(&self) -> &[Range<u32>];
    /// The frequency of a block: its number of executions for each call of the function.
    fn frequency(&self, block: usize) -> f32;
    /// The first of the blocks that come last because they are rare, wherever they belong; the number of blocks if there are none.
    fn first_rare(&self) -> usize {
        self.num_blocks()
    }
    /// Registers to use first, and the only ones for traced values that live across a safepoint.
    fn preferred(&self) -> RegSet;
    /// Registers to use when the preferred ones are taken. The function must save and restore those it uses.
    fn others(&self) -> RegSet;
}

/// The size of a spill slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SlotWidth {
    /// 8 bytes.
    Word,
    /// 16 bytes.
    Wide,
    /// 32 bytes.
    Long,
}

impl SlotWidth {
    /// The size of a slot that can hold a value of this virtual register.
    pub fn of(reg: Reg) -> SlotWidth {
        match (reg.is_wide(), reg.is_long()) {
            (true, _) => SlotWidth::Wide,
            (_, true) => SlotWidth::Long,
            (false, false) => SlotWidth::Word,
        }
    }

    /// The number of bytes.
    pub const fn bytes(self) -> usize {
        match self {
            SlotWidth::Word => 8,
            SlotWidth::Wide => 16,
            SlotWidth::Long => 32,
        }
    }
}

/// The location of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In a physical register.
    Reg(Reg),
    /// In a spill slot, of the width in [`Assignment::slots`].
    Slot(u32),
}

/// A copy that the allocator inserts. It is never from slot to slot. Between a slot and a vector register, it copies as
/// many bytes as the slot has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move {
    /// The instruction before which it is inserted. Copies before the same instruction are executed in the order of the list.
    pub before: u32,
    /// Source.
    pub from: Place,
    /// Destination.
    pub to: Place,
}

/// The result of an allocation.
#[derive(Debug, Default)]
pub struct Assignment {
    /// The places of all operands, by instruction.
    pub places: Vec<Place>,
    /// For each instruction, the index in `places` of its first operand.
    pub starts: Vec<u32>,
    /// Inserted copies, ascending by instruction.
    pub moves: Vec<Move>,
    /// The spill slots.
    pub slots: Vec<SlotWidth>,
    /// For each safepoint, ascending, and each traced value that lives across it: the instruction, and the slot in which the value is.
    /// The collector finds it there, may change it, and changes nothing else.
    pub roots: Vec<(u32, u32)>,
}

impl Assignment {
    /// The places of an instruction's operands.
    pub fn places(&self, inst: usize) -> &[Place] {
        let end = self.starts.get(inst + 1).map_or(self.places.len(), |&end| end as usize);
        &self.places[self.starts[inst] as usize..end]
    }

    /// The slots of the roots at an instruction.
    pub fn roots(&self, inst: u32) -> impl Iterator<Item = u32> {
        let roots = &self.roots[self.roots.partition_point(|root| root.0 < inst)..];
        roots.iter().take_while(move |root| root.0 == inst).map(|root| root.1)
    }
}
