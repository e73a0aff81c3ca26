//! A guarded directory: no program reaches it or changes the way to it, whatever is preopened.

mod common;

use common::*;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use weir_wasi::{FsPerms, WasiCtx};

const DIR: u32 = 3;
const ALL: u64 = (1 << 30) - 1;
const CREATE: u32 = 1;
const DIRECTORY: u32 = 2;
/// All with which a directory can be opened: not that to write.
const ANY: [u64; 2] = [ALL & !(1 << 6), ALL];

/// `home/.cache/weir` with a file, and files and links beside it.
fn home(name: &str) -> PathBuf {
    let home = scratch(name);
    fs::create_dir_all(home.join(".cache/weir")).unwrap();
    fs::write(home.join(".cache/weir/entry"), "code").unwrap();
    fs::create_dir_all(home.join("docs/deep")).unwrap();
    fs::write(home.join("docs/file"), "text").unwrap();
    symlink("../.cache/weir/entry", home.join("docs/to-entry")).unwrap();
    symlink("../.cache/weir", home.join("docs/to-cache")).unwrap();
    symlink("../../.cache", home.join("docs/deep/to-above")).unwrap();
    symlink("file", home.join("docs/to-file")).unwrap();
    home
}

fn guest(folder: &Path, guarded: &Path) -> Guest {
    let mut ctx = WasiCtx::builder();
    ctx.guarded_dir(guarded).unwrap();
    Guest::new(ctx.preopened_dir(folder, "/home", FsPerms::ReadWrite).unwrap())
}

/// Opens a file, and follows links.
fn open(guest: &mut Guest, fd: u32, path: &str, how: u32, rights: [u64; 2]) -> Result<u32, i32> {
    guest.lookup("path_open", fd, true, path, &[u64::from(how), rights[0], rights[1], 0, 100])?;
    Ok(guest.word(100))
}

#[test]
fn no_way_leads_into_it() {
    let home = home("guard-in");
    let mut guest = guest(&home, &home.join(".cache/weir"));
    let ways = [
        ".cache/weir/entry",
        ".cache/./weir//entry",
        "docs/../.cache/weir/entry",
        "docs/to-entry",
        "docs/to-cache/entry",
        "docs/deep/to-above/weir/entry",
        "docs/deep/../deep/to-above/../.cache/weir/entry",
    ];
    for way in ways {
        assert_eq!(open(&mut guest, DIR, way, 0, [2, 0]).unwrap_err(), ACCES, "open {way}");
        assert_eq!(open(&mut guest, DIR, way, CREATE, [66, 0]).unwrap_err(), ACCES, "create {way}");
        assert_eq!(guest.lookup("path_filestat_get", DIR, true, way, &[100]), Err(ACCES), "stat {way}");
    }
    for way in [".cache/weir", ".cache/weir/", ".cache/weir/.", "docs/to-cache", "docs/to-cache/", "docs/deep/to-above/weir"] {
        assert_eq!(open(&mut guest, DIR, way, DIRECTORY, ANY).unwrap_err(), ACCES, "open {way}");
    }
    // What only seems to lead there, and what is beside it.
    for way in ["docs/file", "docs/to-file", ".cache/../docs/file", "docs/deep/../file"] {
        open(&mut guest, DIR, way, 0, [2, 0]).unwrap_or_else(|errno| panic!("open {way}: {errno}"));
    }
    let cache = open(&mut guest, DIR, ".cache", DIRECTORY, ANY).unwrap();
    assert_eq!(open(&mut guest, cache, "weir/entry", 0, [2, 0]).unwrap_err(), ACCES);
    assert_eq!(open(&mut guest, cache, "weir", DIRECTORY, ANY).unwrap_err(), ACCES);
    open(&mut guest, cache, "other", CREATE, [66, 0]).unwrap();
    // The errors are those without a guard.
    assert_eq!(open(&mut guest, DIR, "absent", 0, [2, 0]).unwrap_err(), NOENT);
    assert_eq!(open(&mut guest, DIR, "absent/file", 0, [2, 0]).unwrap_err(), NOENT);
    assert_eq!(open(&mut guest, DIR, "docs/file/inside", 0, [2, 0]).unwrap_err(), NOTDIR);
    assert_eq!(open(&mut guest, DIR, "../outside", 0, [2, 0]).unwrap_err(), PERM);
    assert_eq!(open(&mut guest, DIR, "/etc/passwd", 0, [2, 0]).unwrap_err(), PERM);
    assert_eq!(fs::read_to_string(home.join(".cache/weir/entry")).unwrap(), "code");
}

