//! Code memory: one reservation per engine, W^X by dual mapping.
//!
//! Shared anonymous memory is mapped twice. The executable view is `cells | counters | code`: cells and counters are readable and
//! writable, code is readable and executable, with the cells of host functions, which do not change. Code is written through a second view, which is readable and writable. So no page
//! is writable and executable, and publishing a function changes no permissions while other threads run in the arena. All of the
//! executable view is within reach of a 32-bit displacement. Pages are committed when they are first written.
//!
//! Counters have [`STRIPES`] places each, at the same offset in as many stripes: see [`weir_contract`]. The first stripe is in the view;
//! each other one is a mapping of its own, made when a store first uses it.
//!
//! Code is allocated in units of [`UNIT`] bytes. A table with one word per unit holds the tag of the code that was
//! published there, and one with a bit per unit is set where code begins: throws and walks over the stack look up code by its
//! addresses. Signal handlers read the tables, so they are plain arrays of atomics.
//!
//! The memory is anonymous where possible, and not a memfd, because `perf` looks up names of compiled code only where
//! memory has no file.
//!
//! Much code that is installed at once may be in a [`window`] of private memory instead.
//!
//! Shared memory would be shared with a forked child. The views are therefore excluded from children, which are refused (`sys::fork`); the frames
//! of a guest to which a host function would return there do not exist.

pub(super) mod window;

use crate::sys::barrier;
use crate::sys::lock::{Guard, Lock, Rank};
use crate::sys::mapping::{self, Access, Mapping};
use crate::sys::memory_file::{MemoryFile, Purpose};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use weir_bytecode::account::ModuleMemoryExceeded;
use weir_contract::{EntryCell, STRIPES};

/// Bytes of cells: two million functions.
const CELLS_LEN: usize = 16 << 20;
/// Bytes of a stripe of the counters of baseline code: those of six million branches.
const STRIPE_LEN: usize = 48 << 20;
/// Bytes of the executable view before the code.
const DATA_LEN: usize = CELLS_LEN + STRIPE_LEN;
/// Bytes of code.
pub(super) const CODE_LEN: usize = 240 << 20;
/// Granularity and alignment of allocations of code and counters: a cache line.
const UNIT: usize = 64;
/// Fills allocated but unused bytes: a jump to them faults.
const INT3: u8 = 0xcc;

/// The reason why code could not be placed.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// The system denies executable memory, or any memory.
    #[error("the system refuses executable memory: {0}")]
    Refused(io::Error),
    /// The engine's budget is used up: there is no place for this many bytes.
    #[error("the engine's code memory is full")]
    Full(usize),
    /// The engine's modules have as many functions as there are cells and counters for.
    #[error("the engine has no place for the cells of more functions")]
    Cells,
    /// The tables of the code would take more memory than is allowed.
    #[error("{0}")]
    Memory(#[from] ModuleMemoryExceeded),
    /// The module's functions have too many different signatures.
    #[error("its functions have signatures of too many shapes")]
    Shapes,
}

/// An engine's code memory.
#[derive(Debug)]
pub(super) struct CodeArena {
    /// `cells | counters | code`
    view: Mapping,
    /// The code, writable.
    writable: Mapping,
    /// One [`AtomicUsize`] per unit of code: the tag of the region that begins there, or 0.
    tags: Mapping,
    /// One bit per unit of code, in [`AtomicU64`]s: whether a region begins there.
    starts: Mapping,
    /// The stripes of counters but the first. They are not there until a store needs them.
    stripes: [OnceLock<Mapping>; STRIPES - 1],
    free: Lock<Free>,
    /// How often code has been freed.
    freed: AtomicUsize,
    /// The bytes written since the pages of the writable view were forgotten.
    written: AtomicUsize,
}

/// Maps `cells | counters | code`, and the code a second time. Both views are readable and writable, and excluded from forked
/// children.
fn map_twice() -> io::Result<(Mapping, Mapping)> {
    // Valgrind cannot make a second view of anonymous memory.
    let views = anonymous_twice().or_else(|_| memory_file_twice())?;
    views.0.keep_from_forks()?;
    views.1.keep_from_forks()?;
    Ok(views)
}

fn anonymous_twice() -> io::Result<(Mapping, Mapping)> {
    let view = Mapping::shared(DATA_LEN + CODE_LEN)?;
    let writable = view.alias(DATA_LEN..DATA_LEN + CODE_LEN)?;
    Ok((view, writable))
}

