//! The collected heap of a store: host values that `externref` refers to, and exception objects.
//!
//! A reference is 32 bits: the distance of the object from the beginning of the heap's reservation, in words of 8 bytes; 0 is null. In
//! slots and registers it is extended with zeros. The reservation never moves, and is made with the first object.
//!
//! Objects are allocated by advancing a pointer. A collection copies those that are reachable into another part of the reservation, by
//! Cheney's algorithm (C. J. Cheney, "A Nonrecursive List Compacting Algorithm", CACM 13(11), 1970), and changes every root. So each
//! object moves at each collection, and its cost is proportional to the live objects and the roots. [`collect`](super::collect) has
//! the roots.
//!
//! Every object begins with a [`Header`]. Host values are not in the heap but in a table, because their destructors must run: an
//! object of kind [`Kind::Extern`] has the index of its value there. After a collection the values without an object are *dead*: they
//! are taken out of the table, and dropped when no part of the store is in use.

use crate::records::error::{Error, Result};
use crate::records::exceptions::ExnRecord;
use crate::records::object::{Header, Kind};
use crate::sys::mapping::{Access, Mapping, page_size};
use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

/// A host value.
pub(crate) type HostValue = Box<dyn Any + Send + Sync>;

/// Bytes of a word.
const WORD: usize = size_of::<u64>();
/// Bytes of the reservation: references have 31 bits, the highest of 32 being left for numbers.
const RESERVATION: usize = 16 << 30;
/// The reservations that are tried in turn where address space is scarce.
const RESERVATIONS: [usize; 3] = [RESERVATION, RESERVATION >> 4, RESERVATION >> 8];
/// Bytes at the beginning of the reservation that are never accessible.
const GUARD: usize = 64 << 10;
/// The heap is collected when this number of bytes has been allocated, or more if much of it is live.
const MIN_BETWEEN: usize = 64 << 10;
/// To the limiter, the heap grows by this number of bytes.
const PAGE: usize = 64 << 10;
/// Bytes of an old space that stay in memory for the next collection.
const KEPT: usize = 256 << 10;
/// Bytes that a host value takes in the table.
const VALUE: usize = size_of::<Entry>();

/// An object for a host value.
#[repr(C)]
struct ExternObject {
    header: Header,
    /// The index in the table.
    value: u64,
}

/// Words of the object for a host value.
pub(crate) const EXTERN_WORDS: usize = size_of::<ExternObject>() / WORD;

/// An entry of the table of host values.
enum Entry {
    Value(HostValue),
    /// The index of the next free entry, or [`NO_ENTRY`].
    Free(u32),
}

/// The index of no entry.
const NO_ENTRY: u32 = u32::MAX;

/// A part of the reservation, in words. Objects are between `start` and `top`; up to `end` it is accessible.
#[derive(Clone, Copy, Default, Debug)]
struct Space {
    start: usize,
    top: usize,
    end: usize,
}

/// The heap.
pub(crate) struct Heap {
    memory: Option<Mapping>,
    space: Space,
    /// The number of words in use at which the next collection is due.
    collect_at: usize,
    /// Bytes for which the limiter has been asked.
    granted: usize,
    values: Vec<Entry>,
    free: u32,
    dead: Vec<HostValue>,
    /// Greater than 0 where no collection can run, because the guest is at a place without a root map.
    pub blocked: u32,
    /// Whether everything moves at every opportunity, and old spaces are inaccessible.
    pub stress: bool,
}

impl Heap {
    /// Creates a heap without objects.
    pub fn new(stress: bool) -> Heap {
        Heap {
            memory: None,
            space: Space::default(),
            collect_at: MIN_BETWEEN / WORD,
            granted: 0,
            values: Vec::new(),
            free: NO_ENTRY,
            dead: Vec::new(),
            blocked: 0,
            stress,
        }
    }

    /// Returns the bytes that objects and the table take.
    pub fn used(&self) -> usize {
        (self.space.top - self.space.start) * WORD + self.values.len() * VALUE
    }

    /// Returns whether there are objects, live or not.
    pub fn has_objects(&self) -> bool {
        self.space.top > self.space.start
    }

    /// Returns whether a collection is due before an object of this many words is allocated.
    pub fn is_due(&self, words: usize) -> bool {
        self.has_objects() && (self.stress || self.space.top - self.space.start + words > self.collect_at)
    }

