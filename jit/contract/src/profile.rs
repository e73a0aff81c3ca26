//! What the interpreter has seen of a function, as plain data: how often control went each way at a branch, and which
//! functions its calls through tables and references called. A snapshot: the function may go on being interpreted meanwhile.

/// A function's profile. Counts stop at [`u32::MAX`]; those of threads that count at once may get lost.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Profile {
    /// Its conditional branches, ascending by pc.
    pub branches: Box<[BranchProfile]>,
    /// Its indirect calls that were executed, ascending by pc.
    pub calls: Box<[CallProfile]>,
}

/// How often control went each way at an instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BranchProfile {
    /// Offset of the opcode.
    pub pc: u32,
    /// For `br_if` and its like: taken, not taken. For `if`: into the first arm, to the `else` arm or behind the `end`. For
    /// `br_table`: to each label, the default last.
    pub ways: Box<[u32]>,
}

/// Which functions a `call_indirect`, a `call_ref` or a tail call of these kinds called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallProfile {
    /// Offset of the opcode.
    pub pc: u32,
    /// The first few that it called, and how often, the most frequent first: index of a function of the same instance, or `None` for
    /// all those of other instances and of the host.
    pub targets: Box<[(Option<u32>, u32)]>,
    /// Calls of any others.
    pub others: u32,
}

impl Profile {
    /// How often control went each way at the branch at `pc`; nothing if there is none.
    pub fn branch(&self, pc: u32) -> &[u32] {
        self.branches.binary_search_by_key(&pc, |branch| branch.pc).map_or(&[], |i| &self.branches[i].ways)
    }

    /// What the indirect call at `pc` called, if it was ever executed.
    pub fn call(&self, pc: u32) -> Option<&CallProfile> {
        self.calls.binary_search_by_key(&pc, |call| call.pc).ok().map(|i| &self.calls[i])
    }
}
