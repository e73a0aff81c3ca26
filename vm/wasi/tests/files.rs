//! Files and directories: `fd_*` and `path_*` in a preopened directory.

mod common;

use common::*;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use weir_wasi::{FsPerms, WasiCtx};

/// The first directory that is opened for a guest.
const DIR: u32 = 3;

const ALL: u64 = (1 << 30) - 1;
/// All with which a directory can be opened: not that to write.
const OF_DIRECTORY: u64 = ALL & !(1 << 6);
const READ: u64 = 1 << 1;
const SEEK: u64 = 1 << 2;
const TELL: u64 = 1 << 5;
const WRITE: u64 = 1 << 6;
const SET_SIZE: u64 = 1 << 22;
const CREATE_FILE: u64 = 1 << 10;
const PATH_SET_SIZE: u64 = 1 << 19;

/// Bits of `oflags`.
const CREATE: u32 = 1;
const DIRECTORY: u32 = 2;
const EXCLUSIVE: u32 = 4;
const TRUNCATE: u32 = 8;

/// Bits of `fdflags`.
const APPEND: u32 = 1;
const DSYNC: u32 = 2;
const NONBLOCK: u32 = 4;
const SYNC: u32 = 16;

const IS_DIRECTORY: u8 = 3;
const IS_FILE: u8 = 4;
const IS_LINK: u8 = 7;

/// All rights that a file can have.
const FILE: [u64; 2] = [ALL, 0];

fn guest(folder: &Path) -> Guest {
    Guest::new(WasiCtx::builder().preopened_dir(folder, "/data", FsPerms::ReadWrite).unwrap())
}

#[test]
fn what_the_program_has_opened_has_the_name_that_it_gave() {
    let folder = scratch("opened");
    fs::create_dir(folder.join("sub")).unwrap();
    fs::write(folder.join("sub/file"), "x").unwrap();
    let mut guest = guest(&folder);
    let open = |guest: &Guest| guest.store.data().open_descriptors().collect::<Vec<_>>();
    let file = guest.open(DIR, "sub/file", 0, FILE, 0).unwrap();
    let sub = guest.open(DIR, "sub", DIRECTORY, [OF_DIRECTORY, ALL], 0).unwrap();
    assert_eq!(open(&guest), [(file, "sub/file".to_owned()), (sub, "sub".to_owned())]);
    assert_eq!(guest.call("fd_renumber", &[u64::from(file), 1]), SUCCESS);
    assert_eq!(open(&guest), [(1, "sub/file".to_owned()), (sub, "sub".to_owned())]);
    guest.close(1);
    guest.close(sub);
    assert_eq!(open(&guest), []);
}

#[test]
fn the_library_finds_files_that_are_opened_for_it() {
    let folder = scratch("preopens");
    let mut ctx = WasiCtx::builder();
    ctx.preopened_dir(&folder, "/data", FsPerms::ReadWrite).unwrap();
    let mut guest = Guest::new(ctx.preopened_dir(&folder, ".", FsPerms::ReadWrite).unwrap());
    for (fd, name) in [(3, "/data"), (4, ".")] {
        assert_eq!(guest.call("fd_prestat_get", &[fd, 0]), SUCCESS);
        assert_eq!((guest.word(0), guest.word(4)), (0, name.len() as u32));
        assert_eq!(guest.call("fd_prestat_dir_name", &[fd, 8, name.len() as u64 - 1]), NAMETOOLONG);
        assert_eq!(guest.call("fd_prestat_dir_name", &[fd, 8, 100]), SUCCESS);
        assert_eq!(guest.read(8, name.len()), name.as_bytes());
    }
    assert_eq!(guest.call("fd_prestat_get", &[5, 0]), BADF);
    assert_eq!(guest.call("fd_prestat_get", &[1, 0]), BADF, "a stream");
    let inner = guest.open(4, ".", DIRECTORY, [OF_DIRECTORY, ALL], 0).unwrap();
    assert_eq!(guest.call("fd_prestat_get", &[inner.into(), 0]), BADF, "opened by the guest");

    assert!(WasiCtx::builder().preopened_dir(folder.join("none"), "/", FsPerms::ReadWrite).is_err());
    fs::write(folder.join("file"), "").unwrap();
    assert!(WasiCtx::builder().preopened_dir(folder.join("file"), "/", FsPerms::ReadWrite).is_err());
}