    /// Returns the bytes for which the limiter has been asked, and those for which it must be asked before an object of this many
    /// words, and perhaps a host value, is allocated. `None` if these are granted.
    pub fn wanted(&self, words: usize) -> Option<Range<usize>> {
        let used = self.used() + words * WORD + VALUE;
        (used > self.granted).then(|| self.granted..used.next_multiple_of(PAGE))
    }

    /// The limiter grants this many bytes.
    pub fn grant(&mut self, bytes: usize) {
        self.granted = bytes;
    }

    /// Allocates an object of this many words, which the caller must write. Returns the reference. Never collects.
    ///
    /// # Errors
    /// There is no memory or address space.
    pub fn allocate(&mut self, words: usize) -> Result<u32> {
        if self.space.top + words > self.space.end {
            self.extend(words)?;
        }
        let at = self.space.top;
        self.space.top += words;
        Ok(at as u32)
    }

    /// Makes more of the space accessible.
    #[cold]
    fn extend(&mut self, words: usize) -> Result<()> {
        if self.memory.is_none() {
            let reserved = RESERVATIONS.iter().find_map(|&bytes| Mapping::reserve(bytes).ok());
            self.memory = Some(reserved.ok_or_else(|| Error::msg("there is no address space for references"))?);
            let start = GUARD / WORD;
            self.space = Space { start, top: start, end: start };
        }
        let Space { start, top, end } = self.space;
        let len = ((end - start) * 2).max(top + words - start).max(PAGE / WORD);
        self.space.end = self.open(start, len, top + words)?;
        Ok(())
    }

    /// Makes `len` words from `start` accessible, or fewer, but those up to `needed`. Returns the end.
    fn open(&self, start: usize, len: usize, needed: usize) -> Result<usize> {
        let memory = self.memory.as_ref().expect("it was reserved before");
        let limit = self.limit(start);
        let end = (start + len).next_multiple_of(page_size() / WORD).min(limit);
        if needed > limit {
            return Err(Error::msg(format!("the heap of references exceeds {} bytes", (limit - start) * WORD)));
        }
        // SAFETY: this part of the reservation is the heap's own, and is used for objects only.
        unsafe { memory.protect(start * WORD..end * WORD, Access::ReadWrite)? };
        Ok(end)
    }

    /// The end of the space that begins at `start`, which is the first or the second half; with stress, that of the reservation.
    fn limit(&self, start: usize) -> usize {
        let words = self.memory.as_ref().map_or(0, Mapping::len) / WORD;
        if self.stress || start >= words / 2 { words } else { words / 2 }
    }

    /// The beginning of the next space. With stress it is after the old one, so that a space is not used again soon.
    fn next_start(&self, words: usize) -> usize {
        let (first, all) = (GUARD / WORD, self.memory.as_ref().map_or(0, Mapping::len) / WORD);
        match self.stress {
            false if self.space.start == first => all / 2,
            true if self.space.end + 2 * words + PAGE < all => self.space.end,
            _ => first,
        }
    }

    /// Returns the address of an object.
    fn address(&self, reference: u32) -> *mut u64 {
        let base = self.memory.as_ref().map_or(ptr::null_mut(), Mapping::as_mut_ptr);
        base.cast::<u64>().wrapping_add(reference as usize)
    }

    /// Returns the address of the object of this kind to which a reference refers.
    ///
    /// # Panics
    /// It refers to none: there is a mistake in this library.
    fn object(&self, reference: u32, kind: Kind) -> *mut u64 {
        let Space { start, top, .. } = self.space;
        assert!((start..top).contains(&(reference as usize)), "a reference leads out of the heap");
        let address = self.address(reference);
        // SAFETY: it is in the part of the space that has objects.
        let found = unsafe { address.cast::<Header>().read() };
        assert!(found.kind == kind as u32, "a reference to {kind:?} leads to an object of kind {}", found.kind);
        address
    }

    /// Returns the address of an exception object; it is valid until the next collection.
    ///
    /// # Panics
    /// As for [`Heap::object`].
    pub fn exception(&self, reference: u32) -> *mut ExnRecord {
        self.object(reference, Kind::Exn).cast()
    }

