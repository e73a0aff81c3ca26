//! The counters of a warm function, which the interpreter and, for branches, baseline code increment. A snapshot of them is a
//! [`weir_contract::profile`].
//!
//! Branches are counted by the index of their entry in the side table, which the interpreter has in a register.
//! Indirect calls have no entry and are found by pc; that search is cheap compared with a call through a table. The
//! counters are separate from the side table, so that it stays immutable and cold functions need no memory for
//! counters.
//!
//! Counts are not exact when threads share a module: an increment that races with another may be lost.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use weir_bytecode::instrs::{Instr, Instrs};
use weir_bytecode::{FuncBody, Module as Bytecode, Opcode};
use weir_contract::profile::{BranchProfile, CallProfile, Counted, Profile};

/// Number of targets of an indirect call that are counted separately. Speculation would use no more.
const TARGETS: usize = 3;

/// A counter. The interpreter's increments saturate; those of baseline code wrap around.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct Count(AtomicU32);

impl Count {
    #[inline(always)]
    fn bump(&self) {
        self.0.store(self.get().saturating_add(1), Ordering::Relaxed);
    }

    fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of a function.
#[derive(Debug)]
pub(crate) struct Counters {
    /// One for each entry of the side table. Those of `br`, `else` and `loop` stay zero.
    branches: Box<[Directions]>,
    /// The branches to which the counters belong, ascending by pc, so that a snapshot, which each compilation takes,
    /// decodes nothing.
    owners: Box<[Owner]>,
    /// Indirect calls, ascending by pc.
    calls: Box<[Site]>,
}

/// The number of times a branch was taken, and was not taken.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Directions {
    pub taken: Count,
    pub passed: Count,
}

/// A conditional branch, and its entries in the side table.
#[derive(Debug)]
struct Owner {
    pc: u32,
    op: Opcode,
    entries: Range<u32>,
}

/// An indirect call.
#[derive(Debug)]
struct Site {
    pc: u32,
    /// Function index, [`OTHER_INSTANCE`] or [`UNUSED`], and the number of its calls, in the order of the first call.
    targets: [(AtomicU32, Count); TARGETS],
    others: Count,
}

/// In the place of an index: a function of another instance or of the host.
const OTHER_INSTANCE: u32 = u32::MAX;
/// In the place of an index: no function yet.
const UNUSED: u32 = u32::MAX - 1;

impl Counters {
    /// Creates the counters of a function of `module`, all 0.
    pub fn new(module: &Bytecode, body: &FuncBody) -> Counters {
        let site = |pc| {
            let targets = std::array::from_fn(|_| (UNUSED.into(), Count::default()));
            Site { pc, targets, others: Count::default() }
        };
        let (mut owners, mut calls, mut next) = (Vec::new(), Vec::new(), 0);
        for instr in Instrs::new(module, body.entry, body.end) {
            let Instr { pc, op, .. } = instr;
            let entries = next..next + instr.branch_entries() as u32;
            next = entries.end;
            match Counted::of(&instr) {
                Some(Counted::Branch { .. }) => owners.push(Owner { pc, op, entries }),
                Some(Counted::Call) => calls.push(site(pc)),
                None => (),
            }
        }
        let branches = body.branches.iter().map(|_| Directions::default()).collect();
        Counters { branches, owners: owners.into(), calls: calls.into() }
    }

    /// Returns the counters of entry 0, followed by those of the other entries.
    pub fn directions(&self) -> *const Directions {
        self.branches.as_ptr()
    }

    /// Counts an execution of the branch that owns entry `entry`.
    ///
    /// # Safety
    /// The function has that entry.
    #[inline(always)]
    pub unsafe fn branch(&self, entry: usize, taken: bool) {
        debug_assert!(entry < self.branches.len());
        // SAFETY: the caller's promise.
        let directions = unsafe { self.branches.get_unchecked(entry) };
        if taken { directions.taken.bump() } else { directions.passed.bump() }
    }

    /// Counts a call at `pc` of a function of the same instance, or with `None` of any other function.
    pub fn call(&self, pc: u32, target: Option<u32>) {
        let Ok(i) = self.calls.binary_search_by_key(&pc, |site| site.pc) else { return };
        let called = target.unwrap_or(OTHER_INSTANCE);
        for (target, count) in &self.calls[i].targets {
            match target.load(Ordering::Relaxed) {
                UNUSED => target.store(called, Ordering::Relaxed),
                target if target != called => continue,
                _ => (),
            }
            return count.bump();
        }
        self.calls[i].others.bump();
    }

    /// Returns the counts so far.
    pub fn snapshot(&self) -> Profile {
        let branch = |owner: &Owner| {
            let own = &self.branches[owner.entries.start as usize..owner.entries.end as usize];
            let ways = match (owner.op, own) {
                (Opcode::If, [way]) => [way.passed.get(), way.taken.get()].into(),
                (Opcode::BrTable, labels) => labels.iter().map(|label| label.taken.get()).collect(),
                (_, ways) => ways.iter().flat_map(|way| [way.taken.get(), way.passed.get()]).collect(),
            };
            BranchProfile { pc: owner.pc, ways }
        };
        let branches = self.owners.iter().map(branch).collect();
        let calls = self.calls.iter().filter_map(Site::snapshot).collect();
        Profile { branches, calls }
    }
}

impl Site {
    fn snapshot(&self) -> Option<CallProfile> {
        let mut targets = Vec::new();
        for (target, count) in &self.targets {
            match target.load(Ordering::Relaxed) {
                UNUSED => break,
                target => targets.push(((target != OTHER_INSTANCE).then_some(target), count.get())),
            }
        }
        targets.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        (!targets.is_empty()).then(|| CallProfile { pc: self.pc, targets: targets.into(), others: self.others.get() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stop_at_the_highest() {
        let count = Count(AtomicU32::new(u32::MAX - 1));
        for _ in 0..3 {
            count.bump();
        }
        assert_eq!(count.get(), u32::MAX);
    }
}
