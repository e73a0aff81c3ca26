//! The cache of the command and modules whose bytes are in it, too, in a file of their own.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::cache::{Subject, assert_prints, begin, damage, entries, find, fresh, random, run, stats};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

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

/// What it prints.
fn printed() -> String {
    let sum = (0..1000u32).fold(0, |sum: u32, i| (sum ^ i).wrapping_add(1000 + 1399).wrapping_mul(31));
    let mixed = (sum & 0x0F0F_0F0F | 0x4040_4040).to_le_bytes().map(char::from);
    format!("{}{}{}", &letters()[1000..1004], &letters()[327_684..327_688], String::from_iter(mixed))
}

/// Runs it until the module's bytes are in the cache, and returns how many of them are read there.
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

/// After some runs, the bytes of a large module are in the cache, and a process reads only those that it uses. Whatever then happens to the files,
/// the output is the same, and later processes write a damaged file anew.
#[test]
fn a_large_module_is_read_in_parts() {
    let caches = fresh("cache-parts");
    fs::create_dir_all(&caches).unwrap();
    let module = large(&caches);
    let subject = Subject::new(&[module.to_str().unwrap()]);
    assert_eq!(subject.expected(), printed());
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
