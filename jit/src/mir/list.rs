//! Lists of blocks and registers.

use crate::regalloc::{Reg, RegSet};
use smallvec::SmallVec;
use weir_contract::Helper;

/// A few blocks. Most blocks have one or two successors and predecessors.
pub type Blocks = SmallVec<[u32; 4]>;

/// The parameters or arguments of a block, which are usually few.
pub type Regs = SmallVec<[Reg; 4]>;

/// The operands of a call, a return or the function's entry, whose number varies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegList {
    /// Registers that are read: each virtual register with its physical one.
    pub uses: Vec<(Reg, Reg)>,
    /// Registers that are written: each virtual register with its physical one.
    pub defs: Vec<(Reg, Reg)>,
    /// Registers that are clobbered in addition.
    pub clobbers: RegSet,
    /// The callee.
    pub target: Target,
    /// Whether the pinned register must be restored after it.
    pub restore: bool,
    /// The branch entries of the handlers to which exceptional edges lead: those of the block's first successors.
    pub handlers: Vec<u32>,
    /// After allocation, the slots of the roots at a safepoint, ascending.
    pub roots: Vec<u32>,
}

impl RegList {
    /// The bytes of its lists.
    pub fn size(&self) -> usize {
        let RegList { uses, defs, handlers, roots, .. } = self;
        size_of_val(&**uses) + size_of_val(&**defs) + size_of_val(&**handlers) + size_of_val(&**roots)
    }
}

/// The callee of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// None: it is not a call.
    None,
    /// This function itself.
    Itself,
    /// A function of this module, called through its entry cell.
    Cell(u32),
    /// The function whose `FuncRef` or `TableEntry` is in the last register of the list.
    Reference,
    /// A function of this instance, the address of whose entry cell is in the last register of the list.
    Own,
    /// The address in the second register of the list. Only for tail calls.
    Address,
    /// A helper of the runtime.
    Helper(Helper),
}

impl Target {
    /// Whether the collector may run before a call of it returns, or before its exception is caught. Helpers run no collection, nor do
    /// callbacks that they call: only a throw does, when it begins.
    pub fn may_collect(self) -> bool {
        match self {
            Target::Itself | Target::Cell(_) | Target::Reference | Target::Own | Target::Address => true,
            Target::Helper(helper) => matches!(helper, Helper::Throw | Helper::ThrowRef),
            Target::None => false,
        }
    }
}