fn memory_file_twice() -> io::Result<(Mapping, Mapping)> {
    let file = MemoryFile::new("weir-code", Purpose::Code)?;
    file.set_len((DATA_LEN + CODE_LEN) as u64)?;
    let view = Mapping::shared_file(&file, 0, DATA_LEN + CODE_LEN)?;
    Ok((view, Mapping::shared_file(&file, DATA_LEN as u64, CODE_LEN)?))
}

/// Maps a stripe. Like the code it is shared memory, which Linux does not put on huge pages by default: a store touches little of it.
fn map_stripe() -> io::Result<Mapping> {
    let stripe = Mapping::shared(STRIPE_LEN)?;
    stripe.keep_from_forks()?;
    Ok(stripe)
}

/// Windows together have at most this part of the code memory.
const WINDOWS_SHARE: usize = 4;

/// A [`Window`](window::Window), open or not.
#[derive(Debug)]
struct WindowState {
    /// None if the system did not map it: then it is not used any more.
    units: Range<usize>,
    /// The first unit that has not been written since it was opened.
    next: usize,
    /// The units of published code.
    live: usize,
    /// Whether one thread has it, to write to it or to empty it.
    is_open: bool,
    /// Whether code was in its units before.
    used_before: bool,
}

#[derive(Debug)]
struct Free {
    /// In units.
    code: FreeList,
    /// The first unit of the part that has never been written, windows excepted.
    untouched: usize,
    /// The units that windows may still get.
    left_for_windows: usize,
    windows: Vec<WindowState>,
    /// In cells.
    cells: FreeList,
    /// In units.
    counters: FreeList,
    /// The first unit of counters of the part that has never been allocated.
    uncounted: usize,
}

impl CodeArena {
    /// Reserves address space, of which `max_code` bytes of code may be used. Commits no memory.
    ///
    /// # Errors
    /// [`CodeError::Refused`].
    pub fn new(max_code: usize) -> Result<CodeArena, CodeError> {
        CodeArena::map(max_code.min(CODE_LEN)).map_err(CodeError::Refused)
    }

    fn map(max_code: usize) -> io::Result<CodeArena> {
        let (view, writable) = map_twice()?;
        // SAFETY: nothing points into it yet.
        unsafe { view.protect(DATA_LEN..DATA_LEN + CODE_LEN, Access::ReadExecute)? };
        let tags = Mapping::zeroed(CODE_LEN / UNIT * size_of::<AtomicUsize>())?;
        let starts = Mapping::zeroed((CODE_LEN / UNIT).div_ceil(8))?;
        let free = Free {
            code: FreeList::new(max_code / UNIT),
            untouched: 0,
            left_for_windows: max_code / UNIT / WINDOWS_SHARE,
            windows: Vec::new(),
            cells: FreeList::new(CELLS_LEN / size_of::<EntryCell>()),
            counters: FreeList::new(STRIPE_LEN / UNIT),
            uncounted: 0,
        };
        let stripes = [const { OnceLock::new() }; STRIPES - 1];
        Ok(CodeArena {
            view,
            writable,
            tags,
            starts,
            stripes,
            free: Lock::new(Rank::CodeMemory, free),
            freed: AtomicUsize::new(0),
            written: AtomicUsize::new(0),
        })
    }

    /// Returns the address of the first byte of code.
    pub fn base(&self) -> usize {
        self.view.as_mut_ptr() as usize + DATA_LEN
    }

    /// Allocates `count` adjacent cells.
    ///
    /// # Errors
    /// [`CodeError::Cells`].
    pub fn alloc_cells(&self, count: usize) -> Result<NonNull<EntryCell>, CodeError> {
        let index = self.lock().cells.alloc(count.max(1)).ok_or(CodeError::Cells)?;
        // SAFETY: the cell lies within the view, which is not at address 0.
        Ok(unsafe { NonNull::new_unchecked(self.view.as_mut_ptr().cast::<EntryCell>().add(index)) })
    }

    /// Frees cells.
    ///
    /// # Safety
    /// They came from `alloc_cells(count)`, and no code refers to them any more.
    pub unsafe fn free_cells(&self, cells: NonNull<EntryCell>, count: usize) {
        let index = (cells.as_ptr() as usize - self.view.as_mut_ptr() as usize) / size_of::<EntryCell>();
        self.lock().cells.free(index, count.max(1));
    }

