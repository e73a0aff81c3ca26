//! The profile of a function, as plain data: counts of branch directions and of the targets of indirect calls. It is a snapshot; the
//! interpreter may go on counting.

/// The profile of a function. Counts saturate at [`u32::MAX`]; concurrent increments may be lost.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Profile {
    /// The conditional branches, ascending by pc.
    pub branches: Box<[BranchProfile]>,
    /// The executed indirect calls, ascending by pc.
    pub calls: Box<[CallProfile]>,
}

/// The counts of a branch instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BranchProfile {
    /// Offset of the opcode.
    pub pc: u32,
    /// Counts by direction. For `br_if` and similar: taken, not taken. For `if`: to the first arm, to the `else` arm or past the `end`.
    /// For `br_table`: to each label, the default last.
    pub ways: Box<[u32]>,
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

impl Profile {
    /// The counts of the branch at `pc`; empty if there are none.
    pub fn branch(&self, pc: u32) -> &[u32] {
        self.branches.binary_search_by_key(&pc, |branch| branch.pc).map_or(&[], |i| &self.branches[i].ways)
    }

    /// The targets of the indirect call at `pc`, if it was executed.
    pub fn call(&self, pc: u32) -> Option<&CallProfile> {
        self.calls.binary_search_by_key(&pc, |call| call.pc).ok().map(|i| &self.calls[i])
    }
}
