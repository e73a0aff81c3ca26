//! A cache of the handlers that searches have found in native code, by the call and the tag. Programs throw to few handlers, often.

use crate::records::exceptions::{Clause, TagRecord};
use weir_contract::InstanceCtx;

/// What a search has found in frames of this instance, at the call that returns to this address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Catch {
    pub return_address: usize,
    pub instance: *mut InstanceCtx,
    /// The exception's tag.
    pub tag: *const TagRecord,
    /// The number of clauses that are tested.
    pub tested: u64,
    /// The landing's address, and the clause; `None` if the frame is left.
    pub landing: Option<(usize, Clause)>,
}

/// The number of entries. A program has few handlers to which it throws often.
const ENTRIES: usize = 64;

/// The cache, of one store: instances and tags live as long as it, so their addresses identify them.
#[derive(Default)]
pub(crate) struct Catches {
    /// How often code had been freed when the entries were made: see [`Catches::find`].
    freed: usize,
    /// Empty until something is caught in native code.
    entries: Box<[Option<Catch>]>,
}

impl Catches {
    fn place(return_address: usize, instance: *mut InstanceCtx, tag: *const TagRecord) -> usize {
        // Records are allocated with an alignment of 16.
        (return_address ^ return_address >> 6 ^ instance.addr() >> 4 ^ tag.addr() >> 4) % ENTRIES
    }

    /// Returns what is known of frames of this instance at the call with this return address. Of code at this address that has been freed
    /// nothing is known, if `freed` is how often code has been freed.
    #[inline]
    pub fn find(&self, freed: usize, return_address: usize, instance: *mut InstanceCtx, tag: *const TagRecord) -> Option<&Catch> {
        let catch = self.entries.get(Catches::place(return_address, instance, tag))?.as_ref()?;
        let is_same = (catch.return_address, catch.instance, catch.tag, self.freed) == (return_address, instance, tag, freed);
        is_same.then_some(catch)
    }

    /// Adds what has been found, in place of another entry.
    pub fn insert(&mut self, freed: usize, catch: Catch) {
        if self.entries.is_empty() {
            self.entries = vec![None; ENTRIES].into();
        } else if self.freed != freed {
            self.entries.fill(None);
        }
        self.freed = freed;
        self.entries[Catches::place(catch.return_address, catch.instance, catch.tag)] = Some(catch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    #[test]
    fn freed_code_is_forgotten() {
        let mut catches = Catches::default();
        let catch =
            |return_address| Catch { return_address, instance: ptr::null_mut(), tag: ptr::null(), tested: 3, landing: None };
        let find = |catches: &Catches, freed, at| catches.find(freed, at, ptr::null_mut(), ptr::null()).map(|catch| catch.tested);
        assert_eq!(find(&catches, 0, 100), None);
        catches.insert(0, catch(100));
        assert_eq!((find(&catches, 0, 100), find(&catches, 0, 101), find(&catches, 1, 100)), (Some(3), None, None));
        catches.insert(1, catch(101));
        assert_eq!((find(&catches, 1, 100), find(&catches, 1, 101)), (None, Some(3)));
    }

    #[test]
    fn instances_and_tags_are_distinguished() {
        let mut catches = Catches::default();
        let tag = ptr::without_provenance(16 * ENTRIES);
        catches.insert(0, Catch { return_address: 100, instance: ptr::null_mut(), tag, tested: 1, landing: None });
        assert!(catches.find(0, 100, ptr::null_mut(), tag).is_some());
        assert!(catches.find(0, 100, ptr::null_mut(), ptr::null()).is_none());
        assert!(catches.find(0, 100, ptr::without_provenance_mut(16 * ENTRIES), tag).is_none());
    }
}
