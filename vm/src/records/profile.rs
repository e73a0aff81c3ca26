//! What the interpreter counts of a function that has grown warm: see [`weir_contract::profile`], which is what comes out.
//!
//! Branches count by the index of their entry in the side table, which the interpreter has at hand; indirect calls, which own
//! none, are found by pc, which costs a short search beside a call through a table. The counts stand apart from the side
//! table: it stays immutable, and functions that never grow warm pay no memory for them.
//!
//! Nothing here is exact when threads share a module: a count that another thread overwrites is lost.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use weir_bytecode::instrs::{Instr, Instrs};
use weir_bytecode::{FuncBody, Module as Bytecode, Opcode};
use weir_contract::profile::{BranchProfile, CallProfile, Counted, Profile};

/// How many functions an indirect call tells apart: more than speculation could use.
const TARGETS: usize = 3;

/// A count that stops at the highest.
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

/// A function's counts.
#[derive(Debug)]
pub(crate) struct Counters {
    /// One per entry of the side table. Those of `br`, `else` and `loop` count nothing.
    branches: Box<[Directions]>,
    /// Whose the others are, ascending by pc: a snapshot, taken for each compilation, decodes nothing.
    owners: Box<[Owner]>,
    /// Indirect calls, ascending by pc.
    calls: Box<[Site]>,
}

/// How often a branch was taken, and was not.
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
    /// Function index, [`ELSEWHERE`] or [`NOBODY`], and calls of it: in the order in which they were first called.
    targets: [(AtomicU32, Count); TARGETS],
    others: Count,
}

/// Not an index: functions of other instances and of the host.
const ELSEWHERE: u32 = u32::MAX;
/// Not an index: no function yet.
const NOBODY: u32 = u32::MAX - 1;

impl Counters {
    /// Those of a function of `module`, at 0.
    pub fn new(module: &Bytecode, body: &FuncBody) -> Counters {
        let site = |pc| {
            let targets = std::array::from_fn(|_| (NOBODY.into(), Count::default()));
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

    /// The counts of the branch that owns entry 0, and behind them those of the others.
    pub fn directions(&self) -> *const Directions {
        self.branches.as_ptr()
    }

    /// Counts that the branch which owns entry `entry` was taken, or was not.
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

    /// Counts a call at `pc` of a function of the same instance, or of any other for `None`.
    pub fn call(&self, pc: u32, target: Option<u32>) {
        let Ok(i) = self.calls.binary_search_by_key(&pc, |site| site.pc) else { return };
        let called = target.unwrap_or(ELSEWHERE);
        for (target, count) in &self.calls[i].targets {
            match target.load(Ordering::Relaxed) {
                NOBODY => target.store(called, Ordering::Relaxed),
                target if target != called => continue,
                _ => (),
            }
            return count.bump();
        }
        self.calls[i].others.bump();
    }

    /// What was counted.
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
                NOBODY => break,
                target => targets.push(((target != ELSEWHERE).then_some(target), count.get())),
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
