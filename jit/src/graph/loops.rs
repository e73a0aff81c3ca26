//! Loops, their nesting, and an order of the blocks in which each loop is contiguous.
//!
//! Blocks are numbered in reverse postorder. A header is the target of an edge that does not go forward; its loop
//! contains all blocks that reach such an edge without passing through the header. This is the loop forest of Havlak
//! (1997) without its treatment of irreducible loops: if a loop has a second entry, only blocks after the header belong
//! to the loop. Headers are visited from last to first, and the blocks of a loop become one node of a union-find
//! structure (Tarjan 1974), so the search is nearly linear in blocks and edges.

use std::ops::Range;

/// The loops of a graph, each named by its header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loops {
    /// By block, the header of the innermost loop around it; a header is in its own loop.
    pub innermost: Vec<Option<u32>>,
    /// By header, the header of the enclosing loop.
    pub parent: Vec<Option<u32>>,
}

impl Loops {
    /// The loops of a graph whose blocks are numbered in reverse postorder; `preds` gives a block's predecessors.
    pub fn of<P: IntoIterator<Item = u32>>(blocks: usize, preds: impl Fn(u32) -> P) -> Loops {
        Loops::counting(blocks, preds, &mut 0)
    }

    /// The loops of a graph, as [`Loops::of`] returns them; `steps` counts the edges and links that are followed.
    fn counting<P: IntoIterator<Item = u32>>(blocks: usize, preds: impl Fn(u32) -> P, steps: &mut u64) -> Loops {
        let mut loops = Loops { innermost: vec![None; blocks], parent: vec![None; blocks] };
        // By block, the header of the outermost loop found so far around it, or a link on the way to that header.
        let mut outer: Vec<u32> = (0..blocks as u32).collect();
        let mut work = Vec::new();
        for head in (0..blocks as u32).rev() {
            work.extend(preds(head).into_iter().filter(|&pred| pred >= head));
            if work.is_empty() {
                continue;
            }
            loops.innermost[head as usize] = Some(head);
            while let Some(block) = work.pop() {
                let node = find(&mut outer, block, steps);
                if node == head {
                    continue;
                }
                match loops.innermost[node as usize] {
                    Some(_) => loops.parent[node as usize] = Some(head),
                    None => loops.innermost[node as usize] = Some(head),
                }
                outer[node as usize] = head;
                for pred in preds(node) {
                    *steps += 1;
                    // A predecessor before the header is a second entry of an irreducible loop.
                    if pred > head {
                        work.push(pred);
                    }
                }
            }
        }
        loops
    }

