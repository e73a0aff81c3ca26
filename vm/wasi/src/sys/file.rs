//! Open files: reading, writing, and what else is done by descriptor.

use super::calls::Call;
use super::retry::retry;
use rustix::fs::{FallocateFlags, OFlags, Timestamps, UTIME_NOW, UTIME_OMIT};
use rustix::time::Timespec;
use std::io::{self, IoSlice, SeekFrom};
use std::num::NonZeroU64;
use std::os::fd::AsFd;

/// How a file is opened, and what holds for it as long as it is open.
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

    /// Sets these, or clears them.
    pub fn set(&mut self, flags: Flags, set: bool) {
        self.0.set(flags.0, set);
    }

    /// As open(2) takes them.
    pub fn bits(self) -> i32 {
        self.0.bits() as i32
    }
}

/// How a part of a file will be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Advice {
    Normal,
    Sequential,
    Random,
    WillNeed,
    DontNeed,
    NoReuse,
}

/// Reads at most `into.len()` bytes where the descriptor is; how many. 0 is the end.
///
/// # Errors
/// The host's.
pub(crate) fn read(fd: impl AsFd, into: &mut [u8]) -> io::Result<usize> {
    retry(|| {
        Call::FileRead.enter()?;
        Ok(rustix::io::read(&fd, &mut *into)?)
    })
}

/// The same at this offset.
///
/// # Errors
/// The host's.
pub(crate) fn read_at(fd: impl AsFd, into: &mut [u8], at: u64) -> io::Result<usize> {
    retry(|| {
        Call::FileReadAt.enter()?;
        Ok(rustix::io::pread(&fd, &mut *into, at)?)
    })
}

/// Writes some of the bytes where the descriptor is; how many.
///
/// # Errors
/// The host's.
pub(crate) fn write(fd: impl AsFd, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
    retry(|| {
        Call::FileWrite.enter()?;
        Ok(rustix::io::writev(&fd, bytes)?)
    })
}

/// The same at this offset. Linux ignores it if the descriptor has [`Flags::APPEND`].
///
/// # Errors
/// The host's.
pub(crate) fn write_at(fd: impl AsFd, bytes: &[IoSlice<'_>], at: u64) -> io::Result<usize> {
    retry(|| {
        Call::FileWriteAt.enter()?;
        Ok(rustix::io::pwritev(&fd, bytes, at)?)
    })
}

/// The flags of an open file.
///
/// # Errors
/// The host's.
pub(crate) fn flags(fd: impl AsFd) -> io::Result<Flags> {
    Call::FileFlags.enter()?;
    Ok(Flags(rustix::fs::fcntl_getfl(fd)?))
}

/// Changes those that can be changed.
///
/// # Errors
/// The host's.
pub(crate) fn set_flags(fd: impl AsFd, flags: Flags) -> io::Result<()> {
    Call::FileSetFlags.enter()?;
    Ok(rustix::fs::fcntl_setfl(fd, flags.0)?)
}

/// Moves the descriptor; where it is then.
///
/// # Errors
/// The host's: not every file has a position.
pub(crate) fn seek(fd: impl AsFd, to: SeekFrom) -> io::Result<u64> {
    Call::FileSeek.enter()?;
    let to = match to {
        SeekFrom::Start(at) => rustix::fs::SeekFrom::Start(at),
        SeekFrom::End(by) => rustix::fs::SeekFrom::End(by),
        SeekFrom::Current(by) => rustix::fs::SeekFrom::Current(by),
    };
    Ok(rustix::fs::seek(fd, to)?)
}

/// Says how `len` bytes from `at` will be used; with a length of 0, all from there on.
///
/// # Errors
/// The host's.
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

/// Takes the disk space for `len` bytes from `at`, and makes the file longer where it must.
///
/// # Errors
/// The host's.
pub(crate) fn allocate(fd: impl AsFd, at: u64, len: u64) -> io::Result<()> {
    Call::FileAllocate.enter()?;
    Ok(rustix::fs::fallocate(fd, FallocateFlags::empty(), at, len)?)
}

/// Makes the file this long.
///
/// # Errors
/// The host's.
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
/// The host's.
pub(crate) fn set_times(fd: impl AsFd, access: NewTime, modification: NewTime) -> io::Result<()> {
    Call::FileSetTimes.enter()?;
    let times = Timestamps { last_access: access.timespec(), last_modification: modification.timespec() };
    Ok(rustix::fs::futimens(fd, &times)?)
}

/// Waits until the file's contents and metadata are on disk.
///
/// # Errors
/// The host's.
pub(crate) fn sync(fd: impl AsFd) -> io::Result<()> {
    Call::FileSync.enter()?;
    Ok(rustix::fs::fsync(fd)?)
}

/// Waits until the contents are on the disk.
///
/// # Errors
/// The host's.
pub(crate) fn sync_data(fd: impl AsFd) -> io::Result<()> {
    Call::FileSyncData.enter()?;
    Ok(rustix::fs::fdatasync(fd)?)
}
