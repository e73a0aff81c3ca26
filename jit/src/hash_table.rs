//! A hash table: open addressing with linear probing. The client gives entries their meaning: it computes hashes,
//! compares entries, allocates the slots and decides when the table is too full. The number of slots may be any, not
//! only a power of two.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::DerefMut;

/// An entry of a table, or a free slot.
pub trait Slot: Copy {
    /// A free slot.
    const FREE: Self;

    /// Whether the slot is free.
    fn is_free(self) -> bool;
}

/// An entry is a number plus 1, and 0 is a free slot.
impl Slot for u32 {
    const FREE: u32 = 0;

    fn is_free(self) -> bool {
        self == 0
    }
}

/// Entries in slots of an arena or a vector. At least one slot must be free when [`HashTable::find`] is called.
#[derive(Debug)]
pub struct HashTable<S> {
    slots: S,
    taken: usize,
}

impl<T: Slot, S: DerefMut<Target = [T]>> HashTable<S> {
    /// An empty table: all `slots` must be free.
    pub fn new(slots: S) -> HashTable<S> {
        HashTable { slots, taken: 0 }
    }

    /// The number of slots.
    pub fn size(&self) -> usize {
        self.slots.len()
    }

    /// The number of slots that are taken.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// The slot of the entry with this hash for which `is_it` returns true, or the free slot for it. The upper bits of the hash
    /// matter most.
    #[inline]
    pub fn find(&self, hash: u64, is_it: impl Fn(T) -> bool) -> usize {
        let size = self.slots.len();
        let mut at = ((u128::from(hash) * size as u128) >> 64) as usize;
        loop {
            let entry = self.slots[at];
            if entry.is_free() || is_it(entry) {
                return at;
            }
            at = if at + 1 == size { 0 } else { at + 1 };
        }
    }

    /// The entry in a slot.
    #[inline]
    pub fn get(&self, slot: usize) -> T {
        self.slots[slot]
    }

    /// Puts `entry` into the slot that was found for it.
    #[inline]
    pub fn set(&mut self, slot: usize, entry: T) {
        self.taken += usize::from(self.slots[slot].is_free());
        self.slots[slot] = entry;
    }

    /// The longest row of taken slots, through which a search may have to go.
    #[cfg(test)]
    pub fn longest_run(&self) -> usize {
        self.slots.split(|entry| entry.is_free()).map(<[T]>::len).max().unwrap_or(0)
    }

    /// Moves the entries, whose hashes `hash` computes, to `slots`, which must be free.
    #[cold]
    pub fn move_to(&mut self, slots: S, hash: impl Fn(T) -> u64) {
        let old = std::mem::replace(&mut self.slots, slots);
        for &entry in old.iter().filter(|entry| !entry.is_free()) {
            let slot = self.find(hash(entry), |_| false);
            self.slots[slot] = entry;
        }
    }
}

/// Adds a word to a hash of words that need no key. The upper bits of the result depend on all bits of the last word.
#[inline]
pub fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// A hash of numbers that come from the program. It is fast, and it is keyed because a guest chooses the numbers.
#[derive(Clone, Copy, Debug)]
pub struct NumberHash(u64);

impl Default for NumberHash {
    /// A hash with a random key.
    fn default() -> NumberHash {
        NumberHash(RandomState::new().hash_one(0))
    }
}

impl NumberHash {
    /// Multiplies by a constant and folds the product.
    #[inline]
    pub fn of(self, number: u64) -> u64 {
        let product = u128::from(self.0 ^ number) * 0xD6E8_FEB8_6659_FD93;
        product as u64 ^ (product >> 64) as u64
    }
}

/// Hashes of keys with several numbers.
impl BuildHasher for NumberHash {
    type Hasher = NumberHasher;

    fn build_hasher(&self) -> NumberHasher {
        NumberHasher { hash: *self, state: 0 }
    }
}

/// The numbers of a key so far, as a hash.
#[derive(Clone, Copy, Debug)]
pub struct NumberHasher {
    hash: NumberHash,
    state: u64,
}

impl Hasher for NumberHasher {
    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.state = self.hash.of(self.state ^ number);
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_in_tables_of_every_size() {
        let hash = NumberHash::default();
        for size in 2..70 {
            let mut table = HashTable::new(vec![u32::FREE; size]);
            let at = |table: &HashTable<Vec<u32>>, entry: u32| table.find(hash.of(entry.into()), |other| other == entry);
            let last = size as u32 - 1;
            for entry in (1..=last).chain(1..=last) {
                let slot = at(&table, entry);
                table.set(slot, entry);
            }
            assert_eq!(table.taken(), size - 1);
            assert!((1..=last).all(|entry| table.get(at(&table, entry)) == entry));
            assert!(table.get(at(&table, last + 1)).is_free());
            table.move_to(vec![u32::FREE; 2 * size + 1], |entry| hash.of(entry.into()));
            assert!((1..=last).all(|entry| table.get(at(&table, entry)) == entry));
            assert_eq!((table.size(), table.taken()), (2 * size + 1, size - 1));
        }
    }
}