#[test]
fn files_are_written_and_read() {
    let folder = scratch("read-write");
    let mut guest = guest(&folder);
    let fd = guest.open(DIR, "a.txt", CREATE | EXCLUSIVE, FILE, 0).unwrap();
    assert_eq!(guest.put(fd, b"hello, world", None), Ok(12));
    assert_eq!(guest.tell(fd), Ok(12));
    assert_eq!(guest.seek(fd, 7, 0), Ok(7));
    assert_eq!(guest.take(fd, 100, None), Ok(b"world".to_vec()));
    assert_eq!(guest.take(fd, 100, None), Ok(vec![]), "the end");
    assert_eq!(guest.take(fd, 3, Some(1)), Ok(b"ell".to_vec()));
    assert_eq!(guest.put(fd, b"J", Some(0)), Ok(1));
    assert_eq!(guest.tell(fd), Ok(12), "neither moves");
    assert_eq!(guest.seek(fd, -5, 2), Ok(7));
    assert_eq!(guest.seek(fd, 3, 1), Ok(10));
    assert_eq!(guest.seek(fd, -11, 1), Err(INVAL), "before the start");
    assert_eq!(guest.seek(fd, -1, 0), Err(INVAL));
    assert_eq!(guest.seek(fd, 0, 3), Err(INVAL));
    assert_eq!(guest.take(fd, 1, Some(u64::MAX)), Err(INVAL));
    assert_eq!(fs::read(folder.join("a.txt")).unwrap(), b"Jello, world");

    assert_eq!(guest.call("fd_filestat_set_size", &[fd.into(), 5]), SUCCESS);
    assert_eq!(guest.stat(fd).unwrap().size, 5);
    assert_eq!(guest.call("fd_allocate", &[fd.into(), 3, 10]), SUCCESS);
    assert_eq!(fs::read(folder.join("a.txt")).unwrap(), b"Jello\0\0\0\0\0\0\0\0");
    assert_eq!(guest.call("fd_allocate", &[fd.into(), 0, 0]), INVAL);
    for advice in 0..6 {
        assert_eq!(guest.call("fd_advise", &[fd.into(), 0, 5, advice]), SUCCESS);
    }
    assert_eq!(guest.call("fd_advise", &[fd.into(), 0, 5, 6]), INVAL);
    assert_eq!(guest.call("fd_sync", &[fd.into()]), SUCCESS);
    assert_eq!(guest.call("fd_datasync", &[fd.into()]), SUCCESS);
    assert_eq!(guest.call("fd_sync", &[DIR.into()]), SUCCESS);
    guest.close(fd);
    assert_eq!(guest.take(fd, 1, None), Err(BADF));
}

