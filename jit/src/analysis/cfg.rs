//! Control flow: the blocks that are reachable from the entry, in reverse postorder
//! ([`graph::order`](crate::graph::order)).

use crate::graph::order::{Order, UNREACHABLE, reverse_postorder};
use crate::ir::{Block, Func};

/// Which blocks are reachable, and an order of them.
#[derive(Clone, Debug)]
pub struct Cfg {
    order: Vec<Block>,
    position: Vec<u32>,
}

impl Cfg {
    /// Orders the blocks of `func`; of the successors of a block, the first is next where possible.
    pub fn compute(func: &Func<'_>) -> Cfg {
        let succs = |block: u32| func.block(Block(block)).succs.iter().rev().map(|succ| succ.0);
        let Order { blocks, position } = reverse_postorder(func.num_blocks(), succs);
        Cfg { order: blocks.into_iter().map(Block).collect(), position }
    }

    /// The reachable blocks in reverse postorder, the entry first.
    pub fn order(&self) -> &[Block] {
        &self.order
    }

    /// The position of `block` in the order; `None` if it is unreachable.
    pub fn position(&self, block: Block) -> Option<usize> {
        let position = self.position[block.index()];
        (position != UNREACHABLE).then_some(position as usize)
    }

    /// Positions of the reachable predecessors of the block at a position.
    pub fn preds(&self, func: &Func<'_>, position: u32) -> impl Iterator<Item = u32> {
        let preds = func.block(self.order[position as usize]).preds.iter();
        preds.map(|pred| self.position[pred.index()]).filter(|&pred| pred != UNREACHABLE)
    }

    /// Whether the entry reaches `block`.
    pub fn is_reachable(&self, block: Block) -> bool {
        self.position(block).is_some()
    }
}
