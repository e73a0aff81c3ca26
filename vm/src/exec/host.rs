//! Host functions: how they are made, added to stores, and called.

use crate::exec::hooks;
use crate::records::call_hook::CallHook;
use crate::records::collect::collect;
use crate::records::engine::Engine;
use crate::records::error::{Error, Result};
use crate::records::failure::Failure;
#[cfg(feature = "async")]
use crate::records::fiber::{Interrupted, wait_for};
use crate::records::heap::drop_values;
use crate::records::host::{HostFunc, HostRecord};
use crate::records::instance::Owner;
use crate::records::store::{StoreRecord, context};
use crate::records::thrown::ThrownException;
use crate::records::unwind::throw_object;
#[cfg(feature = "async")]
use std::panic::resume_unwind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use weir_bytecode::FuncType;
use weir_contract::{FuncRef, HostCtx, InstanceCtx, Status, slot_words};

/// A host function's closure. The arguments are in slots at the pointer and the results are written to the same slots,
/// as [`HostCtx::call`] says; there is room for the longer of the two. The first argument is the store, the second is
/// [`HostRecord::importer`]. May panic. Only [`host_call`] calls it.
pub(crate) trait HostClosure:
    Fn(*mut StoreRecord, *mut InstanceCtx, *mut u64) -> Result<()> + Send + Sync + 'static
{
}

impl<F: Fn(*mut StoreRecord, *mut InstanceCtx, *mut u64) -> Result<()> + Send + Sync + 'static> HostClosure for F {}

/// Creates a host function of this type that is in no store yet.
pub(crate) fn host_func<F: HostClosure>(ty: FuncType, closure: F) -> HostFunc {
    HostFunc { ty, call: host_call::<F>, closure: Box::new(closure), is_async: false }
}

/// Creates a host function that may suspend its caller.
#[cfg(feature = "async")]
pub(crate) fn async_func<F: HostClosure>(ty: FuncType, closure: F) -> HostFunc {
    HostFunc { is_async: true, ..host_func(ty, closure) }
}

/// Suspends the caller of a host function, or of the store's hook, until a future has completed, and returns its output.
///
/// # Errors
/// The caller was called synchronously, or is cancelled.
///
/// # Panics
/// With the panic of the future.
///
/// # Safety
/// The guest of the live store has called the host function whose closure calls this; or the store's hook does. No other frames of the
/// embedder are on the fiber, and the caller uses no data of its thread that it had before.
#[cfg(feature = "async")]
pub(crate) unsafe fn wait<'f, R>(store: *mut StoreRecord, future: Box<dyn Future<Output = R> + Send + 'f>) -> Result<R> {
    // SAFETY: the caller's promise: if there is a fiber, its guest is the caller.
    match unsafe { wait_for((*store).fiber, future.into()) } {
        Ok(output) => Ok(output),
        Err(Interrupted::Error(error)) => Err(error),
        Err(Interrupted::Panic(payload)) => resume_unwind(payload),
    }
}

/// Returns the [`HostCtx::call`](weir_contract::HostCtx::call) of host functions whose closure is an `F`. It is
/// compiled once for each `F`, so that the closure is inlined and catching its panics adds no cost.
///
/// # Safety
/// Implements [`HostCtx::call`](weir_contract::HostCtx::call); `host` is the context of a host function whose closure
/// is an `F`.
pub(crate) unsafe extern "C" fn host_call<F: HostClosure>(host: *mut InstanceCtx, args: *mut u64) -> Status {
    // SAFETY: the caller's promise. The host function and its callees may change anything in the store, but not these
    // locals.
    unsafe {
        let host = &*host.cast::<HostRecord>();
        let closure = &*(&raw const *host.func.closure).cast::<F>();
        let store: *mut StoreRecord = host.ctx.instance.store.cast();
        // A panic can leave only the embedder's own data inconsistent: the store's records are consistent between any
        // two operations on them.
        let scope = (*store).roots.open();
        let called = catch_unwind(AssertUnwindSafe(|| {
            if (*store).heap.attention {
                attend(store, &host.func.ty, args);
            }
            hooks::pass(store, CallHook::CallingHost)?;
            let result = closure(store, host.importer, args);
            hooks::pass(store, CallHook::ReturningFromHost)?;
            result
        }));
        (*store).roots.close(scope);
        match called {
            Ok(Ok(())) => Status::Return,
            Ok(Err(error)) => host_failed(store, returned(store, error)),
            Err(payload) => host_failed(store, Failure::Panic(payload)),
        }
    }
}