#[test]
fn how_a_file_is_opened() {
    let folder = scratch("open");
    fs::write(folder.join("old"), "old").unwrap();
    fs::create_dir(folder.join("dir")).unwrap();
    symlink("old", folder.join("link")).unwrap();
    let mut guest = guest(&folder);
    assert_eq!(guest.open(DIR, "new", 0, FILE, 0), Err(NOENT));
    assert_eq!(guest.open(DIR, "", 0, FILE, 0), Err(NOENT));
    assert_eq!(guest.open(DIR, "old", CREATE | EXCLUSIVE, FILE, 0), Err(EXIST));
    assert_eq!(guest.open(DIR, "old", DIRECTORY, FILE, 0), Err(NOTDIR));
    assert_eq!(guest.open(DIR, "old/", 0, FILE, 0), Err(NOTDIR));
    assert_eq!(guest.open(DIR, "dir", 0, [WRITE, 0], 0), Err(ISDIR));
    assert_eq!(guest.open(DIR, "dir", CREATE | DIRECTORY, FILE, 0), Err(INVAL));
    assert_eq!(guest.open(DIR, "old", 16, FILE, 0), Err(INVAL));
    assert_eq!(guest.open(DIR, "old", 0, FILE, 32), Err(INVAL));
    assert_eq!(guest.open(DIR, "link", 0, FILE, 0), Err(LOOP), "links are not followed unless that is asked for");
    assert_eq!(guest.open(DIR, &"a".repeat(300), 0, FILE, 0), Err(NAMETOOLONG));
    assert_eq!(guest.open(DIR, "ol\0d", 0, FILE, 0), Err(INVAL));
    guest.write(4000, b"ol\xff");
    assert_eq!(guest.call("path_open", &[3, 0, 4000, 3, 0, ALL, 0, 0, 100]), ILSEQ);
    assert_eq!(guest.call("path_open", &[3, 2, 4000, 2, 0, ALL, 0, 0, 100]), INVAL, "no such lookup flag");
    assert_eq!(guest.lookup("path_open", DIR, true, "link", &[0, READ, 0, 0, 100]), Ok(()));

    // Created for reading only, by a call that requests only that right.
    let fd = guest.open(DIR, "empty", CREATE, [READ, 0], 0).unwrap();
    assert_eq!(guest.take(fd, 1, None), Ok(vec![]));
    assert_eq!(guest.put(fd, b"x", None), Err(NOTCAPABLE));
    assert_eq!(guest.open(DIR, "old", TRUNCATE, [0, 0], 0).map(|_| ()), Ok(()));
    assert_eq!(fs::read(folder.join("old")).unwrap(), b"");

    let fd = guest.open(DIR, "log", CREATE, FILE, APPEND).unwrap();
    guest.put(fd, b"one", None).unwrap();
    fs::write(folder.join("log"), "two, ").unwrap();
    guest.put(fd, b"three", None).unwrap();
    assert_eq!(guest.put(fd, b"T", Some(0)), Ok(1), "where it is told to");
    guest.put(fd, b"!", None).unwrap();
    assert_eq!(fs::read(folder.join("log")).unwrap(), b"Two, three!");
    assert_eq!(guest.call("fd_fdstat_set_flags", &[fd.into(), NONBLOCK.into()]), SUCCESS);
    guest.seek(fd, 0, 0).unwrap();
    guest.put(fd, b"2", None).unwrap();
    assert_eq!(fs::read(folder.join("log")).unwrap(), b"2wo, three!", "appends no longer");
    assert_eq!(guest.fdstat(fd).unwrap().1, NONBLOCK as u8);
    assert_eq!(guest.call("fd_fdstat_set_flags", &[fd.into(), SYNC.into()]), INVAL, "only when it is opened");

    let fd = guest.open(DIR, "safe", CREATE, FILE, DSYNC | SYNC).unwrap();
    assert_eq!(guest.put(fd, b"x", None), Ok(1));
    assert_eq!(guest.fdstat(fd).unwrap().1, (DSYNC | SYNC) as u8);
    assert_eq!(guest.call("fd_fdstat_set_flags", &[fd.into(), (DSYNC | SYNC | APPEND).into()]), SUCCESS);
}

