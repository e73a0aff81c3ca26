//! Files that the command writes.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Writes a file. An existing one is replaced entirely or not at all.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = PathBuf::from(name);
    fs::write(&new, bytes).and_then(|()| fs::rename(&new, path)).inspect_err(|_| {
        // The first error is the one to report.
        let _ = fs::remove_file(&new);
    })
}
