//! Removes instructions whose value nothing needs.
//!
//! Needed is what acts on the world, may trap or ends a block, and what a needed instruction uses; everything else
//! goes, cycles of phis included.
//!
//! ```text
//! v1: i32 = add v0, v0
//! v2: i32 = mul v1, v1      →
//! return v0                    return v0
//! ```
//!
//! It runs last because every other pass leaves dead code for it. It is a single rewrite as far as rewrite fuel goes,
//! as no part of it can be left out safely. Cost: O(instructions + uses).

use super::{Analysis, Changed, Context, Pass};
use crate::ir::Func;

/// Dead code elimination.
pub const PASS: Pass = Pass { name: "dce", run, needs: &[], keeps: Analysis::OF_BLOCKS };

fn run(func: &mut Func<'_>, cx: &Context<'_>) -> Changed {
    let mut needed = vec![false; func.num_values()];
    let mut work = Vec::with_capacity(func.num_values());
    for block in func.blocks() {
        for &value in func.block(block).insts.iter().filter(|&&value| !func.op(value).is_removable()) {
            needed[value.index()] = true;
            work.push(value);
        }
    }
    while let Some(value) = work.pop() {
        for &arg in func.args(value) {
            if !std::mem::replace(&mut needed[arg.index()], true) {
                work.push(arg);
            }
        }
    }
    let dead = func.blocks().flat_map(|block| &func.block(block).insts).filter(|value| !needed[value.index()]).count();
    if dead == 0 || !cx.spend() {
        return Changed(0);
    }
    for block in func.blocks() {
        func.block_mut(block).insts.retain(|value| needed[value.index()]);
    }
    Changed(dead as u32)
}
