//! The state of the two forms of OSR bodies, and the places of their variables in the interpreter's frame.

use super::super::frames::Edge;
use weir_bytecode::FuncBody;
use weir_bytecode::sidetable::LocalSet;
use weir_contract::FRAME_HEADER;

/// Returns the slot, in words of 8 bytes, of the interpreter's frame of `body` that holds `variable` at the entry.
pub(in crate::construct) fn frame_slot(body: &FuncBody, variable: u32) -> u64 {
    let words = 1 + u64::from(body.wide);
    let header = if variable < body.locals.len() as u32 { 0 } else { FRAME_HEADER };
    words * u64::from(variable) + u64::from(header)
}

/// The region of the loops around the entry, and of the loop of the entry itself.
pub(in crate::construct) const ENCLOSING: u32 = u32::MAX;

/// The state of the merged form.
pub(in crate::construct) struct Merged<'m> {
    /// The `loop` opcodes around it and its own, ascending.
    pub loops: Vec<u32>,
    /// Whether translation has reached the entry.
    pub entered: bool,
    /// The locals that the outermost loop around the entry assigns, and therefore any of them.
    pub assigned_locals: &'m LocalSet,
    /// Operands with a lower number are below the outermost of these loops, and are never assigned.
    pub base: u32,
}

impl Merged<'_> {
    pub fn pc(&self) -> u32 {
        self.loops[self.loops.len() - 1]
    }

    /// Returns whether the entry is between `open` and `end`.
    pub fn within(&self, open: u32, end: u32) -> bool {
        (open..end).contains(&self.pc())
    }

    /// Returns whether a loop around the entry may write `variable` of this body.
    pub fn assigned(&self, body: &FuncBody, variable: u32) -> bool {
        match variable.checked_sub(body.locals.len() as u32) {
            Some(operand) => operand >= self.base,
            None => self.assigned_locals.contains(variable),
        }
    }
}

/// The progress of the peeled form.
#[derive(Default)]
pub(in crate::construct) struct Peeling {
    /// The loop that is translated next.
    pub next_loop: Option<u32>,
    /// The total number of bytes by which translation has gone back.
    pub retranslated: u32,
    /// The exits of the first iterations of open loops, each with the number of frames around it.
    pub exits: Vec<(usize, Edge)>,
}