#[test]
fn several_directories_are_guarded() {
    let home = home("guard-several");
    fs::create_dir_all(home.join("other/cache")).unwrap();
    fs::write(home.join("other/cache/entry"), "code").unwrap();
    let mut ctx = WasiCtx::builder();
    ctx.guarded_dir(home.join(".cache/weir")).unwrap().guarded_dir(home.join("other/cache")).unwrap();
    let mut guest = Guest::new(ctx.preopened_dir(&home, "/home", FsPerms::ReadWrite).unwrap());
    for entry in [".cache/weir/entry", "other/cache/entry", "docs/to-entry", "docs/../other/cache/entry"] {
        assert_eq!(open(&mut guest, DIR, entry, 0, [2, 0]), Err(ACCES), "{entry}");
    }
    for step in [".cache", ".cache/weir", "other", "other/cache"] {
        let to = guest.second("moved");
        assert_eq!(guest.path("path_rename", DIR, step, &[&[u64::from(DIR)], &to[..]].concat()), Err(ACCES), "{step}");
    }
    open(&mut guest, DIR, "docs/file", 0, [66, 0]).unwrap();
}

/// A backup has made hard links, also in a directory from which the guarded one cannot be reached.
#[test]
fn another_name_of_a_file_in_it_is_not_opened_for_writing() {
    let home = home("guard-links");
    fs::create_dir(home.join("backup")).unwrap();
    fs::hard_link(home.join(".cache/weir/entry"), home.join("backup/entry")).unwrap();
    fs::hard_link(home.join("docs/file"), home.join("backup/file")).unwrap();
    for (folder, backup) in [(".", "backup/"), ("backup", "")] {
        let mut guest = guest(&home.join(folder), &home.join(".cache/weir"));
        let [entry, file] = ["entry", "file"].map(|name| format!("{backup}{name}"));
        assert_eq!(open(&mut guest, DIR, &entry, 0, [66, 0]), Err(ACCES));
        open(&mut guest, DIR, &entry, 0, [2, 0]).unwrap();
        open(&mut guest, DIR, &file, 0, [66, 0]).unwrap();
        guest.path("path_unlink_file", DIR, &file, &[]).unwrap();
        fs::hard_link(home.join("docs/file"), home.join("backup/file")).unwrap();
    }
    assert_eq!(fs::read_to_string(home.join(".cache/weir/entry")).unwrap(), "code");
}

