//! Estimated frequencies of blocks, from loops and branch probabilities.

use super::cfg::Cfg;
use crate::graph::frequency::{Frequency, LOOP_TRIPS, Weighted};
use crate::graph::loops::{Loops, Nest};
use crate::ir::{Block, Func, Op};
use weir_contract::profile::Profile;

/// The estimated number of executions of each block per call of the function.
#[derive(Clone, Debug)]
pub struct Frequencies(Vec<f32>);

impl Frequencies {
    /// Estimates them as [`mir::frequency`](crate::mir::frequency) does, but for the labels of `br_table`, which are taken as the profile
    /// says. Cost: linear in blocks and edges, times a logarithm of the loop depth.
    pub fn of(func: &Func<'_>, cfg: &Cfg) -> Frequencies {
        let count = cfg.order().len();
        let (order, loops) = Loops::of(count, |position| cfg.preds(func, position)).make_contiguous();
        let block = |i: u32| cfg.order()[order[i as usize] as usize];
        let mut number = vec![0; func.num_blocks()];
        (0..count as u32).for_each(|i| number[block(i).index()] = i);
        let succs: Vec<Vec<u32>> =
            (0..count as u32).map(|i| func.block(block(i)).succs.iter().map(|succ| number[succ.index()]).collect()).collect();
        let mut tables = vec![None; count];
        let mut never = vec![false; count];
        for i in (0..count).rev() {
            let last = func.terminator(block(i as u32)).map(|last| func.op(last));
            tables[i] = TableCounts::of(func, block(i as u32));
            let leads_there = !succs[i].is_empty() && succs[i].iter().all(|&succ| never[succ as usize]);
            never[i] =
                leads_there || matches!(last, Some(Op::Trap | Op::Throw | Op::ThrowRef)) || func.catch(block(i as u32)).is_some();
        }
        let probability = |i: u32, k: usize| {
            let last = func.inst(func.terminator(block(i))?);
            if last.op == Op::BrTable {
                return Some(tables[i as usize].as_ref()?.share(k));
            }
            last.probability.map(|first| if k == 0 { first } else { first.complement() }.as_f32())
        };
        let (succs, never) = (|i: u32| &succs[i as usize][..], |i: u32| never[i as usize]);
        let relative = Weighted { blocks: count, loops: &loops, succs, probability, never }.frequencies();
        let nest = Nest::of(&loops, count);
        let mut frequencies = vec![0.0; func.num_blocks()];
        for (i, Frequency { relative, .. }) in relative.into_iter().enumerate() {
            frequencies[block(i as u32).index()] = relative * LOOP_TRIPS.powi(nest.around(i).count() as i32);
        }
        Frequencies(frequencies)
    }

    /// That of a block; 0 if it is unreachable.
    pub fn get(&self, block: Block) -> f32 {
        self.0[block.index()]
    }
}

/// How often the labels of a `br_table` were taken.
#[derive(Clone, Debug)]
pub struct TableCounts<'a> {
    counts: &'a [u32],
    sum: u64,
}

impl<'a> TableCounts<'a> {
    /// Those of the `br_table` at the end of a block, if it was executed often enough.
    pub fn of(func: &Func<'a>, block: Block) -> Option<TableCounts<'a>> {
        let counts = func.table_counts(block)?;
        let sum = counts.iter().copied().map(u64::from).sum();
        (sum >= Profile::SEEN).then_some(TableCounts { counts, sum })
    }

    /// The share of the label with this index.
    pub fn share(&self, label: usize) -> f32 {
        self.counts[label] as f32 / self.sum as f32
    }
}
