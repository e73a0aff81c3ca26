//! What a program may do with files.

/// The access of a program to a preopened directory and everything below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FsPerms {
    /// Only operations that change nothing.
    ReadOnly,
    /// Everything that the host permits the process.
    ReadWrite,
}

impl FsPerms {
    /// Returns whether operations that change something are refused.
    pub fn write_not_permitted(&self) -> bool {
        matches!(self, FsPerms::ReadOnly)
    }
}