    /// Allocates this many counters, which are 0 in every stripe; `None` if there is no room.
    pub fn alloc_counters(self: &Arc<Self>, count: usize) -> Option<CounterMemory> {
        let (unit, used_before) = {
            let mut free = self.lock();
            let units = counter_units(count);
            let unit = free.counters.alloc(units)?;
            let used_before = unit < free.uncounted;
            free.uncounted = free.uncounted.max(unit + units);
            (unit, used_before)
        };
        let memory = CounterMemory { arena: self.clone(), unit, count };
        if used_before {
            // A stripe that is mapped meanwhile is 0.
            memory.stripes().flatten().for_each(|counter| counter.store(0, Ordering::Relaxed));
        }
        Some(memory)
    }

    /// Returns the first byte of a stripe, or of the first one if the system refuses to map this one.
    pub fn stripe(&self, stripe: usize) -> *mut u8 {
        if let Some(slot) = stripe.checked_sub(1).map(|i| &self.stripes[i])
            && slot.get().is_none()
            && let Ok(mapping) = map_stripe()
        {
            // Another thread may have been faster.
            let _ = slot.set(mapping);
        }
        self.mapped_stripe(stripe).unwrap_or_else(|| self.first_stripe())
    }

    /// Returns the first byte of a stripe that is mapped.
    fn mapped_stripe(&self, stripe: usize) -> Option<*mut u8> {
        let Some(i) = stripe.checked_sub(1) else { return Some(self.first_stripe()) };
        Some(self.stripes[i].get()?.as_mut_ptr())
    }

    /// Returns the first byte of the first stripe, which code reaches.
    pub fn first_stripe(&self) -> *mut u8 {
        // SAFETY: within the view.
        unsafe { self.view.as_mut_ptr().add(CELLS_LEN) }
    }

    /// Allocates `len` bytes of code and calls `write` with them and the address at which they will run. Then tags
    /// them: [`CodeArena::region_at`] finds `tag`, which is not 0, for every address in them. The code is 64-byte
    /// aligned.
    ///
    /// # Errors
    /// [`CodeError::Full`].
    pub fn publish(&self, len: usize, tag: usize, write: impl Fn(&mut [u8], usize)) -> Result<NonNull<u8>, CodeError> {
        Ok(self.publish_all(&[(len, tag)], |_, bytes, address| write(bytes, address))?[0])
    }

    /// The same for several regions, each with its length and tag, which are adjacent. `write` gets the index of the region, too.
    pub fn publish_all(
        &self,
        regions: &[(usize, usize)],
        write: impl FnMut(usize, &mut [u8], usize),
    ) -> Result<Vec<NonNull<u8>>, CodeError> {
        let all = regions.iter().map(|&(len, _)| units_of(len)).sum();
        let (first, used_before) = {
            let mut free = self.lock();
            let unit = free.code.alloc(all).ok_or(CodeError::Full(all * UNIT))?;
            let used_before = unit < free.untouched;
            free.untouched = free.untouched.max(unit + all);
            (unit, used_before)
        };
        // SAFETY: the units are within the writable view and belong to this call alone; nothing runs in them yet.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.writable.as_mut_ptr().add(first * UNIT), all * UNIT) };
        mapping::populate(bytes, 0..bytes.len());
        let units = self.write_all(regions, first, bytes, write);
        self.count_written(all * UNIT);
        if used_before {
            // No thread that learns the address may execute bytes that it fetched earlier. Systems without this barrier
            // rely on the processor's own detection of modified code.
            barrier::all_threads();
        }
        Ok(self.tag_all(regions, &units))
    }

    /// Writes regions to `bytes`, which are those from unit `first` on, and returns the first unit of each.
    fn write_all(
        &self,
        regions: &[(usize, usize)],
        first: usize,
        bytes: &mut [u8],
        mut write: impl FnMut(usize, &mut [u8], usize),
    ) -> Vec<usize> {
        let (mut rest, mut unit, mut units) = (bytes, first, Vec::with_capacity(regions.len()));
        for (index, &(len, tag)) in regions.iter().enumerate() {
            debug_assert!(tag != 0);
            let (bytes, after) = rest.split_at_mut(units_of(len) * UNIT);
            bytes[len..].fill(INT3);
            write(index, &mut bytes[..len], self.base() + unit * UNIT);
            units.push(unit);
            (rest, unit) = (after, unit + units_of(len));
        }
        rest.fill(INT3);
        units
    }

