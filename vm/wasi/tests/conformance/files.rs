//! Cases of open files and descriptors.

use super::common::*;
use super::working::*;

#[test]
fn a_preopened_directory_is_closed() {
    let mut guest = guest("close-preopened");
    let (_, _, base, inheriting) = guest.fdstat(ROOT).unwrap();
    let again = guest.open(ROOT, ".", DIRECTORY, [base, inheriting], 0).unwrap();
    assert!(again > ROOT);
    guest.close(ROOT);
    assert_eq!(guest.fdstat(again).unwrap().0, DIRECTORY_TYPE);
    assert_eq!(guest.fdstat(ROOT), Err(BADF));
}

#[test]
fn operations_of_files_on_directories() {
    let mut guest = guest("directory-operations");
    assert_eq!(guest.stat(ROOT).unwrap().file_type, DIRECTORY_TYPE);
    assert_eq!(guest.call("fd_prestat_dir_name", &[3, 1000, 0]), NAMETOOLONG);
    assert_eq!(guest.call("fd_prestat_dir_name", &[3, 1000, 2]), SUCCESS);
    let refused = [ISDIR, BADF, NOTCAPABLE];
    for at in [None, Some(0)] {
        assert!(refused.contains(&guest.take(ROOT, 128, at).unwrap_err()));
        assert!(refused.contains(&guest.put(ROOT, &[0; 128], at).unwrap_err()));
    }
    for whence in [SET, CURRENT, END] {
        assert!(refused.contains(&guest.seek(ROOT, 0, whence).unwrap_err()));
    }
    assert!(refused.contains(&guest.tell(ROOT).unwrap_err()));
    assert!(refused.contains(&guest.call("fd_allocate", &[3, 0, 1])));
    assert!([ISDIR, INVAL, BADF, NOTCAPABLE].contains(&guest.call("fd_filestat_set_size", &[3, 0])));
}

#[test]
fn directories_have_no_position() {
    let mut guest = guest("directory-seek");
    guest.make_dir(ROOT, "folder").unwrap();
    let folder = guest.open(ROOT, "folder", DIRECTORY, [FD_SEEK, 0], 0).unwrap();
    assert!([ISDIR, BADF, NOTCAPABLE].contains(&guest.seek(folder, 0, CURRENT).unwrap_err()));
    let (kind, _, rights, _) = guest.fdstat(folder).unwrap();
    assert_eq!((kind, rights & FD_SEEK), (DIRECTORY_TYPE, 0));
    guest.close(folder);
    guest.remove_dir(ROOT, "folder").unwrap();
}

#[test]
fn sizes_of_files() {
    let (mut guest, dir) = working("sizes");
    let rights = FD_READ | FD_WRITE | FD_ADVISE | FD_FILESTAT_GET | FD_FILESTAT_SET_SIZE | FD_ALLOCATE;
    let file = guest.open(dir, "file", CREATE, [rights, 0], 0).unwrap();
    assert_eq!(guest.stat(file).unwrap().size, 0);
    assert_eq!(guest.call("fd_filestat_set_size", &[u64::from(file), 100]), SUCCESS);
    assert_eq!(guest.stat(file).unwrap().size, 100);
    assert_eq!(guest.call("fd_advise", &[u64::from(file), 10, 50, 0]), SUCCESS);
    assert_eq!(guest.stat(file).unwrap().size, 100, "advice changes nothing");
    for (at, len, size) in [(0, 100, 100), (10, 10, 100), (90, 20, 110), (110, 90, 200)] {
        assert_eq!(guest.call("fd_allocate", &[u64::from(file), at, len]), SUCCESS);
        assert_eq!(guest.stat(file).unwrap().size, size);
    }
    guest.close(file);
    guest.unlink(dir, "file").unwrap();
    let file = guest.open(dir, "file", CREATE, [rights, 0], 0).unwrap();
    assert_eq!(guest.call("fd_allocate", &[u64::from(file), 0, 100]), SUCCESS);
    assert_eq!(guest.stat(file).unwrap().size, 100, "allocating makes a file longer");
    guest.close(file);
    guest.unlink(dir, "file").unwrap();
    finish(guest, dir);
}

