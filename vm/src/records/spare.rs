//! What stores leave behind for the next ones.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Up to `N` things that nobody uses now.
#[derive(Debug)]
pub(super) struct Spare<T, const N: usize>(Mutex<Vec<T>>);

impl<T, const N: usize> Default for Spare<T, N> {
    fn default() -> Self {
        Spare(Mutex::default())
    }
}

impl<T, const N: usize> Spare<T, N> {
    /// The one that was put in last.
    pub fn take(&self) -> Option<T> {
        self.things().pop()
    }

    /// Keeps it, or gives it back if there are enough.
    pub fn put(&self, thing: T) -> Option<T> {
        let mut things = self.things();
        if things.len() == N {
            return Some(thing);
        }
        things.push(thing);
        None
    }

    fn things(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.things().len()
    }
}
