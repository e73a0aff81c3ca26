//! Reclamation of retired code: quiescence-based reclamation with an asymmetric fence.
//!
//! Native code is *retired* when it has been removed from every table through which it is reached. Its memory is *reclaimed* once
//! no store can run in it or return to it. This file has the protocol; the words of the stores are in
//! [`crate::records::quiescence`], the choice of the code to retire is in `tier::evict`, which also supplies the heavy fence,
//! membarrier(2).
//!
//! Sources. Epoch-based reclamation: K. Fraser, "Practical lock-freedom", 2004, section 5.2.3; its cost beside other schemes:
//! Hart, McKenney, Brown and Walpole, "Performance of memory reclamation for lockless synchronization", JPDC 67, 2007. The
//! asymmetric fence in place of a fence per reader: Desnoyers, McKenney, Stern, Dagenais and Walpole, "User-level implementations
//! of read-copy update", IEEE TPDS 23, 2012. Unlike Fraser's, the epoch is a 64-bit counter of retirements that does not wrap, so
//! no store has to catch up before it advances.
//!
//! # Protocol
//!
//! Each engine has an epoch, each store a word. The word is 0 while the store is quiescent: it runs no guest code and has no
//! guest frames on its stacks. A *section* is the time in between: from the outermost invocation of the guest by Rust until that
//! returns. Nested invocations, through host functions, belong to it. (The term of read-copy update is read-side critical
//! section.)
//!
//! ```text
//! light side: the thread of a store             heavy side: any thread, also one that runs a guest
//!   E1  e = epoch (acquire)                       R1  unlink: remove code c from all tables
//!   E2  word = e (release)                        R2  since = ++epoch; append (c, since) to the list
//!   E3  light fence                                   … R1 and R2 under the lock of c's tables,
//!   E4  read tables; run code                           R2's append, and R3 to R6, under the list's lock
//!   E5  word = 0 (release)                        R3  heavy fence; give up if the system has none
//!                                                 R4  read the word of every store (acquire)
//!                                                 R5  c is free if no word is in 1 .. since
//!                                                 R6  remove c from the list; its memory is used again
//! ```
//!
//! [`enter`] is E1 to E3, [`leave`] is E5, [`Reclaimer::retire`] is R1 and R2, [`Reclaimer::reclaim`] is R3 to R6.
//!
//! The two fences are one asymmetric fence. Let a light fence L and a heavy fence H execute. Then either everything that H's
//! thread saw or wrote before H is visible to what follows L, or everything sequenced before L is visible to what follows H. The
//! light fence orders the compiler alone, so a call of the guest has no fence instruction. membarrier(2) runs a full fence on
//! every thread of the process at some point between its own beginning and end. If that point is before E2 on a given thread, E4
//! sees what preceded H; if it is after E2, what follows H sees E2.
//!
//! # Theorem
//!
//! When R6 removes c from the list, every section that read c from a table has ended, all its actions happen before R6, and no
//! section reads c from a table any more.
//!
//! # Proof
//!
//! Let A be a section of store s.
//!
//! 1. No table gets c after R1: only the entry that owns c writes its address, under the lock of the tables, and R1 ends the
//!    entry under that lock. So A reads c in E4 only if E4 does not see R1.
//! 2. If s is made after R4 took the lock of the words, that lock orders R1 before A, and A does not read c. If s was dropped
//!    before R4 took it, the lock orders A before R4. Otherwise R4 reads the word of s. Only the thread that uses s writes it,
//!    and s passes from thread to thread with its owner, so happens-before orders the writes.
//! 3. R4 reads a write later than A's E2. That write is a release and sequenced after all of A, or it is A's E5; so all
//!    of A happens before R4. (This is why E2 is a release: R4 may read the E2 of a later section.)
//! 4. R4 reads A's E2. If e < since, R5 keeps c. If e ≥ since, then E1 read what R2 wrote or a later read-modify-write of the
//!    release sequence that R2 heads, so R1 happens before E4, and by step 1 A does not read c.
//! 5. R4 reads a write earlier than A's E2. The code c was in the list when R3 executed, so R1 happens before R3. Had E4 not seen
//!    R1, then neither side of the asymmetric fence E3, R3 would have been seen by the other, which it excludes. So by step 1 A
//!    does not read c.
//! 6. Steps 3 to 5 are all the cases. ∎
//!
//! Each step names one section and one reclaiming thread. None uses an order between the E3 of one store and the E3 of
//! another, which membarrier(2) does not provide.
//!
//! # The model
//!
//! `vm/tests/reclamation.rs` compiles this file and runs it under loom. There both fences are sequentially consistent fences.
//! These are stronger than the asymmetric fence in two ways. They order two light sides with each other; by the last paragraph of
//! the proof nothing depends on that. And the light fence after E1 would make a relaxed E1 an acquire; so one model, of step 4,
//! runs without it. The model finds the two faults that are seeded in it: no light fence, and a heavy fence before R1 in place of
//! R3. It also finds the fault if one of E1, E2, E5, R2 and R4 is relaxed.
//!
//! # Instruction fetch
//!
//! This is outside the model. Once R6 is over, other code is written to the memory of c, through another mapping, and its address
//! is published. A processor that ran c may still hold c's instructions. Therefore [`CodeArena::publish`](crate::code) passes the
//! heavy fence between the writing and the publishing, in the form that also serialises instruction fetch (`SYNC_CORE`): each
//! thread has then executed a serialising instruction after the code was written and before it can learn the address (Intel SDM
//! volume 3, "Handling Self- and Cross-Modifying Code"). By the theorem no thread fetches from c's memory while it is written.
//!
//! # Without membarrier
//!
//! R3 gives up: retired code is never reclaimed while its module lives. Therefore nothing is retired, except at random under
//! stress. When the engine's budget is used up, functions that have code keep it, and those without code stay interpreted. The
//! code of a dropped module is freed nevertheless, because no instance is left that could run it. Its memory is used again
//! without the fence that serialises instruction fetch: an x86 processor serialises by itself when it fetches code that another
//! processor wrote (see [`CodeArena::publish`](crate::code)).
//!
//! # Lock order
//!
//! The lock of a module's entries, under which tables are written, is taken before the lock of the retired code, and that before the
//! lock of the words. `sys::lock` has the order of all locks, and debug builds check it.