#[test]
fn no_path_leads_out() {
    let outer = scratch("sandbox");
    let folder = outer.join("inner");
    fs::create_dir_all(folder.join("sub")).unwrap();
    fs::write(outer.join("secret"), "secret").unwrap();
    symlink("../secret", folder.join("up")).unwrap();
    symlink(outer.join("secret"), folder.join("absolute")).unwrap();
    symlink("..", folder.join("parent")).unwrap();
    symlink("sub/../../secret", folder.join("devious")).unwrap();
    let mut guest = guest(&folder);
    let absolute = outer.join("secret").to_str().unwrap().to_string();
    let escapes = ["..", "../secret", "sub/../../secret", "parent/secret", "/", "/etc/passwd", absolute.as_str()];
    for path in escapes.iter().chain(&["up", "absolute", "devious", "sub/../up"]) {
        assert_eq!(guest.lookup("path_open", DIR, true, path, &[0, READ, 0, 0, 100]), Err(PERM), "{path}");
        assert_eq!(guest.path_stat(DIR, true, path), Err(PERM), "{path}");
        assert_eq!(guest.lookup("path_filestat_set_times", DIR, true, path, &[0, 0, 10]), Err(PERM), "{path}");
    }
    for path in escapes {
        assert_eq!(guest.path("path_create_directory", DIR, &format!("{path}/new"), &[]), Err(PERM), "{path}");
        assert_ne!(guest.path("path_unlink_file", DIR, path, &[]), Ok(()), "{path}");
        assert_ne!(guest.path("path_remove_directory", DIR, path, &[]), Ok(()), "{path}");
        let [second, len] = guest.second(path);
        assert_ne!(guest.path("path_rename", DIR, "sub", &[3, second, len]), Ok(()), "{path}");
        assert_ne!(guest.lookup("path_link", DIR, false, "up", &[3, second, len]), Ok(()), "{path}");
        let [second, len] = guest.second("got");
        assert_ne!(guest.path("path_rename", DIR, path, &[3, second, len]), Ok(()), "{path}");
    }
    let [absolute_path, len] = guest.second("/etc/passwd");
    guest.write(4000, b"new");
    assert_eq!(guest.call("path_symlink", &[absolute_path, len, 3, 4000, 3]), PERM, "an absolute link");
    assert_eq!(guest.path("path_readlink", DIR, "absolute", &[9000, 100, 100]), Err(PERM), "is not told");
    assert_eq!(guest.path("path_readlink", DIR, "up", &[9000, 100, 100]), Ok(()));
    assert_eq!((guest.word(100), guest.read(9000, 9)), (9, b"../secret".to_vec()));

    let sub = guest.open(DIR, "sub", DIRECTORY, [OF_DIRECTORY, ALL], 0).unwrap();
    assert_eq!(guest.path_stat(sub, true, "../up"), Err(PERM), "not even into the directory that it is in");
    assert_eq!(fs::read(outer.join("secret")).unwrap(), b"secret");
    assert_eq!(fs::read_dir(&outer).unwrap().count(), 2);
}

#[test]
fn directories_are_listed() {
    let folder = scratch("list");
    let mut guest = guest(&folder);
    for i in 0..100 {
        fs::write(folder.join(format!("file{i}")), "").unwrap();
    }
    fs::create_dir(folder.join("sub")).unwrap();
    symlink("sub", folder.join("link")).unwrap();

    let (entries, more) = guest.list(DIR, 0, 40000).unwrap();
    assert_eq!((entries.len(), more), (104, false));
    assert_eq!(entries[0], (1, guest.stat(DIR).unwrap().inode, IS_DIRECTORY, ".".into()));
    assert_eq!(entries[1], (2, 0, IS_DIRECTORY, "..".into()), "which the guest may not know");
    let find = |name: &str| entries.iter().find(|entry| entry.3 == name).unwrap().clone();
    assert_eq!((find("sub").2, find("link").2, find("file7").2), (IS_DIRECTORY, IS_LINK, IS_FILE));
    assert_eq!(find("file7").1, guest.path_stat(DIR, false, "file7").unwrap().inode);

    // In small pieces, while listed files are removed.
    let (mut names, mut cookie) = (Vec::new(), 0);
    loop {
        let (entries, more) = guest.list(DIR, cookie, 100).unwrap();
        for (next, _, _, name) in entries {
            if name.starts_with("file") {
                guest.path("path_unlink_file", DIR, &name, &[]).unwrap();
            }
            names.push(name);
            cookie = next;
        }
        if !more {
            break;
        }
    }
    let expected: Vec<String> = entries.iter().map(|entry| entry.3.clone()).collect();
    assert_eq!(names, expected);
    assert_eq!(guest.list(DIR, 0, 40000).unwrap().0.len(), 4, "from the start it is looked at anew");
    assert_eq!(guest.list(DIR, 4, 40000), Ok((vec![], false)));
    assert_eq!(guest.list(DIR, u64::MAX, 40000), Ok((vec![], false)));
    assert_eq!(guest.list(DIR, 0, 0), Ok((vec![], true)));
    assert_eq!(guest.list(DIR, 1, 24), Ok((vec![], true)), "the name does not fit");

    assert_eq!(guest.call("fd_readdir", &[DIR.into(), 65000, 1000, 0, 100]), FAULT);
    assert_eq!(guest.call("fd_readdir", &[DIR.into(), 0, 100, 0, 65533]), FAULT);
    let fd = guest.open(DIR, "file", CREATE, FILE, 0).unwrap();
    assert_eq!(guest.list(fd, 0, 100), Err(NOTDIR));
    for (name, rest) in
        [("fd_read", &[0, 0, 100][..]), ("fd_write", &[0, 0, 100]), ("fd_seek", &[0, 0, 100]), ("fd_tell", &[100])]
    {
        assert_eq!(guest.call(name, &[&[3], rest].concat()), ISDIR, "{name}");
    }
    assert_eq!(guest.call("fd_filestat_set_size", &[3, 0]), ISDIR);
}

