//! The directories in which the cases work, rights and flags, and calls that take paths.

use super::common::*;
use weir_wasi::{FsPerms, WasiCtx};

/// The preopened directory.
pub const ROOT: u32 = 3;

/// Bits of `oflags`, `fdflags` and `fstflags`.
pub const CREATE: u32 = 1;
pub const DIRECTORY: u32 = 2;
pub const EXCLUSIVE: u32 = 4;
pub const TRUNCATE: u32 = 8;
pub const APPEND: u32 = 1;
pub const NONBLOCK: u32 = 4;
pub const SYNC: u32 = 16;
pub const ACCESS: u64 = 1;
pub const ACCESS_NOW: u64 = 2;
pub const MODIFICATION: u64 = 4;
pub const MODIFICATION_NOW: u64 = 8;

pub const SET: u64 = 0;
pub const CURRENT: u64 = 1;
pub const END: u64 = 2;

pub const DIRECTORY_TYPE: u8 = 3;
pub const REGULAR_FILE: u8 = 4;
pub const SYMBOLIC_LINK: u8 = 7;

/// Rights.
pub const FD_DATASYNC: u64 = 1;
pub const FD_READ: u64 = 1 << 1;
pub const FD_SEEK: u64 = 1 << 2;
pub const FD_FDSTAT_SET_FLAGS: u64 = 1 << 3;
pub const FD_SYNC: u64 = 1 << 4;
pub const FD_TELL: u64 = 1 << 5;
pub const FD_WRITE: u64 = 1 << 6;
pub const FD_ADVISE: u64 = 1 << 7;
pub const FD_ALLOCATE: u64 = 1 << 8;
pub const PATH_CREATE_DIRECTORY: u64 = 1 << 9;
pub const PATH_CREATE_FILE: u64 = 1 << 10;
pub const PATH_LINK_SOURCE: u64 = 1 << 11;
pub const PATH_LINK_TARGET: u64 = 1 << 12;
pub const PATH_OPEN: u64 = 1 << 13;
pub const FD_READDIR: u64 = 1 << 14;
pub const PATH_READLINK: u64 = 1 << 15;
pub const PATH_RENAME_SOURCE: u64 = 1 << 16;
pub const PATH_RENAME_TARGET: u64 = 1 << 17;
pub const PATH_FILESTAT_GET: u64 = 1 << 18;
pub const PATH_FILESTAT_SET_SIZE: u64 = 1 << 19;
pub const PATH_FILESTAT_SET_TIMES: u64 = 1 << 20;
pub const FD_FILESTAT_GET: u64 = 1 << 21;
pub const FD_FILESTAT_SET_SIZE: u64 = 1 << 22;
pub const FD_FILESTAT_SET_TIMES: u64 = 1 << 23;
pub const PATH_SYMLINK: u64 = 1 << 24;
pub const PATH_REMOVE_DIRECTORY: u64 = 1 << 25;
pub const PATH_UNLINK_FILE: u64 = 1 << 26;
pub const POLL_FD_READWRITE: u64 = 1 << 27;

/// The rights that libraries expect a preopened directory to have, and to give.
pub const PREOPENED: u64 = PATH_CREATE_DIRECTORY
    | PATH_CREATE_FILE
    | PATH_LINK_SOURCE
    | PATH_LINK_TARGET
    | PATH_OPEN
    | FD_READDIR
    | PATH_READLINK
    | PATH_RENAME_SOURCE
    | PATH_RENAME_TARGET
    | PATH_SYMLINK
    | PATH_REMOVE_DIRECTORY
    | PATH_UNLINK_FILE
    | PATH_FILESTAT_GET
    | PATH_FILESTAT_SET_TIMES
    | FD_FILESTAT_GET
    | FD_FILESTAT_SET_TIMES;
pub const OF_FILES: u64 = FD_DATASYNC
    | FD_READ
    | FD_SEEK
    | FD_FDSTAT_SET_FLAGS
    | FD_SYNC
    | FD_TELL
    | FD_WRITE
    | FD_ADVISE
    | FD_ALLOCATE
    | FD_FILESTAT_GET
    | FD_FILESTAT_SET_SIZE
    | FD_FILESTAT_SET_TIMES
    | POLL_FD_READWRITE;

