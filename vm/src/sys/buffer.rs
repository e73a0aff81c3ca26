//! Memory for bytes that are written once, in large pages where this saves time, or part by part when they are first used.

use super::mapping::{LARGE_PAGE, Mapping, prefer_large_pages};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bytes, which begin where a large page can.
#[derive(Debug)]
pub(crate) struct Buffer {
    mapping: Mapping,
    /// Their place in the mapping.
    range: Range<usize>,
}

impl Buffer {
    /// Makes `len` zeros, of which these places are about to be written. What is outside is ignored.
    ///
    /// # Errors
    /// The system has no memory or address space left.
    pub fn zeroed(len: usize, places: &[Range<usize>]) -> io::Result<Buffer> {
        let whole = len.checked_next_multiple_of(LARGE_PAGE).and_then(|len| len.checked_add(LARGE_PAGE));
        let mapping = Mapping::zeroed(whole.ok_or(io::ErrorKind::OutOfMemory)?)?;
        let start = mapping.as_mut_ptr().addr().wrapping_neg() % LARGE_PAGE;
        for large in large_pages(len, places) {
            prefer_large_pages(&mapping, start + large.start..start + large.end);
        }
        Ok(Buffer { mapping, range: start..start + len })
    }

    /// Returns the bytes, to write them.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the range is within the mapping, which is readable, writable, initialised and this buffer's alone.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.as_mut_ptr().add(self.range.start), self.range.len()) }
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: as in `bytes_mut`, and a writer has the buffer exclusively.
        unsafe { std::slice::from_raw_parts(self.mapping.as_mut_ptr().add(self.range.start), self.range.len()) }
    }
}

/// Bytes that are written part by part, while those that were written are read. All others are zeros.
#[derive(Debug)]
pub(crate) struct PartialBuffer {
    mapping: Mapping,
    len: usize,
    /// Ascending and disjoint, with whether each was written.
    parts: Box<[(Range<usize>, AtomicBool)]>,
    /// Held while a part is written.
    writing: Mutex<()>,
    /// A part that was reached before: the next bytes are often in the same one.
    last: AtomicUsize,
}

