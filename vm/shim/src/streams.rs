//! The standard streams of a container: FIFOs that containerd has made, or nothing.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// What an absent stream is.
const NOTHING: &str = "/dev/null";

/// The path of a stream as containerd gives it: that of a FIFO, or empty.
fn fifo(path: &str) -> io::Result<Option<&Path>> {
    if path.is_empty() {
        return Ok(None);
    }
    let kind = std::fs::metadata(path).map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))?.file_type();
    if kind.is_fifo() {
        Ok(Some(Path::new(path)))
    } else {
        Err(io::Error::other(format!("{path}: expected a FIFO for a standard stream")))
    }
}

/// Keeps a writer of standard input, so that the guest's input does not end before containerd has opened its own, nor when that is
/// closed for a while. `None` without standard input.
///
/// # Errors
/// The path is no FIFO, or the system's error.
pub(crate) fn hold_input(path: &str) -> io::Result<Option<File>> {
    // A FIFO opened for both does not wait for another process.
    fifo(path)?.map(|path| OpenOptions::new().read(true).write(true).open(path)).transpose()
}

/// Opens standard input for the guest. Another process holds it: see [`hold_input`].
///
/// # Errors
/// The path is no FIFO, or the system's error.
pub(crate) fn input(path: &str) -> io::Result<File> {
    File::open(fifo(path)?.unwrap_or(Path::new(NOTHING)))
}

/// Opens standard output or standard error for the guest. It is also open for reading, so that a guest does not end when containerd
/// restarts.
///
/// # Errors
/// The path is no FIFO, or the system's error.
pub(crate) fn output(path: &str) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(fifo(path)?.unwrap_or(Path::new(NOTHING)))
}

/// Writes why there is no guest to what would be its standard error, if that is open.
pub(crate) fn report(path: &str, message: &str) {
    let _ = output(path).and_then(|mut errors| writeln!(errors, "weir: {message}"));
}
