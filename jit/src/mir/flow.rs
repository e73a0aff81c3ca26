//! The blocks of the machine function: the reachable blocks of the SSA, and a block on every critical edge. They are in
//! reverse postorder, except that the blocks of each loop are contiguous, so that live ranges in a loop do not span
//! code outside it. Rare blocks come last, so that the allocator splits no value of frequent code because of them
//! (C. Wimmer, H. Mössenböck, "Optimized Interval Splitting in a Linear Scan Register Allocator", VEE 2005).

use super::frequency::Estimate;
use super::list::Blocks;
use crate::analysis::Cfg;
use crate::graph::loops::Loops;
use crate::graph::order::Order;
use crate::ir::{Block, Func, Op, Type};
use crate::meter::{Ended, Meter};
use smallvec::SmallVec;
use std::ops::Range;

/// The origin of a machine block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A block of the SSA.
    Block(Block),
    /// An edge, from a block to its successor with this index.
    Edge(Block, u32),
}

/// The machine function's control flow, indexed by machine block. The entry is block 0.
#[derive(Debug, Default)]
pub struct Flow {
    /// The origin of each block.
    pub origins: Vec<Origin>,
    /// Successors, without duplicates.
    pub succs: Vec<Blocks>,
    /// For each successor in the SSA, its index in `succs`.
    pub targets: Vec<Blocks>,
    /// Predecessors.
    pub preds: Vec<Blocks>,
    /// Loops, each starting with its header; outer loops come before inner ones.
    pub loops: Vec<Range<u32>>,
    /// The estimates of each block, once they are [known](Flow::sink_cold).
    pub estimates: Vec<Estimate>,
}

impl Flow {
    /// The bytes that it takes.
    pub fn size(&self) -> usize {
        self.origins.len() * (size_of::<Origin>() + 3 * size_of::<Blocks>()) + size_of_val(&*self.estimates)
    }

    /// The control flow of `func`; `cfg` has its reachable blocks.
    ///
    /// # Errors
    /// The compilation is to end.
    pub fn of(func: &Func<'_>, cfg: &Cfg, meter: &Meter<'_>) -> Result<Flow, Ended> {
        let mut flow = Flow::with_edges_split(func, cfg);
        meter.ask()?;
        // If possible, a block is followed by its last successor, which for `br_if` is the fall-through.
        let order = Order::of(flow.origins.len(), |block: u32| flow.succs[block as usize].iter().copied());
        flow.renumber(&order.blocks);
        meter.ask()?;
        flow.make_loops_contiguous();
        meter.ask()?;
        Ok(flow)
    }

    fn with_edges_split(func: &Func<'_>, cfg: &Cfg) -> Flow {
        let reachable = cfg.order();
        let mut incoming = vec![0u32; func.num_blocks()];
        for &block in reachable {
            func.block(block).succs.iter().for_each(|succ| incoming[succ.index()] += 1);
        }
        let mut flow = Flow::default();
        flow.origins.reserve(2 * reachable.len());
        flow.succs.reserve(2 * reachable.len());
        flow.targets.reserve(2 * reachable.len());
        let mut node = vec![u32::MAX; func.num_blocks()];
        for &block in reachable {
            node[block.index()] = flow.add(Origin::Block(block));
        }
        for &block in reachable {
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
                // The results of a call that ends its block are defined on its normal edge.
                let has_results = k + 1 == succs.len() && defines_results(func, block);
                let branches = succs.len() > 1 || func.exceptional_edges(block) > 0;
                if branches && incoming[succ.index()] > 1 || has_results {
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

    /// Gives block `order[i]` the number i, and computes `preds`.
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
        let loops = Loops::of(self.preds.len(), |block| self.preds[block as usize].iter().copied());
        if loops.headers().next().is_some() {
            let (order, ranges) = loops.make_contiguous();
            self.loops = ranges;
            self.renumber(&order);
        }
    }

    /// Given the estimates of all blocks, moves those to the end that are reached through cold blocks only. A definition still comes before
    /// its uses: a block that stays is reached by a path of blocks that are not cold, on which are all blocks that dominate it. So those
    /// stay too, and each part keeps its order. Loops lose the blocks that are moved, unless the header is one of them. Cost: linear in
    /// blocks and edges.
    pub fn sink_cold(&mut self, estimates: &[Estimate]) {
        let mut stays = vec![false; estimates.len()];
        let mut work = vec![0];
        stays[0] = true;
        while let Some(block) = work.pop() {
            for &succ in &self.succs[block as usize] {
                if !stays[succ as usize] && !estimates[succ as usize].cold {
                    stays[succ as usize] = true;
                    work.push(succ);
                }
            }
        }
        let part = |staying: bool| (0..).zip(&stays).filter(move |(_, stays)| **stays == staying).map(|(block, _)| block);
        let order: Vec<u32> = part(true).chain(part(false)).collect();
        self.estimates = order.iter().map(|&block| estimates[block as usize]).collect();
        if part(false).next().is_some() {
            self.loops = split_loops(&self.loops, &stays);
            self.renumber(&order);
        }
    }
}

/// The loops after the blocks that do not stay have been moved to the end.
fn split_loops(loops: &[Range<u32>], stays: &[bool]) -> Vec<Range<u32>> {
    // By block, the number of blocks before it that stay.
    let mut before = vec![0u32];
    before.extend(stays.iter().scan(0, |sum, &stays| {
        *sum += u32::from(stays);
        Some(*sum)
    }));
    let staying = before[stays.len()];
    let position = |block: u32, stays: bool| {
        let before = before[block as usize];
        if stays { before } else { staying + block - before }
    };
    let part = |staying: bool| {
        let of_part = loops.iter().filter(move |range| stays[range.start as usize] == staying);
        of_part.map(move |range| position(range.start, staying)..position(range.end, staying))
    };
    part(true).chain(part(false)).collect()
}

/// Whether `block` ends with a call that has results and whose exceptions have handlers.
fn defines_results(func: &Func<'_>, block: Block) -> bool {
    match func.block(block).insts[..] {
        [.., call, last] => func.op(last) == Op::Try && func.ty(call) != Type::Void,
        _ => false,
    }
}

/// For each edge from `block`, the first edge to the same successor with the same phi arguments. Tables have many such
/// edges.
fn twins(func: &Func<'_>, block: Block) -> SmallVec<[usize; 4]> {
    let succs = &func.block(block).succs;
    let mut twins: SmallVec<[usize; 4]> = (0..succs.len()).collect();
    let mut by_succ = twins.clone();
    by_succ.sort_by_key(|&k| succs[k]);
    for edges in by_succ.chunk_by(|&a, &b| succs[a] == succs[b]).filter(|edges| edges.len() > 1) {
        let succ = succs[edges[0]];
        let preds = func.block(succ).preds.iter().enumerate();
        let indices = preds.filter(|&(_, &pred)| pred == block).map(|(index, _)| index);
        // The first edge of each group, and its index in the arguments of the phis.
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
