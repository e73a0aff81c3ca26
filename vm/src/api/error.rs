//! Errors and related types: the module `weir::error`.

pub use crate::records::backtrace::{FrameInfo, WasmBacktrace};
pub use crate::records::error::{Chain, Context, Error, Result, ToWasmtimeResult};
pub use crate::{bail, ensure, format_err};

use crate::api::types::ExternType;
use weir_bytecode::names::Plain;

/// Returns `Ok(value)` with the error type [`Error`], where nothing else says what it is.
///
/// ```
/// let double = |n: i32| weir::error::Ok(2 * n);
/// assert_eq!(double(2).unwrap(), 4);
/// ```
#[expect(non_snake_case, reason = "it is used as the variant is")]
pub fn Ok<T>(value: T) -> Result<T> {
    Result::Ok(value)
}

/// The reason why a module could not be instantiated with the given imports.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The given item has another type.
    #[error("incompatible import type for `{}::{}`", Plain(.module), Plain(.name))]
    Incompatible {
        /// Module name of the import.
        module: String,
        /// Field name of the import.
        name: String,
        /// The type of the import.
        expected: String,
        /// The type of the given item.
        found: String,
    },
}

/// A [`Linker`](crate::Linker) could not instantiate a module because it has no definition for an import.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown import: `{}::{}` has not been defined", Plain(.module), Plain(.name))]
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

    /// Type of the import.
    pub fn ty(&self) -> ExternType {
        self.ty.clone()
    }
}
