//! The cache of the command with large modules, whose bytes are in a file of their own.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::cache::{Subject, assert_prints, begin, check_owned, damage, entries, find, fresh, mounted, random, run, stats};
use common::{stderr, stdout};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

/// Data of some hundred kilobytes.
fn letters() -> String {
    (0..400_000).map(|i| char::from(b'a' + (i ^ i >> 9) as u8 % 26)).collect()
}

/// A module of one and a half megabytes in the binary format, of which a few functions and a little data are used, in a folder.
fn large(folder: &Path) -> PathBuf {
    let data = letters();
    let funcs: String = (0..1400)
        .map(|i| {
            format!(
                "(func (param i32) (result i32) {})",
                format!("(i64.const {})drop ", i64::MAX - i).repeat(50) + &format!("(i32.add (local.get 0) (i32.const {i}))")
            )
        })
        .collect();
    let text = format!(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 20)
            (data (i32.const 64) "\60\00\05\00\08\00\00\00\50\00\00\00\04\00\00\00")
            (data (i32.const 96) "{data}")
            (data $passive "{data}")
            {funcs}
            (func $mix (result i32) (local $i i32) (local $sum i32)
                (loop $again
                    (local.set $sum (i32.mul (i32.const 31) (call 1400 (call 1001 (i32.xor (local.get $sum) (local.get $i))))))
                    (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1000))))
                (i32.or (i32.and (local.get $sum) (i32.const 0x0F0F0F0F)) (i32.const 0x40404040)))
            (func (export "_start")
                (i32.store (i32.const 80) (call $mix))
                (memory.init $passive (i32.const 327776) (i32.const 1000) (i32.const 4))
                (drop (call $write (i32.const 1) (i32.const 64) (i32.const 2) (i32.const 88)))))"#
    );
    let path = folder.join("large.wasm");
    fs::write(&path, wat::parse_str(text).unwrap()).unwrap();
    path
}

/// The output of the [`large`] module.
fn printed() -> String {
    let sum = (0..1000u32).fold(0, |sum: u32, i| (sum ^ i).wrapping_add(1000 + 1399).wrapping_mul(31));
    let mixed = (sum & 0x0F0F_0F0F | 0x4040_4040).to_le_bytes().map(char::from);
    format!("{}{}{}", &letters()[1000..1004], &letters()[327_684..327_688], String::from_iter(mixed))
}

/// The [`large`] module: the command that runs it, and the complete file with its bytes.
struct Large {
    subject: Subject,
    bytes: Vec<u8>,
}

static LARGE: LazyLock<Large> = LazyLock::new(|| {
    let caches = fresh("cache-of-large");
    fs::create_dir_all(&caches).unwrap();
    let subject = Subject::new(&[large(&caches).to_str().unwrap()]);
    assert_eq!(subject.expected(), printed());
    until_read(&subject, &caches);
    Large { subject, bytes: fs::read(find(&caches, "module").unwrap()).unwrap() }
});

/// Runs the command until the module's bytes are read from the cache, and returns their number.
fn until_read(subject: &Subject, caches: &Path) -> u64 {
    for run in 0..100 {
        let stored = subject.stats(caches);
        assert!(run == 0 || stored["cache"] == "hit", "{stored}");
        let read = stored["module_read"].as_u64().unwrap();
        if read > 0 {
            return read;
        }
    }
    panic!("the module is not in the cache");
}

/// Runs the command until the file with the module's bytes is used, and asserts that the file is complete.
fn check_complete(caches: &Path) {
    until_read(&LARGE.subject, caches);
    let files = entries(caches);
    let endings: Vec<_> = files.iter().map(|file| file.extension().unwrap().to_str().unwrap()).collect();
    assert_eq!((endings.iter().filter(|&&ending| ending == "module").count(), endings.len()), (1, 2), "{files:?}");
    assert!(fs::read(find(caches, "module").unwrap()).unwrap() == LARGE.bytes);
    LARGE.subject.check(caches, "complete");
}

