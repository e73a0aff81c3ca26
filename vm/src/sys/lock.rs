//! Locks whose order is checked. Each has a rank. In debug builds, taking a lock while the thread holds one whose rank
//! forbids it panics, whether or not another thread waits. Release builds keep no ranks.
//!
//! The order is a tree, and a thread that holds a lock takes only locks below it:
//!
//! ```text
//! Entries
//!   ├ Installed
//!   ├ Shapes ─ CodeMemory
//!   └ Retired ─ Words ─ Suspended
//! ```
//!
//! Other locks have no rank. Three of them are held while another lock without a rank is taken:
//!
//! - the lock of the compile queue around that of its list of threads;
//! - the lock of the evaluator's functions around that of the compilation statistics;
//! - `Bodies::lazy`, under which a function is made ready, around that of the policy's random numbers (`Policy::stress`),
//!   because the function gets its first ticks under it.
//!
//! None is held while a ranked lock is taken.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The data that a lock protects, which determines its place in the order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rank {
    /// The entries of a module: `ModuleState::entries`.
    Entries,
    /// The code installed in a module: `ModuleCode::installed`.
    Installed,
    /// The stubs by shape: `CodeSpace::shapes`.
    Shapes,
    /// The free lists of code memory: `CodeArena::free`.
    CodeMemory,
    /// Retired code: `Reclaimer::retired`.
    Retired,
    /// The quiescence words of an engine's stores: `Domain::words`.
    Words,
    /// The suspended stacks of a store: `State::suspended` of `records::quiescence`.
    Suspended,
}

impl Rank {
    /// Returns the ranks that a thread may hold when it takes one of this rank.
    #[cfg(debug_assertions)]
    fn outer(self) -> &'static [Rank] {
        match self {
            Rank::Entries => &[],
            Rank::Installed | Rank::Shapes | Rank::Retired => &[Rank::Entries],
            Rank::CodeMemory => &[Rank::Entries, Rank::Shapes],
            Rank::Words => &[Rank::Entries, Rank::Retired],
            Rank::Suspended => &[Rank::Entries, Rank::Retired, Rank::Words],
        }
    }
}

/// A mutex with a rank. A panic while it is held does not poison it: no critical section leaves a value half changed.
#[derive(Debug)]
pub(crate) struct Lock<T> {
    mutex: Mutex<T>,
    #[cfg(debug_assertions)]
    rank: Rank,
}

impl<T> Lock<T> {
    /// Creates an unlocked lock.
    pub fn new(rank: Rank, value: T) -> Lock<T> {
        #[cfg(not(debug_assertions))]
        let _ = rank;
        Lock {
            mutex: Mutex::new(value),
            #[cfg(debug_assertions)]
            rank,
        }
    }

    /// Waits for the lock and takes it.
    ///
    /// # Panics
    /// In debug builds, if the thread holds a lock that must not be held around this one.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        #[cfg(debug_assertions)]
        let held = held::Held::new(self.rank);
        Guard {
            guard: self.mutex.lock().unwrap_or_else(PoisonError::into_inner),
            #[cfg(debug_assertions)]
            _held: held,
        }
    }

    /// Returns the value, which no other thread can reach.
    pub fn get_mut(&mut self) -> &mut T {
        self.mutex.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A held lock; released when it is dropped.
#[derive(Debug)]
pub(crate) struct Guard<'a, T> {
    guard: MutexGuard<'a, T>,
    /// Dropped after the guard.
    #[cfg(debug_assertions)]
    _held: held::Held,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[cfg(debug_assertions)]
mod held {
    use super::Rank;
    use std::cell::RefCell;

    thread_local! {
        /// The ranks of the locks that the thread holds or waits for, in the order in which it took them.
        static HELD: RefCell<Vec<Rank>> = const { RefCell::new(Vec::new()) };
    }

    /// An element of [`HELD`].
    #[derive(Debug)]
    pub(super) struct Held(Rank);

    impl Held {
        pub fn new(rank: Rank) -> Held {
            HELD.with_borrow_mut(|held| {
                let wrong = held.iter().find(|outer| !rank.outer().contains(outer));
                assert!(wrong.is_none(), "lock order: {rank:?} is taken while {wrong:?} is held");
                held.push(rank);
            });
            Held(rank)
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            HELD.with_borrow_mut(|held| {
                let last = held.iter().rposition(|&rank| rank == self.0).expect("it was added");
                held.remove(last);
            });
        }
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    const ALL: [Rank; 6] = [Rank::Entries, Rank::Installed, Rank::Shapes, Rank::CodeMemory, Rank::Retired, Rank::Words];

    /// Takes two locks, one inside the other.
    fn nest(outer: Rank, inner: Rank) -> bool {
        catch_unwind(|| {
            let (outer, inner) = (Lock::new(outer, ()), Lock::new(inner, ()));
            let _outer = outer.lock();
            drop(inner.lock());
        })
        .is_ok()
    }

    #[test]
    fn an_inversion_panics() {
        use Rank::*;
        let allowed = [
            (Entries, Installed),
            (Entries, Shapes),
            (Entries, CodeMemory),
            (Entries, Retired),
            (Entries, Words),
            (Shapes, CodeMemory),
            (Retired, Words),
        ];
        for outer in ALL {
            for inner in ALL {
                assert_eq!(nest(outer, inner), allowed.contains(&(outer, inner)), "{inner:?} inside {outer:?}");
            }
        }
    }

    #[test]
    fn a_lock_that_was_given_back_does_not_count() {
        let (entries, words) = (Lock::new(Rank::Entries, 1), Lock::new(Rank::Words, 2));
        drop(words.lock());
        let mut first = entries.lock();
        *first += *words.lock();
        drop(first);
        assert_eq!(*words.lock(), 2);
        assert_eq!(*entries.lock(), 3);
    }

    #[test]
    fn locks_may_be_given_back_in_any_order() {
        let (entries, words) = (Lock::new(Rank::Entries, ()), Lock::new(Rank::Words, ()));
        let (outer, inner) = (entries.lock(), words.lock());
        drop(outer);
        assert!(!nest(Rank::Words, Rank::Entries), "the inner lock is still held");
        drop(inner);
        drop(entries.lock());
    }
}
