//! Open blocks, loops and `if`s, and the edges into their labels.

use crate::ir::{Block, Type};
use crate::slow_growth;
use weir_bytecode::Module;
use weir_bytecode::instrs::BlockType;

/// A successor that has not been made yet.
pub(super) const PENDING: Block = Block(u32::MAX);

/// An open block, loop or `if`.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) ty: BlockType,
    pub(super) height: u32,
    /// Its opcode, and the block where it opened, or `PENDING` if that was not translated.
    pub(super) opened: (u32, Block),
    /// The last of the edges into its label, in [`Edges`].
    pub(super) edges: u32,
}

/// Edges into the labels of all open frames. Each links to the previous edge into the same label; those of one label
/// are in the order of `preds`.
pub(super) struct Edges {
    entries: Vec<(Edge, u32)>,
    /// The last of the unused entries, which are linked in the same way.
    free: u32,
}

impl Edges {
    /// Creates an empty list and reserves memory for this many edges.
    pub(super) fn new(edges: usize) -> Edges {
        Edges { entries: Vec::with_capacity(edges), free: NO_EDGE }
    }

    /// Adds `edge` to the list that ends with `before`. Returns the new end.
    pub(super) fn push(&mut self, before: u32, edge: Edge) -> u32 {
        let at = self.free;
        match self.entries.get_mut(at as usize) {
            Some(entry) => {
                self.free = entry.1;
                *entry = (edge, before);
                at
            }
            None => {
                slow_growth::push(&mut self.entries, (edge, before));
                self.entries.len() as u32 - 1
            }
        }
    }

    /// Moves the edges of the list that ends with `last` to `edges`, which must be empty.
    pub(super) fn take(&mut self, mut last: u32, edges: &mut Vec<Edge>) {
        while let Some((edge, before)) = self.entries.get_mut(last as usize) {
            slow_growth::push(edges, *edge);
            let next = std::mem::replace(before, self.free);
            self.free = std::mem::replace(&mut last, next);
        }
        edges.reverse();
    }
}

/// The end of an empty list.
pub(super) const NO_EDGE: u32 = u32::MAX;

/// The last edges of a handler's lists in [`Edges`]: see `exceptions`.
#[derive(Clone, Copy, Debug)]
pub(super) struct HandlerEdges {
    /// To the landing block.
    pub(super) landing: u32,
    /// From throws in this function to what comes after it; their arguments are the payload.
    pub(super) throws: u32,
}

impl HandlerEdges {
    pub const NONE: HandlerEdges = HandlerEdges { landing: NO_EDGE, throws: NO_EDGE };
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// The function body.
    Function,
    /// A `block`, or the second arm of an `if`.
    Block,
    /// The first arm of an `if`.
    If(ElseEntry),
    /// A `loop` around an OSR entry, in its first iteration, which is peeled: see [`osr`](super::osr). The label takes
    /// the parameters of the loop.
    PeeledLoop { pc: u32 },
    /// The `try_table` at this pc, which is this region.
    TryTable { pc: u32, region: u32 },
    /// A `try` before its first `catch` or `catch_all`, which is this region.
    Try { region: u32 },
    /// A `try` after this number of `catch` and `catch_all`.
    Catch { region: u32, handlers: u32 },
    /// A `loop` with this header, whose parameters' phis start at `phis` among the label arguments.
    Loop { header: Block, phis: u32 },
}

/// The way in which the second arm of an `if` is entered.
#[derive(Clone, Copy, Debug)]
pub(super) enum ElseEntry {
    /// It is not entered: the arm is dead.
    Dead,
    /// From this block directly, because the first arm is dead.
    Continue(Block, u32),
    /// An edge. Its arguments are the parameters.
    Edge(Edge),
}

/// An edge into a label: the successor `index` of `from`. Its operands start at `args` among the label arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: Block,
    pub(super) index: u32,
    pub(super) args: u32,
}

impl Frame {
    /// The number of operands below it, without its parameters.
    pub(super) fn height(&self) -> usize {
        self.height as usize
    }

    pub(super) fn function() -> Frame {
        Frame::new(Kind::Function, BlockType::Empty, 0)
    }

    pub(super) fn new(kind: Kind, ty: BlockType, height: usize) -> Frame {
        Frame { kind, ty, height: height as u32, opened: (0, PENDING), edges: NO_EDGE }
    }
}

/// The type of parameter `i` of a block.
pub(super) fn param_type(module: &Module, ty: BlockType, i: usize) -> Type {
    match ty {
        BlockType::Func(index) => module.types[index as usize].params[i].into(),
        BlockType::Empty | BlockType::Value(_) => unreachable!("only a function type has parameters"),
    }
}
