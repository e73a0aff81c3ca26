//! Code and data that are written, or filled in, after the body, and arguments of calls.

use super::values::{Kind, Popped};
use crate::regalloc::Reg;
use crate::x64::abi::ArgLocation;
use crate::x64::insts::Width;
use weir_contract::TrapSite;

/// A jump to code after the function. A function may have as many as it has instructions, so that offsets have four bytes here.
#[derive(Clone, Copy, Debug)]
pub struct Cold {
    /// The jump's distance.
    pub field: u32,
    /// The position to which the code returns, if it returns.
    pub back: u32,
    pub pc: u32,
    pub case: Case,
}

/// The effect of the code.
#[derive(Clone, Copy, Debug)]
pub enum Case {
    /// Traps.
    Trap(TrapSite),
    /// Traps because the access that ends at the address in `r11` is out of bounds.
    OutOfBounds,
    /// Asks the host whether to continue.
    Poll,
    /// Requests better code for the loop with this index.
    Tick(u32),
    /// Traps because of the table entry in this register.
    Signature(Reg),
    /// Counts a call of the function in this register, which is not the first target of its call.
    Target {
        func: Reg,
        /// The offset of the call's counters.
        site: i32,
        /// The jump that comes with a function of another instance.
        foreign: u32,
    },
    /// Divides `rax` by -1.
    QuotientByMinusOne(Width),
    /// The remainder by -1, in `rdx`.
    RemainderByMinusOne,
    /// Traps because the float in this register cannot be truncated.
    Untruncated(Reg, Width),
}

/// The landing of a handler of exceptions.
#[derive(Debug)]
pub struct Landing {
    /// The index of the handler's branch entry.
    pub entry: u32,
    /// The offset of the code at which its label continues.
    pub target: usize,
    /// The value of which the label expects a copy in its register: its index and its kind.
    pub loaded: Option<(usize, Kind)>,
    /// The pinned locals that the label, which is a loop's, expects in registers.
    pub pins: Box<[(u32, Reg)]>,
}

/// A loop at which the code can be entered.
#[derive(Debug)]
pub struct Head {
    /// The index of the loop.
    pub index: u32,
    /// The offset of its code.
    pub at: u32,
    /// The locals that are in registers there.
    pub pins: Box<[(u32, Reg)]>,
}

/// A direction of a branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    Taken,
    Passed,
}

/// A jump table.
#[derive(Debug)]
pub struct JumpTable {
    /// The field for its distance, at the end of the instruction.
    pub field: usize,
    /// The target of each entry.
    pub targets: Vec<usize>,
}

/// An argument of a call, and the place where the callee expects it.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    pub location: ArgLocation,
    pub operand: Popped,
}
