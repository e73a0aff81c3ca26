//! Reverse postorder of the blocks that the entry reaches.
//!
//! In this order, every block comes before those that it dominates, and before its successors except along back edges.
//! Cost: O(blocks + edges).

use super::node::Node;

/// The reachable blocks and their order.
#[derive(Clone, Debug)]
pub struct Order<N> {
    /// The reachable blocks in reverse postorder, the entry first.
    pub blocks: Vec<N>,
    /// By block, its index in [`Order::blocks`], or [`UNREACHABLE`].
    pub positions: Vec<u32>,
}

/// The position of a block that the entry does not reach.
pub const UNREACHABLE: u32 = u32::MAX;

impl<N: Node> Order<N> {
    /// Orders a graph with `count` blocks. A block is followed directly by the last of its successors, in the order of
    /// `succs`, for which no other predecessor is still to come.
    pub fn of<S: Iterator<Item = N>>(count: usize, succs: impl Fn(N) -> S) -> Order<N> {
        let mut positions = vec![UNREACHABLE; count];
        let mut blocks = Vec::with_capacity(count);
        // Blocks on the current path, each with its successors that have not been visited.
        let mut path: Vec<(N, S)> = Vec::with_capacity(count.min(256));
        if count > 0 {
            positions[0] = 0;
            path.push((N::new(0), succs(N::new(0))));
        }
        while let Some((block, left)) = path.last_mut() {
            match left.next() {
                Some(succ) => {
                    let seen = &mut positions[succ.index()];
                    if *seen == UNREACHABLE {
                        *seen = 0;
                        path.push((succ, succs(succ)));
                    }
                }
                None => {
                    blocks.push(*block);
                    path.pop();
                }
            }
        }
        blocks.reverse();
        for (i, &block) in (0..).zip(&blocks) {
            positions[block.index()] = i;
        }
        Order { blocks, positions }
    }

    /// The position of `block` in the order, or `None` if it is unreachable.
    pub fn position(&self, block: N) -> Option<u32> {
        Some(self.positions[block.index()]).filter(|&position| position != UNREACHABLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_successor_comes_next() {
        // 0 → {1, 2}, 1 → 3, 2 → {3, 0}; block 4 is unreachable.
        let succs: [&[u32]; 5] = [&[1, 2], &[3], &[3, 0], &[], &[0]];
        let order = Order::of(5, |block: u32| succs[block as usize].iter().copied());
        assert_eq!((order.blocks, order.positions), (vec![0, 2, 1, 3], vec![0, 2, 1, 3, UNREACHABLE]));
        let order = Order::of(5, |block: u32| succs[block as usize].iter().rev().copied());
        assert_eq!(order.blocks, [0, 1, 2, 3]);
        assert!(Order::of(0, |_: u32| std::iter::empty()).blocks.is_empty());
    }
}
