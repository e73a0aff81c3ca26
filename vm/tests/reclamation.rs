//! The model of the reclamation of retired code: `tier/reclaim.rs` and `records/quiescence.rs`, the library's own files, under
//! loom, which runs every interleaving of the threads below and every value that a load may return.
//!
//! The two files take atomics, locks and fences from `records::sync`. Here that module is loom's, so the files need no
//! `cfg(loom)`, `cargo test` needs no other flags, and the library is not built a second time. Both fences are sequentially
//! consistent here; the head of `tier/reclaim.rs` gives the reason why the proof needs no more than the asymmetric fence.

#[path = "../src/records"]
mod records {
    pub(crate) mod quiescence;

    /// The counterpart of the library's file of this name.
    pub(crate) mod sync {
        use crate::{FAULT, Fault};
        pub(crate) use loom::sync::atomic::Ordering;
        pub(crate) use loom::sync::{Arc, MutexGuard as Guard};
        use std::sync::PoisonError;

        /// The ranks of the locks in the two files. The library checks their order; the model does not.
        pub(crate) enum Rank {
            Retired,
            Words,
            Suspended,
        }

        /// The library's lock, over loom's.
        #[derive(Debug)]
        pub(crate) struct Lock<T>(loom::sync::Mutex<T>);

        impl<T> Lock<T> {
            pub fn new(_: Rank, value: T) -> Lock<T> {
                Lock(loom::sync::Mutex::new(value))
            }

            pub fn lock(&self) -> Guard<'_, T> {
                self.0.lock().unwrap_or_else(PoisonError::into_inner)
            }
        }

        /// Loom's atomic, of which a fault may relax one step. The steps are distinguished by the operation and the value: an
        /// engine's epoch is never 0, and a word is 0 before its store's first section and after each.
        #[derive(Debug)]
        pub(crate) struct AtomicU64 {
            atomic: loom::sync::atomic::AtomicU64,
            is_epoch: bool,
        }

        fn unless(fault: Fault, order: Ordering) -> Ordering {
            if FAULT.get() == fault { Ordering::Relaxed } else { order }
        }

        impl AtomicU64 {
            pub fn new(value: u64) -> AtomicU64 {
                AtomicU64 { atomic: loom::sync::atomic::AtomicU64::new(value), is_epoch: value != 0 }
            }

            pub fn load(&self, order: Ordering) -> u64 {
                self.atomic.load(unless(if self.is_epoch { Fault::RelaxedE1 } else { Fault::RelaxedR4 }, order))
            }

            pub fn store(&self, value: u64, order: Ordering) {
                self.atomic.store(value, unless(if value == 0 { Fault::RelaxedE5 } else { Fault::RelaxedE2 }, order));
            }

            pub fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
                self.atomic.fetch_add(value, unless(Fault::RelaxedR2, order))
            }
        }

        pub(crate) fn light_fence() {
            if FAULT.get() != Fault::NoLightFence && FAULT.get() != Fault::RelaxedE1 {
                loom::sync::atomic::fence(Ordering::SeqCst);
            }
        }
    }
}

#[path = "../src/tier"]
mod tier {
    pub(crate) mod reclaim;
}

use loom::cell::UnsafeCell;
use loom::sync::Mutex;
use loom::sync::atomic::AtomicU64;
use loom::thread;
use records::quiescence::{Domain, Word};
use records::sync::{Arc, Ordering};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64 as Count, Ordering::Relaxed};
use tier::reclaim::{Reclaimer, enter, leave};
#[cfg(feature = "async")]
use tier::reclaim::{resume, suspend};

/// A seeded fault of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    None,
    /// There is no light fence.
    NoLightFence,
    /// The heavy fence comes before the code is unlinked and not after.
    EarlyHeavyFence,
    /// The system refuses the heavy fence.
    Refused,
    /// The epoch is read without acquire, and there is no light fence, which is an acquire fence here.
    RelaxedE1,
    /// The word is written without release when a section begins.
    RelaxedE2,
    /// The word is written without release when a section ends.
    RelaxedE5,
    /// The epoch advances without release.
    RelaxedR2,
    /// The words are read without acquire.
    RelaxedR4,
    /// Suspended stacks are not walked.
    NoWalk,
}