#[test]
fn no_part_of_the_way_is_changed() {
    let home = home("guard-way");
    let mut guest = guest(home.parent().unwrap(), &home.join(".cache/weir"));
    let name = home.file_name().unwrap().to_str().unwrap().to_owned();
    for step in [name.clone(), format!("{name}/.cache"), format!("{name}/.cache/weir"), format!("{name}/docs/../.cache")] {
        let to = guest.second(&format!("{name}/docs/moved"));
        assert_eq!(guest.path("path_rename", DIR, &step, &[&[u64::from(DIR)], &to[..]].concat()), Err(ACCES), "rename {step}");
        let to = guest.second(&step);
        let from = format!("{name}/docs/deep");
        assert_eq!(guest.path("path_rename", DIR, &from, &[&[u64::from(DIR)], &to[..]].concat()), Err(ACCES), "replace {step}");
        assert_eq!(guest.path("path_remove_directory", DIR, &step, &[]), Err(ACCES), "remove {step}");
        assert_eq!(guest.path("path_unlink_file", DIR, &step, &[]), Err(ACCES), "unlink {step}");
        // As for every folder that exists.
        let errno = if step.ends_with("weir") { ACCES } else { EXIST };
        assert_eq!(guest.path("path_create_directory", DIR, &step, &[]), Err(errno), "create {step}");
        assert_eq!(
            guest.lookup("path_filestat_get", DIR, true, &step, &[100]),
            if step.ends_with("weir") { Err(ACCES) } else { Ok(()) }
        );
    }
    for into in [format!("{name}/.cache/weir/new"), format!("{name}/docs/to-cache/new")] {
        let to = guest.second(&into);
        let file = format!("{name}/docs/file");
        assert_eq!(guest.path("path_rename", DIR, &file, &[&[u64::from(DIR)], &to[..]].concat()), Err(ACCES));
        let to = guest.second(&into);
        assert_eq!(guest.lookup("path_link", DIR, false, &file, &[&[u64::from(DIR)], &to[..]].concat()), Err(ACCES));
        let at = guest.second(&into);
        assert_eq!(guest.call_symlink("anything", at), ACCES);
        assert_eq!(guest.path("path_create_directory", DIR, &into, &[]), Err(ACCES));
    }
    // A second name of an entry would be in another folder.
    let to = guest.second(&format!("{name}/docs/stolen"));
    let entry = format!("{name}/.cache/weir/entry");
    assert_eq!(guest.lookup("path_link", DIR, false, &entry, &[&[u64::from(DIR)], &to[..]].concat()), Err(ACCES));
    assert!(home.join(".cache/weir/entry").exists() && !home.join("docs/stolen").exists());
    // Other folders are the program's.
    let to = guest.second(&format!("{name}/docs/moved"));
    let deep = format!("{name}/docs/deep");
    guest.path("path_rename", DIR, &deep, &[&[u64::from(DIR)], &to[..]].concat()).unwrap();
    guest.path("path_create_directory", DIR, &format!("{name}/.cache/others"), &[]).unwrap();
    guest.path("path_remove_directory", DIR, &format!("{name}/.cache/others"), &[]).unwrap();
}

/// From each folder of the way, as a preopened one and as one that the program has opened, no folder below it is renamed, replaced or removed.
#[test]
fn each_folder_of_the_way_keeps_its_name() {
    let root = scratch("guard-each");
    let steps = ["a", "b", ".cache", "deep", "weir"];
    let way = |from: usize, to: usize| steps[from..to].join("/");
    fs::create_dir_all(root.join(way(0, 5))).unwrap();
    fs::write(root.join(way(0, 5)).join("entry"), "code").unwrap();
    let state = || -> Vec<(u64, Vec<std::ffi::OsString>)> {
        let state = |to: usize| {
            let folder = root.join(way(0, to));
            let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            (fs::metadata(folder).unwrap().ino(), names)
        };
        (0..=5).map(state).collect()
    };
    for from in 0..5 {
        let preopened = root.join(way(0, from));
        fs::create_dir(preopened.join("empty")).unwrap();
        fs::write(preopened.join("file"), "text").unwrap();
        let before = state();
        let mut guest = guest(&preopened, &root.join(way(0, 5)));
        for opened in from..5 {
            // The files beside it are in the preopened folder.
            let fd = match opened == from {
                true => DIR,
                false => open(&mut guest, DIR, &way(from, opened), DIRECTORY, ANY).unwrap(),
            };
            for to in opened + 1..=5 {
                let step = way(opened, to);
                let forms = [step.clone(), format!("{step}/"), format!("./{step}/."), format!("{}/../{step}", steps[opened])];
                for step in &forms {
                    let what = format!("{preopened:?} {opened} {step}");
                    let mut rename = |from_fd: u32, from: &str, to_fd: u32, to: &str| {
                        let to = guest.second(to);
                        guest.path("path_rename", from_fd, from, &[&[u64::from(to_fd)], &to[..]].concat())
                    };
                    assert_eq!(rename(fd, step, DIR, "moved"), Err(ACCES), "rename {what}");
                    assert_eq!(rename(fd, step, fd, "moved"), Err(ACCES), "rename {what}");
                    assert_eq!(rename(fd, step, fd, step), Err(ACCES), "rename {what} to itself");
                    assert_eq!(rename(DIR, "empty", fd, step), Err(ACCES), "replace {what}");
                    assert_eq!(rename(DIR, "file", fd, step), Err(ACCES), "replace {what}");
                    // An exchange of two folders of the way.
                    assert_eq!(rename(fd, step, DIR, steps[from]), Err(ACCES), "rename {what}");
                    assert_eq!(guest.path("path_remove_directory", fd, step, &[]), Err(ACCES), "remove {what}");
                    assert_eq!(guest.path("path_unlink_file", fd, step, &[]), Err(ACCES), "unlink {what}");
                }
            }
            if fd != DIR {
                guest.close(fd);
            }
        }
        assert_eq!(state(), before, "{preopened:?}");
        // Files that are not on the way can be renamed and removed.
        let to = guest.second("other");
        guest.path("path_rename", DIR, "empty", &[&[u64::from(DIR)], &to[..]].concat()).unwrap();
        guest.path("path_remove_directory", DIR, "other", &[]).unwrap();
        guest.path("path_unlink_file", DIR, "file", &[]).unwrap();
    }
    assert_eq!(fs::read_to_string(root.join(way(0, 5)).join("entry")).unwrap(), "code");
}

