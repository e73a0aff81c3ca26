//! The cache of the command, and modules that it compiles ahead of time.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::cache::{Subject, assert_prints, check_owned, damage, entries, fresh, mounted, random, run, skip, stats};
use common::{Process, command, file, program, start, stderr, stdout, weir};
use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn module() -> String {
    program("json").to_str().unwrap().to_owned()
}

#[test]
fn the_second_run_validates_and_compiles_less() {
    let caches = fresh("cache-second");
    let args = [&*module(), "40"];
    let (first, expected) = stats(&caches, &args);
    assert_eq!(first["stored"]["cache"], "miss");
    assert_eq!(fs::metadata(caches.join("weir")).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(entries(&caches).len(), 1, "{:?}", entries(&caches));
    let mut optimised = 0;
    for _ in 0..3 {
        let (again, output) = stats(&caches, &args);
        let stored = &again["stored"];
        assert_eq!((&stored["cache"], &output, &stored["damaged"]), (&"hit".into(), &expected, &0.into()));
        let now = stored["optimised"].as_u64().unwrap();
        // Baseline code is not counted where this process has optimised the function before its first call.
        assert!(now >= optimised && now + stored["baseline"].as_u64().unwrap() > 0, "{again}");
        assert!(again["accepted_bytes"].as_u64() <= again["body_bytes"].as_u64(), "{again}");
        optimised = now;
    }
    let said = stderr(&run(&caches, &[&["--stats=compiler"], &args[..]].concat()));
    assert!(said.contains(" began in code of earlier processes (") && said.contains(" without: "), "{said}");
    assert!(!said.contains("damaged") && !said.contains("wasmparser"), "{said}");
    let say = |flags: &[&str]| stderr(&run(&caches, &[flags, &["-v"], &args].concat()));
    assert_eq!(say(&[]), format!("weir: {}: cache: hit\n", args[0]));
    assert_eq!(say(&["--no-cache"]), format!("weir: {}: the cache is not used\n", args[0]));
    // Other settings have another entry.
    let (fuelled, output) = stats(&caches, &["--fuel", "100000000000", args[0], args[1]]);
    assert_eq!((fuelled["stored"]["cache"].as_str(), output), (Some("miss"), expected));
    let listed = stdout(&run(&caches, &["cache", "list"]));
    assert!(listed.contains(": 2 files, ") && listed.lines().count() == 3, "{listed}");
    let cleared = stdout(&run(&caches, &["cache", "clear"]));
    assert!(cleared.contains("removed 2 files"), "{cleared}");
    assert!(entries(&caches).is_empty());
}

/// A module of `--preload` has an entry, too.
#[test]
fn preloaded_modules_are_cached() {
    let caches = fresh("cache-preloaded");
    fs::create_dir_all(&caches).unwrap();
    let write = |name: &str, text: &str| {
        let path = caches.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let library = write("library.wat", r#"(module (func (export "seven") (result i32) (i32.const 7)))"#);
    let app = write(
        "app.wat",
        r#"(module (import "library" "seven" (func $seven (result i32))) (func (export "f") (result i32) (call $seven)))"#,
    );
    for _ in 0..2 {
        let output = run(&caches, &["--preload", &format!("library={library}"), "--invoke", "f", &app]);
        assert_eq!((&*stdout(&output), &*stderr(&output)), ("7\n", ""));
        assert_eq!(entries(&caches).len(), 2);
    }
}

#[test]
fn settings_that_need_fresh_modules_use_no_cache() {
    let caches = fresh("cache-unused");
    let save = fresh("cache-unused.prof");
    let save = save.to_str().unwrap();
    for flags in
        [&["--no-cache"][..], &["--deterministic"], &["--lazy"], &["--stress", "1"], &["--no-jit"], &["--profile-save", save]]
    {
        let (stats, _) = stats(&caches, &[flags, &[&module(), "2"]].concat());
        assert!(stats["stored"]["cache"].is_null(), "{flags:?}: {}", stats["stored"]);
    }
    assert!(!caches.exists());
}

/// A cache that cannot be used changes nothing.
#[test]
fn an_unusable_cache_is_a_miss_without_a_message() {
    let expected = stdout(&run(&fresh("cache-none"), &[&module(), "3"]));
    let check = |caches: &Path, what: &str| {
        let output = run(caches, &[&module(), "3"]);
        assert_eq!(
            (stdout(&output), stderr(&output), output.status.code()),
            (expected.clone(), String::new(), Some(0)),
            "{what}"
        );
        let (stats, _) = stats(caches, &[&module(), "3"]);
        assert!(stats["stored"]["cache"].as_str().is_some_and(|state| state.starts_with("miss")), "{what}: {}", stats["stored"]);
    };
    let reason = |caches: &Path| {
        let (stats, _) = stats(caches, &[&module(), "3"]);
        [&stats["stored"]["cache"], &stats["stored"]["unwritten"]].map(|state| state.as_str().unwrap_or_default().to_owned())
    };
    check(Path::new("/dev/null"), "no directory");
    assert!(reason(Path::new("/dev/null")).iter().all(|reason| reason.contains("Not a directory")));
    check(Path::new("/proc/self"), "nothing can be written");
    let caches = fresh("cache-open");
    fs::create_dir_all(caches.join("weir")).unwrap();
    fs::set_permissions(caches.join("weir"), fs::Permissions::from_mode(0o755)).unwrap();
    check(&caches, "others may read");
    assert_eq!(reason(&caches), ["miss: the directory's mode is not 0700", "the directory's mode is not 0700"]);
    assert!(entries(&caches).is_empty());
    let caches = fresh("cache-link");
    fs::create_dir_all(&caches).unwrap();
    let private = caches.join("elsewhere");
    fs::create_dir(&private).unwrap();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).unwrap();
    symlink(&private, caches.join("weir")).unwrap();
    check(&caches, "a link");
    assert_eq!(fs::read_dir(&private).unwrap().count(), 0);
}

/// Asserts that after `mount` the output is the expected one, without a message, that the cache's `state` is shown where that is asked for, and,
/// unless `reason` is empty, why nothing is added to it.
fn check_mounted(caches: &Path, mount: &str, (state, reason): (&str, &str), expected: &str) {
    let args = [&*module(), "3"];
    let run = |flags: &[&str]| mounted(caches, mount, &[flags, &args].concat());
    let Some(output) = run(&[]) else { return };
    assert_eq!((&*stdout(&output), &*stderr(&output), output.status.code()), (expected, "", Some(0)), "{mount}");
    let output = run(&["-v"]).unwrap();
    let mut said = format!("weir: {}: cache: {state}\n", args[0]);
    if !reason.is_empty() {
        said += &format!("weir: {}: nothing was added to the cache: {reason}\n", args[0]);
    }
    assert_eq!((&*stdout(&output), stderr(&output)), (expected, said), "{mount}");
    let seen = stderr(&run(&["--stats=json"]).unwrap());
    let seen: serde_json::Value = serde_json::from_str(&seen).unwrap_or_else(|_| panic!("{seen}"));
    let stored = &seen["stored"];
    assert_eq!((&stored["cache"], stored["unwritten"].as_str().unwrap_or_default()), (&state.into(), reason), "{mount}");
    let text = stderr(&run(&["--stats"]).unwrap());
    assert!(text.contains(&format!("; cache: {state}")) && text.contains(reason), "{mount}: {text}");
}

/// A file system without room for the entry, for a part of it, for a file, or for the directory.
#[test]
fn a_full_file_system_is_a_miss() {
    let caches = fresh("cache-full-mount");
    fs::create_dir_all(&caches).unwrap();
    let expected = stdout(&run(&fresh("cache-full-mount-none"), &[&module(), "3"]));
    const FULL: (&str, &str) = ("miss", "No space left on device (os error 28)");
    for (options, then) in [
        ("size=64k", r#" && mkdir -m 700 "$0/weir" && ! cat /dev/zero > "$0/rest" 2> /dev/null"#),
        ("size=64k", r#" && mkdir -m 700 "$0/weir" && head -c 57344 /dev/zero > "$0/rest""#),
        ("size=64k", r#" && mkdir -m 700 "$0/weir" && head -c 40960 /dev/zero > "$0/rest""#),
        ("nr_inodes=3", r#" && mkdir -m 700 "$0/weir""#),
        ("nr_inodes=2", r#" && mkdir -m 700 "$0/weir""#),
        ("nr_inodes=1", ""),
    ] {
        check_mounted(&caches, &format!(r#"mount -t tmpfs -o {options} tmpfs "$0"{then}"#), FULL, &expected);
    }
}

/// A file system that cannot be written, without the directory, with an empty one, and with an entry.
#[test]
fn a_file_system_that_cannot_be_written_is_read() {
    let caches = fresh("cache-read-only");
    let saved = fresh("cache-read-only.saved");
    fs::create_dir_all(&caches).unwrap();
    let args = [&*module(), "3"];
    let expected = stdout(&run(&saved, &args));
    const READ_ONLY: &str = "Read-only file system (os error 30)";
    let mount = |fill: &str| format!(r#"mount -t tmpfs tmpfs "$0"{fill} && mount -o remount,ro "$0""#);
    check_mounted(&caches, &mount(""), ("miss", READ_ONLY), &expected);
    check_mounted(&caches, &mount(r#" && mkdir -m 700 "$0/weir""#), ("miss", READ_ONLY), &expected);
    let entry = mount(r#" && cp -a "$0.saved/weir" "$0/""#);
    let Some(output) = mounted(&caches, &entry, &[&["--stats=json"], &args[..]].concat()) else { return };
    let seen: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!((&seen["stored"]["cache"], stdout(&output)), (&"hit".into(), expected));
    let unwritten = seen["stored"]["unwritten"].as_str();
    assert!(unwritten.is_none_or(|reason| reason == READ_ONLY), "{unwritten:?}");
}

/// Entries that are links, have two names, can be read by others or are damaged are not used, and replaced.
#[test]
fn entries_are_files_of_the_user_alone() {
    let caches = fresh("cache-entries");
    let args = [&*module(), "3"];
    let (_, expected) = stats(&caches, &args);
    check_owned(&caches, "weir", |reason| {
        for reason in [reason, "hit"] {
            let (seen, output) = stats(&caches, &args);
            let state = seen["stored"]["cache"].as_str().unwrap().to_owned();
            assert_eq!((state.contains(reason), state == "hit", &output), (true, reason == "hit", &expected), "{state}");
        }
    });
}

/// Damage of any file, at seeded places.
#[test]
fn damaged_entries_change_no_output() {
    let caches = fresh("cache-damaged");
    let args = [&*module(), "3"];
    let (_, expected) = stats(&caches, &args);
    let mut random = random(1);
    for round in 0..60 {
        entries(&caches).iter().for_each(|path| damage(path, round, &mut random));
        assert_prints(&run(&caches, &args), &expected, round);
    }
}

/// A module with a loop over vectors, which has longer ones with AVX2.
fn vectors() -> PathBuf {
    let text = r#"(module
        (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
        (memory (export "memory") 1)
        (data (i32.const 0) "\10\00\00\00\04\00\00\00")
        (func $fill (param $at i32) (param $end i32) (param $by i32)
            (loop $again
                (i32.store (local.get $at) (i32.mul (local.get $at) (local.get $by)))
                (br_if $again (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 4))) (local.get $end)))))
        (func $add (param $at i32) (param $end i32)
            (loop $again
                (i32.store (local.get $at)
                    (i32.add (i32.load (local.get $at)) (i32.xor (i32.load offset=16384 (local.get $at)) (i32.const 0x5555))))
                (br_if $again (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 4))) (local.get $end)))))
        (func $sum (param $at i32) (param $end i32) (result i32) (local $sum i32)
            (loop $again
                (local.set $sum (i32.add (i32.rotl (local.get $sum) (i32.const 3)) (i32.load (local.get $at))))
                (br_if $again (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 4))) (local.get $end))))
            (local.get $sum))
        (func (export "_start")
            (call $fill (i32.const 1024) (i32.const 16384) (i32.const 7))
            (call $fill (i32.const 17408) (i32.const 32768) (i32.const 5))
            (call $add (i32.const 1024) (i32.const 16384))
            (i32.store (i32.const 16)
                (i32.or (i32.and (call $sum (i32.const 1024) (i32.const 16384)) (i32.const 0x0F0F0F0F)) (i32.const 0x40404040)))
            (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#;
    file("cache-vectors.wat", text)
}

/// Processors with and without AVX2, as an emulator has them, use one cache: each has its own entry, and its own code.
#[test]
fn processors_have_entries_of_their_own() {
    let caches = fresh("cache-processors");
    let module = vectors();
    let run = |processor: &str, flags: &[&str]| {
        let mut command = Command::new("qemu-x86_64");
        command.args(["-cpu", processor, common::WEIR, "--tier", "native"]).args(flags).arg(&module);
        command.env("XDG_CACHE_HOME", &caches).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.output()
    };
    const PROCESSORS: [&str; 2] = ["max", "max,-avx2"];
    let expected = match PROCESSORS.map(|processor| run(processor, &["--no-cache"])) {
        [Ok(first), Ok(second)] if first.status.success() && second.status.success() => {
            assert_eq!((first.stdout.len(), stdout(&second)), (4, stdout(&first)));
            stdout(&first)
        }
        [Ok(first), _] => return skip(&format!("`qemu-x86_64` has no such processors: {}", stderr(&first).trim_end())),
        [Err(error), _] => return skip(&format!("`qemu-x86_64` does not start: {error}")),
    };
    for (round, state) in ["miss", "hit", "hit"].into_iter().enumerate() {
        for (files, processor) in PROCESSORS.into_iter().enumerate() {
            let output = run(processor, &["--stats=json"]).unwrap();
            let seen: serde_json::Value =
                serde_json::from_slice(&output.stderr).unwrap_or_else(|_| panic!("{}", stderr(&output)));
            let stored = &seen["stored"];
            assert_eq!((stdout(&output), output.status.code()), (expected.clone(), Some(0)), "{processor}: {seen}");
            assert_eq!((&stored["cache"], stored["optimised"] != 0), (&state.into(), round > 0), "{processor}: {seen}");
            assert_eq!(entries(&caches).len(), if round == 0 { files + 1 } else { PROCESSORS.len() });
        }
    }
}

/// Functions whose code is damaged are compiled again, and their code is added to the entry.
#[test]
fn damaged_code_is_repaired() {
    let caches = fresh("cache-repaired");
    let args = [&*module(), "40"];
    let (_, expected) = stats(&caches, &args);
    let (before, _) = stats(&caches, &args);
    let (path, optimised) = (entries(&caches).pop().unwrap(), before["stored"]["optimised"].as_u64().unwrap());
    // Which part has the code of a function that is called depends on what the runs before have compiled.
    let intact = fs::read(&path).unwrap();
    let part = intact.len().div_ceil(8);
    let is_damage = |start: usize| {
        let mut bytes = intact.clone();
        bytes[start..].iter_mut().take(part).step_by(64).for_each(|byte| *byte ^= 0x10);
        fs::write(&path, bytes).unwrap();
        let (damaged, output) = stats(&caches, &args);
        assert_eq!(output, expected, "{damaged}");
        damaged["stored"]["damaged"].as_u64().unwrap() > 0
    };
    assert!((0..intact.len()).step_by(part).any(is_damage));
    let (mut now, mut runs) = (0, 0);
    while now < optimised {
        let (again, output) = stats(&caches, &args);
        assert_eq!((&again["stored"]["cache"], output), (&"hit".into(), expected.clone()));
        (now, runs) = (again["stored"]["optimised"].as_u64().unwrap(), runs + 1);
        // Only one process in four optimises what pays late.
        assert!(runs < 100, "{again}");
    }
}

/// Writing fails at any place, as on a full disk.
#[test]
fn a_full_disk_is_a_miss() {
    let caches = fresh("cache-full");
    let subject = Subject::new(&[&module(), "3"]);
    [0, 1, 8, 40, 60, 80, 100].into_iter().for_each(|blocks| subject.check_limited(&caches, blocks));
    (0..2).for_each(|run| subject.check(&caches, run));
    assert_eq!(subject.stats(&caches)["cache"], "hit");
}

/// Processes are killed at any time, also while they write.
#[test]
fn a_killed_process_leaves_nothing_that_is_wrong() {
    let caches = fresh("cache-killed");
    let subject = Subject::new(&[&module(), "3"]);
    let time = Instant::now();
    subject.check(&fresh("cache-killed-time"), "");
    let time = time.elapsed();
    subject.check_killed(&caches, 60, |process, round| {
        std::thread::sleep(time * (round % 20) / 16);
        process.0.kill().unwrap();
    });
}

/// Many processes begin at once with an empty cache, and again with a full one.
#[test]
fn many_processes_at_once() {
    let caches = fresh("cache-many");
    let subject = Subject::new(&[&module(), "3"]);
    (0..2).for_each(|_| subject.check_at_once(&caches, 200));
    assert_eq!(subject.stats(&caches)["cache"], "hit");
}

/// Three families of functions, each called by an export of its own, which waits for a byte before.
fn families() -> String {
    let family = |name: &str| {
        let funcs: String = (0..FAMILY)
            .map(|i| {
                format!(
                    "(func ${name}{i} (param i32) (result i32) (i32.xor (i32.mul (local.get 0) (i32.const {i})) (i32.const 7)))"
                )
            })
            .collect();
        let calls: String = (0..FAMILY).map(|i| format!("(local.set 0 (call ${name}{i} (local.get 0)))")).collect();
        format!(r#"{funcs} (func (export "{name}") (param i32) (result i32) (call $wait) {calls} (local.get 0))"#)
    };
    format!(
        r#"(module
        (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
        (memory (export "memory") 1)
        (data (i32.const 0) "\10\00\00\00\01\00\00\00")
        ;; Says that it is there, and waits.
        (func $wait
            (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
            (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8))))
        {}{}{})"#,
        family("a"),
        family("b"),
        family("c")
    )
}

/// The number of functions in a family.
const FAMILY: u64 = 20;

/// Two processes find the same entry and run different functions. The second one that writes keeps what the first one has added.
#[test]
fn an_entry_has_what_two_processes_added_at_once() {
    let caches = fresh("cache-union");
    let module = file("cache-union.wat", families());
    let begin = |caches: &Path, export: &str, flags: &[&str]| {
        let mut command = command();
        command.args(["--tier", "native", "--pass-off", "inline"]).args(flags).args(["--invoke", export]).arg(&module).arg("5");
        start(command.env("XDG_CACHE_HOME", caches).stdin(Stdio::piped()))
    };
    // What it compiled, and what it had from the entry.
    let run = |caches: &Path, export: &str| {
        let output = begin(caches, export, &["--stats=json"]).finish();
        let seen: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        [&seen["functions"]["native"], &seen["stored"]["optimised"]].map(|count| count.as_u64().unwrap())
    };
    let [compiled, stored] = run(&caches, "c");
    assert!(compiled > FAMILY && stored == 0, "{compiled} {stored}");
    // The others' code is not there.
    let copy = fresh("cache-union-copy");
    assert!(Command::new("cp").arg("-a").args([&caches, &copy]).status().unwrap().success());
    assert!(run(&copy, "a")[0] > FAMILY && run(&copy, "b")[0] > FAMILY);

    let mut processes = ["a", "b"].map(|export| begin(&caches, export, &[]));
    for Process(process) in &mut processes {
        process.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    }
    for mut process in processes {
        drop(process.0.stdin.take());
        assert_eq!(process.finish().status.code(), Some(0));
    }
    for export in ["a", "b", "c"] {
        let [compiled, stored] = run(&caches, export);
        assert!(compiled == 0 && stored > FAMILY, "{export}: {compiled} {stored}");
    }
}

/// The processes whose environment has this variable, which those that they start inherit.
fn marked(mark: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().map(|process| process.unwrap().path());
    let is_marked = |environment: &Vec<u8>| environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes());
    let has = |process: &PathBuf| fs::read(process.join("environ")).is_ok_and(|environment| is_marked(&environment));
    processes.filter(has).map(|process| process.display().to_string()).collect()
}

/// When the command ends, however it ends, nothing of it is left: what is to be written is written before. A process without threads has ended,
/// so that no thread is left either.
#[test]
fn no_process_is_left() {
    let caches = fresh("cache-alone");
    let forever = file("cache-forever.wat", r#"(module (func (export "_start") (loop $again (br $again))))"#);
    let trap = file("cache-trap.wat", r#"(module (func (export "_start") unreachable))"#);
    let [forever, trap] = [&forever, &trap].map(|file| file.to_str().unwrap());
    let json = module();
    for (round, (args, status)) in [
        (&[&*json, "40"][..], Some(0)),
        (&[&*json, "40"], Some(0)),
        (&["--timeout", "0.3", forever], Some(134)),
        (&["--timeout", "0.3", &*json, "100000000"], Some(134)),
        (&["--fuel", "100000", forever], Some(134)),
        (&[trap], Some(134)),
        (&[forever], None),
        (&[&*json, "100000000"], None),
    ]
    .into_iter()
    .enumerate()
    {
        let mark = format!("WEIR_TEST_MARK={}-{round}", std::process::id());
        let mut command = command();
        command.env("XDG_CACHE_HOME", &caches).env("WEIR_TEST_MARK", mark.split_once('=').unwrap().1).args(args);
        let mut process = start(&mut command);
        if status.is_none() {
            while marked(&mark).is_empty() {
                std::thread::sleep(Duration::from_millis(1));
            }
            // It may have begun threads.
            std::thread::sleep(Duration::from_millis(200));
            process.0.kill().unwrap();
        }
        let output = process.finish();
        assert_eq!(output.status.code(), status, "{args:?}: {}", stderr(&output));
        assert_eq!(marked(&mark), [""; 0], "{args:?}");
    }
    assert!(!entries(&caches).is_empty());
}

/// A program to which the whole home directory is given does not see the cache.
#[test]
fn a_program_does_not_reach_the_cache() {
    let home = fresh("cache-home");
    fs::create_dir_all(home.join(".cache")).unwrap();
    let text = r#"(module
        (import "wasi_snapshot_preview1" "path_open"
            (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "path_create_directory" (func $make (param i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (memory (export "memory") 1)
        (data (i32.const 0) ".cache/weir")
        (func (export "_start")
            ;; Creates it if it is absent, or opens it.
            (drop (call $make (i32.const 3) (i32.const 0) (i32.const 11)))
            (call $exit (call $open
                (i32.const 3) (i32.const 1) (i32.const 0) (i32.const 11) (i32.const 2) (i64.const 0) (i64.const 0) (i32.const 0)
                (i32.const 100)))))"#;
    let program = file("cache-reaches.wat", text);
    let dir = format!("--dir={}", home.display());
    let errnos: Vec<_> = [&["--no-cache"][..], &[], &[], &["--no-cache"]]
        .iter()
        .map(|flags| {
            let mut command = command();
            command.env_remove("XDG_CACHE_HOME").env("HOME", &home).args(*flags).arg(&dir).arg(&program);
            start(&mut command).finish().status.code()
        })
        .collect();
    // There is nothing until the end of the second run (ENOENT); afterwards access is denied (EACCES).
    assert_eq!(errnos, [Some(44), Some(44), Some(2), Some(2)]);
    assert!(home.join(".cache/weir").exists());
    // A run with another cache does not reach it either, because later runs may use it.
    let mut other = command();
    other.env("XDG_CACHE_HOME", fresh("cache-elsewhere")).env("HOME", &home).arg(&dir).arg(&program);
    assert_eq!(start(&mut other).finish().status.code(), Some(2));
    let mut command = command();
    command.env_remove("XDG_CACHE_HOME").env("HOME", &home).arg("--dir").arg(home.join(".cache/weir")).arg(&program);
    let output = start(&mut command).finish();
    assert!(stderr(&output).contains("no program may access the directory of the cache"), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(2));
}

/// Each program, compiled by one process and run by another.
#[test]
fn compiled_programs_run_elsewhere() {
    for name in ["json", "parse-throw", "unwind-legacy", "fib", "switch"] {
        let source = program(name);
        if !source.exists() {
            continue;
        }
        let compiled = file(&format!("{name}.cwasm"), "");
        let output = weir(["compile".as_ref(), source.as_os_str(), "-o".as_ref(), compiled.as_os_str()]);
        assert!(output.status.success() && stderr(&output).contains("the optimiser refused 0"), "{}", stderr(&output));
        let run = |flags: &[&str], file: &Path| weir(flags.iter().map(AsRef::as_ref).chain([file.as_os_str(), "2".as_ref()]));
        let expected = run(&[], &source);
        let output = run(&["--allow-precompiled"], &compiled);
        assert_eq!((stdout(&output), output.status.code()), (stdout(&expected), expected.status.code()), "{}", stderr(&output));
        let output = run(&["--stats=json", "--allow-precompiled"], &compiled);
        let stats: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
        assert_eq!((&stats["functions"]["native"], &stats["functions"]["baseline"]), (&0.into(), &0.into()), "{name}");
        let output = run(&[], &compiled);
        assert!(stderr(&output).contains("use --allow-precompiled") && output.status.code() == Some(2));
        let output = run(&["--allow-precompiled", "--fuel=1000000"], &compiled);
        assert!(stderr(&output).contains("other settings") && output.status.code() == Some(1), "{}", stderr(&output));
    }
}