impl PartialBuffer {
    /// Makes `len` zeros, of which these parts may be written; `len` is not 0. `None` if the parts do not ascend, or are not within.
    ///
    /// # Errors
    /// The system has no memory or address space left.
    pub fn zeroed(len: usize, parts: impl IntoIterator<Item = Range<usize>>) -> io::Result<Option<PartialBuffer>> {
        let parts: Box<[_]> = parts.into_iter().map(|part| (part, AtomicBool::new(false))).collect();
        let ascend =
            parts.is_sorted_by(|(a, _), (b, _)| a.end <= b.start) && parts.iter().all(|(part, _)| part.start <= part.end);
        if !ascend || parts.last().is_some_and(|(last, _)| last.end > len) {
            return Ok(None);
        }
        let (writing, last) = (Mutex::new(()), AtomicUsize::new(0));
        Ok(Some(PartialBuffer { mapping: Mapping::zeroed(len)?, len, parts, writing, last }))
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes that the places of the parts take.
    pub fn size(&self) -> usize {
        size_of_val(&*self.parts)
    }

    /// Returns the address of the first byte.
    pub fn as_ptr(&self) -> *const u8 {
        self.mapping.as_mut_ptr()
    }

    /// Returns the parts that these bytes reach, by number.
    pub fn reached(&self, range: &Range<usize>) -> Range<usize> {
        let last = self.last.load(Ordering::Relaxed);
        if self.parts.get(last).is_some_and(|(part, _)| part.start <= range.start && range.end <= part.end) {
            return last..last + 1;
        }
        let first = self.parts.partition_point(|(part, _)| part.end <= range.start);
        self.last.store(first, Ordering::Relaxed);
        first..first.max(self.parts.partition_point(|(part, _)| part.start < range.end))
    }

    /// Returns the place of a part, and whether it was written.
    pub fn part(&self, part: usize) -> (Range<usize>, bool) {
        let (range, written) = &self.parts[part];
        (range.clone(), written.load(Ordering::Acquire))
    }

    /// Returns bytes, which are within the buffer. `write` writes each part of them, of which it gets the number, unless it was written.
    ///
    /// # Errors
    /// Those of `write`, after which the part is not written.
    pub fn get<E>(&self, range: Range<usize>, mut write: impl FnMut(usize, &mut [u8]) -> Result<(), E>) -> Result<&[u8], E> {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {} bytes", self.len);
        for number in self.reached(&range) {
            let (part, written) = &self.parts[number];
            if written.load(Ordering::Acquire) {
                continue;
            }
            let _guard = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
            if !written.load(Ordering::Relaxed) {
                // SAFETY: the part is within the mapping. No reference to it exists: `get` returns one only after the part was written, and
                // this thread holds the lock for writing.
                let bytes = unsafe { std::slice::from_raw_parts_mut(self.mapping.as_mut_ptr().add(part.start), part.len()) };
                write(number, bytes)?;
                written.store(true, Ordering::Release);
            }
        }
        // SAFETY: the range is within the mapping. All parts that it reaches were written, and are never written again. Bytes
        // outside the parts are never written.
        Ok(unsafe { std::slice::from_raw_parts(self.as_ptr().add(range.start), range.len()) })
    }
}

/// Returns the large pages of `len` bytes that pay, joined: writing a quarter of one takes as long in small pages.
fn large_pages(len: usize, places: &[Range<usize>]) -> Vec<Range<usize>> {
    const ENOUGH: usize = LARGE_PAGE / 4;
    let mut written = vec![0; len.div_ceil(LARGE_PAGE)];
    for Range { start, end } in places {
        for (page, written) in written.iter_mut().enumerate().take(end.div_ceil(LARGE_PAGE)).skip(start / LARGE_PAGE) {
            *written += end.min(&((page + 1) * LARGE_PAGE)) - start.max(&(page * LARGE_PAGE));
        }
    }
    let mut pages: Vec<Range<usize>> = Vec::new();
    for (page, _) in written.iter().enumerate().filter(|(_, written)| **written >= ENOUGH) {
        match pages.last_mut() {
            Some(last) if last.end == page * LARGE_PAGE => last.end += LARGE_PAGE,
            _ => pages.push(page * LARGE_PAGE..(page + 1) * LARGE_PAGE),
        }
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_pages_are_those_that_are_mostly_written() {
        const ALL: usize = LARGE_PAGE;
        let pages = |len, places: &[(usize, usize)]| -> Vec<(usize, usize)> {
            let places: Vec<_> = places.iter().map(|&(start, end)| start..end).collect();
            large_pages(len, &places).into_iter().map(|page| (page.start, page.end)).collect()
        };
        assert_eq!(pages(0, &[]), []);
        assert_eq!(pages(100, &[(0, 100)]), [], "little");
        assert_eq!(pages(ALL / 4, &[(0, ALL / 4)]), [(0, ALL)], "a quarter");
        assert_eq!(pages(9 * ALL, &[(5, 3 * ALL + 7), (6 * ALL, 7 * ALL)]), [(0, 3 * ALL), (6 * ALL, 7 * ALL)]);
        assert_eq!(pages(2 * ALL, &[(0, ALL / 8), (ALL / 2, ALL / 2 + ALL / 8)]), [(0, ALL)], "two eighths");
        assert_eq!(pages(ALL, &[(ALL / 2, 3 * ALL)]), [(0, ALL)], "what is outside");
    }

    #[test]
    fn each_part_is_written_once_when_it_is_first_used() {
        let buffer = PartialBuffer::zeroed(100, [3..10, 10..20, 40..50]).unwrap().unwrap();
        let written = Mutex::new(Vec::new());
        let get = |range| {
            let got = buffer.get(range, |part, bytes| {
                written.lock().unwrap().push(part);
                bytes.fill(part as u8 + 1);
                Ok::<(), ()>(())
            });
            got.unwrap()
        };
        assert_eq!(get(0..3), [0; 3]);
        assert_eq!(get(20..40), [0; 20]);
        assert!(written.lock().unwrap().is_empty());
        assert_eq!(get(9..11), [1, 2]);
        assert_eq!(buffer.get(49..51, |part, _| Err(part)), Err(2));
        assert_eq!(get(49..51), [3, 0], "written after an error");
        std::thread::scope(|scope| _ = [(); 4].map(|()| scope.spawn(|| assert_eq!(get(0..100)[..4], [0, 0, 0, 1]))));
        assert_eq!(*written.lock().unwrap(), [0, 1, 2]);
        assert_eq!((buffer.part(1), buffer.reached(&(19..41)), buffer.reached(&(60..99))), ((10..20, true), 1..3, 3..3));
        for wrong in [[3..5, 4..6], [9..10, 90..101]] {
            assert!(PartialBuffer::zeroed(100, wrong).unwrap().is_none());
        }
    }

    #[test]
    fn bytes_are_zeros_and_can_be_written() {
        for len in [1, 4096, 3 * LARGE_PAGE - 5] {
            let mut buffer = Buffer::zeroed(len, std::slice::from_ref(&(0..len))).unwrap();
            assert_eq!(buffer.as_ref().as_ptr().addr() % LARGE_PAGE, 0);
            assert!(buffer.as_ref().len() == len && buffer.as_ref().iter().all(|byte| *byte == 0));
            buffer.bytes_mut()[len - 1] = 7;
            assert_eq!(buffer.as_ref()[len - 1], 7);
        }
    }
}
