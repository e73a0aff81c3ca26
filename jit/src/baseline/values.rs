//! The state of the frame's locals and operands during compilation: the place of each besides its slot.
//!
//! Every local and operand has its slot in the interpreter's frame. A value is *stored* if its slot holds it. A
//! register that holds a stored value is a copy and may be reused at any time. Constants and unread copies of locals
//! take neither a register nor a slot until they are needed; such a value is not stored.

use crate::ir::Type;
use crate::regalloc::{Class, Reg};
use crate::x64::insts::Width;
use smallvec::SmallVec;
use weir_bytecode::ValType;
use weir_bytecode::types::HeapType;

/// The type of a value, as far as code depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    I32,
    I64,
    F32,
    F64,
    V128,
    /// A reference to a function.
    Ref,
    /// A reference into the collected heap. After a call it is in its slot only: the collector may have changed it there.
    Gc,
}

impl Kind {
    /// The kind of a type.
    pub fn of(ty: ValType) -> Kind {
        match ty {
            ValType::I32 => Kind::I32,
            ValType::I64 => Kind::I64,
            ValType::F32 => Kind::F32,
            ValType::F64 => Kind::F64,
            ValType::V128 => Kind::V128,
            ValType::Ref(ty) => Kind::of_heap(ty.heap),
        }
    }

    /// The kind of a reference to such values.
    pub fn of_heap(heap: HeapType) -> Kind {
        if heap.is_collected() { Kind::Gc } else { Kind::Ref }
    }

    /// The kind of a type of SSA.
    pub fn of_ssa(ty: Type) -> Kind {
        match ty {
            Type::I32 => Kind::I32,
            Type::F32 => Kind::F32,
            Type::F64 => Kind::F64,
            Type::V128 => Kind::V128,
            Type::Ref => Kind::Ref,
            Type::Gc => Kind::Gc,
            Type::I64 | Type::Void => Kind::I64,
            Type::V256 => unreachable!("no pass makes stencils"),
        }
    }

    /// The bank of its registers.
    pub fn class(self) -> Class {
        match self {
            Kind::I32 | Kind::I64 | Kind::Ref | Kind::Gc => Class::Int,
            Kind::F32 | Kind::F64 | Kind::V128 => Class::Float,
        }
    }

    /// The number of bits that it takes in a register and in a slot.
    pub fn width(self) -> Width {
        match self {
            Kind::I32 | Kind::F32 => Width::D,
            Kind::I64 | Kind::F64 | Kind::Ref | Kind::Gc => Width::Q,
            Kind::V128 => Width::X,
        }
    }
}

/// The place of a value besides its slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    /// In its slot only.
    Slot,
    /// In no place: it is a constant with these bits.
    Const(u64),
    /// In this register.
    Reg(Reg),
    /// In the place of this local, whose value it has. Only for operands.
    Local(u32),
}

/// A local or an operand.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    pub kind: Kind,
    pub at: At,
    /// Whether its slot holds it.
    pub stored: bool,
}

/// An operand that was popped.
#[derive(Clone, Copy, Debug)]
pub struct Popped {
    pub kind: Kind,
    pub at: At,
    /// The index that it had among the values. If `at` is [`At::Slot`], the slot with this index holds it.
    pub index: usize,
}

/// A set of physical registers, by [`Reg::number`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Set(u64);

impl Set {
    pub const EMPTY: Set = Set(0);

    pub const fn with(self, reg: Reg) -> Set {
        Set(self.0 | 1 << reg.number())
    }

    pub fn insert(&mut self, reg: Reg) {
        self.0 |= 1 << reg.number();
    }

    pub fn remove(&mut self, reg: Reg) {
        self.0 &= !(1 << reg.number());
    }

    pub fn contains(self, reg: Reg) -> bool {
        self.0 & 1 << reg.number() != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn and(self, other: Set) -> Set {
        Set(self.0 & other.0)
    }

    pub fn or(self, other: Set) -> Set {
        Set(self.0 | other.0)
    }

    pub fn without(self, other: Set) -> Set {
        Set(self.0 & !other.0)
    }

    pub fn first(self) -> Option<Reg> {
        (self.0 != 0).then(|| Set::reg(self.0.trailing_zeros()))
    }

    pub fn iter(self) -> impl Iterator<Item = Reg> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let number = (rest != 0).then(|| rest.trailing_zeros())?;
            rest &= rest - 1;
            Some(Set::reg(number))
        })
    }

    fn reg(number: u32) -> Reg {
        if number < 32 { Reg::int(number as u8) } else { Reg::float(number as u8 - 32) }
    }
}