#[test]
fn directories_are_made_and_removed() {
    let folder = scratch("directories");
    let mut guest = guest(&folder);
    assert_eq!(guest.path("path_create_directory", DIR, "a", &[]), Ok(()));
    assert_eq!(guest.path("path_create_directory", DIR, "a", &[]), Err(EXIST));
    assert_eq!(guest.path("path_create_directory", DIR, "b/c", &[]), Err(NOENT));
    let a = guest.open(DIR, "a", DIRECTORY, [OF_DIRECTORY, ALL], 0).unwrap();
    assert_eq!(guest.fdstat(a).unwrap().0, IS_DIRECTORY);
    assert_eq!(guest.path("path_create_directory", a, "b/", &[]), Ok(()));
    assert!(folder.join("a/b").is_dir());
    assert_eq!(guest.path("path_remove_directory", DIR, "a", &[]), Err(NOTEMPTY));
    assert_eq!(guest.path("path_unlink_file", DIR, "a", &[]), Err(ISDIR));
    assert_eq!(guest.path("path_remove_directory", a, "b", &[]), Ok(()));
    assert_eq!(guest.path("path_remove_directory", DIR, "a", &[]), Ok(()));
    assert_eq!(guest.open(a, "x", CREATE, FILE, 0), Err(NOENT), "it is gone");
    fs::write(folder.join("file"), "").unwrap();
    assert_eq!(guest.path("path_remove_directory", DIR, "file", &[]), Err(NOTDIR));
    assert_eq!(guest.path("path_unlink_file", DIR, "file/", &[]), Err(NOTDIR));
    assert_eq!(guest.path("path_unlink_file", DIR, "file", &[]), Ok(()));
    assert_eq!(guest.path("path_unlink_file", DIR, "file", &[]), Err(NOENT));
}

#[test]
fn links_and_renaming() {
    let folder = scratch("links");
    fs::write(folder.join("file"), "contents").unwrap();
    fs::create_dir(folder.join("dir")).unwrap();
    let mut guest = guest(&folder);
    let dir = guest.open(DIR, "dir", DIRECTORY, [OF_DIRECTORY, ALL], 0).unwrap();

    let [second, len] = guest.second("hard");
    assert_eq!(guest.lookup("path_link", DIR, false, "file", &[dir.into(), second, len]), Ok(()));
    assert_eq!(guest.lookup("path_link", DIR, false, "file", &[dir.into(), second, len]), Err(EXIST));
    assert_eq!(guest.lookup("path_link", DIR, true, "file", &[dir.into(), second, len]), Err(INVAL));
    assert_eq!(guest.lookup("path_link", DIR, false, "dir", &[dir.into(), second, len - 1]), Err(PERM), "a directory");
    let stat = guest.path_stat(dir, false, "hard").unwrap();
    assert_eq!((stat.file_type, stat.links, stat.size), (IS_FILE, 2, 8));
    assert_eq!(guest.path_stat(DIR, false, "file"), Ok(stat));

    let [target, target_len] = guest.second("../file");
    guest.write(4000, b"soft");
    let soft = [target, target_len, dir.into(), 4000, 4];
    assert_eq!(guest.call("path_symlink", &soft), SUCCESS);
    assert_eq!(guest.call("path_symlink", &soft), EXIST);
    let stat = guest.path_stat(dir, false, "soft").unwrap();
    assert_eq!((stat.file_type, stat.size), (IS_LINK, 7));
    assert_eq!(guest.path_stat(DIR, true, "dir/soft").map(|stat| stat.size), Ok(8));
    assert_eq!(guest.path_stat(dir, true, "soft"), Err(PERM), "through the directory it leads out");
    assert_eq!(guest.path("path_readlink", dir, "soft", &[9000, 4, 100]), Ok(()));
    assert_eq!((guest.word(100), guest.read(9000, 5)), (4, b"../f\0".to_vec()), "cut off");
    assert_eq!(guest.path("path_readlink", DIR, "file", &[9000, 4, 100]), Err(INVAL));
    symlink("loop", folder.join("loop")).unwrap();
    assert_eq!(guest.path_stat(DIR, true, "loop"), Err(LOOP));

    let [second, len] = guest.second("moved");
    assert_eq!(guest.path("path_rename", DIR, "file", &[dir.into(), second, len]), Ok(()));
    assert_eq!(guest.path("path_rename", DIR, "file", &[dir.into(), second, len]), Err(NOENT));
    assert_eq!(guest.path("path_rename", DIR, "dir", &[dir.into(), second, len]), Err(INVAL), "into itself");
    assert_eq!(fs::read(folder.join("dir/moved")).unwrap(), b"contents");
}

