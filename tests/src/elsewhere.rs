//! Modules that another process has serialised: a first process serialises and writes each module. When it has ended, a second process
//! executes the same tests or seeds with the modules that were written.

use crate::scratch::Scratch;
use std::process::Command;
use std::{env, fs, io};
use weir::RoundTrip;

/// Set in the process that writes, to the folder.
const FOLDER: &str = "WEIR_STORED";

/// The files of another process. They are removed when this is dropped.
#[derive(Debug)]
pub struct Elsewhere(Scratch);

impl Elsewhere {
    /// Creates a folder for the files.
    ///
    /// # Errors
    /// The system's.
    pub fn new() -> io::Result<Elsewhere> {
        Scratch::new("weir-stored").map(Elsewhere)
    }

    /// Runs `command` to its end, which must be this program, in place of an earlier one. It finds in [`Elsewhere::role`] that it is to write.
    /// Returns whether it succeeded.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&self, command: &mut Command) -> io::Result<bool> {
        fs::remove_dir_all(self.0.path())?;
        fs::create_dir(self.0.path())?;
        Ok(command.env(FOLDER, self.0.path()).output()?.status.success())
    }

    /// How this process runs what the other one wrote.
    pub fn read(&self) -> RoundTrip {
        RoundTrip::From(self.0.path().into())
    }

    /// How this process writes, if it is the one that does.
    pub fn role() -> Option<RoundTrip> {
        env::var_os(FOLDER).map(|folder| RoundTrip::To(folder.into()))
    }
}

/// Runs a test, which this is, in another process that writes and then here.
///
/// # Panics
/// There is no other process, or it fails.
pub fn twice(test: &str, run: impl Fn(RoundTrip)) {
    if let Some(role) = Elsewhere::role() {
        return run(role);
    }
    let elsewhere = Elsewhere::new().expect("a folder for temporary files");
    let mut other = Command::new(env::current_exe().expect("the program of this test"));
    let succeeded = elsewhere.write(other.args(["--exact", test])).expect("another process");
    assert!(succeeded, "{test} fails in the process that stores modules: {FOLDER}=FOLDER cargo test … {test}");
    run(elsewhere.read());
}