/// The rights of the directory in which most cases work, and those that it gives.
pub const WORKING: [u64; 2] = [
    FD_FILESTAT_GET
        | FD_READDIR
        | PATH_CREATE_FILE
        | PATH_CREATE_DIRECTORY
        | PATH_REMOVE_DIRECTORY
        | PATH_OPEN
        | PATH_UNLINK_FILE
        | PATH_LINK_SOURCE
        | PATH_LINK_TARGET
        | PATH_READLINK
        | PATH_RENAME_SOURCE
        | PATH_RENAME_TARGET
        | PATH_FILESTAT_GET
        | PATH_FILESTAT_SET_SIZE
        | PATH_FILESTAT_SET_TIMES
        | PATH_SYMLINK,
    FD_READ
        | FD_WRITE
        | FD_READDIR
        | FD_FILESTAT_GET
        | FD_SEEK
        | PATH_LINK_SOURCE
        | PATH_LINK_TARGET
        | PATH_OPEN
        | PATH_UNLINK_FILE
        | PATH_FILESTAT_GET
        | FD_FDSTAT_SET_FLAGS
        | FD_SYNC
        | FD_TELL
        | FD_ADVISE
        | FD_ALLOCATE
        | FD_FILESTAT_SET_SIZE
        | FD_FILESTAT_SET_TIMES,
];

pub const NONE: [u64; 2] = [0, 0];

/// A guest with an empty preopened directory.
pub fn guest(name: &str) -> Guest {
    Guest::new(WasiCtx::builder().preopened_dir(scratch(name), "/", FsPerms::ReadWrite).unwrap())
}

/// The same, with the descriptor of a directory in it.
pub fn working(name: &str) -> (Guest, u32) {
    let mut guest = guest(name);
    guest.path("path_create_directory", ROOT, "base", &[]).unwrap();
    let dir = guest.open(ROOT, "base", DIRECTORY, WORKING, 0).unwrap();
    assert!(dir > 2);
    (guest, dir)
}

/// Closes and removes the directory, which must be empty again.
pub fn finish(mut guest: Guest, dir: u32) {
    guest.close(dir);
    guest.path("path_remove_directory", ROOT, "base", &[]).unwrap();
}

pub fn create(guest: &mut Guest, dir: u32, path: &str) {
    let file = guest.open(dir, path, CREATE, NONE, 0).unwrap();
    assert!(file > 2);
    guest.close(file);
}

impl Guest {
    pub fn unlink(&mut self, dir: u32, path: &str) -> Result<(), i32> {
        self.path("path_unlink_file", dir, path, &[])
    }

    pub fn make_dir(&mut self, dir: u32, path: &str) -> Result<(), i32> {
        self.path("path_create_directory", dir, path, &[])
    }

    pub fn remove_dir(&mut self, dir: u32, path: &str) -> Result<(), i32> {
        self.path("path_remove_directory", dir, path, &[])
    }

    pub fn rename(&mut self, dir: u32, from: &str, to: &str) -> Result<(), i32> {
        let [at, len] = self.second(to);
        self.path("path_rename", dir, from, &[u64::from(dir), at, len])
    }

    pub fn symlink(&mut self, dir: u32, target: &str, path: &str) -> Result<(), i32> {
        let [at, len] = self.second(path);
        self.write(6000, target.as_bytes());
        self.done("path_symlink", &[6000, target.len() as u64, u64::from(dir), at, len])
    }

    pub fn link(&mut self, dir: u32, follow: bool, path: &str, to: u32, new: &str) -> Result<(), i32> {
        let [at, len] = self.second(new);
        self.lookup("path_link", dir, follow, path, &[u64::from(to), at, len])
    }

    pub fn read_link(&mut self, dir: u32, path: &str, len: u32) -> Result<u32, i32> {
        self.path("path_readlink", dir, path, &[5000, u64::from(len), 100])?;
        Ok(self.word(100))
    }

    pub fn set_times(&mut self, dir: u32, follow: bool, path: &str, modification: u64, flags: u64) -> Result<(), i32> {
        self.lookup("path_filestat_set_times", dir, follow, path, &[0, modification, flags])
    }

    pub fn renumber(&mut self, from: u32, to: u32) -> Result<(), i32> {
        self.done("fd_renumber", &[u64::from(from), u64::from(to)])
    }

    pub fn set_rights(&mut self, fd: u32, base: u64, inheriting: u64) -> Result<(), i32> {
        self.done("fd_fdstat_set_rights", &[u64::from(fd), base, inheriting])
    }
}
