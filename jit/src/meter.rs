//! The steps and the memory of a compilation. Phases count the steps of their main loops here, so that a compilation ends when it has taken
//! too many, when it holds too much memory, or when it is no longer wanted. Not counted are the analyses, which take linear time, the
//! order of blocks, and Cranelift.
//!
//! A step is the work for one instruction, block, value or edge in a loop over them: between a nanosecond and a tenth of a microsecond. How
//! many a compilation takes does not depend on the machine. Functions whose phases take more than proportional time, because their
//! output is longer than proportional or because of a fault in the compiler, exceed a budget proportional to their bytes.
//!
//! The memory is that of the function in its form, of the analyses, and of the largest lists of the running phase. It is looked at where
//! the steps are, so that a phase may hold a little more.

use bumpalo::Bump;
use std::cell::Cell;

/// The number of steps that the compilation of any function may take, and for each byte of its code. Compilers' output takes 4 to 7
/// steps for each byte.
const STEPS: u64 = 2_000_000;
const STEPS_PER_BYTE: u64 = 50;

/// The number of steps that the compilation of a function with this many bytes of code may take.
pub fn budget(bytes: u32) -> u64 {
    STEPS + STEPS_PER_BYTE * u64::from(bytes)
}

/// The memory that a compilation may hold, in bytes: a base, an addition for each byte of the function's code, and the maximum of the sum,
/// which is less by what each loop takes in baseline code and its tables.
/// Compilers' output takes 40 to 100 bytes for each byte of code, so functions of half a megabyte are compiled. CPython's longest has a
/// tenth of a megabyte. The meter counts a little more than half of what a compilation takes. A module, its baseline code and a compilation
/// should together take at most 64 MiB plus 64 times the module's size.
const MEMORY: usize = 32 << 20;
const MEMORY_PER_BYTE: usize = 32;
const MOST_MEMORY: usize = 52 << 20;
const MEMORY_OF_LOOP: usize = 192;

/// The bytes of memory that the compilation of a function with this many bytes of code and this many loops may hold.
pub fn memory(bytes: u32, loops: usize) -> usize {
    (MEMORY + MEMORY_PER_BYTE * bytes as usize).min(MOST_MEMORY.saturating_sub(MEMORY_OF_LOOP * loops))
}

/// The number of steps after which [`Meter::spend`] asks whether the compilation is still wanted: about a tenth of a millisecond.
/// Loops whose steps are not counted ask when they end: they take a hundredth of a microsecond for each instruction, block or edge.
const INTERVAL: u64 = 2_000;

/// The bytes of an arena that have been used. Its chunks double, and the rest of the last one is not touched.
pub fn used(arena: &Bump) -> usize {
    arena.allocated_bytes() - arena.chunk_capacity()
}

/// The reason why a compilation ends before it has a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Ended {
    /// It has taken more steps than this.
    #[error("the compilation exceeds the budget of {0} steps")]
    Budget(u64),
    /// It has held more bytes of memory than this.
    #[error("the compilation exceeds the budget of {0} bytes of memory")]
    Memory(usize),
    /// It is no longer wanted.
    #[error("the compilation was stopped")]
    Stopped,
}

/// Counts the steps and the memory of one compilation.
pub struct Meter<'s> {
    spent: Cell<u64>,
    /// The count at which there is something to decide.
    next: Cell<u64>,
    limit: u64,
    /// The bytes that the phases before the running one have left.
    kept: Cell<usize>,
    max_memory: usize,
    stop: &'s dyn Fn() -> bool,
    ended: Cell<Option<Ended>>,
}

impl std::fmt::Debug for Meter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Meter { spent, limit, kept, max_memory, ended, .. } = self;
        let mut shown = f.debug_struct("Meter");
        shown.field("spent", spent).field("limit", limit).field("kept", kept).field("max_memory", max_memory);
        shown.field("ended", ended).finish_non_exhaustive()
    }
}

impl Default for Meter<'_> {
    /// A compilation that takes as many steps and as much memory as it needs.
    fn default() -> Self {
        Meter::new(u64::MAX, usize::MAX, &|| false)
    }
}

impl<'s> Meter<'s> {
    /// A compilation that may take `limit` steps and hold `max_memory` bytes, and ends when `stop` returns true.
    pub fn new(limit: u64, max_memory: usize, stop: &'s dyn Fn() -> bool) -> Self {
        let (spent, next, kept, ended) = (Cell::new(0), Cell::new(INTERVAL.min(limit)), Cell::new(0), Cell::new(None));
        Meter { spent, next, limit, kept, max_memory, stop, ended }
    }

