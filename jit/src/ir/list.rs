//! Lists in an arena with inline room for a few entries: most blocks have few edges, and most instructions few
//! arguments.

use super::index::Value;
use bumpalo::Bump;
use std::fmt::{Debug, Formatter};
use std::ops::{Deref, DerefMut};

/// A growable list, as large as a slice and a number. Three entries take no memory in the arena.
pub struct List<'a, T>(Items<'a, T>);

/// The first `len` entries are used; the others are room to grow.
enum Items<'a, T> {
    Few { items: [T; FEW], len: u32 },
    Many { items: &'a mut [T], len: u32 },
}

const FEW: usize = 3;

impl<T: Copy + Default> List<'_, T> {
    /// An empty list.
    pub fn new() -> Self {
        List(Items::Few { items: [T::default(); FEW], len: 0 })
    }
}

impl<T: Copy + Default> Default for List<'_, T> {
    fn default() -> Self {
        List::new()
    }
}

impl<'a, T: Copy + Default> List<'a, T> {
    /// The number of entries for which there is room.
    fn room(&self) -> usize {
        match &self.0 {
            Items::Few { .. } => FEW,
            Items::Many { items, .. } => items.len(),
        }
    }

    /// Makes room for exactly `more` entries at the end.
    pub fn reserve(&mut self, arena: &'a Bump, more: usize) {
        let len = self.len();
        if len + more > self.room() {
            let items = arena.alloc_slice_fill_copy(len + more, T::default());
            items[..len].copy_from_slice(self);
            self.0 = Items::Many { items, len: len as u32 };
        }
    }

    /// Appends `item`.
    pub fn push(&mut self, arena: &'a Bump, item: T) {
        if self.len() == self.room() {
            self.reserve(arena, self.len().max(1));
        }
        self.lengthen(1)[0] = item;
    }

    /// Appends `more`.
    pub fn extend(&mut self, arena: &'a Bump, more: impl ExactSizeIterator<Item = T>) {
        self.reserve(arena, more.len());
        self.lengthen(more.len()).iter_mut().zip(more).for_each(|(slot, item)| *slot = item);
    }

    /// Extends the list by `more` entries, for which there must be room, and returns these.
    fn lengthen(&mut self, more: usize) -> &mut [T] {
        let (items, len) = match &mut self.0 {
            Items::Few { items, len } => (&mut items[..], len),
            Items::Many { items, len } => (&mut **items, len),
        };
        let from = *len as usize;
        *len += more as u32;
        &mut items[from..from + more]
    }

    /// Inserts `more` before the entry at index `at`.
    pub fn insert(&mut self, arena: &'a Bump, at: usize, more: &[T]) {
        let old = self.len();
        self.reserve(arena, more.len());
        self.lengthen(more.len());
        self.copy_within(at..old, at + more.len());
        self[at..at + more.len()].copy_from_slice(more);
    }

    /// Keeps the entries for which `keep`, called in order, returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let mut kept = 0;
        for i in 0..self.len() {
            if keep(&self[i]) {
                self[kept] = self[i];
                kept += 1;
            }
        }
        self.truncate(kept);
    }

    /// Removes the last entry.
    pub fn pop(&mut self) -> Option<T> {
        let last = *self.last()?;
        self.truncate(self.len() - 1);
        Some(last)
    }

    /// Keeps the first `kept` entries; there must be as many.
    pub fn truncate(&mut self, kept: usize) {
        debug_assert!(kept <= self.len());
        match &mut self.0 {
            Items::Few { len, .. } | Items::Many { len, .. } => *len = kept as u32,
        }
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.truncate(0);
    }
}

impl<T> Deref for List<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Items::Few { items, len } => &items[..*len as usize],
            Items::Many { items, len } => &items[..*len as usize],
        }
    }
}

impl<T> DerefMut for List<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Items::Few { items, len } => &mut items[..*len as usize],
            Items::Many { items, len } => &mut items[..*len as usize],
        }
    }
}

impl<'l, T> IntoIterator for &'l List<'_, T> {
    type Item = &'l T;
    type IntoIter = std::slice::Iter<'l, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'l, T> IntoIterator for &'l mut List<'_, T> {
    type Item = &'l mut T;
    type IntoIter = std::slice::IterMut<'l, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<T: PartialEq> PartialEq for List<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Debug> Debug for List<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

/// The arguments of an instruction, as large as a slice. More than two are in the arena.
pub struct Args<'a>(Arguments<'a>);

enum Arguments<'a> {
    /// The arguments before the first `ABSENT`.
    Few([Value; 2]),
    Many(&'a mut [Value]),
}

/// Marks a missing argument.
const ABSENT: Value = Value(u32::MAX);

impl<'a> Args<'a> {
    /// A copy of `args`.
    #[inline]
    pub(super) fn new(arena: &'a Bump, args: &[Value]) -> Args<'a> {
        Args(match *args {
            [] => Arguments::Few([ABSENT; 2]),
            [a] => Arguments::Few([a, ABSENT]),
            [a, b] => Arguments::Few([a, b]),
            _ => Arguments::Many(arena.alloc_slice_copy(args)),
        })
    }
}

fn present(few: [Value; 2]) -> usize {
    if few[1] != ABSENT { 2 } else { usize::from(few[0] != ABSENT) }
}

impl Deref for Args<'_> {
    type Target = [Value];

    #[inline]
    fn deref(&self) -> &[Value] {
        match &self.0 {
            Arguments::Few(few) => &few[..present(*few)],
            Arguments::Many(args) => args,
        }
    }
}

impl DerefMut for Args<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Value] {
        match &mut self.0 {
            Arguments::Few(few) => {
                let count = present(*few);
                &mut few[..count]
            }
            Arguments::Many(args) => args,
        }
    }
}

impl PartialEq for Args<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Debug for Args<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_small() {
        assert_eq!(size_of::<List<'_, Value>>(), 24);
        assert_eq!(size_of::<Args<'_>>(), 16);
    }

    #[test]
    fn a_list_behaves_like_a_vector() {
        let arena = Bump::new();
        let (mut list, mut vector) = (List::new(), Vec::new());
        for i in 0..50u32 {
            match i % 7 {
                0 | 1 => (list.push(&arena, i), vector.push(i)).0,
                2 => (list.extend(&arena, i..i + 3), vector.extend(i..i + 3)).0,
                3 => (list.insert(&arena, 1, &[i, 7]), drop(vector.splice(1..1, [i, 7]))).0,
                4 => assert_eq!(list.pop(), vector.pop()),
                5 => (list.retain(|item| item % 5 != 0), vector.retain(|item| item % 5 != 0)).0,
                _ => (list.truncate(list.len() / 2), vector.truncate(vector.len() / 2)).0,
            }
            assert_eq!(&*list, &vector[..]);
        }
        list.clear();
        assert!(list.is_empty());
    }

    #[test]
    fn arguments_are_those_given() {
        let arena = Bump::new();
        for count in 0..6 {
            let given: Vec<Value> = (0..count).map(Value).collect();
            let mut args = Args::new(&arena, &given);
            assert_eq!(*args, given);
            args.iter_mut().for_each(|arg| *arg = Value(9));
            assert_eq!(*args, vec![Value(9); count as usize]);
        }
    }
}
