//! Cases of files by name.

use super::common::*;
use super::working::*;

#[test]
fn names_are_used_again() {
    let mut guest = guest("dangling");
    create(&mut guest, ROOT, "file");
    let file = guest.open(ROOT, "file", 0, NONE, 0).unwrap();
    guest.close(file);
    guest.unlink(ROOT, "file").unwrap();
    create(&mut guest, ROOT, "file");
    guest.unlink(ROOT, "file").unwrap();
    guest.make_dir(ROOT, "folder").unwrap();
    let folder = guest.open(ROOT, "folder", DIRECTORY, NONE, 0).unwrap();
    guest.close(folder);
    guest.remove_dir(ROOT, "folder").unwrap();
    guest.make_dir(ROOT, "folder").unwrap();
}

#[test]
fn links_to_nothing_and_to_themselves() {
    let (mut guest, dir) = working("dangling-links");
    guest.symlink(dir, "target", "link").unwrap();
    assert!([NOTDIR, LOOP].contains(&guest.open(dir, "link", DIRECTORY, NONE, 0).unwrap_err()));
    assert_eq!(guest.open(dir, "link", 0, NONE, 0), Err(LOOP));
    guest.unlink(dir, "link").unwrap();
    guest.symlink(dir, "link", "link").unwrap();
    assert_eq!(guest.open(dir, "link", 0, NONE, 0), Err(LOOP));
    guest.unlink(dir, "link").unwrap();
    finish(guest, dir);
}

#[test]
fn listing() {
    let (mut guest, dir) = working("listing");
    let identity = guest.stat(dir).unwrap().inode;
    let (entries, more) = guest.list(dir, 0, 256).unwrap();
    assert!(!more);
    assert_eq!((entries.len(), &*entries[0].3, &*entries[1].3), (2, ".", ".."));
    assert_eq!((entries[0].1, entries[0].2, entries[1].2), (identity, DIRECTORY_TYPE, DIRECTORY_TYPE));

    let file = guest.open(dir, "file", CREATE, [FD_READ | FD_WRITE | FD_READDIR | FD_FILESTAT_GET, 0], 0).unwrap();
    let inode = guest.stat(file).unwrap().inode;
    guest.close(file);
    let (entries, more) = guest.list(dir, 0, 256).unwrap();
    assert!(!more && entries.len() == 3);
    let found = entries.iter().find(|entry| entry.3 == "file").unwrap();
    assert_eq!((found.1, found.2), (inode, REGULAR_FILE));
    let (rest, more) = guest.list(dir, entries[1].0, 256).unwrap();
    assert_eq!((&rest[..], more), (&entries[2..], false));
    guest.unlink(dir, "file").unwrap();

    for i in 0..1000 {
        create(&mut guest, dir, &format!("file.{i}"));
    }
    let (mut seen, mut cookie) = (Vec::new(), 0);
    loop {
        let (entries, more) = guest.list(dir, cookie, 256).unwrap();
        cookie = entries.last().map_or(cookie, |entry| entry.0);
        seen.extend(entries.into_iter().map(|entry| entry.3));
        if !more {
            break;
        }
    }
    assert_eq!(seen.len(), 1002);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 1002, "each once");
    for i in 0..1000 {
        guest.unlink(dir, &format!("file.{i}")).unwrap();
    }
    finish(guest, dir);
}

#[test]
fn entries_have_the_inodes_of_their_files() {
    let (mut guest, dir) = working("inodes");
    for name in ["file-0", "file-1"] {
        create(&mut guest, dir, name);
    }
    let (entries, _) = guest.list(dir, 0, 1000).unwrap();
    let mut inodes = Vec::new();
    for (_, inode, _, name) in entries.iter().filter(|entry| !entry.3.starts_with('.')) {
        assert_eq!(guest.path_stat(dir, false, name).unwrap().inode, *inode);
        inodes.push(*inode);
    }
    assert_eq!(inodes.len(), 2);
    assert_ne!(inodes[0], inodes[1]);
    let stats = ["file-0", "file-1"].map(|name| {
        let file = guest.open(dir, name, 0, [FD_READ | FD_FILESTAT_GET, 0], 0).unwrap();
        guest.stat(file).unwrap()
    });
    assert_eq!(stats[0].device, stats[1].device);
    assert_ne!(stats[0].inode, stats[1].inode);
}