#[test]
fn times_of_files() {
    let (mut guest, dir) = working("times");
    let rights = FD_READ | FD_WRITE | FD_FILESTAT_GET | FD_FILESTAT_SET_SIZE | FD_FILESTAT_SET_TIMES;
    let file = guest.open(dir, "file", CREATE, [rights, 0], 0).unwrap();
    assert_eq!(guest.call("fd_filestat_set_size", &[u64::from(file), 100]), SUCCESS);
    let before = guest.stat(file).unwrap();
    let earlier = before.modification - 100;
    let set = |guest: &mut Guest, flags| guest.call("fd_filestat_set_times", &[u64::from(file), earlier, earlier, flags]);
    assert_eq!(set(&mut guest, MODIFICATION), SUCCESS);
    let after = guest.stat(file).unwrap();
    assert_eq!((after.size, after.modification, after.access), (100, earlier, before.access));
    assert_eq!(set(&mut guest, MODIFICATION | MODIFICATION_NOW), INVAL);
    assert_eq!(set(&mut guest, ACCESS | ACCESS_NOW), INVAL);
    guest.close(file);
    guest.unlink(dir, "file").unwrap();
    finish(guest, dir);
}

#[test]
fn rights_are_dropped_and_not_gained() {
    let (mut guest, dir) = working("rights");
    let all = FD_READ | FD_WRITE | FD_SEEK | FD_TELL;
    let file = guest.open(dir, "file", CREATE, [all, 0], 0).unwrap();
    assert_eq!(guest.put(file, &[0, 1, 2, 3], None), Ok(4));
    assert_eq!(guest.seek(file, 0, SET), Ok(0));
    assert_eq!(guest.take(file, 4, None), Ok(vec![0, 1, 2, 3]));
    let (_, _, base, inheriting) = guest.fdstat(file).unwrap();
    guest.set_rights(file, base & !(FD_READ | FD_WRITE), inheriting).unwrap();
    let (_, _, base, inheriting) = guest.fdstat(file).unwrap();
    assert_eq!(base & (FD_READ | FD_WRITE | FD_SEEK), FD_SEEK);
    assert!([BADF, NOTCAPABLE].contains(&guest.take(file, 4, None).unwrap_err()));
    assert!([BADF, NOTCAPABLE].contains(&guest.put(file, b"x", None).unwrap_err()));
    assert_eq!(guest.set_rights(file, base | all, inheriting | all), Err(NOTCAPABLE));
    guest.close(file);
    guest.unlink(dir, "file").unwrap();
    finish(guest, dir);
}

#[test]
fn appending_is_turned_off() {
    let (mut guest, dir) = working("append");
    let rights = FD_READ | FD_WRITE | FD_SEEK | FD_TELL | FD_FDSTAT_SET_FLAGS;
    let file = guest.open(dir, "file", CREATE, [rights, 0], APPEND).unwrap();
    let check = |guest: &mut Guest, written: u8, from: i64| {
        assert_eq!(guest.seek(file, 0, SET), Ok(0));
        assert_eq!(guest.put(file, &[written; 100], None), Ok(100));
        assert_eq!(guest.seek(file, from, SET), Ok(from as u64));
        assert_eq!(guest.take(file, 100, None), Ok(vec![written; 100]));
    };
    check(&mut guest, 9, 0);
    check(&mut guest, 1, 100);
    assert_eq!(guest.call("fd_fdstat_set_flags", &[u64::from(file), 0]), SUCCESS);
    check(&mut guest, 2, 0);
    guest.close(file);
    assert_eq!(guest.path_stat(dir, false, "file").unwrap().size, 200);
    guest.unlink(dir, "file").unwrap();
    finish(guest, dir);
}

#[test]
fn appending_leaves_positions_alone() {
    let (mut guest, dir) = working("append-at");
    let file = guest.open(dir, "file", CREATE | TRUNCATE, [FD_WRITE | FD_SEEK | FD_TELL, 0], APPEND).unwrap();
    assert_eq!(guest.put(file, b"ab", None), Ok(2));
    assert_eq!(guest.seek(file, 0, SET), Ok(0));
    assert_eq!(guest.put(file, b"cd", None), Ok(2));
    assert_eq!(guest.tell(file), Ok(4));
    assert_eq!(guest.put(file, b"efg", Some(0)), Ok(3));
    assert_eq!(guest.tell(file), Ok(4));
    assert_eq!(guest.seek(file, 0, END), Ok(4), "written at the place that was given, as POSIX says");
    guest.close(file);
    guest.unlink(dir, "file").unwrap();
    finish(guest, dir);
}

