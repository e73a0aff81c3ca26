//! Errors of snapshots.

/// The reason why a module or the state of its instance cannot be written as a module.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The module has no such export, or the export is not what it is needed for.
    #[error("{0}")]
    Export(String),
    /// The state of an imported item belongs to another instance or to the host.
    #[error("the module imports {kind} `{module}.{name}`: its contents belong to the host, and a snapshot cannot hold them")]
    Import {
        /// What is imported: `the mutable global`, `the memory` or `the table`.
        kind: &'static str,
        /// Module name of the import.
        module: String,
        /// Field name of the import.
        name: String,
    },
    /// A global or a table holds a reference that only the running instance has.
    #[error("{place} holds {held}, which a snapshot cannot hold")]
    Reference {
        /// The global, or the element of a table.
        place: String,
        /// What it refers to.
        held: &'static str,
    },
    /// An exception was thrown into the host, which has not taken it.
    #[error("an exception is pending, which a snapshot cannot hold")]
    Exception,
    /// A function import was called during the initialisation that the linker does not define.
    #[error("the initialisation calls the import `{module}.{name}`, which is not available to it")]
    Call {
        /// Module name of the import.
        module: String,
        /// Field name of the import.
        name: String,
    },
}
