//! Host functions: how they are made, added to stores, and called.

use crate::exec::hooks;
use crate::records::attending::drop_dead;
use crate::records::attention::Attention;
use crate::records::call_hook::CallHook;
use crate::records::collect::collect;
use crate::records::engine::Engine;
use crate::records::error::{Error, Result};
use crate::records::failure::Failure;
#[cfg(feature = "async")]
use crate::records::fiber::{Interrupted, Stop, can_stop, stop, wait_for};
use crate::records::host::{HostFunc, HostRecord};
use crate::records::instance::Owner;
use crate::records::store::{OnCall, StoreRecord, context};
use crate::records::thrown::ThrownException;
use crate::records::unwind::throw_object;
#[cfg(feature = "async")]
use std::panic::resume_unwind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use weir_bytecode::FuncType;
use weir_contract::{EntryCell, FuncRef, HostCtx, InstanceCtx, Status, slot_words};

/// A host function's closure. The arguments are in slots at the pointer and the results are written to the same slots,
/// as [`HostCtx::call`] says; there is room for the longer of the two. The first argument is the store, the second is
/// [`HostRecord::importer`]. May panic. Only [`host_call`] and [`host_call_attended`] call it.
pub(crate) trait HostClosure:
    Fn(*mut StoreRecord, *mut InstanceCtx, *mut u64) -> Result<()> + Send + Sync + 'static
{
}

impl<F: Fn(*mut StoreRecord, *mut InstanceCtx, *mut u64) -> Result<()> + Send + Sync + 'static> HostClosure for F {}

/// Whether a host function may use the store.
pub(crate) trait Access {
    const STORE: bool;
}

/// It may.
pub(crate) struct Full;

impl Access for Full {
    const STORE: bool = true;
}

/// Creates a host function of this type that is in no store yet. Unless `A` says that its closure may use the store, it adds no scoped roots.
pub(crate) fn host_func<F: HostClosure, A: Access>(ty: FuncType, closure: F) -> HostFunc {
    HostFunc { ty, call: host_call::<F, A>, attended: host_call_attended::<F>, closure: Box::new(closure), is_async: false }
}

/// Creates a host function that may suspend its caller.
#[cfg(feature = "async")]
pub(crate) fn async_func<F: HostClosure>(ty: FuncType, closure: F) -> HostFunc {
    HostFunc { is_async: true, ..host_func::<F, Full>(ty, closure) }
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

/// Implements [`HostCtx::call`](weir_contract::HostCtx::call) for host functions whose closure is an `F`. It is
/// compiled once for each `F`, so that the closure is inlined and catching its panics adds no cost. A failure is recorded where it is found,
/// so that nothing but the status leaves the closure.
///
/// # Safety
/// As [`HostCtx::call`](weir_contract::HostCtx::call) says; `host` is the context of a host function whose closure is an `F`, and only if
/// `A` says so it uses the store.
unsafe extern "C" fn host_call<F: HostClosure, A: Access>(host: *mut InstanceCtx, args: *mut u64) -> Status {
    // SAFETY: the caller's promise. The host function and its callees may change anything in the store, but not these
    // locals.
    unsafe {
        let host = &*host.cast::<HostRecord>();
        let closure = &*(&raw const *host.func.closure).cast::<F>();
        let store: *mut StoreRecord = host.ctx.instance.store.cast();
        debug_assert!(!(*store).attention.has(Attention::ROOTS), "a call has removed its roots when it returns to the guest");
        // A panic can leave only the embedder's own data inconsistent: the store's records are consistent between any
        // two operations on them.
        let called = catch_unwind(AssertUnwindSafe(|| match closure(store, host.importer, args) {
            Ok(()) => Status::Return,
            Err(error) => returned(store, error, host, args),
        }));
        let status = called.unwrap_or_else(|payload| host_failed(store, Failure::Panic(payload)));
        if A::STORE && (*store).attention.is_needed() {
            return leave(store, status);
        }
        status
    }
}

/// Removes the scoped roots of a host function that returns, and drops host values that are dead. A destructor does not use the store, so
/// results in slots stay valid.
// A C function does not unwind, so the caller needs no frame for this call.
#[cold]
#[inline(never)]
unsafe extern "C" fn leave(store: *mut StoreRecord, status: Status) -> Status {
    // SAFETY: the promise of `host_call`.
    unsafe {
        (*store).remove_roots();
        if status == Status::Trap {
            return status;
        }
        let dropped = catch_unwind(AssertUnwindSafe(|| drop_dead(store)));
        dropped.map_or_else(|payload| host_failed(store, Failure::Panic(payload)), |()| status)
    }
}

/// Implements [`HostCtx::call`](weir_contract::HostCtx::call) in stores with a hook, or in which everything moves at every safepoint.
///
/// # Safety
/// As for [`host_call`].
unsafe extern "C" fn host_call_attended<F: HostClosure>(host: *mut InstanceCtx, args: *mut u64) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        let host = &*host.cast::<HostRecord>();
        call_attended(host, &*(&raw const *host.func.closure).cast::<F>(), args)
    }
}