    /// Tags regions that are written, by their first units, and returns their addresses.
    fn tag_all(&self, regions: &[(usize, usize)], units: &[usize]) -> Vec<NonNull<u8>> {
        let tag = |(&unit, &(_, tag)): (&usize, &(usize, usize))| {
            // Orders the code before the stores that publish its address.
            self.tag(unit).store(tag, Ordering::Release);
            let (word, bit) = self.start(unit);
            word.fetch_or(bit, Ordering::Release);
            // SAFETY: within the view, which is not at address 0.
            unsafe { NonNull::new_unchecked(self.view.as_mut_ptr().add(DATA_LEN + unit * UNIT)) }
        };
        units.iter().zip(regions).map(tag).collect()
    }

    /// Frees a published region.
    ///
    /// # Safety
    /// It came from `publish(len, …)`; no thread runs in it, will return to it or can still reach it.
    pub unsafe fn free(&self, code: NonNull<u8>, len: usize) {
        let unit = (code.as_ptr() as usize - self.base()) / UNIT;
        // Before anything else can be placed here.
        self.freed.fetch_add(1, Ordering::Release);
        let (word, bit) = self.start(unit);
        word.fetch_and(!bit, Ordering::Release);
        self.tag(unit).store(0, Ordering::Release);
        if self.free_in_window(unit, units_of(len)) {
            return;
        }
        // SAFETY: the region is within the writable view, and only this call uses it. If a thread ran in it
        // nevertheless, the breakpoints would stop it at once.
        unsafe { self.writable.as_mut_ptr().add(unit * UNIT).write_bytes(INT3, len) };
        self.count_written(len);
        self.lock().code.free(unit, units_of(len));
    }

    /// Counts bytes written through the writable view, and after each megabyte forgets its pages. Those that stay in both views count twice
    /// as resident memory of the process, although they are the same. What nothing executes does not count any more.
    fn count_written(&self, bytes: usize) {
        const MOST: usize = 1 << 20;
        if self.written.fetch_add(bytes, Ordering::Relaxed) + bytes >= MOST {
            self.written.store(0, Ordering::Relaxed);
            mapping::forget_shared_pages(&self.writable);
        }
    }

    /// Returns whether freeing the code at this address makes no room for other code.
    pub fn keeps_room_of(&self, code: *const u8) -> bool {
        self.is_in_window((code.addr() - self.base()) / UNIT)
    }

    /// Returns how often code has been freed. While this is the same, an address of code belongs to the same code.
    pub fn freed(&self) -> usize {
        self.freed.load(Ordering::Acquire)
    }

    /// Returns start and tag of the last region that begins at or below `pc`: the region of `pc` if that is in use.
    /// Safe to call from a signal handler. Costs a load per 64 units scanned.
    pub fn region_at(&self, pc: usize) -> Option<(usize, usize)> {
        self.regions().at(pc)
    }

    /// Returns the tables by which regions are found.
    #[inline]
    pub fn regions(&self) -> Regions<'_> {
        let (tags, starts) = (self.tags.as_mut_ptr().cast(), self.starts.as_mut_ptr().cast());
        // SAFETY: the tables have a word and a bit for every unit, zeroed by the system, and are only used as atomics.
        unsafe {
            let tags: *const [AtomicUsize; CODE_LEN / UNIT] = tags;
            let starts: *const [AtomicU64; CODE_LEN / UNIT / 64] = starts;
            Regions { base: self.base(), tags: &*tags, starts: &*starts }
        }
    }

    fn tag(&self, unit: usize) -> &AtomicUsize {
        &self.regions().tags[unit]
    }

    /// Returns the word with the bit of a unit, and that bit.
    fn start(&self, unit: usize) -> (&AtomicU64, u64) {
        (&self.regions().starts[unit / 64], 1 << (unit % 64))
    }

    fn lock(&self) -> Guard<'_, Free> {
        self.free.lock()
    }
}

/// Returns the units that this many bytes take.
fn units_of(len: usize) -> usize {
    len.div_ceil(UNIT).max(1)
}

/// Returns where units are in the view.
fn place_of(units: &Range<usize>) -> Range<usize> {
    DATA_LEN + units.start * UNIT..DATA_LEN + units.end * UNIT
}

/// The tables by which regions of code are found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Regions<'a> {
    /// The address of the first byte of code.
    base: usize,
    tags: &'a [AtomicUsize; CODE_LEN / UNIT],
    starts: &'a [AtomicU64; CODE_LEN / UNIT / 64],
}