    /// Returns the address for an exception object whose words have just been allocated.
    pub fn new_exception(&self, reference: u32) -> *mut ExnRecord {
        self.address(reference).cast()
    }

    /// Returns the reference to the object at an address; 0 for null.
    pub fn reference(&self, object: *const ExnRecord) -> u32 {
        if object.is_null() {
            return 0;
        }
        ((object.addr() - self.address(0).addr()) / WORD) as u32
    }

    /// Adds a host value. Returns a reference to it. Never collects.
    ///
    /// # Errors
    /// There is no memory. The value is given back.
    pub fn add_value(&mut self, value: HostValue) -> Result<u32, (Error, HostValue)> {
        let reference = match self.allocate(EXTERN_WORDS) {
            Ok(reference) => reference,
            Err(error) => return Err((error, value)),
        };
        let index = match self.values.get(self.free as usize) {
            Some(&Entry::Free(next)) => {
                let index = std::mem::replace(&mut self.free, next);
                self.values[index as usize] = Entry::Value(value);
                index
            }
            _ => {
                self.values.push(Entry::Value(value));
                self.values.len() as u32 - 1
            }
        };
        let object = ExternObject { header: Header::new(Kind::Extern), value: index.into() };
        // SAFETY: the words have just been allocated.
        unsafe { self.address(reference).cast::<ExternObject>().write(object) };
        Ok(reference)
    }

    fn value_index(&self, reference: u32) -> usize {
        let object = self.object(reference, Kind::Extern).cast::<ExternObject>();
        // SAFETY: it is such an object.
        unsafe { (*object).value as usize }
    }

    /// Returns the host value of a reference.
    ///
    /// # Panics
    /// As for [`Heap::object`].
    pub fn value(&self, reference: u32) -> &HostValue {
        match &self.values[self.value_index(reference)] {
            Entry::Value(value) => value,
            Entry::Free(_) => unreachable!("an object has its value"),
        }
    }

    /// Returns the host value of a reference.
    ///
    /// # Panics
    /// As for [`Heap::object`].
    pub fn value_mut(&mut self, reference: u32) -> &mut HostValue {
        let index = self.value_index(reference);
        match &mut self.values[index] {
            Entry::Value(value) => value,
            Entry::Free(_) => unreachable!("an object has its value"),
        }
    }

    /// Returns whether there are dead values.
    pub fn has_dead(&self) -> bool {
        !self.dead.is_empty()
    }

    /// Takes the dead values. Called by [`StoreRecord::take_dead`](super::store::StoreRecord::take_dead) only.
    pub fn take_dead(&mut self) -> Vec<HostValue> {
        std::mem::take(&mut self.dead)
    }

    /// Begins a collection.
    ///
    /// # Errors
    /// There is no memory for the new space; nothing has changed.
    pub fn begin(&mut self) -> Result<Collection<'_>> {
        let words = self.space.top - self.space.start;
        let start = self.next_start(words);
        let end = self.open(start, words, start + words)?;
        let Space { start: old, end: old_end, .. } = self.space;
        assert!(end <= old || start >= old_end, "the spaces overlap");
        let from = std::mem::replace(&mut self.space, Space { start, top: start, end });
        let marks = vec![0; self.values.len().div_ceil(64)];
        Ok(Collection { scanned: start, heap: self, from, marks })
    }
}

/// A collection. First each root is [visited](Collection::visit), then [`Collection::finish`] copies what else is reachable.
pub(crate) struct Collection<'h> {
    heap: &'h mut Heap,
    from: Space,
    /// The objects of the new space before this point refer to that space only.
    scanned: usize,
    /// By host value, whether its object is live.
    marks: Vec<u64>,
}

