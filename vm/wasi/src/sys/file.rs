//! Open files: reading, writing, and other operations on a descriptor.

use super::calls::Call;
use super::dir::FileType;
use super::retry::retry;
use rustix::fs::{FallocateFlags, OFlags, Timestamps, UTIME_NOW, UTIME_OMIT};
use rustix::io::ReadWriteFlags;
use rustix::time::Timespec;
use std::io::{self, IoSlice, IoSliceMut, SeekFrom};
use std::num::NonZeroU64;
use std::os::fd::AsFd;

/// Flags of opening a file, and of the open file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flags(OFlags);

impl Flags {
    pub const NONE: Flags = Flags(OFlags::empty());
    pub const CREATE: Flags = Flags(OFlags::CREATE);
    pub const EXCLUSIVE: Flags = Flags(OFlags::EXCL);
    pub const DIRECTORY: Flags = Flags(OFlags::DIRECTORY);
    pub const TRUNCATE: Flags = Flags(OFlags::TRUNC);
    pub const APPEND: Flags = Flags(OFlags::APPEND);
    pub const NONBLOCK: Flags = Flags(OFlags::NONBLOCK);
    pub const DSYNC: Flags = Flags(OFlags::DSYNC);
    pub const SYNC: Flags = Flags(OFlags::SYNC);

    /// Sets or clears these flags.
    pub fn set(&mut self, flags: Flags, set: bool) {
        self.0.set(flags.0, set);
    }

    /// Returns whether all of these are set.
    pub fn contains(self, flags: Flags) -> bool {
        self.0.contains(flags.0)
    }

    /// Returns the bits for open(2).
    pub fn bits(self) -> i32 {
        self.0.bits() as i32
    }
}

/// The expected use of a part of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Advice {
    Normal,
    Sequential,
    Random,
    WillNeed,
    DontNeed,
    NoReuse,
}

/// Reads at most `into.len()` bytes at the descriptor's position and returns the number; 0 at the end.
///
/// # Errors
/// The host's error.
pub(crate) fn read(fd: impl AsFd, into: &mut [u8]) -> io::Result<usize> {
    retry(|| {
        Call::FileRead.enter()?;
        Ok(rustix::io::read(&fd, &mut *into)?)
    })
}

/// The offset that stands for the descriptor's position.
const POSITION: u64 = u64::MAX;

/// Reads as [`read()`] does, but fails where that would wait.
///
/// # Errors
/// `WouldBlock`; `Unsupported` if the host cannot read this object without the risk of waiting; other errors of the host.
pub(crate) fn read_now(fd: impl AsFd, into: &mut [u8]) -> io::Result<usize> {
    retry(|| {
        Call::FileRead.enter()?;
        Ok(rustix::io::preadv2(&fd, &mut [IoSliceMut::new(into)], POSITION, ReadWriteFlags::NOWAIT)?)
    })
}

/// Reads at this offset.
///
/// # Errors
/// The host's error.
pub(crate) fn read_at(fd: impl AsFd, into: &mut [u8], at: u64) -> io::Result<usize> {
    retry(|| {
        Call::FileReadAt.enter()?;
        Ok(rustix::io::pread(&fd, &mut *into, at)?)
    })
}

/// Writes some of the bytes at the descriptor's position and returns the number.
///
/// # Errors
/// The host's error.
pub(crate) fn write(fd: impl AsFd, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
    retry(|| {
        Call::FileWrite.enter()?;
        Ok(rustix::io::writev(&fd, bytes)?)
    })
}

/// Writes as [`write()`] does, but fails where that would wait before the first byte.
///
/// # Errors
/// Those of [`read_now`].
pub(crate) fn write_now(fd: impl AsFd, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
    retry(|| {
        Call::FileWrite.enter()?;
        Ok(rustix::io::pwritev2(&fd, bytes, POSITION, ReadWriteFlags::NOWAIT)?)
    })
}

/// Returns the type of an open file.
///
/// # Errors
/// The host's error.
pub(crate) fn file_type(fd: impl AsFd) -> io::Result<FileType> {
    Ok(FileType::of_mode(rustix::fs::fstat(fd)?.st_mode))
}

