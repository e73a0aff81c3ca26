//! Helpers of the tests of the command.

#![allow(dead_code, reason = "not every test uses everything")]

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod cache;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// The path of the binary. It is started by [`start`] only.
pub const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// A process that runs the binary.
#[must_use = "`finish` looks for a panic"]
pub struct Process(pub Child);

impl Process {
    /// Waits for its end. Fails if it panicked.
    pub fn finish(self) -> Output {
        let output = self.0.wait_with_output().expect("it ends");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!message.contains("panicked at"), "{message}");
        output
    }
}

/// Starts `command`, which runs the binary, directly or by way of another program. Its standard error is piped.
pub fn start(command: &mut Command) -> Process {
    Process(command.stderr(Stdio::piped()).spawn().expect("the command starts"))
}

/// The command, without arguments. It reads nothing, and its output is piped.
pub fn command() -> Command {
    let mut command = Command::new(WEIR);
    // No test uses the user's cache, and few have one.
    command.env("XDG_CACHE_HOME", "/dev/null");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Runs the command with these arguments to its end.
pub fn weir(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    start(command().args(args)).finish()
}

/// Creates a file with these contents; its name is unique to the test that passes `name`.
pub fn file(name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, contents).expect("a writable folder");
    path
}

pub fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs").join(name).join(format!("{name}.wasm"))
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// Asserts that the command failed with this status and printed nothing but one message, which contains all of these
/// texts.
pub fn assert_fails(output: &Output, status: i32, says: &[&str]) {
    assert_fails_after(output, "", status, says);
}

/// The same for a command that first printed `printed`.
pub fn assert_fails_after(output: &Output, printed: &str, status: i32, says: &[&str]) {
    let message = stderr(output);
    assert_eq!(output.status.code(), Some(status), "{message}");
    assert_eq!(stdout(output), printed);
    assert_eq!(message.matches("weir: ").count(), 1, "{message}");
    assert!(message.starts_with("weir: "), "{message}");
    for text in says {
        assert!(message.contains(text), "`{text}` is missing in: {message}");
    }
}
