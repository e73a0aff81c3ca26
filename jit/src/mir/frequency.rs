//! Block frequencies, estimated from loops and branch probabilities, and which blocks are cold.
//!
//! A loop is assumed to iterate `LOOP_TRIPS` times, and a cold block to be executed `COLD_FACTOR` times less often than
//! its surroundings. A block is cold if it leads only to traps or throws, if it is reached only by exceptions, or if branch probabilities show that it is rare. A
//! profile only decides which blocks are cold: frequencies in proportion to the profile made as many programs slower as
//! faster (`fib` by a third, `chacha20` by 8 %), and so did observed trip counts. Cost: linear in blocks and edges,
//! times a logarithm of the loop depth.

use super::code::{CodeBlock, MachineCode};
use crate::graph::frequency;
use std::ops::Range;

/// The assumed number of iterations of a loop.
const LOOP_TRIPS: f32 = 8.0;
/// Deeper loops are assumed to be executed as often as loops of this depth.
const MAX_DEPTH: i32 = 5;
/// The factor by which a cold block is rarer than its surroundings.
const COLD_FACTOR: f32 = 256.0;
/// A block with a lower frequency than this, relative to its surroundings, is cold.
const COLD_SHARE: f32 = 1.0 / 64.0;

/// Sets [`CodeBlock::frequency`] and [`CodeBlock::cold`]. `rare` says whether a block ends with a trap or a throw, or begins with the
/// landing of an exception.
pub fn estimate<I>(code: &mut MachineCode<I>, rare: impl Fn(usize) -> bool) {
    find_traps(&mut code.blocks, rare);
    let mut depth = vec![0i32; code.blocks.len() + 1];
    for range in &code.loops {
        depth[range.start as usize] += 1;
        depth[range.end as usize] -= 1;
    }
    let mut current = 0;
    let relative = relative(&code.blocks, &code.loops);
    for ((block, relative), change) in code.blocks.iter_mut().zip(relative).zip(&depth) {
        current += change;
        block.cold |= relative < COLD_SHARE;
        let often = LOOP_TRIPS.powi(current.min(MAX_DEPTH));
        block.frequency = if block.cold { often / COLD_FACTOR } else { often };
    }
}

/// Marks blocks as cold that lead only to traps. For a loop that may run forever this is not known.
fn find_traps(blocks: &mut [CodeBlock], traps: impl Fn(usize) -> bool) {
    for block in (1..blocks.len()).rev() {
        let succs = &blocks[block].succs;
        let leads_to_trap = !succs.is_empty() && succs.iter().all(|&succ| blocks[succ as usize].cold);
        blocks[block].cold = leads_to_trap || traps(block);
    }
}

/// The frequency of each block [relative to its surroundings](frequency::relative).
fn relative(blocks: &[CodeBlock], loops: &[Range<u32>]) -> Vec<f32> {
    let probability = |i: u32, k: usize| {
        let first = blocks[i as usize].probability.filter(|_| blocks[i as usize].succs.len() == 2)?;
        Some(if k == 0 { first } else { first.complement() }.as_f32())
    };
    frequency::relative(blocks.len(), loops, |i| &blocks[i as usize].succs[..], probability, |i| blocks[i as usize].cold)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Probability;

    fn one(only: Range<u32>) -> Vec<Range<u32>> {
        std::iter::once(only).collect()
    }

    /// A block with this probability, in 256ths.
    fn block(succs: &[u32], probability: Option<u8>) -> CodeBlock {
        let probability = probability.and_then(Probability::new);
        CodeBlock { succs: succs.into(), probability, ..CodeBlock::default() }
    }

    /// The relative frequencies of blocks with these successors and probabilities, some of which are in a loop.
    fn relative_of(blocks: &[(&[u32], Option<u8>)], around: Range<u32>) -> Vec<f32> {
        let blocks: Vec<CodeBlock> = blocks.iter().map(|&(succs, probability)| block(succs, probability)).collect();
        relative(&blocks, &one(around))
    }

    #[test]
    fn frequencies_follow_the_probabilities_and_start_anew_after_a_loop() {
        let body: &[(&[u32], _)] = &[
            (&[1, 6], Some(128)),
            (&[2, 3], Some(192)),
            (&[4], None),
            (&[4], None),
            (&[1, 5], Some(224)),
            (&[6], None),
            (&[], None),
        ];
        assert_eq!(relative_of(body, 1..5), [1.0, 1.0, 0.75, 0.25, 1.0, 0.5, 1.0]);
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
        estimate(&mut code, |_| false);
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
        estimate(&mut code, |block| block == 5);
        let cold: Vec<usize> = (0..8).filter(|&block| code.blocks[block].cold).collect();
        assert_eq!(cold, [2, 3, 4, 5]);
        assert_eq!(code.blocks[2].frequency, 1.0 / COLD_FACTOR);
    }

    #[test]
    fn without_probabilities_every_edge_is_always_taken() {
        let body: &[(&[u32], _)] = &[(&[1, 2], None), (&[3], None), (&[3], None), (&[1, 4], None), (&[], None)];
        assert_eq!(relative_of(body, 1..4), [1.0; 5]);
    }
}
