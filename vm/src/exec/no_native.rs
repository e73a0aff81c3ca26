//! The substitute for native code on hosts without it.

use crate::records::config::{Config, Unavailable};
use crate::records::engines::Engines;
use crate::records::error::{Error, Result};
use crate::records::quiescence::{Domain, Word};
use std::sync::Arc;

/// Whether there is native code.
pub(super) const AVAILABLE: bool = false;

/// Whether this processor executes what the native back end emits.
pub(super) fn has_processor() -> bool {
    false
}

/// Always refuses.
///
/// # Errors
/// There is no native code.
pub(super) fn engines(_config: &Config, _quiescence: &Arc<Domain>) -> Result<Box<dyn Engines>> {
    Err(Error::new(Unavailable("there is no native code in this build of Weir, or not for this host")))
}

/// The section of a store begins: there is no code that it could keep in use.
pub(super) fn enter(_word: &Word) {}

/// It ends.
pub(super) fn leave(_word: &Word) {}
