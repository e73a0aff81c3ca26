//! Estimated frequencies of blocks.

use std::ops::Range;

/// The assumed number of iterations of a loop.
pub const LOOP_TRIPS: f32 = 8.0;
/// A loop has at most this many iterations, whatever the probability of its back edges.
const MOST_TRIPS: f32 = 64.0;
/// Nested loops have at most this many iterations together.
pub const MOST_ITERATIONS: f32 = 32768.0;
/// A loop whose back edges are taken more often than this, per iteration, iterates [`LOOP_TRIPS`] times: some probabilities are unknown, and
/// the known ones are rounded.
const UNKNOWN: f32 = 1.0 - 1.0 / 512.0;

/// The frequency of a block.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Frequency {
    /// Relative to its surroundings, which are an iteration of the innermost loop, or a call of the function.
    pub relative: f32,
    /// The number of executions of its surroundings per call of the function.
    pub around: f32,
}

/// A graph whose edges may have known probabilities. The blocks are in an order in which `loops` are ranges, outer loops first.
pub struct Weighted<'l, S, P, N> {
    /// The number of blocks.
    pub blocks: usize,
    /// The loops, each starting with its header.
    pub loops: &'l [Range<u32>],
    /// A block's successors.
    pub succs: S,
    /// The probability of a block's edge to its successor with this index, if it is known. An edge with unknown probability is taken
    /// whenever its block is executed.
    pub probability: P,
    /// Whether a block is never executed.
    pub never: N,
}

/// The sums over the edges of a graph.
struct Sums {
    /// The frequency of each block relative to its surroundings. That of a loop's header is 1.
    relative: Vec<f32>,
    /// The number of entries of each loop per iteration of the loop around it, or per call of the function.
    entered: Vec<f32>,
    /// The number of back edges of each loop that are taken per iteration.
    repeated: Vec<f32>,
    /// The innermost loop around each block.
    innermost: Vec<Option<usize>>,
    /// The innermost loop around each loop.
    parents: Vec<Option<usize>>,
}