/// Calls a host function, whose closure this is, with all that there may be to do besides.
///
/// # Safety
/// As for [`host_call`].
unsafe fn call_attended(host: &HostRecord, closure: &dyn HostClosure, args: *mut u64) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        let store: *mut StoreRecord = host.ctx.instance.store.cast();
        let outer = (*store).begin_call();
        let called = catch_unwind(AssertUnwindSafe(|| {
            if (*store).heap.stress {
                collect_around(store, &host.func.ty, args);
            }
            drop_dead(store);
            hooks::pass(store, CallHook::CallingHost)?;
            let result = closure(store, host.importer, args);
            hooks::pass(store, CallHook::ReturningFromHost)?;
            result
        }));
        (*store).end_call(outer);
        match called {
            Ok(Ok(())) => Status::Return,
            Ok(Err(error)) => returned(store, error, host, args),
            Err(payload) => host_failed(store, Failure::Panic(payload)),
        }
    }
}

/// Collects before a host function is called.
///
/// # Safety
/// The guest of the live store has called a host function of this type with these arguments, and no reference into it is held.
unsafe fn collect_around(store: *mut StoreRecord, ty: &FuncType, args: *mut u64) {
    let words = slot_words(&ty.params);
    let collected = ty.params.iter().enumerate().filter(|(_, ty)| ty.is_collected());
    // SAFETY: the caller's promise: the arguments are in slots.
    unsafe {
        let slots: Vec<*mut u64> = collected.map(|(i, _)| args.add(i * words)).collect();
        collect(store, &slots);
    }
}

/// Sets the hook of a store, which its host functions call from now on.
///
/// # Safety
/// The store is live, runs no guest and no host function, and no reference into it is held.
pub(crate) unsafe fn set_hook(store: *mut StoreRecord, hook: Box<OnCall>) {
    // SAFETY: the caller's promise: the records are the store's own, and nothing reads their contexts meanwhile.
    unsafe {
        (*store).set_call_hook(hook);
        for &owner in &(*store).owned.owners {
            if let Owner::Host(host) = &mut *owner {
                host.ctx.call = host.func.attended as *const u8;
            }
        }
    }
}

/// Stores the failure for the error of a host function, which throws the pending exception with a [`ThrownException`]. In a resumable
/// call, the guest is stopped before that, and returns if the embedder has written the results to the slots.
///
/// # Safety
/// The store is live, and no reference into it is held. The guest has called this host function with these slots.
#[cold]
unsafe fn returned(store: *mut StoreRecord, error: Error, host: &HostRecord, slots: *mut u64) -> Status {
    let _ = (host, slots);
    // SAFETY: the caller's promise: a pending exception is an object of the store.
    unsafe {
        if (*store).pending.is_null() || !error.is::<ThrownException>() {
            #[cfg(feature = "async")]
            if can_stop((*store).fiber, (*store).invocations) {
                (*store).remove_roots();
                return match stop((*store).fiber, Stop::Host { error, host, slots }) {
                    Ok(()) => Status::Return,
                    Err(error) => host_failed(store, Failure::Host(error)),
                };
            }
            return host_failed(store, Failure::Host(error));
        }
        let pending = std::mem::replace(&mut (*store).pending, ptr::null_mut());
        throw_object(store, (*store).heap.reference(pending).into());
        host_failed(store, Failure::Throw(Some(error)))
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
    cell: *const EntryCell,
    sig: u32,
}

// SAFETY: the address of a cell, which never changes.
unsafe impl Send for EngineFunc {}
// SAFETY: as above.
unsafe impl Sync for EngineFunc {}

impl EngineFunc {
    /// Looks up the identity of its type and its entry cell, in two tables protected by locks.
    pub fn new(engine: &Engine, func: Arc<HostFunc>) -> EngineFunc {
        let (cell, sig) = (engine.record().engines.host_cell(&func.ty), engine.record().signatures.intern(&func.ty));
        EngineFunc { func, cell, sig }
    }

    /// Returns the host function of a record.
    pub fn of(host: &HostRecord) -> EngineFunc {
        EngineFunc { func: host.func.clone(), cell: host.func_ref.cell, sig: host.func_ref.sig }
    }

    /// Returns whether its calls may wait.
    #[cfg(feature = "async")]
    pub fn is_async(&self) -> bool {
        self.func.is_async
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
    let EngineFunc { func, cell, sig } = func;
    let func_ref = FuncRef { cell, sig, index: 0, instance: ptr::null_mut() };
    // SAFETY: the caller's promise; the record is written before any other code can refer to it.
    unsafe {
        #[cfg(feature = "async")]
        if func.is_async {
            (*store).require_async();
        }
        let is_attended = (*store).heap.stress || (*store).attention.has(Attention::HOOK);
        let call = if is_attended { func.attended } else { func.call };
        let ctx = HostCtx { instance: context(store, ptr::null_mut()), call: call as *const u8 };
        let owner = Box::into_raw(Box::new(Owner::Host(HostRecord { ctx, func_ref, func, importer })));
        (*store).owned.owners.push(owner);
        let Owner::Host(host) = &mut *owner else { unreachable!("it was made a host function above") };
        host.ctx.instance.owner = Owner::record(owner);
        host.func_ref.instance = ptr::from_mut(host).cast();
        NonNull::from(&host.func_ref)
    }
}
