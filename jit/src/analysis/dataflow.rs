//! Forward data flow in extended basic blocks: the facts at the end of a block hold at the start of those that only it leads
//! to, and where edges meet nothing is known. One sweep in reverse postorder solves such problems, and a pass may rewrite what it
//! visits. Instance: the pass `load_forwarding`.
//!
//! `docs/decisions/040-data-flow-in-extended-blocks.md` has the cost and the use of iterating over all of the graph instead.

use crate::ir::{Block, Func};
use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;

/// Facts, each a list of `T`, at the ends of blocks, for one sweep in reverse postorder: what holds at the end of a block holds at
/// the start of those that only it leads to; at the start of other blocks nothing is known.
#[derive(Debug)]
pub struct Extended<'s, T> {
    /// The lists of all blocks.
    facts: BumpVec<'s, T>,
    /// By block, where its list starts and ends.
    at_end: &'s mut [(usize, usize)],
}

impl<'s, T: Copy> Extended<'s, T> {
    /// Nothing is known of this many blocks.
    pub fn new(scratch: &'s Bump, blocks: usize) -> Extended<'s, T> {
        Extended { facts: BumpVec::new_in(scratch), at_end: scratch.alloc_slice_fill_copy(blocks, (0, 0)) }
    }

    /// What holds at the start of `block`. Until [`Extended::leave`] changes that, it holds at its end, too.
    pub fn enter(&mut self, func: &Func<'_>, block: Block) -> &[T] {
        let (start, end) = match func.block(block).preds[..] {
            [pred] => self.at_end[pred.index()],
            _ => (0, 0),
        };
        self.at_end[block.index()] = (start, end);
        &self.facts[start..end]
    }

    /// Lets `facts` hold at the end of `block`.
    pub fn leave(&mut self, func: &Func<'_>, block: Block, facts: &[T]) {
        let start = self.facts.len();
        if func.block(block).succs.iter().any(|&succ| func.block(succ).preds.len() == 1) {
            self.facts.extend_from_slice_copy(facts);
        }
        self.at_end[block.index()] = (start, self.facts.len());
    }
}