/// A link in it is not read, and no time of it or of its files is set.
#[test]
fn its_links_and_times_are_out_of_reach() {
    let home = home("guard-times");
    let cache = home.join(".cache/weir");
    symlink("entry", cache.join("link")).unwrap();
    fs::create_dir(cache.join("below")).unwrap();
    let files = [cache.clone(), cache.join("entry"), cache.join("link"), cache.join("below")];
    let times = || {
        files.each_ref().map(|file| {
            let metadata = fs::symlink_metadata(file).unwrap();
            (metadata.modified().unwrap(), metadata.accessed().unwrap())
        })
    };
    let before = times();
    let mut guest = guest(&home, &cache);
    let opened = open(&mut guest, DIR, ".cache", DIRECTORY, ANY).unwrap();
    const SECOND: u64 = 1_000_000_000;
    // Both times as given, both as they are now.
    let set = |guest: &mut Guest, fd, follow, path: &str| {
        let then = [[7 * SECOND, 8 * SECOND, 1 | 4], [0, 0, 2 | 8]];
        then.map(|then| guest.lookup("path_filestat_set_times", fd, follow, path, &then))
    };
    let inside = ["entry", "link", "below", "absent", "./entry", "below/../entry", "below/", "link/"];
    for (fd, way) in [(DIR, ".cache/weir"), (opened, "weir"), (DIR, "docs/to-cache"), (DIR, "docs/deep/to-above/weir")] {
        for name in inside {
            let path = format!("{way}/{name}");
            assert_eq!(guest.path("path_readlink", fd, &path, &[9000, 100, 100]), Err(ACCES), "read {path}");
            for follow in [false, true] {
                assert_eq!(set(&mut guest, fd, follow, &path), [Err(ACCES); 2], "times of {path}, {follow}");
            }
        }
        assert_eq!(set(&mut guest, fd, true, way), [Err(ACCES); 2], "times of {way}");
    }
    for way in [".cache/weir", ".cache/weir/", ".cache/weir/.", "docs/to-cache/"] {
        assert_eq!(guest.path("path_readlink", DIR, way, &[9000, 100, 100]), Err(ACCES), "read {way}");
        assert_eq!(set(&mut guest, DIR, false, way), [Err(ACCES); 2], "times of {way}");
    }
    assert_eq!(set(&mut guest, DIR, true, "docs/to-entry"), [Err(ACCES); 2]);
    assert_eq!(times(), before);
    // A link outside that leads into it can be read and changed if it is not followed.
    assert_eq!(set(&mut guest, DIR, false, "docs/to-entry"), [Ok(()); 2]);
    assert_eq!(guest.path("path_readlink", DIR, "docs/to-entry", &[9000, 100, 100]), Ok(()));
    let len = guest.word(100) as usize;
    assert_eq!(guest.read(9000, len), b"../.cache/weir/entry");
    assert_eq!(set(&mut guest, DIR, true, "docs/to-file"), [Ok(()); 2]);
    assert_eq!(times(), before);
}

