//! Many short lists in one allocation.

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;

/// A handle of one list.
#[derive(Clone, Copy)]
pub struct List {
    first: u32,
    last: u32,
}

/// The link of a list's last entry.
const END: u32 = u32::MAX;

impl List {
    /// The empty list.
    pub const EMPTY: List = List { first: END, last: END };

    /// The cursor with which [`Lists::step`] begins.
    pub fn start(self) -> u32 {
        self.first
    }
}

/// The entries of all lists, each with the index of the next entry of its list.
pub struct Lists<'s, T>(BumpVec<'s, (T, u32)>);

impl<'s, T> Lists<'s, T> {
    /// No lists, with room for about this many entries.
    pub fn new(scratch: &'s Bump, entries: usize) -> Lists<'s, T> {
        Lists(BumpVec::with_capacity_in(entries, scratch))
    }
}

impl<T: Copy> Lists<'_, T> {
    /// Appends an entry to `list`, which belongs to these lists.
    pub fn push(&mut self, list: &mut List, entry: T) {
        let place = self.0.len() as u32;
        self.0.push((entry, END));
        match self.0.get_mut(list.last as usize) {
            Some((_, next)) => *next = place,
            None => list.first = place,
        }
        list.last = place;
    }

    /// The entries of `list`, in the order in which they were added.
    pub fn iter(&self, list: List) -> impl Iterator<Item = T> + '_ {
        let mut cursor = list.start();
        std::iter::from_fn(move || self.step(&mut cursor))
    }

    /// The entry at `cursor`, which advances to the next one. Lists may grow during such a walk.
    pub fn step(&self, cursor: &mut u32) -> Option<T> {
        let &(entry, next) = self.0.get(*cursor as usize)?;
        *cursor = next;
        Some(entry)
    }
}
