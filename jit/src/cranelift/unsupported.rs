//! Refusals.

use crate::request::{Backend, Refusal};

/// The refusal of code that this back end cannot compile.
pub(super) fn unsupported(what: String) -> Refusal {
    Refusal::Unsupported { backend: Backend::Cranelift, what }
}