/// The registers and their contents.
#[derive(Clone, Debug)]
pub struct Registers {
    /// By number, the index of the value in the register, if the register is in `owned`.
    owner: [u32; 48],
    /// Registers that hold a value.
    pub owned: Set,
    /// Registers in use by the current instruction, which must not be taken.
    pub locked: Set,
    /// General-purpose registers that hold an i32 and whose upper half is unspecified.
    pub unextended: Set,
    /// The number of the register that was freed last, after which the search for the next one begins.
    clock: u32,
}

impl Registers {
    pub fn new() -> Registers {
        Registers { owner: [0; 48], owned: Set::EMPTY, locked: Set::EMPTY, unextended: Set::EMPTY, clock: 0 }
    }

    /// The value that an owned register holds.
    pub fn owner(&self, reg: Reg) -> usize {
        debug_assert!(self.owned.contains(reg));
        self.owner[reg.number()] as usize
    }

    /// Gives a register to a value.
    pub fn give(&mut self, reg: Reg, index: usize) {
        self.owner[reg.number()] = index as u32;
        self.owned.insert(reg);
    }

    /// A register of `set` that holds nothing.
    pub fn free(&self, set: Set) -> Option<Reg> {
        set.without(self.owned).without(self.locked).first()
    }

    /// The next register of `set` to free, in round-robin order. All of them hold values.
    pub fn victim(&mut self, set: Set) -> Reg {
        let candidates = set.without(self.locked);
        debug_assert!(!candidates.is_empty(), "an instruction uses few registers");
        let later = Set(candidates.0 & u64::MAX.checked_shl(self.clock + 1).unwrap_or(0));
        let reg = later.first().or(candidates.first()).unwrap_or(Reg::NONE);
        self.clock = reg.number() as u32;
        reg
    }
}

/// Locals with their registers.
pub type PinnedLocals = SmallVec<[(u32, Reg); 12]>;

/// The pins of the innermost open loop: see `pins`.
#[derive(Default, Debug)]
pub struct Pins {
    /// The index of the loop's label.
    pub label: usize,
    /// The pinned locals.
    pub list: PinnedLocals,
    /// The registers.
    pub set: Set,
}

/// The contents of registers at a label: copies of stored values.
#[derive(Debug)]
pub struct Copies {
    owner: [u32; 48],
    owned: Set,
    unextended: Set,
}

impl Default for Copies {
    fn default() -> Copies {
        Copies { owner: [0; 48], owned: Set::EMPTY, unextended: Set::EMPTY }
    }
}

impl Copies {
    /// Replaces them by the copies of locals and of the operands below `height`.
    pub fn set(&mut self, registers: &Registers, height: usize) {
        self.owned = registers.owned;
        for reg in registers.owned.iter() {
            let owner = registers.owner(reg);
            self.owner[reg.number()] = owner as u32;
            if owner >= height {
                self.owned.remove(reg);
            }
        }
        self.unextended = registers.unextended;
    }

    /// Keeps the copies that the registers have, too.
    pub fn meet(&mut self, registers: &Registers) {
        let mut owned = self.owned.and(registers.owned);
        for reg in owned.iter() {
            if self.owner[reg.number()] != registers.owner[reg.number()] {
                owned.remove(reg);
            }
        }
        self.owned = owned;
        self.unextended = self.unextended.or(registers.unextended);
    }

    /// The registers with their contents.
    pub fn iter(&self) -> impl Iterator<Item = (Reg, usize)> {
        self.owned.iter().map(|reg| (reg, self.owner[reg.number()] as usize))
    }

    /// Registers that hold an i32 with an unspecified upper half.
    pub fn unextended(&self) -> Set {
        self.unextended
    }

    /// Removes a register.
    pub fn forget(&mut self, reg: Reg) {
        self.owned.remove(reg);
    }
}

/// Boxes that no label uses any more, to be used again.
#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "labels own the boxes in turn")]
pub struct Spare(Vec<Box<Copies>>);

impl Spare {
    /// A box, whose contents mean nothing.
    pub fn take(&mut self) -> Box<Copies> {
        self.0.pop().unwrap_or_default()
    }

    /// Keeps a box, if there are few: as many labels may have one as there are bytes.
    pub fn put(&mut self, copies: Box<Copies>) {
        const KEPT: usize = 256;
        if self.0.len() < KEPT {
            self.0.push(copies);
        }
    }
}
