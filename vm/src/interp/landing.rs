//! The continuation at the handler of an exception.

use super::frame;
use super::state::State;
use crate::records::exceptions::{InFlight, Landing};
use crate::records::failure::Failure;
use crate::records::stack::{read_slot, write_slot};
use crate::records::store::StoreRecord;
use crate::records::unwind::object;
use weir_bytecode::FuncBody;
use weir_bytecode::sidetable::BranchEntry;

/// Returns the state at a handler of the innermost activation.
///
/// # Errors
/// The handler needs an object, and the store's limiter refuses it.
///
/// # Safety
/// The exception of the live store is thrown to this handler, and the frames inside the handler's are gone or can be.
pub(super) unsafe fn land(store: *mut StoreRecord, landing: Landing) -> Result<State, Failure> {
    // SAFETY: the caller's promise. The label has the payload and the reference for its operands, so they fit in the frame.
    unsafe {
        let Landing { fp, body, scope, region, handler, .. } = landing;
        let words = (*body).words();
        let source: &FuncBody = &*(*body).source;
        let needs_object = handler.reference || handler.saved.is_some();
        let reference = if needs_object { object(store)? as u64 } else { 0 };
        let InFlight { tag, object, .. } = (*store).in_flight;
        let BranchEntry { pc, stp, keep, drop } = source.branches[handler.entry as usize];
        let operands = frame::header(fp, body, words).add(1).cast::<u64>();
        // Taking the branch would move the operands that are written here down.
        let first = operands.add((region.height - drop) as usize * words);
        let mut sp = first;
        if handler.tag.is_some() {
            let (count, from) = ((*tag).fields(), (*tag).words());
            let payload =
                if object.is_null() { (*(*(*scope).ctx).stack).overflow } else { (*object).payload().as_ptr().cast_mut() };
            for i in 0..count {
                write_slot(first.add(i * words), words, read_slot(payload.add(i * from), from));
            }
            sp = first.add(count * words);
        }
        if handler.reference {
            write_slot(sp, words, reference.into());
            sp = sp.add(words);
        }
        if let Some(local) = handler.saved {
            write_slot(fp.add(local as usize * words), words, reference.into());
        }
        debug_assert_eq!(sp, first.add(keep as usize * words), "a label takes what its clause passes");
        (*store).in_flight = InFlight::NONE;
        let (base, len) = (*scope).memory();
        let pc = (*scope).bytes.add(pc as usize);
        Ok(State { pc, sp, fp, body, scope, stp: (*body).branches.add(stp as usize), base, len })
    }
}
