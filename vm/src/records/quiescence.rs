//! The quiescence word of every store of an engine, and the engine's epoch: the data of quiescence-based reclamation. The
//! protocol and its proof are in `tier::reclaim`, which alone reads and writes the words.

use super::sync::{Arc, AtomicU64, Guard, Lock, Rank};
use std::collections::BTreeMap;

/// The word of a store that runs no guest code.
pub(crate) const QUIESCENT: u64 = 0;

/// The stores of an engine.
#[derive(Debug)]
pub(crate) struct Domain {
    /// The number of retirements, plus one: never [`QUIESCENT`].
    pub epoch: AtomicU64,
    words: Lock<Words>,
}

/// The words of the stores that exist.
#[derive(Debug, Default)]
struct Words {
    by_store: BTreeMap<u64, Arc<AtomicU64>>,
    next: u64,
}

impl Default for Domain {
    fn default() -> Domain {
        Domain { epoch: AtomicU64::new(QUIESCENT + 1), words: Lock::new(Rank::Words, Words::default()) }
    }
}

impl Domain {
    /// Returns the least value of `read` over the words of all stores, or `None` if there are no stores.
    pub fn min_of(&self, read: impl Fn(&AtomicU64) -> u64) -> Option<u64> {
        self.words().by_store.values().map(|word| read(word)).min()
    }

    fn words(&self) -> Guard<'_, Words> {
        self.words.lock()
    }
}

/// A store's word: [`QUIESCENT`], or the epoch that the store's current section read when it began.
#[derive(Debug)]
pub(crate) struct Word {
    domain: Arc<Domain>,
    store: u64,
    pub word: Arc<AtomicU64>,
}

impl Word {
    /// The word of a new store.
    pub fn new(domain: &Arc<Domain>) -> Word {
        let word = Arc::new(AtomicU64::new(QUIESCENT));
        let mut words = domain.words();
        let store = words.next;
        words.next += 1;
        words.by_store.insert(store, word.clone());
        Word { domain: domain.clone(), store, word }
    }

    /// The epoch of the engine.
    pub fn epoch(&self) -> &AtomicU64 {
        &self.domain.epoch
    }
}

impl Drop for Word {
    fn drop(&mut self) {
        self.domain.words().by_store.remove(&self.store);
    }
}
