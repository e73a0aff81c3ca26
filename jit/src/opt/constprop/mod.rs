//! Gated constant propagation: finds values that are constant on all paths, and branches that always go one way.
//!
//! The analysis is optimistic and conditional: values are constant and edges never taken until the contrary is found
//! (Wegman, Zadeck, "Constant Propagation with Conditional Branches", 1991). The lattice value is not just a constant
//! but a decision tree over at most two predicates, and operations distribute over it (after Stoltz, Wolfe, Gerlek
//! 1994; Dovgalyuk's distribution over gates with a common predicate):
//!
//! ```text
//! b0: branch v0, b1, b2                     a = γ(v0, 2, 4)
//! b3: v5: i32 = phi b1: 2, b2: 4            b = γ(v0, 1, 3)
//!     v6: i32 = phi b1: 1, b2: 3            a > b = γ(v0, 1, 1) = 1
//!     v7: i32 = gt_s v5, v6            →    v7: i32 = const 1
//! ```
//!
//! Correctness: a tree claims that *at every point where its value may be used*, the value is the one that the tree
//! gives for the current truth of its predicates. No predicate may therefore change between the value's computation and
//! its use. A value that does not dominate a predicate's leaves is computed after them, and again whenever they are: if
//! control could pass a leaf and then reach a use without computing the value, it could do so the first time too.
//! Operations preserve this property, and phis establish it by projecting out every predicate whose defining block is
//! dominated by the phi's block. No other property of loops is needed: predicates that vary in a loop are dominated by
//! its header, and those that do not vary hold across its phis.
//!
//! Afterwards constants replace the values that equal them, a phi that equals a predicate is replaced by that
//! predicate, and a condition that depends on one predicate tests that predicate. Branches on constants are left to the
//! pass after this one. It runs after value numbering, which makes predicates equal. Cost: O(instructions) steps on
//! trees of constant size, with a budget. If the budget is exceeded, the analysis runs again without predicates, and in
//! huge functions as a single sweep.

mod layout;
mod lists;
mod numbers;
mod predicates;
mod solve;
#[cfg(test)]
#[expect(clippy::wildcard_enum_match_arm, reason = "an expectation that does not fit a new operation fails")]
mod tests;
mod tree;

pub use solve::{Proved, Solution, solve};
pub use tree::{Leaf, Tree};

use super::pass::{Analysis, Changed, Context, Pass};
use crate::analysis::Dominators;
use crate::ir::{Block, Effect, Func, Op, Type, Value};
use crate::settings::PropagationLimits;
use weir_contract::stats::Counters;

/// Gated constant propagation.
pub const PASS: Pass = Pass {
    name: "constprop",
    run,
    needs: &[Analysis::Cfg, Analysis::Dominators, Analysis::DefBlocks],
    keeps: Analysis::OF_BLOCKS,
};

fn run(func: &mut Func<'_>, cx: &Context<'_>) -> Changed {
    // In straight-line code, construction and `simplify` have folded constants.
    if cx.cfg().order().len() == 1 && !has_select(func) {
        return Changed(0);
    }
    let solution = solve(&cx.scratch, func, cx.cfg(), cx.dom(), cx.def_blocks(), cx.options.limits, &cx.meter);
    if !cx.goes_on(0) {
        return Changed(0);
    }
    count(func, cx, &solution);
    let mut rewriter = Rewriter { func, cx, dom: cx.dom(), known: solution, changed: 0 };
    for &block in cx.cfg().order() {
        if !cx.goes_on(1) {
            break;
        }
        if rewriter.known.may_rewrite(block) {
            rewriter.block(block);
        }
    }
    let Rewriter { changed, .. } = rewriter;
    if changed > 0 {
        func.settle();
    }
    Changed(changed)
}

/// Counts the facts that only gates prove. Few functions have provable facts; only these are solved again without gates.
fn count(func: &Func<'_>, cx: &Context<'_>, solution: &Solution<'_>) {
    let proved = solution.proved(func, cx.cfg());
    if proved == Proved::default() || solution.predicates_allowed() == 0 {
        return;
    }
    let limits = PropagationLimits { predicates: 0, ..cx.options.limits };
    let plain = solve(&cx.scratch, func, cx.cfg(), cx.dom(), cx.def_blocks(), limits, &cx.meter).proved(func, cx.cfg());
    let mut counted = Counters::default();
    counted.gated_constants = proved.constants.saturating_sub(plain.constants);
    counted.gated_branches = proved.branches.saturating_sub(plain.branches);
    counted.gated_blocks = proved.blocks.saturating_sub(plain.blocks);
    cx.count(counted);
}

fn has_select(func: &Func<'_>) -> bool {
    func.block(Block::ENTRY).insts.iter().any(|&value| func.op(value) == Op::Select)
}

/// The number of values that compute a predicate and are compared with another one that does. The first of them dominate the most blocks.
const MAX_COMPUTERS: usize = 32;

struct Rewriter<'r, 's, 'a, 'c> {
    func: &'r mut Func<'a>,
    cx: &'r Context<'c>,
    dom: &'r Dominators,
    known: Solution<'s>,
    changed: u32,
}

impl Rewriter<'_, '_, '_, '_> {
    fn spend(&mut self) -> bool {
        let may = self.cx.spend();
        self.changed += u32::from(may);
        may
    }