/// What is missing of the way is not created, as directory, file or link.
#[test]
fn an_absent_directory_stays_absent() {
    for missing in [".cache/weir", "caches/of/weir"] {
        let home = scratch("guard-absent");
        fs::create_dir_all(home.join(".cache")).unwrap();
        fs::create_dir_all(home.join("docs/weir")).unwrap();
        let mut guest = guest(&home, &home.join(missing));
        let first = if missing.starts_with('.') { missing } else { "caches" };
        for name in [first.to_owned(), first.to_uppercase()] {
            // The first exists in another case.
            if name.starts_with(".CACHE") {
                continue;
            }
            assert_eq!(guest.path("path_create_directory", DIR, &name, &[]), Err(ACCES), "{name}");
            assert_eq!(open(&mut guest, DIR, &name, CREATE, [66, 0]).unwrap_err(), ACCES, "{name}");
            let at = guest.second(&name);
            assert_eq!(guest.call_symlink("docs", at), ACCES, "{name}");
            let to = guest.second(&name);
            assert_eq!(guest.path("path_rename", DIR, "docs/weir", &[&[u64::from(DIR)], &to[..]].concat()), Err(ACCES), "{name}");
        }
        assert!(!home.join(first).exists());
        assert_eq!(open(&mut guest, DIR, first, 0, [2, 0]).unwrap_err(), NOENT);
    }
}

/// Links on the way belong to it.
#[test]
fn links_on_the_way_are_kept() {
    let home = scratch("guard-links");
    fs::create_dir_all(home.join("real/caches/weir")).unwrap();
    symlink("second", home.join("first")).unwrap();
    symlink("real/caches", home.join("second")).unwrap();
    let mut guest = guest(&home, &home.join("first/weir"));
    for step in ["first", "second", "real", "real/caches", "real/caches/weir"] {
        assert_eq!(guest.path("path_unlink_file", DIR, step, &[]), Err(ACCES), "{step}");
        let to = guest.second("elsewhere");
        assert_eq!(guest.path("path_rename", DIR, step, &[&[u64::from(DIR)], &to[..]].concat()), Err(ACCES), "{step}");
    }
    for way in ["first/weir/entry", "second/weir/entry", "real/caches/weir/entry"] {
        assert_eq!(open(&mut guest, DIR, way, CREATE, [66, 0]).unwrap_err(), ACCES, "{way}");
    }
}

#[test]
fn it_is_not_preopened_and_nothing_below_it() {
    let home = home("guard-preopen");
    let guarded = home.join(".cache/weir");
    fs::create_dir(guarded.join("below")).unwrap();
    for folder in [guarded.clone(), guarded.join("below"), home.join("docs/to-cache")] {
        let mut ctx = WasiCtx::builder();
        ctx.guarded_dir(&guarded).unwrap();
        ctx.preopened_dir(&folder, "/", FsPerms::ReadOnly).map(|_| ()).unwrap_err();
        let mut ctx = WasiCtx::builder();
        ctx.preopened_dir(&folder, "/", FsPerms::ReadOnly).unwrap();
        ctx.guarded_dir(&guarded).map(|_| ()).unwrap_err();
    }
    // The guard may come after the directories.
    let mut ctx = WasiCtx::builder();
    ctx.preopened_dir(&home, "/", FsPerms::ReadWrite).unwrap().guarded_dir(&guarded).unwrap();
    assert_eq!(open(&mut Guest::new(ctx), DIR, ".cache/weir/entry", 0, [2, 0]).unwrap_err(), ACCES);
}

