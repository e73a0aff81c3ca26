//! Dense numbers for distinct keys, in the order of their first use: an array of the keys, and a hash table of their
//! numbers.

use crate::hash_table::{HashTable, NumberHash, Slot};
use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use std::hash::{BuildHasher, Hash};

/// A numbering.
pub struct Numbers<'s, K> {
    keys: BumpVec<'s, K>,
    /// Each number plus 1; the table is at most half full.
    table: HashTable<&'s mut [u32]>,
    hash: NumberHash,
    scratch: &'s Bump,
}

impl<'s, K: Copy + Eq + Hash> Numbers<'s, K> {
    /// An empty numbering with room for this many keys.
    pub fn new(scratch: &'s Bump, keys: usize) -> Numbers<'s, K> {
        let slots = scratch.alloc_slice_fill_copy((2 * keys).max(16), u32::FREE);
        Numbers {
            keys: BumpVec::with_capacity_in(keys, scratch),
            table: HashTable::new(slots),
            hash: NumberHash::default(),
            scratch,
        }
    }

    /// The key with this number.
    pub fn key(&self, number: u32) -> K {
        self.keys[number as usize]
    }

    /// The number of `key`, which gets the next free number if it has none.
    pub fn of(&mut self, key: K) -> u32 {
        let slot = self.table.find(self.hash.hash_one(key), |entry| self.keys[entry as usize - 1] == key);
        if let Some(number) = self.table.get(slot).checked_sub(1) {
            return number;
        }
        self.keys.push(key);
        self.table.set(slot, self.keys.len() as u32);
        if 2 * self.keys.len() > self.table.size() {
            let slots = self.scratch.alloc_slice_fill_copy(2 * self.table.size(), u32::FREE);
            self.table.move_to(slots, |entry| self.hash.hash_one(self.keys[entry as usize - 1]));
        }
        self.keys.len() as u32 - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs of numbers that follow each other, as chains of expressions have them.
    #[test]
    fn numbers_in_a_row_do_not_collide() {
        for stride in [1, 2, 1 << 10, 1 << 32, (1 << 32) + 1] {
            let scratch = Bump::new();
            let mut numbers = Numbers::new(&scratch, 0);
            for i in 0..20_000u64 {
                numbers.of((stride * i, stride * i + 1));
            }
            let longest = numbers.table.longest_run();
            assert!(longest < 200, "{longest} slots with stride {stride}");
        }
    }

    #[test]
    fn keys_keep_their_numbers_while_the_table_grows() {
        let scratch = Bump::new();
        let mut numbers = Numbers::new(&scratch, 0);
        let key = |i: u32| i.wrapping_mul(0x9E37_79B9) ^ i << 20;
        for round in 0..2 {
            for i in 0..5000 {
                assert_eq!(numbers.of(key(i)), i, "round {round}");
                assert_eq!(numbers.key(i), key(i));
            }
        }
    }
}
