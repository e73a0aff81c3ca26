//! Open blocks, and what jumps to their ends have in common.

use super::values::{Copies, Kind};
use crate::regalloc::{Class, Reg};
use crate::x64::abi;
use crate::x64::forms::Field;
use smallvec::SmallVec;
use weir_bytecode::ValType;

/// The types that a block takes or gives.
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

    /// The kind of the only one.
    pub fn only(&self) -> Kind {
        match self {
            Types::One(ty) => Kind::of(*ty),
            Types::Many(types) => Kind::of(types[0]),
        }
    }
}

/// Where a jump to a label that is not placed yet keeps its target.
#[derive(Clone, Copy, Debug)]
pub enum Jump {
    /// In its distance.
    Field(Field),
    /// In this entry of this jump table.
    Entry(usize, usize),
}

/// An open block.
#[derive(Debug)]
pub struct Label<'c> {
    pub kind: LabelKind,
    /// The index of its first parameter, and of its first result.
    pub height: usize,
    pub params: Types<'c>,
    pub results: Types<'c>,
    /// The jumps to its end.
    pub jumps: SmallVec<[Jump; 4]>,
    /// The copies that all of them have.
    pub copies: Option<Box<Copies>>,
}

/// What a label is of.
#[derive(Debug)]
pub enum LabelKind {
    Function,
    Block,
    /// The head is here.
    Loop(usize),
    /// The first arm of an `if`.
    If {
        /// The jump to the second arm.
        field: Field,
        /// The copies that there are then.
        copies: Box<Copies>,
        /// The entry in the side table.
        entry: u32,
    },
}

impl<'c> Label<'c> {
    /// What a branch to it takes.
    pub fn takes(&self) -> Types<'c> {
        match self.kind {
            LabelKind::Loop(_) => self.params,
            LabelKind::Function | LabelKind::Block | LabelKind::If { .. } => self.results,
        }
    }

    /// Adds the copies that another jump has.
    pub fn meet(&mut self, copies: Copies) {
        match &mut self.copies {
            Some(known) => known.meet(&copies),
            none => *none = Some(Box::new(copies)),
        }
    }

    /// The head of the loop that it is of.
    pub fn head(&self) -> Option<usize> {
        match self.kind {
            LabelKind::Loop(head) => Some(head),
            LabelKind::Function | LabelKind::Block | LabelKind::If { .. } => None,
        }
    }
}

/// The register in which a block's only result is at its end, and a function's when it returns.
pub fn merge_register(kind: Kind) -> Reg {
    match kind.class() {
        Class::Int => abi::RAX,
        Class::Float => Reg::float(0),
    }
}
