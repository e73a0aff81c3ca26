//! Decoding and validation in one pass, writing the side table on the way.

use crate::Module;

/// Why bytes are not a module that Weir can run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message} (at offset {offset:#x})")]
pub struct InvalidModule {
    /// What was expected and what was found.
    pub message: String,
    /// Where, in bytes from the start of the module.
    pub offset: usize,
}

/// Decodes and validates a module from its own private bytes.
///
/// # Errors
/// The first thing that is malformed, invalid or not supported.
pub fn parse(bytes: Box<[u8]>) -> Result<Module, InvalidModule> {
    let _ = Module { bytes, ..Module::default() };
    Err(InvalidModule { message: "not yet".into(), offset: 0 })
}
