//! Reads the module that a command line names: a file, or `-` for standard input.

use crate::failure::Failure;
use crate::progress;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::Path;
use weir::{Engine, Module};

/// The name of standard input.
pub(crate) const STANDARD_INPUT: &str = "-";

/// Loads a module in either format, and shows that if it takes long.
pub(crate) fn module(engine: &Engine, path: impl AsRef<OsStr>) -> Result<Module, Failure> {
    let path = path.as_ref();
    progress::during(|| loading(path), || module_quietly(engine, path))
}

/// Loads a module in either format.
pub(crate) fn module_quietly(engine: &Engine, path: &OsStr) -> Result<Module, Failure> {
    if path == STANDARD_INPUT {
        let bytes = input()?;
        if bytes.is_empty() {
            return Err(failed(weir::Error::msg("it is empty"), path));
        }
        return Module::new(engine, bytes).map_err(|error| failed(error, path));
    }
    Module::from_file(engine, path).map_err(|error| {
        if std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == 0) {
            return failed(weir::Error::msg("the file is empty"), path);
        }
        match error.is::<std::io::Error>() {
            // The library names the file, too.
            true => failed(weir::Error::msg(error.root_cause().to_string()), path),
            false => failed(error, path),
        }
    })
}

/// Loads a module, or with `trusted` one that `weir compile` has written.
pub(crate) fn program(engine: &Engine, path: &OsStr, trusted: bool) -> Result<Module, Failure> {
    let precompiled = || path != STANDARD_INPUT && Engine::detect_precompiled_file(path).is_ok_and(|kind| kind.is_some());
    if trusted && precompiled() {
        // SAFETY: the user says with an option that the file is trusted.
        return unsafe { Module::deserialize_file(engine, path) }.map_err(Failure::Module);
    }
    module(engine, path).map_err(|failure| {
        if !precompiled() {
            return failure;
        }
        Failure::Usage(format!(
            "{} is a precompiled module, which can run any code: use --allow-precompiled if you trust it",
            path.display()
        ))
    })
}

/// Reads all bytes of a module, those of its debugging information included.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    if path.as_os_str() == STANDARD_INPUT {
        return input();
    }
    std::fs::read(path).map_err(|error| failed(error.into(), path.as_os_str()))
}

fn input() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).map_err(|error| failed(error.into(), STANDARD_INPUT.as_ref()))?;
    Ok(bytes)
}

fn failed(error: weir::Error, path: &OsStr) -> Failure {
    let named = if path == STANDARD_INPUT { "standard input".into() } else { path.to_string_lossy() };
    Failure::Module(error.context(format!("loading {named}")))
}

/// Returns the text of the progress line for a file that is so large that loading it may take long.
fn loading(path: &OsStr) -> Option<String> {
    const LARGE: u64 = 4 << 20;
    let bytes = std::fs::metadata(path).ok()?.len();
    (bytes >= LARGE).then(|| format!("loading {} ({:.0} MB)", path.display(), bytes as f64 / 1e6))
}
