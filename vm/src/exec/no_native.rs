//! Replaces `native` on hosts without native code.

use crate::records::config::{Config, Unavailable};
use crate::records::engines::Engines;
use crate::records::error::{Error, Result};
use crate::records::quiescence::{Domain, Word};
use std::sync::Arc;

/// Whether there is native code.
pub(super) const AVAILABLE: bool = false;

/// Whether this processor executes the code of the native back end.
pub(super) fn has_processor() -> bool {
    false
}

/// Always returns an error.
///
/// # Errors
/// There is no native code.
pub(super) fn engines(_config: &Config, _quiescence: &Arc<Domain>) -> Result<Box<dyn Engines>> {
    Err(Error::new(Unavailable::new("there is no native code in this build of Weir, or not for this host")))
}

/// Returns whether this thread can take a trap. No engine prepares threads, so there is nothing to prepare.
pub(super) fn thread_is_prepared() -> bool {
    true
}

/// Begins the section of a store. No code can be retired, so nothing is recorded.
pub(super) fn enter(_word: &Word) {}

/// Ends the section.
pub(super) fn leave(_word: &Word) {}

/// Notes that a stack is suspended. No code can be retired, so nothing is recorded.
#[cfg(feature = "async")]
pub(super) fn suspend(_word: &Word, _fiber: usize, _stack: (usize, usize), _at_rest: bool) {}

/// Notes that a stack is resumed.
#[cfg(feature = "async")]
pub(super) fn resume(_word: &Word, _fiber: usize) {}
