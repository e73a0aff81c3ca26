//! The function as the solver walks it: instructions in one row, and edges by number.

use crate::analysis::{Cfg, Dominators};
use crate::ir::{Block, Func, Value};
use std::cell::OnceCell;

/// Reachable code in reverse postorder.
pub struct Layout {
    /// Instructions of all reachable blocks, block after block.
    pub row: Vec<Value>,
    /// Where in the row each value stands, once somebody asked; of values in no reachable block, 0.
    position: OnceCell<Vec<u32>>,
    /// Block of each value; the entry for values in no reachable block.
    pub home: Vec<Block>,
    /// Where in the row each block starts; of unreachable blocks, 0.
    start: Vec<u32>,
    /// Edge `k` into block `b` has the number `first_in[b] + k`.
    first_in: Vec<u32>,
    /// Number of the edge out of block `b` to successor `k`, at `first_out[b] + k`.
    out: Vec<u32>,
    first_out: Vec<u32>,
}

impl Layout {
    /// Lays out `func`.
    pub fn of(func: &Func<'_>, cfg: &Cfg) -> Layout {
        let mut this = Layout {
            row: Vec::with_capacity(func.num_values()),
            position: OnceCell::new(),
            home: vec![Block::ENTRY; func.num_values()],
            start: vec![0; func.num_blocks()],
            first_in: Vec::with_capacity(func.num_blocks() + 1),
            out: Vec::new(),
            first_out: Vec::with_capacity(func.num_blocks() + 1),
        };
        for &block in cfg.order() {
            this.start[block.index()] = this.row.len() as u32;
            let insts = &func.block(block).insts;
            this.row.extend_from_slice(insts);
            insts.iter().for_each(|value| this.home[value.index()] = block);
        }
        this.number_edges(func);
        this
    }

    fn number_edges(&mut self, func: &Func<'_>) {
        let (mut edges_in, mut edges_out) = (0, 0);
        for block in func.blocks() {
            self.first_in.push(edges_in);
            self.first_out.push(edges_out);
            edges_in += func.block(block).preds.len() as u32;
            edges_out += func.block(block).succs.len() as u32;
        }
        self.first_in.push(edges_in);
        self.first_out.push(edges_out);
        // Edges by target, those from one block next to each other and in the order of its successors.
        let mut arriving: Vec<(Block, u32)> = vec![(Block::ENTRY, 0); edges_out as usize];
        let mut next = self.first_in.clone();
        for block in func.blocks() {
            for (k, succ) in func.block(block).succs.iter().enumerate() {
                let at = &mut next[succ.index()];
                arriving[*at as usize] = (block, self.first_out[block.index()] + k as u32);
                *at += 1;
            }
        }
        self.out = vec![0; edges_out as usize];
        let mut from = vec![0u32; func.num_blocks()];
        for block in func.blocks() {
            let first = self.first_in[block.index()];
            let arriving = &arriving[first as usize..self.first_in[block.index() + 1] as usize];
            // The first edge from each predecessor; written last, so that it stays.
            for (k, (pred, _)) in arriving.iter().enumerate().rev() {
                from[pred.index()] = k as u32;
            }
            for (k, pred) in func.block(block).preds.iter().enumerate() {
                let edge = arriving[from[pred.index()] as usize].1;
                from[pred.index()] += 1;
                self.out[edge as usize] = first + k as u32;
            }
        }
    }

    /// Positions of a block's instructions.
    pub fn range(&self, func: &Func<'_>, block: Block) -> std::ops::Range<usize> {
        let start = self.start[block.index()] as usize;
        start..start + func.block(block).insts.len()
    }

    /// Whether `a` is at hand where `b` is computed.
    pub fn comes_before(&self, dom: &Dominators, a: Value, b: Value) -> bool {
        let [of_a, of_b] = [a, b].map(|value| self.home[value.index()]);
        if of_a != of_b {
            return dom.dominates(of_a, of_b);
        }
        let position = self.position.get_or_init(|| {
            let mut position = vec![0; self.home.len()];
            self.row.iter().enumerate().for_each(|(at, value)| position[value.index()] = at as u32);
            position
        });
        position[a.index()] < position[b.index()]
    }

    /// How many edges there are.
    pub fn num_edges(&self) -> usize {
        self.out.len()
    }

    /// Number of the edge into `block` from its predecessor `k`.
    pub fn edge_in(&self, block: Block, k: usize) -> usize {
        self.first_in[block.index()] as usize + k
    }

    /// Number of the edge out of `block` to its successor `k`.
    pub fn edge_out(&self, block: Block, k: usize) -> usize {
        self.out[self.first_out[block.index()] as usize + k] as usize
    }
}

/// A set of positions from which the lowest is taken first.
pub struct Queue {
    words: Vec<u64>,
    /// No word before this one has a bit set, and none from `end` on.
    first: usize,
    end: usize,
}

impl Queue {
    /// An empty set of positions below `count`.
    pub fn new(count: usize) -> Queue {
        Queue { words: vec![0; count.div_ceil(64)], first: 0, end: 0 }
    }

    /// Adds a position.
    pub fn add(&mut self, position: usize) {
        self.words[position / 64] |= 1 << (position % 64);
        self.first = self.first.min(position / 64);
        self.end = self.end.max(position / 64 + 1);
    }

    /// Takes the lowest position out.
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
        (self.first, self.end) = (usize::MAX, 0);
        None
    }
}
