//! The profile of a function, as plain data: counts of branch directions and of the targets of indirect calls. It is a
//! snapshot; counting may continue.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new kind of control or call must be named by the compiler")]

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use weir_bytecode::opcodes::{CallKind, Control, Effect};
use weir_bytecode::{FuncBody, Instr};

/// The profile of a function. Counts saturate at [`u32::MAX`]; concurrent increments may be lost.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Profile {
    /// The conditional branches, ascending by pc.
    pub branches: Box<[BranchProfile]>,
    /// The executed indirect calls, ascending by pc.
    pub calls: Box<[CallProfile]>,
}

/// An instruction that a profile counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// A conditional branch: see [`BranchProfile::counts`].
    Branch {
        /// The number of its successors, and of the counts.
        successors: usize,
    },
    /// A call whose target is not fixed: see [`CallProfile`].
    Call,
}

impl Counted {
    /// Returns the kind of count that a profile has for `instr`, if it has one.
    pub fn of(instr: &Instr<'_>) -> Option<Counted> {
        let Effect::Control(control) = instr.op.effect() else { return None };
        match control {
            Control::BrIf | Control::BrOnNull | Control::BrOnNonNull | Control::If => Some(Counted::Branch { successors: 2 }),
            Control::BrTable => Some(Counted::Branch { successors: instr.branch_entries() }),
            Control::Call(kind) | Control::ReturnCall(kind) => match kind {
                CallKind::Direct => None,
                CallKind::Indirect | CallKind::Reference => Some(Counted::Call),
            },
            Control::Unreachable | Control::Nop | Control::Block | Control::Loop => None,
            Control::Else | Control::End | Control::Br | Control::Return => None,
            Control::TryTable | Control::Try | Control::Catch | Control::CatchAll | Control::Delegate => None,
            Control::Throw | Control::ThrowRef | Control::Rethrow => None,
        }
    }
}

/// The numbers of the items of a function that have counters.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CounterCounts {
    /// The entries of its side table.
    pub entries: u32,
    /// The instructions for which [`Counted::of`] returns [`Counted::Call`].
    pub calls: u32,
}

impl CounterCounts {
    /// Those of a function.
    pub fn of(body: &FuncBody) -> CounterCounts {
        CounterCounts { entries: body.branches.len() as u32, calls: body.indirect_calls }
    }
}

/// The layout of the counters of an indirect call, which interpreter and baseline code increment: [`CallCounters::TARGETS`]
/// targets of two 32-bit words, a function and the number of its calls, in the order of the first call, then the calls of
/// others, then a word without meaning. A function is stored as its index plus one. They follow the counters of the branches, one for each instruction for which
/// [`Counted::of`] returns [`Counted::Call`], in the order of the body, unreachable ones included.
#[derive(Clone, Copy, Debug)]
pub struct CallCounters;

impl CallCounters {
    /// Number of targets that are counted separately. Speculation would use no more.
    pub const TARGETS: usize = 3;
    /// Number of 32-bit words for each call.
    pub const WORDS: usize = 8;
    /// Bytes of a target.
    pub const TARGET: u32 = 8;
    /// Offset of the calls of others in bytes.
    pub const OTHERS: u32 = CallCounters::TARGET * CallCounters::TARGETS as u32;
    /// In the place of a function: one of another instance or of the host.
    pub const OTHER_INSTANCE: u32 = u32::MAX;
    /// In the place of a function: no function yet.
    pub const UNUSED: u32 = 0;

    /// Returns the offset in bytes of the counters of the indirect call with this number, in a function with this number of
    /// entries in its side table.
    pub fn offset(entries: usize, call: usize) -> usize {
        8 * entries + 4 * CallCounters::WORDS * call
    }
}

/// The counts of a branch instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BranchProfile {
    /// Offset of the opcode.
    pub pc: u32,
    /// A count for each successor. For `br_if` and similar: taken, not taken. For `if`: to the first arm, to the `else` arm or past the
    /// `end`. For `br_table`: to each label, the default last.
    pub counts: Box<[u32]>,
}

/// The targets of a `call_indirect`, a `call_ref`, or a tail call of these kinds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallProfile {
    /// Offset of the opcode.
    pub pc: u32,
    /// The first few distinct targets with their counts, the most frequent first: the index of a function of the same instance, or
    /// `None` for all functions of other instances and of the host.
    pub targets: Box<[(Option<u32>, u32)]>,
    /// Calls of all other targets.
    pub others: u32,
}

impl CallProfile {
    /// Adds the counts of another run. The most frequent targets stay.
    fn merge(&mut self, other: &CallProfile) {
        let mut targets = self.targets.to_vec();
        for &(target, count) in &other.targets {
            match targets.iter_mut().find(|sum| sum.0 == target) {
                Some((_, sum)) => *sum = sum.saturating_add(count),
                None => targets.push((target, count)),
            }
        }
        targets.sort_by_key(|target| Reverse(target.1));
        let rest = targets.split_off(targets.len().min(CallCounters::TARGETS));
        let others = self.others.saturating_add(other.others);
        self.others = rest.iter().fold(others, |others, target| others.saturating_add(target.1));
        self.targets = targets.into();
    }
}

impl Profile {
    /// The counts of a branch that was executed less often say nothing.
    pub const SEEN: u64 = 16;