/// After some runs, the bytes of a large module are in the cache, and a process reads only those that it uses. Whatever then happens to the files,
/// the output is the same, and later processes write a damaged file anew.
#[test]
fn a_large_module_is_read_in_parts() {
    let caches = fresh("cache-parts");
    fs::create_dir_all(&caches).unwrap();
    let module = caches.join("large.wasm");
    fs::copy(LARGE.subject.args()[0], &module).unwrap();
    let subject = Subject::new(&[module.to_str().unwrap()]);
    let until_read = || until_read(&subject, &caches);
    assert_eq!(subject.stats(&caches)["cache"], "miss");
    let read = until_read();
    let len = fs::metadata(&module).unwrap().len();
    assert!(read < len / 2, "{read} of {len}");
    let file = find(&caches, "module").unwrap();
    let intact = fs::read(&file).unwrap();
    let mut random = random(3);
    for round in 0..25 {
        // A process that finds it damaged removes it.
        if !file.exists() {
            until_read();
        }
        damage(&file, round, &mut random);
        (0..2).for_each(|_| subject.check(&caches, round));
    }
    // Damage that nobody has read is still there.
    let _ = fs::remove_file(&file);
    until_read();
    // The places of the bodies and the index, without which nothing is read in parts.
    for back in [20, 5000] {
        let mut bytes = intact.clone();
        let at = bytes.len() - back;
        bytes[at] ^= 1;
        fs::write(&file, bytes).unwrap();
        assert_eq!(subject.stats(&caches)["module_read"], 0);
        until_read();
    }
    assert!(fs::read(&file).unwrap() == intact);
    // A module of the same length is another one.
    let (data, mut other) = (letters(), fs::read(&module).unwrap());
    let at = 1000 + other.windows(data.len()).rposition(|bytes| bytes == data.as_bytes()).unwrap();
    other[at..at + 4].copy_from_slice(b"1234");
    fs::write(&module, &other).unwrap();
    let (seen, output) = stats(&caches, &subject.args());
    assert_eq!((&seen["stored"]["cache"], output), (&"miss".into(), format!("1234{}", &printed()[4..])));
}

/// Many processes begin at once: with an empty cache, with an entry and some of the module's bytes, and with all of them.
#[test]
fn many_processes_with_a_large_module() {
    let caches = fresh("cache-large-many");
    LARGE.subject.check_at_once(&caches, 200);
    LARGE.subject.check_at_once(&caches, 20);
    check_complete(&caches);
    LARGE.subject.check_at_once(&caches, 200);
    check_complete(&caches);
}

/// Processes are killed at any time, and while they write the module's bytes.
#[test]
fn a_killed_writer_of_a_large_module_leaves_nothing_that_is_wrong() {
    let caches = fresh("cache-large-killed");
    let len = || find(&caches, "module").and_then(|file| Some(fs::metadata(file).ok()?.len()));
    let time = Instant::now();
    LARGE.subject.check(&fresh("cache-large-killed-time"), "");
    let time = time.elapsed();
    let (mut random, mut writers) = (random(4), 0);
    // On a busy machine, few are killed after they have begun to write.
    for _ in 0..20 {
        LARGE.subject.check_killed(&caches, 20, |process, round| {
            let before = len();
            if round % 4 == 0 {
                thread::sleep(time * (round % 20) / 16);
            } else {
                while len() == before && process.0.try_wait().unwrap().is_none() {}
                thread::sleep(Duration::from_micros(random(500) as u64));
            }
            process.0.kill().unwrap();
            let was_killed = process.0.wait().unwrap().code().is_none();
            writers += u32::from(was_killed && len() != before);
        });
        if writers > 0 {
            return check_complete(&caches);
        }
    }
    panic!("no process was killed after it had begun to write");
}

/// Writing fails at any place, as on a full disk: of the entry, of the file with the module's bytes, and of its end.
#[test]
fn a_large_module_and_a_full_disk() {
    let caches = fresh("cache-large-full");
    let all = LARGE.bytes.len() as u32;
    // The last limits cut off the places or the index.
    for len in [0, 512, 4096, 40_960, 250_000, all / 2, all - 20_000, all - 4096, all - 512] {
        // One process does not write everything.
        (0..4).for_each(|_| LARGE.subject.check_limited(&caches, len / 512));
    }
    check_complete(&caches);
}

