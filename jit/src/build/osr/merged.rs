//! An OSR body that holds everything once.
//!
//! Translation starts at the outermost loop around the entry, and what stands before that is walked for the types on the operand
//! stack only. The headers of the loops around the entry have no edge from outside, or only one from inside the outermost of them,
//! and yet they are reached, from behind the entry. What nothing comes back to is taken out in the end.
//!
//! Two things differ from the ordinary form until the entry has been passed:
//! - A local is unchanged at the header of such a loop only if *none* of them assigns it, since the code before the
//!   entry runs after it, on the next round of an outer loop. Then its value is the one in the frame.
//! - An operand below a block that may hold the entry is there in two ways, computed on the path through the code and
//!   found in the frame. It becomes a variable, [`Operand::Slot`], read where it is popped.

use super::super::control::{Frame, param_type};
use super::super::{Builder, Operand};
use super::prefix::Prefix;
use crate::ir::{Block, Op, Type};
use crate::request::Refusal;
use weir_bytecode::instrs::BlockType;
use weir_bytecode::sidetable::LocalSet;
use weir_bytecode::{FuncBody, Imm, Instr, Instrs};

/// The region of the loops around the entry, and of the loop of the entry itself.
pub(in crate::build) const ENCLOSING: u32 = u32::MAX;

/// What is known of the entry.
pub(in crate::build) struct Merged<'m> {
    /// The `loop` opcodes around it and its own, ascending.
    loops: Box<[u32]>,
    /// Whether it has been reached.
    pub entered: bool,
    /// What the outermost loop around the entry assigns, and so any of them.
    assigned_locals: &'m LocalSet,
    /// Variables from here on are operands,
    operands: u32,
    /// and operands below these are below that loop. Nothing ever assigns them.
    base: u32,
}

impl<'m> Merged<'m> {
    /// The entry at the last of these loops.
    pub(super) fn new(body: &'m FuncBody, loops: &[u32]) -> Merged<'m> {
        let outermost = body.loop_at(loops[0]).expect("it is one of the body's");
        let operands = body.locals.len() as u32;
        Merged { loops: loops.into(), entered: false, assigned_locals: &outermost.assigned, operands, base: 0 }
    }

    fn pc(&self) -> u32 {
        self.loops[self.loops.len() - 1]
    }

    /// Whether the entry is from `open` to `end`.
    pub fn within(&self, open: u32, end: u32) -> bool {
        (open..end).contains(&self.pc())
    }

    /// Whether a loop around the entry may write `variable`.
    pub fn assigned(&self, variable: u32) -> bool {
        match variable.checked_sub(self.operands) {
            Some(operand) => operand >= self.base,
            None => self.assigned_locals.contains(variable),
        }
    }
}

impl<'m> Builder<'_, 'm> {
    /// Sets up the state at the loop at `outermost`, and opens it. Returns what follows.
    pub(super) fn enter_merged(&mut self, outermost: u32) -> Result<Instrs<'m>, Refusal> {
        let prefix = Prefix::walk(self.module, self.body, outermost)?;
        self.frames = prefix.frames;
        self.stack = prefix.operands.into_iter().map(Operand::Slot).collect();
        let mut instrs = Instrs::new(self.module, outermost, self.body.end);
        let Some(Instr { imm: Imm::Block(ty), .. }) = instrs.next() else { unreachable!("there is a `loop`") };
        let base = (self.stack.len() - ty.arity(self.module).0) as u32;
        if let Some(merged) = self.vars.osr.as_mut().and_then(|osr| osr.merged.as_mut()) {
            merged.base = base;
        }
        self.block = None;
        self.pc = outermost;
        self.open_loop(ty);
        Ok(instrs)
    }

    /// What is known of the entry, if the form is this one.
    pub(in crate::build) fn merged(&self) -> Option<&Merged<'m>> {
        self.vars.osr.as_ref()?.merged.as_ref()
    }

    /// If the loop at hand is the one of the entry, adds the edge from the entry block to its header. Returns the
    /// edge's arguments.
    pub(in crate::build) fn osr_edge(&mut self, header: Block, ty: BlockType) -> Option<u32> {
        let pc = self.pc;
        self.vars.osr.as_mut()?.merged.as_mut().filter(|merged| merged.pc() == pc)?.entered = true;
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

    /// The region of the loop at hand, and the block whose variables pass through it. `from` leads to the loop.
    pub(in crate::build) fn region(&self, from: Option<Block>) -> (Block, u32) {
        if self.merged().is_some_and(|merged| merged.loops.binary_search(&self.pc).is_ok()) {
            return (Block::ENTRY, ENCLOSING);
        }
        let index = self.body.loops.partition_point(|info| info.pc < self.pc);
        (from.expect("a loop is opened in live code"), index as u32)
    }

    /// Before a block is opened that may hold the entry: makes variables of the operands below it.
    pub(in crate::build) fn operands_to_slots(&mut self) {
        if self.merged().is_none_or(|merged| self.pc > merged.pc()) {
            return;
        }
        // Those below the innermost block became variables when that was opened.
        let height = self.frames.last().map_or(0, Frame::height);
        for i in height..self.stack.len() {
            if let Operand::Value(value) = self.stack[i] {
                self.ssa.write_variable(self.slot_variable(i), self.here(), value);
                self.stack[i] = Operand::Slot(self.func.ty(value));
            }
        }
    }
}
