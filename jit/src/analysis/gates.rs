//! Gates: the conditions that determine the value of a phi.
//!
//! At a join, `γ(c, a, b)` is `a` if the join is reached with non-zero `c`, else `b`; a `br_table` has one argument per arm. At the
//! header of a loop a gate decides among the forward edges. Gates are found on demand from block SSA, never stored in it (Ottenstein,
//! Ballance, MacCabe, "The Program Dependence Web", 1990; demand-driven as in Stoltz, Wolfe, Gerlek, "Constant Propagation: A Fresh,
//! Demand-Driven Look", 1994).
//!
//! For a join J with immediate dominator U, and blocks between them in postorder:
//!
//! ```text
//! G(an edge into J) = that edge
//! G(b) = γ(b's condition, G(s1), G(s2)), or G(s1) if both are one
//! an edge that does not reach J without passing U again = ⊤, and γ(c, x, ⊤) = x
//! ```
//!
//! A gate is a statement about the *latest* values of its conditions when control reaches J. The back edge of a loop
//! between U and J is therefore ⊤, because the last iteration does not take it. The statement would be wrong if
//! conditions could be evaluated again after control has passed from U to J. This requires a cycle without a header; a
//! join in such a cycle gets no gate, nor does a join that exceeds the budget.
//!
//! Cost: O(blocks between U and J), of which there are at most [`MAX_BLOCKS`].
//!
//! Constant propagation uses gates. Their text, and the tests of both, are in [`explore`](crate::explore::gates).

use super::{Cfg, Dominators};
use crate::ir::{Block, Func, Op, Value};

/// With more blocks between a join and its immediate dominator, the join gets no gates.
pub const MAX_BLOCKS: usize = 32;
/// With more gates, a join gets none.
pub const MAX_GATES: usize = 8;
/// With more edges into a block, or out of a `br_table`, joins near it get no gates.
const MAX_EDGES: usize = 64;

/// A node of the gates of a join. Nodes are named by their index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Gate {
    /// ⊤: the join is not reached on this path.
    Never,
    /// Control arrives by the edge with this index in the join's predecessors.
    Edge(u32),
    /// The branch at the end of `block` decides.
    If {
        /// The block of the branch.
        block: Block,
        /// Its condition.
        condition: Value,
        /// The node if the condition is non-zero, and the node if it is zero.
        arms: [u32; 2],
    },
    /// The `br_table` at the end of `block` decides.
    Table {
        /// Its block.
        block: Block,
        /// Its index.
        index: Value,
        /// The nodes by the value of the index; the last is the default.
        arms: Vec<u32>,
    },
}

/// The gates over the forward edges into one join. Each node comes after those to which it refers, and the root is
/// last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gating {
    /// The nodes.
    pub nodes: Vec<Gate>,
}

/// Scratch memory for finding gates in one function.
#[derive(Debug)]
pub struct Gates {
    /// The node of a block of the current region, and the region in which it was written.
    node: Vec<(u32, u32)>,
    regions: u32,
    /// The nodes of the current block's successors.
    arms: Vec<u32>,
    /// The blocks of the current region.
    region: Vec<Block>,
}

/// The node of a block whose gates are not known yet.
const PENDING: u32 = u32::MAX;
/// The first node of all gates.
const NEVER: u32 = 0;

impl Gates {
    /// For a function with this many blocks.
    pub fn new(num_blocks: usize) -> Gates {
        Gates { node: vec![(0, 0); num_blocks], regions: 0, arms: Vec::new(), region: Vec::new() }
    }