#[test]
fn times_are_set() {
    const SECOND: u64 = 1_000_000_000;
    let folder = scratch("times");
    fs::write(folder.join("file"), "").unwrap();
    symlink("file", folder.join("link")).unwrap();
    let mut guest = guest(&folder);
    let fd = guest.open(DIR, "file", 0, FILE, 0).unwrap();
    let times = |stat: Stat| (stat.access, stat.modification);

    assert_eq!(guest.call("fd_filestat_set_times", &[fd.into(), SECOND + 5, 2 * SECOND, 1 | 4]), SUCCESS);
    assert_eq!(guest.stat(fd).map(times), Ok((SECOND + 5, 2 * SECOND)));
    assert_eq!(guest.call("fd_filestat_set_times", &[fd.into(), 0, 3 * SECOND, 4]), SUCCESS);
    assert_eq!(guest.path_stat(DIR, false, "file").map(times), Ok((SECOND + 5, 3 * SECOND)), "one is left alone");
    assert_eq!(guest.lookup("path_filestat_set_times", DIR, true, "link", &[7 * SECOND, 0, 1]), Ok(()));
    assert_eq!(guest.stat(fd).map(times), Ok((7 * SECOND, 3 * SECOND)));
    assert_eq!(guest.lookup("path_filestat_set_times", DIR, false, "link", &[8 * SECOND, 9 * SECOND, 1 | 4]), Ok(()));
    assert_eq!(guest.path_stat(DIR, false, "link").map(times), Ok((8 * SECOND, 9 * SECOND)), "the link's own");
    assert_eq!(guest.stat(fd).map(times), Ok((7 * SECOND, 3 * SECOND)));
    assert_eq!(guest.call("fd_filestat_set_times", &[fd.into(), 0, 0, 2 | 8]), SUCCESS);
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let (access, modification) = guest.stat(fd).map(times).unwrap();
    assert!(now.abs_diff(access) < 60 * SECOND && now.abs_diff(modification) < 60 * SECOND);
    assert_eq!(guest.call("fd_filestat_set_times", &[fd.into(), 0, 0, 1 | 2]), INVAL);
    assert_eq!(guest.call("fd_filestat_set_times", &[fd.into(), 0, 0, 4 | 8]), INVAL);
    assert_eq!(guest.call("fd_filestat_set_times", &[fd.into(), 0, 0, 16]), INVAL);
    assert_eq!(guest.call("fd_filestat_set_times", &[DIR.into(), 0, SECOND, 4]), SUCCESS, "a directory's");
    assert_eq!(guest.stat(DIR).map(|stat| stat.modification), Ok(SECOND));
}

