//! Estimated frequencies of blocks, from loops and branch probabilities.

use super::cfg::Cfg;
use crate::graph::frequency::{Frequency, LOOP_TRIPS, MOST_ITERATIONS, Weighted};
use crate::graph::loops::{Loops, Nest};
use crate::ir::{Block, Func, Op};
use std::ops::Range;
use weir_contract::profile::Profile;

/// The estimated number of executions of each block per call of the function.
#[derive(Clone, Debug)]
pub struct Frequencies(Vec<f32>);

/// Frequencies and loops, by the place of a block in an order in which loops are contiguous.
struct Estimate {
    blocks: Vec<Block>,
    frequencies: Vec<Frequency>,
    loops: Vec<Range<u32>>,
    nest: Nest,
}

impl Estimate {
    fn of(func: &Func<'_>, cfg: &Cfg, most: f32) -> Estimate {
        let count = cfg.order().len();
        let (order, loops) = Loops::of(count, |position| cfg.preds(func, position)).make_contiguous();
        let blocks: Vec<Block> = order.iter().map(|&position| cfg.order()[position as usize]).collect();
        let block = |i: u32| blocks[i as usize];
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
        let frequencies = Weighted { blocks: count, loops: &loops, succs, probability, never }.frequencies_up_to(most);
        let nest = Nest::of(&loops, count);
        Estimate { blocks, frequencies, loops, nest }
    }
}

impl Frequencies {
    /// Estimates them as [`mir::frequency`](crate::mir::frequency) does, but for the labels of `br_table`, which are taken as the profile
    /// says. Cost: linear in blocks and edges, times a logarithm of the loop depth.
    pub fn of(func: &Func<'_>, cfg: &Cfg) -> Frequencies {
        let Estimate { blocks, frequencies: relative, nest, .. } = Estimate::of(func, cfg, MOST_ITERATIONS);
        let mut frequencies = vec![0.0; func.num_blocks()];
        let mut depths: Vec<i32> = Vec::with_capacity(nest.parent.len());
        for parent in &nest.parent {
            depths.push(parent.map_or(1, |parent| depths[parent as usize] + 1));
        }
        for ((block, Frequency { relative, .. }), innermost) in blocks.into_iter().zip(relative).zip(nest.innermost) {
            let depth = innermost.map_or(0, |index| depths[index as usize]);
            frequencies[block.index()] = relative * LOOP_TRIPS.powi(depth);
        }
        Frequencies(frequencies)
    }

    /// That of a block; 0 if it is unreachable.
    pub fn get(&self, block: Block) -> f32 {
        self.0[block.index()]
    }
}

/// Estimates the instructions of loops inside that an iteration of each loop with one of these headers executes, except loops with one of these
/// headers. They count as often as [`Weighted::frequencies`] has it. Cost: as for [`Frequencies::of`], and linear in instructions.
pub fn work_inside(func: &Func<'_>, cfg: &Cfg, headers: &[Block]) -> Vec<f32> {
    let Estimate { blocks, frequencies, loops, nest } = Estimate::of(func, cfg, f32::MAX);
    let mut place = vec![None; func.num_blocks()];
    headers.iter().enumerate().for_each(|(i, header)| place[header.index()] = Some(i));
    // By loop, the next of these headers around its blocks. Outer loops come first.
    let mut owners: Vec<Option<usize>> = Vec::with_capacity(loops.len());
    for (range, parent) in loops.iter().zip(&nest.parent) {
        let own = place[blocks[range.start as usize].index()];
        owners.push(own.or_else(|| parent.and_then(|parent| owners[parent as usize])));
    }
    // By header, its executions and those of the instructions inside, per call of the function.
    let mut executed = vec![(0.0, 0.0); headers.len()];
    for ((&block, frequency), innermost) in blocks.iter().zip(&frequencies).zip(&nest.innermost) {
        let Some((index, header)) = innermost.and_then(|index| Some((index, owners[index as usize]?))) else { continue };
        let executions = frequency.relative * frequency.around;
        if headers[header] == block {
            executed[header].0 = executions;
        } else if blocks[loops[index as usize].start as usize] != headers[header] {
            executed[header].1 += executions * func.block(block).insts.len() as f32;
        }
    }
    executed.into_iter().map(|(header, all)| if header > 0.0 { all / header } else { 0.0 }).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse;
    use bumpalo::Bump;

    /// Loops at b1, b2 and b3, in each other, whose back edges have the probabilities 1/2, 3/4 and 7/8, and the work inside for these headers.
    fn inside(headers: &[u32]) -> Vec<f32> {
        let arena = Bump::new();
        let func = parse(
            &arena,
            "func 0 (i32)\nb0:\n v0: i32 = param 0\n jump b1\nb1:\n poll\n jump b2\nb2:\n poll\n jump b3\nb3:\n poll
 branch p224 v0, b3, b4\nb4:\n branch p192 v0, b2, b5\nb5:\n branch p128 v0, b1, b6\nb6:\n return\n",
        )
        .unwrap();
        let headers: Vec<Block> = headers.iter().map(|&block| Block(block)).collect();
        work_inside(&func, &Cfg::compute(&func), &headers)
    }

    #[test]
    fn the_work_inside_is_that_of_loops_with_other_headers() {
        assert_eq!(inside(&[3]), [0.0]);
        assert_eq!(inside(&[2]), [8.0 * 2.0]);
        assert_eq!(inside(&[1]), [4.0 * (3.0 + 8.0 * 2.0)]);
        assert_eq!(inside(&[1, 3]), [4.0 * 3.0, 0.0]);
        assert_eq!(inside(&[1, 2, 3]), [0.0, 0.0, 0.0]);
        // No loop begins there.
        assert_eq!(inside(&[4]), [0.0]);
    }
}
