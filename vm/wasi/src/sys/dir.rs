//! Directories of the host.

use super::calls::Call;
use rustix::fs::{Mode, OFlags};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// The type of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileType {
    Regular,
    Directory,
    Symlink,
    CharacterDevice,
    BlockDevice,
    Socket,
    Fifo,
    /// Not reported, or a type not listed here.
    Unknown,
}

impl FileType {
    /// Returns the type of a file with this mode.
    pub fn of_mode(mode: u32) -> FileType {
        FileType::from(rustix::fs::FileType::from_raw_mode(mode))
    }
}

impl From<rustix::fs::FileType> for FileType {
    fn from(host: rustix::fs::FileType) -> FileType {
        match host {
            rustix::fs::FileType::RegularFile => FileType::Regular,
            rustix::fs::FileType::Directory => FileType::Directory,
            rustix::fs::FileType::Symlink => FileType::Symlink,
            rustix::fs::FileType::CharacterDevice => FileType::CharacterDevice,
            rustix::fs::FileType::BlockDevice => FileType::BlockDevice,
            rustix::fs::FileType::Socket => FileType::Socket,
            rustix::fs::FileType::Fifo => FileType::Fifo,
            rustix::fs::FileType::Unknown => FileType::Unknown,
        }
    }
}

/// Opens a directory by its path on the host.
///
/// # Errors
/// The host's error.
pub(crate) fn open(path: &Path) -> io::Result<OwnedFd> {
    Call::DirOpen.enter()?;
    Ok(rustix::fs::open(path, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// An entry of a directory.
#[derive(Debug)]
pub(crate) struct Entry {
    pub inode: u64,
    /// `Unknown` if the file system reports it only in the metadata of the file.
    pub file_type: FileType,
    pub name: Box<[u8]>,
}

/// Returns all entries of a directory, itself and its parent included, in the host's order.
///
/// # Errors
/// The host's error.
pub(crate) fn entries(dir: impl AsFd) -> io::Result<Vec<Entry>> {
    Call::DirEntries.enter()?;
    let mut entries = Vec::new();
    for found in rustix::fs::Dir::read_from(dir)? {
        Call::DirNext.enter()?;
        let found = found?;
        let name = found.file_name().to_bytes().into();
        entries.push(Entry { inode: found.ino(), file_type: found.file_type().into(), name });
    }
    Ok(entries)
}
