//! Handles of linear memories.

use crate::api::store::{AsContext, AsContextMut, StoreContext, StoreContextMut};
use crate::records::fiber::Fiber;
use crate::records::memory::MemoryRecord;
use crate::records::store::StoreRecord;
use crate::{Error, MemoryType, Result};
use std::ptr::{self, NonNull};
use std::slice;

/// A linear memory of a store. The handle is valid as long as the store.
///
/// ```
/// use weir::{Engine, Memory, MemoryType, Store};
///
/// let mut store = Store::new(&Engine::default(), ());
/// let memory = Memory::new(&mut store, MemoryType::new(1, None))?;
/// memory.write(&mut store, 8, b"weir")?;
/// assert_eq!(&memory.data(&store)[8..12], b"weir");
/// assert_eq!(memory.grow(&mut store, 1)?, 1);
/// assert_eq!(memory.size(&store), 2);
/// # Ok::<(), weir::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    store: u64,
    record: NonNull<MemoryRecord>,
}

// SAFETY: the record is only reached through a borrow of its store.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// A read or write beyond the end of a memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("out of bounds memory access")]
#[non_exhaustive]
pub struct MemoryAccessError {
    /// First byte of the access.
    pub offset: usize,
    /// Length of the access in bytes.
    pub len: usize,
    /// Size of the memory in bytes.
    pub size: usize,
}

impl Memory {
    /// Creates a zeroed memory of the type's minimum size.
    ///
    /// # Errors
    /// The host lacks the memory or address space, or the store's limits forbid it.
    pub fn new(mut store: impl AsContextMut, ty: MemoryType) -> Result<Memory> {
        let store = store.as_context_mut();
        store.engine().record().check_process()?;
        // SAFETY: the store is borrowed, and no reference into it is held.
        let record = unsafe { StoreRecord::add_memory(store.record(), ty, usize::MAX, ptr::null_mut())? };
        // SAFETY: the memory has just been made there.
        Ok(unsafe { Memory::from_raw(store.id(), record) })
    }

    /// Returns the type with which the memory was made. [`Memory::size`] returns the current size.
    pub fn ty(&self, store: impl AsContext) -> MemoryType {
        // SAFETY: `in_store` proves that it exists, and the store is borrowed.
        unsafe { (*self.in_store(store.as_context().id())).ty }
    }

    /// Returns the type for linking, with the current size as the minimum.
    pub(crate) fn current_type(&self, store: impl AsContext) -> MemoryType {
        // SAFETY: as for `ty`.
        unsafe { (*self.in_store(store.as_context().id())).current_type() }
    }

