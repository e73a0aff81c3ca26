//! The index of every edge in the predecessors of its target, which is also its index in the arguments of phis.
//!
//! [`Func::edge`] searches the predecessors, of which a block may have as many as there are branches. To ask it for every edge
//! takes quadratic time. Here the edges are sorted once by their source and target, from either end: O(edges), and O(n log n) for the n
//! successors of a table.

use crate::ir::{Block, Func};

/// The indices of all edges of a function.
#[derive(Debug)]
pub struct Edges {
    /// By block, the position of its first successor in `indices`, and the end.
    first: Vec<u32>,
    indices: Vec<u32>,
}

impl Edges {
    /// Numbers the edges of `func`.
    pub fn of(func: &Func<'_>) -> Edges {
        let mut first = Vec::with_capacity(func.num_blocks() + 1);
        let mut total = 0;
        for block in func.blocks() {
            first.push(total);
            total += func.block(block).succs.len() as u32;
        }
        first.push(total);
        // By source: targets ascending, and for each target the indices ascending.
        let mut entering = vec![(Block::ENTRY, 0); total as usize];
        let mut next = first.clone();
        for to in func.blocks() {
            for (index, from) in (0..).zip(&func.block(to).preds) {
                let place = &mut next[from.index()];
                entering[*place as usize] = (to, index);
                *place += 1;
            }
        }
        let mut indices = vec![0; total as usize];
        let mut order = Vec::new();
        for from in func.blocks() {
            let start = first[from.index()] as usize;
            let succs = &func.block(from).succs;
            order.clear();
            order.extend(0..succs.len());
            order.sort_by_key(|&k| succs[k]);
            for (&k, &(to, index)) in order.iter().zip(&entering[start..]) {
                debug_assert_eq!(to, succs[k], "an edge is listed at both its ends");
                indices[start + k] = index;
            }
        }
        Edges { first, indices }
    }

    /// The index of the edge to successor `succ` of `from`.
    pub fn index(&self, from: Block, succ: usize) -> usize {
        self.indices[self.first[from.index()] as usize + succ] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bumpalo::Bump;

    #[test]
    fn indices_are_those_that_a_search_finds() {
        let arena = Bump::new();
        let mut func = Func::new(&arena, 0, crate::ir::Entry::Call, [], []);
        for _ in 0..9 {
            func.create_block();
        }
        let mut state = 1u32;
        for _ in 0..200 {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            func.add_edge(Block((state >> 16) % 9), Block(1 + (state >> 24) % 8));
        }
        let edges = Edges::of(&func);
        for from in func.blocks() {
            for succ in 0..func.block(from).succs.len() {
                assert_eq!(edges.index(from, succ), func.edge(from, succ).1, "{from}, {succ}");
            }
        }
    }
}