use crate::records::quiescence::{Domain, QUIESCENT, Word};
use crate::records::sync::{Arc, Guard, Lock, Ordering, Rank, light_fence};

/// A section of a store begins.
#[inline]
pub(crate) fn enter(word: &Word) {
    word.word.store(word.epoch().load(Ordering::Acquire), Ordering::Release);
    light_fence();
}

/// The section of a store ends.
#[inline]
pub(crate) fn leave(word: &Word) {
    word.word.store(QUIESCENT, Ordering::Release);
}

/// The retired code of an engine. `T` owns the code's memory.
#[derive(Debug)]
pub(crate) struct Reclaimer<T> {
    domain: Arc<Domain>,
    retired: Lock<Vec<Retired<T>>>,
}

/// Retired code that no section which began at epoch `since` or later has read from a table.
#[derive(Debug)]
struct Retired<T> {
    since: u64,
    code: T,
}

impl<T> Reclaimer<T> {
    /// The reclaimer of an engine, whose stores are in `domain`.
    pub fn new(domain: Arc<Domain>) -> Reclaimer<T> {
        Reclaimer { domain, retired: Lock::new(Rank::Retired, Vec::new()) }
    }

    fn retired(&self) -> Guard<'_, Vec<Retired<T>>> {
        self.retired.lock()
    }

    /// Retires the code that `unlink` returns, if any. `unlink` removes it from all tables, under the lock under which alone they
    /// are written; that lock is held until this returns.
    pub fn retire(&self, unlink: impl FnOnce() -> Option<T>) {
        let Some(code) = unlink() else { return };
        let since = self.domain.epoch.fetch_add(1, Ordering::SeqCst) + 1;
        self.retired().push(Retired { since, code });
    }

    /// Returns the retired code that no store runs in, returns to or can reach. `heavy_fence` is called if anything is retired;
    /// it returns whether all threads have passed the fence, and if not, nothing is reclaimed.
    pub fn reclaim(&self, heavy_fence: impl FnOnce() -> bool) -> Vec<T> {
        let mut retired = self.retired();
        if retired.is_empty() || !heavy_fence() {
            return Vec::new();
        }
        let begun = |since: u64| if since == QUIESCENT { u64::MAX } else { since };
        let oldest = self.domain.min_of(|word| begun(word.load(Ordering::Acquire))).unwrap_or(u64::MAX);
        retired.extract_if(.., |retired| retired.since <= oldest).map(|retired| retired.code).collect()
    }

    /// Removes the retired code that `which` chooses, whether or not stores are in the guest: the caller knows that none is in
    /// that code, because no instance of its module exists.
    pub fn remove(&self, mut which: impl FnMut(&T) -> bool) -> Vec<T> {
        self.retired().extract_if(.., |retired| which(&retired.code)).map(|retired| retired.code).collect()
    }

    /// The sum of `measure` over the retired code.
    pub fn sum(&self, measure: impl Fn(&T) -> usize) -> usize {
        self.retired().iter().map(|retired| measure(&retired.code)).sum()
    }
}
