//! The model of the reclamation of retired code: `tier/reclaim.rs` and `records/quiescence.rs`, the very files, under loom, which
//! runs every interleaving of the threads below and every value that a load may return.
//!
//! The two files take atomics, locks and fences from `records::sync`. Here that module is loom's, so the files need no `cfg(loom)`,
//! `cargo test` needs no other flags, and the library is not built a second time. Both fences are sequentially
//! consistent here; the head of `tier/reclaim.rs` says why the proof needs no more than the asymmetric fence gives.

#[path = "../src/records"]
mod records {
    pub(crate) mod quiescence;

    /// The counterpart of the library's file of this name.
    pub(crate) mod sync {
        pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
        pub(crate) use loom::sync::{Arc, MutexGuard as Guard};
        use std::sync::PoisonError;

        /// The ranks of the locks in the two files. The library checks their order; the model does not.
        pub(crate) enum Rank {
            Retired,
            Words,
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

        pub(crate) fn light_fence() {
            if crate::FAULT.get() != crate::Fault::NoLightFence {
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
use loom::thread;
use records::quiescence::{Domain, Word};
use records::sync::{Arc, AtomicU64, Ordering};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64 as Count, Ordering::Relaxed};
use tier::reclaim::{Reclaimer, enter, leave};

/// What is wrong with the fences.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    None,
    /// There is no light fence.
    NoLightFence,
    /// The heavy fence comes before the code is unlinked and not after.
    EarlyHeavyFence,
    /// The system refuses the heavy fence.
    Refused,
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

/// What the memory of code holds, and what is written to it when it is freed.
const CODE: u64 = 42;
const FREED: u64 = 0;

/// An engine with one table that has one entry, which refers to code.
struct Engine {
    domain: Arc<Domain>,
    reclaimer: Reclaimer<()>,
    /// 1 while the entry refers to the code.
    table: AtomicU64,
    /// The lock under which the table is written.
    entries: Mutex<()>,
    memory: UnsafeCell<u64>,
    /// How often activations ran the code, and how often it was freed, in all interleavings.
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
    freed_beside_an_activation: Count,
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

    /// An activation of a store: it runs the code if the table has it, and again, as when a frame is returned to. Native code
    /// reads tables with plain loads.
    fn activation(&self, word: &Word) {
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
        let reclaimed = self.reclaimer.reclaim(heavy_fence);
        for () in &reclaimed {
            // SAFETY: loom panics if anything reads the memory at the same time.
            self.memory.with_mut(|memory| unsafe { *memory = FREED });
            self.seen.freed.fetch_add(1, Relaxed);
        }
        !reclaimed.is_empty()
    }
}

/// Runs every interleaving of `threads`, or those in which they preempt each other `preemptions` times at most, and returns what
/// happened in them.
fn model(preemptions: Option<usize>, fault: Fault, threads: impl Fn(Arc<Engine>) + Send + Sync + 'static) -> &'static Seen {
    FAULT.set(fault);
    let seen: &'static Seen = Box::leak(Box::default());
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(move || threads(Engine::new(seen)));
    seen
}

/// A store with two activations, and a thread that retires and reclaims.
fn a_store_and_a_reclaimer(engine: Arc<Engine>) {
    let word = Word::new(&engine.domain);
    let guest = thread::spawn({
        let engine = engine.clone();
        move || {
            engine.activation(&word);
            engine.activation(&word);
            word
        }
    });
    engine.retire();
    if engine.reclaim() {
        engine.seen.freed_beside_an_activation.fetch_add(1, Relaxed);
    }
    let word = guest.join().unwrap();
    engine.reclaim();
    assert_eq!(engine.reclaimer.sum(|()| 1), 0, "all stores are quiescent");
    drop(word);
}

/// Each happened: a protocol that frees nothing, or is never asked to, would pass any model.
fn assert_reached(seen: &Seen) {
    let counts = [&seen.ran, &seen.freed].map(|count| count.load(Relaxed));
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
}

#[test]
fn code_that_a_store_runs_is_not_freed() {
    let seen = model(None, Fault::None, a_store_and_a_reclaimer);
    assert_reached(seen);
    assert!(seen.freed_beside_an_activation.load(Relaxed) > 0, "freed before the store's thread ended");
}

#[test]
fn two_stores_may_run_it() {
    let seen = model(Some(3), Fault::None, |engine| {
        let guests = [(); 2].map(|()| {
            let (engine, word) = (engine.clone(), Word::new(&engine.domain));
            thread::spawn(move || engine.activation(&word))
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
            move || engine.activation(&word)
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
            move || engine.activation(&Word::new(&engine.domain))
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
fn an_activation_that_reads_the_new_epoch_needs_no_fence() {
    let seen = model(None, Fault::NoLightFence, |engine| {
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
    });
    assert_reached(seen);
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