/// File systems without room for the entry, the file with the module's bytes or a part of them, which then get room.
#[test]
fn a_large_module_and_a_full_file_system() {
    let caches = fresh("cache-large-mount");
    fs::create_dir_all(&caches).unwrap();
    let args = [&["--stats=json"], &*LARGE.subject.args()].concat();
    for (options, then) in [
        ("size=64k", r#"head -c 57344 /dev/zero > "$0/rest""#),
        ("size=64k", r#"! cat /dev/zero > "$0/rest" 2> /dev/null"#),
        ("size=512k", "true"),
        ("size=1500k", "true"),
        ("nr_inodes=4", "true"),
    ] {
        // A run without statistics, which prints nothing else, comes before each run with them.
        let runs = r#"for run in 1 2 3 4; do "$1" "$3" && "$@" || exit; done"#;
        // Until everything is written, but for the header at most.
        let is_short = format!(r#"[ "$(stat -c %s "$0"/weir/*.module 2> /dev/null)" != {} ]"#, LARGE.bytes.len());
        let again =
            format!(r#"run=0; while {is_short} && [ $run -lt 100 ]; do "$@" || exit; run=$((run + 1)); done; "$@" && "$@""#);
        let room = format!(r#"mount -o remount,size=64m,nr_inodes=100 "$0" && "$@" && {again}"#);
        let script = format!(r#"mount -t tmpfs -o {options} tmpfs "$0" && mkdir -m 700 "$0/weir" && {then} && {runs} && {room}"#);
        let Some(output) = mounted(&caches, &script, &args) else { return };
        let said = stderr(&output);
        let seen = serde_json::Deserializer::from_str(&said).into_iter().map(|stats: Result<serde_json::Value, _>| {
            stats.unwrap_or_else(|error| panic!("{options} {then}: {error}: {}", said.lines().last().unwrap()))["stored"].take()
        });
        let seen: Vec<_> = seen.collect();
        assert_eq!((stdout(&output), output.status.code()), (printed().repeat(4 + seen.len()), Some(0)), "{options} {then}");
        let reads = seen.iter().map(|stored| stored["module_read"].as_u64().unwrap() > 0);
        let (reads, last): (Vec<bool>, _) = (reads.collect(), seen.last().unwrap());
        assert!(reads.is_sorted() && !reads[3] && last["module_read"] != 0, "{options} {then}: {reads:?} {last}");
        assert_eq!(last["cache"], "hit", "{options} {then}");
    }
}

/// A file with a module's bytes that is a link, has two names, can be read by others or is damaged is not used, and replaced.
#[test]
fn the_bytes_of_a_module_are_a_file_of_the_user_alone() {
    let caches = fresh("cache-large-owned");
    check_complete(&caches);
    check_owned(&caches, "module", |reason| {
        let stored = LARGE.subject.stats(&caches);
        assert_eq!((&stored["cache"], &stored["module_read"]), (&"hit".into(), &0.into()), "{reason}: {stored}");
        check_complete(&caches);
    });
}

/// The file is cut off at each of its parts, and each byte of its header is damaged; and the entry beside it is damaged, too, or absent.
#[test]
fn damage_of_a_large_module_changes_no_output() {
    let caches = fresh("cache-large-damaged");
    check_complete(&caches);
    let entry = find(&caches, "weir").unwrap();
    let (file, intact) = (find(&caches, "module").unwrap(), fs::read(&entry).unwrap());
    let len = LARGE.bytes.len();
    let cuts = [0, 1, 8, 100, 300, 65_536, 70_000, len / 2, len - 5000, len - 100, len - 1];
    let cuts = cuts.map(|end| LARGE.bytes[..end].to_vec());
    let longer = [[&*LARGE.bytes, &[0; 100]].concat(), vec![0; len], vec![0xFF; len + 1]];
    let flips = (0..200).step_by(17).map(|at| {
        let mut bytes = LARGE.bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        bytes
    });
    let mut random = random(5);
    for (round, bytes) in cuts.into_iter().chain(longer).chain(flips).enumerate() {
        fs::write(&file, &bytes).unwrap();
        match round % 4 {
            0 => fs::remove_file(&entry).unwrap(),
            1 => damage(&entry, round, &mut random),
            _ => fs::write(&entry, &intact).unwrap(),
        }
        (0..2).for_each(|_| LARGE.subject.check(&caches, (round, bytes.len())));
    }
    fs::write(&file, &LARGE.bytes[..len - 1]).unwrap();
    check_complete(&caches);
    // Both anywhere.
    for round in 0..30 {
        entries(&caches).iter().for_each(|file| damage(file, round, &mut random));
        LARGE.subject.check(&caches, round);
    }
    // Damage in pieces that no process has read is still there.
    entries(&caches).iter().for_each(|file| fs::remove_file(file).unwrap());
    check_complete(&caches);
}

/// The same for a large entry or the bytes of its module, as often before a run as while it runs. `DAMAGES` is how often.
#[test]
#[ignore = "needs programs/fetch.py python-wasi, and takes ten minutes with --release"]
fn damages_of_a_large_entry_change_no_output() {
    let caches = fresh("cache-large");
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/real/python-wasi.wasm");
    let args = [module.to_str().unwrap(), "-c", "print(sum(range(10)))"];
    for runs in 0.. {
        if stats(&caches, &args).0["stored"]["module_read"] != 0 {
            break;
        }
        assert!(runs < 100, "the module's bytes are not in the cache");
    }
    let intact: Vec<(PathBuf, Vec<u8>)> =
        entries(&caches).into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    assert_eq!(intact.len(), 2, "the entry, and the module's bytes");
    let mut random = random(2);
    let rounds = std::env::var("DAMAGES").map_or(10_000, |rounds| rounds.parse().unwrap());
    for round in 0..rounds {
        intact.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
        let path = &intact[random(2)].0;
        let output = if round % 2 == 0 {
            damage(path, round, &mut random);
            run(&caches, &args)
        } else {
            let process = begin(&caches, &args);
            thread::sleep(Duration::from_micros(random(50_000) as u64));
            // The process may have replaced the file.
            damage(path, round, &mut random);
            process.finish()
        };
        assert_prints(&output, "45\n", round);
    }
}
