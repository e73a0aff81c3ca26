//! The loops of the machine function, and an order of its blocks that makes each loop contiguous.
//!
//! A header is the target of an edge that does not go forward in reverse postorder; its loop is what reaches such an edge without
//! passing the header. This is the loop forest of Havlak (1997) without its treatment of irreducible loops: of a second entry to
//! a loop, only what comes after the header belongs to the loop. Headers are visited from the last to the first, and what a loop
//! absorbs becomes one node of a union-find structure (Tarjan 1974), so that the search is nearly linear in blocks and edges.

use super::list::Blocks;
use std::ops::Range;

/// By block in reverse postorder.
struct Forest {
    /// Header of the innermost loop around it; a header is in its own loop.
    innermost: Vec<Option<u32>>,
    /// Of a header, the header of the next loop around.
    parent: Vec<Option<u32>>,
}

/// The blocks in an order that keeps reverse postorder as far as loops allow, and the loops as ranges of that order, outer before
/// inner; or nothing if there is no loop. `preds` are the predecessors of each block in reverse postorder.
pub fn contiguous(preds: &[Blocks]) -> Option<(Vec<u32>, Vec<Range<u32>>)> {
    let forest = Forest::of(preds, &mut 0);
    forest.innermost.iter().any(Option::is_some).then(|| forest.order())
}

impl Forest {
    /// `steps` counts the edges and links that are followed.
    fn of(preds: &[Blocks], steps: &mut u64) -> Forest {
        let blocks = preds.len();
        let mut forest = Forest { innermost: vec![None; blocks], parent: vec![None; blocks] };
        // The outermost loop so far around each block, by its header, or a link on the way to it.
        let mut outer: Vec<u32> = (0..blocks as u32).collect();
        let mut work = Vec::new();
        for head in (0..blocks as u32).rev() {
            work.extend(preds[head as usize].iter().copied().filter(|&pred| pred >= head));
            if work.is_empty() {
                continue;
            }
            forest.innermost[head as usize] = Some(head);
            while let Some(block) = work.pop() {
                let node = find(&mut outer, block, steps);
                if node == head {
                    continue;
                }
                match forest.innermost[node as usize] {
                    Some(_) => forest.parent[node as usize] = Some(head),
                    None => forest.innermost[node as usize] = Some(head),
                }
                outer[node as usize] = head;
                // A predecessor before the header would be a second entry to an irreducible loop.
                work.extend(preds[node as usize].iter().filter(|&&pred| pred > head));
                *steps += preds[node as usize].len() as u64;
            }
        }
        forest
    }

    fn order(&self) -> (Vec<u32>, Vec<Range<u32>>) {
        enum Item {
            Block(u32),
            Loop(u32),
        }
        // What each loop (by header), or the function (last), holds directly.
        let function = self.innermost.len();
        let mut contents: Vec<Vec<Item>> = (0..=function).map(|_| Vec::new()).collect();
        let slot = |head: Option<u32>| head.map_or(function, |head| head as usize);
        for block in 0..function as u32 {
            if self.innermost[block as usize] == Some(block) {
                contents[slot(self.parent[block as usize])].push(Item::Loop(block));
            }
            contents[slot(self.innermost[block as usize])].push(Item::Block(block));
        }
        let (mut order, mut loops) = (Vec::with_capacity(function), Vec::new());
        let mut open: Vec<usize> = Vec::new();
        let mut stack = vec![std::mem::take(&mut contents[function]).into_iter()];
        while let Some(items) = stack.last_mut() {
            match items.next() {
                Some(Item::Block(block)) => order.push(block),
                Some(Item::Loop(head)) => {
                    open.push(loops.len());
                    loops.push(order.len() as u32..0);
                    stack.push(std::mem::take(&mut contents[head as usize]).into_iter());
                }
                None => {
                    stack.pop();
                    if let Some(closed) = open.pop() {
                        loops[closed].end = order.len() as u32;
                    }
                }
            }
        }
        (order, loops)
    }
}

/// The outermost loop so far around `block`, by its header, or `block` itself. Halves the path to it.
fn find(outer: &mut [u32], mut block: u32, steps: &mut u64) -> u32 {
    loop {
        *steps += 1;
        let up = outer[block as usize];
        if up == block {
            return block;
        }
        let next = outer[up as usize];
        outer[block as usize] = next;
        block = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preds(succs: &[Vec<u32>]) -> Vec<Blocks> {
        let mut preds = vec![Blocks::new(); succs.len()];
        for (block, succs) in (0..).zip(succs) {
            succs.iter().for_each(|&succ| preds[succ as usize].push(block));
        }
        preds
    }

    #[test]
    fn blocks_of_a_loop_are_made_contiguous() {
        // Block 2 leaves the loop of 1 and 3.
        let (order, loops) = contiguous(&preds(&[vec![1], vec![2, 3], vec![], vec![1, 4], vec![]])).unwrap();
        assert_eq!(order, [0, 1, 3, 2, 4]);
        assert_eq!(loops, [Range { start: 1, end: 3 }]);
        assert!(contiguous(&preds(&[vec![1, 2], vec![2], vec![]])).is_none());
    }

    /// `depth` loops, one in the other, and a block in the innermost that jumps to every header.
    fn nest(depth: u32) -> Vec<Blocks> {
        let mut succs: Vec<Vec<u32>> = (0..depth).map(|head| vec![head + 1]).collect();
        succs.push((0..depth).chain([depth + 1]).collect());
        succs.push(vec![]);
        preds(&succs)
    }

    #[test]
    fn deep_nests_are_searched_in_linear_steps() {
        let steps = |depth| {
            let mut steps = 0;
            let forest = Forest::of(&nest(depth), &mut steps);
            assert_eq!(forest.parent[depth as usize - 1], Some(depth - 2));
            steps
        };
        let (small, large) = (steps(1000), steps(10_000));
        assert!(large < 11 * small, "{small} steps become {large}");
    }
}
