//! Handles a guest that has reached its store's deadline.

use crate::records::failure::Failure;
use crate::records::store::{StoreRecord, UpdateDeadline};
use std::panic::{AssertUnwindSafe, catch_unwind};
use weir_bytecode::Trap;

/// Decides whether a guest that has reached its deadline continues.
///
/// # Errors
/// It does not continue.
///
/// # Safety
/// The guest of this live store runs, and no reference is held into the store's records or the embedder's data. The
/// part of the value stack in use is below `value_sp`. The place need not be a safepoint.
#[cold]
pub(crate) unsafe fn deadline_reached(store: *mut StoreRecord) -> Result<(), Failure> {
    // SAFETY: the caller's promise. The callback is taken out of the store while it runs, because it may set another
    // one.
    unsafe {
        let Some(mut callback) = (*store).on_deadline.take() else { return Err(Failure::trap(Trap::Interrupt)) };
        (*store).heap.blocked += 1;
        let scope = (*store).roots.open();
        let decision = catch_unwind(AssertUnwindSafe(|| callback(store)));
        (*store).roots.close(scope);
        (*store).heap.blocked -= 1;
        (*store).on_deadline.get_or_insert(callback);
        match decision {
            Ok(Ok(UpdateDeadline::Continue(ticks))) => {
                (*store).set_deadline(ticks);
                Ok(())
            }
            Ok(Ok(UpdateDeadline::Interrupt)) => Err(Failure::trap(Trap::Interrupt)),
            Ok(Err(error)) => Err(Failure::Host(error)),
            Err(payload) => Err(Failure::Panic(payload)),
        }
    }
}
