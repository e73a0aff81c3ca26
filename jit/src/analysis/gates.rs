//! Gates: the conditions that determine the value of a phi.
//!
//! At a join that is not a loop header, `γ(c, a, b)` is `a` if the join is reached with non-zero `c`, else `b`; a
//! `br_table` has one argument per arm, and a `select` is a γ without control flow. At the header of a loop `μ(init,
//! next)` is `init` in the first iteration; `η` is the last value that a loop computes, used outside it. They are found
//! on demand from block SSA, never stored in it (Ottenstein, Ballance, MacCabe, "The Program Dependence Web", 1990;
//! demand-driven as in Stoltz, Wolfe, Gerlek, "Constant Propagation: A Fresh, Demand-Driven Look", 1994).
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
//! between U and J is therefore ⊤: the last iteration does not take it. The statement would be wrong if conditions were
//! evaluated again before control has passed from U to J. That requires a cycle without a header; a join inside one is
//! left without a gate, as are joins that exceed the budget.
//!
//! Cost: O(blocks between U and J), which are at most [`MAX_BLOCKS`].

use super::{Cfg, DefBlocks, Dominators};
use crate::graph::loops::Loops;
use crate::ir::print::at;
use crate::ir::{Block, Func, Op, Value};
use std::fmt::{self, Write};

/// Blocks between a join and its immediate dominator, beyond which it stays ungated.
pub const MAX_BLOCKS: usize = 32;
/// Gates of one join, beyond which it stays ungated.
pub const MAX_GATES: usize = 8;
/// Edges into a block, or out of a `br_table`, beyond which no join near it is gated.
const MAX_EDGES: usize = 64;

/// A node of the gates of a join. Nodes are named by their index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Gate {
    /// ⊤: control does not come to the join this way.
    Never,
    /// Control comes along the edge with this index in the join's predecessors.
    Edge(u32),
    /// The branch that ends `block` decides.
    If {
        /// The block of the branch.
        block: Block,
        /// Its condition.
        condition: Value,
        /// If it is non-zero, and if it is zero.
        arms: [u32; 2],
    },
    /// The `br_table` that ends `block` decides.
    Table {
        /// Its block.
        block: Block,
        /// Its index.
        index: Value,
        /// By the value of the index; the last is the default.
        arms: Vec<u32>,
    },
}

/// The gates over the forward edges into one join: each node after those it refers to, the root last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gating {
    /// The nodes.
    pub nodes: Vec<Gate>,
}

/// Scratch memory for finding gates in one function.
#[derive(Debug)]
pub struct Gates {
    /// Node of a block of the current region, and the region that wrote it.
    node: Vec<(u32, u32)>,
    regions: u32,
    /// Nodes of the successors of the current block.
    arms: Vec<u32>,
    /// The blocks of the current region.
    region: Vec<Block>,
}

/// Node of a block whose gates are not known yet.
const PENDING: u32 = u32::MAX;
/// The node that every gating starts with.
const NEVER: u32 = 0;

impl Gates {
    /// For a function with this many blocks.
    pub fn new(num_blocks: usize) -> Gates {
        Gates { node: vec![(0, 0); num_blocks], regions: 0, arms: Vec::new(), region: Vec::new() }
    }

