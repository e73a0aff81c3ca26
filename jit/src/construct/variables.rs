//! The variables of a function, and its constants.

use super::assignments::Assignments;
use super::braun;
use super::osr::state::{ENCLOSING, Merged, frame_slot};
use crate::hash_table::{HashTable, NumberHash, Slot};
use crate::ir::{Entry, Func, Op, Type, Value};
use weir_bytecode::FuncBody;

/// The variables: locals first, then, in an OSR body, operand slots.
pub(super) struct Variables<'m> {
    pub(super) body: &'m FuncBody,
    /// The first of the locals in which handlers store exceptions for `rethrow`. They are the last locals.
    pub(super) saved: u32,
    /// Set in the merged form of an OSR body.
    pub(super) merged: Option<Merged<'m>>,
    pub(super) assignments: Assignments,
    /// Instructions for the beginning of the entry block.
    pub(super) leaders: Vec<Value>,
    pub(super) constants: Constants,
}

/// Returns the first of the locals in which handlers store exceptions for `rethrow`, or the number of locals.
pub(super) fn first_saved(body: &FuncBody) -> u32 {
    body.handlers.iter().filter_map(|handler| handler.saved).min().unwrap_or(body.locals.len() as u32)
}

impl Variables<'_> {
    /// Returns the constant `bits`, which is in the entry block.
    pub(super) fn constant(&mut self, func: &mut Func<'_>, ty: Type, bits: u64) -> Value {
        let slot = self.constants.find(func, ty, bits);
        let found = self.constants.table.get(slot);
        if !found.is_free() {
            return found;
        }
        let value = func.create(Op::Const, ty, 0, 0, bits, &[]);
        self.leaders.push(value);
        self.constants.set(func, slot, value);
        value
    }
}

/// The constants of a function by type and bits, in a table that is at most half full.
pub(super) struct Constants {
    table: HashTable<Vec<Value>>,
    hash: NumberHash,
}

impl Constants {
    pub(super) fn new() -> Constants {
        Constants { table: HashTable::new(vec![Value::FREE; 32]), hash: NumberHash::default() }
    }

    /// Returns the slot of this constant, or a free one for it.
    fn find(&self, func: &Func<'_>, ty: Type, bits: u64) -> usize {
        self.table.find(hash_of(self.hash, ty, bits), |value| (func.ty(value), func.inst(value).imm) == (ty, bits))
    }

    fn set(&mut self, func: &Func<'_>, slot: usize, value: Value) {
        self.table.set(slot, value);
        if 2 * self.table.taken() > self.table.size() {
            let hash = self.hash;
            let slots = vec![Value::FREE; 2 * self.table.size()];
            self.table.move_to(slots, |value| hash_of(hash, func.ty(value), func.inst(value).imm));
        }
    }
}

fn hash_of(hash: NumberHash, ty: Type, bits: u64) -> u64 {
    hash.of(bits ^ (ty as u64) << 56)
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
        // Handlers assign these, which the sets of loops do not have.
        if (self.saved..self.body.locals.len() as u32).contains(&variable) {
            return true;
        }
        match &self.merged {
            Some(merged) if region == ENCLOSING => merged.assigned(self.body, variable),
            _ => match region.checked_sub(self.body.loops.len() as u32) {
                Some(join) => self.assignments.may_assign(join, variable),
                None => self.body.loops[region as usize].assigned.contains(variable),
            },
        }
    }
}