/// Links that the system makes up lead nowhere.
#[test]
fn the_systems_own_links_lead_nowhere() {
    let home = home("guard-proc");
    let opened = fs::File::open(home.join(".cache/weir")).unwrap();
    let mut ctx = WasiCtx::builder();
    ctx.guarded_dir(home.join(".cache/weir")).unwrap();
    let mut guest = Guest::new(ctx.preopened_dir("/", "/", FsPerms::ReadWrite).unwrap());
    let number = std::os::fd::AsRawFd::as_raw_fd(&opened);
    let pid = std::process::id();
    let path = home.to_str().unwrap().trim_start_matches('/').to_owned();
    let ways = [
        format!("proc/self/fd/{number}/entry"),
        format!("proc/{pid}/fd/{number}/entry"),
        format!("proc/{pid}/root/{path}/.cache/weir/entry"),
        format!("proc/self/cwd/../../{path}/.cache/weir/entry"),
        format!("{path}/.cache/weir/entry"),
    ];
    for way in ways {
        let errno = open(&mut guest, DIR, &way, 0, [2, 0]).unwrap_err();
        assert!([ACCES, PERM, LOOP, NOTCAPABLE].contains(&errno), "{way}: {errno}");
    }
    // Every folder on the way stays. Nothing would happen without a guard either: none is empty.
    let way = format!("{path}/.cache/weir");
    for (end, _) in way.match_indices('/').chain([(way.len(), "")]) {
        assert_eq!(guest.path("path_remove_directory", DIR, &way[..end], &[]), Err(ACCES), "{}", &way[..end]);
    }
}

/// Folders where others of `home` are mounted a second time, each with the one that is mounted there.
const MOUNTS: [(&str, &str); 4] =
    [("docs/cache", ".cache/weir"), ("docs/above", ".cache"), ("docs/deep/home", "."), ("docs/again", "docs/deep")];

/// Set in the process for which they are mounted, to `home`.
const MOUNTED: &str = "WEIR_TEST_MOUNTED";