thread_local! {
    /// Loom runs all threads of a model on the thread of its test.
    static FAULT: Cell<Fault> = const { Cell::new(Fault::None) };
}

fn heavy_fence() -> bool {
    if FAULT.get() != Fault::EarlyHeavyFence {
        loom::sync::atomic::fence(Ordering::SeqCst);
    }
    FAULT.get() != Fault::Refused
}

/// The contents of the memory of code, and its contents after it is freed.
const CODE: u64 = 42;
const FREED: u64 = 0;

/// The address in the code to which a frame of a suspended stack returns. A stack without such a frame returns to 0.
const RETURN: usize = 7;

/// An engine with one table that has one entry, which refers to code.
struct Engine {
    domain: Arc<Domain>,
    reclaimer: Reclaimer<()>,
    /// 1 while the entry refers to the code.
    table: AtomicU64,
    /// The lock under which the table is written.
    entries: Mutex<()>,
    memory: UnsafeCell<u64>,
    /// The numbers of times that sections ran the code and that it was freed, in all interleavings.
    seen: &'static Seen,
}

// SAFETY: loom checks the accesses to `memory`.
unsafe impl Send for Engine {}
// SAFETY: as above.
unsafe impl Sync for Engine {}

#[derive(Default)]
struct Seen {
    ran: Count,
    freed: Count,
    freed_beside_a_section: Count,
}

impl Engine {
    fn new(seen: &'static Seen) -> Arc<Engine> {
        let domain = Arc::new(Domain::default());
        Arc::new(Engine {
            reclaimer: Reclaimer::new(domain.clone()),
            domain,
            table: AtomicU64::new(1),
            entries: Mutex::new(()),
            memory: UnsafeCell::new(CODE),
            seen,
        })
    }

    /// A section of a store: it runs the code if the table has it, and again, as when a frame is returned to. Native code
    /// reads tables with plain loads.
    fn section(&self, word: &Word) {
        enter(word);
        if self.table.load(Ordering::Relaxed) == 1 {
            self.run();
            thread::yield_now();
            self.run();
        }
        leave(word);
    }

    fn run(&self) {
        // SAFETY: loom panics if the memory is written at the same time.
        let found = self.memory.with(|memory| unsafe { *memory });
        assert_eq!(found, CODE, "code is run after it was freed");
        self.seen.ran.fetch_add(1, Relaxed);
    }

    fn retire(&self) {
        let _entries = self.entries.lock().unwrap();
        self.reclaimer.retire(|| {
            if FAULT.get() == Fault::EarlyHeavyFence {
                loom::sync::atomic::fence(Ordering::SeqCst);
            }
            self.table.store(0, Ordering::Relaxed);
            Some(())
        });
    }

    /// Returns whether the code was freed.
    fn reclaim(&self) -> bool {
        let reclaimed = self.reclaimer.reclaim(
            heavy_fence,
            |()| RETURN..RETURN + 1,
            |stack, visit| {
                if FAULT.get() != Fault::NoWalk {
                    visit(stack.boundary + stack.exit_fp);
                }
            },
        );
        for () in &reclaimed {
            // SAFETY: loom panics if anything reads the memory at the same time.
            self.memory.with_mut(|memory| unsafe { *memory = FREED });
            self.seen.freed.fetch_add(1, Relaxed);
        }
        !reclaimed.is_empty()
    }
}

/// A section that is suspended, perhaps with a frame of the code, and resumed on another thread.
#[cfg(feature = "async")]
fn suspended_section(engine: &Arc<Engine>, word: Word) -> thread::JoinHandle<Word> {
    enter(&word);
    let has_frame = engine.table.load(Ordering::Relaxed) == 1;
    if has_frame {
        engine.run();
    }
    suspend(&word, 1, (0, if has_frame { RETURN } else { 0 }), true);
    let engine = engine.clone();
    thread::spawn(move || {
        resume(&word, 1);
        if has_frame {
            engine.run();
        }
        if engine.table.load(Ordering::Relaxed) == 1 {
            engine.run();
        }
        leave(&word);
        word
    })
}

