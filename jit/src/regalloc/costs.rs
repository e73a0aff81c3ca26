//! The cost of copying a value at a point, and the cheapest point in a range.
//!
//! A value can change its place in a gap or between blocks. Between two blocks, the copy is made on each edge that
//! crosses the boundary between the code before it and the code after it. A boundary therefore costs as much as the
//! edges that cross it, wherever they lead. A back edge to the head of a loop does not cross the boundary before the
//! loop, which is as cheap as the code around the loop. An edge from or to a rare block, which comes last wherever it belongs, counts
//! among rare blocks only: otherwise each block after a loop would look as frequent as that loop's rare blocks.
//! (Optimal split positions: C. Wimmer, H. Mössenböck, "Optimized Interval Splitting in a Linear Scan Register
//! Allocator", VEE 2005, where loop depth is the measure.)

use super::client::Client;
use super::point::{Point, Range};
use crate::graph::loops::Nest;

/// Block frequencies and the costs that follow from them.
#[derive(Debug)]
pub struct Costs {
    /// The frequency of each block.
    pub frequency: Vec<f32>,
    /// The first gap of each block, and the end of the code.
    starts: Vec<Point>,
    /// The block of each instruction.
    block_of: Vec<u32>,
    /// `minima[k * blocks + b]`: the last of the cheapest boundaries before the blocks `b..b + 2^k`.
    minima: Vec<u32>,
    /// The cost of the boundary before each block.
    boundary: Vec<f32>,
    /// Loops as ranges of points.
    loops: Vec<Range>,
    nest: Nest,
}

impl Costs {
    /// The costs for `client`'s code.
    pub fn of(client: &impl Client) -> Costs {
        let blocks = client.num_blocks();
        let frequency: Vec<f32> = (0..blocks).map(|block| client.frequency(block)).collect();
        let mut starts: Vec<Point> = (0..blocks).map(|block| Point::gap(client.insts(block).start)).collect();
        starts.push(Point::gap(client.num_insts() as u32));
        let mut block_of = vec![0; client.num_insts()];
        (0..blocks).for_each(|block| {
            let insts = client.insts(block);
            block_of[insts.start as usize..insts.end as usize].fill(block as u32);
        });
        let boundary = crossings(client, &frequency);
        let points =
            |range: &std::ops::Range<u32>| Range { start: starts[range.start as usize], end: starts[range.end as usize] };
        let loops = client.loops().iter().map(points).collect();
        let nest = Nest::of(client.loops(), blocks);
        Costs { minima: last_minima(&boundary), frequency, starts, block_of, boundary, loops, nest }
    }

    /// The block that contains `point`.
    #[inline]
    pub fn block(&self, point: Point) -> usize {
        self.block_of[point.inst() as usize] as usize
    }

    /// The frequency of the instruction at `point`.
    #[inline]
    pub fn at(&self, point: Point) -> f32 {
        self.frequency[self.block(point)]
    }

    /// The first gap of a block, or the end of the code.
    #[inline]
    pub fn start(&self, block: usize) -> Point {
        self.starts[block]
    }

    /// Whether a gap is the first of its block.
    pub fn is_boundary(&self, gap: Point) -> bool {
        self.starts[self.block(gap)] == gap
    }

    /// The loops that contain `point`, from the innermost outwards.
    pub fn loops_around(&self, point: Point) -> impl Iterator<Item = Range> {
        self.nest.around(self.block(point)).map(|index| self.loops[index])
    }

    /// The cost of an edge.
    pub fn edge(&self, from: usize, to: usize) -> f32 {
        self.frequency[from].min(self.frequency[to])
    }

    /// The cost of a copy in a gap.
    #[inline]
    pub fn copy(&self, gap: Point) -> f32 {
        let block = self.block(gap);
        if self.starts[block] == gap { self.boundary[block] } else { self.frequency[block] }
    }

    /// A lower bound of the costs of copies in the block of `low` and at the boundaries from there to the block of `high`.
    pub fn least(&self, low: Point, high: Point) -> f32 {
        let first = self.block(low);
        self.frequency[first].min(self.boundary[self.cheapest_boundary(first, self.block(high))])
    }

    /// The last of the cheapest gaps from `low` to `high`, both included.
    #[inline]
    pub fn cheapest(&self, low: Point, high: Point) -> Point {
        debug_assert!(low.is_gap() && high.is_gap() && low <= high);
        if self.starts[self.block(high)] < low { high } else { self.cheapest_boundary_or(low, high) }
    }

    fn cheapest_boundary_or(&self, low: Point, high: Point) -> Point {
        let last = self.block(high);
        let first = self.block(low) + usize::from(!self.is_boundary(low));
        if first > last {
            return high;
        }
        let best = self.cheapest_boundary(first, last);
        if self.boundary[best] < self.copy(high) { self.starts[best] } else { high }
    }

    fn cheapest_boundary(&self, first: usize, last: usize) -> usize {
        let level = (last - first + 1).ilog2() as usize;
        let minima = &self.minima[level * self.boundary.len()..];
        let (a, b) = (minima[first], minima[last + 1 - (1 << level)]);
        last_minimum(&self.boundary, a, b) as usize
    }
}

fn last_minimum(costs: &[f32], a: u32, b: u32) -> u32 {
    if costs[b as usize] <= costs[a as usize] { b } else { a }
}

/// The sparse table of minima over all ranges whose length is a power of two.
fn last_minima(costs: &[f32]) -> Vec<u32> {
    let len = costs.len();
    let num_levels = len.checked_ilog2().map_or(0, |log| log as usize + 1);
    let mut levels = vec![0; num_levels * len];
    levels.iter_mut().take(len).zip(0..).for_each(|(first, block)| *first = block);
    for level in 1..num_levels {
        let half = 1 << (level - 1);
        let (last, next) = levels[(level - 1) * len..].split_at_mut(len);
        let pairs = last[..len - half].iter().zip(&last[half..]);
        next.iter_mut().zip(pairs).for_each(|(next, (&a, &b))| *next = last_minimum(costs, a, b));
    }
    levels
}

/// For each block, the sum of the edges that cross the boundary before it.
fn crossings(client: &impl Client, frequency: &[f32]) -> Vec<f32> {
    let (blocks, rare) = (frequency.len(), client.first_rare());
    // Integers add up and cancel exactly; differences of floats would leave remainders.
    let mut change = vec![0i64; blocks + 1];
    for block in 0..blocks {
        for &succ in client.succs(block) {
            let (low, high) = (block.min(succ as usize), block.max(succ as usize));
            let weight = units(frequency[low].min(frequency[high]));
            let first = if high < rare { low + 1 } else { rare.max(low + 1) };
            change[first] += weight;
            change[high + 1] -= weight;
        }
    }
    let mut sum = 0;
    let units = change[..blocks].iter().map(|change| {
        sum += change;
        (sum as f64 / UNITS) as f32
    });
    units.collect()
}

/// The number of units in a frequency of 1.
const UNITS: f64 = 65536.0;

/// A frequency in units of which sums are exact.
pub fn units(frequency: f32) -> i64 {
    (f64::from(frequency) * UNITS) as i64
}
