//! The blocks of the machine function: the reachable ones of the SSA, and one more on every critical edge. They are in reverse
//! postorder, but with the blocks of each loop contiguous, so that live ranges in a loop do not span code outside it.

use super::list::Blocks;
use super::loops;
use crate::ir::{Block, Func, Op};
use smallvec::SmallVec;
use std::ops::Range;

/// Where a machine block comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A block.
    Block(Block),
    /// The edge from a block to its successor number n.
    Edge(Block, u32),
}

/// The machine function's control flow. Everything is indexed by machine block; the entry is 0.
#[derive(Debug, Default)]
pub struct Flow {
    /// The origin of each.
    pub origins: Vec<Origin>,
    /// Successors, without duplicates.
    pub succs: Vec<Blocks>,
    /// For each successor index in the SSA, the index in `succs`.
    pub targets: Vec<Blocks>,
    /// Predecessors.
    pub preds: Vec<Blocks>,
    /// Loops, outer before inner, each with its header first.
    pub loops: Vec<Range<u32>>,
    /// Leads only to a trap.
    pub cold: Vec<bool>,
}

impl Flow {
    /// The control flow of `func`.
    pub fn of(func: &Func<'_>) -> Flow {
        let mut flow = Flow::with_edges_split(func);
        let order = flow.reverse_postorder();
        flow.renumber(&order);
        flow.make_loops_contiguous();
        flow.find_cold(func);
        flow
    }

    fn with_edges_split(func: &Func<'_>) -> Flow {
        let reachable = reachable(func);
        let mut incoming = vec![0u32; func.num_blocks()];
        for &block in &reachable {
            func.block(block).succs.iter().for_each(|succ| incoming[succ.index()] += 1);
        }
        let mut flow = Flow::default();
        flow.origins.reserve(2 * reachable.len());
        flow.succs.reserve(2 * reachable.len());
        flow.targets.reserve(2 * reachable.len());
        let mut node = vec![u32::MAX; func.num_blocks()];
        for &block in &reachable {
            node[block.index()] = flow.add(Origin::Block(block));
        }
        for &block in &reachable {
            let from = node[block.index()] as usize;
            let succs = &func.block(block).succs;
            let twins = twins(func, block);
            for (k, succ) in succs.iter().enumerate() {
                if twins[k] < k {
                    let index = flow.targets[from][twins[k]];
                    flow.targets[from].push(index);
                    continue;
                }
                let mut target = node[succ.index()];
                if succs.len() > 1 && incoming[succ.index()] > 1 {
                    target = flow.add(Origin::Edge(block, k as u32));
                    flow.succs[target as usize].push(node[succ.index()]);
                    flow.targets[target as usize].push(0);
                }
                let index = flow.succs[from].len() as u32;
                flow.targets[from].push(index);
                flow.succs[from].push(target);
            }
        }
        flow
    }

    fn add(&mut self, origin: Origin) -> u32 {
        self.origins.push(origin);
        self.succs.push(Blocks::new());
        self.targets.push(Blocks::new());
        self.origins.len() as u32 - 1
    }

    /// The last successor of a block follows it where possible: for `br_if` that is the fall-through.
    fn reverse_postorder(&self) -> Vec<u32> {
        let mut order = Vec::with_capacity(self.origins.len());
        let mut seen = vec![false; self.origins.len()];
        let mut stack = Vec::with_capacity(self.origins.len());
        stack.push((0u32, 0usize));
        seen[0] = true;
        while let Some((node, next)) = stack.last_mut() {
            match self.succs[*node as usize].get(*next) {
                Some(&succ) => {
                    *next += 1;
                    if !std::mem::replace(&mut seen[succ as usize], true) {
                        stack.push((succ, 0));
                    }
                }
                None => {
                    order.push(*node);
                    stack.pop();
                }
            }
        }
        order.reverse();
        order
    }

    /// Gives block `order[i]` the number i, and fills in `preds`.
    fn renumber(&mut self, order: &[u32]) {
        let mut number = vec![0u32; order.len()];
        for (i, &node) in order.iter().enumerate() {
            number[node as usize] = i as u32;
        }
        self.origins = order.iter().map(|&node| self.origins[node as usize]).collect();
        self.targets = order.iter().map(|&node| std::mem::take(&mut self.targets[node as usize])).collect();
        let succs = order.iter().map(|&node| self.succs[node as usize].iter().map(|&s| number[s as usize]).collect());
        self.succs = succs.collect();
        self.preds = vec![Blocks::new(); order.len()];
        for (node, succs) in self.succs.iter().enumerate() {
            succs.iter().for_each(|&succ| self.preds[succ as usize].push(node as u32));
        }
    }

    fn make_loops_contiguous(&mut self) {
        if let Some((order, loops)) = loops::contiguous(&self.preds) {
            self.loops = loops;
            self.renumber(&order);
        }
    }

    fn find_cold(&mut self, func: &Func<'_>) {
        self.cold = vec![false; self.origins.len()];
        for block in (0..self.origins.len()).rev() {
            let traps = match self.origins[block] {
                Origin::Block(origin) => func.terminator(origin).is_some_and(|last| func.op(last) == Op::Trap),
                Origin::Edge(..) => false,
            };
            let succs = &self.succs[block];
            let leads_to_trap = !succs.is_empty() && succs.iter().all(|&succ| self.cold[succ as usize]);
            self.cold[block] = block != 0 && (traps || leads_to_trap);
        }
    }
}

fn reachable(func: &Func<'_>) -> Vec<Block> {
    let mut seen = vec![false; func.num_blocks()];
    let mut found = Vec::with_capacity(func.num_blocks());
    found.push(Block::ENTRY);
    seen[0] = true;
    let mut next = 0;
    while let Some(&block) = found.get(next) {
        next += 1;
        for &succ in &func.block(block).succs {
            if !std::mem::replace(&mut seen[succ.index()], true) {
                found.push(succ);
            }
        }
    }
    found
}

/// For each edge from `block`, the first that leads to the same successor with the same phi arguments. Tables have many.
fn twins(func: &Func<'_>, block: Block) -> SmallVec<[usize; 4]> {
    let succs = &func.block(block).succs;
    let mut twins: SmallVec<[usize; 4]> = (0..succs.len()).collect();
    let mut by_succ = twins.clone();
    by_succ.sort_by_key(|&k| succs[k]);
    for edges in by_succ.chunk_by(|&a, &b| succs[a] == succs[b]).filter(|edges| edges.len() > 1) {
        let succ = succs[edges[0]];
        let preds = func.block(succ).preds.iter().enumerate();
        let indices = preds.filter(|&(_, &pred)| pred == block).map(|(index, _)| index);
        // The first edges of their kind, and which arguments of the phis are theirs.
        let mut firsts: SmallVec<[(usize, usize); 4]> = SmallVec::new();
        for (&k, index) in edges.iter().zip(indices) {
            let same = |other: usize| func.phis(succ).all(|phi| func.args(phi)[other] == func.args(phi)[index]);
            match firsts.iter().find(|&&(_, other)| same(other)) {
                Some(&(first, _)) => twins[k] = first,
                None => firsts.push((k, index)),
            }
        }
    }
    twins
}
