//! Side tables, which validation writes for the engines: targets of branches, locals that loops assign, costs of
//! segments.
//!
//! Every branch of a body owns entries in `branches`, in the order of the body's bytes:
//!
//! - `br`, `br_if`, `br_on_null` and `br_on_non_null` own one.
//! - `if` owns one, taken when the condition is false, to the `else` arm or past `end`.
//! - `else` owns one, from the end of the first arm past `end`.
//! - `br_table` with n labels owns n + 1, the default last.
//! - `loop` owns one that is not a branch. Its `pc` is the loop's index in `loops`, and its `drop` the work of an iteration: an
//!   estimate of the bytes that it executes, inner loops excluded, at least 1. The other fields are 0.
//!
//! The interpreter carries `stp`, the index of the next entry, along with its pc: straight-line code passes an instruction's
//! entries by adding their number, and a taken branch loads the target's `stp` from the entry.
//!
//! Branches in dead code own entries as well (their target is the pc of the branch itself, `stp` its first entry), so
//! that the count needs no reachability. A `loop` in dead code has its [`LoopInfo`], with a meaningless height and
//! nothing assigned. Code is *dead* between an instruction that never falls through and the next `else` or `end` of the
//! same block; code after an `end` counts as live even if it is unreachable.

/// The target of a branch and its effect on the operand stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct BranchEntry {
    /// Byte offset in the module of the first instruction at the target. It is after the `end` of a block or `if`, and at the
    /// body's final `end` for the function's own label. A back edge leads to the `loop` opcode *itself*, whose handler in the
    /// interpreter counts the iteration.
    pub pc: u32,
    /// The target's `stp`.
    pub stp: u32,
    /// Number of values that the label takes: the top `keep` operands move down over the next `drop`.
    pub keep: u32,
    /// Number of operands removed below those. In a loop's own entry, the work of an iteration.
    pub drop: u32,
}

/// A `loop`, in the order of their opcodes in the body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoopInfo {
    /// Offset of the `loop` opcode.
    pub pc: u32,
    /// `stp` at the `loop` opcode: the index of the loop's own entry, where a back edge lands.
    pub stp: u32,
    /// Operand slots on the stack at the opcode, the loop's own parameters included.
    pub height: u32,
    /// Index of the nearest enclosing loop of this function.
    pub parent: Option<u32>,
    /// Locals that `local.set` or `local.tee` write between this `loop` and its `end`.
    pub assigned: LocalSet,
}

/// A set of locals.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LocalSet {
    /// Every local: written where an exact set would cost too much (nested loops over many locals).
    All,
    /// These, ascending.
    Only(Box<[u32]>),
}

impl LocalSet {
    /// Whether `local` is in the set.
    pub fn contains(&self, local: u32) -> bool {
        match self {
            LocalSet::All => true,
            LocalSet::Only(locals) => locals.binary_search(&local).is_ok(),
        }
    }
}

/// A straight-line run of instructions: fuel is charged for the whole of it at its head.
///
/// Segments begin at the body's first instruction, at a `loop` opcode, and after `if`, `else`, the `end` of a block or `if`, every
/// conditional branch, and every call. They end where the next begins, or after an instruction that never falls through. A back edge lands on the `loop` opcode and so charges the segment at its head again.
/// The cost is the number of instructions in it other than `nop`, `block`, `loop`, `else` and `end`
/// (`drop` counts); a segment of cost 0 has no entry. Dead code is in no segment; code after a loop that never falls through
/// begins one, though it is unreachable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Offset of the first instruction.
    pub pc: u32,
    /// Units of fuel.
    pub cost: u32,
}
