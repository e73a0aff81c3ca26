//! A signal or the time limit ends a run: its code is in the cache, and the statistics and the profile are written.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::cache::{entries, fresh, stats};
use common::{Process, WEIR, file, start, stderr};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ChildStdin, Command, Output, Stdio};
use std::sync::LazyLock;

/// A program that computes until it is compiled, says that it is ready, and reads until its input ends. The tests, which run at once, have one
/// file, which is written once.
static READER: LazyLock<String> = LazyLock::new(|| {
    let text = r#"(module
        (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
        (memory (export "memory") 1)
        (data (i32.const 0) "\08\00\00\00\06\00\00\00ready\0a")
        (func $work (param $n i32) (result i32)
            (loop $again (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
            (local.get $n))
        (func (export "_start") (local $n i32)
            (local.set $n (i32.const 100000))
            (loop $again
                (drop (call $work (i32.const 1000)))
                (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
            (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))
            (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 16)))))"#;
    file("ending.wat", text).to_str().unwrap().to_owned()
});

/// A run of that program, which reads.
struct Run {
    process: Process,
    input: Option<ChildStdin>,
}

impl Run {
    /// Starts it by `env` with this option, since signals may be ignored in the process that runs the tests.
    fn ready(caches: &Path, option: &str, flags: &[&str]) -> Run {
        let mut command = Command::new("env");
        command.arg(option).arg(WEIR).args(flags).arg(&*READER).env("XDG_CACHE_HOME", caches);
        let mut process = start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut line = [0; 6];
        process.0.stdout.as_mut().unwrap().read_exact(&mut line).expect("the program has started");
        assert_eq!(&line, b"ready\n");
        let input = process.0.stdin.take();
        Run { process, input }
    }

    fn send(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.process.0.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Sends a signal that ends it.
    fn ended_by(self, signal: &str, number: i32) -> Output {
        self.send(signal);
        let output = self.process.finish();
        assert_eq!(output.status.signal(), Some(number), "{signal}: {}", stderr(&output));
        output
    }
}

const DEFAULT: &str = "--default-signal=HUP,INT,TERM";

#[test]
fn a_signal_keeps_what_was_compiled() {
    for (signal, number) in [("-HUP", 1), ("-INT", 2), ("-TERM", 15)] {
        let caches = fresh(&format!("ending{signal}"));
        let output = Run::ready(&caches, DEFAULT, &[]).ended_by(signal, number);
        assert_eq!(stderr(&output), "");
        assert_eq!(entries(&caches).len(), 1, "{signal}");
        let (stats, _) = stats(&caches, &[&READER]);
        let stored = &stats["stored"];
        assert_eq!(stored["cache"], "hit", "{signal}");
        assert!(stored["baseline"].as_u64().unwrap() + stored["optimised"].as_u64().unwrap() > 0, "{signal}: {stored}");
    }
}

#[test]
fn a_time_limit_that_ends_a_blocked_program_keeps_what_was_compiled() {
    let caches = fresh("ending-time");
    let run = Run::ready(&caches, DEFAULT, &["--timeout", "3", "--stats=json"]);
    let output = run.process.finish();
    assert_eq!(output.status.code(), Some(134));
    let said = stderr(&output);
    let (stats, message) = said.trim().rsplit_once('\n').expect("statistics and a message");
    assert!(message.contains("not done within 3 s"), "{said}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(stats).unwrap()["stored"]["cache"], "miss", "{said}");
    assert_eq!(entries(&caches).len(), 1);
    drop(run.input);
}

#[test]
fn a_signal_writes_statistics_and_the_profile() {
    let (caches, saved) = (fresh("ending-written"), fresh("ending-written.prof"));
    let saved = saved.to_str().unwrap();
    let output = Run::ready(&caches, DEFAULT, &["--stats=json", "--profile-save", saved]).ended_by("-TERM", 15);
    let stats: serde_json::Value = serde_json::from_str(&stderr(&output)).expect("only the statistics");
    assert!(stats["stored"]["cache"].is_null());
    let again = start(common::command().args(["--profile-use", saved, &READER])).finish();
    assert_eq!((again.status.code(), stderr(&again)), (Some(0), String::new()));
}

/// As `nohup` and shells for programs in the background begin them.
#[test]
fn ignored_signals_are_ignored() {
    let caches = fresh("ending-ignored");
    let mut run = Run::ready(&caches, "--ignore-signal=HUP,INT", &[]);
    run.send("-HUP");
    run.send("-INT");
    drop(run.input.take());
    let output = run.process.finish();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
}
