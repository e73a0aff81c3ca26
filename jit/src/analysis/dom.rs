//! Dominators: Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm" (2001).
//!
//! Quadratic in the worst case, but two rounds over the edges for any reducible graph. The tree is then numbered in
//! preorder, so that [`Dominators::dominates`] takes constant time.

use super::Cfg;
use crate::ir::{Block, Func};

/// The dominator tree of the reachable blocks.
#[derive(Clone, Debug)]
pub struct Dominators {
    /// Immediate dominator; the entry's is the entry. Of an unreachable block, itself.
    idom: Vec<Block>,
    /// Reachable blocks, parents before children and every subtree contiguous.
    preorder: Vec<Block>,
    /// `subtree[b]` is the range of `preorder` that `b` dominates; empty for unreachable blocks.
    subtree: Vec<(u32, u32)>,
}

impl Dominators {
    /// Finds the dominators of `func`, whose reverse postorder is `cfg`.
    pub fn compute(func: &Func<'_>, cfg: &Cfg) -> Dominators {
        let parents = immediate_dominators(func, cfg);
        let mut idom: Vec<Block> = func.blocks().collect();
        for (position, &block) in cfg.order().iter().enumerate() {
            idom[block.index()] = cfg.order()[parents[position] as usize];
        }
        let (preorder, subtree) = number(func.num_blocks(), cfg, &parents);
        Dominators { idom, preorder, subtree }
    }

    /// The immediate dominator of `block`: `None` for the entry and for unreachable blocks.
    pub fn idom(&self, block: Block) -> Option<Block> {
        let idom = self.idom[block.index()];
        (idom != block).then_some(idom)
    }

    /// Whether every path from the entry to `b` passes `a`. A block dominates itself; unreachable blocks dominate
    /// nothing and are dominated by nothing.
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        let ((start, end), (b, b_end)) = (self.subtree[a.index()], self.subtree[b.index()]);
        b < b_end && start <= b && b < end
    }

    /// The reachable blocks, every block before those it dominates, and those right behind it.
    pub fn preorder(&self) -> &[Block] {
        &self.preorder
    }
}

/// Immediate dominators as positions in reverse postorder, where a dominator has the lower position.
fn immediate_dominators(func: &Func<'_>, cfg: &Cfg) -> Vec<u32> {
    const UNKNOWN: u32 = u32::MAX;
    let mut idom = vec![UNKNOWN; cfg.order().len()];
    if let Some(entry) = idom.first_mut() {
        *entry = 0;
    }
    let mut changed = true;
    while changed {
        changed = false;
        for (position, &block) in cfg.order().iter().enumerate().skip(1) {
            let mut new = UNKNOWN;
            for pred in func.block(block).preds.iter().filter_map(|&pred| cfg.position(pred)) {
                if idom[pred] == UNKNOWN {
                    continue;
                }
                let (mut a, mut b) = (pred as u32, if new == UNKNOWN { pred as u32 } else { new });
                while a != b {
                    if a > b {
                        a = idom[a as usize];
                    } else {
                        b = idom[b as usize];
                    }
                }
                new = a;
            }
            if idom[position] != new {
                idom[position] = new;
                changed = true;
            }
        }
    }
    idom
}

/// Preorder of the tree, and for each block the range of it that the block's subtree takes.
fn number(num_blocks: usize, cfg: &Cfg, parents: &[u32]) -> (Vec<Block>, Vec<(u32, u32)>) {
    let count = parents.len();
    let mut size = vec![1u32; count];
    for position in (1..count).rev() {
        size[parents[position] as usize] += size[position];
    }
    // `next[p]`: where the next child of `p` goes. Parents are placed before children, as their position is lower.
    let mut next = vec![0u32; count];
    let mut preorder = vec![Block::ENTRY; count];
    let mut subtree = vec![(0, 0); num_blocks];
    for (position, &block) in cfg.order().iter().enumerate() {
        let start = match position {
            0 => 0,
            _ => {
                let parent = parents[position] as usize;
                next[parent] += size[position];
                next[parent] - size[position]
            }
        };
        next[position] = start + 1;
        preorder[start as usize] = block;
        subtree[block.index()] = (start, start + size[position]);
    }
    (preorder, subtree)
}