    /// The headers, ascending.
    pub fn headers(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.innermost.len() as u32).filter(|&block| self.is_header(block))
    }

    /// Whether `block` is the header of a loop.
    pub fn is_header(&self, block: u32) -> bool {
        self.innermost[block as usize] == Some(block)
    }

    /// The headers of the loops around `block`, from the innermost outwards.
    pub fn around(&self, block: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.innermost[block as usize], |&head| self.parent[head as usize])
    }

    /// An order of the blocks that follows reverse postorder except where a loop would not be contiguous, and the loops as
    /// ranges of that order, outer loops first.
    pub fn make_contiguous(&self) -> (Vec<u32>, Vec<Range<u32>>) {
        enum Item {
            Block(u32),
            Loop(u32),
        }
        // The blocks and loops directly in each loop (by header), or in the function (last).
        let function = self.innermost.len();
        let mut contents: Vec<Vec<Item>> = (0..=function).map(|_| Vec::new()).collect();
        let slot = |head: Option<u32>| head.map_or(function, |head| head as usize);
        for block in 0..function as u32 {
            if self.is_header(block) {
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

/// The nesting of contiguous loops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nest {
    /// By block, the index of the innermost loop around it.
    pub innermost: Vec<Option<u32>>,
    /// By loop, the index of the next loop around it.
    pub parent: Vec<Option<u32>>,
}

impl Nest {
    /// The nesting of `loops`, which are ranges of blocks, properly nested, outer loops first.
    pub fn of(loops: &[Range<u32>], blocks: usize) -> Nest {
        let mut nest = Nest { innermost: Vec::with_capacity(blocks), parent: Vec::with_capacity(loops.len()) };
        let mut current: Option<u32> = None;
        for block in 0..blocks as u32 {
            while let Some(index) = current
                && loops[index as usize].end <= block
            {
                current = nest.parent[index as usize];
            }
            while let Some(next) = loops.get(nest.parent.len())
                && next.start == block
            {
                let index = nest.parent.len() as u32;
                nest.parent.push(current);
                current = Some(index);
            }
            nest.innermost.push(current);
        }
        nest
    }

    /// Indices of the loops that contain `block`, from the innermost outwards.
    pub fn around(&self, block: usize) -> impl Iterator<Item = usize> + '_ {
        let innermost = self.innermost[block].map(|index| index as usize);
        std::iter::successors(innermost, |&index| self.parent[index].map(|parent| parent as usize))
    }
}

/// The header of the outermost loop found so far around `block`, or `block` itself. Halves the path to it.
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

    fn preds(succs: &[Vec<u32>]) -> Vec<Vec<u32>> {
        let mut preds = vec![Vec::new(); succs.len()];
        for (block, succs) in (0..).zip(succs) {
            succs.iter().for_each(|&succ| preds[succ as usize].push(block));
        }
        preds
    }

    fn loops(succs: &[Vec<u32>]) -> Loops {
        let preds = preds(succs);
        Loops::of(preds.len(), |block| preds[block as usize].iter().copied())
    }

    #[test]
    fn loops_nest() {
        // Blocks 2 and 3 are a loop within the loop of blocks 1 to 4.
        let loops = loops(&[vec![1], vec![2, 5], vec![2, 3], vec![2, 4], vec![1, 5], vec![]]);
        assert_eq!(loops.headers().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(loops.around(3).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(loops.around(4).collect::<Vec<_>>(), [1]);
        assert_eq!(loops.around(5).count(), 0);
        let (order, ranges) = loops.make_contiguous();
        assert_eq!((order, &ranges[..]), (vec![0, 1, 2, 3, 4, 5], &[1..5, 2..4][..]));
        let nest = Nest::of(&ranges, 6);
        assert_eq!(nest.innermost, [None, Some(0), Some(1), Some(1), Some(0), None]);
        assert_eq!(nest.parent, [None, Some(0)]);
    }

    #[test]
    fn blocks_of_a_loop_are_made_contiguous() {
        // Block 2 is outside the loop of blocks 1 and 3.
        let (order, ranges) = loops(&[vec![1], vec![2, 3], vec![], vec![1, 4], vec![]]).make_contiguous();
        assert_eq!(order, [0, 1, 3, 2, 4]);
        assert_eq!(ranges, [Range { start: 1, end: 3 }]);
        assert_eq!(loops(&[vec![1, 2], vec![2], vec![]]).headers().count(), 0);
    }

    /// Nested loops, `depth` levels deep, with a block in the innermost that jumps to every header.
    fn nest(depth: u32) -> Vec<Vec<u32>> {
        let mut succs: Vec<Vec<u32>> = (0..depth).map(|head| vec![head + 1]).collect();
        succs.push((0..depth).chain([depth + 1]).collect());
        succs.push(vec![]);
        preds(&succs)
    }

    #[test]
    fn deep_nests_are_searched_in_linear_steps() {
        let steps = |depth| {
            let (mut steps, preds) = (0, nest(depth));
            let loops = Loops::counting(preds.len(), |block| preds[block as usize].iter().copied(), &mut steps);
            assert_eq!(loops.parent[depth as usize - 1], Some(depth - 2));
            steps
        };
        let (small, large) = (steps(1000), steps(10_000));
        assert!(large < 11 * small, "{small} steps become {large}");
    }
}
