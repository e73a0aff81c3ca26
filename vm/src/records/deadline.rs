//! Handles a guest that has reached its store's deadline, or that has consumed the fuel after which it is suspended or stopped,
//! or the embedder is asked.

#[cfg(feature = "async")]
use crate::records::credit::stop_overdrawn;
#[cfg(feature = "async")]
use crate::records::error::Error;
use crate::records::failure::Failure;
#[cfg(feature = "async")]
use crate::records::fiber::{Interrupted, YieldNow, wait_for};
use crate::records::store::{AtFuel, StoreRecord, UpdateDeadline};
use std::panic::{AssertUnwindSafe, catch_unwind};
#[cfg(feature = "async")]
use std::pin::Pin;
use weir_bytecode::Trap;

/// Decides, at a poll, whether the guest continues, and suspends it before that if it is to yield.
///
/// # Errors
/// It does not continue.
///
/// # Safety
/// The guest of this live store runs, and no reference is held into the store's records or the embedder's data. The
/// part of the value stack in use is below `value_sp`. The place need not be a safepoint. The current code uses no data of its thread
/// that it had before.
#[cold]
pub(crate) unsafe fn deadline_reached(store: *mut StoreRecord) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(feature = "async")]
        if (*store).is_overdrawn() {
            stop_overdrawn(store)?;
        }
        #[cfg(feature = "async")]
        if (*store).passes_fuel_mark(AtFuel::Yield) {
            suspend(store, Box::pin(YieldNow::default()))?;
        }
        if !(*store).passes_fuel_mark(AtFuel::Call) && !(*store).is_due() {
            return Ok(());
        }
        match ask(store)? {
            UpdateDeadline::Continue(ticks) => (*store).set_deadline(ticks),
            UpdateDeadline::Interrupt => return Err(Failure::trap(Trap::Interrupt)),
            #[cfg(feature = "async")]
            UpdateDeadline::Yield(ticks) => {
                check_fiber(store, "UpdateDeadline::Yield")?;
                suspend(store, Box::pin(YieldNow::default()))?;
                (*store).set_deadline(ticks);
            }
            #[cfg(feature = "async")]
            UpdateDeadline::YieldCustom(ticks, future) => {
                check_fiber(store, "UpdateDeadline::YieldCustom")?;
                suspend(store, future)?;
                (*store).set_deadline(ticks);
            }
        }
        Ok(())
    }
}

/// Checks that the guest can yield.
///
/// # Errors
/// It cannot, because it was called synchronously.
///
/// # Safety
/// The store is live.
#[cfg(feature = "async")]
unsafe fn check_fiber(store: *mut StoreRecord, answer: &str) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    match unsafe { (*store).fiber.is_null() } {
        true => Err(Failure::Host(Error::msg(format!("cannot use `{answer}` without using an async wasm entrypoint")))),
        false => Ok(()),
    }
}

/// Decides whether a guest continues as [`deadline_reached`] does, where it cannot be suspended: there, to yield is to continue.
///
/// # Errors
/// It does not continue.
///
/// # Safety
/// As for [`deadline_reached`].
#[cold]
pub(crate) unsafe fn deadline_reached_in_search(store: *mut StoreRecord) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    unsafe {
        if !(*store).is_due() {
            return Ok(());
        }
        let ticks = match ask(store)? {
            UpdateDeadline::Continue(ticks) => ticks,
            UpdateDeadline::Interrupt => return Err(Failure::trap(Trap::Interrupt)),
            #[cfg(feature = "async")]
            UpdateDeadline::Yield(ticks) | UpdateDeadline::YieldCustom(ticks, _) => ticks,
        };
        (*store).set_deadline(ticks);
        Ok(())
    }
}

/// Asks the embedder.
///
/// # Errors
/// Its error, or its panic.
///
/// # Safety
/// As for [`deadline_reached`].
unsafe fn ask(store: *mut StoreRecord) -> Result<UpdateDeadline, Failure> {
    // SAFETY: the caller's promise. The callback is taken out of the store while it runs, because it may set another
    // one.
    unsafe {
        let Some(mut callback) = (*store).on_deadline.take() else { return Ok(UpdateDeadline::Interrupt) };
        (*store).heap.blocked += 1;
        let scope = (*store).roots.open();
        let decision = catch_unwind(AssertUnwindSafe(|| callback(store)));
        (*store).end_scope(scope);
        (*store).heap.blocked -= 1;
        (*store).on_deadline.get_or_insert(callback);
        match decision {
            Ok(decision) => decision.map_err(Failure::Host),
            Err(payload) => Err(Failure::Panic(payload)),
        }
    }
}

/// Suspends the guest until a future has completed.
///
/// # Errors
/// It was called synchronously, or the future of its call is dropped.
///
/// # Safety
/// As for [`deadline_reached`].
#[cfg(feature = "async")]
unsafe fn suspend(store: *mut StoreRecord, future: Pin<Box<dyn Future<Output = ()> + Send>>) -> Result<(), Failure> {
    // SAFETY: the caller's promise: if there is a fiber, its guest runs.
    match unsafe { wait_for((*store).fiber, future) } {
        Ok(()) => Ok(()),
        Err(Interrupted::Error(error)) => Err(Failure::Host(error)),
        Err(Interrupted::Panic(payload)) => Err(Failure::Panic(payload)),
    }
}
