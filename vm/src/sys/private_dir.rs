//! A directory that only the user can read and write, with files that are replaced as a whole.
//!
//! Whoever can write in it is trusted. So it must be the user's own, without access for others, and no link; and so must its files,
//! which also have no second name elsewhere.

use super::calls::Call;
use super::file::Opened;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat, Timestamps, UTIME_NOW};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// The directory.
#[derive(Debug)]
pub(crate) struct PrivateDir(OwnedFd);

/// A file of the directory.
#[derive(Debug)]
pub(crate) struct Listed {
    pub name: Box<[u8]>,
    pub len: u64,
    /// When it was last written or used, in nanoseconds since 1970.
    pub used: i128,
}

/// The right to change files that others change too. It ends when this is dropped. The file that is locked may have contents.
#[derive(Debug)]
pub(crate) struct Locked(fs::File);

/// Access for the user alone.
const PRIVATE: Mode = Mode::RWXU;
/// The name of the file that is locked.
const LOCK: &str = "lock";
/// What the names of files begin with that are being written. Only the holder of the lock writes such files.
const NEW: &[u8] = b"new-";

fn refused(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, what)
}

fn is_own(stat: &Stat) -> bool {
    stat.st_uid == rustix::process::geteuid().as_raw()
}

impl PrivateDir {
    /// Opens the directory; with `create`, makes it and what is missing of its path.
    ///
    /// # Errors
    /// The system's error; the directory is a link, another user's, or others have access to it.
    pub fn open(path: &Path, create: bool) -> io::Result<PrivateDir> {
        Call::DirOpen.enter()?;
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let dir = match rustix::fs::open(path, flags, Mode::empty()) {
            Err(Errno::NOENT) if create => {
                fs::DirBuilder::new().recursive(true).mode(PRIVATE.bits()).create(path)?;
                rustix::fs::open(path, flags, Mode::empty())
            }
            opened => opened,
        };
        let dir = dir?;
        let stat = rustix::fs::fstat(&dir)?;
        if !is_own(&stat) {
            return Err(refused("the directory is another user's"));
        }
        // A new directory has its parent's bit for the group of new files, if that is set.
        if Mode::from_raw_mode(stat.st_mode).intersection(Mode::RWXU | Mode::RWXG | Mode::RWXO) != PRIVATE {
            return Err(refused("the directory's mode is not 0700"));
        }
        Ok(PrivateDir(dir))
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// The system's error; the file is none, is another user's, or can be reached by others or elsewhere.
    pub fn open_file(&self, name: &str) -> io::Result<Opened> {
        let (file, len) = self.open_own(name, OFlags::RDONLY)?;
        Ok(Opened::of(file, len))
    }

    /// Opens a file for adding to it.
    ///
    /// # Errors
    /// As [`PrivateDir::open_file`].
    pub fn open_to_add(&self, name: &str) -> io::Result<fs::File> {
        Call::DirChange.enter()?;
        Ok(self.open_own(name, OFlags::WRONLY)?.0)
    }

    /// Opens a file, and returns its length.
    fn open_own(&self, name: &str, access: OFlags) -> io::Result<(fs::File, u64)> {
        Call::DirOpen.enter()?;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | access;
        let file = rustix::fs::openat(&self.0, name, flags, Mode::RUSR | Mode::WUSR)?;
        let stat = rustix::fs::fstat(&file)?;
        let others = Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO);
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || !is_own(&stat) || others || stat.st_nlink != 1 {
            return Err(refused("the file is not a file of the user alone"));
        }
        Ok((file.into(), stat.st_size as u64))
    }

    /// Sets the time at which a file was last used.
    ///
    /// # Errors
    /// The system's error.
    pub fn touch(&self, name: &str) -> io::Result<()> {
        Call::DirChange.enter()?;
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        Ok(rustix::fs::utimensat(&self.0, name, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Returns the bytes of a file; `None` if there is none.
    pub fn len_of(&self, name: &str) -> Option<u64> {
        let stat = rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then_some(stat.st_size as u64)
    }

    /// Reads from the lock file, without the lock, from an offset on, what it has there. Returns the length of the file, which is 0 if there is none.
    ///
    /// # Errors
    /// As [`PrivateDir::open_file`].
    pub fn read_unlocked(&self, into: &mut [u8], at: u64) -> io::Result<u64> {
        match self.open_own(LOCK, OFlags::RDONLY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            opened => {
                let (file, len) = opened?;
                file.read_at(into, at)?;
                Ok(len)
            }
        }
    }

    /// Writes a file, or replaces it: `write` writes its contents. Readers see the old file or the new one.
    ///
    /// # Errors
    /// The system's error; those of `write`. No part of the file is left.
    pub fn write(&self, name: &str, write: impl FnOnce(&mut fs::File) -> io::Result<()>) -> io::Result<()> {
        Call::DirChange.enter()?;
        let new = [NEW, std::process::id().to_string().as_bytes(), b"-", name.as_bytes()].concat();
        let new = OsStr::from_bytes(&new);
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.0, new, flags, Mode::RUSR | Mode::WUSR)?;
        let written = write(&mut file.into()).and_then(|()| Ok(rustix::fs::renameat(&self.0, new, &self.0, name)?));
        written.inspect_err(|_| {
            // The first error is the one to report.
            let _ = rustix::fs::unlinkat(&self.0, new, AtFlags::empty());
        })
    }

    /// Removes a file.
    ///
    /// # Errors
    /// The system's error.
    pub fn remove(&self, name: &[u8]) -> io::Result<()> {
        Call::DirChange.enter()?;
        Ok(rustix::fs::unlinkat(&self.0, OsStr::from_bytes(name), AtFlags::empty())?)
    }

    /// Waits until no other process has the lock, at most for this long.
    ///
    /// # Errors
    /// As [`PrivateDir::open_file`], or another process has it.
    pub fn lock(&self, patience: Duration) -> io::Result<Locked> {
        Call::DirLock.enter()?;
        let (file, _) = self.open_own(LOCK, OFlags::CREATE | OFlags::RDWR)?;
        let end = Instant::now() + patience;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Locked(file)),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < end => std::thread::sleep(Duration::from_micros(200)),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns all files but the lock file. Removes those that were left behind while they were written.
    ///
    /// # Errors
    /// The system's error.
    pub fn list(&self, _: &Locked) -> io::Result<Vec<Listed>> {
        Call::DirList.enter()?;
        let mut files = Vec::new();
        for entry in rustix::fs::Dir::read_from(self.0.as_fd())? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            let Ok(stat) = rustix::fs::statat(&self.0, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || name == LOCK.as_bytes() {
                continue;
            }
            if name.starts_with(NEW) {
                let _ = self.remove(name);
                continue;
            }
            let used = i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec);
            files.push(Listed { name: name.into(), len: stat.st_size as u64, used });
        }
        Ok(files)
    }
}

impl Locked {
    /// Fills a buffer with the contents of the file that is locked, from an offset on.
    ///
    /// # Errors
    /// The system's error; the file is shorter.
    pub fn read(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        Call::DirOpen.enter()?;
        self.0.read_exact_at(into, at)
    }

    /// Writes to the file that is locked, from an offset on.
    ///
    /// # Errors
    /// The system's error.
    pub fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        Call::DirChange.enter()?;
        self.0.write_all_at(bytes, at)
    }
}
