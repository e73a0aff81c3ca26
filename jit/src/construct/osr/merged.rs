//! An OSR body in which all code is translated once.
//!
//! Translation starts at the outermost loop around the entry. The code before it is only walked for the types on the
//! operand stack. The headers of the loops around the entry have no edge from outside, or only one from inside the
//! outermost of them. They are nevertheless reached, from the code after the entry. Unreachable blocks are removed at
//! the end.
//!
//! Two things differ from the ordinary form until the entry has been passed:
//! - A local is unchanged at the header of such a loop only if *none* of the loops assigns it, because the code before
//!   the entry runs after the entry in the next iteration of an outer loop. Its value is then the one in the frame.
//! - An operand below a block that may contain the entry has two sources: on the path through the code it is computed,
//!   at the entry it is in the frame. It becomes a variable, [`Operand::Slot`], read where it is popped.

use super::super::builder::{Builder, Operand};
use super::super::frames::{Frame, param_type};
use super::state::{ENCLOSING, Merged};
use crate::ir::{Block, Op, Type};
use weir_bytecode::instrs::BlockType;
use weir_bytecode::{Imm, Instr, Instrs};

impl<'m> Builder<'_, 'm> {
    /// Opens the outermost of these loops, with which `instrs` begin. The last one is the entry's.
    pub(super) fn open_merged(&mut self, loops: Vec<u32>, instrs: &mut Instrs<'m>) {
        let Some(Instr { pc, imm: Imm::Block(ty), .. }) = instrs.next() else { unreachable!("there is a `loop`") };
        let outermost = self.body.loop_at(pc).expect("it is one of the body's");
        let base = outermost.height - ty.arity(self.module).0 as u32;
        self.vars.merged = Some(Merged { loops, entered: false, assigned_locals: &outermost.assigned, base });
        self.block = None;
        self.pc = pc;
        self.open_loop(ty);
    }

    /// If the current loop is the one of the entry, adds the edge from the entry block to its header. Returns the
    /// edge's arguments.
    pub(in crate::construct) fn osr_edge(&mut self, header: Block, ty: BlockType) -> Option<u32> {
        let pc = self.pc;
        self.vars.merged.as_mut().filter(|merged| merged.pc() == pc)?.entered = true;
        self.func.append(Block::ENTRY, Op::Jump, Type::Void, pc, 0, 0, &[]);
        self.func.add_edge(Block::ENTRY, header);
        let start = self.label_args.len() as u32;
        for i in 0..ty.arity(self.module).0 {
            let (variable, ty) = (self.slot_variable(self.stack.len() + i), param_type(self.module, ty, i));
            let value = self.ssa.read_variable(&mut self.func, &mut self.vars, variable, Block::ENTRY, ty);
            self.label_args.push(value);
        }
        Some(start)
    }

    /// Returns the region of the current loop, and the block whose variables pass through it. `from` leads to the loop.
    pub(in crate::construct) fn region(&self, from: Option<Block>) -> (Block, u32) {
        if self.vars.merged.as_ref().is_some_and(|merged| merged.loops.binary_search(&self.pc).is_ok()) {
            return (Block::ENTRY, ENCLOSING);
        }
        let index = self.body.loops.partition_point(|info| info.pc < self.pc);
        (from.expect("a loop is opened in live code"), index as u32)
    }

    /// Makes variables of the operands below a block that may contain the entry, before the block is opened.
    pub(in crate::construct) fn operands_to_slots(&mut self) {
        if self.vars.merged.as_ref().is_none_or(|merged| self.pc > merged.pc()) {
            return;
        }
        // Those below the innermost block became variables when it was opened.
        let height = self.frames.last().map_or(0, Frame::height);
        for i in height..self.stack.len() {
            if let Operand::Value(value) = self.stack[i] {
                self.ssa.write_variable(self.slot_variable(i), self.here(), value);
                self.stack[i] = Operand::Slot(self.func.ty(value));
            }
        }
    }
}
