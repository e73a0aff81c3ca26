//! Memory for bytes that are written once, in large pages where this saves time.

use super::mapping::{LARGE_PAGE, Mapping, prefer_large_pages};
use std::io;
use std::ops::Range;

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
