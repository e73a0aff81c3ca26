//! The references that the embedder holds. They are roots of the collector.
//!
//! A *scoped* root is on a stack, which the end of a scope cuts: the call of a host function is a scope, and the embedder can open others. An
//! *owned* root is in a table, as long as a token of it lives. A [`Root`] names either, with the generation of its entry: one that outlives
//! its entry is recognised.

use std::sync::Arc;

/// A root of a store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Root {
    /// The identity of the store.
    pub store: u64,
    /// The index of the entry, with [`Root::OWNED`].
    index: u32,
    generation: u32,
}

impl Root {
    /// The bit of owned roots.
    const OWNED: u32 = 1 << 31;
}

/// A scoped root.
struct Scoped {
    reference: u64,
    generation: u32,
}

/// An owned root, or a free entry, which has no token.
struct Owned {
    reference: u64,
    generation: u32,
    token: Option<Arc<()>>,
}

/// The roots of a store.
#[derive(Default)]
pub(crate) struct Roots {
    scoped: Vec<Scoped>,
    /// The number of scoped roots of calls around the innermost one: see [`attention`](super::attention).
    pub base: usize,
    /// Incremented when scoped roots are removed.
    generation: u32,
    owned: Vec<Owned>,
    free: Vec<u32>,
    /// The number of owned roots at which those without other tokens are looked for.
    trim_at: usize,
}

/// Capacity for scoped roots that is always kept.
const KEPT: usize = 64;

impl Roots {
    /// Adds a scoped root of the store with identity `store`. Called by [`StoreRecord::push_root`](super::store::StoreRecord::push_root) only.
    ///
    /// # Panics
    /// There are 2³¹ of them.
    pub fn push(&mut self, store: u64, reference: u32) -> Root {
        let index = self.scoped.len() as u32;
        assert!(index & Root::OWNED == 0, "a store has fewer than 2³¹ roots");
        self.scoped.push(Scoped { reference: reference.into(), generation: self.generation });
        Root { store, index, generation: self.generation }
    }

    /// The number of scoped roots, with which a scope begins.
    #[inline]
    pub fn open(&self) -> usize {
        self.scoped.len()
    }

    /// Ends the scope that began with this many scoped roots.
    #[inline]
    pub fn close(&mut self, scope: usize) {
        if self.scoped.len() > scope {
            self.cut(scope);
        }
    }

    #[inline(never)]
    fn cut(&mut self, scope: usize) {
        self.scoped.truncate(scope);
        self.generation = self.generation.wrapping_add(1);
        // The capacity that one scope needed does not stay for ever.
        if self.scoped.capacity() > KEPT.max(8 * scope) {
            self.scoped.shrink_to(KEPT.max(2 * scope));
        }
    }

    /// Makes room for this many scoped roots.
    pub fn reserve(&mut self, additional: usize) {
        self.scoped.reserve(additional);
    }

    /// Adds an owned root, which lives as long as clones of the token.
    pub fn own(&mut self, store: u64, reference: u32) -> (Root, Arc<()>) {
        if self.owned.len() - self.free.len() >= self.trim_at {
            self.trim();
            self.trim_at = 2 * (self.owned.len() - self.free.len()).max(32);
        }
        let (reference, token) = (u64::from(reference), Arc::new(()));
        let index = match self.free.pop() {
            Some(index) => {
                let entry = &mut self.owned[index as usize];
                (entry.reference, entry.token) = (reference, Some(token.clone()));
                index
            }
            None => {
                self.owned.push(Owned { reference, generation: 0, token: Some(token.clone()) });
                self.owned.len() as u32 - 1
            }
        };
        let generation = self.owned[index as usize].generation;
        (Root { store, index: index | Root::OWNED, generation }, token)
    }

    /// Removes the owned roots whose tokens are gone.
    pub fn trim(&mut self) {
        for (index, entry) in (0..).zip(&mut self.owned) {
            if entry.token.as_ref().is_some_and(|token| Arc::strong_count(token) == 1) {
                *entry = Owned { reference: 0, generation: entry.generation.wrapping_add(1), token: None };
                self.free.push(index);
            }
        }
    }

    /// Returns the reference of a root of this store; `None` if its scope has ended.
    pub fn get(&self, root: Root) -> Option<u32> {
        let (reference, generation) = match root.index & Root::OWNED {
            0 => self.scoped.get(root.index as usize).map(|entry| (entry.reference, entry.generation))?,
            _ => {
                let entry = self.owned.get((root.index & !Root::OWNED) as usize)?;
                entry.token.as_ref().map(|_| (entry.reference, entry.generation))?
            }
        };
        (generation == root.generation).then_some(reference as u32)
    }

    /// The places of all roots.
    pub fn places(&mut self) -> impl Iterator<Item = &mut u64> {
        let owned = self.owned.iter_mut().map(|entry| &mut entry.reference);
        self.scoped.iter_mut().map(|entry| &mut entry.reference).chain(owned)
    }
}
