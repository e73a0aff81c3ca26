//! The values of variables at the ends of blocks, and the hash of what construction looks up.

use crate::ir::{Block, Value};
use std::hash::{BuildHasher, RandomState};

/// Definitions: open addressing with linear probing, at most four fifths full. The product of hash and size says where to
/// begin, so that any size will do and the table grows by a third.
#[derive(Debug)]
pub(super) struct Definitions {
    slots: Vec<Slot>,
    taken: usize,
    hash: NumberHash,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    block: Block,
    variable: u32,
    value: Value,
}

/// Holds no definition.
const FREE: Slot = Slot { block: Block(u32::MAX), variable: 0, value: Value(0) };

impl Definitions {
    /// None, and no room.
    pub(super) fn new() -> Definitions {
        Definitions { slots: Vec::new(), taken: 0, hash: NumberHash::default() }
    }

    /// Makes room for this many.
    pub(super) fn reserve(&mut self, definitions: usize) {
        let size = (definitions + definitions / 4).max(16);
        if size > self.slots.len() {
            let old = std::mem::replace(&mut self.slots, vec![FREE; size]);
            for slot in old.into_iter().filter(|slot| slot.block != FREE.block) {
                let at = self.find(slot.block, slot.variable);
                self.slots[at] = slot;
            }
        }
    }

    /// The slot of this definition, or a free one for it; there are slots.
    fn find(&self, block: Block, variable: u32) -> usize {
        let hash = self.hash.of(u64::from(block.0) << 32 | u64::from(variable));
        let mut at = ((u128::from(hash) * self.slots.len() as u128) >> 64) as usize;
        loop {
            let slot = &self.slots[at];
            if (slot.block, slot.variable) == (block, variable) || slot.block == FREE.block {
                return at;
            }
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
    }

    /// The value of `variable` at the end of `block`. Something has been inserted before.
    pub(super) fn get(&self, block: Block, variable: u32) -> Option<Value> {
        let slot = self.slots[self.find(block, variable)];
        (slot.block != FREE.block).then_some(slot.value)
    }

    /// Records a value, in place of an earlier one.
    pub(super) fn insert(&mut self, block: Block, variable: u32, value: Value) {
        if 5 * self.taken >= 4 * self.slots.len() {
            self.reserve(self.taken + self.taken / 3 + 8);
        }
        let at = self.find(block, variable);
        self.taken += usize::from(self.slots[at].block == FREE.block);
        self.slots[at] = Slot { block, variable, value };
    }
}

/// A hash of numbers of the program. It is fast, and keyed, because a guest chooses the numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberHash(u64);

impl Default for NumberHash {
    /// One with a random key.
    fn default() -> NumberHash {
        NumberHash(RandomState::new().hash_one(0))
    }
}

impl NumberHash {
    /// A multiplication, folded.
    pub(super) fn of(self, number: u64) -> u64 {
        let product = u128::from(self.0 ^ number) * 0xD6E8_FEB8_6659_FD93;
        product as u64 ^ (product >> 64) as u64
    }
}