#[test]
fn reading_and_writing_at_offsets() {
    let (mut guest, dir) = working("offsets");
    let file = guest.open(dir, "file", CREATE, [FD_READ | FD_SEEK | FD_WRITE, 0], 0).unwrap();
    assert_eq!(guest.put(file, &[0, 1, 2, 3], Some(0)), Ok(4));
    assert_eq!(guest.take(file, 4, Some(0)), Ok(vec![0, 1, 2, 3]));
    assert_eq!(guest.take(file, 9, Some(2)), Ok(vec![2, 3]));
    assert_eq!(guest.put(file, &[1, 0], Some(2)), Ok(2));
    assert_eq!(guest.take(file, 4, Some(0)), Ok(vec![0, 1, 1, 0]));
    assert_eq!(guest.put(file, b"very long text", Some(0)), Ok(14));
    assert_eq!(guest.put(file, b"test", Some(3)), Ok(4));
    assert_eq!(guest.take(file, 16, None), Ok(b"vertestng text".to_vec()));
    assert_eq!(guest.take(file, 3, Some(4)), Ok(b"est".to_vec()));
    guest.close(file);
    guest.unlink(dir, "file").unwrap();
    assert_eq!(guest.path_stat(dir, false, "file"), Err(NOENT));
    finish(guest, dir);
}

#[test]
fn positions() {
    let (mut guest, dir) = working("positions");
    let file = guest.open(dir, "file", CREATE, [FD_READ | FD_WRITE | FD_SEEK | FD_TELL, 0], 0).unwrap();
    assert_eq!(guest.tell(file), Ok(0));
    assert_eq!(guest.put(file, &[7; 100], None), Ok(100));
    assert_eq!(guest.tell(file), Ok(100));
    assert_eq!(guest.seek(file, -50, CURRENT), Ok(50));
    assert_eq!(guest.seek(file, 0, SET), Ok(0));
    assert_eq!(guest.seek(file, 1000, CURRENT), Ok(1000));
    assert_eq!(guest.seek(file, -2000, CURRENT), Err(INVAL));
    assert_eq!(guest.seek(file, 0, SET), Ok(0));
    assert_eq!(guest.take(file, 100, None), Ok(vec![7; 100]));
    assert_eq!(guest.tell(file), Ok(100));
    assert_eq!(guest.seek(file, 0, END), Ok(100));
    guest.close(file);
    guest.unlink(dir, "file").unwrap();
    finish(guest, dir);
}

#[test]
fn truncating() {
    let (mut guest, dir) = working("truncating");
    let file = guest.open(dir, "file", CREATE, [FD_WRITE, 0], 0).unwrap();
    assert_eq!(guest.put(file, b"it is removed", None), Ok(13));
    guest.close(file);
    let file = guest.open(dir, "file", CREATE | TRUNCATE, [FD_WRITE | FD_READ, 0], 0).unwrap();
    assert_eq!(guest.take(file, 100, None), Ok(vec![]));
    guest.close(file);
    guest.unlink(dir, "file").unwrap();
    finish(guest, dir);
}

#[test]
fn truncating_needs_a_right() {
    let (mut guest, dir) = working("truncation-rights");
    create(&mut guest, dir, "file");
    let (kind, flags, base, inheriting) = guest.fdstat(dir).unwrap();
    assert_eq!((kind, flags, base & FD_FILESTAT_SET_SIZE), (DIRECTORY_TYPE, 0, 0));
    let truncate = |guest: &mut Guest| guest.open(dir, "file", TRUNCATE, NONE, 0).map(|file| guest.close(file));
    truncate(&mut guest).unwrap();
    guest.set_rights(dir, base, inheriting & !FD_FILESTAT_SET_SIZE).unwrap();
    truncate(&mut guest).unwrap();
    guest.set_rights(dir, base & !PATH_FILESTAT_SET_SIZE, inheriting & !FD_FILESTAT_SET_SIZE).unwrap();
    assert_eq!(guest.fdstat(dir).unwrap().2 & PATH_FILESTAT_SET_SIZE, 0);
    assert!([PERM, NOTCAPABLE].contains(&truncate(&mut guest).unwrap_err()));
    guest.unlink(dir, "file").unwrap();
    finish(guest, dir);
}

