//! Helpers of the tests of the command.

#![allow(dead_code, reason = "not every test uses everything")]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub fn weir(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir")).args(args).stdin(Stdio::null()).output().expect("weir starts")
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
    let message = stderr(output);
    assert_eq!(output.status.code(), Some(status), "{message}");
    assert_eq!(stdout(output), "");
    assert_eq!(message.matches("weir: ").count(), 1, "{message}");
    for text in says {
        assert!(message.contains(text), "`{text}` is missing in: {message}");
    }
}