/// Collects before a host function is called, if everything is to move at every safepoint, and drops dead host values. May panic.
///
/// # Safety
/// The guest of the live store has called a host function of this type with these arguments, and no reference into it is held.
#[cold]
unsafe fn attend(store: *mut StoreRecord, ty: &FuncType, args: *mut u64) {
    // SAFETY: the caller's promise.
    unsafe {
        if (*store).heap.stress {
            let words = slot_words(&ty.params);
            let collected = ty.params.iter().enumerate().filter(|(_, ty)| ty.is_collected());
            let slots: Vec<*mut u64> = collected.map(|(i, _)| args.add(i * words)).collect();
            collect(store, &slots);
        }
        drop_values((*store).heap.take_dead());
    }
}

/// Returns the failure for the error of a host function, which throws the pending exception with a [`ThrownException`].
///
/// # Safety
/// The store is live, and no reference into it is held.
#[cold]
unsafe fn returned(store: *mut StoreRecord, error: Error) -> Failure {
    // SAFETY: the caller's promise: a pending exception is an object of the store.
    unsafe {
        if (*store).pending.is_null() || !error.is::<ThrownException>() {
            return Failure::Host(error);
        }
        let pending = std::mem::replace(&mut (*store).pending, ptr::null_mut());
        throw_object(store, (*store).heap.reference(pending).into());
        Failure::Throw(Some(error))
    }
}

/// Stores the reason of a failure.
///
/// # Safety
/// The store is live, and no reference into it is held.
#[cold]
unsafe fn host_failed(store: *mut StoreRecord, failure: Failure) -> Status {
    // SAFETY: the caller's promise.
    unsafe { (*store).failure = Some(failure) };
    Status::Trap
}

/// A host function of an engine: the parts of references to it that are the same in all stores.
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
    /// Looks up the identity of its type and its stub, in two tables protected by locks.
    pub fn new(engine: &Engine, func: Arc<HostFunc>) -> EngineFunc {
        let (entry, sig) = (engine.record().engines.host_stub(&func.ty), engine.record().signatures.intern(&func.ty));
        EngineFunc { func, entry, sig }
    }

    /// Returns the host function of a record.
    pub fn of(host: &HostRecord) -> EngineFunc {
        EngineFunc { func: host.func.clone(), entry: host.func_ref.entry, sig: host.func_ref.sig }
    }

    /// Returns the engine-wide identity of its type.
    pub fn sig(&self) -> u32 {
        self.sig
    }
}

/// Adds a host function to a store, as the import of `importer`, or without an importer if that is null.
///
/// # Safety
/// `store` is live, of the function's engine, not used by any other code, and no reference into it is held; `importer`
/// is null or an instance of it.
pub(crate) unsafe fn add(store: *mut StoreRecord, func: EngineFunc, importer: *mut InstanceCtx) -> NonNull<FuncRef> {
    let EngineFunc { func, entry, sig } = func;
    let func_ref = FuncRef { entry, sig, index: 0, instance: ptr::null_mut() };
    // SAFETY: the caller's promise; the record is written before any other code can refer to it.
    unsafe {
        #[cfg(feature = "async")]
        if func.is_async {
            (*store).require_async();
        }
        let ctx = HostCtx { instance: context(store, ptr::null_mut()), call: func.call as *const u8 };
        let owner = Box::into_raw(Box::new(Owner::Host(HostRecord { ctx, func_ref, func, importer })));
        (*store).owned.owners.push(owner);
        let Owner::Host(host) = &mut *owner else { unreachable!("it was made a host function above") };
        host.ctx.instance.owner = Owner::record(owner);
        host.func_ref.instance = ptr::from_mut(host).cast();
        NonNull::from(&host.func_ref)
    }
}
