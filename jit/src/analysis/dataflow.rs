//! Forward data flow in extended basic blocks: the facts at the end of a block hold at the start of each block whose
//! only predecessor it is; at a join nothing is known. One sweep in reverse postorder solves such a problem, and a pass
//! may rewrite the blocks as it visits them. The pass `load_forwarding` uses this.
//!
//! `docs/decisions/040-data-flow-in-extended-blocks.md` compares this with iterating over the whole graph.

use crate::ir::{Block, Func};
use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;

/// Lists of facts of type `T` at the ends of blocks, during one sweep in reverse postorder. The facts at the end of a
/// block hold at the start of each block whose only predecessor it is; at the start of other blocks nothing is known.
#[derive(Debug)]
pub struct BlockEndFacts<'s, T> {
    /// The lists of all blocks.
    facts: BumpVec<'s, T>,
    /// By block, the start and end of its list.
    at_end: &'s mut [(usize, usize)],
}

impl<'s, T: Copy> BlockEndFacts<'s, T> {
    /// No facts about this many blocks.
    pub fn new(scratch: &'s Bump, blocks: usize) -> BlockEndFacts<'s, T> {
        BlockEndFacts { facts: BumpVec::new_in(scratch), at_end: scratch.alloc_slice_fill_copy(blocks, (0, 0)) }
    }

    /// The facts at the start of `block`. They hold at its end too, unless [`BlockEndFacts::leave`] changes that.
    pub fn enter(&mut self, func: &Func<'_>, block: Block) -> &[T] {
        let (start, end) = match func.block(block).preds[..] {
            [pred] => self.at_end[pred.index()],
            _ => (0, 0),
        };
        self.at_end[block.index()] = (start, end);
        &self.facts[start..end]
    }

    /// Sets the facts that hold at the end of `block`.
    pub fn leave(&mut self, func: &Func<'_>, block: Block, facts: &[T]) {
        let start = self.facts.len();
        if func.block(block).succs.iter().any(|&succ| func.block(succ).preds.len() == 1) {
            self.facts.extend_from_slice_copy(facts);
        }
        self.at_end[block.index()] = (start, self.facts.len());
    }
}
