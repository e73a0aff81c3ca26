//! Which stores are in the guest, and since when: what must be known before code is freed that one of them could return to.
//!
//! A store writes a word when the outermost activation begins and ends; nested ones, through host functions, write nothing. The
//! word is 0 outside, else what [`Guests::now`] was at the beginning. Who takes code out of all tables asks for the
//! [`Guests::advance`]d time afterwards: a store whose word is not below that, or 0, has not seen the code or has left it.
//!
//! The store's write and its reads of the tables are not ordered by any instruction, which every call would pay for. Who frees
//! code makes up for it: it lets all threads of the process pass a barrier between the change of the tables and
//! [`Guests::oldest`]. A store's write is then seen, or the store sees the changed tables.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The stores of an engine.
#[derive(Debug)]
pub(crate) struct Guests {
    now: AtomicU64,
    /// By address.
    since: Mutex<HashMap<usize, Arc<AtomicU64>>>,
}

impl Default for Guests {
    fn default() -> Guests {
        Guests { now: AtomicU64::new(1), since: Mutex::default() }
    }
}

impl Guests {
    fn since(&self) -> MutexGuard<'_, HashMap<usize, Arc<AtomicU64>>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A time that only those activations have that begin from now on.
    pub fn advance(&self) -> u64 {
        self.now.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// When the oldest activation began of those that there are; the end of time if there is none. All threads have passed a
    /// barrier since what depends on it was changed.
    pub fn oldest(&self) -> u64 {
        let since = self.since();
        since.values().map(|since| since.load(Ordering::Acquire)).filter(|&since| since != 0).min().unwrap_or(u64::MAX)
    }
}

/// A store among the stores of its engine.
#[derive(Debug)]
pub(crate) struct Presence {
    guests: Arc<Guests>,
    since: Arc<AtomicU64>,
}

impl Presence {
    /// A store that is outside.
    pub fn new(guests: &Arc<Guests>) -> Presence {
        let since = Arc::new(AtomicU64::new(0));
        guests.since().insert(Arc::as_ptr(&since).addr(), since.clone());
        Presence { guests: guests.clone(), since }
    }

    /// The outermost activation begins.
    #[inline]
    pub fn enter(&self) {
        self.since.store(self.guests.now.load(Ordering::Acquire), Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    /// It ends.
    #[inline]
    pub fn leave(&self) {
        self.since.store(0, Ordering::Release);
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.guests.since().remove(&Arc::as_ptr(&self.since).addr());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_activation_is_the_earliest_that_has_not_ended() {
        let guests = Arc::new(Guests::default());
        let [a, b] = [(); 2].map(|()| Presence::new(&guests));
        assert_eq!(guests.oldest(), u64::MAX);
        a.enter();
        let first = guests.advance();
        assert!(guests.oldest() < first, "it may have seen what was there before");
        b.enter();
        let second = guests.advance();
        a.leave();
        assert!((first..second).contains(&guests.oldest()));
        a.enter();
        drop(b);
        assert_eq!(guests.oldest(), second);
        a.leave();
        assert_eq!(guests.oldest(), u64::MAX);
    }
}
