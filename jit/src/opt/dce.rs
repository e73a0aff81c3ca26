//! Dead code elimination: removes instructions whose value is not needed.
//!
//! Instructions with effects, instructions that may trap, terminators, and all values used by live instructions are
//! live. All others are removed, including cycles of phis.
//!
//! ```text
//! v1: i32 = add v0, v0
//! v2: i32 = mul v1, v1      →
//! return v0                    return v0
//! ```
//!
//! It runs last because all other passes leave dead code. For rewrite fuel it is a single rewrite, because removing
//! only some of the dead instructions could leave uses of removed values. Cost: O(instructions + uses).

use super::pass::{Analysis, Changed, Context, Pass};
use crate::ir::Func;
use bumpalo::collections::Vec as BumpVec;

/// Dead code elimination.
pub const PASS: Pass = Pass { name: "dce", run, needs: &[], keeps: Analysis::OF_BLOCKS };

fn run(func: &mut Func<'_>, cx: &Context<'_>) -> Changed {
    let needed = cx.scratch.alloc_slice_fill_copy(func.num_values(), false);
    let mut work = BumpVec::with_capacity_in(func.num_values(), &cx.scratch);
    let mut all = 0;
    for block in func.blocks() {
        let insts = &func.block(block).insts;
        all += insts.len();
        for &value in insts.iter().filter(|&&value| !func.op(value).is_removable()) {
            needed[value.index()] = true;
            work.push(value);
        }
    }
    let mut kept = work.len();
    while let Some(value) = work.pop() {
        if !cx.goes_on(1) {
            return Changed(0);
        }
        for &arg in func.args(value) {
            if !std::mem::replace(&mut needed[arg.index()], true) {
                work.push(arg);
                kept += 1;
            }
        }
    }
    let dead = all - kept;
    if dead == 0 || !cx.spend() {
        return Changed(0);
    }
    for block in func.blocks() {
        let insts = &mut func.block_mut(block).insts;
        if !insts.iter().all(|value| needed[value.index()]) {
            insts.retain(|value| needed[value.index()]);
        }
    }
    Changed(dead as u32)
}
