//! OSR bodies: the form of a function that the interpreter enters at a loop, with its frame.
//!
//! The entry block loads the live slots of the frame, each at its first read, and leads to the loop's header. From
//! there, structured code can only return to the loops around the entry. There are two forms of these loops:
//! - [`peeled`]: the code around the entry is translated as the rest of an iteration, and then again as the loop. The
//!   loops nest as they do in the source.
//! - [`merged`]: all code is translated once. The loops around the entry and its own become one loop, all of which
//!   counts as hot as the innermost. It is used if peeling would copy too much code.

mod exit;
mod merged;
mod peeled;
pub(super) mod state;

use super::builder::{Builder, Operand};
use super::exceptions::region_of;
use super::frames::{ElseEntry, Frame, Kind};
use crate::request::Refusal;
pub use exit::weigh_ticks;
use weir_bytecode::instrs::Nesting;
use weir_bytecode::walk::{BlockKind, OpenBlock, Walk};
use weir_bytecode::{FuncBody, Instr, Instrs, Module, Opcode};

impl<'m> Builder<'_, 'm> {
    /// Sets up the state at the loop at `pc`. Returns the instructions to translate first.
    ///
    /// # Errors
    /// There is no such loop, or it is unreachable.
    pub(super) fn enter_osr(&mut self, pc: u32) -> Result<Instrs<'m>, Refusal> {
        let loops = enclosing_loops(self.body, pc).ok_or(Refusal::Untranslated { what: "entry at no loop" })?;
        if self.options.leaves {
            self.exits.clone_from(&loops);
        }
        let peeled = self.is_small(&loops);
        let first = if peeled { pc } else { loops[0] };
        let before = Walk::to(self.module, self.body, first).ok_or(Refusal::Untranslated { what: "entry into dead code" })?;
        self.frames = before.blocks.iter().map(|block| frame_of(self.module, self.body, block)).collect();
        self.stack = before.operands.into_iter().map(|ty| Operand::Slot(ty.into())).collect();
        let mut instrs = Instrs::new(self.module, first, self.body.end);
        self.segment = self.segments_before_loop(first);
        if !peeled {
            self.open_merged(loops, &mut instrs);
        }
        Ok(instrs)
    }

    /// Returns the number of fuel segments that begin before that of the loop at `pc`. One of them may begin with the `loop` opcode: it is
    /// charged where control enters the loop, and so before the opcode is translated in a body that begins with it.
    fn segments_before_loop(&self, pc: u32) -> usize {
        self.body.segments.partition_point(|segment| segment.pc <= pc)
    }

    /// Returns whether the loops, each of which contains the next, may be peeled: the amount of code translated again
    /// is within the limit.
    fn is_small(&self, loops: &[u32]) -> bool {
        let around = &loops[..loops.len() - 1];
        let Some(&outermost) = around.first() else { return true };
        let mut rest = self.options.peel_limit;
        // The opcodes of the open structures.
        let mut open = Vec::new();
        for instr in Instrs::new(self.module, outermost, self.body.end) {
            match instr.op.nesting() {
                Nesting::Open => open.push(instr.pc),
                Nesting::End => {
                    let start = open.pop().expect("validated code nests");
                    if around.binary_search(&start).is_ok() {
                        match rest.checked_sub(instr.pc - start) {
                            Some(less) => rest = less,
                            None => return false,
                        }
                    }
                    if open.is_empty() {
                        return true;
                    }
                }
                Nesting::Else | Nesting::Same => {}
            }
            if instr.pc - outermost > self.options.peel_limit {
                return false;
            }
        }
        true
    }
}

/// The frame of a block around the entry, whose beginning is not translated.
fn frame_of(module: &Module, body: &FuncBody, block: &OpenBlock) -> Frame {
    let kind = match block.kind {
        BlockKind::Function => return Frame::function(),
        BlockKind::Block => Kind::Block,
        BlockKind::Try { pc } => try_frame(module, body, pc),
        BlockKind::Catch { pc, handlers } => Kind::Catch { region: region_of(body, pc), handlers },
        BlockKind::Loop { pc } => Kind::PeeledLoop { pc },
        BlockKind::If => Kind::If(ElseEntry::Dead),
    };
    Frame::new(kind, block.ty, block.height)
}

/// Returns the opcodes of the loop at `pc` and of those that contain it, ascending.
fn enclosing_loops(body: &FuncBody, pc: u32) -> Option<Vec<u32>> {
    let mut info = body.loop_at(pc)?;
    let mut pcs = vec![pc];
    while let Some(parent) = info.parent {
        info = &body.loops[parent as usize];
        pcs.push(info.pc);
    }
    pcs.reverse();
    Some(pcs)
}

/// The kind of the `try_table` or `try` at `pc`.
fn try_frame(module: &Module, body: &FuncBody, pc: u32) -> Kind {
    let region = region_of(body, pc);
    match Instrs::new(module, pc, body.end).next() {
        Some(Instr { op: Opcode::TryTable, .. }) => Kind::TryTable { pc, region },
        _ => Kind::Try { region },
    }
}
