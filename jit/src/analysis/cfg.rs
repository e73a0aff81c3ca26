//! Reverse postorder of the blocks that the entry reaches.
//!
//! In it every block comes before those it dominates, and before its successors except along back edges. Cost:
//! O(blocks + edges).

use crate::ir::{Block, Func};

/// Which blocks are reachable, and an order of them.
#[derive(Clone, Debug)]
pub struct Cfg {
    order: Vec<Block>,
    position: Vec<u32>,
}

const UNREACHABLE: u32 = u32::MAX;

impl Cfg {
    /// Orders the blocks of `func`.
    pub fn compute(func: &Func<'_>) -> Cfg {
        let mut position = vec![UNREACHABLE; func.num_blocks()];
        let mut order = Vec::with_capacity(func.num_blocks());
        // Blocks on the path that is being followed, each with the successors that it has yet to follow. Following the
        // last first puts the first successor next in the final order.
        let mut path: Vec<(Block, usize)> = Vec::with_capacity(func.num_blocks());
        if func.num_blocks() > 0 {
            position[0] = 0;
            path.push((Block::ENTRY, func.block(Block::ENTRY).succs.len()));
        }
        while let Some((block, left)) = path.last_mut() {
            if *left == 0 {
                order.push(*block);
                path.pop();
                continue;
            }
            *left -= 1;
            let succ = func.block(*block).succs[*left];
            if position[succ.index()] == UNREACHABLE {
                position[succ.index()] = 0;
                path.push((succ, func.block(succ).succs.len()));
            }
        }
        order.reverse();
        for (i, block) in order.iter().enumerate() {
            position[block.index()] = i as u32;
        }
        Cfg { order, position }
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

    /// Whether the entry reaches `block`.
    pub fn is_reachable(&self, block: Block) -> bool {
        self.position(block).is_some()
    }
}
