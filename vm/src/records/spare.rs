//! Resources of dropped stores, kept for new ones.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Up to `N` unused resources.
#[derive(Debug)]
pub(super) struct Spare<T, const N: usize>(Mutex<Vec<T>>);

impl<T, const N: usize> Default for Spare<T, N> {
    fn default() -> Self {
        Spare(Mutex::default())
    }
}

impl<T, const N: usize> Spare<T, N> {
    /// Takes the one that was added last.
    pub fn take(&self) -> Option<T> {
        self.things().pop()
    }

    /// Keeps a resource, or returns it if there are `N`.
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

    /// Returns the number of resources.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.things().len()
    }
}
