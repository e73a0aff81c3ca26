//! Branches through the side table, and metering at control flow: polls and fuel.

use super::frame::move_down;
use crate::records::body::Body;
use crate::records::scope::Scope;
use crate::records::store::charge;
use std::ptr;
use std::sync::atomic::Ordering;
use weir_bytecode::Trap;
use weir_bytecode::sidetable::BranchEntry;
use weir_contract::StoreCtx;

/// Takes the branch that owns the entry at `stp`. Returns pc, `stp` and `sp` at its target.
///
/// # Safety
/// Validated code of `body` in `scope`; the operands that the branch keeps and drops are below `sp`, in slots of
/// `words` words.
#[inline(always)]
pub(super) unsafe fn branch(
    words: usize,
    stp: *const BranchEntry,
    sp: *mut u64,
    scope: *const Scope,
    body: *const Body,
) -> (*const u8, *const BranchEntry, *mut u64) {
    // SAFETY: validation has written the entry for this instruction.
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

/// Counts an execution of the branch that owns the entry at `stp`, if its function's profile has begun.
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

/// The settings for which the loop meters or canonicalises. The forms of the loop that run when all are off do not read
/// them.
#[derive(Clone, Copy)]
pub(super) struct Meter {
    pub store: *mut StoreCtx,
    pub fuel: bool,
    pub polls: bool,
    /// Whether NaNs that the specification leaves open are made canonical.
    pub canonical_nans: bool,
}

impl Meter {
    /// The meter of an unmetered loop.
    pub const UNUSED: Meter = Meter { store: ptr::null_mut(), fuel: false, polls: false, canonical_nans: false };

    /// Returns whether the deadline is reached. Polled at function entry and at every `loop`.
    ///
    /// # Safety
    /// The store is live.
    #[inline(always)]
    pub unsafe fn is_due(self) -> bool {
        // SAFETY: the caller's promise; the epoch lives as long as the store's engine.
        self.polls && unsafe { (*(*self.store).epoch).load(Ordering::Relaxed) >= (*self.store).deadline }
    }

    /// Charges the segment that begins at `pc`, if one does. `pc` has been reached in another way than from the
    /// preceding instruction of the same segment, and neither by a back edge nor by a branch to the function's label. The
    /// segment of a loop begins after the `loop` opcode, which charges it.
    ///
    /// # Safety
    /// `pc` is that of an instruction of `body`, or that after a `loop` opcode, in the module with these bytes.
    pub unsafe fn enter(self, bytes: *const u8, body: *const Body, pc: *const u8) -> Result<(), Trap> {
        if !self.fuel {
            return Ok(());
        }
        // SAFETY: the caller's promise; no other reference to the store's fuel exists now.
        unsafe {
            let segments = &(*(*body).source).segments;
            let pc = pc.offset_from_unsigned(bytes) as u32;
            let Ok(i) = segments.binary_search_by_key(&pc, |segment| segment.pc) else { return Ok(()) };
            charge(&mut (*self.store).fuel, segments[i].cost.into())
        }
    }
}