    /// The gates of `join` over those edges that do not come from blocks it dominates; `None` if it stays ungated.
    pub fn of(&mut self, func: &Func<'_>, cfg: &Cfg, dom: &Dominators, join: Block) -> Option<Gating> {
        let top = dom.idom(join)?;
        self.find_region(func, cfg, dom, join, top)?;
        // Postorder: what a block leads to comes before it, except along the back edges of loops in the region.
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

    /// Finds the blocks on the ways from `top` to `join`, both excluded, and marks them as pending.
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
        if succs.len() > MAX_EDGES {
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
        self.nodes.push(match (func.op(terminator), arms) {
            (Op::Branch, &[then, other]) => Gate::If { block, condition: decides, arms: [then, other] },
            _ => Gate::Table { block, index: decides, arms: arms.to_vec() },
        });
        self.nodes.len() as u32 - 1
    }

    /// Where the bytecode decides, ascending.
    fn pcs(&self, func: &Func<'_>) -> Vec<u32> {
        let blocks = self.nodes.iter().filter_map(|gate| match gate {
            Gate::If { block, .. } | Gate::Table { block, .. } => func.terminator(*block),
            Gate::Never | Gate::Edge(_) => None,
        });
        let mut pcs: Vec<u32> = blocks.map(|terminator| func.inst(terminator).pc).collect();
        pcs.sort_unstable();
        pcs.dedup();
        pcs
    }

    /// The node that all others belong to.
    pub fn root(&self) -> u32 {
        self.nodes.len() as u32 - 1
    }
}

/// Characters of one gated phi, beyond which the rest is left out of the text.
const MAX_TEXT: usize = 400;

/// The gates of a function as text: a line for every phi and every `select`, with the pcs of what decides, then for every
/// loop what it computes for use outside it.
pub fn print(func: &Func<'_>) -> String {
    let mut text = String::new();
    write(&mut text, func).expect("writing to a string does not fail");
    text
}

fn write(text: &mut String, func: &Func<'_>) -> fmt::Result {
    let cfg = Cfg::compute(func);
    let dom = Dominators::compute(func, &cfg);
    let mut gates = Gates::new(func.num_blocks());
    for &block in cfg.order() {
        let gating = func.phis(block).next().and_then(|_| gates.of(func, &cfg, &dom, block));
        let deciding = gating.as_ref().map_or_else(Vec::new, |gating| gating.pcs(func));
        for phi in func.phis(block) {
            let mut line = format!("{block}: {phi} = ");
            write_phi(&mut line, func, &dom, block, phi, gating.as_ref())?;
            writeln!(text, "{}", at(&line, &deciding))?;
        }
        for &value in func.block(block).insts.iter().filter(|&&value| func.op(value) == Op::Select) {
            let args = func.args(value);
            let line = format!("{block}: {value} = γ({}, {}, {})", args[0], args[1], args[2]);
            writeln!(text, "{}", at(&line, &[func.inst(value).pc]))?;
        }
    }
    write_live_out(text, func, &cfg)
}

fn write_phi(
    text: &mut String,
    func: &Func<'_>,
    dom: &Dominators,
    block: Block,
    phi: Value,
    gating: Option<&Gating>,
) -> fmt::Result {
    let args = func.args(phi);
    let preds = &func.block(block).preds;
    let back: Vec<Value> = (0..preds.len()).filter(|&k| dom.dominates(block, preds[k])).map(|k| args[k]).collect();
    if !back.is_empty() {
        write!(text, "μ(")?;
    }
    match gating {
        Some(gating) => write_gate(text, gating, gating.root(), args)?,
        None => {
            let forward = (0..preds.len()).filter(|&k| !dom.dominates(block, preds[k])).map(|k| args[k].to_string());
            write!(text, "φ({})", forward.collect::<Vec<_>>().join(", "))?;
        }
    }
    for value in &back {
        write!(text, ", {value}")?;
    }
    if back.is_empty() { Ok(()) } else { write!(text, ")") }
}

fn write_gate(text: &mut String, gating: &Gating, node: u32, args: &[Value]) -> fmt::Result {
    let (decides, arms) = match &gating.nodes[node as usize] {
        Gate::Never => return write!(text, "⊤"),
        Gate::Edge(k) => return write!(text, "{}", args[*k as usize]),
        Gate::If { condition, arms, .. } => (condition, &arms[..]),
        Gate::Table { index, arms, .. } => (index, &arms[..]),
    };
    if text.len() > MAX_TEXT {
        return write!(text, "…");
    }
    write!(text, "γ({decides}")?;
    for &arm in arms {
        write!(text, ", ")?;
        write_gate(text, gating, arm, args)?;
    }
    write!(text, ")")
}

/// A line `header: η(value)` for each value of a loop that is used outside it.
fn write_live_out(text: &mut String, func: &Func<'_>, cfg: &Cfg) -> fmt::Result {
    let def_blocks = DefBlocks::compute(func);
    let loops = Loops::of(cfg.order().len(), |position| cfg.preds(func, position));
    let around = |block| cfg.position(block).into_iter().flat_map(|position| loops.around(position as u32));
    let mut found = Vec::new();
    for &block in cfg.order() {
        let data = func.block(block);
        for &user in &data.insts {
            for (k, &arg) in func.args(user).iter().enumerate() {
                let used_in = if func.op(user) == Op::Phi { data.preds[k] } else { block };
                let left = around(def_blocks.of(arg)).filter(|&header| around(used_in).all(|other| other != header));
                found.extend(left.map(|header| (cfg.order()[header as usize], arg)));
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
        .iter()
        .try_for_each(|(header, value)| writeln!(text, "{}", at(&format!("{header}: η({value})"), &[func.inst(*value).pc])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse;
    use bumpalo::Bump;

    fn gates(text: &str) -> String {
        let arena = Bump::new();
        print(&parse(&arena, text).unwrap())
    }

    #[test]
    fn arms_that_agree_are_no_gate() {
        let text = "
func 0 (i32, i32) -> i32
b0:
  v0: i32 = param 0
  v1: i32 = param 1
  branch v0, b1, b4
b1:
  branch v1, b2, b3
b2:
  jump b5
b3:
  jump b5
b5:
  jump b6
b4:
  jump b6
b6:
  v2: i32 = phi b5: v0, b4: v1
  return v2
";
        assert_eq!(gates(text), "b6: v2 = γ(v0, v0, v1)\n");
    }

    #[test]
    fn a_loop_with_two_exits_is_gated_by_its_last_iteration() {
        let text = "
func 0 (i32) -> i32
b0:
  v0: i32 = param 0
  v1: i32 = const 1
  jump b1
b1:
  v2: i32 = phi b0: v0, b3: v5
  v3: i32 = and v2, v1
  branch v3, b4, b2
b2:
  v4: i32 = eqz v2
  branch v4, b4, b3
b3:
  v5: i32 = sub v2, v1
  jump b1
b4:
  v6: i32 = phi b1: v0, b2: v1
  return v6
";
        assert_eq!(gates(text), "b1: v2 = μ(v0, v5)\nb4: v6 = γ(v3, v0, v1)\n");
    }

    #[test]
    fn tables_selects_and_values_that_leave_a_loop() {
        let text = "
func 0 (i32) -> i32
b0:
  v0: i32 = param 0
  v1: i32 = const 1
  br_table v0 [b1, b2, b1]
b1:
  jump b3
b2:
  jump b3
b3:
  v2: i32 = phi b1: v0, b2: v1
  v3: i32 = select v0, v2, v1
  jump b4
b4:
  v4: i32 = phi b3: v3, b4: v5
  v5: i32 = sub v4, v1
  branch v5, b4, b5
b5:
  return v5
";
        let expected = "b3: v2 = γ(v0, v0, v1, v0)\nb3: v3 = γ(v0, v2, v1)\nb4: v4 = μ(v3, v5)\nb4: η(v5)\n";
        assert_eq!(gates(text), expected);
    }

    /// b1 and b2 enter one another: a condition in one may be evaluated again before control leaves.
    #[test]
    fn cycles_without_a_header_stay_ungated() {
        let text = "
func 0 (i32, i32) -> i32
b0:
  v0: i32 = param 0
  v1: i32 = param 1
  branch v0, b1, b2
b1:
  v2: i32 = global_get g0
  branch v2, b2, b3
b2:
  v3: i32 = global_get g1
  branch v3, b1, b3
b3:
  v4: i32 = phi b1: v0, b2: v1
  return v4
";
        assert_eq!(gates(text), "b3: v4 = φ(v0, v1)\n");
    }

    #[test]
    fn large_regions_stay_ungated() {
        let mut text = String::from("func 0 (i32) -> i32\nb0:\n  v0: i32 = param 0\n  branch v0, b1, b99\n");
        for i in 1..=40 {
            let next = if i == 40 { 98 } else { i + 1 };
            write!(text, "b{i}:\n  v{i}: i32 = global_get g0\n  branch v{i}, b{next}, b99\n").unwrap();
        }
        let args: String = (1..=40).map(|i| format!(", b{i}: v{i}")).collect();
        write!(text, "b98:\n  return v0\nb99:\n  v99: i32 = phi b0: v0{args}\n  return v99\n").unwrap();
        let expected = (1..=40).map(|i| format!(", v{i}")).collect::<String>();
        assert_eq!(gates(&text), format!("b99: v99 = φ(v0{expected})\n"));
    }
}
