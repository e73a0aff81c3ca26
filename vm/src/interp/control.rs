//! Branches through the side table, and what is metered where control flows: polls and fuel.

use super::frame::move_down;
use crate::records::body::Body;
use crate::records::scope::Scope;
use crate::records::store::charge;
use std::ptr;
use std::sync::atomic::Ordering;
use weir_bytecode::sidetable::BranchEntry;
use weir_bytecode::{Opcode, Trap};
use weir_contract::StoreCtx;

/// Takes the branch that owns the entry at `stp`: pc, `stp` and `sp` at its target.
///
/// # Safety
/// Validated code of `body` in `scope`; the operands that the branch keeps and drops are below `sp`, in slots of `words` words.
#[inline(always)]
pub(super) unsafe fn branch(
    words: usize,
    stp: *const BranchEntry,
    sp: *mut u64,
    scope: *const Scope,
    body: *const Body,
) -> (*const u8, *const BranchEntry, *mut u64) {
    // SAFETY: validation has written the entry for this place.
    unsafe {
        let entry = &*stp;
        let sp = match entry.drop {
            0 => sp,
            drop => {
                let keep = entry.keep as usize * words;
                move_down(sp, keep, sp.sub(keep + drop as usize * words))
            }
        };
        ((*scope).bytes.add(entry.pc as usize), (*body).branches.add(entry.stp as usize), sp)
    }
}

/// Counts that the branch which owns the entry at `stp` was taken, or was not, if its function has begun to count.
///
/// # Safety
/// Validated code of `body`.
#[inline(always)]
pub(super) unsafe fn count(body: *const Body, stp: *const BranchEntry, taken: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(counters) = (*(*body).code).counters() {
            counters.branch(stp.offset_from_unsigned((*body).branches), taken);
        }
    }
}

/// The settings that make the loop meter or canonicalise. The forms of the loop that run when all of them are off read none of this.
#[derive(Clone, Copy)]
pub(super) struct Meter {
    pub store: *mut StoreCtx,
    pub fuel: bool,
    pub polls: bool,
    /// Whether NaNs of open bits become canonical.
    pub canonical_nans: bool,
}

impl Meter {
    /// The meter of a loop that is not metered.
    pub const UNUSED: Meter = Meter { store: ptr::null_mut(), fuel: false, polls: false, canonical_nans: false };

    /// Polls, at function entry and at every `loop`: whether the deadline is reached.
    ///
    /// # Safety
    /// The store is live.
    #[inline(always)]
    pub unsafe fn is_due(self) -> bool {
        // SAFETY: the caller's promise; the epoch lives as long as the store's engine.
        self.polls && unsafe { (*(*self.store).epoch).load(Ordering::Relaxed) >= (*self.store).deadline }
    }

    /// Charges the segment at `pc`, to which control has just come other than from the instruction before it in the same
    /// segment; if none begins there, nothing. A `loop` charges for itself: control comes to it from before and
    /// from back edges.
    ///
    /// # Safety
    /// `pc` is that of an instruction of `body`, in the module with these bytes.
    pub unsafe fn enter(self, bytes: *const u8, body: *const Body, pc: *const u8) -> Result<(), Trap> {
        // SAFETY: the caller's promise.
        unsafe { if *pc == Opcode::Loop as u8 { Ok(()) } else { self.charge(bytes, body, pc) } }
    }

    /// Charges the segment at `pc`, a `loop` included.
    ///
    /// # Safety
    /// As for [`Meter::enter`].
    pub unsafe fn charge(self, bytes: *const u8, body: *const Body, pc: *const u8) -> Result<(), Trap> {
        if !self.fuel {
            return Ok(());
        }
        // SAFETY: the caller's promise; nobody else refers to the store's fuel now.
        unsafe {
            let segments = &(*(*body).source).segments;
            let pc = pc.offset_from_unsigned(bytes) as u32;
            let Ok(i) = segments.binary_search_by_key(&pc, |segment| segment.pc) else { return Ok(()) };
            charge(&mut (*self.store).fuel, segments[i].cost.into())
        }
    }
}
