//! Files that the user names.

use super::calls::Call;
use super::mapping::{Access, Mapping};
use std::fs;
use std::io::{self, Write as _};
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

/// Reads a file.
///
/// # Errors
/// The system's error.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    Call::FileRead.enter()?;
    fs::read(path)
}
