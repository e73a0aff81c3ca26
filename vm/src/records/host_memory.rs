//! Memories that a host makes itself, by wasmtime's traits: see [`Config::with_host_memory`](crate::Config::with_host_memory).

use crate::{Error, MemoryType, Result};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A memory that a host has made.
///
/// # Safety
/// The bytes below [`byte_size`](LinearMemory::byte_size) are accessible, and belong to this memory alone until it is dropped. They do not
/// move. All that [`MemoryCreator`] demands stays true when the memory has grown, for its new size, and the new bytes are zero.
pub unsafe trait LinearMemory: Send + Sync + 'static {
    /// Returns the number of accessible bytes.
    fn byte_size(&self) -> usize;

    /// Returns the number of bytes to which the memory grows without moving. It grows no further.
    fn byte_capacity(&self) -> usize;

    /// Makes this number of bytes accessible, which is not more than the capacity.
    ///
    /// # Errors
    /// The memory cannot grow so much: `memory.grow` returns -1. A panic is treated as an error.
    fn grow_to(&mut self, new_size: usize) -> Result<()>;

    /// Returns the address of the first byte, which is not null.
    fn as_ptr(&self) -> *mut u8;
}

/// Makes memories for a host.
///
/// # Safety
/// The memories have the minimal size and are zero. After the accessible bytes, up to the sum of `reserved_size_in_bytes` and
/// `guard_size_in_bytes` from the first byte on, nothing is accessible if `guard_size_in_bytes` is not 0: compiled code relies on the fault,
/// and does not compare addresses.
pub unsafe trait MemoryCreator: Send + Sync {
    /// Makes a memory. All sizes are in bytes, and those of the reservation and of the guard are multiples of the size of a page.
    ///
    /// # Errors
    /// The reason why there is none. A panic is treated as an error.
    fn new_memory(
        &self,
        ty: MemoryType,
        minimum: usize,
        maximum: Option<usize>,
        reserved_size_in_bytes: Option<usize>,
        guard_size_in_bytes: usize,
    ) -> Result<Box<dyn LinearMemory>, String>;
}

/// The creator of a configuration.
#[derive(Clone)]
pub(crate) struct Creator(pub Arc<dyn MemoryCreator>);

impl fmt::Debug for Creator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Creator")
    }
}

/// What a memory of the host is asked to have, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    pub min: usize,
    pub max: Option<usize>,
    pub reserved: usize,
    pub guard: usize,
}

/// A memory of the host, with its address.
pub(crate) struct HostMemory {
    memory: Box<dyn LinearMemory>,
    base: *mut u8,
}

impl HostMemory {
    /// Has a memory made.
    ///
    /// # Errors
    /// There is none, or it is smaller than its minimum. A panic is caught, because compiled code may be below on the stack.
    pub fn new(creator: &Creator, ty: MemoryType, demand: Demand) -> Result<HostMemory> {
        let Demand { min, max, reserved, guard } = demand;
        let made = catch_unwind(AssertUnwindSafe(|| creator.0.new_memory(ty, min, max, Some(reserved), guard)));
        let memory = made.map_err(|_| Error::msg("the creator of memories panicked"))?.map_err(Error::msg)?;
        let (base, size) = (memory.as_ptr(), memory.byte_size());
        if base.is_null() || size < min {
            return Err(Error::msg(format!(
                "the creator of memories made one of {size} bytes at {base:p}, and {min} bytes are needed"
            )));
        }
        Ok(HostMemory { memory, base })
    }

    /// Returns the address of the first byte.
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// Returns the number of bytes to which it can grow.
    pub fn capacity(&self) -> usize {
        self.memory.byte_capacity()
    }

    /// Makes the first `len` bytes accessible.
    ///
    /// # Errors
    /// The host's. A panic is caught, as by [`HostMemory::new`].
    ///
    /// # Panics
    /// The memory has moved, or is still too small, although the host promises the contrary: no code can run with it.
    pub fn expose(&mut self, len: usize) -> Result<()> {
        let grown = catch_unwind(AssertUnwindSafe(|| self.memory.grow_to(len)));
        grown.map_err(|_| Error::msg("a memory of the host panicked"))??;
        assert_eq!(self.memory.as_ptr(), self.base, "a memory of the host moves below its capacity");
        assert!(self.memory.byte_size() >= len, "a memory of the host has not grown");
        Ok(())
    }
}