#[test]
fn rights_are_given_up_and_never_gained() {
    let folder = scratch("rights");
    fs::write(folder.join("file"), "contents").unwrap();
    fs::create_dir(folder.join("sub")).unwrap();
    let mut guest = guest(&folder);
    let (file_type, flags, base, inheriting) = guest.fdstat(DIR).unwrap();
    assert_eq!((file_type, flags, inheriting), (IS_DIRECTORY, 0, ALL));
    assert_eq!(base & (READ | WRITE | SEEK | SET_SIZE), 0, "what is not for directories");

    // Unknown rights are ignored, and rights that have no meaning for a file are not given.
    let fd = guest.open(DIR, "file", 0, [u64::MAX, u64::MAX], 0).unwrap();
    let (file_type, _, rights, inheriting) = guest.fdstat(fd).unwrap();
    assert_eq!((file_type, rights & CREATE_FILE, inheriting), (IS_FILE, 0, 0));
    assert_eq!(rights & (READ | WRITE | SEEK | TELL), READ | WRITE | SEEK | TELL);
    assert_eq!(guest.call("fd_fdstat_set_rights", &[fd.into(), READ, 0]), SUCCESS);
    assert_eq!(guest.fdstat(fd).unwrap().2, READ);
    assert_eq!(guest.put(fd, b"x", None), Err(NOTCAPABLE));
    assert_eq!(guest.take(fd, 3, None), Ok(b"con".to_vec()));
    assert_eq!(guest.take(fd, 3, Some(0)), Err(NOTCAPABLE), "needs the right to seek");
    assert_eq!(guest.tell(fd), Err(NOTCAPABLE));
    assert_eq!(guest.call("fd_fdstat_set_rights", &[fd.into(), READ | WRITE, 0]), NOTCAPABLE);

    // Rights that a directory cannot pass on.
    let sub = guest.open(DIR, "sub", DIRECTORY, [OF_DIRECTORY, READ], 0).unwrap();
    fs::write(folder.join("sub/file"), "").unwrap();
    assert_eq!(guest.open(sub, "file", 0, [READ | WRITE, 0], 0), Err(NOTCAPABLE));
    assert_eq!(guest.open(sub, "file", 0, [READ, WRITE], 0), Err(NOTCAPABLE));
    assert!(guest.open(sub, "file", 0, [READ, 0], 0).is_ok());
    let without = guest.fdstat(sub).unwrap().2 & !(CREATE_FILE | PATH_SET_SIZE);
    assert_eq!(guest.call("fd_fdstat_set_rights", &[sub.into(), without, READ]), SUCCESS);
    assert_eq!(guest.open(sub, "new", CREATE, [READ, 0], 0), Err(NOTCAPABLE));
    assert_eq!(guest.open(sub, "file", TRUNCATE, [READ, 0], 0), Err(NOTCAPABLE));
    assert_eq!(guest.call("fd_fdstat_set_rights", &[sub.into(), 0, 0]), SUCCESS);
    for (name, rest) in [
        ("path_create_directory", &[][..]),
        ("path_remove_directory", &[]),
        ("path_unlink_file", &[]),
        ("path_readlink", &[9000, 4, 100]),
        ("path_rename", &[3, 4000, 1]),
    ] {
        assert_eq!(guest.path(name, sub, "file", rest), Err(NOTCAPABLE), "{name}");
    }
    assert_eq!(guest.path_stat(sub, true, "file"), Err(NOTCAPABLE));
    assert_eq!(guest.lookup("path_filestat_set_times", sub, true, "file", &[0, 0, 0]), Err(NOTCAPABLE));
    assert_eq!(guest.lookup("path_link", sub, false, "file", &[3, 4000, 1]), Err(NOTCAPABLE));
    assert_eq!(guest.call("path_symlink", &[4000, 1, sub.into(), 4000, 1]), NOTCAPABLE);
    assert_eq!(guest.stat(sub), Err(NOTCAPABLE));
    assert_eq!(guest.list(sub, 0, 100), Err(NOTCAPABLE));
}

