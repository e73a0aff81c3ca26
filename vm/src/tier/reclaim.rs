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
//! # Suspended stacks
//!
//! A guest on a stack of its own may be suspended within its section: nothing of it runs until it is resumed, perhaps on another thread.
//! Meanwhile its word is 0, if nothing else of the store runs, and the stack is in the store's list, which has a lock:
//!
//! ```text
//!   S1  take the list's lock                        R4' for each store, take its list's lock; read its word; walk
//!   S2  add the stack, with the word's value e          each stack of the list of which e < since for some code;
//!   S3  word = 0 (release)                              it keeps the code to which it returns, and no other;
//!   S4  release the lock                                then e = the greatest epoch at which it keeps nothing
//!         … suspended …                             R5' c is free if no word is in 1 .. since, and no stack keeps it
//!   T1  take the list's lock
//!   T2  remove the stack; word = e (release)
//!   T3  release the lock
//! ```
//!
//! [`suspend`] is S1 to S4, [`resume`] is T1 to T3. A stack is walked only if code has been retired since it was walked last. If other
//! stacks of the store are in use, the word keeps the lesser value at T2, and S3 is left out. R2 advances the epoch under the lock of
//! the retired code, so that all code with an epoch up to that which R4' gives to a stack is known to R4'.
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
//! 6. Steps 3 to 5 are all the cases of a section that was not suspended before R4. ∎
//!
//! Let A be suspended and perhaps resumed before R4' takes the lock of its store.
//!
//! 7. A is suspended then. Its frames return to code that R4' finds by walking, or to code retired at e or earlier. The latter is not c:
//!    for the first e, by step 4; for one that R4' gave, because that walk did not find c, and a suspended stack does not change. What A
//!    reads from a table after T1 is ordered after R1 by the lock. So R5' keeps c if A returns to it, and A does not reach it otherwise.
//! 8. A is resumed. The lock orders T2 before R4', which reads that value e or a later one of A, or one after A's end, as in step 3.
//!    If it reads e, the proof is that of step 4 with this e: A can have c, or can return to it, only if e < since.
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

#[cfg(feature = "async")]
use crate::records::quiescence::State;
use crate::records::quiescence::{Domain, QUIESCENT, Suspended, Word};
use crate::records::sync::{Arc, Guard, Lock, Ordering, Rank, light_fence};
use std::ops::Range;

/// A section of a store begins.
#[inline]
pub(crate) fn enter(word: &Word) {
    word.state.word.store(word.epoch().load(Ordering::Acquire), Ordering::Release);
    light_fence();
}

/// The section of a store ends.
#[inline]
pub(crate) fn leave(word: &Word) {
    word.state.word.store(QUIESCENT, Ordering::Release);
}

/// A stack of a store is suspended, whose innermost boundary and exit are given; `at_rest` if nothing else of the store runs.
#[cfg(feature = "async")]
pub(crate) fn suspend(word: &Word, fiber: usize, (boundary, exit_fp): (usize, usize), at_rest: bool) {
    let State { word, suspended } = &*word.state;
    let mut suspended = suspended.lock();
    suspended.push(Suspended { fiber, boundary, exit_fp, epoch: word.load(Ordering::Relaxed) });
    if at_rest {
        word.store(QUIESCENT, Ordering::Release);
    }
}

/// A suspended stack of a store is resumed.
#[cfg(feature = "async")]
pub(crate) fn resume(word: &Word, fiber: usize) {
    let State { word, suspended } = &*word.state;
    let mut suspended = suspended.lock();
    let at = suspended.iter().position(|stack| stack.fiber == fiber).expect("a suspended stack is in its store's list");
    let stack = suspended.swap_remove(at);
    let epoch = match word.load(Ordering::Relaxed) {
        QUIESCENT => stack.epoch,
        begun => begun.min(stack.epoch),
    };
    word.store(epoch, Ordering::Release);
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
        let mut retired = self.retired();
        let since = self.domain.epoch.fetch_add(1, Ordering::SeqCst) + 1;
        retired.push(Retired { since, code });
    }

    /// Returns the retired code that no store runs in, returns to or can reach. `heavy_fence` is called if anything is retired;
    /// it returns whether all threads have passed the fence, and if not, nothing is reclaimed. `walk` calls a function with the return
    /// addresses of a suspended stack; `range` returns the addresses of code.
    pub fn reclaim(
        &self,
        heavy_fence: impl FnOnce() -> bool,
        range: impl Fn(&T) -> Range<usize>,
        mut walk: impl FnMut(&Suspended, &mut dyn FnMut(usize)),
    ) -> Vec<T> {
        let mut retired = self.retired();
        let Some(newest) = retired.last().map(|retired| retired.since) else { return Vec::new() };
        if !heavy_fence() {
            return Vec::new();
        }
        // By address, with its epoch and whether a suspended stack keeps it.
        let mut places: Vec<(Range<usize>, u64, bool)> =
            retired.iter().map(|retired| (range(&retired.code), retired.since, false)).collect();
        places.sort_unstable_by_key(|(range, ..)| range.start);
        let mut oldest = u64::MAX;
        self.domain.visit(|state| {
            let mut suspended = state.suspended.lock();
            match state.word.load(Ordering::Acquire) {
                QUIESCENT => {}
                begun => oldest = oldest.min(begun),
            }
            for stack in suspended.iter_mut().filter(|stack| stack.epoch < newest) {
                let (epoch, mut unused) = (stack.epoch, newest);
                walk(stack, &mut |address| {
                    let at = places.partition_point(|(range, ..)| range.start <= address);
                    let Some((_, since, kept)) = places[..at].last_mut().filter(|(range, ..)| range.contains(&address)) else {
                        return;
                    };
                    if *since > epoch {
                        *kept = true;
                        unused = unused.min(*since - 1);
                    }
                });
                stack.epoch = unused;
            }
        });
        let kept = |code: &T| {
            let start = range(code).start;
            places.binary_search_by_key(&start, |(range, ..)| range.start).is_ok_and(|at| places[at].2)
        };
        retired.extract_if(.., |retired| retired.since <= oldest && !kept(&retired.code)).map(|retired| retired.code).collect()
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
