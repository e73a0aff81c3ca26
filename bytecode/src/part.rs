//! Slices of shared vectors. The side tables of all bodies that a thread validates are in a few vectors: a box for each table of each
//! body takes an allocation, and the allocator asks the system for memory page by page on all threads but the first.

use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

/// A part of a vector that it shares with others. It derefs to a slice.
pub struct Part<T> {
    /// `None` if the part is empty.
    all: Option<Arc<Vec<T>>>,
    start: u32,
    end: u32,
}

impl<T> Part<T> {
    /// The items of `all` in this range.
    pub(crate) fn of(all: &Arc<Vec<T>>, range: &Range<u32>) -> Part<T> {
        if range.is_empty() {
            return Part::default();
        }
        Part { all: Some(all.clone()), start: range.start, end: range.end }
    }
}

impl<T> From<Vec<T>> for Part<T> {
    /// All of a vector.
    ///
    /// # Panics
    /// If it has 2³² items or more.
    fn from(all: Vec<T>) -> Part<T> {
        let end = u32::try_from(all.len()).expect("a part has fewer than 2³² items");
        Part::of(&Arc::new(all), &(0..end))
    }
}

impl<T> Deref for Part<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.all.as_ref().map_or(&[], |all| &all[self.start as usize..self.end as usize])
    }
}

/// Of a copy that is its own from then on.
impl<T: Clone> DerefMut for Part<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        *self = self.to_vec().into();
        self.all.as_mut().and_then(Arc::get_mut).map_or(&mut [], |all| all)
    }
}

impl<'a, T> IntoIterator for &'a Part<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> Default for Part<T> {
    fn default() -> Part<T> {
        Part { all: None, start: 0, end: 0 }
    }
}

impl<T> Clone for Part<T> {
    fn clone(&self) -> Part<T> {
        Part { all: self.all.clone(), ..*self }
    }
}

impl<T: PartialEq> PartialEq for Part<T> {
    fn eq(&self, other: &Part<T>) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for Part<T> {}

impl<T: fmt::Debug> fmt::Debug for Part<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_changed_is_no_longer_shared() {
        let all = Arc::new(vec![1, 2, 3, 4]);
        let (first, mut second) = (Part::of(&all, &(0..3)), Part::of(&all, &(1..3)));
        assert_eq!((&*first, &*second), (&[1, 2, 3][..], &[2, 3][..]));
        second[0] = 5;
        assert_eq!((&*first, &*second), (&[1, 2, 3][..], &[5, 3][..]));
        assert_eq!(Part::of(&all, &(2..2)), Part::default());
        assert_eq!(*Part::<u8>::default(), []);
        assert!(Part::<u8>::from(Vec::new()).iter_mut().next().is_none());
    }
}
