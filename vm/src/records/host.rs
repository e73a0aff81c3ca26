//! Records of host functions: the data that engines and compiled code need to call them.

use std::mem::{self, offset_of};
use std::ptr;
use std::sync::Arc;
use weir_bytecode::FuncType;
use weir_contract::{FuncRef, HostCtx, InstanceCtx, Status};

/// A host function as one importer sees it. It has a context of its own, in which its index is 0, so that it can be
/// called like any function.
///
/// Each instance that imports the function has a record of its own with a pointer to that instance. So
/// [`crate::Caller`] finds the caller's exports in every tier without passing the caller in each call.
#[repr(C)]
pub(crate) struct HostRecord {
    /// First, so that a pointer to it points to the whole.
    pub ctx: HostCtx,
    pub func_ref: FuncRef,
    pub func: Arc<HostFunc>,
    /// The instance that imports it; null if the function was not added as an import.
    pub importer: *mut InstanceCtx,
}

/// A host function that is in no store.
pub(crate) struct HostFunc {
    pub ty: FuncType,
    /// Calls the closure in stores whose calls of host functions do nothing else; generic over the closure's type.
    pub call: HostCall,
    /// Calls it in the other stores: those with a hook, and those in which everything moves at every safepoint.
    pub attended: HostCall,
    pub closure: Box<dyn Send + Sync>,
    /// Whether it may suspend its caller.
    #[cfg_attr(not(feature = "async"), allow(dead_code, reason = "there are no asynchronous calls"))]
    pub is_async: bool,
}

/// A host function as compiled code calls it: see [`HostCtx::call`].
pub(crate) type HostCall = unsafe extern "C" fn(host: *mut InstanceCtx, args: *mut u64) -> Status;

impl HostRecord {
    /// Calls the function. Arguments and results are in slots at `args`. After [`Status::Trap`] the reason is in the
    /// store.
    ///
    /// # Safety
    /// The host function belongs to a live store that no other thread uses, and no reference is held into the store's
    /// records or the embedder's data. The slots at `args` are on the value stack, at `value_sp` or below, and hold the
    /// parameters; there are as many slots as a call needs.
    #[inline]
    pub unsafe fn call(&self, args: *mut u64) -> Status {
        // SAFETY: the caller's promise; the address is that of a `HostCall`.
        unsafe { mem::transmute::<*const u8, HostCall>(self.ctx.call)(ptr::from_ref(self).cast_mut().cast(), args) }
    }
}

const _: () = assert!(offset_of!(HostRecord, ctx) == 0 && offset_of!(HostCtx, instance) == 0);
