//! Files that the command writes.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Fails if the folder in which `path` would be written does not exist.
pub(crate) fn has_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match fs::metadata(folder)?.is_dir() {
        true => Ok(()),
        false => Err(io::ErrorKind::NotADirectory.into()),
    }
}

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
