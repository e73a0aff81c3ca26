//! Host functions as records: what engines and compiled code need to call them.

use std::mem::offset_of;
use std::ptr;
use std::sync::Arc;
use weir_bytecode::FuncType;
use weir_contract::{FuncRef, HostCtx, InstanceCtx, Status};

/// A host function as one importer sees it. It has a context of its own, so that it can be called like any function: its
/// index is 0 there.
///
/// Each instance that imports the function gets a record of its own, which knows that instance: so [`crate::Caller`]
/// finds the exports of the caller without anybody passing it along, in every tier.
#[repr(C)]
pub(crate) struct HostRecord {
    /// First, so that a pointer to it points to the whole.
    pub ctx: HostCtx,
    pub func_ref: FuncRef,
    pub func: Arc<HostFunc>,
    /// The instance that imports it; null for the record that is nobody's import.
    pub importer: *mut InstanceCtx,
}

/// A host function, in no store yet.
pub(crate) struct HostFunc {
    pub ty: FuncType,
    /// Calls the closure, whose type it knows.
    pub call: HostCall,
    pub closure: Box<dyn Send + Sync>,
}

/// A host function as compiled code calls it: see [`HostCtx::call`].
pub(crate) type HostCall = unsafe extern "C" fn(host: *mut InstanceCtx, args: *mut u64) -> Status;

impl HostRecord {
    /// Calls the function, its arguments and results in slots at `args`. After [`Status::Trap`] the reason is in the store.
    ///
    /// # Safety
    /// The host function belongs to a live store that no other thread uses, and no reference is held into the store's
    /// records or the embedder's data. The slots at `args` are on the value stack, at `value_sp` or below, hold the
    /// parameters, and there are as many as a call needs.
    #[inline]
    pub unsafe fn call(&self, args: *mut u64) -> Status {
        // SAFETY: the caller's promise.
        unsafe { (self.func.call)(ptr::from_ref(self).cast_mut().cast(), args) }
    }
}

const _: () = assert!(offset_of!(HostRecord, ctx) == 0 && offset_of!(HostCtx, instance) == 0);