#[test]
fn paths() {
    let mut guest = guest("paths");
    guest.make_dir(ROOT, "base").unwrap();
    let rights = [
        FD_FILESTAT_GET
            | FD_READDIR
            | PATH_CREATE_FILE
            | PATH_CREATE_DIRECTORY
            | PATH_REMOVE_DIRECTORY
            | PATH_OPEN
            | PATH_UNLINK_FILE,
        FD_READ | FD_WRITE | FD_READDIR | FD_FILESTAT_GET | FD_SEEK,
    ];
    let dir = guest.open(ROOT, "base", DIRECTORY, rights, 0).unwrap();
    guest.make_dir(dir, "dir").unwrap();
    guest.make_dir(dir, "dir/nested").unwrap();
    create(&mut guest, dir, "dir/nested/file");
    let open = |guest: &mut Guest, path: &str| guest.open(dir, path, 0, NONE, 0).map(|fd| guest.close(fd));
    assert!([PERM, NOTCAPABLE].contains(&open(&mut guest, "/dir/nested/file").unwrap_err()));
    open(&mut guest, "dir/.//nested/../../dir/nested/../nested///./file").unwrap();
    assert!([INVAL, ILSEQ, NOENT].contains(&open(&mut guest, "dir/nested/file\0").unwrap_err()));
    for path in ["dir/nested/file/", "dir/nested/file///"] {
        assert!([NOTDIR, NOENT].contains(&open(&mut guest, path).unwrap_err()), "{path}");
    }
    open(&mut guest, "dir/nested/").unwrap();
    open(&mut guest, "dir/nested///").unwrap();
    assert!([PERM, NOTCAPABLE].contains(&open(&mut guest, "dir/nested/../../../base/dir/nested/file").unwrap_err()));
    guest.unlink(dir, "dir/nested/file").unwrap();
    guest.remove_dir(dir, "dir/nested").unwrap();
    guest.remove_dir(dir, "dir").unwrap();
    finish(guest, dir);
}

#[test]
fn links_that_are_not_followed() {
    let (mut guest, dir) = working("not-followed");
    guest.make_dir(dir, "target").unwrap();
    guest.symlink(dir, "target", "link").unwrap();
    assert!([LOOP, NOTDIR].contains(&guest.open(dir, "link", DIRECTORY, NONE, 0).unwrap_err()));
    assert!([LOOP, ACCES].contains(&guest.open(dir, "link", 0, NONE, 0).unwrap_err()));
    let opened = guest.open_at(dir, true, "link", DIRECTORY, NONE, 0).unwrap();
    guest.close(opened);
    guest.unlink(dir, "link").unwrap();
    guest.remove_dir(dir, "target").unwrap();

    create(&mut guest, dir, "target");
    guest.symlink(dir, "target", "link").unwrap();
    assert!([LOOP, NOTDIR].contains(&guest.open(dir, "link", DIRECTORY, NONE, 0).unwrap_err()));
    assert_eq!(guest.open(dir, "link", 0, NONE, 0), Err(LOOP));
    assert_eq!(guest.open_at(dir, true, "link", DIRECTORY, NONE, 0), Err(NOTDIR));
    let opened = guest.open_at(dir, true, "link", 0, NONE, 0).unwrap();
    guest.close(opened);
    guest.unlink(dir, "target").unwrap();
    guest.unlink(dir, "link").unwrap();
    assert!(guest.symlink(dir, "/", "link").is_err(), "a link to the root");
    finish(guest, dir);
}

