//! Folders for temporary files.

use std::path::{Path, PathBuf};
use std::{env, fs, io, process};

/// A folder of this process. It is removed when this is dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates a folder, whose name begins with `name`.
    ///
    /// # Errors
    /// The system's.
    pub fn new(name: &str) -> io::Result<Scratch> {
        let folder = env::temp_dir().join(format!("{name}-{}", process::id()));
        fs::create_dir_all(&folder)?;
        Ok(Scratch(folder))
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What remains in the folder for temporary files does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}
