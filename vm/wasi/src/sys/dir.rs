//! Directories of the host.

use super::calls::Call;
use rustix::fs::{AtFlags, Mode, OFlags, StatxAttributes, StatxFlags};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

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

    /// Returns whether reading and writing wait for another process, a user or a device.
    pub fn waits(self) -> bool {
        match self {
            FileType::Regular | FileType::Directory | FileType::Symlink | FileType::BlockDevice => false,
            FileType::CharacterDevice | FileType::Socket | FileType::Fifo | FileType::Unknown => true,
        }
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

/// The identity of a file, the same by whatever way it is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    pub device: u64,
    pub inode: u64,
}

impl Identity {
    fn of(stat: rustix::io::Result<rustix::fs::Stat>) -> Option<Identity> {
        stat.ok().map(|stat| Identity { device: stat.st_dev, inode: stat.st_ino })
    }
}

/// Returns the identity of the file at a path on the host, if there is one.
pub(crate) fn identity(path: &Path) -> Option<Identity> {
    Identity::of(rustix::fs::stat(path))
}

/// Returns the identities of the files in a directory on the host; none if it cannot be read.
pub(crate) fn identities(folder: &Path) -> Vec<Identity> {
    let Ok(entries) = open(folder).and_then(entries) else { return Vec::new() };
    let name = |entry: io::Result<Entry>| Some(OsString::from_vec(entry.ok()?.name.into()));
    entries.filter_map(name).filter_map(|name| identity(&folder.join(name))).collect()
}

/// Returns whether an open file is where something is mounted, as far as the system tells.
pub(crate) fn is_mounted(file: impl AsFd) -> bool {
    let stat = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::empty());
    stat.is_ok_and(|stat| stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Returns the target of the symbolic link at a path on the host, if it is one.
pub(crate) fn link(path: &Path) -> Option<PathBuf> {
    let target = rustix::fs::readlink(path, Vec::new()).ok()?;
    Some(OsString::from_vec(target.into_bytes()).into())
}

/// Returns the identities of an open directory and of all that it is in, up to the root.
///
/// # Errors
/// The host's error.
pub(crate) fn above(dir: impl AsFd) -> io::Result<Vec<Identity>> {
    Call::DirAbove.enter()?;
    let unknown = || io::Error::other("the directory has no identity");
    let mut identities = vec![Identity::of(rustix::fs::fstat(&dir)).ok_or_else(unknown)?];
    let mut parent: Option<OwnedFd> = None;
    loop {
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
        let of = parent.as_ref().map_or(dir.as_fd(), OwnedFd::as_fd);
        let next = rustix::fs::openat(of, "..", flags, Mode::empty())?;
        let identity = Identity::of(rustix::fs::fstat(&next)).ok_or_else(unknown)?;
        if identities.last() == Some(&identity) {
            return Ok(identities);
        }
        identities.push(identity);
        parent = Some(next);
    }
}

/// Returns whether other file systems are mounted below an open directory, or may be: the same folder may then be there again.
pub(crate) fn has_mounts(dir: impl AsFd) -> bool {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd()));
    let (Ok(path), Ok(mounts)) = (path, std::fs::read("/proc/self/mountinfo")) else { return true };
    mounts.split(|byte| *byte == b'\n').any(|mount| {
        let Some(at) = mount.split(|byte| *byte == b' ').nth(4) else { return false };
        let at = Path::new(std::ffi::OsStr::from_bytes(at));
        // Some bytes of names are written as numbers.
        mount.contains(&b'\\') || at != path && at.starts_with(&path)
    })
}

/// An entry of a directory.
#[derive(Debug)]
pub(crate) struct Entry {
    pub inode: u64,
    /// `Unknown` if the file system reports it only in the metadata of the file.
    pub file_type: FileType,
    pub name: Box<[u8]>,
}

/// Reads all entries of a directory, itself and its parent included, in the host's order.
///
/// # Errors
/// The host's error, also for each entry.
pub(crate) fn entries(dir: impl AsFd) -> io::Result<impl Iterator<Item = io::Result<Entry>>> {
    Call::DirEntries.enter()?;
    let read = |found: Result<rustix::fs::DirEntry, rustix::io::Errno>| {
        Call::DirNext.enter()?;
        let found = found?;
        let name = found.file_name().to_bytes().into();
        Ok(Entry { inode: found.ino(), file_type: found.file_type().into(), name })
    };
    Ok(rustix::fs::Dir::read_from(dir)?.map(read))
}
