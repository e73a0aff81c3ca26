//! Control-flow graph: the reachable blocks in reverse postorder ([`graph::order`](crate::graph::order)).

use crate::graph::node::Node;
use crate::graph::order::Order;
use crate::ir::{Block, Func};

impl Node for Block {
    fn new(index: u32) -> Block {
        Block(index)
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// The reachable blocks and their order.
#[derive(Clone, Debug)]
pub struct Cfg(Order<Block>);

impl Cfg {
    /// Orders the blocks of `func`. A block is followed by its first successor where possible.
    pub fn compute(func: &Func<'_>) -> Cfg {
        Cfg(Order::of(func.num_blocks(), |block| func.block(block).succs.iter().rev().copied()))
    }

    /// The reachable blocks in reverse postorder, the entry first.
    pub fn order(&self) -> &[Block] {
        &self.0.blocks
    }

    /// The order for analyses of any graph.
    pub fn as_order(&self) -> &Order<Block> {
        &self.0
    }

    /// The position of `block` in the order, or `None` if it is unreachable.
    pub fn position(&self, block: Block) -> Option<usize> {
        self.0.position(block).map(|position| position as usize)
    }

    /// The positions of the reachable predecessors of the block at `position`.
    pub fn preds(&self, func: &Func<'_>, position: u32) -> impl Iterator<Item = u32> {
        func.block(self.order()[position as usize]).preds.iter().filter_map(|&pred| self.0.position(pred))
    }

    /// Whether the entry reaches `block`.
    pub fn is_reachable(&self, block: Block) -> bool {
        self.0.position(block).is_some()
    }
}
