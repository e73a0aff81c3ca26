//! Host functions: making them, giving them to stores, and the Rust end of a call.

use crate::records::engine::Engine;
use crate::records::error::Result;
use crate::records::failure::Failure;
use crate::records::host::{HostFunc, HostRecord};
use crate::records::instance::Owner;
use crate::records::store::{StoreRecord, context};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use weir_bytecode::FuncType;
use weir_contract::{FuncRef, HostCtx, InstanceCtx, Status};

/// What a host function does. Arguments come in slots at the pointer, results go to the same place, in the way that
/// [`HostCtx::call`] says; there is room for the longer of the two. The first argument is the store, the second
/// [`HostRecord::importer`]. May panic. Only [`host_call`] calls it.
pub(crate) trait HostClosure:
    Fn(*mut StoreRecord, *mut InstanceCtx, *mut u64) -> Result<()> + Send + Sync + 'static
{
}

impl<F: Fn(*mut StoreRecord, *mut InstanceCtx, *mut u64) -> Result<()> + Send + Sync + 'static> HostClosure for F {}

/// A host function of this type, in no store yet.
pub(crate) fn host_func<F: HostClosure>(ty: FuncType, closure: F) -> HostFunc {
    HostFunc { ty, call: host_call::<F>, closure: Box::new(closure) }
}

/// [`HostCtx::call`](weir_contract::HostCtx::call) of the host functions whose closure is an `F`: compiled once for
/// each, so that it costs what the closure does and nothing to catch its panics.
///
/// # Safety
/// As [`HostCtx::call`](weir_contract::HostCtx::call) says; `host` is the context of such a host function.
pub(crate) unsafe extern "C" fn host_call<F: HostClosure>(host: *mut InstanceCtx, args: *mut u64) -> Status {
    // SAFETY: the caller's promise. The host function and what it calls may change anything in the store but these
    // locals.
    unsafe {
        let host = &*host.cast::<HostRecord>();
        let closure = &*(&raw const *host.func.closure).cast::<F>();
        let store: *mut StoreRecord = host.ctx.instance.store.cast();
        // What a panic leaves behind is the embedder's own data; the store's records are consistent between any two
        // operations on them.
        match catch_unwind(AssertUnwindSafe(|| closure(store, host.importer, args))) {
            Ok(Ok(())) => Status::Return,
            Ok(Err(error)) => host_failed(store, Failure::Host(error)),
            Err(payload) => host_failed(store, Failure::Panic(payload)),
        }
    }
}

/// Leaves the reason in the store.
///
/// # Safety
/// The store is live, and no reference into it is held.
#[cold]
unsafe fn host_failed(store: *mut StoreRecord, failure: Failure) -> Status {
    // SAFETY: the caller's promise.
    unsafe { (*store).failure = Some(failure) };
    Status::Trap
}

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
        let (entry, sig) = (engine.record().engines.host_stub(&func.ty), engine.record().signatures.intern(&func.ty));
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
