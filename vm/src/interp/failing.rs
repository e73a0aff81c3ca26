//! Ends of activations without results.

use super::exit::Exit;
use super::landing::land;
use super::state::{End, State};
use crate::records::failure::Failure;
use crate::records::fault;
use crate::records::instance::instance_of;
use crate::records::store::{store_of, take_failure};
use crate::records::walk::restore_base;
use weir_bytecode::Trap;

/// Ends the activation because the instruction at `pc` called something that failed. If it threw an exception for which a frame of
/// the activation has a handler, the loop continues there.
///
/// # Safety
/// `state` is valid, and the reason is in the store.
#[cold]
pub(super) unsafe fn failed(state: &State) -> End {
    // SAFETY: the caller's promise.
    unsafe {
        let store = store_of((*state.scope).ctx);
        restore_base((*(*state.scope).ctx).stack);
        state.record_position();
        let mut failure = take_failure(store);
        failure.capture(store);
        if let (Failure::Thrown, Some(landing)) = (&failure, (*store).landing) {
            match land(store, (*(*state.scope).ctx).stack, &landing) {
                Ok(Some(end)) => return end,
                Ok(None) => {}
                Err(other) => failure = other,
            }
            failure.capture(store);
        }
        (*store).failure = Some(failure);
        End::Exit(Exit::Trap)
    }
}

/// Ends the activation with `trap` at the instruction at `pc`.
///
/// # Safety
/// `state` is valid.
#[cold]
pub(super) unsafe fn trapped(trap: Trap, state: &State) -> End {
    // SAFETY: the caller's promise.
    unsafe {
        let instance = instance_of((*state.scope).ctx);
        let pc = state.pc.offset_from_unsigned((*state.scope).bytes) as u32;
        if trap == Trap::MemoryOutOfBounds {
            let words = (*state.body).words();
            fault::record(instance, pc, |depth| *state.sp.sub(depth * words));
        }
        (*store_of((*state.scope).ctx)).failure = Some(Failure::trap_at(trap, instance, pc));
        failed(state)
    }
}
