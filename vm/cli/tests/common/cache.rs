//! Helpers of the tests of the cache: runs with one, and what happens to its files meanwhile.

use super::{Process, command, start, stderr, stdout, weir};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::thread;

/// A folder for caches, which does not exist.
pub fn fresh(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    folder
}

pub fn begin(caches: &Path, args: &[&str]) -> Process {
    start(command().env("XDG_CACHE_HOME", caches).args(args))
}

pub fn run(caches: &Path, args: &[&str]) -> Output {
    begin(caches, args).finish()
}

/// The statistics of a run, and its output.
pub fn stats(caches: &Path, args: &[&str]) -> (serde_json::Value, String) {
    let output = run(caches, &[&["--stats=json"], args].concat());
    (serde_json::from_slice(&output.stderr).unwrap_or_else(|_| panic!("{}", stderr(&output))), stdout(&output))
}

/// Asserts that a process has ended well and printed this and nothing else.
pub fn assert_prints(output: &Output, expected: &str, what: impl Debug) {
    assert_eq!((&*stdout(output), &*stderr(output), output.status.code()), (expected, "", Some(0)), "{what:?}");
}

pub fn entries(caches: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(caches.join("weir")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.file_name().is_some_and(|name| name != "lock"));
    files.sort();
    files
}

/// The file with this ending in a cache, if there is one.
pub fn find(caches: &Path, ending: &str) -> Option<PathBuf> {
    let files = fs::read_dir(caches.join("weir")).ok()?.map(|entry| entry.unwrap().path());
    let is_new = |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"new-"));
    files.into_iter().find(|path| path.extension().is_some_and(|found| found == ending) && !is_new(path))
}

/// Runs the command after `mount`, a script of the shell for which `$0` is the folder for caches, in namespaces of its own. `None` if this system
/// does not let a user mount anything, which is said.
pub fn mounted(caches: &Path, mount: &str, args: &[&str]) -> Option<Output> {
    let unshare = |script: &str, args: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).arg(caches).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).env("XDG_CACHE_HOME", caches);
        command
    };
    match unshare("mount -t tmpfs tmpfs \"$0\"", &[]).stderr(Stdio::piped()).output() {
        Ok(done) if done.status.success() => {}
        Ok(done) => {
            skip(&format!("no file system can be mounted: {}", stderr(&done).trim_end()));
            return None;
        }
        Err(error) => {
            skip(&format!("`unshare` does not start: {error}"));
            return None;
        }
    }
    let weir = [&[super::WEIR], args].concat();
    Some(start(&mut unshare(&format!("{mount} && exec \"$@\""), &weir)).finish())
}

/// Says once that the test that runs, or the rest of it, is skipped. This is shown although the test passes: only what macros print is captured.
pub fn skip(reason: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let test = thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("SKIPPED here: {test}: {reason}\n");
    if SAID.lock().unwrap().insert(line.clone()) {
        io::stderr().write_all(line.as_bytes()).unwrap();
    }
}

/// Returns numbers below its argument, from a seed.
pub fn random(mut seed: u64) -> impl FnMut(usize) -> usize {
    move |bound| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % bound
    }
}

/// Truncates a file, or flips bits of it.
pub fn damage(path: &Path, round: usize, random: &mut impl FnMut(usize) -> usize) {
    let mut bytes = fs::read(path).unwrap();
    if bytes.is_empty() {
        return;
    }
    match round % 3 {
        0 => bytes.truncate(random(bytes.len())),
        _ => {
            for _ in 0..=round % 3 * 4 {
                let at = random(bytes.len());
                bytes[at] ^= 1 << random(8);
            }
        }
    }
    fs::write(path, bytes).unwrap();
}

/// A command and what it prints.
pub struct Subject {
    args: Vec<String>,
    expected: String,
}

impl Subject {
    /// What it prints is found out without a cache.
    pub fn new(args: &[&str]) -> Subject {
        let output = weir(args);
        assert_prints(&output, &stdout(&output), args);
        Subject { args: args.iter().map(ToString::to_string).collect(), expected: stdout(&output) }
    }

    pub fn args(&self) -> Vec<&str> {
        self.args.iter().map(String::as_str).collect()
    }

    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// Runs the command with this cache.
    pub fn check(&self, caches: &Path, what: impl Debug) {
        assert_prints(&run(caches, &self.args()), &self.expected, what);
    }

    /// Runs the command and returns its `stored` statistics.
    pub fn stats(&self, caches: &Path) -> serde_json::Value {
        let (mut stats, output) = stats(caches, &self.args());
        assert_eq!(output, self.expected, "{stats}");
        stats["stored"].take()
    }

    /// Runs the command in this many processes at once.
    pub fn check_at_once(&self, caches: &Path, count: usize) {
        let processes: Vec<Process> = (0..count).map(|_| begin(caches, &self.args())).collect();
        for process in processes {
            assert_prints(&process.finish(), &self.expected, count);
        }
        let is_new = |file: &PathBuf| file.file_name().unwrap().to_str().unwrap().starts_with("new-");
        assert!(!entries(caches).iter().any(is_new), "{:?}", entries(caches));
    }

    /// In each round `kill` ends a process of the command, and then another one runs to its end. Every tenth round empties the cache.
    pub fn check_killed(&self, caches: &Path, rounds: u32, mut kill: impl FnMut(&mut Process, u32)) {
        for round in 0..rounds {
            let mut process = begin(caches, &self.args());
            kill(&mut process, round);
            process.0.wait().unwrap();
            self.check(caches, round);
            if round % 10 == 9 {
                entries(caches).iter().for_each(|file| fs::remove_file(file).unwrap());
            }
        }
    }

    /// Runs the command with files limited to this many blocks of 512 bytes.
    pub fn check_limited(&self, caches: &Path, blocks: u32) {
        // Without the signal, which a full disk does not send.
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, super::WEIR]).args(&self.args).env("XDG_CACHE_HOME", caches);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        assert_prints(&start(&mut command).finish(), &self.expected, blocks);
    }
}

/// Files with this ending of a cache that are links, have two names, can be read by others or are damaged. `check` is called with the reason why each of
/// them is not used; after it there is one that is used.
pub fn check_owned(caches: &Path, ending: &str, mut check: impl FnMut(&str)) {
    let file = || find(caches, ending).expect("a file");
    fs::hard_link(file(), caches.join("second-name")).unwrap();
    check("miss: the file is not a file of the user alone");
    fs::set_permissions(file(), fs::Permissions::from_mode(0o644)).unwrap();
    check("miss: the file is not");
    let link = file();
    fs::rename(&link, caches.join("moved")).unwrap();
    symlink(caches.join("moved"), &link).unwrap();
    check("miss");
    let mut bytes = fs::read(file()).unwrap();
    bytes[50] ^= 1;
    fs::write(file(), bytes).unwrap();
    check("refused: it is damaged");
}