/// A folder is the same through another mount. Mounting takes a privilege, which a process has in a user namespace of its own: this test is
/// executed again there.
#[test]
fn bind_mounts_do_not_lead_into_it() {
    if let Some(home) = std::env::var_os(MOUNTED) {
        return check_mounts(Path::new(&home));
    }
    let home = home("guard-mounts");
    MOUNTS.iter().for_each(|(at, _)| fs::create_dir_all(home.join(at)).unwrap());
    fs::write(home.join("docs/mounted"), "").unwrap();
    let mounts = MOUNTS.map(|(at, what)| format!("mount --bind {what} {at}")).join(" && ");
    let mounts = format!("mount --bind .cache/weir/entry docs/mounted && {mounts}");
    // These tests are a program, and a module of one.
    let this = "bind_mounts_do_not_lead_into_it";
    let this = module_path!().split_once("::").map_or(this.to_owned(), |(_, module)| format!("{module}::{this}"));
    let unshare = |script: &str| {
        let test = std::env::current_exe().unwrap();
        let mut command = std::process::Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]).arg(test);
        command.args(["--exact", &this]).env(MOUNTED, &home).current_dir(&home).output()
    };
    match unshare(&mounts) {
        Ok(done) if done.status.success() => {}
        Ok(done) => return skip(&format!("nothing can be mounted: {}", String::from_utf8_lossy(&done.stderr).trim_end())),
        Err(error) => return skip(&format!("`unshare` does not start: {error}")),
    }
    let done = unshare(&format!(r#"{mounts} && exec "$@""#)).unwrap();
    let output = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && output.contains("1 passed"), "{output}{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(fs::read_to_string(home.join(".cache/weir/entry")).unwrap(), "code");
    assert_eq!(fs::read_dir(home.join(".cache/weir")).unwrap().count(), 1);
}

/// Says that the test that runs is skipped. This is shown although it passes: only what macros print is captured.
fn skip(reason: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    std::io::stderr().write_all(format!("SKIPPED here: {test}: {reason}\n").as_bytes()).unwrap();
}

fn check_mounts(home: &Path) {
    let guarded = home.join(".cache/weir");
    assert_eq!(fs::read_to_string(home.join("docs/deep/home/.cache/weir/entry")).unwrap(), "code", "it is mounted");
    // Each folder that can be preopened, with ways into the guarded one.
    let preopened: [(&str, &[&str]); 6] = [
        (".", &["docs/cache", "docs/above/weir", "docs/deep/home/.cache/weir", "docs/above/../cache"]),
        ("docs", &["cache", "above/weir", "deep/home/.cache/weir"]),
        ("docs/above", &["weir"]),
        ("docs/deep", &["home/.cache/weir"]),
        ("docs/deep/home", &[".cache/weir"]),
        ("docs/deep/home/docs", &["to-cache"]),
    ];
    for (folder, ways) in preopened {
        let mut guest = guest(&home.join(folder), &guarded);
        for way in ways {
            // A mount does not come with another mount of a folder around it, and no link leads out of a preopened folder.
            let errnos = if *way == "to-cache" { [PERM, NOTCAPABLE] } else { [ACCES; 2] };
            let is_refused = |errno: i32| errnos.contains(&errno);
            for name in ["entry", "new"] {
                let file = format!("{way}/{name}");
                assert!(is_refused(open(&mut guest, DIR, &file, 0, [2, 0]).unwrap_err()), "{folder}: open {file}");
                assert!(is_refused(open(&mut guest, DIR, &file, CREATE, [66, 0]).unwrap_err()), "{folder}: create {file}");
                assert!(guest.path("path_unlink_file", DIR, &file, &[]).is_err_and(is_refused), "{folder}: remove {file}");
            }
            assert!(is_refused(open(&mut guest, DIR, way, DIRECTORY, ANY).unwrap_err()), "{folder}: open {way}");
            let to = guest.second(way);
            guest.path("path_create_directory", DIR, "other", &[]).unwrap();
            let renamed = guest.path("path_rename", DIR, "other", &[&[u64::from(DIR)], &to[..]].concat());
            assert!(renamed.is_err(), "{folder}: replace {way}");
            guest.path("path_remove_directory", DIR, "other", &[]).unwrap();
        }
    }
    for folder in ["docs/cache", "docs/above/weir", "docs/deep/home/.cache/weir"] {
        let mut ctx = WasiCtx::builder();
        ctx.guarded_dir(&guarded).unwrap();
        ctx.preopened_dir(home.join(folder), "/", FsPerms::ReadOnly).map(|_| ()).unwrap_err();
    }
    // The folders on the way stay as they are through their other mounts, too, and what is beside them is the program's.
    let mut guest = guest(&home.join("docs"), &guarded);
    for step in ["above/weir", "deep/home/.cache", "deep/home/docs/../.cache"] {
        let to = guest.second("moved");
        assert!(guest.path("path_rename", DIR, step, &[&[u64::from(DIR)], &to[..]].concat()).is_err(), "rename {step}");
        assert_eq!(guest.path("path_remove_directory", DIR, step, &[]), Err(ACCES), "remove {step}");
    }
    assert_eq!(open(&mut guest, DIR, "mounted", 0, [66, 0]), Err(ACCES));
    open(&mut guest, DIR, "mounted", 0, [2, 0]).unwrap();
    open(&mut guest, DIR, "again/to-above", 0, [2, 0]).unwrap_err();
    open(&mut guest, DIR, "file", 0, [2, 0]).unwrap();
    open(&mut guest, DIR, "deep/home/docs/file", 0, [2, 0]).unwrap();
}
