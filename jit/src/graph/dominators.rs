//! Dominators: Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm" (2001).
//!
//! A block's immediate dominator is the nearest common ancestor, in the tree found so far, of its predecessors. In a
//! reducible graph that is visited in reverse postorder, the first pass gives the result: O(edges × log blocks).
//! Otherwise passes are repeated until nothing changes, which is quadratic at worst. The tree is then numbered in
//! preorder, so that [`Dominators::dominates`] takes constant time.

use super::node::Node;
use super::order::Order;

/// The dominator tree of the reachable blocks.
#[derive(Clone, Debug)]
pub struct Dominators<N> {
    /// The immediate dominator of each block; the entry and unreachable blocks have themselves.
    idom: Vec<N>,
    /// The reachable blocks in preorder: parents before children, and every subtree contiguous.
    preorder: Vec<N>,
    /// `subtree[b]` is the range of `preorder` that `b` dominates; empty for unreachable blocks.
    subtree: Vec<(u32, u32)>,
}

impl<N: Node> Dominators<N> {
    /// The dominators of a graph with this reverse postorder, in which `preds` gives a block's predecessors.
    pub fn of<P: Iterator<Item = N>>(order: &Order<N>, preds: impl Fn(N) -> P) -> Dominators<N> {
        let parents = immediate_dominators(order.blocks.len(), |position| {
            preds(order.blocks[position as usize]).filter_map(|pred| order.position(pred))
        });
        let mut idom: Vec<N> = (0..order.positions.len() as u32).map(N::new).collect();
        for (&block, &parent) in order.blocks.iter().zip(&parents) {
            idom[block.index()] = order.blocks[parent as usize];
        }
        let (preorder, subtree) = number(order, &parents);
        Dominators { idom, preorder, subtree }
    }

    /// The immediate dominator of `block`, or `None` for the entry and for unreachable blocks.
    pub fn idom(&self, block: N) -> Option<N> {
        let idom = self.idom[block.index()];
        (idom.index() != block.index()).then_some(idom)
    }

    /// Whether every path from the entry to `b` passes through `a`. A block dominates itself; unreachable blocks dominate
    /// nothing and are dominated by nothing.
    pub fn dominates(&self, a: N, b: N) -> bool {
        let ((start, end), (b, b_end)) = (self.subtree[a.index()], self.subtree[b.index()]);
        b < b_end && start <= b && b < end
    }

    /// The reachable blocks in preorder: every block is followed directly by the blocks that it dominates.
    pub fn preorder(&self) -> &[N] {
        &self.preorder
    }
}

/// Immediate dominators as positions in reverse postorder, where a dominator has the lower position.
fn immediate_dominators<P: Iterator<Item = u32>>(count: usize, preds: impl Fn(u32) -> P) -> Vec<u32> {
    let mut tree = Tree::new(count);
    let mut back_edges = Vec::new();
    for position in 0..count as u32 {
        let mut idom = None;
        for pred in preds(position) {
            if pred < position {
                idom = Some(idom.map_or(pred, |idom| tree.common(idom, pred)));
            } else {
                back_edges.push((pred, position));
            }
        }
        tree.push(idom.unwrap_or(0));
    }
    // Back edges change nothing unless the graph is irreducible.
    let reducible = back_edges.into_iter().all(|(pred, position)| {
        let idom = tree.parent[position as usize];
        position == 0 || tree.common(pred, idom) == idom
    });
    let mut idom = tree.parent;
    let mut changed = !reducible;
    while changed {
        changed = false;
        for position in 1..count {
            let new = preds(position as u32).reduce(|a, b| common(&idom, a, b)).unwrap_or(0);
            changed |= std::mem::replace(&mut idom[position], new) != new;
        }
    }
    idom
}

/// The nearest common ancestor of two nodes, found by single steps.
fn common(parent: &[u32], mut a: u32, mut b: u32) -> u32 {
    while a != b {
        if a > b {
            a = parent[a as usize];
        } else {
            b = parent[b as usize];
        }
    }
    a
}

/// A tree that grows at its leaves and finds common ancestors in logarithmic time, because each node also stores a far
/// ancestor (Myers, "An Applicative Random-Access Stack", 1983). With single steps, a block that ends a long chain of
/// conditional exits would take time quadratic in the chain's length.
struct Tree {
    parent: Vec<u32>,
    far: Vec<u32>,
    depth: Vec<u32>,
}

impl Tree {
    /// An empty tree with room for this many nodes.
    fn new(nodes: usize) -> Tree {
        let [parent, far, depth] = [(); 3].map(|()| Vec::with_capacity(nodes));
        Tree { parent, far, depth }
    }

    /// Adds the next node below `parent`. The first node is the root.
    fn push(&mut self, parent: u32) {
        let Some(&depth) = self.depth.get(parent as usize) else {
            [&mut self.parent, &mut self.far, &mut self.depth].into_iter().for_each(|numbers| numbers.push(0));
            return;
        };
        let far = self.far[parent as usize];
        let farther = self.far[far as usize];
        let depth_of = |node: u32| self.depth[node as usize];
        let equal_strides = depth - depth_of(far) == depth_of(far) - depth_of(farther);
        self.far.push(if equal_strides { farther } else { parent });
        self.parent.push(parent);
        self.depth.push(depth + 1);
    }

    /// The nearest common ancestor of two nodes.
    fn common(&self, a: u32, b: u32) -> u32 {
        let depth = |node: u32| self.depth[node as usize];
        let (mut a, mut b) = if depth(a) >= depth(b) { (a, b) } else { (b, a) };
        while depth(a) > depth(b) {
            let far = self.far[a as usize];
            a = if depth(far) >= depth(b) { far } else { self.parent[a as usize] };
        }
        while a != b {
            let (far_a, far_b) = (self.far[a as usize], self.far[b as usize]);
            (a, b) = match far_a == far_b {
                true => (self.parent[a as usize], self.parent[b as usize]),
                false => (far_a, far_b),
            };
        }
        a
    }
}

/// The tree's preorder, and for each block the range of its subtree in it.
fn number<N: Node>(order: &Order<N>, parents: &[u32]) -> (Vec<N>, Vec<(u32, u32)>) {
    let count = parents.len();
    let mut size = vec![1u32; count];
    for position in (1..count).rev() {
        size[parents[position] as usize] += size[position];
    }
    // `next[p]` is the index of the next child of `p`. Parents are placed before children, because their position is lower.
    let mut next = vec![0u32; count];
    let mut preorder = vec![N::new(0); count];
    let mut subtree = vec![(0, 0); order.positions.len()];
    for (position, &block) in order.blocks.iter().enumerate() {
        let start = match position {
            0 => 0,
            _ => {
                let parent = parents[position] as usize;
                next[parent] += size[position];
                next[parent] - size[position]
            }
        };
        next[position] = start + 1;
        preorder[start as usize] = block;
        subtree[block.index()] = (start, start + size[position]);
    }
    (preorder, subtree)
}