#[test]
fn types_by_path() {
    let (mut guest, dir) = working("types");
    guest.make_dir(dir, "sub").unwrap();
    create(&mut guest, dir, "sub/file");
    guest.symlink(dir, "sub/file", "link1").unwrap();
    guest.symlink(dir, "sub", "link2").unwrap();
    let kind = |guest: &mut Guest, follow, path: &str| guest.path_stat(dir, follow, path).unwrap().file_type;
    let cases = [
        ("sub", DIRECTORY_TYPE, DIRECTORY_TYPE),
        ("sub/file", REGULAR_FILE, REGULAR_FILE),
        ("link1", SYMBOLIC_LINK, REGULAR_FILE),
        ("link2", SYMBOLIC_LINK, DIRECTORY_TYPE),
    ];
    for (path, itself, followed) in cases {
        assert_eq!((kind(&mut guest, false, path), kind(&mut guest, true, path)), (itself, followed), "{path}");
    }
    for path in ["link1", "link2", "sub/file"] {
        guest.unlink(dir, path).unwrap();
    }
    guest.remove_dir(dir, "sub").unwrap();
    finish(guest, dir);
}

#[test]
fn metadata_by_path() {
    let (mut guest, dir) = working("metadata");
    assert_ne!(guest.fdstat(dir).unwrap().2 & PATH_FILESTAT_GET, 0);
    let rights = FD_READ | FD_WRITE | PATH_FILESTAT_GET;
    let file = guest.open(dir, "file", CREATE, [rights, 0], APPEND | SYNC).unwrap();
    assert_eq!(u32::from(guest.fdstat(file).unwrap().1), APPEND | SYNC);
    let stat = guest.path_stat(dir, false, "file").unwrap();
    assert_eq!(stat.size, 0);
    let earlier = stat.modification - 100;
    guest.set_times(dir, false, "file", earlier, MODIFICATION).unwrap();
    assert_eq!(guest.path_stat(dir, false, "file").unwrap().modification, earlier);
    assert_eq!(guest.set_times(dir, false, "file", earlier, MODIFICATION | MODIFICATION_NOW), Err(INVAL));
    assert_eq!(guest.set_times(dir, false, "file", 0, ACCESS | ACCESS_NOW), Err(INVAL));
    assert_eq!(guest.path_stat(dir, false, "file").unwrap().modification, earlier);
    guest.close(file);
    guest.unlink(dir, "file").unwrap();
    finish(guest, dir);
}

#[test]
fn times_of_links() {
    let (mut guest, dir) = working("link-times");
    create(&mut guest, dir, "file");
    let file = guest.path_stat(dir, false, "file").unwrap();
    guest.symlink(dir, "file", "link").unwrap();
    let link = guest.path_stat(dir, false, "link").unwrap();
    guest.set_times(dir, false, "link", link.modification - 200, MODIFICATION).unwrap();
    assert_eq!(guest.path_stat(dir, false, "link").unwrap().modification, link.modification - 200);
    assert_eq!(guest.path_stat(dir, false, "file").unwrap().modification, file.modification);
    assert_eq!(guest.path_stat(dir, true, "link").unwrap().modification, file.modification);
    guest.set_times(dir, true, "link", link.modification, MODIFICATION).unwrap();
    assert_eq!(guest.path_stat(dir, false, "file").unwrap().modification, link.modification);
    guest.unlink(dir, "link").unwrap();
    guest.unlink(dir, "file").unwrap();
    finish(guest, dir);
}

