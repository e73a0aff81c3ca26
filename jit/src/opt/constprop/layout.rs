//! The function in the order in which the solver walks it: all instructions in one array, and edges by number.

use crate::analysis::{Cfg, DefBlocks, Dominators};
use crate::ir::{Block, Func, Value};
use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use std::cell::OnceCell;

/// Reachable code in reverse postorder.
pub struct Layout<'s> {
    /// Instructions of all reachable blocks, in block order.
    pub row: BumpVec<'s, Value>,
    /// The index of each value in `row`, computed on first use; 0 for values in no reachable block.
    position: OnceCell<&'s [u32]>,
    /// The block of each value.
    pub def_blocks: &'s DefBlocks,
    /// The index in `row` of each block's first instruction; 0 for unreachable blocks.
    start: &'s mut [u32],
    /// The edge from block `b` to its successor `k` has the number `first_out[b] + k`.
    first_out: &'s mut [u32],
    /// The number of the edge into block `b` from its predecessor `k`, at `first_in[b] + k`.
    sources: &'s mut [u32],
    first_in: &'s mut [u32],
    scratch: &'s Bump,
    /// The number of values.
    values: usize,
}

impl<'s> Layout<'s> {
    /// Lays out `func`.
    pub fn of(scratch: &'s Bump, func: &Func<'_>, cfg: &Cfg, def_blocks: &'s DefBlocks) -> Layout<'s> {
        let (blocks, values) = (func.num_blocks(), func.num_values());
        let edges = func.blocks().map(|block| func.block(block).succs.len()).sum();
        let mut this = Layout {
            row: BumpVec::with_capacity_in(values, scratch),
            position: OnceCell::new(),
            def_blocks,
            start: scratch.alloc_slice_fill_copy(blocks, 0),
            first_out: scratch.alloc_slice_fill_copy(blocks, 0),
            sources: scratch.alloc_slice_fill_copy(edges, 0),
            first_in: scratch.alloc_slice_fill_copy(blocks, 0),
            scratch,
            values,
        };
        for &block in cfg.order() {
            this.start[block.index()] = this.row.len() as u32;
            this.row.extend_from_slice_copy(&func.block(block).insts);
        }
        this.number_edges(func);
        this
    }

    fn number_edges(&mut self, func: &Func<'_>) {
        let (mut edges_in, mut edges_out) = (0, 0);
        for block in func.blocks() {
            let data = func.block(block);
            (self.first_in[block.index()], self.first_out[block.index()]) = (edges_in, edges_out);
            edges_in += data.preds.len() as u32;
            edges_out += data.succs.len() as u32;
        }
        // Edges by target, in the order of the blocks that they leave and of their successors.
        let next: &mut [u32] = self.scratch.alloc_slice_copy(self.first_in);
        let targets = func.blocks().flat_map(|block| &func.block(block).succs);
        for (edge, target) in targets.enumerate() {
            let at = &mut next[target.index()];
            self.sources[*at as usize] = edge as u32;
            *at += 1;
        }
        // Predecessors are usually in that order, too.
        for block in func.blocks() {
            let preds = &func.block(block).preds;
            if !preds.is_sorted() {
                let mut ordered: Vec<usize> = (0..preds.len()).collect();
                ordered.sort_by_key(|&k| preds[k]);
                let sources = &mut self.sources[self.first_in[block.index()] as usize..][..preds.len()];
                for (k, edge) in ordered.into_iter().zip(sources.to_vec()) {
                    sources[k] = edge;
                }
            }
        }
    }

    /// The positions of a block's instructions.
    pub fn range(&self, func: &Func<'_>, block: Block) -> std::ops::Range<usize> {
        let start = self.start[block.index()] as usize;
        start..start + func.block(block).insts.len()
    }

    /// Whether `a` has been computed when `b` is computed.
    pub fn comes_before(&self, dom: &Dominators, a: Value, b: Value) -> bool {
        let (of_a, of_b) = (self.def_blocks.of(a), self.def_blocks.of(b));
        if of_a != of_b {
            return dom.dominates(of_a, of_b);
        }
        let position = self.position.get_or_init(|| {
            let position = self.scratch.alloc_slice_fill_copy(self.values, 0);
            self.row.iter().enumerate().for_each(|(at, value)| position[value.index()] = at as u32);
            position
        });
        position[a.index()] < position[b.index()]
    }

    /// The number of edges.
    pub fn num_edges(&self) -> usize {
        self.sources.len()
    }

    /// The number of the edge into `block` from its predecessor `k`.
    pub fn edge_in(&self, block: Block, k: usize) -> usize {
        self.sources[self.first_in[block.index()] as usize + k] as usize
    }

    /// The number of the edge out of `block` to its successor `k`.
    pub fn edge_out(&self, block: Block, k: usize) -> usize {
        self.first_out[block.index()] as usize + k
    }
}

/// A set of positions from which the lowest is taken first.
pub struct Queue<'s> {
    words: &'s mut [u64],
    /// No word before this one has a bit set; nor has any from `end` on.
    first: usize,
    end: usize,
}

impl<'s> Queue<'s> {
    /// An empty set of positions below `count`.
    pub fn new(scratch: &'s Bump, count: usize) -> Queue<'s> {
        Queue { words: scratch.alloc_slice_fill_copy(count.div_ceil(64), 0), first: usize::MAX, end: 0 }
    }

    /// Adds a position.
    pub fn add(&mut self, position: usize) {
        self.words[position / 64] |= 1 << (position % 64);
        self.first = self.first.min(position / 64);
        self.end = self.end.max(position / 64 + 1);
    }

    /// Removes and returns the lowest position.
    pub fn take(&mut self) -> Option<usize> {
        while self.first < self.end {
            let word = &mut self.words[self.first];
            if *word != 0 {
                let bit = word.trailing_zeros() as usize;
                *word &= *word - 1;
                return Some(self.first * 64 + bit);
            }
            self.first += 1;
        }
        if self.end != 0 {
            (self.first, self.end) = (usize::MAX, 0);
        }
        None
    }
}
