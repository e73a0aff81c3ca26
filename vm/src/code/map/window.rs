//! Windows: parts of the code memory that are private and get large pages, for much code that is installed at once.
//!
//! A page of shared memory takes the system several times as long as one that comes with a large page of private memory, and is touched in both
//! views. A window replaces units of the executable view. It is readable and writable first. Code is written there; then all of its pages become
//! readable and executable at once, and only then is the code published. So no page is both writable and executable, and published pages are never
//! written. Freed parts of a window are not used again until all of its code is freed. Then the window returns its memory to the system and can be
//! opened again.
//!
//! Windows are allocated from the end of the part of the code memory that has never been written, and keep their units.

use super::{CodeArena, CodeError, Free, INT3, UNIT, WindowState, place_of, units_of};
use crate::sys::barrier;
use crate::sys::mapping::{self, Access, LARGE_PAGE, Mapping, page_size};
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

/// A window that is open. Others publish elsewhere.
#[derive(Debug)]
pub(crate) struct Window {
    arena: Arc<CodeArena>,
    /// Its number.
    index: usize,
}

impl Window {
    /// Opens a window for about `len` bytes, if enough of its large pages would be used, and if there is room.
    pub(super) fn open(arena: &Arc<CodeArena>, len: usize) -> Option<Window> {
        // A large page pays if a quarter of it is used.
        let count = (len + LARGE_PAGE / 4 * 3) / LARGE_PAGE * (LARGE_PAGE / UNIT);
        if count == 0 {
            return None;
        }
        let (index, is_new) = {
            let mut free = arena.lock();
            let fits = |window: &WindowState| !window.is_open && window.live == 0 && window.units.len() >= count;
            match free.windows.iter().position(fits) {
                Some(index) => {
                    let window = &mut free.windows[index];
                    (window.is_open, window.used_before, window.next) = (true, true, window.units.start);
                    (index, false)
                }
                None => (free.add_window(count, arena.base())?, true),
            }
        };
        let window = Window { arena: arena.clone(), index };
        match window.prepare(is_new, count) {
            Ok(()) => Some(window),
            Err(_) => {
                // What the system did not map is not ours.
                let state = &mut arena.lock().windows[index];
                state.units = if is_new { 0..0 } else { state.units.clone() };
                None
            }
        }
    }

    fn units(&self) -> Range<usize> {
        self.arena.lock().windows[self.index].units.clone()
    }

    /// Makes the memory writable. This many units are about to be written.
    fn prepare(&self, is_new: bool, count: usize) -> io::Result<()> {
        let (view, place) = (&self.arena.view, place_of(&self.units()));
        // SAFETY: the units are this window's, and no code is in them.
        unsafe {
            match is_new {
                true => view.zero(place.clone())?,
                false => view.protect(place.clone(), Access::ReadWrite)?,
            }
        }
        view.keep_from_forks()?;
        // SAFETY: as in `write_all`.
        let bytes = unsafe { std::slice::from_raw_parts_mut(view.as_mut_ptr().add(place.start), place.len()) };
        mapping::populate(bytes, 0..count * UNIT);
        Ok(())
    }

    /// Writes regions as [`CodeArena::publish_all`] does, and elsewhere if the window is full. Nobody may learn their addresses before the window
    /// is sealed.
    ///
    /// # Errors
    /// As there.
    pub fn write_all(
        &mut self,
        regions: &[(usize, usize)],
        write: impl FnMut(usize, &mut [u8], usize),
    ) -> Result<Vec<NonNull<u8>>, CodeError> {
        let arena = &self.arena;
        let all = regions.iter().map(|&(len, _)| units_of(len)).sum::<usize>();
        let first = {
            let window = &mut arena.lock().windows[self.index];
            let first = window.next;
            (all <= window.units.end - first).then(|| {
                (window.next, window.live) = (first + all, window.live + all);
                first
            })
        };
        let Some(first) = first else { return arena.publish_all(regions, write) };
        let place = place_of(&(first..first + all));
        // SAFETY: the units are within the view, readable, writable and initialised. Only this window's owner writes to it, and nothing executes
        // or reads it before the window is sealed.
        let bytes = unsafe { std::slice::from_raw_parts_mut(arena.view.as_mut_ptr().add(place.start), place.len()) };
        let units = arena.write_all(regions, first, bytes, write);
        Ok(arena.tag_all(regions, &units))
    }

