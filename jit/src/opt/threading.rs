//! Jump threading: lets an edge bypass a branch whose direction is known on that edge.
//!
//! ```text
//! b1: jump b3                              b1: jump b4
//! b2: jump b3                              b2: jump b5
//! b3: v2: i32 = phi b1: 1, b2: 0     →
//!     branch v2, b4, b5
//! ```
//!
//! A block qualifies if it holds nothing but phis, a fuel charge and a branch, and if its phis are used only by that
//! branch and by the phis of its successors, so no other use needs a new definition. A branch is decided on an edge if
//! its condition is a constant there, or was branched on earlier on the way to the edge. Loop headers do not qualify:
//! an edge into the middle of a loop would make it irreducible. An edge that bypasses a fuel charge gets a copy of it,
//! so that every path is charged as before, after the same effects; only a predecessor with one successor can hold the
//! copy.
//!
//! Dominators are not recomputed after a change. A block still dominates the same blocks, unless an edge bypasses it;
//! the conditions of bypassed blocks are no longer used.
//!
//! It runs after constant propagation, which replaces conditions by the predicates they depend on, and before the
//! passes that remove unreachable blocks and redundant phis. Cost: O(instructions + edges of the blocks that qualify),
//! because edges are moved only between blocks with few edges. Bodík, Gupta, Soffa, "Interprocedural Conditional Branch
//! Elimination" (1997) discuss the general form.

use super::cfg_edit::{copy_before_terminator, remove_unreachable};
use super::pass::{Analysis, Changed, Context, Pass};
use crate::analysis::{Cfg, DefBlocks, Dominators};
use crate::ir::{Block, Func, Op, Value};

/// Jump threading.
pub const PASS: Pass = Pass { name: "threading", run, needs: &[Analysis::Cfg, Analysis::Dominators], keeps: &[] };

/// The maximum number of edges into a block that are examined.
const MAX_EDGES: usize = 32;
/// An edge is moved only between blocks with at most this many edges on the side that changes.
const MAX_NEIGHBOURS: usize = 256;
/// The number of blocks up the dominator tree in which a branch on a condition is looked for.
const MAX_STEPS: usize = 8;

fn run(func: &mut Func<'_>, cx: &Context<'_>) -> Changed {
    let (cfg, dom) = (cx.cfg(), cx.dom());
    let mut candidate: Vec<bool> = func.blocks().map(|block| is_candidate(func, cfg, dom, block)).collect();
    if !candidate.contains(&true) {
        return Changed(0);
    }
    exclude_used_elsewhere(func, cfg, &mut candidate);
    let mut changed = 0;
    let mut bypassed = vec![false; func.num_blocks()];
    for &block in cfg.order().iter().filter(|block| candidate[block.index()]) {
        if !cx.goes_on(1 + func.block(block).preds.len()) {
            break;
        }
        changed += thread(func, cx, block, &mut bypassed);
    }
    if changed > 0 {
        remove_unreachable(func);
    }
    Changed(changed)
}

/// Whether `block` is a join with phis and a two-way branch, and not a loop header.
fn is_candidate(func: &Func<'_>, cfg: &Cfg, dom: &Dominators, block: Block) -> bool {
    let data = func.block(block);
    let branches = |value: &Value| func.op(*value) == Op::Branch;
    (2..=MAX_EDGES).contains(&data.preds.len())
        && data.insts.last().is_some_and(branches)
        && data.succs[0] != data.succs[1]
        && func.phis(block).count() + usize::from(charge(func, block).is_some()) + 1 == data.insts.len()
        && cfg.is_reachable(block)
        && data.preds.iter().all(|&pred| cfg.is_reachable(pred) && !dom.dominates(block, pred))
}

/// The fuel charge right before the terminator of `block`.
fn charge(func: &Func<'_>, block: Block) -> Option<Value> {
    let last = func.block(block).insts.iter().rev().nth(1).copied();
    last.filter(|&value| func.op(value) == Op::Fuel)
}

/// Removes candidates whose phis have users besides their branch and the phis of their successors.
fn exclude_used_elsewhere(func: &Func<'_>, cfg: &Cfg, candidate: &mut [bool]) {
    let def_blocks = DefBlocks::compute(func);
    for &block in cfg.order() {
        let data = func.block(block);
        for &user in &data.insts {
            for (k, &arg) in func.args(user).iter().enumerate() {
                // A candidate defines only phis for other blocks.
                let defined = def_blocks.of(arg);
                if !candidate[defined.index()] {
                    continue;
                }
                let used_in = if func.op(user) == Op::Phi { data.preds[k] } else { block };
                let allowed = used_in == defined && matches!(func.op(user), Op::Phi | Op::Branch);
                candidate[defined.index()] = allowed;
            }
        }
    }
}