#[test]
fn hard_links() {
    let (mut guest, dir) = working("hard-links");
    let rights = FD_READ | PATH_LINK_SOURCE | PATH_LINK_TARGET | FD_FILESTAT_GET | PATH_OPEN | PATH_UNLINK_FILE;
    let file = guest.open(dir, "file", CREATE, [rights, rights], 0).unwrap();
    let same = |guest: &mut Guest, dir: u32| {
        let link = guest.open(dir, "link", 0, [rights, rights], 0).unwrap();
        assert_eq!(guest.stat(file).unwrap(), guest.stat(link).unwrap());
        assert_eq!(guest.fdstat(file).unwrap(), guest.fdstat(link).unwrap());
        guest.close(link);
        guest.unlink(dir, "link").unwrap();
    };
    guest.link(dir, false, "file", dir, "link").unwrap();
    same(&mut guest, dir);
    guest.make_dir(dir, "sub").unwrap();
    let sub = guest.open(dir, "sub", DIRECTORY, [rights, rights], 0).unwrap();
    guest.link(dir, false, "file", sub, "link").unwrap();
    same(&mut guest, sub);
    guest.close(file);
    guest.close(sub);

    create(&mut guest, dir, "link");
    assert_eq!(guest.link(dir, false, "file", dir, "link"), Err(EXIST));
    guest.unlink(dir, "link").unwrap();
    assert_eq!(guest.link(dir, false, "file", dir, "file"), Err(EXIST));
    guest.make_dir(dir, "link").unwrap();
    assert_eq!(guest.link(dir, false, "file", dir, "link"), Err(EXIST));
    guest.remove_dir(dir, "link").unwrap();
    assert!([PERM, ACCES].contains(&guest.link(dir, false, "sub", dir, "link").unwrap_err()));
    guest.remove_dir(dir, "sub").unwrap();
    assert_eq!(guest.link(dir, false, "file", dir, "link/"), Err(NOENT));

    for target in ["target", "symlink"] {
        guest.symlink(dir, target, "symlink").unwrap();
        guest.link(dir, false, "symlink", dir, "link").unwrap();
        guest.unlink(dir, "symlink").unwrap();
        guest.unlink(dir, "link").unwrap();
    }
    guest.symlink(dir, "target", "symlink").unwrap();
    assert_eq!(guest.link(dir, false, "file", dir, "symlink"), Err(EXIST));
    assert!([INVAL, NOENT].contains(&guest.link(dir, true, "symlink", dir, "link").unwrap_err()));
    guest.unlink(dir, "symlink").unwrap();
    guest.unlink(dir, "file").unwrap();
    finish(guest, dir);
}

#[test]
fn opening_what_exists_and_what_does_not() {
    let (mut guest, dir) = working("opening");
    assert_eq!(guest.open(dir, "file", 0, NONE, 0), Err(NOENT));
    create(&mut guest, dir, "file");
    assert_eq!(guest.open(dir, "file", CREATE | EXCLUSIVE, NONE, 0), Err(EXIST));
    let file = guest.open(dir, "file", 0, NONE, 0).unwrap();
    assert!([NOTDIR, NOTCAPABLE].contains(&guest.open(file, "other", CREATE, NONE, 0).unwrap_err()));
    guest.close(file);
    guest.unlink(dir, "file").unwrap();
    let again = guest.open(ROOT, ".", 0, NONE, NONBLOCK).unwrap();
    guest.close(again);
    finish(guest, dir);
}

#[test]
fn rights_of_preopened_directories() {
    let mut guest = guest("preopened");
    assert_eq!(guest.call("fd_prestat_get", &[3, 1000]), SUCCESS);
    assert_eq!((guest.word(1000), guest.word(1004)), (0, 1));
    assert_eq!(guest.call("fd_prestat_dir_name", &[3, 2000, 1]), SUCCESS);
    assert_eq!(guest.read(2000, 1), b"/");
    let (_, _, base, inheriting) = guest.fdstat(ROOT).unwrap();
    assert_eq!(base & PREOPENED, PREOPENED);
    assert_eq!(inheriting & (PREOPENED | OF_FILES), PREOPENED | OF_FILES);
    let cases = [(0, [base, inheriting]), (0, NONE), (DIRECTORY, NONE), (DIRECTORY, [FD_READ, 0])];
    for (how, rights) in cases {
        let opened = guest.open(ROOT, ".", how, rights, 0).unwrap();
        guest.close(opened);
    }
    assert_eq!(guest.open(ROOT, ".", DIRECTORY, [FD_READ | FD_WRITE, 0], 0), Err(ISDIR));
    assert_eq!(guest.open(ROOT, ".", 0, [FD_READ | FD_WRITE, 0], 0), Err(ISDIR));
}

