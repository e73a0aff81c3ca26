//! Open blocks, and the common state of the jumps to their ends.

use super::values::{Copies, Kind, Registers, Spare};
use crate::regalloc::{Class, Reg};
use crate::x64::abi;
use crate::x64::forms::Field;
use weir_bytecode::{FuncType, ValType};

/// The types that a block takes or returns.
#[derive(Clone, Copy, Debug)]
pub enum Types<'c> {
    One(ValType),
    Many(&'c [ValType]),
}

impl Types<'_> {
    pub fn len(&self) -> usize {
        match self {
            Types::One(_) => 1,
            Types::Many(types) => types.len(),
        }
    }

    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        let types = match self {
            Types::One(ty) => std::slice::from_ref(ty),
            Types::Many(types) => types,
        };
        types.iter().map(|&ty| Kind::of(ty))
    }

    /// The kind of the only type.
    pub fn only(&self) -> Kind {
        match self {
            Types::One(ty) => Kind::of(*ty),
            Types::Many(types) => Kind::of(types[0]),
        }
    }
}

/// The type of a block. A function may open one with every two of its bytes, so that the size of a [`Label`] matters.
#[derive(Clone, Copy, Debug)]
pub enum Signature<'c> {
    Empty,
    Value(ValType),
    Func(&'c FuncType),
}

impl<'c> Signature<'c> {
    pub fn params(self) -> Types<'c> {
        match self {
            Signature::Empty | Signature::Value(_) => Types::Many(&[]),
            Signature::Func(ty) => Types::Many(&ty.params),
        }
    }

    pub fn results(self) -> Types<'c> {
        match self {
            Signature::Empty => Types::Many(&[]),
            Signature::Value(ty) => Types::One(ty),
            Signature::Func(ty) => Types::Many(&ty.results),
        }
    }
}

/// The place of the distance of a jump to a label that is not placed yet.
#[derive(Clone, Copy, Debug)]
pub enum Jump {
    /// The jump's field.
    Field(Field),
    /// The index of a jump table, and of an entry in it.
    Entry(u32, u32),
    /// The landing with this index.
    Landing(u32),
}

/// A jump, and another one to the same label.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub jump: Jump,
    pub next: Chain,
}

/// The jumps to a label: the index of the last one, after which the others follow.
#[derive(Clone, Copy, Debug)]
pub struct Chain(u32);

impl Chain {
    pub const EMPTY: Chain = Chain(u32::MAX);

    pub fn is_empty(self) -> bool {
        self.0 == u32::MAX
    }

    /// Adds a jump.
    pub fn push(&mut self, jumps: &mut Vec<Link>, jump: Jump) {
        jumps.push(Link { jump, next: *self });
        *self = Chain(jumps.len() as u32 - 1);
    }

    /// The jumps, the last one first.
    pub fn iter(self, jumps: &[Link]) -> impl Iterator<Item = Jump> {
        let mut chain = self;
        std::iter::from_fn(move || {
            let Link { jump, next } = *jumps.get(chain.0 as usize)?;
            chain = next;
            Some(jump)
        })
    }
}

/// An open block.
#[derive(Debug)]
pub struct Label<'c> {
    pub kind: LabelKind,
    height: u32,
    pub ty: Signature<'c>,
    /// The jumps to its end.
    pub jumps: Chain,
    /// The copies that all of them have in common.
    pub copies: Option<Box<Copies>>,
}

/// The kind of block that a label belongs to.
#[derive(Debug)]
pub enum LabelKind {
    Function,
    Block,
    /// A loop, with the offset of its header.
    Loop(usize),
    /// The first arm of an `if`.
    If {
        /// The jump to the second arm.
        field: Field,
        /// The copies at the beginning of the second arm.
        copies: Box<Copies>,
        /// The entry in the side table.
        entry: u32,
    },
}

impl<'c> Label<'c> {
    pub fn new(kind: LabelKind, height: usize, ty: Signature<'c>) -> Label<'c> {
        Label { kind, height: height as u32, ty, jumps: Chain::EMPTY, copies: None }
    }

    /// The index of its first parameter, and of its first result.
    pub fn height(&self) -> usize {
        self.height as usize
    }

    /// The types that a branch to it takes.
    pub fn takes(&self) -> Types<'c> {
        match self.kind {
            LabelKind::Loop(_) => self.ty.params(),
            LabelKind::Function | LabelKind::Block | LabelKind::If { .. } => self.ty.results(),
        }
    }

    /// Intersects the copies with those of another jump, at which the registers have these contents.
    pub fn meet(&mut self, registers: &Registers, spare: &mut Spare) {
        if let Some(copies) = &mut self.copies {
            return copies.meet(registers);
        }
        let mut copies = spare.take();
        copies.set(registers, self.height());
        let takes = self.takes();
        if takes.len() == 1 {
            copies.forget(merge_register(takes.only()));
        }
        self.copies = Some(copies);
    }

    /// The offset of the header, for a loop.
    pub fn head(&self) -> Option<usize> {
        match self.kind {
            LabelKind::Loop(head) => Some(head),
            LabelKind::Function | LabelKind::Block | LabelKind::If { .. } => None,
        }
    }
}

/// The register that holds a block's only result at its end, and a function's at its return.
pub fn merge_register(kind: Kind) -> Reg {
    match kind.class() {
        Class::Int => abi::RAX,
        Class::Float => Reg::float(0),
    }
}