/// Redirects the edges into `block` on which its branch is decided.
fn thread(func: &mut Func<'_>, cx: &Context<'_>, block: Block, bypassed: &mut [bool]) -> u32 {
    // More edges may have been redirected to this block.
    if func.block(block).preds.len() > MAX_EDGES {
        return 0;
    }
    let (mut threaded, mut k) = (0, 0);
    let charged = charge(func, block).is_some();
    while k < func.block(block).preds.len() {
        let pred = func.block(block).preds[k];
        if func.block(pred).succs.len() > MAX_NEIGHBOURS {
            k += 1;
            continue;
        }
        let edge = edge_from(func, block, k);
        let holds = condition_on_edge(func, cx.dom(), bypassed, block, k, (pred, edge));
        let target = holds.map(|holds| func.block(block).succs[usize::from(!holds)]);
        let can_pay = !charged || func.block(pred).succs.len() == 1;
        // Two edges between the same blocks are distinguished by their order, which a new edge would change.
        let can_take = |target: Block| {
            target != block && !func.block(pred).succs.contains(&target) && func.block(target).preds.len() < MAX_NEIGHBOURS
        };
        match target {
            Some(target) if can_pay && can_take(target) && cx.spend() => {
                redirect(func, block, k, (pred, edge), target);
                bypassed[block.index()] = true;
                threaded += 1;
            }
            _ => k += 1,
        }
    }
    // The profile's counts include executions that no longer reach this block.
    if threaded > 0
        && let Some(branch) = func.terminator(block)
    {
        func.set_probability(branch, None);
    }
    if func.block(block).preds.is_empty() {
        unlink(func, block);
    }
    threaded
}

/// Removes `block`, which has no incoming edges left, from the predecessors of its successors. Otherwise, in a sequence
/// of branches on one condition, each block would keep all earlier ones as predecessors.
fn unlink(func: &mut Func<'_>, block: Block) {
    let few = |succ: &Block| func.block(*succ).preds.len() <= MAX_NEIGHBOURS;
    let succs = func.block(block).succs.to_vec();
    if succs.iter().all(few) {
        succs.into_iter().for_each(|succ| func.retain_preds(succ, |pred| pred != block));
        func.block_mut(block).insts.clear();
        func.block_mut(block).succs.clear();
    }
}

/// The index of the edge into `block` from its predecessor `k` among the successors of that predecessor.
fn edge_from(func: &Func<'_>, block: Block, k: usize) -> usize {
    let preds = &func.block(block).preds;
    let earlier = preds[..k].iter().filter(|&&pred| pred == preds[k]).count();
    let succs = func.block(preds[k]).succs.iter().enumerate().filter(|&(_, &succ)| succ == block);
    succs.map(|(i, _)| i).nth(earlier).expect("an edge is listed at both its ends")
}

/// The truth of the condition of the branch in `block` when `block` is entered by edge `k`, if it is known.
fn condition_on_edge(
    func: &Func<'_>,
    dom: &Dominators,
    bypassed: &[bool],
    block: Block,
    k: usize,
    (pred, edge): (Block, usize),
) -> Option<bool> {
    let branch = func.terminator(block)?;
    let condition = func.args(branch)[0];
    let is_own = func.op(condition) == Op::Phi && func.phis(block).any(|phi| phi == condition);
    let condition = if is_own { func.args(condition)[k] } else { condition };
    if let Some(bits) = func.as_const(condition) {
        return Some(bits != 0);
    }
    let tests = |block: Block| {
        let terminator = func.terminator(block)?;
        (func.op(terminator) == Op::Branch && func.args(terminator)[0] == condition).then_some(())
    };
    if tests(pred).is_some() && func.block(pred).succs[0] != func.block(pred).succs[1] {
        return Some(edge == 0);
    }
    // Walks up from the predecessor: a block with one incoming edge implies the direction of the branch there.
    let mut at = pred;
    for _ in 0..MAX_STEPS {
        let above = dom.idom(at)?;
        // Control on the edge comes through its predecessor, whether other edges bypass that block or not.
        let dominates = at == pred || !bypassed[at.index()];
        if dominates
            && let [only] = func.block(at).preds[..]
            && only == above
            && tests(above).is_some()
        {
            return Some(func.block(above).succs[0] == at);
        }
        at = above;
    }
    None
}

/// Redirects the edge from `pred` into `block`, its predecessor `k`, to `target`, a successor of `block`.
fn redirect(func: &mut Func<'_>, block: Block, k: usize, (pred, edge): (Block, usize), target: Block) {
    let (_, from_block) =
        (0..2).map(|succ| func.edge(block, succ)).find(|&(to, _)| to == target).expect("the target is a successor");
    let phis: Vec<Value> = func.phis(target).collect();
    for phi in phis {
        let passed = func.args(phi)[from_block];
        let is_own = func.phis(block).any(|own| own == passed);
        let arg = if is_own { func.args(passed)[k] } else { passed };
        let args: Vec<Value> = func.args(phi).iter().copied().chain([arg]).collect();
        func.set_args(phi, &args);
    }
    if let Some(charge) = charge(func, block) {
        copy_before_terminator(func, &[charge], pred);
    }
    func.push_pred(target, pred);
    func.block_mut(pred).succs[edge] = target;
    let mut next = 0;
    func.retain_preds(block, |_| {
        next += 1;
        next != k + 1
    });
}
