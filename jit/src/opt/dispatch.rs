//! Dispatch threading: an edge into a block that only dispatches goes directly to the label that it selects, if that is known on the edge.
//!
//! ```text
//! b1: preds b0, b4                             b1: preds b0
//!     v2: i32 = phi b0: v0, b4: 3                  br_table v0 [b2, b3, b4, b5]
//!     v3: i64 = phi b0: v1, b4: v9       →         …
//!     br_table v2 [b2, b3, b4, b5]             b5: preds b1, b4
//! b5: … v3 …                                       v10: i64 = phi b1: v1, b4: v9
//! b4: … jump b1                                    … v10 …
//! ```
//!
//! Where the control flow of a source has no form in Wasm's structure, its compiler numbers the blocks of a function, and jumps by setting a
//! local and going back to the head of a loop around a `br_table`. Go's compiler makes all its jumps so, since a suspended goroutine resumes in
//! the middle of a function; LLVM's does for graphs that are not reducible. All values of all blocks meet at that head, and no loop of the
//! source is a loop: Go programs take 0.8 of their time without this pass (decision 087).
//!
//! A block qualifies if it holds nothing but phis, a poll, a fuel charge, and a `br_table` whose index is one of the phis. An edge that passes a
//! constant as index is redirected; its source gets copies of poll and charge, so that each path has them as before, after the same effects.
//! Then the block no longer dominates its labels, and the uses of its phis are renamed: the value at a place is found backwards from there, as
//! construction does, with a phi where several values meet (Braun et al., "Simple and Efficient Construction of Static Single Assignment
//! Form", 2013). Other values dominate their uses as before, because a new path is an old one without the block. The result may be
//! irreducible, where the block's own labels lead into the middle of a loop; no analysis needs a reducible graph.
//!
//! It runs before all passes that look at values, to which it shows the function's own loops. Cost: O(instructions + arguments), and for each phi
//! that is used O(edges); functions with more blocks or phis than the constants below allow stay as they are.

use super::cfg_edit::{copy_before_terminator, remove_unreachable};
use super::pass::{Analysis, Changed, Context, Pass};
use crate::ir::{Block, Func, Op, Value};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Dispatch threading.
pub const PASS: Pass = Pass { name: "dispatch", run, needs: &[Analysis::Cfg], keeps: &[] };

/// The most blocks of a function, and the most labels of its dispatching block. Dominators of a graph that is not reducible take quadratic time
/// in the worst case, and so does finding the edges to the labels.
const MAX_BLOCKS: usize = 4096;
/// The most phis of the block times blocks of the function: as many phis may be added.
const MAX_PHIS: usize = 1 << 18;

fn run(func: &mut Func<'_>, cx: &Context<'_>) -> Changed {
    let order = cx.cfg().order();
    if order.len() > MAX_BLOCKS {
        return Changed(0);
    }
    // Only the block with the most edges is treated: a second one would need another walk over the function, and a new graph.
    let dispatching = order.iter().copied().filter(|&block| is_dispatch(func, block));
    let Some(block) = dispatching.max_by_key(|&block| func.block(block).preds.len()) else { return Changed(0) };
    let fits = func.block(block).succs.len() <= MAX_BLOCKS && func.phis(block).count() * order.len() <= MAX_PHIS;
    let edges = if fits { known_edges(func, cx, block) } else { Vec::new() };
    if edges.is_empty() || thread(func, cx, block, &edges).is_none() {
        return Changed(0);
    }
    remove_unreachable(func);
    Changed(edges.len() as u32)
}

/// Whether the block only dispatches.
fn is_dispatch(func: &Func<'_>, block: Block) -> bool {
    let Some(last) = func.terminator(block).filter(|&last| func.op(last) == Op::BrTable) else { return false };
    let index = func.args(last)[0];
    let (phis, rest) = parts(func, block);
    phis.contains(&index) && rest.iter().all(|&value| matches!(func.op(value), Op::Poll | Op::Fuel))
}

/// Returns the phis of a block, and the instructions between the phis and the terminator.
fn parts<'f>(func: &'f Func<'_>, block: Block) -> (&'f [Value], &'f [Value]) {
    let insts = &func.block(block).insts;
    let (phis, rest) = insts.split_at(func.phis(block).count());
    (phis, &rest[..rest.len() - 1])
}

/// An edge into a dispatching block on which the index is known.
struct Known {
    /// The index of the edge among those into the block.
    edge: usize,
    /// The label that is dispatched to.
    label: usize,
}

/// The edges that are redirected. Each is the only one from its block, which can hold the copies.
fn known_edges(func: &Func<'_>, cx: &Context<'_>, block: Block) -> Vec<Known> {
    let data = func.block(block);
    let Some(&index) = data.insts.last().and_then(|&last| func.args(last).first()) else { return Vec::new() };
    let known = data.preds.iter().zip(func.args(index)).enumerate().filter_map(|(edge, (&pred, &index))| {
        let label = (func.as_const(index)? as usize).min(data.succs.len() - 1);
        let jumps = func.block(pred).succs.len() == 1 && pred != block;
        (jumps && data.succs[label] != block && cx.cfg().is_reachable(pred)).then_some(Known { edge, label })
    });
    known.take_while(|_| cx.spend()).collect()
}

