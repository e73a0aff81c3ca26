//! The values of variables at the ends of blocks.

use crate::hash_table::{HashTable, NumberHash, Slot};
use crate::ir::{Block, Value};

/// Definitions. The table is at most four fifths full and grows by a third, because it is a large part of
/// construction's memory.
#[derive(Debug)]
pub(super) struct Definitions {
    table: HashTable<Vec<Definition>>,
    hash: NumberHash,
}

#[derive(Clone, Copy, Debug)]
struct Definition {
    block: Block,
    variable: u32,
    value: Value,
}

impl Slot for Definition {
    const FREE: Definition = Definition { block: Block(u32::MAX), variable: 0, value: Value(0) };

    fn is_free(self) -> bool {
        self.block == Definition::FREE.block
    }
}

impl Definitions {
    /// The bytes that it takes.
    pub fn size(&self) -> usize {
        self.table.size() * size_of::<Definition>()
    }

    /// Creates an empty table.
    pub(super) fn new() -> Definitions {
        Definitions { table: HashTable::new(Vec::new()), hash: NumberHash::default() }
    }

    /// Reserves memory for this many definitions.
    pub(super) fn reserve(&mut self, definitions: usize) {
        let size = (definitions + definitions / 4).max(16);
        if size > self.table.size() {
            let hash = self.hash;
            self.table.move_to(vec![Definition::FREE; size], |definition| hash_of(hash, definition.block, definition.variable));
        }
    }

    /// Returns the slot of this definition, or a free one for it. The table is not empty.
    fn find(&self, block: Block, variable: u32) -> usize {
        let hash = hash_of(self.hash, block, variable);
        self.table.find(hash, |found| (found.block, found.variable) == (block, variable))
    }

    /// Returns the value of `variable` at the end of `block`. The table is not empty.
    pub(super) fn get(&self, block: Block, variable: u32) -> Option<Value> {
        let found = self.table.get(self.find(block, variable));
        (!found.is_free()).then_some(found.value)
    }

    /// Records a value and replaces an earlier one.
    pub(super) fn insert(&mut self, block: Block, variable: u32, value: Value) {
        let taken = self.table.taken();
        if 5 * taken >= 4 * self.table.size() {
            self.reserve(taken + taken / 3 + 8);
        }
        let slot = self.find(block, variable);
        self.table.set(slot, Definition { block, variable, value });
    }
}

fn hash_of(hash: NumberHash, block: Block, variable: u32) -> u64 {
    hash.of(u64::from(block.0) << 32 | u64::from(variable))
}
