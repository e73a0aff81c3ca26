//! What happens at a store's deadline.

use crate::records::failure::Failure;
use crate::records::store::{StoreRecord, UpdateDeadline};
use std::panic::{AssertUnwindSafe, catch_unwind};
use weir_bytecode::Trap;

/// Decides about the guest, which has reached its deadline: whether it may go on.
///
/// # Errors
/// It may not.
///
/// # Safety
/// The guest of this live store runs, and no reference is held into the store's records or the embedder's data. What is
/// in use of the value stack is below `value_sp`.
#[cold]
pub(crate) unsafe fn deadline_reached(store: *mut StoreRecord) -> Result<(), Failure> {
    // SAFETY: the caller's promise. While the callback runs it is nobody else's: it may give the store another.
    unsafe {
        let Some(mut callback) = (*store).on_deadline.take() else { return Err(Failure::trap(Trap::Interrupt)) };
        let answer = catch_unwind(AssertUnwindSafe(|| callback(store)));
        (*store).on_deadline.get_or_insert(callback);
        match answer {
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
