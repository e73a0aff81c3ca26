//! Side tables, which validation writes for the engines: targets of branches, locals that loops assign, costs of
//! segments, handlers of exceptions.
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
//! - `try_table` with n clauses owns n + 1. The first leads to the next instruction, so that the instruction executes as `br`
//!   does. The others are the branches of the clauses, in their order.
//! - `catch` and `catch_all` own two. The first is that of an `else`: from the end of the part before it past `end`. The second
//!   leads to the next instruction, with the payload for its operands: the handler's.
//! - `delegate` owns one, which leads to the next instruction.
//! - `rethrow` owns one that is not a branch. Its `pc` is the local that has the exception. The other fields are 0.
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
    /// The target's `stp`; 0 for the function's own label, where none is needed. So it is greater than the entry's index if, and only if,
    /// the branch leads forward to another label, where a fuel segment may begin.
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

/// Code whose exceptions have handlers: the body of a `try_table`, or the part of a `try` before its first `catch` or its
/// `delegate`. They are in the order in which they begin, and nest. There is none for a block in dead code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TryRegion {
    /// Offset of its first instruction.
    pub start: u32,
    /// Offset of the `end`, `catch`, `catch_all` or `delegate` that ends it.
    pub end: u32,
    /// Operands below the block's parameters.
    pub height: u32,
    /// The innermost region around it, [`NO_REGION`] if there is none.
    pub parent: u32,
    /// The region that has the exceptions that its own handlers do not catch, [`NO_REGION`] if none. It is the parent, except for
    /// a `delegate`.
    pub next: u32,
    /// Index of its first handler, and their number.
    pub first: u32,
    /// Number of its handlers.
    pub count: u32,
}

/// In place of a [`TryRegion`]'s index: none.
pub const NO_REGION: u32 = u32::MAX;

/// A clause of a `try_table`, or a `catch` or `catch_all` of a `try`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handler {
    /// The tag of the exceptions that it catches; `None` for all.
    pub tag: Option<u32>,
    /// Whether it passes on a reference to the exception, above the payload.
    pub reference: bool,
    /// The local to which the reference is stored, for `rethrow`.
    pub saved: Option<u32>,
    /// Index of its branch entry. The branch is taken with the payload, and the reference, on top of the region's `height` operands.
    pub entry: u32,
}

impl Handler {
    /// Whether the exception needs an object: something may refer to it.
    pub fn needs_object(&self) -> bool {
        self.reference || self.saved.is_some()
    }
}

/// Returns the innermost region that contains `pc`.
pub fn region_at(regions: &[TryRegion], pc: u32) -> Option<&TryRegion> {
    let last = regions.partition_point(|region| region.start <= pc).checked_sub(1)?;
    let mut region = &regions[last];
    while pc >= region.end {
        region = regions.get(region.parent as usize)?;
    }
    Some(region)
}

/// A straight-line run of instructions: fuel is charged for the whole of it at its head.
///
/// Segments begin at the body's first instruction, after a `loop` opcode, and after `if`, `else`, the `end` of a block or `if`, every
/// conditional branch, every call, `catch`, `catch_all` and `delegate`. They end where the next begins, or after an instruction that never
/// falls through. A `loop` itself is the last instruction of the segment before it. The segment of a loop begins at the *second byte* of the
/// `loop` instruction: a back edge lands on the opcode and charges the segment after it again, but not one that begins with the opcode.
///
/// The cost is the number of instructions in it other than `nop`, `block`, `loop`, `else`, `end`, `try`, `try_table`, `catch`,
/// `catch_all` and `delegate` (`drop` counts). With a [table](crate::validate::Options::costs) it is instead the sum of their costs
/// there, and of [`Costs::CALL`](crate::cost::Costs::CALL) for the body's first segment. It saturates. A segment of cost 0 has no entry. A
/// branch to the function's label does not execute its `end`, and charges no segment that begins there. Dead code is in no segment; code
/// after a loop that never falls through begins one, though it is unreachable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Offset of the first instruction or, for that of a loop, after the `loop` opcode.
    pub pc: u32,
    /// Units of fuel.
    pub cost: u32,
}
