//! Host functions of a store.

use crate::runtime::records::{HostFunc, HostRecord, Owner, StoreRecord, context};
use crate::tier;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use weir_jit::contract::{FuncRef, InstanceCtx};

/// Gives a host function to a store, as the import of `importer` or, if that is null, as nobody's.
///
/// # Safety
/// `store` is live, not used by anybody else, and no reference into it is held; `importer` is null or an instance of
/// it.
pub(crate) unsafe fn add(store: *mut StoreRecord, func: Arc<HostFunc>, importer: *mut InstanceCtx) -> NonNull<FuncRef> {
    // SAFETY: the caller's promise.
    let engine = unsafe { &(*store).engine };
    let func_ref = FuncRef {
        entry: tier::host_stub(engine, &func.ty),
        sig: engine.record().signatures.intern(&func.ty),
        index: 0,
        instance: ptr::null_mut(),
    };
    // SAFETY: the caller's promise; the record is written before anybody can know of it.
    unsafe {
        let ctx = context(store, ptr::null_mut());
        let owner = Box::into_raw(Box::new(Owner::Host(HostRecord { ctx, func_ref, func, importer })));
        (*store).owned.owners.push(owner);
        let Owner::Host(host) = &mut *owner else { unreachable!("it was made a host function above") };
        host.ctx.owner = owner.cast();
        host.func_ref.instance = &raw mut host.ctx;
        NonNull::from(&host.func_ref)
    }
}
