//! Block frequencies, estimated from loops and branch probabilities, and which blocks are cold.
//!
//! A block is cold if it leads only to traps or throws, if it is reached only by exceptions, or if branch probabilities show that it is
//! rare.
//!
//! Each block has two numbers. Its frequency, for layout, assumes that a loop iterates `LOOP_TRIPS` times and that a cold block is executed
//! `COLD_FACTOR` times less often than its surroundings: frequencies in proportion to the profile made as many programs slower as faster
//! (`fib` by a third, `chacha20` by 8 %), and so did observed trip counts. Its weight, for the allocator, follows the probabilities and the
//! counts of `br_table`: an arm is rarer than the dispatch. Cost: linear in blocks and edges, times a logarithm of the loop depth.

use crate::graph::frequency::{Frequency, LOOP_TRIPS, Weighted};
use std::collections::BTreeMap;
use std::ops::Range;

/// Deeper loops are assumed to be executed as often as loops of this depth.
const MAX_DEPTH: i32 = 5;
/// The factor by which a cold block is rarer than its surroundings.
const COLD_FACTOR: f32 = 256.0;
/// A block with a lower frequency than this, relative to its surroundings, is cold.
const COLD_SHARE: f32 = 1.0 / 64.0;
/// A block weighs at least this share of its frequency, because a profile may be of another phase of the program.
const LEAST_WEIGHT: f32 = 1.0 / 50.0;
/// Weights are whole multiples of `1 / UNITS`, so that sums of them are exact and equal costs are equal.
const UNITS: f32 = 65536.0;

/// The estimates of a block.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// See [`CodeBlock::cold`](super::code::CodeBlock::cold).
    pub cold: bool,
    /// See [`CodeBlock::frequency`](super::code::CodeBlock::frequency).
    pub frequency: f32,
    /// See [`CodeBlock::weight`](super::code::CodeBlock::weight).
    pub weight: f32,
}

/// The estimates of this many blocks, of which `loops` are ranges, outer loops first. `succs` gives a block's successors; `branch` the
/// probability of one of them by its index, if the block ends with a branch and the probability is known. `tables` has the probabilities of all
/// successors of blocks that end with a `br_table`. `rare` says whether a block ends with a trap or a throw, or begins with the landing of an exception.
pub fn estimate<'g>(
    blocks: usize,
    loops: &[Range<u32>],
    succs: impl Fn(u32) -> &'g [u32],
    branch: impl Fn(u32, usize) -> Option<f32>,
    tables: &BTreeMap<u32, Vec<f32>>,
    rare: impl Fn(u32) -> bool,
) -> Vec<Estimate> {
    let (succs, branch) = (&succs, &branch);
    let leads = leading_to(blocks, succs, rare);
    let never = |i: u32| leads[i as usize];
    let by_branches = Weighted { blocks, loops, succs, probability: branch, never }.frequencies();
    let probability = |i: u32, k: usize| tables.get(&i).map_or_else(|| branch(i, k), |shares| Some(shares[k]));
    let with_tables = || Weighted { blocks, loops, succs, probability, never }.frequencies();
    let frequencies = if tables.is_empty() { by_branches.clone() } else { with_tables() };
    let mut depth = vec![0i32; blocks + 1];
    for range in loops {
        depth[range.start as usize] += 1;
        depth[range.end as usize] -= 1;
    }
    let mut current = 0;
    let estimate = |i: usize| {
        current += depth[i];
        let often = LOOP_TRIPS.powi(current.min(MAX_DEPTH));
        let Frequency { relative, around } = frequencies[i];
        let least = often * LEAST_WEIGHT;
        let whole = |weight: f32| (weight * UNITS).round() / UNITS;
        match leads[i] || by_branches[i].relative < COLD_SHARE {
            true => Estimate { cold: true, frequency: often / COLD_FACTOR, weight: whole(around.max(least) / COLD_FACTOR) },
            false => Estimate { cold: false, frequency: often, weight: whole((relative * around).max(least)) },
        }
    };
    (0..blocks).map(estimate).collect()
}

/// Whether each block leads only to rare ones. For a loop that may run forever this is not known.
fn leading_to<'g>(blocks: usize, succs: impl Fn(u32) -> &'g [u32], rare: impl Fn(u32) -> bool) -> Vec<bool> {
    let mut leads = vec![false; blocks];
    for block in (1..blocks as u32).rev() {
        let succs = succs(block);
        leads[block as usize] = !succs.is_empty() && succs.iter().all(|&succ| leads[succ as usize]) || rare(block);
    }
    leads
}

