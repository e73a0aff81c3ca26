//! What the interpreter counts of a function that has grown warm: see [`weir_jit::profile`], which is what comes out.
//!
//! Branches count by the index of their entry in the side table, which the interpreter has at hand; indirect calls, which own
//! none, are found by pc, which costs a short search beside a call through a table. The counts stand apart from the side
//! table: it stays immutable, and functions that never grow warm pay no memory for them.
//!
//! Nothing here is exact when threads share a module: a count that another thread overwrites is lost.

use std::sync::atomic::{AtomicU32, Ordering};
use weir_bytecode::instrs::Instrs;
use weir_bytecode::{FuncBody, Module as Bytecode, Opcode};
use weir_jit::profile::{BranchProfile, CallProfile, Profile};

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

fn is_indirect_call(op: Opcode) -> bool {
    matches!(op, Opcode::CallIndirect | Opcode::CallRef | Opcode::ReturnCallIndirect | Opcode::ReturnCallRef)
}

impl Counters {
    /// Those of a function of `module`, at 0.
    pub fn new(module: &Bytecode, body: &FuncBody) -> Counters {
        let site = |pc| {
            let targets = std::array::from_fn(|_| (NOBODY.into(), Count::default()));
            Site { pc, targets, others: Count::default() }
        };
        let instrs = Instrs::new(module, body.entry, body.end);
        Counters {
            branches: body.branches.iter().map(|_| Directions::default()).collect(),
            calls: instrs.filter(|instr| is_indirect_call(instr.op)).map(|instr| site(instr.pc)).collect(),
        }
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

    /// What was counted of the function, which is the one that `new` was given.
    pub fn snapshot(&self, module: &Bytecode, body: &FuncBody) -> Profile {
        let mut entries = self.branches.iter();
        let mut branches = Vec::new();
        for instr in Instrs::new(module, body.entry, body.end) {
            let own: Vec<&Directions> = entries.by_ref().take(instr.branch_entries()).collect();
            let ways: Box<[u32]> = match (instr.op, &own[..]) {
                (Opcode::BrIf | Opcode::BrOnNull | Opcode::BrOnNonNull, [way]) => [way.taken.get(), way.passed.get()].into(),
                (Opcode::If, [way]) => [way.passed.get(), way.taken.get()].into(),
                (Opcode::BrTable, labels) => labels.iter().map(|label| label.taken.get()).collect(),
                _ => continue,
            };
            branches.push(BranchProfile { pc: instr.pc, ways });
        }
        let calls = self.calls.iter().filter_map(Site::snapshot).collect();
        Profile { branches: branches.into(), calls }
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
