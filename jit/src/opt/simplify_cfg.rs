//! Removes branches on constants, unreachable blocks, and jumps between blocks that always follow each other.
//!
//! ```text
//! b0: v1: i32 = const 1            b0: v1: i32 = const 1
//!     branch v1, b1, b2                v3: i32 = add v0, v1
//! b1: v3: i32 = add v0, v1    →        return v3
//!     return v3
//! b2: return v0
//! ```
//!
//! It runs after the passes that make conditions constant, and before the one that removes redundant phis, because phis
//! lose arguments here. Cost: O(instructions + edges).

use super::cfg_edit::remove_unreachable;
use super::pass::{Changed, Context, Pass};
use crate::ir::family::{Family, Terminator};
use crate::ir::{Block, Func, Op};

/// Branch folding.
pub const PASS: Pass = Pass { name: "simplify_cfg", run, needs: &[], keeps: &[] };

fn run(func: &mut Func<'_>, cx: &Context<'_>) -> Changed {
    let constant = func.blocks().filter_map(|block| Some((block, constant_successor(func, block).filter(|_| cx.spend())?)));
    let decided: Vec<(Block, usize)> = constant.collect();
    let mut changed = decided.len() as u32;
    if changed > 0 {
        jump(func, &decided);
        remove_unreachable(func);
    }
    changed += merge_chains(func, cx);
    Changed(changed)
}

/// Turns terminators into jumps to the chosen successors and removes all other edges of those blocks. All are changed
/// at once, because many of the blocks may share a successor.
fn jump(func: &mut Func<'_>, decided: &[(Block, usize)]) {
    let mut affected = vec![false; func.num_blocks()];
    // For each changed block, the chosen successor and the number of its earlier edges to the same block.
    let mut kept = vec![None; func.num_blocks()];
    for &(block, succ) in decided {
        let succs = &func.block(block).succs;
        let target = succs[succ];
        kept[block.index()] = Some((target, succs[..succ].iter().filter(|&&other| other == target).count()));
        for succ in succs {
            affected[succ.index()] = true;
        }
    }
    let mut seen = vec![0; func.num_blocks()];
    for target in func.blocks().filter(|target| affected[target.index()]) {
        let preds = func.block(target).preds.to_vec();
        func.retain_preds(target, |pred| match kept[pred.index()] {
            Some((to, earlier)) => {
                seen[pred.index()] += 1;
                to == target && earlier + 1 == seen[pred.index()]
            }
            None => true,
        });
        for pred in preds {
            seen[pred.index()] = 0;
        }
    }
    for block in func.blocks() {
        if let Some((target, _)) = kept[block.index()] {
            let terminator = func.terminator(block).expect("a block with successors has a terminator");
            func.become_op(terminator, Op::Jump, 0, &[]);
            func.block_mut(block).succs.clear();
            func.push_succ(block, target);
        }
    }
}

/// For a block with more incoming edges, none is looked for among them.
const MANY: usize = 64;

/// The index of the only successor that the branch at the end of `block` can take.
fn constant_successor(func: &Func<'_>, block: Block) -> Option<usize> {
    let terminator = func.terminator(block)?;
    let succs = &func.block(block).succs;
    let &index = func.args(terminator).first()?;
    let Family::Terminator(op) = func.op(terminator).family() else { return None };
    let constant = func.as_const(index);
    match op {
        Terminator::Branch if let Some(condition) = constant => return Some(usize::from(condition == 0)),
        Terminator::BrTable if let Some(index) = constant => return Some(succs.len().saturating_sub(1).min(index as usize)),
        Terminator::Branch | Terminator::BrTable => {}
        Terminator::Jump | Terminator::Return | Terminator::ReturnCall | Terminator::ReturnCallIndirect => return None,
        Terminator::ReturnCallRef | Terminator::OsrExit | Terminator::Trap => return None,
        Terminator::Throw | Terminator::ThrowRef | Terminator::Try => return None,
    }
    if succs.iter().any(|succ| *succ != succs[0]) {
        return None;
    }
    // All edges lead to one block, whose phis do not distinguish them. If that block has many edges, finding these would be
    // quadratic, for little gain.
    let preds = &func.block(succs[0]).preds;
    if preds.len() > MANY {
        return None;
    }
    let alike = func.phis(succs[0]).all(|phi| {
        let mut args = func.args(phi).iter().zip(preds).filter(|&(_, &pred)| pred == block).map(|(arg, _)| arg);
        let first = args.next();
        args.all(|arg| Some(arg) == first)
    });
    alike.then_some(0)
}

/// Appends each block to its predecessor if it is the only successor and that is the only predecessor.
fn merge_chains(func: &mut Func<'_>, cx: &Context<'_>) -> u32 {
    let mut merged = 0;
    // The block into which each block was merged, once there is one. Predecessors are renamed at the end, because a block may
    // be the successor of many chains.
    let mut merged_into: Vec<Block> = Vec::new();
    for block in func.blocks() {
        if !cx.goes_on(1 + func.block(block).insts.len()) {
            break;
        }
        // Only at heads of chains, so that every block is moved once.
        if follows_its_pred(func, block) {
            continue;
        }
        while let Some(next) = jump_target(func, block)
            && func.block(next).preds.len() == 1
            && next != block
            && cx.spend()
        {
            append(func, block, next);
            if merged == 0 {
                merged_into.extend(func.blocks());
            }
            merged_into[next.index()] = block;
            merged += 1;
        }
    }
    if merged > 0 {
        for block in func.blocks() {
            for pred in &mut func.block_mut(block).preds {
                *pred = merged_into[pred.index()];
            }
        }
        func.settle();
    }
    merged
}

/// Whether `block` has one predecessor, and that has no other successor.
fn follows_its_pred(func: &Func<'_>, block: Block) -> bool {
    match func.block(block).preds[..] {
        [pred] => pred != block && jump_target(func, pred).is_some(),
        _ => false,
    }
}

/// The only successor of `block`, unless it is a landing block.
fn jump_target(func: &Func<'_>, block: Block) -> Option<Block> {
    match func.block(block).succs[..] {
        [next] => (func.exceptional_edges(block) == 0).then_some(next),
        _ => None,
    }
}

/// Moves the contents of `next` to the end of `block`, its only predecessor.
fn append(func: &mut Func<'_>, block: Block, next: Block) {
    let data = func.block_mut(next);
    data.preds.clear();
    let insts = std::mem::take(&mut data.insts);
    let succs = std::mem::take(&mut data.succs);
    func.block_mut(block).insts.pop();
    func.block_mut(block).succs = succs;
    for &value in &insts {
        if func.op(value) == Op::Phi {
            func.replace(value, func.args(value)[0]);
        } else {
            func.push(block, value);
        }
    }
}
