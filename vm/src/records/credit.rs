//! The credit of fuel with which code runs that can be stopped when its fuel has run out.

#[cfg(feature = "async")]
use crate::records::failure::Failure;
#[cfg(feature = "async")]
use crate::records::fiber::{Stop, can_stop, stop};
use crate::records::store::StoreRecord;
#[cfg(feature = "async")]
use weir_bytecode::Trap;

/// The fuel that is lent to a store. A store with so much of its own that the sum would overflow is lent less.
const CREDIT: i64 = 1 << 62;
/// What bulk operations may overdraw, in units of fuel: the cost of 64 MiB, unless the embedder has a table of costs.
const BULK_CREDIT: i64 = 1 << 20;

impl StoreRecord {
    /// Returns the fuel without what was lent. Negative if more has been consumed.
    pub fn fuel(&self) -> i64 {
        self.ctx.fuel.saturating_sub(self.credit.unwrap_or(0))
    }

    /// Sets the guest's own fuel, to which the credit is added, and begins new intervals of fuel.
    pub fn set_fuel(&mut self, fuel: i64) {
        self.set_own(fuel);
        self.restart_fuel_marks();
    }

    /// Sets the guest's own fuel.
    fn set_own(&mut self, fuel: i64) {
        self.ctx.fuel = fuel;
        if let Some(credit) = &mut self.credit {
            self.ctx.fuel = fuel.saturating_add(CREDIT);
            *credit = self.ctx.fuel - fuel;
        }
    }

    /// Lends fuel to a guest that can be stopped. Returns what was lent before, for [`StoreRecord::settle`].
    #[cfg(feature = "async")]
    pub fn lend(&mut self) -> Option<i64> {
        let outer = self.credit;
        if self.engine.config().consume_fuel {
            // A trap has left less than nothing.
            let fuel = if outer.is_none() { self.fuel().max(0) } else { self.fuel() };
            self.lend_as(Some(CREDIT), fuel);
        }
        outer
    }

    /// Takes back what was lent, and lends if there was a loan before.
    #[cfg(feature = "async")]
    pub fn settle(&mut self, outer: Option<i64>) {
        self.lend_as(outer, self.fuel());
    }

    #[cfg(feature = "async")]
    fn lend_as(&mut self, credit: Option<i64>, fuel: i64) {
        let before = self.ctx.fuel;
        self.credit = credit;
        self.set_own(fuel);
        self.shift_fuel_marks(self.ctx.fuel.saturating_sub(before));
    }

    /// Returns whether the guest runs on credit and has consumed more of it than a bulk operation may.
    pub fn is_overdrawn_much(&self) -> bool {
        self.credit.is_some_and(|credit| self.ctx.fuel < credit.saturating_sub(BULK_CREDIT))
    }

    /// Returns whether the guest runs on credit and has no fuel of its own left.
    #[cfg(feature = "async")]
    pub fn is_overdrawn(&self) -> bool {
        self.credit.is_some_and(|credit| self.ctx.fuel < credit)
    }
}

/// Stops a guest, which is [overdrawn](StoreRecord::is_overdrawn), at a poll, until the embedder resumes it.
///
/// # Errors
/// It cannot be stopped, because the embedder has called it by another method within the resumable call; or that call is dropped.
///
/// # Safety
/// As for [`deadline_reached`](super::deadline::deadline_reached).
#[cfg(feature = "async")]
pub(crate) unsafe fn stop_overdrawn(store: *mut StoreRecord) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    unsafe {
        if !can_stop((*store).fiber, (*store).invocations) {
            return Err(Failure::trap(Trap::OutOfFuel));
        }
        // References may be in registers: see `collect`.
        (*store).heap.blocked += 1;
        let resumed = stop((*store).fiber, Stop::Fuel { overdrawn: 0 });
        (*store).heap.blocked -= 1;
        resumed.map_err(Failure::Host)
    }
}
