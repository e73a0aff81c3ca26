//! Files in memory.

use super::calls::Call;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A file without a name, in memory.
#[derive(Debug)]
pub(crate) struct MemoryFile(OwnedFd);

impl AsFd for MemoryFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The purpose of a [`MemoryFile`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// Sealed, then mapped as data.
    Data,
    /// Mapped as code.
    Code,
}

#[cfg(target_os = "linux")]
impl MemoryFile {
    /// Creates an empty file. `/proc` shows it as `name`.
    ///
    /// # Errors
    /// The system's error.
    pub fn new(name: &str, purpose: Purpose) -> io::Result<MemoryFile> {
        use rustix::fs::{MemfdFlags, memfd_create};
        use rustix::io::Errno;
        Call::FileInMemory.enter()?;
        let file = match purpose {
            Purpose::Data => memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING),
            // Kernels from 6.3 on can be configured to deny executable memfds by default; older ones do not know the
            // flag.
            Purpose::Code => match memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::EXEC) {
                Err(Errno::INVAL) => memfd_create(name, MemfdFlags::CLOEXEC),
                other => other,
            },
        };
        Ok(MemoryFile(file?))
    }

    /// Sets the length of the file; new bytes are 0.
    ///
    /// # Errors
    /// The system's error.
    pub fn set_len(&self, len: u64) -> io::Result<()> {
        Call::FileSetLen.enter()?;
        Ok(rustix::fs::ftruncate(&self.0, len)?)
    }

    /// Writes all of `bytes` from offset `at`.
    ///
    /// # Errors
    /// The system's error; some bytes may have been written.
    pub fn write_all_at(&self, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            Call::FileWriteAt.enter()?;
            match rustix::io::retry_on_intr(|| rustix::io::pwrite(&self.0, bytes, at))? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => (at, bytes) = (at + written as u64, &bytes[written..]),
            }
        }
        Ok(())
    }

    /// Makes length and contents immutable.
    ///
    /// # Errors
    /// The system's error.
    pub fn seal(&self) -> io::Result<()> {
        use rustix::fs::{SealFlags, fcntl_add_seals};
        Call::FileSeal.enter()?;
        Ok(fcntl_add_seals(&self.0, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?)
    }
}

/// Other systems have no such files.
#[cfg(not(target_os = "linux"))]
impl MemoryFile {
    pub fn new(_name: &str, _purpose: Purpose) -> io::Result<MemoryFile> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn set_len(&self, _len: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn write_all_at(&self, _bytes: &[u8], _at: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn seal(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
