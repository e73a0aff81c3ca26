//! Removes branches that go one way only, the blocks that are then unreachable, and jumps between blocks that always
//! follow one another.
//!
//! ```text
//! b0: v1: i32 = const 1            b0: v1: i32 = const 1
//!     branch v1, b1, b2                v3: i32 = add v0, v1
//! b1: v3: i32 = add v0, v1    →        return v3
//!     return v3
//! b2: return v0
//! ```
//!
//! It runs after the passes that make conditions constant, and before the one that cleans up phis that lose arguments
//! here. Cost: O(instructions + edges).

use super::{Changed, Context, Pass};
use crate::analysis::Cfg;
use crate::ir::{Block, Func, Op};
use bumpalo::collections::Vec;

/// Branch folding.
pub const PASS: Pass = Pass { name: "branches", run, needs: &[], keeps: &[] };

fn run(func: &mut Func<'_>, cx: &Context<'_>) -> Changed {
    let mut changed = 0;
    for block in func.blocks() {
        if let Some(succ) = only_way(func, block)
            && cx.spend()
        {
            func.jump_along(block, succ);
            changed += 1;
        }
    }
    if changed > 0 {
        remove_unreachable(func);
    }
    changed += merge_chains(func, cx);
    Changed(changed)
}

/// The one successor, by its index, that the branch at the end of `block` can take.
fn only_way(func: &Func<'_>, block: Block) -> Option<usize> {
    let terminator = func.terminator(block)?;
    let succs = &func.block(block).succs;
    let &index = func.args(terminator).first()?;
    match (func.op(terminator), func.as_const(index)) {
        (Op::Branch, Some(condition)) => Some(usize::from(condition == 0)),
        (Op::BrTable, Some(index)) => Some(succs.len().saturating_sub(1).min(index as usize)),
        // All edges lead to one block, whose phis cannot tell them apart.
        (Op::Branch | Op::BrTable, None) if succs.iter().all(|succ| *succ == succs[0]) => {
            let preds = &func.block(succs[0]).preds;
            let alike = func.phis(succs[0]).all(|phi| {
                let mut args = func.args(phi).iter().zip(preds).filter(|&(_, &pred)| pred == block).map(|(arg, _)| arg);
                let first = args.next();
                args.all(|arg| Some(arg) == first)
            });
            alike.then_some(0)
        }
        _ => None,
    }
}

/// Empties the blocks that the entry does not reach.
pub fn remove_unreachable(func: &mut Func<'_>) {
    let cfg = Cfg::compute(func);
    for block in func.blocks() {
        if cfg.is_reachable(block) {
            func.retain_preds(block, |_, pred| cfg.is_reachable(pred));
        } else {
            let data = func.block_mut(block);
            data.insts.clear();
            data.succs.clear();
            data.preds.clear();
        }
    }
}

/// Appends each block to its predecessor where neither has another neighbour on that side.
fn merge_chains(func: &mut Func<'_>, cx: &Context<'_>) -> u32 {
    let mut merged = 0;
    for block in func.blocks() {
        // Only heads of chains, so that every block is moved once.
        if func.block(block).insts.is_empty() || follows_its_pred(func, block) {
            continue;
        }
        while let [next] = func.block(block).succs[..]
            && follows_its_pred(func, next)
            && cx.spend()
        {
            append(func, block, next);
            merged += 1;
        }
    }
    if merged > 0 {
        func.settle();
    }
    merged
}

/// Whether `block` has one predecessor, which goes nowhere else.
fn follows_its_pred(func: &Func<'_>, block: Block) -> bool {
    match func.block(block).preds[..] {
        [pred] => pred != block && func.block(pred).succs.len() == 1,
        _ => false,
    }
}

/// Moves the contents of `next` to the end of `block`, its only predecessor.
fn append(func: &mut Func<'_>, block: Block, next: Block) {
    let arena = func.arena;
    let data = func.block_mut(next);
    data.preds.clear();
    let insts = std::mem::replace(&mut data.insts, Vec::new_in(arena));
    let succs = std::mem::replace(&mut data.succs, Vec::new_in(arena));
    for &succ in &succs {
        for pred in func.block_mut(succ).preds.iter_mut().filter(|pred| **pred == next) {
            *pred = block;
        }
    }
    func.block_mut(block).insts.pop();
    func.block_mut(block).succs = succs;
    for value in insts {
        match func.op(value) {
            Op::Phi => func.replace(value, func.args(value)[0]),
            _ => func.block_mut(block).insts.push(value),
        }
    }
}
