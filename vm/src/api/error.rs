//! Errors, and what goes with them: the module `weir::error`.

pub use crate::records::backtrace::{FrameInfo, WasmBacktrace};
pub use crate::records::error::{Context, Error, Result};

use crate::api::types::ExternType;

/// Why a module could not be instantiated with the imports it was given.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// What was given has another type.
    #[error("incompatible import type for `{module}::{name}`: expected {expected}, found {found}")]
    Incompatible {
        /// Module name of the import.
        module: String,
        /// Field name of the import.
        name: String,
        /// Its type.
        expected: String,
        /// The type of what was given.
        found: String,
    },
    /// As many items as there are imports must be given.
    #[error("expected {expected} imports, found {found}")]
    Count {
        /// How many imports the module has.
        expected: usize,
        /// How many were given.
        found: usize,
    },
}

/// Why a module could not be instantiated by a [`Linker`](crate::Linker): it imports what was not defined.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown import `{module}::{name}`: expected {ty}, found nothing of that name")]
pub struct UnknownImportError {
    module: String,
    name: String,
    ty: ExternType,
}

impl UnknownImportError {
    pub(crate) fn new(module: &str, name: &str, ty: ExternType) -> UnknownImportError {
        UnknownImportError { module: module.into(), name: name.into(), ty }
    }

    /// Module name of the import.
    pub fn module(&self) -> &str {
        &self.module
    }

    /// Field name of the import.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its type.
    pub fn ty(&self) -> ExternType {
        self.ty.clone()
    }
}
