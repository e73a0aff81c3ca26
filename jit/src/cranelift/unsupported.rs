//! Refusals.

use crate::request::{Backend, Refusal};

/// What this back end has no code for.
pub(super) fn unsupported(what: String) -> Refusal {
    Refusal::Unsupported { backend: Backend::Cranelift, what }
}