const _: () = assert!((CODE_LEN / UNIT).is_multiple_of(64));

impl<'a> Regions<'a> {
    /// As [`CodeArena::region_at`].
    #[inline(always)]
    pub fn at(&self, pc: usize) -> Option<(usize, usize)> {
        let offset = pc.wrapping_sub(self.base);
        if offset >= CODE_LEN {
            return None;
        }
        let mut unit = offset / UNIT;
        let mut starts = self.starts[unit / 64].load(Ordering::Acquire) << (63 - unit % 64);
        while starts == 0 {
            unit = (unit / 64 * 64).checked_sub(1)?;
            starts = self.starts[unit / 64].load(Ordering::Acquire);
        }
        unit -= starts.leading_zeros() as usize;
        // Only a region that is not that of `pc` may be freed meanwhile.
        let tag = self.tags[unit].load(Ordering::Acquire);
        (tag != 0).then_some((self.base + unit * UNIT, tag))
    }
}

/// Counters in all stripes, freed when they are dropped. By then no code may refer to them.
#[derive(Debug)]
pub(crate) struct CounterMemory {
    arena: Arc<CodeArena>,
    /// Where they begin in a stripe.
    unit: usize,
    count: usize,
}

/// Returns the units that this many counters take.
fn counter_units(count: usize) -> usize {
    (count * size_of::<AtomicU32>()).div_ceil(UNIT).max(1)
}

impl CounterMemory {
    /// Returns their places in a stripe, if that is mapped, as the first one always is.
    pub fn stripe(&self, stripe: usize) -> Option<&[AtomicU32]> {
        let stripe = self.arena.mapped_stripe(stripe)?;
        // SAFETY: the units are within the stripe, aligned, and this value's until it is dropped; they are only used as atomics.
        Some(unsafe {
            let first = stripe.add(self.unit * UNIT).cast::<AtomicU32>();
            std::slice::from_raw_parts(first, self.count)
        })
    }

    /// Returns their places in the stripes that are mapped.
    fn stripes(&self) -> impl Iterator<Item = &[AtomicU32]> {
        (0..STRIPES).filter_map(|stripe| self.stripe(stripe))
    }

    /// Returns the bytes before them in a stripe.
    pub fn offset(&self) -> u32 {
        (self.unit * UNIT) as u32
    }
}

impl Drop for CounterMemory {
    fn drop(&mut self) {
        self.arena.lock().counters.free(self.unit, counter_units(self.count));
    }
}

/// Free ranges, ordered by start and never adjacent. First fit, so that free space gathers at the end.
#[derive(Debug)]
struct FreeList(BTreeMap<usize, usize>);

impl FreeList {
    fn new(len: usize) -> FreeList {
        FreeList(BTreeMap::from([(0, len)]))
    }

    fn alloc(&mut self, count: usize) -> Option<usize> {
        let (start, len) = self.0.iter().map(|(&start, &len)| (start, len)).find(|&(_, len)| len >= count)?;
        self.0.remove(&start);
        if len > count {
            self.0.insert(start + count, len - count);
        }
        Some(start)
    }

    /// Allocates the last range of this length that begins `rest` after a multiple of `align`.
    fn alloc_last(&mut self, count: usize, align: usize, rest: usize) -> Option<usize> {
        let (start, len, first) = self.0.iter().rev().find_map(|(&start, &len)| {
            let last = (start + len).checked_sub(count)?;
            let first = last.checked_sub((last + align - rest) % align)?;
            (first >= start).then_some((start, len, first))
        })?;
        self.0.remove(&start);
        let parts = [(start, first - start), (first + count, start + len - first - count)];
        self.0.extend(parts.into_iter().filter(|&(_, len)| len > 0));
        Some(first)
    }

