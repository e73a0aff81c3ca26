//! Throws.

use super::calls::set_value_sp;
use super::failing::failed;
use super::state::{End, State};
use crate::records::exceptions::{InFlight, Site};
use crate::records::failure::Failure;
use crate::records::instance::instance_of;
use crate::records::stack::{read_slot, write_slot};
use crate::records::store::{StoreRecord, store_of};
use crate::records::unwind::throw_object;
use weir_bytecode::Trap;

/// Throws an exception with the tag of this index, and the operands below `sp` for its payload.
///
/// # Safety
/// The instruction at the pc of `state` is `throw`.
#[cold]
pub(super) unsafe fn throw<const WORDS: usize>(state: State, tag: u32) -> End {
    // SAFETY: the caller's promise: the operands are there, and the overflow slots have room for the parameters of any type.
    unsafe {
        let instance = instance_of((*state.scope).ctx);
        let tag = instance.tag(tag);
        let (count, words) = ((*tag).fields(), (*tag).words());
        let (operands, overflow) = (state.sp.sub(count * WORDS), (*(*instance.ctx).stack).overflow);
        for i in 0..count {
            write_slot(overflow.add(i * words), words, read_slot(operands.add(i * WORDS), words.min(WORDS)));
        }
        let pc = state.pc.offset_from_unsigned((*state.scope).bytes) as u32;
        let site = Site { instance: instance.ctx, pc };
        let store = store_of(instance.ctx);
        (*store).in_flight = InFlight { tag, object: std::ptr::null_mut(), site };
        begin::<WORDS>(state, store)
    }
}

/// Throws the exception to which `reference` refers.
///
/// # Errors
/// The reference is null.
///
/// # Safety
/// The instruction at the pc of `state` is `throw_ref` or `rethrow`, and `reference` is an `exnref` of its store.
#[cold]
pub(super) unsafe fn throw_ref<const WORDS: usize>(state: State, reference: u64) -> Result<End, Trap> {
    if reference == 0 {
        return Err(Trap::NullReference);
    }
    // SAFETY: the caller's promise: a reference that is not null is the address of a record.
    unsafe {
        let store = store_of((*state.scope).ctx);
        throw_object(store, reference);
        Ok(begin::<WORDS>(state, store))
    }
}

/// Begins a throw at the pc of `state`.
unsafe fn begin<const WORDS: usize>(state: State, store: *mut StoreRecord) -> End {
    // SAFETY: the caller's promise.
    unsafe {
        // The callback at the deadline may run.
        set_value_sp::<WORDS>(&state, state.sp);
        (*store).failure = Some(Failure::Throw(None));
        failed(&state)
    }
}