/// Sets the estimates of code without tables.
#[cfg(test)]
pub fn estimate_code<I>(code: &mut super::MachineCode<I>, rare: impl Fn(u32) -> bool) {
    let blocks = &code.blocks;
    let branch = |block: u32, k: usize| {
        let first = blocks[block as usize].probability.filter(|_| blocks[block as usize].succs.len() == 2)?;
        Some(if k == 0 { first } else { first.complement() }.as_f32())
    };
    let succs = |block: u32| &blocks[block as usize].succs[..];
    let estimates = estimate(blocks.len(), &code.loops, succs, branch, &BTreeMap::new(), rare);
    for (block, Estimate { cold, frequency, weight }) in code.blocks.iter_mut().zip(estimates) {
        (block.cold, block.frequency, block.weight) = (cold, frequency, weight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Probability;
    use crate::mir::{CodeBlock, MachineCode};

    fn one(only: Range<u32>) -> Vec<Range<u32>> {
        std::iter::once(only).collect()
    }

    /// A block with this probability, in 256ths.
    fn block(succs: &[u32], probability: Option<u8>) -> CodeBlock {
        let probability = probability.and_then(Probability::new);
        CodeBlock { succs: succs.into(), probability, ..CodeBlock::default() }
    }

    #[test]
    fn rarely_executed_blocks_are_cold() {
        // A loop whose header leads to a rare block, and one block after another to the other blocks.
        let blocks = vec![
            block(&[1], None),
            block(&[2, 3], Some(2)),
            block(&[3], None),
            block(&[4, 5], Some(25)),
            block(&[5], None),
            block(&[1, 6], Some(230)),
            block(&[], None),
        ];
        let mut code = MachineCode::<()> { blocks, loops: one(1..6), ..MachineCode::default() };
        estimate_code(&mut code, |_| false);
        let frequencies: Vec<f32> = code.blocks.iter().map(|block| block.frequency).collect();
        assert_eq!(frequencies, [1.0, 8.0, 8.0 / COLD_FACTOR, 8.0, 8.0, 8.0, 1.0]);
        assert_eq!(code.blocks.iter().map(|block| block.cold).collect::<Vec<_>>(), [0, 0, 1, 0, 0, 0, 0].map(|cold| cold == 1));
    }

    #[test]
    fn blocks_that_lead_only_to_traps_are_cold() {
        // One successor of block 1 traps, and both successors of block 2; block 6 is an endless loop.
        let succs: [&[u32]; 8] = [&[1], &[2, 6], &[3, 4], &[5], &[5], &[], &[7], &[6]];
        let blocks = succs.map(|succs| block(succs, None)).into();
        let mut code = MachineCode::<()> { blocks, loops: one(6..8), ..MachineCode::default() };
        estimate_code(&mut code, |block| block == 5);
        let cold: Vec<usize> = (0..8).filter(|&block| code.blocks[block].cold).collect();
        assert_eq!(cold, [2, 3, 4, 5]);
        assert_eq!(code.blocks[2].frequency, 1.0 / COLD_FACTOR);
    }

    #[test]
    fn arms_of_a_table_weigh_less_than_the_dispatch() {
        // Block 1 dispatches to 2 to 5, of which 5 is the exit; 3 is an inner loop.
        let succs: [&[u32]; 6] = [&[1], &[2, 3, 4, 5], &[1], &[1, 3], &[1], &[]];
        let loops = [1..5, 3..4];
        let tables = BTreeMap::from([(1, vec![0.5, 0.25, 0.125, 0.125])]);
        let estimates = estimate(6, &loops, |i| succs[i as usize], |_, _| None, &tables, |_| false);
        assert!(estimates.iter().all(|estimate| !estimate.cold), "{estimates:?}");
        assert_eq!(estimates.iter().map(|estimate| estimate.frequency).collect::<Vec<_>>(), [1.0, 8.0, 8.0, 64.0, 8.0, 1.0]);
        // The outer loop repeats in 7 of 8 rounds. The inner one is entered in each fourth, and its trips are not known.
        assert_eq!(estimates.iter().map(|estimate| estimate.weight).collect::<Vec<_>>(), [1.0, 8.0, 4.0, 16.0, 1.0, 1.0]);
    }
}