    /// The gates of `join` over the edges that do not come from blocks it dominates, or `None` if it gets none.
    pub fn of(&mut self, func: &Func<'_>, cfg: &Cfg, dom: &Dominators, join: Block) -> Option<Gating> {
        let top = dom.idom(join)?;
        self.find_region(func, cfg, dom, join, top)?;
        // Postorder: the successors of a block come before it, except along the back edges of loops in the region.
        self.region.sort_unstable_by_key(|&block| std::cmp::Reverse(cfg.position(block)));
        self.region.push(top);
        let mut gating = Gating { nodes: Vec::with_capacity(2 * self.region.len() + 2) };
        gating.nodes.push(Gate::Never);
        let mut gates = 0;
        for i in 0..self.region.len() {
            let block = self.region[i];
            self.find_arms(func, cfg, dom, (block, join, top), &mut gating)?;
            let node = gating.gate(func, block, &self.arms);
            gates += usize::from(matches!(gating.nodes[node as usize], Gate::If { .. } | Gate::Table { .. }));
            if gates > MAX_GATES {
                return None;
            }
            self.node[block.index()] = (self.regions, node);
            if block == top {
                gating.nodes.truncate(node as usize + 1);
            }
        }
        Some(gating)
    }

    /// Finds the blocks on paths from `top` to `join`, both excluded, and marks them as pending.
    fn find_region(&mut self, func: &Func<'_>, cfg: &Cfg, dom: &Dominators, join: Block, top: Block) -> Option<()> {
        self.regions += 1;
        self.region.clear();
        let mut next = 0;
        let mut at = join;
        loop {
            let preds = &func.block(at).preds;
            if preds.len() > MAX_EDGES {
                return None;
            }
            for &pred in preds.iter().filter(|&&pred| cfg.is_reachable(pred) && !(at == join && dom.dominates(join, pred))) {
                if pred == join {
                    // The join leads back into the region.
                    return None;
                }
                if pred != top && self.node[pred.index()].0 != self.regions {
                    self.node[pred.index()] = (self.regions, PENDING);
                    self.region.push(pred);
                }
            }
            if self.region.len() > MAX_BLOCKS {
                return None;
            }
            let Some(&block) = self.region.get(next) else { return Some(()) };
            (at, next) = (block, next + 1);
        }
    }

    /// Finds the nodes of the successors of `block`; `None` if the region has a cycle without a header.
    fn find_arms(
        &mut self,
        func: &Func<'_>,
        cfg: &Cfg,
        dom: &Dominators,
        (block, join, top): (Block, Block, Block),
        gating: &mut Gating,
    ) -> Option<()> {
        let succs = &func.block(block).succs;
        // No condition says whether a call throws.
        if succs.len() > MAX_EDGES || func.exceptional_edges(block) > 0 {
            return None;
        }
        let mut edges = func.block(join).preds.iter().enumerate().filter(|&(_, &pred)| pred == block);
        self.arms.clear();
        for &succ in succs {
            let node = if succ == join {
                gating.nodes.push(Gate::Edge(edges.next()?.0 as u32));
                gating.nodes.len() as u32 - 1
            } else if succ == top || self.node[succ.index()].0 != self.regions {
                NEVER
            } else if cfg.position(succ) > cfg.position(block) {
                self.node[succ.index()].1
            } else if dom.dominates(succ, block) {
                NEVER
            } else {
                return None;
            };
            self.arms.push(node);
        }
        Some(())
    }
}

impl Gating {
    /// The node of a block with these arms.
    fn gate(&mut self, func: &Func<'_>, block: Block, arms: &[u32]) -> u32 {
        let mut taken = arms.iter().copied().filter(|&arm| arm != NEVER);
        let Some(first) = taken.next() else { return NEVER };
        if taken.all(|arm| arm == first) {
            return first;
        }
        let terminator = func.terminator(block).expect("a block with successors has a terminator");
        let decides = func.args(terminator)[0];
        self.nodes.push(match *arms {
            [then, other] if func.op(terminator) == Op::Branch => Gate::If { block, condition: decides, arms: [then, other] },
            _ => Gate::Table { block, index: decides, arms: arms.to_vec() },
        });
        self.nodes.len() as u32 - 1
    }

    /// The node to which all others belong.
    pub fn root(&self) -> u32 {
        self.nodes.len() as u32 - 1
    }
}
