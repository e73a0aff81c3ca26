//! Numbers of distinct keys, in the order in which they come: the keys in a row, and a hash table of nothing but numbers.

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use rustc_hash::FxBuildHasher;
use std::hash::{BuildHasher, Hash};

/// A numbering.
pub struct Numbers<'s, K> {
    keys: BumpVec<'s, K>,
    /// Open addressing with linear probing: a number plus 1, or 0 for a free slot. A power of two of them, at most half
    /// of them taken.
    slots: &'s mut [u32],
    scratch: &'s Bump,
}

impl<'s, K: Copy + Eq + Hash> Numbers<'s, K> {
    /// Nothing is numbered yet, but there is room for this many keys.
    pub fn new(scratch: &'s Bump, keys: usize) -> Numbers<'s, K> {
        let slots = scratch.alloc_slice_fill_copy((2 * keys).max(16).next_power_of_two(), 0);
        Numbers { keys: BumpVec::with_capacity_in(keys, scratch), slots, scratch }
    }

    /// The key with this number.
    pub fn key(&self, number: u32) -> K {
        self.keys[number as usize]
    }

    /// The number of `key`: the next one if it has none yet.
    pub fn of(&mut self, key: K) -> u32 {
        let mask = self.slots.len() - 1;
        let mut at = FxBuildHasher.hash_one(key) as usize & mask;
        while let Some(number) = self.slots[at].checked_sub(1) {
            if self.keys[number as usize] == key {
                return number;
            }
            at = (at + 1) & mask;
        }
        self.keys.push(key);
        self.slots[at] = self.keys.len() as u32;
        if 2 * self.keys.len() > self.slots.len() {
            self.grow();
        }
        self.keys.len() as u32 - 1
    }

    #[cold]
    fn grow(&mut self) {
        self.slots = self.scratch.alloc_slice_fill_copy(2 * self.slots.len(), 0);
        let mask = self.slots.len() - 1;
        for (number, key) in self.keys.iter().enumerate() {
            let mut at = FxBuildHasher.hash_one(key) as usize & mask;
            while self.slots[at] != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = number as u32 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
