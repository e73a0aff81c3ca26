//! The quiescence word of every store of an engine, its suspended stacks, and the engine's epoch: the data of quiescence-based
//! reclamation. The protocol and its proof are in `tier::reclaim`, which alone reads and writes them.

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
    by_store: BTreeMap<u64, Arc<State>>,
    next: u64,
}

/// What a store tells those who reclaim code.
#[derive(Debug)]
pub(crate) struct State {
    /// [`QUIESCENT`], or the epoch that the store's current section read when it began, or an earlier one.
    pub word: AtomicU64,
    /// The stacks of its guests that are suspended.
    pub suspended: Lock<Vec<Suspended>>,
}

/// A stack whose guest is suspended.
#[derive(Debug)]
pub(crate) struct Suspended {
    /// Identifies it in its store: the address of its record.
    #[cfg_attr(not(feature = "async"), allow(dead_code, reason = "nothing is suspended"))]
    pub fiber: usize,
    /// The innermost boundary of the stack: see [`StackCtx::boundary`](weir_contract::StackCtx::boundary).
    pub boundary: usize,
    /// See [`StackCtx::exit_fp`](weir_contract::StackCtx::exit_fp).
    pub exit_fp: usize,
    /// No frame of the stack returns to code that was retired at this epoch or earlier.
    pub epoch: u64,
}

impl Default for Domain {
    fn default() -> Domain {
        Domain { epoch: AtomicU64::new(QUIESCENT + 1), words: Lock::new(Rank::Words, Words::default()) }
    }
}

impl Domain {
    /// Calls `visit` for each store, none of which is made or dropped meanwhile.
    pub fn visit(&self, visit: impl FnMut(&Arc<State>)) {
        self.words().by_store.values().for_each(visit);
    }

    fn words(&self) -> Guard<'_, Words> {
        self.words.lock()
    }
}

/// A store's state, which exists as long as the store.
#[derive(Debug)]
pub(crate) struct Word {
    domain: Arc<Domain>,
    store: u64,
    pub state: Arc<State>,
}

impl Word {
    /// The state of a new store.
    pub fn new(domain: &Arc<Domain>) -> Word {
        let suspended = Lock::new(Rank::Suspended, Vec::new());
        let state = Arc::new(State { word: AtomicU64::new(QUIESCENT), suspended });
        let mut words = domain.words();
        let store = words.next;
        words.next += 1;
        words.by_store.insert(store, state.clone());
        Word { domain: domain.clone(), store, state }
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
