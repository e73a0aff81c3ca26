//! Data flow: facts at every block's start and end, as the greatest solution of equations between them.
//!
//! A [`Problem`] is a direction, a lattice (its top and its meet) and a transfer function per block. [`solve`] iterates
//! over a worklist in reverse postorder (postorder for backward problems) until nothing changes (Kildall, "A Unified
//! Approach to Global Program Optimization", 1973). With this order (Kam and Ullman, 1976) the number of rounds for
//! gen-kill problems is at most the nesting depth of loops plus two. Cost: edges × rounds × the cost of a meet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weir_jit::analysis::Cfg;
use weir_jit::ir::{Block, Func};

/// The direction in which facts flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From predecessors to successors.
    Forward,
    /// From successors to predecessors.
    Backward,
}

/// A data-flow problem. `transfer` and `edge` must be monotone, and descending chains of facts finite.
pub trait Problem {
    /// An element of the lattice.
    type Fact: Clone + PartialEq;
    /// The direction in which facts flow.
    const DIRECTION: Direction;

    /// The fact before any path is known: the neutral element of [`Problem::meet`].
    fn top(&self) -> Self::Fact;

    /// The fact where paths begin: at the start of the entry block or, for a backward problem, at the end of a block without
    /// successors.
    fn boundary(&self) -> Self::Fact;

    /// Combines `fact`, which holds on one path, with `other`, which holds on another.
    fn meet(&self, fact: &mut Self::Fact, other: &Self::Fact);

    /// Applies the transfer function of `block`, in the direction of the problem.
    fn transfer(&self, block: Block, fact: &mut Self::Fact);

    /// Applies the effect of the edges between `from` and its successor `to`, in the direction of the problem.
    fn edge(&self, _from: Block, _to: Block, _fact: &mut Self::Fact) {}
}

/// The solution. Facts about unreachable blocks are top.
#[derive(Clone, Debug)]
pub struct Solution<F> {
    start: Vec<F>,
    end: Vec<F>,
}

impl<F> Solution<F> {
    /// The fact at the start of `block`.
    pub fn at_start(&self, block: Block) -> &F {
        &self.start[block.index()]
    }

    /// The fact at the end of `block`.
    pub fn at_end(&self, block: Block) -> &F {
        &self.end[block.index()]
    }
}

/// Solves `problem` over the blocks of `func` that the entry reaches.
pub fn solve<P: Problem>(problem: &P, func: &Func<'_>, cfg: &Cfg) -> Solution<P::Fact> {
    let forward = P::DIRECTION == Direction::Forward;
    let blocks = cfg.order().len();
    // The facts before and after each block, in the direction of the problem.
    let mut before = vec![problem.top(); func.num_blocks()];
    let mut after = before.clone();
    let rank = |position: usize| if forward { position } else { blocks - 1 - position };
    let mut queue: BinaryHeap<Reverse<usize>> = (0..blocks).map(Reverse).collect();
    let mut queued = vec![true; blocks];
    while let Some(Reverse(next)) = queue.pop() {
        queued[next] = false;
        let block = cfg.order()[rank(next)];
        let (sources, targets) = match forward {
            true => (&func.block(block).preds, &func.block(block).succs),
            false => (&func.block(block).succs, &func.block(block).preds),
        };
        let mut fact = if sources.is_empty() { problem.boundary() } else { problem.top() };
        for &source in sources.iter().filter(|&&source| cfg.is_reachable(source)) {
            let mut passed = after[source.index()].clone();
            let (from, to) = if forward { (source, block) } else { (block, source) };
            problem.edge(from, to, &mut passed);
            problem.meet(&mut fact, &passed);
        }
        before[block.index()].clone_from(&fact);
        problem.transfer(block, &mut fact);
        if fact == after[block.index()] {
            continue;
        }
        after[block.index()] = fact;
        for position in targets.iter().filter_map(|&target| cfg.position(target)) {
            if !std::mem::replace(&mut queued[rank(position)], true) {
                queue.push(Reverse(rank(position)));
            }
        }
    }
    match forward {
        true => Solution { start: before, end: after },
        false => Solution { start: after, end: before },
    }
}

