//! The traits of wasmtime by which a host makes memories itself: see [`Config::with_host_memory`](crate::Config::with_host_memory).

use crate::{MemoryType, Result};

/// A memory that a host has made. Weir uses none; the trait is there for hosts that implement it for wasmtime, too.
///
/// # Safety
/// The bytes belong to the memory alone, and those below the capacity do not move.
pub unsafe trait LinearMemory: Send + Sync + 'static {
    /// Returns the number of accessible bytes.
    fn byte_size(&self) -> usize;

    /// Returns the number of bytes to which the memory grows without moving.
    fn byte_capacity(&self) -> usize;

    /// Makes this number of bytes accessible.
    ///
    /// # Errors
    /// The memory cannot grow so much.
    fn grow_to(&mut self, new_size: usize) -> Result<()>;

    /// Returns the address of the first byte.
    fn as_ptr(&self) -> *mut u8;
}

/// Makes memories for a host. Weir calls none: see [`Config::with_host_memory`](crate::Config::with_host_memory).
///
/// # Safety
/// The memories are zero, have the size of the type's minimum, and are reserved and guarded as the arguments say.
pub unsafe trait MemoryCreator: Send + Sync {
    /// Makes a memory. All sizes are in bytes.
    ///
    /// # Errors
    /// The reason why there is none.
    fn new_memory(
        &self,
        ty: MemoryType,
        minimum: usize,
        maximum: Option<usize>,
        reserved_size_in_bytes: Option<usize>,
        guard_size_in_bytes: usize,
    ) -> Result<Box<dyn LinearMemory>, String>;
}
