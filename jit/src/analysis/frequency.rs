//! Estimated frequencies of blocks, from loops and branch probabilities.

use super::cfg::Cfg;
use crate::graph::frequency;
use crate::graph::loops::{Loops, Nest};
use crate::ir::{Block, Func, Op};
use weir_contract::profile::Profile;

/// The assumed number of iterations of a loop.
const LOOP_TRIPS: f32 = 8.0;

/// The estimated number of executions of each block per call of the function.
#[derive(Clone, Debug)]
pub struct Frequencies(Vec<f32>);

impl Frequencies {
    /// Estimates them as [`mir::frequency`](crate::mir::frequency) does, but for the labels of `br_table`, which are taken as the profile
    /// says. Cost: linear in blocks and edges, times a logarithm of the loop depth.
    pub fn of(func: &Func<'_>, cfg: &Cfg, profile: Option<&Profile>) -> Frequencies {
        let count = cfg.order().len();
        let (order, loops) = Loops::of(count, |position| cfg.preds(func, position)).make_contiguous();
        let block = |i: u32| cfg.order()[order[i as usize] as usize];
        let mut number = vec![0; func.num_blocks()];
        (0..count as u32).for_each(|i| number[block(i).index()] = i);
        let succs: Vec<Vec<u32>> =
            (0..count as u32).map(|i| func.block(block(i)).succs.iter().map(|succ| number[succ.index()]).collect()).collect();
        // By block that ends with a `br_table`, the number of its executions.
        let mut sums = vec![0; count];
        let mut never = vec![false; count];
        for i in (0..count).rev() {
            let last = func.terminator(block(i as u32)).map(|last| func.op(last));
            if let Some((last, profile)) =
                func.terminator(block(i as u32)).zip(profile).filter(|&(last, _)| func.op(last) == Op::BrTable)
            {
                sums[i] = sum(profile.branch(func.copies.own(func.inst(last).pc)));
            }
            let leads_there = !succs[i].is_empty() && succs[i].iter().all(|&succ| never[succ as usize]);
            never[i] =
                leads_there || matches!(last, Some(Op::Trap | Op::Throw | Op::ThrowRef)) || func.catch(block(i as u32)).is_some();
        }
        let probability = |i: u32, k: usize| {
            let last = func.inst(func.terminator(block(i))?);
            if last.op == Op::BrTable {
                let counts = profile?.branch(func.copies.own(last.pc));
                return (counts.len() == succs[i as usize].len()).then(|| share(counts[k], sums[i as usize]))?;
            }
            last.probability.map(|first| if k == 0 { first } else { first.complement() }.as_f32())
        };
        let relative = frequency::relative(count, &loops, |i| &succs[i as usize][..], probability, |i| never[i as usize]);
        let nest = Nest::of(&loops, count);
        let mut frequencies = vec![0.0; func.num_blocks()];
        for (i, relative) in relative.into_iter().enumerate() {
            frequencies[block(i as u32).index()] = relative * LOOP_TRIPS.powi(nest.around(i).count() as i32);
        }
        Frequencies(frequencies)
    }

    /// That of a block; 0 if it is unreachable.
    pub fn get(&self, block: Block) -> f32 {
        self.0[block.index()]
    }
}

/// The sum of the counts of a branch, which may have many.
fn sum(counts: &[u32]) -> u64 {
    counts.iter().copied().map(u64::from).sum()
}

/// The share of a count in a sum, unless that is too small.
fn share(count: u32, sum: u64) -> Option<f32> {
    (sum >= Profile::SEEN).then(|| count as f32 / sum as f32)
}
