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

/// Writes a file. An existing one is replaced entirely or not at all; a device or a pipe stays, and takes the bytes.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return fs::write(path, bytes);
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = PathBuf::from(name);
    fs::write(&new, bytes).and_then(|()| fs::rename(&new, path)).inspect_err(|_| {
        // The first error is the one to report.
        let _ = fs::remove_file(&new);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_device_is_not_replaced() {
        let folder = std::env::temp_dir().join(format!("weir-output-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (device, file) = (folder.join("device"), folder.join("file"));
        std::os::unix::fs::symlink("/dev/null", &device).unwrap();
        for path in [&device, &file, &file] {
            write(path, b"bytes").unwrap();
        }
        let kept = fs::symlink_metadata(&device).unwrap().is_symlink();
        let written = fs::read(&file).unwrap();
        let count = fs::read_dir(&folder).unwrap().count();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((kept, &*written, count), (true, &b"bytes"[..], 2));
    }
}
