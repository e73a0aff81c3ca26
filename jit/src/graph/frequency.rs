//! Estimated frequencies of blocks.

use std::ops::Range;

/// The frequency of each block relative to its surroundings, which are an iteration of the innermost loop, or a call of
/// the function. A loop that is rarely entered is therefore not cold, because it may iterate often. The exits of a loop
/// are taken, in sum, as often as the loop is entered. An edge with unknown probability is taken whenever its block is
/// executed.
///
/// The blocks are in an order in which `loops` are ranges, outer loops first; `succs` gives a block's successors,
/// `probability` that of one of them by its index, if it is known, and `never` says which blocks are not executed. Cost: linear in blocks
/// and edges, times a logarithm of the loop depth.
pub fn relative<'g>(
    blocks: usize,
    loops: &[Range<u32>],
    succs: impl Fn(u32) -> &'g [u32],
    probability: impl Fn(u32, usize) -> Option<f32>,
    never: impl Fn(u32) -> bool,
) -> Vec<f32> {
    // Sums over the forward edges. A block without forward edges is assumed to be executed always.
    let mut sums: Vec<Option<f32>> = vec![None; blocks];
    let mut frequencies = Vec::with_capacity(blocks);
    let mut loops = loops.iter().peekable();
    // The loops around the block, and the frequency with which each is entered.
    let mut open: Vec<(&Range<u32>, f32)> = Vec::new();
    for i in 0..blocks as u32 {
        while open.pop_if(|last| last.0.end <= i).is_some() {}
        let mut frequency = sums[i as usize].unwrap_or(1.0).min(1.0);
        if never(i) {
            frequency = 0.0;
        }
        if let Some(head) = loops.next_if(|next| next.start == i) {
            open.push((head, frequency));
            frequency = 1.0;
        }
        frequencies.push(frequency);
        for (k, &succ) in succs(i).iter().enumerate().filter(|(_, succ)| **succ > i) {
            // Outer loops begin earlier and end later.
            let outermost_left = open.partition_point(|around| around.0.end > succ);
            let passed = match open.get(outermost_left) {
                Some(&(_, entered)) => entered,
                None => frequency * probability(i, k).unwrap_or(1.0),
            };
            *sums[succ as usize].get_or_insert(0.0) += passed;
        }
    }
    frequencies
}