/// Runs every interleaving of `threads`, or those in which they preempt each other `preemptions` times at most, and returns a
/// summary of them.
fn model(preemptions: Option<usize>, fault: Fault, threads: impl Fn(Arc<Engine>) + Send + Sync + 'static) -> &'static Seen {
    FAULT.set(fault);
    let seen: &'static Seen = Box::leak(Box::default());
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(move || threads(Engine::new(seen)));
    seen
}

/// A store with two sections, and a thread that retires and reclaims.
fn a_store_and_a_reclaimer(engine: Arc<Engine>) {
    let word = Word::new(&engine.domain);
    let guest = thread::spawn({
        let engine = engine.clone();
        move || {
            engine.section(&word);
            engine.section(&word);
            word
        }
    });
    engine.retire();
    if engine.reclaim() {
        engine.seen.freed_beside_a_section.fetch_add(1, Relaxed);
    }
    let word = guest.join().unwrap();
    engine.reclaim();
    assert_eq!(engine.reclaimer.sum(|()| 1), 0, "all stores are quiescent");
    drop(word);
}

/// Checks that each of these happened: a protocol that frees nothing, or is never used, would pass any model.
fn assert_reached(seen: &Seen) {
    let counts = [&seen.ran, &seen.freed].map(|count| count.load(Relaxed));
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
}

#[test]
fn code_that_a_store_runs_is_not_freed() {
    let seen = model(None, Fault::None, a_store_and_a_reclaimer);
    assert_reached(seen);
    assert!(seen.freed_beside_a_section.load(Relaxed) > 0, "freed before the store's thread ended");
}

#[test]
fn two_stores_may_run_it() {
    let seen = model(Some(3), Fault::None, |engine| {
        let guests = [(); 2].map(|()| {
            let (engine, word) = (engine.clone(), Word::new(&engine.domain));
            thread::spawn(move || engine.section(&word))
        });
        engine.retire();
        engine.reclaim();
        guests.into_iter().for_each(|guest| guest.join().unwrap());
    });
    assert_reached(seen);
}

#[test]
fn one_thread_retires_and_another_reclaims() {
    let seen = model(None, Fault::None, |engine| {
        let word = Word::new(&engine.domain);
        let guest = thread::spawn({
            let engine = engine.clone();
            move || engine.section(&word)
        });
        let retirer = thread::spawn({
            let engine = engine.clone();
            move || engine.retire()
        });
        engine.reclaim();
        guest.join().unwrap();
        retirer.join().unwrap();
    });
    assert_reached(seen);
}

#[test]
fn a_store_is_made_and_dropped_meanwhile() {
    let seen = model(None, Fault::None, |engine| {
        let guest = thread::spawn({
            let engine = engine.clone();
            move || engine.section(&Word::new(&engine.domain))
        });
        engine.retire();
        engine.reclaim();
        guest.join().unwrap();
    });
    assert_reached(seen);
}

/// Step 4 of the proof, alone: it needs no fence, but that the epoch is read with acquire, which a sequentially consistent fence
/// after it would hide.
#[test]
fn a_section_that_reads_the_new_epoch_needs_no_fence() {
    assert_reached(model(None, Fault::NoLightFence, a_late_section));
}

/// A store whose section begins after the code was retired, though nothing orders the two, and before the code is reclaimed.
fn a_late_section(engine: Arc<Engine>) {
    let entered = Arc::new(AtomicU64::new(0));
    let guest = thread::spawn({
        let (engine, entered, word) = (engine.clone(), entered.clone(), Word::new(&engine.domain));
        move || {
            enter(&word);
            entered.store(1, Ordering::Release);
            if engine.table.load(Ordering::Relaxed) == 1 {
                engine.run();
            }
            leave(&word);
        }
    });
    engine.retire();
    while entered.load(Ordering::Acquire) == 0 {
        thread::yield_now();
    }
    engine.reclaim();
    guest.join().unwrap();
}

#[test]
fn a_guest_that_reclaims_keeps_its_own_code() {
    model(None, Fault::None, |engine| {
        let words = [(); 2].map(|()| Word::new(&engine.domain));
        enter(&words[0]);
        engine.retire();
        assert!(!engine.reclaim(), "the store is in the guest since before");
        enter(&words[1]);
        leave(&words[0]);
        assert!(engine.reclaim(), "the other store entered later");
        leave(&words[1]);
    });
}

/// A store whose section is suspended, and a thread that retires and reclaims twice.
#[cfg(feature = "async")]
fn a_suspended_store_and_a_reclaimer(engine: Arc<Engine>) {
    let word = Word::new(&engine.domain);
    let guest = thread::spawn({
        let engine = engine.clone();
        move || suspended_section(&engine, word)
    });
    engine.retire();
    if engine.reclaim() {
        engine.seen.freed_beside_a_section.fetch_add(1, Relaxed);
    }
    let word = guest.join().unwrap().join().unwrap();
    engine.reclaim();
    assert_eq!(engine.reclaimer.sum(|()| 1), 0, "all stores are quiescent");
    drop(word);
}

#[cfg(feature = "async")]
#[test]
fn code_to_which_a_suspended_stack_returns_is_not_freed() {
    let seen = model(Some(3), Fault::None, a_suspended_store_and_a_reclaimer);
    assert_reached(seen);
    assert!(seen.freed_beside_a_section.load(Relaxed) > 0, "freed before the store's thread ended");
}

#[cfg(feature = "async")]
#[test]
#[should_panic(expected = "Causality violation")]
fn the_model_finds_that_suspended_stacks_are_not_walked() {
    model(Some(3), Fault::NoWalk, a_suspended_store_and_a_reclaimer);
}

#[cfg(feature = "async")]
#[test]
fn suspended_stacks_keep_the_code_to_which_they_return_only() {
    model(None, Fault::None, |engine| {
        let words = [(); 2].map(|()| Word::new(&engine.domain));
        enter(&words[0]);
        enter(&words[1]);
        engine.retire();
        suspend(&words[0], 1, (0, RETURN), true);
        assert!(!engine.reclaim(), "the other store is in the guest since before");
        suspend(&words[1], 1, (0, 0), true);
        assert!(!engine.reclaim(), "a stack returns to it");
        resume(&words[0], 1);
        assert!(!engine.reclaim(), "as before");
        leave(&words[0]);
        assert!(engine.reclaim(), "the other stack does not return to it");
        resume(&words[1], 1);
        leave(&words[1]);
    });
}

#[test]
fn without_a_heavy_fence_nothing_is_freed() {
    let seen = model(None, Fault::Refused, |engine| {
        engine.retire();
        assert!(!engine.reclaim());
        assert_eq!(engine.reclaimer.sum(|()| 1), 1);
        assert_eq!(engine.reclaimer.remove(|()| true).len(), 1, "it is freed with its module");
    });
    assert_eq!(seen.freed.load(Relaxed), 0);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_model_finds_that_the_light_fence_is_missing() {
    model(None, Fault::NoLightFence, a_store_and_a_reclaimer);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_model_finds_a_heavy_fence_before_the_unlinking() {
    model(None, Fault::EarlyHeavyFence, a_store_and_a_reclaimer);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_model_finds_that_e1_does_not_acquire() {
    model(None, Fault::RelaxedE1, a_late_section);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_model_finds_that_e2_does_not_release() {
    model(None, Fault::RelaxedE2, a_store_and_a_reclaimer);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_model_finds_that_e5_does_not_release() {
    model(None, Fault::RelaxedE5, a_store_and_a_reclaimer);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_model_finds_that_r2_does_not_release() {
    model(None, Fault::RelaxedR2, a_late_section);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_model_finds_that_r4_does_not_acquire() {
    model(None, Fault::RelaxedR4, a_store_and_a_reclaimer);
}
