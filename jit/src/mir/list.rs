//! Lists of blocks and registers.

use crate::regalloc::{Reg, RegSet};
use smallvec::SmallVec;
use weir_contract::Helper;

/// A few blocks: most have one or two neighbours on either side.
pub type Blocks = SmallVec<[u32; 4]>;

/// What a block defines or passes on: mostly little.
pub type Regs = SmallVec<[Reg; 4]>;

/// The operands of a call, a return or the function's entry, whose number varies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegList {
    /// Read, each in its register.
    pub uses: Vec<(Reg, Reg)>,
    /// Written, each in its register.
    pub defs: Vec<(Reg, Reg)>,
    /// Destroyed in addition.
    pub clobbers: RegSet,
    /// The callee.
    pub target: Target,
    /// Whether the pinned register is restored after it.
    pub restore: bool,
}

/// The callee of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// None: it is no call.
    None,
    /// This code itself.
    Itself,
    /// A function of this module, through its cell.
    Cell(u32),
    /// The function whose `FuncRef` or `TableEntry` is in the last register of the list.
    Reference,
    /// A function of the runtime.
    Helper(Helper),
}