#[test]
fn a_folder_can_be_opened_for_reading_only() {
    let folder = scratch("read-only");
    fs::create_dir(folder.join("sub")).unwrap();
    fs::write(folder.join("sub/file"), "contents").unwrap();
    let mut guest = Guest::new(WasiCtx::builder().preopened_dir(&folder, "/", FsPerms::ReadOnly).unwrap());
    let (_, _, base, inheriting) = guest.fdstat(DIR).unwrap();
    let sub = guest.open(DIR, "sub", DIRECTORY, [base, inheriting], 0).unwrap();
    let fd = guest.open(sub, "file", 0, [inheriting, 0], 0).unwrap();
    assert_eq!(guest.take(fd, 100, None), Ok(b"contents".to_vec()));
    assert_eq!(guest.put(fd, b"x", None), Err(NOTCAPABLE));
    assert_eq!(guest.open(sub, "file", 0, [WRITE, 0], 0), Err(NOTCAPABLE));
    assert_eq!(guest.open(sub, "file", TRUNCATE, [READ, 0], 0), Err(NOTCAPABLE));
    assert_eq!(guest.open(sub, "new", CREATE, [READ, 0], 0), Err(NOTCAPABLE));
    assert_eq!(guest.path("path_unlink_file", sub, "file", &[]), Err(NOTCAPABLE));
    assert_eq!(guest.path("path_create_directory", DIR, "new", &[]), Err(NOTCAPABLE));
    assert_eq!(guest.call("fd_filestat_set_times", &[fd.into(), 0, 0, 8]), NOTCAPABLE);
    assert_eq!(guest.list(sub, 0, 1000).unwrap().0.len(), 3);
}

#[test]
fn the_highest_free_number_is_used_again() {
    let folder = scratch("numbers");
    fs::write(folder.join("a"), "a").unwrap();
    fs::write(folder.join("b"), "b").unwrap();
    let mut guest = guest(&folder);
    let [a, b] = ["a", "b"].map(|name| guest.open(DIR, name, 0, [READ | SEEK, 0], 0).unwrap());
    assert_eq!((a, b), (4, 5));
    assert_eq!(guest.call("fd_renumber", &[b.into(), a.into()]), SUCCESS);
    assert_eq!(guest.take(a, 1, None), Ok(b"b".to_vec()));
    assert_eq!(guest.take(b, 1, None), Err(BADF));
    assert_eq!(guest.open(DIR, "a", 0, [READ, 0], 0), Ok(b));
    guest.close(0);
    assert_eq!(guest.open(DIR, "a", 0, [READ, 0], 0), Ok(0), "as a program expects that redirects its input");
    guest.close(1);
    guest.close(a);
    assert_eq!(guest.open(DIR, "a", 0, [READ, 0], 0), Ok(a), "a closed stdout is not the next file");
    assert_eq!(guest.open(DIR, "a", 0, [READ, 0], 0), Ok(1));
    guest.close(DIR);
    assert_eq!(guest.open(DIR, "a", 0, [READ, 0], 0), Err(BADF));
}

/// Whatever a guest passes, calls return an error number and change nothing outside the directory.
#[test]
fn hostile_paths() {
    let outer = scratch("hostile");
    let folder = outer.join("inner");
    fs::create_dir_all(folder.join("d/d/d")).unwrap();
    fs::write(outer.join("f"), "untouched").unwrap();
    symlink("..", folder.join("l")).unwrap();
    let mut guest = guest(&folder);
    let parts = ["..", ".", "d", "l", "f", "", "\u{e9}", "\0"];
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    for _ in 0..3000 {
        let mut path = || (0..next(5)).map(|_| parts[next(8) as usize]).collect::<Vec<_>>().join("/");
        let (first, second) = (path(), path());
        let [at, len] = guest.second(&second);
        let _ = match next(9) {
            0 => guest.open(DIR, &first, next(16) as u32, [ALL, ALL], 0).map(|fd| guest.close(fd)),
            1 => guest.path("path_create_directory", DIR, &first, &[]),
            2 => guest.path("path_remove_directory", DIR, &first, &[]),
            3 => guest.path("path_unlink_file", DIR, &first, &[]),
            4 => guest.path("path_rename", DIR, &first, &[3, at, len]),
            5 => guest.lookup("path_link", DIR, false, &first, &[3, at, len]),
            6 => guest.path_stat(DIR, next(2) == 0, &first).map(|_| ()),
            7 => guest.path("path_readlink", DIR, &first, &[9000, 64, 100]),
            _ => guest.lookup("path_filestat_set_times", DIR, next(2) == 0, &first, &[0, 0, 10]),
        };
    }
    let left: Vec<_> = fs::read_dir(&outer).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(fs::read(outer.join("f")).unwrap(), b"untouched");
}
