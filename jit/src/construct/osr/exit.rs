//! Leaving an OSR body at a loop header for other code, whose convention is that of an OSR body.
//!
//! ```text
//! header: left = osr_tick work; branch left < 0, ask, on
//! ask:    target = osr_target loop; branch target != 0, leave, on
//! leave:  osr_store slot, value …; osr_exit target
//! on:     the rest of the header
//! ```
//!
//! Every local is stored, whether it will be read or not, so that all of them are live at these headers. Bodies that can be
//! left run for a bounded time, so that this matters little.

use super::super::builder::Builder;
use super::state::frame_slot;
use crate::analysis::{Cfg, frequency::work_inside};
use crate::ir::{Block, Func, Op, Probability, Type, Value};

impl Builder<'_, '_> {
    /// If the body can be left at the loop at the current pc, whose header is the current block, adds the exit.
    pub(in crate::construct) fn leave_at_header(&mut self) {
        if self.exits.binary_search(&self.pc).is_err() {
            return;
        }
        let Ok(index) = self.body.loops.binary_search_by_key(&self.pc, |info| info.pc) else { return };
        let work = self.body.branches[self.body.loops[index].stp as usize].drop.min(i32::MAX as u32);
        let zero = self.constant(Type::I64, 0);
        let left = self.emit(Op::OsrTick, Type::I64, 0, work.into(), &[]);
        let ran_out = self.emit(Op::LtS, Type::I32, 0, 0, &[left, zero]);
        let header = self.branch_rarely(ran_out);
        let ask = self.continue_in_new_block(header);
        let target = self.emit(Op::OsrTarget, Type::I64, 0, index as u64, &[]);
        let found = self.emit(Op::Ne, Type::I32, 0, 0, &[target, zero]);
        self.terminate(Op::Branch, 0, 0, &[found]);
        self.continue_in_new_block(ask);
        self.store_frame();
        self.terminate(Op::OsrExit, 0, index as u64, &[target]);
        let on = self.func.create_block();
        self.func.add_edge(header, on);
        self.func.add_edge(ask, on);
        self.ssa.seal_block(&mut self.func, &mut self.vars, on);
        self.block = Some(on);
    }

    /// Ends the current block with a branch whose first successor is unlikely; returns the block.
    fn branch_rarely(&mut self, condition: Value) -> Block {
        let block = self.here();
        let branch = self.emit(Op::Branch, Type::Void, 0, 0, &[condition]);
        self.func.set_probability(branch, Some(Probability::of_counts(0, 1)));
        self.func.extend(block, &self.insts);
        self.insts.clear();
        block
    }

    /// Stores all locals and operands to their slots in the interpreter's frame.
    fn store_frame(&mut self) {
        let block = self.here();
        for (local, &ty) in (0..).zip(&self.body.locals) {
            let value = self.ssa.read_variable(&mut self.func, &mut self.vars, local, block, ty.into());
            self.emit(Op::OsrStore, Type::Void, 0, frame_slot(self.body, local), &[value]);
        }
        // In the peeled form, an operand below the entry has never been assigned, but frames of callees may have overwritten its
        // slot.
        for i in 0..self.stack.len() {
            let value = self.operand(i);
            let slot = frame_slot(self.body, self.slot_variable(i));
            self.emit(Op::OsrStore, Type::Void, 0, slot, &[value]);
        }
    }
}

/// An instruction of SSA takes about this many bytes of bytecode.
const BYTES: f32 = 3.0;
/// The most work that is estimated for an iteration.
const MOST_WORK: u64 = 1 << 20;

/// Adds the work of loops inside to that of an iteration, at each loop header at which an OSR body can be left. Construction takes the latter from
/// validation, without these loops, which count their own where the code ticks in all loops: here only some do.
pub fn weigh_ticks(func: &mut Func<'_>) {
    let tick = |block: Block| func.block(block).insts.iter().copied().find(|&value| func.op(value) == Op::OsrTick);
    let (headers, ticks): (Vec<Block>, Vec<Value>) = func.blocks().filter_map(|block| Some((block, tick(block)?))).unzip();
    if headers.is_empty() {
        return;
    }
    let work = work_inside(func, &Cfg::compute(func), &headers);
    for (tick, work) in ticks.into_iter().zip(work) {
        let imm = &mut func.inst_mut(tick).imm;
        // Deep nests have more work than a `u64` holds.
        *imm = (*imm).max(MOST_WORK.min(imm.saturating_add((BYTES * work) as u64)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse;
    use bumpalo::Bump;
    use std::fmt::Write;

    /// The work of an iteration of `depth` loops in each other, of which only the outermost ticks, after [`weigh_ticks`]. It was 15.
    fn work(depth: usize) -> u64 {
        let mut text = String::from("func 0 (i32)\nb0:\n v0: i32 = param 0\n jump b1\nb1:\n v1: i64 = osr_tick 15\n jump b2\n");
        (2..=depth).for_each(|header| writeln!(text, "b{header}:\n poll\n jump b{}", header + 1).unwrap());
        (1..=depth).for_each(|left| {
            let latch = depth + left;
            writeln!(text, "b{latch}:\n branch v0, b{}, b{}", depth + 1 - left, latch + 1).unwrap();
        });
        writeln!(text, "b{}:\n return", 2 * depth + 1).unwrap();
        let arena = Bump::new();
        let mut func = parse(&arena, &text).unwrap();
        weigh_ticks(&mut func);
        let block = func.block(Block(1));
        func.inst(block.insts[0]).imm
    }

    #[test]
    fn a_deep_nest_has_the_most_work() {
        assert_eq!(work(1), 15);
        assert!((16..MOST_WORK).contains(&work(3)));
        assert_eq!(work(30), MOST_WORK);
        // More than a `u64`, and than an `f32`, holds.
        assert_eq!(work(100), MOST_WORK);
    }
}
