//! Host functions of a store.

use crate::records::store::{HostFunc, HostRecord, Owner, StoreRecord, context};
use crate::{Engine, tier};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use weir_contract::{FuncRef, HostCtx, InstanceCtx};

/// A host function of an engine: what references to it say, in whatever store.
#[derive(Clone)]
pub(crate) struct EngineFunc {
    func: Arc<HostFunc>,
    entry: *const u8,
    sig: u32,
}

// SAFETY: the address of code, which is immutable.
unsafe impl Send for EngineFunc {}
// SAFETY: as above.
unsafe impl Sync for EngineFunc {}

impl EngineFunc {
    /// Finds its type's identity and its stub, by two tables behind locks.
    pub fn new(engine: &Engine, func: Arc<HostFunc>) -> EngineFunc {
        let (entry, sig) = (tier::host_stub(engine, &func.ty), engine.record().signatures.intern(&func.ty));
        EngineFunc { func, entry, sig }
    }

    /// The function that a store was given.
    pub fn of(host: &HostRecord) -> EngineFunc {
        EngineFunc { func: host.func.clone(), entry: host.func_ref.entry, sig: host.func_ref.sig }
    }

    /// Engine-wide identity of its type.
    pub fn sig(&self) -> u32 {
        self.sig
    }
}

/// Gives a host function to a store, as the import of `importer` or, if that is null, as nobody's.
///
/// # Safety
/// `store` is live, of the function's engine, not used by anybody else, and no reference into it is held; `importer` is
/// null or an instance of it.
pub(crate) unsafe fn add(store: *mut StoreRecord, func: EngineFunc, importer: *mut InstanceCtx) -> NonNull<FuncRef> {
    let EngineFunc { func, entry, sig } = func;
    let func_ref = FuncRef { entry, sig, index: 0, instance: ptr::null_mut() };
    // SAFETY: the caller's promise; the record is written before anybody can know of it.
    unsafe {
        let ctx = HostCtx { instance: context(store, ptr::null_mut()), call: func.call as *const u8 };
        let owner = Box::into_raw(Box::new(Owner::Host(HostRecord { ctx, func_ref, func, importer })));
        (*store).owned.owners.push(owner);
        let Owner::Host(host) = &mut *owner else { unreachable!("it was made a host function above") };
        host.ctx.instance.owner = owner.cast();
        host.func_ref.instance = ptr::from_mut(host).cast();
        NonNull::from(&host.func_ref)
    }
}
