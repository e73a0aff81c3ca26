//! Resources of dropped stores, kept for new ones.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Up to `N` unused resources.
#[derive(Debug)]
pub(super) struct Pool<T, const N: usize>(Mutex<Vec<T>>);

impl<T, const N: usize> Default for Pool<T, N> {
    fn default() -> Self {
        Pool(Mutex::default())
    }
}

impl<T, const N: usize> Pool<T, N> {
    /// Takes the one that was added last.
    pub fn take(&self) -> Option<T> {
        self.resources().pop()
    }

    /// Keeps a resource, or returns it if there are `N`.
    pub fn put(&self, resource: T) -> Option<T> {
        let mut resources = self.resources();
        if resources.len() == N {
            return Some(resource);
        }
        resources.push(resource);
        None
    }

    fn resources(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of resources.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.resources().len()
    }
}
