//! The steps of a compilation. Phases count the steps of their main loops here, so that a compilation ends when it has taken too many, or when
//! it is no longer wanted. Not counted are the analyses, which take linear time, the order of blocks, and Cranelift.
//!
//! A step is the work for one instruction, block, value or edge in a loop over them: between a nanosecond and a tenth of a microsecond. How
//! many a compilation takes does not depend on the machine. Functions whose phases take more than proportional time, because their
//! output is longer than proportional or because of a fault in the compiler, exceed a budget proportional to their bytes.

use std::cell::Cell;

/// The number of steps that the compilation of any function may take, and for each byte of its code. Compilers' output takes 4 to 7
/// steps for each byte.
const STEPS: u64 = 2_000_000;
const STEPS_PER_BYTE: u64 = 50;

/// The number of steps that the compilation of a function with this many bytes of code may take.
pub fn budget(bytes: u32) -> u64 {
    STEPS + STEPS_PER_BYTE * u64::from(bytes)
}

/// The number of steps after which [`Meter::spend`] asks whether the compilation is still wanted: about a tenth of a millisecond.
/// Some passes count a whole block at once, and go through it before they ask again.
const INTERVAL: u64 = 2_000;

/// The reason why a compilation ends before it has a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// It has taken more steps than this.
    Budget(u64),
    /// It is no longer wanted.
    Stopped,
}

/// Counts the steps of one compilation.
pub struct Meter<'s> {
    spent: Cell<u64>,
    /// The count at which there is something to decide.
    next: Cell<u64>,
    limit: u64,
    stop: &'s dyn Fn() -> bool,
    ended: Cell<Option<Ended>>,
}

impl std::fmt::Debug for Meter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Meter { spent, limit, ended, .. } = self;
        f.debug_struct("Meter").field("spent", spent).field("limit", limit).field("ended", ended).finish_non_exhaustive()
    }
}

impl Default for Meter<'_> {
    /// A compilation that takes as many steps as it needs.
    fn default() -> Self {
        Meter::new(u64::MAX, &|| false)
    }
}

impl<'s> Meter<'s> {
    /// A compilation that may take `limit` steps, and ends when `stop` returns true.
    pub fn new(limit: u64, stop: &'s dyn Fn() -> bool) -> Self {
        Meter { spent: Cell::new(0), next: Cell::new(INTERVAL.min(limit)), limit, stop, ended: Cell::new(None) }
    }

    /// The compilation of a function with this many bytes of code, with a budget in proportion.
    pub fn of(bytes: u32, stop: &'s dyn Fn() -> bool) -> Self {
        Meter::new(budget(bytes), stop)
    }

    /// Counts steps.
    ///
    /// # Errors
    /// The compilation is to end. What the phase has made is discarded, whatever its state.
    #[inline]
    pub fn spend(&self, steps: usize) -> Result<(), Ended> {
        let spent = self.spent.get() + steps as u64;
        self.spent.set(spent);
        if spent <= self.next.get() { Ok(()) } else { self.decide() }
    }

    #[cold]
    fn decide(&self) -> Result<(), Ended> {
        if let Some(ended) = self.ended.get() {
            return Err(ended);
        }
        let spent = self.spent.get();
        let ended = match spent > self.limit {
            true => Ended::Budget(self.limit),
            false if (self.stop)() => Ended::Stopped,
            false => {
                self.next.set((spent + INTERVAL).min(self.limit));
                return Ok(());
            }
        };
        self.ended.set(Some(ended));
        self.next.set(0);
        Err(ended)
    }

    /// Whether the compilation is to end. A pass may have ended early for this reason.
    ///
    /// # Errors
    /// As [`Meter::spend`].
    pub fn check(&self) -> Result<(), Ended> {
        self.ended.get().map_or(Ok(()), Err)
    }

    /// The number of steps so far.
    pub fn spent(&self) -> u64 {
        self.spent.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_exact_and_final() {
        let meter = Meter::new(5_000, &|| false);
        assert!((0..5_000).all(|_| meter.spend(1).is_ok()));
        assert_eq!(
            (meter.check(), meter.spend(1), meter.spend(0)),
            (Ok(()), Err(Ended::Budget(5_000)), Err(Ended::Budget(5_000)))
        );
        assert_eq!((meter.check(), Meter::new(9, &|| false).spend(10)), (Err(Ended::Budget(5_000)), Err(Ended::Budget(9))));
    }

    #[test]
    fn a_compilation_that_is_not_wanted_ends_soon_and_is_asked_about_once() {
        let asked = Cell::new(0);
        let stop = || {
            asked.set(asked.get() + 1);
            asked.get() > 3
        };
        let meter = Meter::new(u64::MAX, &stop);
        let steps = (0..).take_while(|_| meter.spend(1).is_ok()).count() as u64;
        assert!((3 * INTERVAL..5 * INTERVAL).contains(&steps), "{steps}");
        assert_eq!((meter.spend(1), meter.check(), asked.get()), (Err(Ended::Stopped), Err(Ended::Stopped), 4));
    }
}
