//! Core dumps of programs that trap: `--coredump`.

use crate::failure::Failure;
use crate::output;
use std::ffi::OsStr;
use std::path::Path;
use weir::{Error, Store, WasmCoreDump};

/// Writes the core dump of `error`, if it has one, to `file`. The program's name in it is that of its module.
pub(crate) fn save<T: 'static>(file: &Path, error: &Error, store: &mut Store<T>, module: &OsStr) -> Result<(), Failure> {
    let Some(dump) = error.downcast_ref::<WasmCoreDump>() else { return Ok(()) };
    let written = output::write(file, &dump.serialize(store, &module.to_string_lossy()));
    written.map_err(|error| Failure::Profile(format!("--coredump {}: {error}", file.display())))
}