    /// Makes the written pages executable and returns the others to the system. The window cannot be written after that.
    ///
    /// # Errors
    /// The system refuses: the code is never executed.
    pub fn seal(&mut self) -> io::Result<()> {
        let (units, next, used_before) = {
            let window = &mut self.arena.lock().windows[self.index];
            (window.units.clone(), std::mem::replace(&mut window.next, window.units.end), window.used_before)
        };
        let end = next.next_multiple_of(page_size() / UNIT);
        let (view, tail) = (&self.arena.view, place_of(&(next..end)));
        // SAFETY: the pages of the window are readable, writable and initialised, and these units are nobody's.
        unsafe { view.as_mut_ptr().add(tail.start).write_bytes(INT3, tail.len()) };
        // SAFETY: nothing writes to the pages from now on, until all of the window is free.
        unsafe { view.protect(place_of(&(units.start..end)), Access::ReadExecute)? };
        empty(view, end..units.end);
        if used_before {
            // As in `CodeArena::publish_all`.
            barrier::all_threads();
        }
        Ok(())
    }

    /// Returns whether the code at this address is in the window.
    pub fn has(&self, code: *const u8) -> bool {
        self.units().contains(&((code.addr() - self.arena.base()) / UNIT))
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.arena.lock().windows[self.index].is_open = false;
        self.arena.tidy(self.index);
    }
}

/// Gives the memory of units without code back to the system. Until the window is opened again, an access to them faults.
fn empty(view: &Mapping, units: Range<usize>) {
    if units.is_empty() {
        return;
    }
    // SAFETY: nothing is there, and only the caller has these units. What fails changes less.
    unsafe {
        let _ = view.protect(place_of(&units), Access::None);
        let _ = view.discard(place_of(&units));
    }
}

impl Free {
    /// Adds a window of `count` units, which is open, to the code memory that begins at `base`. Returns its number.
    fn add_window(&mut self, count: usize, base: usize) -> Option<usize> {
        let left = self.left_for_windows.checked_sub(count)?;
        let rest = base.wrapping_neg() % LARGE_PAGE / UNIT;
        let start = self.code.alloc_last(count, LARGE_PAGE / UNIT, rest)?;
        if start < self.untouched {
            // Shared pages are there.
            self.code.free(start, count);
            return None;
        }
        self.left_for_windows = left;
        self.windows.push(WindowState { units: start..start + count, next: start, live: 0, is_open: true, used_before: false });
        Some(self.windows.len() - 1)
    }

    fn window_of(&self, unit: usize) -> Option<usize> {
        self.windows.iter().position(|window| window.units.contains(&unit))
    }
}

impl CodeArena {
    /// Opens a window for about this many bytes of code, if it pays and there is room.
    pub fn window(self: &Arc<Self>, len: usize) -> Option<Window> {
        Window::open(self, len)
    }

    /// Returns whether a unit is in a window, where freeing code makes no room for other code.
    pub(super) fn is_in_window(&self, unit: usize) -> bool {
        self.lock().window_of(unit).is_some()
    }

    /// Frees published units of a window. Returns whether they are of one.
    pub(super) fn free_in_window(&self, unit: usize, units: usize) -> bool {
        let index = {
            let mut free = self.lock();
            let Some(index) = free.window_of(unit) else { return false };
            free.windows[index].live -= units;
            index
        };
        self.tidy(index);
        true
    }

    /// Empties a window without code that nobody has.
    fn tidy(&self, index: usize) {
        let units = {
            let window = &mut self.lock().windows[index];
            if window.live > 0 || window.is_open {
                return;
            }
            // No thread opens it meanwhile. The system works without the lock.
            window.is_open = true;
            window.units.clone()
        };
        empty(&self.view, units);
        self.lock().windows[index].is_open = false;
    }
}

