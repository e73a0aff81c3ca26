//! Reverse postorder of the blocks that the entry reaches.
//!
//! In it every block comes before those it dominates, and before its successors except along back edges. Cost:
//! O(blocks + edges).

/// Which blocks are reachable, and an order of them.
#[derive(Clone, Debug)]
pub struct Order {
    /// The reachable blocks in reverse postorder, the entry first.
    pub blocks: Vec<u32>,
    /// By block, its index in [`Order::blocks`], or [`UNREACHABLE`].
    pub position: Vec<u32>,
}

/// In place of the position of a block that the entry does not reach.
pub const UNREACHABLE: u32 = u32::MAX;

/// Orders a graph with this many blocks. Of the successors of a block, the last one in the order of `succs` that nothing else
/// comes before is next in the order.
pub fn reverse_postorder<S: Iterator<Item = u32>>(count: usize, succs: impl Fn(u32) -> S) -> Order {
    let mut position = vec![UNREACHABLE; count];
    let mut blocks = Vec::with_capacity(count);
    // Blocks on the path that is being followed, each with the successors that are yet to be followed.
    let mut path: Vec<(u32, S)> = Vec::with_capacity(count.min(256));
    if count > 0 {
        position[0] = 0;
        path.push((0, succs(0)));
    }
    while let Some((block, left)) = path.last_mut() {
        match left.next() {
            Some(succ) => {
                let seen = &mut position[succ as usize];
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
        position[block as usize] = i;
    }
    Order { blocks, position }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_successor_comes_next() {
        // 0 → {1, 2}, 1 → 3, 2 → {3, 0}; nothing reaches 4.
        let succs: [&[u32]; 5] = [&[1, 2], &[3], &[3, 0], &[], &[0]];
        let order = reverse_postorder(5, |block| succs[block as usize].iter().copied());
        assert_eq!((order.blocks, order.position), (vec![0, 2, 1, 3], vec![0, 2, 1, 3, UNREACHABLE]));
        let order = reverse_postorder(5, |block| succs[block as usize].iter().rev().copied());
        assert_eq!(order.blocks, [0, 1, 2, 3]);
        assert!(reverse_postorder(0, |_| std::iter::empty()).blocks.is_empty());
    }
}