#[test]
fn what_is_written_can_be_read_at_once() {
    let (mut guest, dir) = working("unbuffered");
    let reader = guest.open(dir, "file", CREATE, [FD_READ, 0], 0).unwrap();
    let writer = guest.open(dir, "file", 0, [FD_WRITE, 0], 0).unwrap();
    assert_eq!(guest.put(writer, &[1], None), Ok(1));
    assert_eq!(guest.take(reader, 1, None), Ok(vec![1]));
    guest.close(writer);
    guest.close(reader);
    guest.unlink(dir, "file").unwrap();
    finish(guest, dir);
}

#[test]
fn files_are_no_terminals() {
    let (mut guest, dir) = working("terminal");
    let file = guest.open(dir, "file", CREATE, NONE, 0).unwrap();
    // What the C library asks for: a character device that can neither seek nor tell.
    assert_eq!(guest.fdstat(file).unwrap().0, REGULAR_FILE);
    guest.close(file);
    guest.unlink(dir, "file").unwrap();
    finish(guest, dir);
}

#[test]
fn a_descriptor_is_moved_over_the_preopened_directory() {
    let (mut guest, dir) = working("moved");
    let before = guest.stat(dir).unwrap();
    guest.renumber(dir, ROOT).unwrap();
    let after = guest.stat(ROOT).unwrap();
    assert_eq!((before.device, before.inode), (after.device, after.inode));
    assert_eq!(guest.fdstat(dir), Err(BADF));
    guest.close(ROOT);
}

#[test]
fn reading_and_writing_need_rights() {
    let mut guest = guest("read-write");
    create(&mut guest, ROOT, "file");
    let has = |guest: &mut Guest, file, rights| {
        assert_eq!(guest.fdstat(file).unwrap().2 & (FD_READ | FD_WRITE), rights);
    };
    let refused = [BADF, NOTCAPABLE, ACCES];
    let file = guest.open(ROOT, "file", 0, [FD_READ, 0], 0).unwrap();
    has(&mut guest, file, FD_READ);
    assert_eq!(guest.take(file, 100, None), Ok(vec![]));
    assert!(refused.contains(&guest.put(file, &[1; 50], None).unwrap_err()));
    guest.close(file);
    let file = guest.open(ROOT, "file", 0, [FD_WRITE, 0], 0).unwrap();
    has(&mut guest, file, FD_WRITE);
    assert!(refused.contains(&guest.take(file, 100, None).unwrap_err()));
    assert_eq!(guest.put(file, &[1; 50], None), Ok(50));
    guest.close(file);
    let file = guest.open(ROOT, "file", 0, [FD_READ | FD_WRITE | FD_FILESTAT_GET, 0], 0).unwrap();
    has(&mut guest, file, FD_READ | FD_WRITE);
    assert_eq!(guest.take(file, 100, None), Ok(vec![1; 50]));
    assert_eq!(guest.put(file, &[2; 25], None), Ok(25));
    assert_eq!(guest.stat(file).unwrap().size, 75);
    guest.close(file);
    guest.unlink(ROOT, "file").unwrap();
}

#[test]
fn descriptors_are_moved() {
    let (mut guest, dir) = working("renumber");
    let [from, to] = ["file1", "file2"].map(|name| guest.open(dir, name, CREATE, [FD_READ | FD_WRITE, 0], 0).unwrap());
    let before = guest.fdstat(from).unwrap();
    guest.renumber(from, to).unwrap();
    assert_eq!(guest.call("fd_close", &[u64::from(from)]), BADF);
    assert_eq!(guest.fdstat(to).unwrap(), before);
    assert_eq!(guest.renumber(to, from), Err(BADF), "to a number that is not open");
    guest.close(to);
    guest.unlink(dir, "file1").unwrap();
    guest.unlink(dir, "file2").unwrap();
    for stream in [0, 1, 2] {
        let file = guest.open(dir, "file", CREATE, NONE, 0).unwrap();
        guest.renumber(stream, file).unwrap();
        guest.fdstat(file).unwrap();
        assert_eq!(guest.fdstat(stream), Err(BADF));
        guest.unlink(dir, "file").unwrap();
    }
    finish(guest, dir);
}