impl<'g, S, P, N> Weighted<'_, S, P, N>
where
    S: Fn(u32) -> &'g [u32],
    P: Fn(u32, usize) -> Option<f32>,
    N: Fn(u32) -> bool,
{
    /// The frequency of each block. A loop that is rarely entered may iterate often, so its header has the relative frequency 1. The exits of
    /// a loop are taken, in sum, as often as the loop is entered. The iterations of a loop follow from the probability of its back edges (Y. Wu,
    /// J. R. Larus, "Static Branch Frequency and Program Profile Analysis", MICRO 27, 1994). Cost: linear in blocks and edges, times a
    /// logarithm of the loop depth.
    pub fn frequencies(&self) -> Vec<Frequency> {
        self.frequencies_up_to(MOST_ITERATIONS)
    }

    /// [`frequencies`](Self::frequencies), with another limit of the iterations of nested loops together.
    pub fn frequencies_up_to(&self, most: f32) -> Vec<Frequency> {
        let Sums { relative, entered, repeated, innermost, parents } = self.sums();
        let mut iterations: Vec<f32> = Vec::with_capacity(entered.len());
        for ((&entered, &repeated), &parent) in entered.iter().zip(&repeated).zip(&parents) {
            let trips = if repeated < UNKNOWN { (1.0 / (1.0 - repeated)).min(MOST_TRIPS) } else { LOOP_TRIPS };
            let around = parent.map_or(1.0, |parent| iterations[parent]);
            iterations.push((around * entered * trips).min(most));
        }
        let around = innermost.into_iter().map(|innermost| innermost.map_or(1.0, |index| iterations[index]));
        relative.into_iter().zip(around).map(|(relative, around)| Frequency { relative, around }).collect()
    }

    fn sums(&self) -> Sums {
        let loops = self.loops;
        // Sums over the forward edges. A block without forward edges is assumed to be executed always.
        let mut sums: Vec<Option<f32>> = vec![None; self.blocks];
        let mut found = Sums {
            relative: Vec::with_capacity(self.blocks),
            entered: Vec::with_capacity(loops.len()),
            repeated: vec![0.0; loops.len()],
            innermost: Vec::with_capacity(self.blocks),
            parents: Vec::with_capacity(loops.len()),
        };
        // The indices of the loops around the block.
        let mut open: Vec<usize> = Vec::new();
        for i in 0..self.blocks as u32 {
            while open.pop_if(|last| loops[*last].end <= i).is_some() {}
            let mut frequency = sums[i as usize].unwrap_or(1.0).min(1.0);
            if (self.never)(i) {
                frequency = 0.0;
            }
            let next = found.entered.len();
            if loops.get(next).is_some_and(|next| next.start == i) {
                found.entered.push(frequency);
                found.parents.push(open.last().copied());
                open.push(next);
                frequency = 1.0;
            }
            found.relative.push(frequency);
            found.innermost.push(open.last().copied());
            for (k, &succ) in (self.succs)(i).iter().enumerate() {
                // Outer loops begin earlier and end later. A back edge does not leave the loop of its header.
                let is_inside = |around: &usize| {
                    let Range { start, end } = loops[*around];
                    if succ > i { end > succ } else { start <= succ }
                };
                let left = open.partition_point(is_inside);
                let passed = match open.get(left) {
                    Some(&outermost_left) => found.entered[outermost_left],
                    None => frequency * (self.probability)(i, k).unwrap_or(1.0),
                };
                if succ > i {
                    *sums[succ as usize].get_or_insert(0.0) += passed;
                } else if let Some(&around) = left.checked_sub(1).and_then(|index| open.get(index)) {
                    found.repeated[around] += passed;
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frequencies per surroundings, and per call, of blocks with these successors and probabilities of the first of two, in 256ths.
    fn of(blocks: &[(&[u32], Option<u8>)], loops: &[Range<u32>]) -> (Vec<f32>, Vec<f32>) {
        let succs = |i: u32| blocks[i as usize].0;
        let probability = |i: u32, k: usize| {
            let first = f32::from(blocks[i as usize].1?) / 256.0;
            Some(if k == 0 { first } else { 1.0 - first })
        };
        let graph = Weighted { blocks: blocks.len(), loops, succs, probability, never: |_| false };
        let both = |frequency: Frequency| (frequency.relative, frequency.relative * frequency.around);
        graph.frequencies().into_iter().map(both).unzip()
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
        let loops = [1..5; 1];
        let (relative, expected) = of(body, &loops);
        assert_eq!(relative, [1.0, 1.0, 0.75, 0.25, 1.0, 0.5, 1.0]);
        // It is entered in half of the calls, and repeats seven of eight times.
        assert_eq!(expected, [1.0, 4.0, 3.0, 1.0, 4.0, 0.5, 1.0]);
    }

    #[test]
    fn without_probabilities_every_edge_is_always_taken() {
        let body: &[(&[u32], _)] = &[(&[1, 2], None), (&[3], None), (&[3], None), (&[1, 4], None), (&[], None)];
        let loops = [1..4; 1];
        let (relative, expected) = of(body, &loops);
        assert_eq!(relative, [1.0; 5]);
        assert_eq!(expected, [1.0, 8.0, 8.0, 8.0, 1.0]);
    }

    #[test]
    fn inner_loops_repeat_within_outer_ones() {
        // The loop of 2 and 3 is in that of 1 to 4. Block 3 continues with 2, or leaves the inner loop for the outer one's header or for 4.
        let body: &[(&[u32], _)] =
            &[(&[1], None), (&[2, 4], Some(128)), (&[3], None), (&[2, 1], Some(192)), (&[1, 5], Some(64)), (&[], None)];
        let loops = [1..5, 2..4];
        let (relative, expected) = of(body, &loops);
        assert_eq!(relative, [1.0, 1.0, 1.0, 1.0, 0.5, 1.0]);
        // Back edges of the outer loop: half of the rounds through the inner loop, an eighth from block 4.
        let outer = 1.0 / (1.0 - 0.625);
        assert_eq!(expected, [1.0, outer, 2.0 * outer, 2.0 * outer, 0.5 * outer, 1.0]);
    }
    #[test]
    fn loops_of_any_depth_have_finite_frequencies() {
        // Block i is the header of a loop to 2n - i, and the exit is last.
        const N: u32 = 60;
        let succs: Vec<Vec<u32>> = (0..=2 * N)
            .map(|i| match i {
                0..N => vec![i + 1],
                _ if i < 2 * N => vec![2 * N - i, i + 1],
                _ => vec![],
            })
            .collect();
        let loops: Vec<Range<u32>> = (1..N).map(|i| i..2 * N - i + 1).collect();
        for probability in [None, Some(255)] {
            let blocks: Vec<(&[u32], _)> = succs.iter().map(|succs| (&succs[..], probability)).collect();
            let (_, expected) = of(&blocks, &loops);
            assert!(expected.iter().all(|&expected| expected > 0.0 && expected <= MOST_ITERATIONS), "{expected:?}");
            assert_eq!((expected[0], expected[N as usize - 1]), (1.0, MOST_ITERATIONS));
        }
    }

    #[test]
    fn shares_that_add_up_to_one_but_for_rounding_say_nothing_of_the_trips() {
        for arms in 3..40u32 {
            let succs: Vec<Vec<u32>> = (0..arms + 2)
                .map(|i| match i {
                    0 => vec![1],
                    1 => (2..arms + 2).collect(),
                    _ => vec![1],
                })
                .collect();
            let probability = |i: u32, _: usize| (i == 1).then_some(1.0 / arms as f32);
            let (succs, loops) = (|i: u32| &succs[i as usize][..], [1..arms + 2; 1]);
            let graph = Weighted { blocks: arms as usize + 2, loops: &loops, succs, probability, never: |_| false };
            assert_eq!(graph.frequencies()[1].around, LOOP_TRIPS, "{arms} arms");
        }
    }
}