#[cfg(test)]
mod tests {
    use super::super::WINDOWS_SHARE as SHARE;
    use super::*;

    /// The access that the process has to the page of an address.
    fn access(address: *const u8) -> String {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| {
            let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
            (usize::from_str_radix(start, 16).unwrap()..usize::from_str_radix(end, 16).unwrap()).contains(&address.addr())
        });
        line.unwrap().split(' ').nth(1).unwrap().to_owned()
    }

    #[test]
    fn code_in_a_window_is_found_freed_and_replaced() {
        let arena = Arc::new(CodeArena::new(usize::MAX).unwrap());
        assert!(arena.window(LARGE_PAGE / 4 - 1).is_none(), "too little");
        let mut window = arena.window(LARGE_PAGE / 4).unwrap();
        let mut code = |len: usize, byte: u8| {
            let placed = window.write_all(&[(len, 7), (1, 8)], |_, bytes: &mut [u8], _| bytes.fill(byte)).unwrap();
            assert_eq!(arena.region_at(placed[0].addr().get() + len - 1), Some((placed[0].addr().get(), 7)));
            assert_eq!(arena.region_at(placed[1].addr().get()), Some((placed[1].addr().get(), 8)));
            placed
        };
        let (first, second, full) = (code(100, 0x90), code(5000, 0x91), code(LARGE_PAGE, 0x92));
        assert_eq!(first[0].addr().get() % LARGE_PAGE, 0);
        assert_eq!(second[0].addr().get() - first[0].addr().get(), 3 * UNIT);
        assert!(full[0] < first[0], "what has no room is elsewhere");
        assert_eq!(access(first[0].as_ptr()), "rw-p");
        window.seal().unwrap();
        let ends = [(&first, 100), (&second, 5000), (&full, LARGE_PAGE)].map(|(placed, len)| {
            assert_eq!(access(placed[1].as_ptr()).get(..3), Some("r-x"));
            // SAFETY: published, readable, and never run.
            unsafe { [*placed[0].as_ptr().add(len - 1), *placed[1].as_ptr(), *placed[1].as_ptr().add(1)] }
        });
        assert_eq!(ends, [[0x90, 0x90, INT3], [0x91, 0x91, INT3], [0x92, 0x92, INT3]]);
        assert_eq!(access(first[0].as_ptr().wrapping_add(2 * page_size())), "---p", "the rest is not used");
        assert!(window.has(second[0].as_ptr()) && !window.has(full[0].as_ptr()));
        drop(window);
        let other = arena.window(LARGE_PAGE).unwrap();
        assert_eq!(other.index, 1, "the first one is not empty");
        // SAFETY: nothing runs in any of them.
        unsafe {
            for (code, len) in [(&first, 100), (&second, 5000), (&full, LARGE_PAGE)] {
                arena.free(code[0], len);
                arena.free(code[1], 1);
            }
        }
        assert_eq!((access(first[0].as_ptr()), arena.region_at(first[0].addr().get())), ("---p".into(), None));
        let mut again = arena.window(LARGE_PAGE).unwrap();
        assert_eq!((again.index, arena.lock().windows.len()), (0, 2));
        let placed = again.write_all(&[(64, 9)], |_, bytes, _| bytes.fill(0x93)).unwrap();
        again.seal().unwrap();
        // SAFETY: as above.
        assert_eq!((placed[0], unsafe { [*placed[0].as_ptr(), *placed[0].as_ptr().add(64)] }), (first[0], [0x93, INT3]));
    }

    #[test]
    fn windows_have_a_part_of_the_code_memory() {
        let arena = Arc::new(CodeArena::new(SHARE * 2 * LARGE_PAGE).unwrap());
        let windows: Vec<_> = std::iter::from_fn(|| arena.window(LARGE_PAGE)).collect();
        assert_eq!(windows.len(), 2);
        assert!(arena.publish(LARGE_PAGE * (SHARE * 2 - 3), 1, |_, _| ()).is_ok());
    }
}