    fn free(&mut self, mut start: usize, mut count: usize) {
        if let Some(after) = self.0.remove(&(start + count)) {
            count += after;
        }
        if let Some((&before, &len)) = self.0.range(..start).next_back()
            && before + len == start
        {
            (start, count) = (before, len + count);
        }
        self.0.insert(start, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ranges_merge_and_are_reused() {
        let mut list = FreeList::new(100);
        let [a, b, c] = [10, 20, 30].map(|n| list.alloc(n).unwrap());
        assert_eq!((a, b, c), (0, 10, 30));
        list.free(a, 10);
        list.free(c, 30);
        assert_eq!(list.0, BTreeMap::from([(0, 10), (30, 70)]));
        assert_eq!(list.alloc(11), Some(30), "too big for the hole");
        assert_eq!(list.alloc(10), Some(0), "the hole is used first");
        list.free(0, 10);
        list.free(30, 11);
        list.free(b, 20);
        assert_eq!(list.0, BTreeMap::from([(0, 100)]));
        assert_eq!(list.alloc(101), None);
        assert_eq!(
            [list.alloc_last(20, 16, 3), list.alloc_last(20, 16, 3), list.alloc_last(30, 16, 3)],
            [Some(67), Some(35), Some(3)]
        );
        assert_eq!(list.0, BTreeMap::from([(0, 3), (33, 2), (55, 12), (87, 13)]));
        assert_eq!([list.alloc_last(13, 16, 3), list.alloc_last(2, 1, 0)], [None, Some(98)]);
    }

    #[test]
    fn regions_are_found_by_address_and_cells_are_in_reach() {
        let arena = CodeArena::new(usize::MAX).unwrap();
        let code = |len, tag| arena.publish(len, tag, |bytes, _| bytes.fill(0x90)).unwrap();
        let (a, b) = (code(100, 7), code(1, 8));
        let [a_pc, b_pc] = [a, b].map(|code| code.as_ptr() as usize);
        assert_eq!(a_pc % UNIT, 0);
        assert_eq!(arena.region_at(a_pc + 99), Some((a_pc, 7)));
        assert_eq!(arena.region_at(b_pc), Some((b_pc, 8)));
        assert_eq!(arena.region_at(arena.base() - 1), None);
        assert_eq!(arena.region_at(arena.base() + CODE_LEN), None);
        // SAFETY: published, readable, and never run.
        assert_eq!(unsafe { [*a.as_ptr(), *a.as_ptr().add(100)] }, [0x90, INT3]);

        // SAFETY: nothing runs in either.
        unsafe { arena.free(a, 100) };
        assert_eq!(arena.region_at(a_pc), None);
        assert_eq!(code(128, 9), a, "freed units are used again");

        let cells = arena.alloc_cells(3).unwrap();
        // SAFETY: three cells from there are ours.
        unsafe { cells.add(2).as_ref() }.store(a.as_ptr(), Ordering::Relaxed);
        let last = arena.base() + CODE_LEN;
        assert!(i32::try_from(last - cells.as_ptr() as usize).is_ok());
        // SAFETY: nothing refers to them.
        unsafe { arena.free_cells(cells, 3) };
        assert_eq!(arena.alloc_cells(1).unwrap(), cells);
    }

    #[test]
    fn counters_are_zero_in_every_stripe_when_they_are_used_again() {
        let arena = Arc::new(CodeArena::new(usize::MAX).unwrap());
        let counters = arena.alloc_counters(17).unwrap();
        assert_eq!((counters.stripe(0).map(<[_]>::len), counters.stripe(3).is_none()), (Some(17), true));
        let third = arena.stripe(3);
        assert!(arena.stripe(3) == third && arena.stripe(0) != third);
        assert!(i32::try_from(arena.base() + CODE_LEN - arena.first_stripe().addr()).is_ok());
        let first = counters.offset() as usize;
        for stripe in counters.stripes() {
            stripe[16].store(5, Ordering::Relaxed);
        }
        // SAFETY: within the stripe, which is only used as atomics.
        let last = unsafe { &*third.add(first).cast::<AtomicU32>().add(16) };
        assert_eq!(last.load(Ordering::Relaxed), 5);
        let others = arena.alloc_counters(1).unwrap();
        assert_eq!(others.offset() as usize - first, 2 * UNIT);
        drop(counters);
        let again = arena.alloc_counters(17).unwrap();
        assert_eq!((again.offset() as usize, last.load(Ordering::Relaxed)), (first, 0));
        assert!(again.stripes().count() == 2 && again.stripes().flatten().all(|counter| counter.load(Ordering::Relaxed) == 0));
        assert!(arena.alloc_counters(STRIPE_LEN / size_of::<AtomicU32>()).is_none());
    }

    #[test]
    fn exhaustion_is_an_error() {
        let arena = CodeArena::new(usize::MAX).unwrap();
        assert!(matches!(arena.publish(CODE_LEN + 1, 1, |_, _| ()), Err(CodeError::Full(_))));
        assert!(matches!(arena.alloc_cells(CELLS_LEN), Err(CodeError::Cells)));
    }
}
