//! A cache of the handlers that searches have found in native code, by the call and the tag. Programs throw to few handlers, often.

use crate::records::exceptions::{Clause, TagRecord};
use std::ptr;
use weir_contract::InstanceCtx;
use weir_contract::code::FrameLayout;

/// What a search has found in frames of this instance, at the call that returns to this address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Catch {
    pub return_address: usize,
    pub instance: *mut InstanceCtx,
    /// The exception's tag.
    pub tag: *const TagRecord,
    /// The layout of the frames.
    pub layout: FrameLayout,
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
    fn place(return_address: usize, tag: *const TagRecord) -> usize {
        // Records are allocated with an alignment of 16.
        (return_address ^ return_address >> 6 ^ tag.addr() >> 4) % ENTRIES
    }

    /// Finds the entry for a tag and the frame with this frame pointer, whose call has this return address. `freed` is how often code has been
    /// freed; no entry of an earlier count is found, because its code may be gone.
    ///
    /// # Safety
    /// The frame is on this thread's stack.
    #[inline(always)]
    pub unsafe fn find(&self, freed: usize, return_address: usize, fp: usize, tag: *const TagRecord) -> Option<&Catch> {
        let catch = self.entries.get(Catches::place(return_address, tag))?.as_ref()?;
        if (catch.return_address, catch.tag, self.freed) != (return_address, tag, freed) {
            return None;
        }
        let instance = ptr::with_exposed_provenance::<*mut InstanceCtx>(fp - 8 * usize::from(catch.layout.instance));
        // SAFETY: the caller's promise: the frame has this layout, because its call is in the code of the entry.
        (unsafe { instance.read() } == catch.instance).then_some(catch)
    }

    /// Adds what has been found, in place of another entry.
    pub fn insert(&mut self, freed: usize, catch: Catch) {
        if self.entries.is_empty() {
            self.entries = vec![None; ENTRIES].into();
        } else if self.freed != freed {
            self.entries.fill(None);
        }
        self.freed = freed;
        self.entries[Catches::place(catch.return_address, catch.tag)] = Some(catch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSTANCE: usize = 32;

    fn catch(return_address: usize, tag: usize, tested: u64) -> Catch {
        let layout = FrameLayout { bytes: 8, preserved: [0; 4], instance: 1, value_sp: 0 };
        let [instance, tag] = [INSTANCE, tag].map(ptr::without_provenance_mut::<u8>);
        Catch { return_address, instance: instance.cast(), tag: tag.cast(), layout, tested, landing: None }
    }

    /// The clauses tested of the entry for a frame of this instance.
    fn find(catches: &Catches, freed: usize, return_address: usize, instance: usize, tag: usize) -> Option<u64> {
        let frame = [instance, 0];
        // SAFETY: word 1 below the frame pointer has the instance.
        let found = unsafe { catches.find(freed, return_address, (&raw const frame[1]).addr(), ptr::without_provenance(tag)) };
        found.map(|catch| catch.tested)
    }

    #[test]
    fn freed_code_is_forgotten() {
        let mut catches = Catches::default();
        let find = |catches: &Catches, freed, at| find(catches, freed, at, INSTANCE, 0);
        assert_eq!(find(&catches, 0, 100), None);
        catches.insert(0, catch(100, 0, 3));
        assert_eq!((find(&catches, 0, 100), find(&catches, 0, 101), find(&catches, 1, 100)), (Some(3), None, None));
        catches.insert(1, catch(101, 0, 4));
        assert_eq!((find(&catches, 1, 100), find(&catches, 1, 101)), (None, Some(4)));
    }

    #[test]
    fn instances_and_tags_are_distinguished() {
        let mut catches = Catches::default();
        let tag = 16 * ENTRIES;
        catches.insert(0, catch(100, tag, 1));
        assert_eq!(find(&catches, 0, 100, INSTANCE, tag), Some(1));
        assert_eq!(find(&catches, 0, 100, INSTANCE, 0), None);
        assert_eq!(find(&catches, 0, 100, INSTANCE + 16 * ENTRIES, tag), None);
    }
}
