//! Open directories.

use crate::sys::dir::FileType;
use crate::{stat, sys};
use cap_std::fs::{Dir, MetadataExt};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// An open directory.
pub(crate) struct Directory {
    pub dir: Arc<Dir>,
    /// Whether a guarded directory can be reached in it.
    pub is_related: bool,
    /// The guest's path, if the directory is preopened.
    pub preopened_as: Option<Box<str>>,
    /// The entries at the time when the guest began to list the directory. Cookies are indices into them, so that a
    /// listing shows every entry once, whatever is created and removed in the meantime.
    pub listing: Vec<Entry>,
}

/// An entry of a directory.
#[derive(Debug)]
pub(crate) struct Entry {
    pub inode: u64,
    pub file_type: u8,
    pub name: Box<[u8]>,
}

impl Directory {
    /// Wraps a directory that the guest has opened, in one of which `is_related` is true or not.
    pub fn new(dir: Dir, is_related: bool) -> Directory {
        Directory { dir: Arc::new(dir), is_related, preopened_as: None, listing: Vec::new() }
    }

    /// Opens the host's directory `host`, which the guest sees as `guest`.
    pub fn preopened(host: &Path, guest: String) -> io::Result<Directory> {
        let fd = sys::dir::open(host)?;
        Ok(Directory { preopened_as: Some(guest.into()), ..Directory::new(Dir::from_std_file(fd.into()), false) })
    }
}

/// Returns the bytes that a listing takes.
pub(crate) fn bytes_of(listing: &[Entry]) -> usize {
    listing.iter().map(|entry| bytes_of_entry(&entry.name)).sum()
}

/// Returns the bytes that an entry with this name takes.
fn bytes_of_entry(name: &[u8]) -> usize {
    /// What the allocator adds to a name, about.
    const EACH: usize = 16;
    size_of::<Entry>() + EACH + name.len()
}

/// Returns the current entries of a directory by name, after `.` and `..`; the identity of `..` is hidden from the guest. They are
/// sorted because the host's order may change between calls. If they take more than `room` bytes, returns the bytes that they take, and never
/// holds more: a guest may have made as many files as it likes.
pub(crate) fn list(dir: &Dir, room: usize) -> io::Result<Result<Vec<Entry>, usize>> {
    let entry = |inode, name: &[u8]| Entry { inode, file_type: stat::DIRECTORY, name: name.into() };
    let mut entries = vec![entry(dir.dir_metadata()?.ino(), b"."), entry(0, b"..")];
    let mut bytes = bytes_of(&entries);
    for found in sys::dir::entries(dir)? {
        let found = found?;
        if *found.name == *b"." || *found.name == *b".." {
            continue;
        }
        bytes += bytes_of_entry(&found.name);
        if bytes <= room {
            entries.push(Entry { inode: found.inode, file_type: type_of(dir, &found), name: found.name });
        }
    }
    if bytes > room {
        return Ok(Err(bytes));
    }
    entries[2..].sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(Ok(entries))
}

/// Returns the type of an entry. Some file systems report it only in the metadata of the file.
fn type_of(dir: &Dir, entry: &sys::dir::Entry) -> u8 {
    match entry.file_type {
        FileType::Unknown => {
            let metadata = dir.symlink_metadata(OsStr::from_bytes(&entry.name));
            metadata.map_or(stat::UNKNOWN, |metadata| stat::file_type(FileType::of_mode(metadata.mode())))
        }
        known => stat::file_type(known),
    }
}