/// Redirects these edges into `block`. Returns `None` if the compilation is to end; the function is incomplete then.
fn thread(func: &mut Func<'_>, cx: &Context<'_>, block: Block, edges: &[Known]) -> Option<()> {
    let (phis, effects) = parts(func, block);
    let (phis, effects) = (phis.to_vec(), effects.to_vec());
    let mut names = Names::new(block, &phis);
    let mut by_target: BTreeMap<Block, Vec<&Known>> = BTreeMap::new();
    for known in edges {
        by_target.entry(func.block(block).succs[known.label]).or_default().push(known);
    }
    for (target, edges) in by_target {
        let (_, by_block) = func.edge(block, edges[0].label);
        // Each list of arguments is extended once.
        let of_target: Vec<Value> = func.phis(target).collect();
        for phi in of_target {
            let by_block = func.args(phi)[by_block];
            let number = names.number(by_block);
            let passed = |known: &&Known| number.map_or(by_block, |number| func.args(phis[number])[known.edge]);
            let args: Vec<Value> = func.args(phi).iter().copied().chain(edges.iter().map(passed)).collect();
            if !cx.goes_on(args.len()) {
                return None;
            }
            func.set_args(phi, &args);
        }
        for &&Known { edge, .. } in &edges {
            if !cx.goes_on(phis.len() + effects.len()) {
                return None;
            }
            let pred = func.block(block).preds[edge];
            copy_before_terminator(func, &effects, pred);
            let passed = phis.iter().map(|&phi| func.args(phi)[edge]).collect();
            names.passed.insert((target, func.block(target).preds.len()), passed);
            func.push_pred(target, pred);
            func.block_mut(pred).succs[0] = target;
        }
    }
    let (mut next, mut removed) = (0, edges.iter().map(|known| known.edge).peekable());
    func.retain_preds(block, |_| {
        next += 1;
        removed.next_if_eq(&(next - 1)).is_none()
    });
    forget_counts(func, block, edges);
    names.rename_uses(func, cx)
}

/// Nearly all counts of these labels came from the redirected edges. One is left, because the block may still lead there.
fn forget_counts(func: &mut Func<'_>, block: Block, edges: &[Known]) {
    let (Some(counts), Some(table)) = (func.table_counts(block), func.terminator(block)) else { return };
    let mut counts = counts.to_vec();
    edges.iter().for_each(|known| counts[known.label] = counts[known.label].min(1));
    func.set_table_counts(table, &counts);
}

/// The values of a block's phis elsewhere, when it no longer dominates all their uses.
struct Names {
    block: Block,
    phis: Vec<Value>,
    numbers: FxHashMap<Value, usize>,
    /// The value at the end of a block, by block and number of the phi.
    at_end: FxHashMap<(Block, usize), Value>,
    /// What a redirected edge passes for each phi, by its target and its index there.
    passed: FxHashMap<(Block, usize), Vec<Value>>,
    /// New phis whose arguments are missing, with their block and number.
    pending: Vec<(Value, Block, usize)>,
    /// All new phis.
    new: BTreeMap<Block, Vec<Value>>,
}

impl Names {
    fn new(block: Block, phis: &[Value]) -> Names {
        Names {
            block,
            phis: phis.to_vec(),
            numbers: phis.iter().copied().zip(0..).collect(),
            at_end: phis.iter().copied().enumerate().map(|(number, phi)| ((block, number), phi)).collect(),
            passed: FxHashMap::default(),
            pending: Vec::new(),
            new: BTreeMap::new(),
        }
    }

    fn number(&self, value: Value) -> Option<usize> {
        self.numbers.get(&value).copied()
    }

    /// Returns `None` if the compilation is to end.
    fn rename_uses(&mut self, func: &mut Func<'_>, cx: &Context<'_>) -> Option<()> {
        for &block in cx.cfg().order() {
            let users = func.block(block).insts.to_vec();
            for user in users {
                if !cx.goes_on(1 + func.args(user).len()) {
                    return None;
                }
                let is_phi = func.op(user) == Op::Phi;
                if block == self.block && !is_phi {
                    continue;
                }
                for k in 0..func.args(user).len() {
                    let at = if is_phi { func.block(block).preds[k] } else { block };
                    let arg = func.args(user)[k];
                    func.inst_mut(user).args[k] = self.value_at(func, cx, arg, at)?;
                }
            }
        }
        while let Some((phi, block, number)) = self.pending.pop() {
            let preds = func.block(block).preds.to_vec();
            if !cx.goes_on(preds.len()) {
                return None;
            }
            let arg = |(k, pred)| {
                let passed = self.passed.get(&(block, k)).map_or(self.phis[number], |passed| passed[number]);
                self.value_at(func, cx, passed, pred)
            };
            let args: Vec<Value> = preds.into_iter().enumerate().map(arg).collect::<Option<_>>()?;
            func.set_args(phi, &args);
        }
        self.new.iter().for_each(|(&block, phis)| func.prepend(block, phis));
        Some(())
    }

    /// What `value` means at the end of a block, if it is one of the phis: the last definition on the way there. Going back through blocks with one
    /// predecessor ends: such a cycle without the dispatching block would not have been reachable.
    fn value_at(&mut self, func: &mut Func<'_>, cx: &Context<'_>, value: Value, block: Block) -> Option<Value> {
        let Some(number) = self.number(value).filter(|_| cx.cfg().is_reachable(block)) else { return Some(value) };
        let (mut at, mut passed_by) = (block, Vec::new());
        let found = loop {
            if let Some(&found) = self.at_end.get(&(at, number)) {
                break found;
            }
            passed_by.push(at);
            match func.block(at).preds[..] {
                [only] => at = only,
                _ => {
                    let phi = func.create(Op::Phi, func.ty(value), func.inst(value).pc, 0, 0, &[]);
                    self.new.entry(at).or_default().push(phi);
                    self.pending.push((phi, at, number));
                    break phi;
                }
            }
        };
        let steps = passed_by.len();
        self.at_end.extend(passed_by.into_iter().map(|block| ((block, number), found)));
        cx.goes_on(steps).then_some(found)
    }
}