impl Collection<'_> {
    /// Copies the object to which the slot refers, unless that is done, and makes the slot refer to the copy.
    ///
    /// # Safety
    /// The slot holds a reference of this heap, and is visited once.
    pub unsafe fn visit(&mut self, slot: *mut u64) {
        // SAFETY: the caller's promise.
        unsafe {
            let old = slot.read();
            if old != 0 {
                slot.write(self.forward(old).into());
            }
        }
    }

    /// [`Collection::visit`] for a place that has the address of an exception object.
    ///
    /// # Safety
    /// As there; null is no object.
    pub unsafe fn visit_exception(&mut self, place: *mut *mut ExnRecord) {
        // SAFETY: the caller's promise.
        unsafe {
            let reference = self.heap.reference(place.read());
            if reference != 0 {
                let new = self.forward(reference.into());
                place.write(self.heap.address(new).cast());
            }
        }
    }

    /// Returns the new reference of an object, after copying it if it has not been copied.
    fn forward(&mut self, old: u64) -> u32 {
        // A root that is no reference would corrupt memory. This finds it, at the cost of a comparison.
        assert!((self.from.start as u64..self.from.top as u64).contains(&old), "the root {old:#x} is not in the old space");
        let from = self.heap.address(old as u32);
        // SAFETY: references lead to objects, whose sizes are in their headers or tags; the new space has room for all.
        unsafe {
            let header = from.cast::<Header>();
            if (*header).forwarded != 0 {
                return (*header).forwarded;
            }
            let words = size(from);
            let new = self.heap.space.top;
            self.heap.space.top += words;
            assert!(self.heap.space.top <= self.heap.space.end, "the copies take more than the objects");
            ptr::copy_nonoverlapping(from, self.heap.address(new as u32), words);
            (*header).forwarded = new as u32;
            new as u32
        }
    }

    /// Copies everything that the copied objects reach, finds dead values, and frees the old space. `depth` is the number of frames on
    /// the stack, which a collection also costs.
    pub fn finish(mut self, depth: usize) {
        while self.scanned < self.heap.space.top {
            let object = self.heap.address(self.scanned as u32);
            // SAFETY: the words before `top` are copies of objects, one after another.
            unsafe {
                self.scanned += size(object);
                if (*object.cast::<Header>()).kind == Kind::Extern as u32 {
                    let value = (*object.cast::<ExternObject>()).value as usize;
                    self.marks[value / 64] |= 1 << (value % 64);
                } else {
                    ExnRecord::references(object.cast(), |slot| self.visit(slot));
                }
            }
        }
        let Collection { heap, from, marks, .. } = self;
        heap.sweep(&marks);
        heap.close(from);
        let live = heap.space.top - heap.space.start;
        heap.collect_at = live + (MIN_BETWEEN / WORD).max(live).max(8 * depth);
    }
}

impl Heap {
    /// Takes the values without a mark out of the table.
    fn sweep(&mut self, marks: &[u64]) {
        let is_live = |index: usize| marks[index / 64] >> (index % 64) & 1 != 0;
        let last = (0..self.values.len()).rfind(|&index| is_live(index)).map_or(0, |last| last + 1);
        let value = |entry| if let Entry::Value(value) = entry { Some(value) } else { None };
        self.dead.extend(self.values.drain(last..).filter_map(value));
        self.free = NO_ENTRY;
        for index in (0..last).filter(|&index| !is_live(index)) {
            let entry = std::mem::replace(&mut self.values[index], Entry::Free(self.free));
            self.dead.extend(value(entry));
            self.free = index as u32;
        }
    }

    /// Returns the memory of an old space, or some of it. If the system refuses, it stays.
    fn close(&self, from: Space) {
        let memory = self.memory.as_ref().expect("there was a space");
        let range = from.start * WORD..from.end * WORD;
        // SAFETY: nothing refers to the old space.
        unsafe {
            if self.stress {
                let _ = memory.discard(range.clone());
                let _ = memory.protect(range, Access::None);
            } else if range.len() > KEPT {
                let _ = memory.discard(range.start + KEPT..range.end);
            }
        }
    }
}

/// The number of words of an object.
///
/// # Safety
/// There is such an object.
unsafe fn size(object: *const u64) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        match (*object.cast::<Header>()).kind {
            kind if kind == Kind::Extern as u32 => EXTERN_WORDS,
            kind if kind == Kind::Exn as u32 => ExnRecord::words((*object.cast::<ExnRecord>()).tag()),
            kind => panic!("an object of kind {kind}"),
        }
    }
}

/// Drops host values, each once.
///
/// # Panics
/// With the first panic of a destructor, when all have been dropped.
pub(crate) fn drop_values(values: Vec<HostValue>) {
    let mut first = None;
    for value in values {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
            first.get_or_insert(payload);
        }
    }
    if let Some(payload) = first {
        resume_unwind(payload);
    }
}