    /// The compilation of a function with this many bytes of code and this many loops, with budgets in proportion.
    pub fn of(bytes: u32, loops: usize, stop: &'s dyn Fn() -> bool) -> Self {
        Meter::new(budget(bytes), memory(bytes, loops), stop)
    }

    /// Counts steps of a phase that makes nothing large beside the function.
    ///
    /// # Errors
    /// The compilation is to end. What the phase has made is discarded, whatever its state.
    #[inline]
    pub fn spend(&self, steps: usize) -> Result<(), Ended> {
        self.spend_holding(steps, || 0)
    }

    /// Counts steps of a phase that holds the bytes that `held` returns, beyond what the phases before it have left. It is asked rarely.
    ///
    /// # Errors
    /// As [`Meter::spend`].
    #[inline]
    pub fn spend_holding(&self, steps: usize, held: impl FnOnce() -> usize) -> Result<(), Ended> {
        let spent = self.spent.get() + steps as u64;
        self.spent.set(spent);
        if spent <= self.next.get() { Ok(()) } else { self.decide(held()) }
    }

    /// Asks whether the compilation is still wanted, after work that does not count its steps: an analysis, or the end of a phase.
    ///
    /// # Errors
    /// As [`Meter::spend`].
    pub fn ask(&self) -> Result<(), Ended> {
        self.check()?;
        if (self.stop)() { self.end(Ended::Stopped) } else { Ok(()) }
    }

    /// A phase has ended, and this many bytes are left, those of the phases before it included.
    ///
    /// # Errors
    /// As [`Meter::spend`].
    pub fn keep(&self, bytes: usize) -> Result<(), Ended> {
        self.kept.set(bytes);
        match self.ended.get() {
            None if bytes > self.max_memory => self.end(Ended::Memory(self.max_memory)),
            _ => self.ask(),
        }
    }

    #[cold]
    fn decide(&self, held: usize) -> Result<(), Ended> {
        if let Some(ended) = self.ended.get() {
            return Err(ended);
        }
        let spent = self.spent.get();
        if spent > self.limit {
            self.end(Ended::Budget(self.limit))
        } else if self.kept.get() + held > self.max_memory {
            self.end(Ended::Memory(self.max_memory))
        } else if (self.stop)() {
            self.end(Ended::Stopped)
        } else {
            self.next.set((spent + INTERVAL).min(self.limit));
            Ok(())
        }
    }

    fn end(&self, ended: Ended) -> Result<(), Ended> {
        self.ended.set(Some(ended));
        self.next.set(0);
        Err(ended)
    }

    /// Whether an optimisation may make SSA longer that takes this many bytes now. Two thirds of the memory are left to later phases.
    pub fn allows_more_code(&self, bytes: usize) -> bool {
        bytes < self.max_memory / 3
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
        let meter = Meter::new(5_000, usize::MAX, &|| false);
        assert!((0..5_000).all(|_| meter.spend(1).is_ok()));
        assert_eq!(
            (meter.check(), meter.spend(1), meter.spend(0)),
            (Ok(()), Err(Ended::Budget(5_000)), Err(Ended::Budget(5_000)))
        );
        assert_eq!(
            (meter.check(), Meter::new(9, usize::MAX, &|| false).spend(10)),
            (Err(Ended::Budget(5_000)), Err(Ended::Budget(9)))
        );
    }

    #[test]
    fn memory_is_that_of_all_phases() {
        let meter = Meter::new(u64::MAX, 100, &|| false);
        let fill = |bytes| (0..=INTERVAL).try_for_each(|_| meter.spend_holding(1, || bytes));
        assert_eq!((fill(100), meter.keep(60), fill(40)), (Ok(()), Ok(()), Ok(())));
        assert_eq!(
            (fill(41), meter.check(), meter.keep(0)),
            (Err(Ended::Memory(100)), Err(Ended::Memory(100)), Err(Ended::Memory(100)))
        );
        assert_eq!(Meter::new(u64::MAX, 100, &|| false).keep(101), Err(Ended::Memory(100)));
    }

    #[test]
    fn a_compilation_that_is_not_wanted_ends_soon_and_is_asked_about_once() {
        let asked = Cell::new(0);
        let stop = || {
            asked.set(asked.get() + 1);
            asked.get() > 3
        };
        let meter = Meter::new(u64::MAX, usize::MAX, &stop);
        let steps = (0..).take_while(|_| meter.spend(1).is_ok()).count() as u64;
        assert!((3 * INTERVAL..5 * INTERVAL).contains(&steps), "{steps}");
        assert_eq!((meter.spend(1), meter.check(), asked.get()), (Err(Ended::Stopped), Err(Ended::Stopped), 4));
    }
}