/// A set of numbers below a bound, one bit each, which is the usual fact.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BitSet(Vec<u64>);

impl BitSet {
    /// The empty set of numbers below `bound`.
    pub fn empty(bound: usize) -> BitSet {
        BitSet(vec![0; bound.div_ceil(64)])
    }

    /// All numbers below `bound`.
    pub fn full(bound: usize) -> BitSet {
        let mut set = BitSet(vec![u64::MAX; bound.div_ceil(64)]);
        if let Some(last) = set.0.last_mut() {
            *last >>= (64 - bound % 64) % 64;
        }
        set
    }

    /// Whether the set contains `number`.
    pub fn contains(&self, number: usize) -> bool {
        self.0[number / 64] >> (number % 64) & 1 != 0
    }

    /// Adds `number`.
    pub fn insert(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    /// Removes `number`.
    pub fn remove(&mut self, number: usize) {
        self.0[number / 64] &= !(1 << (number % 64));
    }

    /// Adds the numbers of `other`.
    pub fn unite(&mut self, other: &BitSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }

    /// Keeps the numbers of `other`.
    pub fn intersect(&mut self, other: &BitSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= b);
    }

    /// Removes the numbers of `other`.
    pub fn subtract(&mut self, other: &BitSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= !b);
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let bits = |(i, &word): (usize, &u64)| {
            std::iter::successors(Some(word), |word| Some(word & word.wrapping_sub(1)))
                .take_while(|&word| word != 0)
                .map(move |word| i * 64 + word.trailing_zeros() as usize)
        };
        self.0.iter().enumerate().flat_map(bits)
    }
}

/// Transfer functions that add a constant set and take a constant set away, `(fact - kill) ∪ gen`, by block.
#[derive(Clone, Debug)]
pub struct GenKill {
    generated: Vec<BitSet>,
    killed: Vec<BitSet>,
}

impl GenKill {
    /// Functions that change nothing, on sets of numbers below `bound`.
    pub fn new(blocks: usize, bound: usize) -> GenKill {
        GenKill { generated: vec![BitSet::empty(bound); blocks], killed: vec![BitSet::empty(bound); blocks] }
    }

    /// Makes `block` add `number` to the set, after its other effects so far.
    pub fn generate(&mut self, block: Block, number: usize) {
        self.killed[block.index()].remove(number);
        self.generated[block.index()].insert(number);
    }

    /// Makes `block` remove `number` from the set, after its other effects so far.
    pub fn kill(&mut self, block: Block, number: usize) {
        self.generated[block.index()].remove(number);
        self.killed[block.index()].insert(number);
    }

    /// Removes all of `numbers`.
    pub fn kill_all(&mut self, block: Block, numbers: &BitSet) {
        self.generated[block.index()].subtract(numbers);
        self.killed[block.index()].unite(numbers);
    }

    /// Applies the function of `block`.
    pub fn apply(&self, block: Block, fact: &mut BitSet) {
        fact.subtract(&self.killed[block.index()]);
        fact.unite(&self.generated[block.index()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_every_size() {
        for bound in [0, 1, 63, 64, 65, 200] {
            let full = BitSet::full(bound);
            assert_eq!(full.iter().collect::<Vec<_>>(), (0..bound).collect::<Vec<_>>());
            let mut thirds = BitSet::empty(bound);
            (0..bound).step_by(3).for_each(|number| thirds.insert(number));
            let mut rest = full.clone();
            rest.subtract(&thirds);
            assert!((0..bound).all(|number| rest.contains(number) != (number % 3 == 0)));
            let mut both = rest.clone();
            both.intersect(&thirds);
            assert_eq!(both, BitSet::empty(bound));
            both.unite(&rest);
            both.unite(&thirds);
            assert_eq!(both, full);
        }
    }
}
