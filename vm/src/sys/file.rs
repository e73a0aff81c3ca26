//! Files that the user names.

use super::calls::Call;
use super::mapping::{Access, Mapping, map_file_over, page_size};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct Writer(fs::File);

impl Writer {
    /// Opens a file for appending; creates it if necessary.
    ///
    /// # Errors
    /// The system's error.
    pub fn append(path: &Path) -> io::Result<Writer> {
        Call::FileAppend.enter()?;
        Ok(Writer(fs::File::options().create(true).append(true).open(path)?))
    }

    /// Creates a file, or truncates an existing one. It can also be read.
    ///
    /// # Errors
    /// The system's error.
    pub fn create(path: &Path) -> io::Result<Writer> {
        Call::FileCreate.enter()?;
        Ok(Writer(fs::File::options().create(true).truncate(true).read(true).write(true).open(path)?))
    }

    /// Writes all bytes.
    ///
    /// # Errors
    /// The system's error; some bytes may have been written.
    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        Call::FileWrite.enter()?;
        self.0.write_all(bytes)
    }

    /// Maps the first `len` bytes, readable and executable.
    ///
    /// # Errors
    /// The system's error.
    pub fn map_executable(&self, len: usize) -> io::Result<Mapping> {
        Call::FileMapExecutable.enter()?;
        Mapping::of_file(&self.0, 0, len, Access::ReadExecute)
    }
}

/// A file that is read part by part.
#[derive(Debug)]
pub(crate) struct Opened {
    file: fs::File,
    len: u64,
    /// See [`Opened::constant`].
    is_constant: bool,
}

impl Opened {
    /// Opens a file.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(path: &Path) -> io::Result<Opened> {
        Call::FileRead.enter()?;
        let file = fs::File::open(path)?;
        let len = file.metadata()?.len();
        Ok(Opened::of(file, len))
    }

    /// A file of `len` bytes.
    pub fn of(file: fs::File, len: u64) -> Opened {
        Opened { file, len, is_constant: false }
    }

    /// Returns the file, whose bytes may now be mapped.
    ///
    /// # Safety
    /// Nobody changes the file or makes it shorter while it or mapped bytes are used.
    pub unsafe fn constant(self) -> Opened {
        Opened { is_constant: true, ..self }
    }

    /// Returns the bytes that the file had when it was opened.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Fills a buffer with the bytes from an offset on.
    ///
    /// # Errors
    /// The system's error; the file has become too short.
    pub fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        Call::FileRead.enter()?;
        self.file.read_exact_at(into, at)
    }

    /// Returns `len` bytes that are zeros but for these ranges of whole pages, each of which is mapped from an offset in the file. The
    /// last one may end with a part of a page. `None` if the file is not [constant](Opened::constant), a range is not within the bytes, the
    /// file has fewer, or both do not begin at pages.
    ///
    /// # Errors
    /// The system has no memory or address space left, or cannot make another mapping.
    pub fn map(&self, len: usize, places: &[(Range<usize>, u64)]) -> io::Result<Option<MappedBytes>> {
        let page = page_size();
        let is_mappable = |(Range { start, end }, at): &(Range<usize>, u64)| {
            let whole = start % page == 0 && at % page as u64 == 0 && (end % page == 0 || *end == len);
            let in_file = at.checked_add((end.saturating_sub(*start)) as u64).is_some_and(|end| end <= self.len);
            whole && in_file && start < end && *end <= len
        };
        if !self.is_constant || len == 0 || !places.iter().all(is_mappable) {
            return Ok(None);
        }
        let mapping = Mapping::zeroed(len)?;
        for (range, at) in places {
            // SAFETY: the range is within the mapping, to which nothing refers yet. The file does not become shorter, as who made it constant
            // promises.
            unsafe { map_file_over(mapping.as_mut_ptr().add(range.start), range.len(), &self.file, *at, Access::Read)? };
        }
        Ok(Some(MappedBytes(mapping)))
    }
}

/// Bytes that are mapped from a file: see [`Opened::map`].
#[derive(Debug)]
pub(crate) struct MappedBytes(Mapping);

impl AsRef<[u8]> for MappedBytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the mapping is readable, this value's alone, and of a constant file.
        unsafe { std::slice::from_raw_parts(self.0.as_mut_ptr(), self.0.len()) }
    }
}

/// Fills a buffer with the bytes of a file from an offset on.
pub(crate) type ReadAt<'f> = dyn Fn(&mut [u8], usize) -> io::Result<()> + Sync + 'f;

/// Reads a file. If its length is known and below 4 GiB, `parts` reads it, from that length; not so a pipe, nor a file that the
/// system makes up as it is read.
///
/// # Errors
/// The system's error.
pub(crate) fn read<B: From<Vec<u8>>, E: From<io::Error>>(
    path: &Path,
    parts: impl FnOnce(usize, &ReadAt<'_>) -> Result<B, E>,
) -> Result<B, E> {
    Call::FileRead.enter()?;
    let mut file = fs::File::open(path)?;
    let metadata = file.metadata()?;
    match u32::try_from(metadata.len()) {
        Ok(len @ 1..) if metadata.is_file() => parts(len as usize, &|into, at| file.read_exact_at(into, at as u64)),
        _ => {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(bytes.into())
        }
    }
}
