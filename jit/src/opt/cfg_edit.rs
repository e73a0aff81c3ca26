//! Changes of blocks and edges that several passes make. They are shared here because a pass seldom calls another one: inlining simplifies what it copies,
//! and `vectorise` what it has made.

use crate::analysis::Cfg;
use crate::ir::{Block, Func, Type, Value};

/// Empties the blocks that the entry does not reach.
pub fn remove_unreachable(func: &mut Func<'_>) {
    let cfg = Cfg::compute(func);
    for block in func.blocks() {
        if cfg.is_reachable(block) {
            func.retain_preds(block, |pred| cfg.is_reachable(pred));
        } else {
            empty(func, block);
        }
    }
}

/// Empties a block that no other block leads to.
pub fn empty(func: &mut Func<'_>, block: Block) {
    let data = func.block_mut(block);
    data.insts.clear();
    data.succs.clear();
    data.preds.clear();
}

/// Inserts copies of charges of fuel and polls before the terminator of a block.
pub fn copy_before_terminator(func: &mut Func<'_>, effects: &[Value], block: Block) {
    let before = func.block(block).insts.len() - 1;
    let mut copies = Vec::with_capacity(effects.len());
    for &effect in effects {
        let (op, pc, imm) = (func.op(effect), func.inst(effect).pc, func.inst(effect).imm);
        copies.push((before, func.create(op, Type::Void, pc, 0, imm, &[])));
    }
    func.insert(block, &copies);
}
