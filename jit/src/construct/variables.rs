//! The variables of a function, and its constants.

use super::braun;
use super::definitions::NumberHash;
use super::joins::Joins;
use super::osr::state::{ENCLOSING, Merged, frame_slot};
use crate::ir::{Entry, Func, Op, Type, Value};
use weir_bytecode::FuncBody;

/// What the variables are: locals first, then, in an OSR body, operand slots.
pub(super) struct Variables<'m> {
    pub(super) body: &'m FuncBody,
    /// If the form is that of an OSR body that holds everything once.
    pub(super) merged: Option<Merged<'m>>,
    pub(super) joins: Joins,
    /// What is to stand at the head of the entry block.
    pub(super) leaders: Vec<Value>,
    pub(super) constants: Constants,
}

impl Variables<'_> {
    /// The constant `bits`, which stands in the entry block.
    pub(super) fn constant(&mut self, func: &mut Func<'_>, ty: Type, bits: u64) -> Value {
        let slot = self.constants.find(func, ty, bits);
        if self.constants.slots[slot] != Constants::FREE {
            return self.constants.slots[slot];
        }
        let value = func.create(Op::Const, ty, 0, 0, bits, &[]);
        self.leaders.push(value);
        self.constants.set(func, slot, value);
        value
    }
}

/// The constants of a function by type and bits: open addressing with linear probing, at most half full.
pub(super) struct Constants {
    /// A power of two of them.
    slots: Vec<Value>,
    taken: usize,
    hash: NumberHash,
}

impl Constants {
    const FREE: Value = Value(u32::MAX);

    pub(super) fn new() -> Constants {
        Constants { slots: vec![Constants::FREE; 32], taken: 0, hash: NumberHash::default() }
    }

    /// The slot of this constant, or a free one for it.
    fn find(&self, func: &Func<'_>, ty: Type, bits: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = self.hash.of(bits ^ (ty as u64) << 56) as usize & mask;
        loop {
            let value = self.slots[at];
            if value == Constants::FREE || (func.ty(value), func.inst(value).imm) == (ty, bits) {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    fn set(&mut self, func: &Func<'_>, slot: usize, value: Value) {
        self.slots[slot] = value;
        self.taken += 1;
        if 2 * self.taken > self.slots.len() {
            let grown = vec![Constants::FREE; 2 * self.slots.len()];
            for value in std::mem::replace(&mut self.slots, grown).into_iter().filter(|&value| value != Constants::FREE) {
                let slot = self.find(func, func.ty(value), func.inst(value).imm);
                self.slots[slot] = value;
            }
        }
    }
}

impl braun::Variables for Variables<'_> {
    fn initial(&mut self, func: &mut Func<'_>, variable: u32, ty: Type) -> Value {
        match func.entry {
            Entry::Osr(_) => {
                let value = func.create(Op::OsrSlot, ty, 0, 0, frame_slot(self.body, variable), &[]);
                self.leaders.push(value);
                value
            }
            Entry::Call => self.constant(func, ty, 0),
        }
    }

    fn assigned(&self, region: u32, variable: u32) -> bool {
        match &self.merged {
            Some(merged) if region == ENCLOSING => merged.assigned(self.body, variable),
            _ => match region.checked_sub(self.body.loops.len() as u32) {
                Some(join) => self.joins.assigned(join, variable),
                None => self.body.loops[region as usize].assigned.contains(variable),
            },
        }
    }
}
