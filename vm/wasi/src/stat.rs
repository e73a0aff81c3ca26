//! Metadata of files: types, sizes and times, as the guest reads and sets them.

use crate::errno::Errno;
use crate::sys::dir::FileType;
use crate::sys::file::NewTime;
use cap_fs_ext::SystemTimeSpec;
use cap_std::fs::{Metadata, MetadataExt};
use cap_std::time::SystemTime;
use std::time::Duration;

pub(crate) const UNKNOWN: u8 = 0;
pub(crate) const BLOCK_DEVICE: u8 = 1;
pub(crate) const CHARACTER_DEVICE: u8 = 2;
pub(crate) const DIRECTORY: u8 = 3;
pub(crate) const REGULAR_FILE: u8 = 4;
pub(crate) const SOCKET_STREAM: u8 = 6;
pub(crate) const SYMBOLIC_LINK: u8 = 7;

/// The `filetype` of a file system object. Preview 1 has none for pipes.
pub(crate) fn file_type(host: FileType) -> u8 {
    match host {
        FileType::Regular => REGULAR_FILE,
        FileType::Directory => DIRECTORY,
        FileType::Symlink => SYMBOLIC_LINK,
        FileType::CharacterDevice => CHARACTER_DEVICE,
        FileType::BlockDevice => BLOCK_DEVICE,
        FileType::Socket => SOCKET_STREAM,
        FileType::Fifo | FileType::Unknown => UNKNOWN,
    }
}

/// The record `filestat` of a file.
pub(crate) fn filestat(metadata: &Metadata) -> [u8; 64] {
    let mut record = bare_filestat(file_type(FileType::of_mode(metadata.mode())));
    let mut put = |at: usize, value: u64| record[at..at + 8].copy_from_slice(&value.to_le_bytes());
    put(0, metadata.dev());
    put(8, metadata.ino());
    put(24, metadata.nlink());
    put(32, metadata.size());
    put(40, nanoseconds(metadata.atime(), metadata.atime_nsec()));
    put(48, nanoseconds(metadata.mtime(), metadata.mtime_nsec()));
    put(56, nanoseconds(metadata.ctime(), metadata.ctime_nsec()));
    record
}

/// Returns the record `filestat` of an object outside any file system.
pub(crate) fn bare_filestat(file_type: u8) -> [u8; 64] {
    let mut record = [0; 64];
    record[16] = file_type;
    record[24] = 1;
    record
}

/// Returns nanoseconds since 1970, clamped to the years 1970 to 2554.
fn nanoseconds(seconds: i64, nanoseconds: i64) -> u64 {
    u64::try_from(seconds).map_or(0, |seconds| seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds as u64))
}

/// Returns the new times of last access and last modification, by `fstflags`.
pub(crate) fn new_times(access: u64, modification: u64, flags: u32) -> Result<[NewTime; 2], Errno> {
    if flags & !0b1111 != 0 {
        return Err(Errno::Inval);
    }
    let new = |time: u64, flags: u32| match flags & 0b11 {
        0 => Ok(NewTime::Unchanged),
        1 => Ok(NewTime::At(time)),
        2 => Ok(NewTime::Now),
        _ => Err(Errno::Inval),
    };
    Ok([new(access, flags)?, new(modification, flags >> 2)?])
}

/// Converts a time for cap-std.
pub(crate) fn spec(time: NewTime) -> Option<SystemTimeSpec> {
    match time {
        NewTime::Unchanged => None,
        NewTime::Now => Some(SystemTimeSpec::SymbolicNow),
        NewTime::At(time) => {
            let time = std::time::UNIX_EPOCH + Duration::from_nanos(time);
            Some(SystemTimeSpec::Absolute(SystemTime::from_std(time)))
        }
    }
}
