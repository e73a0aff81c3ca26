//! Files that a user names.

use super::calls::Call;
use super::mapping::{Access, Mapping};
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct Writer(fs::File);

impl Writer {
    /// Opens a file, or makes it, to write at its end.
    ///
    /// # Errors
    /// The system's.
    pub fn append(path: &Path) -> io::Result<Writer> {
        Call::FileAppend.enter()?;
        Ok(Writer(fs::File::options().create(true).append(true).open(path)?))
    }

    /// Makes a file, or empties the one that is there. It can be read, too.
    ///
    /// # Errors
    /// The system's.
    pub fn create(path: &Path) -> io::Result<Writer> {
        Call::FileCreate.enter()?;
        Ok(Writer(fs::File::options().create(true).truncate(true).read(true).write(true).open(path)?))
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// The system's; some of it may have been written.
    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        Call::FileWrite.enter()?;
        self.0.write_all(bytes)
    }

    /// Maps the first `len` bytes, readable and executable.
    ///
    /// # Errors
    /// The system's.
    pub fn map_executable(&self, len: usize) -> io::Result<Mapping> {
        Call::FileMapExecutable.enter()?;
        Mapping::of_file(&self.0, 0, len, Access::ReadExecute)
    }
}

/// What is in a file.
///
/// # Errors
/// The system's.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    Call::FileRead.enter()?;
    fs::read(path)
}