/// Writes at this offset, which Linux ignores if the descriptor has [`Flags::APPEND`].
///
/// # Errors
/// The host's error.
pub(crate) fn write_at(fd: impl AsFd, bytes: &[IoSlice<'_>], at: u64) -> io::Result<usize> {
    retry(|| {
        Call::FileWriteAt.enter()?;
        Ok(rustix::io::pwritev(&fd, bytes, at)?)
    })
}

/// Returns the flags of an open file.
///
/// # Errors
/// The host's error.
pub(crate) fn flags(fd: impl AsFd) -> io::Result<Flags> {
    Call::FileFlags.enter()?;
    Ok(Flags(rustix::fs::fcntl_getfl(fd)?))
}

/// Sets those flags that can be changed.
///
/// # Errors
/// The host's error.
pub(crate) fn set_flags(fd: impl AsFd, flags: Flags) -> io::Result<()> {
    Call::FileSetFlags.enter()?;
    Ok(rustix::fs::fcntl_setfl(fd, flags.0)?)
}

/// Sets the position and returns it.
///
/// # Errors
/// The host's error: not every file has a position.
pub(crate) fn seek(fd: impl AsFd, to: SeekFrom) -> io::Result<u64> {
    Call::FileSeek.enter()?;
    let to = match to {
        SeekFrom::Start(at) => rustix::fs::SeekFrom::Start(at),
        SeekFrom::End(by) => rustix::fs::SeekFrom::End(by),
        SeekFrom::Current(by) => rustix::fs::SeekFrom::Current(by),
    };
    Ok(rustix::fs::seek(fd, to)?)
}

/// Declares the expected use of `len` bytes from `at`; with a length of 0, of all bytes from there.
///
/// # Errors
/// The host's error.
pub(crate) fn advise(fd: impl AsFd, at: u64, len: u64, advice: Advice) -> io::Result<()> {
    Call::FileAdvise.enter()?;
    let advice = match advice {
        Advice::Normal => rustix::fs::Advice::Normal,
        Advice::Sequential => rustix::fs::Advice::Sequential,
        Advice::Random => rustix::fs::Advice::Random,
        Advice::WillNeed => rustix::fs::Advice::WillNeed,
        Advice::DontNeed => rustix::fs::Advice::DontNeed,
        Advice::NoReuse => rustix::fs::Advice::NoReuse,
    };
    Ok(rustix::fs::fadvise(fd, at, NonZeroU64::new(len), advice)?)
}

/// Allocates disk space for `len` bytes from `at`, and extends the file if necessary.
///
/// # Errors
/// The host's error.
pub(crate) fn allocate(fd: impl AsFd, at: u64, len: u64) -> io::Result<()> {
    Call::FileAllocate.enter()?;
    Ok(rustix::fs::fallocate(fd, FallocateFlags::empty(), at, len)?)
}

/// Sets the length of the file.
///
/// # Errors
/// The host's error.
pub(crate) fn set_len(fd: impl AsFd, len: u64) -> io::Result<()> {
    Call::FileSetLen.enter()?;
    Ok(rustix::fs::ftruncate(fd, len)?)
}

/// The new value of a file's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NewTime {
    Unchanged,
    Now,
    /// Nanoseconds since 1970.
    At(u64),
}

impl NewTime {
    fn timespec(self) -> Timespec {
        match self {
            NewTime::Unchanged => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            NewTime::Now => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
            NewTime::At(time) => Timespec { tv_sec: (time / 1_000_000_000) as i64, tv_nsec: (time % 1_000_000_000) as i64 },
        }
    }
}

/// Sets the times of last access and last modification.
///
/// # Errors
/// The host's error.
pub(crate) fn set_times(fd: impl AsFd, access: NewTime, modification: NewTime) -> io::Result<()> {
    Call::FileSetTimes.enter()?;
    let times = Timestamps { last_access: access.timespec(), last_modification: modification.timespec() };
    Ok(rustix::fs::futimens(fd, &times)?)
}

/// Waits until the file's contents and metadata are on disk.
///
/// # Errors
/// The host's error.
pub(crate) fn sync(fd: impl AsFd) -> io::Result<()> {
    Call::FileSync.enter()?;
    Ok(rustix::fs::fsync(fd)?)
}

/// Waits until the contents are on disk.
///
/// # Errors
/// The host's error.
pub(crate) fn sync_data(fd: impl AsFd) -> io::Result<()> {
    Call::FileSyncData.enter()?;
    Ok(rustix::fs::fdatasync(fd)?)
}
