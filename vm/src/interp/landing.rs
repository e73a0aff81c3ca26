//! The continuation at the handler of an exception.

use super::state::{End, State};
use crate::records::exceptions::{Landing, Place};
use crate::records::failure::Failure;
use crate::records::store::StoreRecord;
use crate::records::unwind::write_operands;
use weir_bytecode::sidetable::BranchEntry;
use weir_contract::StackCtx;

/// Returns the continuation of the loop at a handler, if its frame is one of the innermost activation of `stack`.
///
/// # Errors
/// The handler needs an object, and the store's limiter refuses it.
///
/// # Safety
/// The exception of the live store is thrown to this handler, and the frames inside the handler's are gone or can be.
pub(super) unsafe fn land(store: *mut StoreRecord, stack: *const StackCtx, landing: &Landing) -> Result<Option<End>, Failure> {
    // SAFETY: the caller's promise.
    unsafe {
        let Place::Interp { activation, body, scope } = landing.place else { return Ok(None) };
        if activation != (*stack).activation {
            return Ok(None);
        }
        let sp = write_operands(store, landing.fp, landing.clause)?;
        let entry = (*landing.clause.handler).entry;
        let BranchEntry { pc, stp, .. } = (&(*landing.clause.source).branches)[entry as usize];
        let (base, len) = (*scope).memory();
        let pc = (*scope).bytes.add(pc as usize);
        let state = State { pc, sp, fp: landing.fp, body, scope, stp: (*body).branches.add(stp as usize), base, len };
        // A clause whose target is not after it leads to a loop around it, or to the function's label.
        Ok(Some(if stp <= entry { End::Repeat(state) } else { End::Switch(state) }))
    }
}