    /// Returns the bytes of the memory.
    pub fn data<'a, T: 'static>(&self, store: impl Into<StoreContext<'a, T>>) -> &'a [u8] {
        // SAFETY: `in_store` proves that it exists; neither guest nor host writes to it, or shrinks it, while the
        // store is borrowed.
        unsafe {
            let memory = &*self.in_store(store.into().id());
            slice::from_raw_parts(memory.ctx.base, memory.len())
        }
    }

    /// Returns the bytes of the memory, mutably.
    pub fn data_mut<'a, T: 'static>(&self, store: impl Into<StoreContextMut<'a, T>>) -> &'a mut [u8] {
        // SAFETY: `in_store` proves that it exists; no other code reaches it while the store is borrowed.
        unsafe {
            let memory = &*self.in_store(store.into().id());
            slice::from_raw_parts_mut(memory.ctx.base, memory.len())
        }
    }

    /// Returns the bytes of the memory, mutably, and the embedder's data.
    pub fn data_and_store_mut<'a, T: 'static>(&self, store: impl Into<StoreContextMut<'a, T>>) -> (&'a mut [u8], &'a mut T) {
        let store = store.into();
        // SAFETY: as for `data_mut`; the embedder's data is not in the memory.
        let data = unsafe {
            let memory = &*self.in_store(store.id());
            slice::from_raw_parts_mut(memory.ctx.base, memory.len())
        };
        (data, store.into_data_mut())
    }

    /// Returns the address of the first byte. The memory never moves.
    pub fn data_ptr(&self, store: impl AsContext) -> *mut u8 {
        // SAFETY: `in_store` proves that it exists.
        unsafe { (*self.in_store(store.as_context().id())).ctx.base }
    }

    /// Copies bytes out of the memory.
    ///
    /// # Errors
    /// The range is not entirely within the memory; nothing is copied.
    pub fn read(&self, store: impl AsContext, offset: usize, buffer: &mut [u8]) -> Result<(), MemoryAccessError> {
        let data = self.data(&store);
        let range = checked(data.len(), offset, buffer.len())?;
        buffer.copy_from_slice(&data[range]);
        Ok(())
    }

    /// Copies bytes into the memory.
    ///
    /// # Errors
    /// The range is not entirely within the memory; nothing is copied.
    pub fn write(&self, mut store: impl AsContextMut, offset: usize, buffer: &[u8]) -> Result<(), MemoryAccessError> {
        let data = self.data_mut(&mut store);
        let range = checked(data.len(), offset, buffer.len())?;
        data[range].copy_from_slice(buffer);
        Ok(())
    }

    /// Returns the size in pages.
    pub fn size(&self, store: impl AsContext) -> u64 {
        // SAFETY: `in_store` proves that it exists.
        unsafe { (*self.in_store(store.as_context().id())).pages() }
    }

    /// Returns the size in bytes.
    pub fn data_size(&self, store: impl AsContext) -> usize {
        // SAFETY: `in_store` proves that it exists.
        unsafe { (*self.in_store(store.as_context().id())).len() }
    }

    /// Returns the page size in bytes.
    pub fn page_size(&self, store: impl AsContext) -> u64 {
        self.ty(store).page_size()
    }

    /// Returns the binary logarithm of the page size in bytes.
    pub fn page_size_log2(&self, store: impl AsContext) -> u8 {
        self.ty(store).page_size_log2()
    }

    /// Adds `delta` zeroed pages and returns the previous size in pages.
    ///
    /// # Errors
    /// The memory's maximum, the store's limits or the host forbid it; the memory is unchanged.
    pub fn grow(&self, mut store: impl AsContextMut, delta: u64) -> Result<u64> {
        let store = store.as_context_mut();
        // SAFETY: the store is borrowed.
        unsafe { self.grow_on(store.record(), delta, ptr::null_mut()) }
    }

    /// Grows the memory as [`Memory::grow`] does, by code on this fiber, or on none.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// The store is live, and nothing else uses it. If there is a fiber, the current code is on it.
    pub(super) unsafe fn grow_on(&self, record: *mut StoreRecord, delta: u64, fiber: *mut Fiber) -> Result<u64> {
        // SAFETY: the caller's promise; `in_store` proves that the memory exists.
        let grown = unsafe {
            (*record).engine.record().check_process()?;
            (*self.in_store((*record).id)).grow(delta, StoreRecord::asked(record, fiber))?
        };
        grown.ok_or_else(|| Error::msg(format!("failed to grow memory by `{delta}`")))
    }

    /// # Safety
    /// The memory belongs to the store with identity `store`.
    pub(crate) unsafe fn from_raw(store: u64, record: *mut MemoryRecord) -> Memory {
        Memory { store, record: NonNull::new(record).expect("a record is not at address 0") }
    }

    /// Returns whether the memory is one of the store with this identity.
    pub(crate) fn belongs_to(&self, id: u64) -> bool {
        self.store == id
    }

    /// Returns the record, which is valid because the store with this identity exists.
    pub(crate) fn in_store(&self, id: u64) -> *mut MemoryRecord {
        assert_eq!(self.store, id, "a memory was used with a store that is not its own");
        self.record.as_ptr()
    }
}

fn checked(size: usize, offset: usize, len: usize) -> Result<std::ops::Range<usize>, MemoryAccessError> {
    match offset.checked_add(len) {
        Some(end) if end <= size => Ok(offset..end),
        _ => Err(MemoryAccessError { offset, len, size }),
    }
}