    /// Whether it counts nothing.
    pub fn is_empty(&self) -> bool {
        self.branches.is_empty() && self.calls.is_empty()
    }

    /// Adds the counts of another run of the same function.
    pub fn merge(&mut self, other: &Profile) {
        let mut branches = BTreeMap::new();
        for BranchProfile { pc, counts } in self.branches.iter().chain(&other.branches) {
            let sums = branches.entry(*pc).or_insert_with(|| vec![0u32; counts.len()].into_boxed_slice());
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(*count));
        }
        self.branches = branches.into_iter().map(|(pc, counts)| BranchProfile { pc, counts }).collect();
        let mut calls = BTreeMap::<u32, CallProfile>::new();
        for call in self.calls.iter().chain(&other.calls) {
            calls.entry(call.pc).and_modify(|sum| sum.merge(call)).or_insert_with(|| call.clone());
        }
        self.calls = calls.into_values().collect();
    }

    /// Takes the counts of `hints` for the branches that were executed less often than [`Profile::SEEN`], and for the calls that were not executed.
    pub fn fill(&mut self, hints: &Profile) {
        let seen = |counts: &[u32]| counts.iter().copied().map(u64::from).sum::<u64>() >= Profile::SEEN;
        let mut branches: BTreeMap<_, _> = hints.branches.iter().map(|branch| (branch.pc, branch)).collect();
        for branch in &self.branches {
            if seen(&branch.counts) {
                branches.insert(branch.pc, branch);
            } else {
                branches.entry(branch.pc).or_insert(branch);
            }
        }
        self.branches = branches.into_values().cloned().collect();
        let mut calls: BTreeMap<_, _> = hints.calls.iter().map(|call| (call.pc, call)).collect();
        calls.extend(self.calls.iter().map(|call| (call.pc, call)));
        self.calls = calls.into_values().cloned().collect();
    }

    /// The counts of the branch at `pc`; empty if there are none.
    pub fn branch(&self, pc: u32) -> &[u32] {
        self.branches.binary_search_by_key(&pc, |branch| branch.pc).map_or(&[], |i| &self.branches[i].counts)
    }

    /// The targets of the indirect call at `pc`, if it was executed.
    pub fn call(&self, pc: u32) -> Option<&CallProfile> {
        self.calls.binary_search_by_key(&pc, |call| call.pc).ok().map(|i| &self.calls[i])
    }
}

/// The text form, one line for each branch and call: see [`crate::profile_text`].
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for BranchProfile { pc, counts } in &self.branches {
            write!(f, "  branch {pc:#x}")?;
            counts.iter().try_for_each(|count| write!(f, " {count}"))?;
            writeln!(f)?;
        }
        for CallProfile { pc, targets, others } in &self.calls {
            write!(f, "  call {pc:#x}")?;
            for (target, count) in targets {
                match target {
                    Some(func) => write!(f, " f{func} {count}")?,
                    None => write!(f, " elsewhere {count}")?,
                }
            }
            writeln!(f, " others {others}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pc of a call, its targets with their counts, and the count of others.
    type Call<'c> = (u32, &'c [(Option<u32>, u32)], u32);

    fn profile(branches: &[(u32, &[u32])], calls: &[Call<'_>]) -> Profile {
        Profile {
            branches: branches.iter().map(|&(pc, counts)| BranchProfile { pc, counts: counts.into() }).collect(),
            calls: calls.iter().map(|&(pc, targets, others)| CallProfile { pc, targets: targets.into(), others }).collect(),
        }
    }

    #[test]
    fn hints_stand_for_what_was_not_executed() {
        let mut counts = profile(&[(3, &[15, 1]), (5, &[15, 0]), (9, &[0, 3])], &[(20, &[(Some(1), 1)], 0)]);
        let hints =
            profile(&[(3, &[1, 255]), (5, &[1, 255]), (7, &[255, 1])], &[(12, &[(Some(8), 90)], 10), (20, &[(Some(2), 99)], 1)]);
        counts.fill(&hints);
        let expected = profile(
            &[(3, &[15, 1]), (5, &[1, 255]), (7, &[255, 1]), (9, &[0, 3])],
            &[(12, &[(Some(8), 90)], 10), (20, &[(Some(1), 1)], 0)],
        );
        assert_eq!(counts, expected);
    }

    #[test]
    fn merged_counts_are_sums_and_keep_the_most_frequent_targets() {
        let mut merged = profile(&[(3, &[1, 2]), (9, &[u32::MAX, 0, 5])], &[(20, &[(Some(1), 9), (Some(2), 5), (None, 1)], 4)]);
        let other = profile(
            &[(3, &[10, 20]), (5, &[7, 7]), (9, &[1, 1, 1])],
            &[(12, &[(Some(8), 3)], 0), (20, &[(Some(3), 8), (Some(2), 6)], u32::MAX - 4)],
        );
        merged.merge(&other);
        let expected = profile(
            &[(3, &[11, 22]), (5, &[7, 7]), (9, &[u32::MAX, 1, 6])],
            &[(12, &[(Some(8), 3)], 0), (20, &[(Some(2), 11), (Some(1), 9), (Some(3), 8)], u32::MAX)],
        );
        assert_eq!(merged, expected);
        let mut nothing = Profile::default();
        nothing.merge(&expected);
        assert_eq!(nothing, expected);
    }
}