    fn block(&mut self, block: Block) {
        let mut constants = Vec::new();
        for i in 0..self.func.block(block).insts.len() {
            let value = self.func.block(block).insts[i];
            let inst = self.func.inst(value);
            let op = inst.op;
            if op == Op::Const || op != Op::Select && self.known.tree(value) == Tree::BOTTOM {
                continue;
            }
            if op == Op::Branch {
                self.branch(block, value, &mut constants);
            } else if op == Op::BrTable {
                let index = inst.args[0];
                if let Some(bits) = self.known.forest.constant(self.known.tree(index))
                    && self.func.as_const(index).is_none()
                    && self.spend()
                {
                    self.set_operand(value, bits, &mut constants);
                }
            } else if matches!(op.effect(), Effect::Pure | Effect::Trap) {
                self.value(block, value, &mut constants);
            }
        }
        if !constants.is_empty() {
            // After the instructions that must be first in the block.
            let leads =
                |&&value: &&Value| matches!(self.func.op(value), Op::Phi | Op::Param | Op::OsrSlot | Op::Catch | Op::Result);
            let at = self.func.block(block).insts.iter().take_while(leads).count();
            self.func.insert(block, &constants.iter().map(|&constant| (at, constant)).collect::<Vec<_>>());
        }
    }

    /// Replaces the terminator's condition by a constant, which is added to `constants`.
    fn set_operand(&mut self, terminator: Value, bits: u64, constants: &mut Vec<Value>) {
        let pc = self.func.inst(terminator).pc;
        let constant = self.func.create(Op::Const, Type::I32, pc, 0, bits, &[]);
        self.func.set_args(terminator, &[constant]);
        constants.push(constant);
    }

    fn value(&mut self, block: Block, value: Value, constants: &mut Vec<Value>) {
        let tree = self.known.tree(value);
        if tree == Tree::BOTTOM {
            return self.select(block, value);
        }
        let (op, ty, pc) = (self.func.op(value), self.func.ty(value), self.func.inst(value).pc);
        if let Some(bits) = self.known.forest.constant(tree) {
            if !self.spend() {
                return;
            }
            if op == Op::Phi {
                let constant = self.func.create(Op::Const, ty, pc, 0, bits, &[]);
                constants.push(constant);
                self.func.replace(value, constant);
            } else {
                self.func.become_op(value, Op::Const, bits, &[]);
            }
            return;
        }
        if ty == Type::I32
            && let Some(truth) = self.truth(value, tree)
            && self.func.find(truth) != value
            && self.spend()
        {
            return self.func.replace(value, truth);
        }
        self.select(block, value);
    }

    /// An existing comparison that equals `value`, whose tree is `tree`.
    fn truth(&self, value: Value, tree: Tree) -> Option<Value> {
        let (var, arms) = self.known.forest.as_test(tree)?;
        let inverted = match arms {
            [Tree::ZERO, Tree::ONE] => false,
            [Tree::ONE, Tree::ZERO] => true,
            _ => return None,
        };
        self.earlier_computers(value, var)
            .find(|&(other, by)| by == inverted && self.func.op(other).is_boolean())
            .map(|(other, _)| other)
    }

    /// Other values that compute predicate `var`, or its inverse, before `value`, among the first that do.
    fn earlier_computers(&self, value: Value, var: u32) -> impl Iterator<Item = (Value, bool)> {
        let all = self.known.predicates.computed_by(var).take(MAX_COMPUTERS);
        all.filter(move |&(other, _)| other != value && self.known.layout.comes_before(self.dom, other, value))
    }

    /// Replaces a `select` whose condition is known by one of its arms.
    fn select(&mut self, block: Block, value: Value) {
        if self.func.op(value) != Op::Select {
            return;
        }
        let &[condition, then, other] = self.func.args(value) else { return };
        let tree = self.known.condition(self.func, self.dom, condition, block);
        let truth = self.constant_truth(tree);
        if let Some(holds) = truth
            && self.spend()
        {
            self.func.replace(value, if holds { then } else { other });
        }
    }

    /// The truth of a condition, if it is the same at all reachable leaves.
    fn constant_truth(&mut self, tree: Tree) -> Option<bool> {
        let forest = &self.known.forest;
        let holds = forest.any(tree, &mut |leaf| matches!(leaf, Leaf::Bottom | Leaf::Const(1..)));
        let fails = forest.any(tree, &mut |leaf| matches!(leaf, Leaf::Bottom | Leaf::Const(0)));
        (holds != fails).then_some(holds)
    }

    fn branch(&mut self, block: Block, branch: Value, constants: &mut Vec<Value>) {
        let condition = self.func.args(branch)[0];
        if self.func.as_const(condition).is_some() {
            return;
        }
        let unknown = self.known.tree(condition) == Tree::BOTTOM;
        let (tree, truth) = match unknown {
            true => (Tree::BOTTOM, self.known.implied_truth(self.func, self.dom, condition, block)),
            false => {
                let tree = self.known.condition(self.func, self.dom, condition, block);
                (tree, self.constant_truth(tree))
            }
        };
        if let Some(holds) = truth {
            if self.spend() {
                self.set_operand(branch, u64::from(holds), constants);
            }
            return;
        }
        if unknown || self.func.op(condition).is_boolean() {
            return;
        }
        let Some((var, [zero, one])) = self.known.forest.as_test(tree) else { return };
        let (Some(zero), Some(one)) = (self.constant_truth(zero), self.constant_truth(one)) else { return };
        debug_assert_ne!(zero, one, "a test with equal arms is no test");
        // A value that needs no exchange of successors is preferred.
        let fits = self.earlier_computers(branch, var).filter(|&(other, _)| other != condition);
        let Some((tested, inverted)) = fits.min_by_key(|&(_, inverted)| inverted == one) else { return };
        let swap = inverted == one;
        let succs = &self.func.block(block).succs;
        if (swap && succs[0] == succs[1]) || !self.spend() {
            return;
        }
        self.func.set_args(branch, &[tested]);
        if swap {
            self.func.swap_arms(block);
        }
    }
}