#[test]
fn renaming() {
    let (mut guest, dir) = working("renaming");
    let renamed = |guest: &mut Guest, how| {
        guest.rename(dir, "source", "target").unwrap();
        assert_eq!(guest.open(dir, "source", how, NONE, 0), Err(NOENT));
        let target = guest.open(dir, "target", how, NONE, 0).unwrap();
        guest.close(target);
    };
    guest.make_dir(dir, "source").unwrap();
    renamed(&mut guest, DIRECTORY);
    guest.make_dir(dir, "source").unwrap();
    renamed(&mut guest, DIRECTORY);
    guest.make_dir(dir, "source").unwrap();
    create(&mut guest, dir, "target/file");
    assert_eq!(guest.rename(dir, "source", "target"), Err(NOTEMPTY));
    assert_eq!(guest.rename(dir, "source", "target/file"), Err(NOTDIR));
    guest.unlink(dir, "target/file").unwrap();
    guest.remove_dir(dir, "source").unwrap();
    guest.remove_dir(dir, "target").unwrap();

    create(&mut guest, dir, "source");
    renamed(&mut guest, 0);
    create(&mut guest, dir, "source");
    renamed(&mut guest, 0);
    guest.unlink(dir, "target").unwrap();
    create(&mut guest, dir, "source");
    guest.make_dir(dir, "target").unwrap();
    assert_eq!(guest.rename(dir, "source", "target"), Err(ISDIR));
    guest.remove_dir(dir, "target").unwrap();
    guest.unlink(dir, "source").unwrap();
    finish(guest, dir);
}

#[test]
fn slashes_at_the_ends_of_names() {
    let (mut guest, dir) = working("slashes");
    guest.make_dir(dir, "source").unwrap();
    for (from, to) in [("source/", "target"), ("target", "source/"), ("source/", "target/"), ("target", "source")] {
        guest.rename(dir, from, to).unwrap_or_else(|errno| panic!("{from} to {to}: {errno}"));
    }
    for name in ["source", "source/", "source///"] {
        guest.remove_dir(dir, name).unwrap_or_else(|errno| panic!("{name}: {errno}"));
        guest.make_dir(dir, "source").unwrap();
    }
    for name in ["source", "source/"] {
        assert_eq!(guest.unlink(dir, name), Err(ISDIR));
        assert_eq!(guest.symlink(dir, "nothing", name), Err(EXIST));
    }
    guest.remove_dir(dir, "source").unwrap();
    assert_eq!(guest.symlink(dir, "nothing", "link/"), Err(NOENT));
    guest.symlink(dir, "nothing", "link").unwrap();
    guest.unlink(dir, "link").unwrap();

    create(&mut guest, dir, "file");
    assert_eq!(guest.remove_dir(dir, "file"), Err(NOTDIR));
    assert_eq!(guest.remove_dir(dir, "file/"), Err(NOTDIR));
    assert_eq!(guest.unlink(dir, "file/"), Err(NOTDIR));
    assert!([NOTDIR, EXIST].contains(&guest.symlink(dir, "nothing", "file/").unwrap_err()));
    assert_eq!(guest.symlink(dir, "nothing", "file"), Err(EXIST));
    guest.unlink(dir, "file").unwrap();
    finish(guest, dir);
}

#[test]
fn directories_that_are_not_empty_stay() {
    let (mut guest, dir) = working("not-empty");
    guest.make_dir(dir, "dir").unwrap();
    guest.make_dir(dir, "dir/nested").unwrap();
    assert_eq!(guest.remove_dir(dir, "dir"), Err(NOTEMPTY));
    guest.remove_dir(dir, "dir/nested").unwrap();
    guest.remove_dir(dir, "dir").unwrap();
    finish(guest, dir);
}

#[test]
fn targets_of_links() {
    let (mut guest, dir) = working("targets");
    create(&mut guest, dir, "target");
    guest.symlink(dir, "target", "link").unwrap();
    guest.write(5000, &[9; 10]);
    assert_eq!(guest.read_link(dir, "link", 10), Ok(6));
    assert_eq!(guest.read(5000, 10), b"target\x09\x09\x09\x09");
    assert_eq!(guest.read_link(dir, "link", 4), Ok(4));
    assert_eq!(guest.read(5000, 4), b"targ");
    guest.unlink(dir, "target").unwrap();
    guest.unlink(dir, "link").unwrap();
    finish(guest, dir);
}
