//! What the two forms of an OSR body remember, and where its variables are in the interpreter's frame.

use super::super::frames::Edge;
use weir_bytecode::FuncBody;
use weir_bytecode::sidetable::LocalSet;
use weir_contract::FRAME_HEADER;

/// The slot, in words of 8 bytes, of the interpreter's frame of `body` that holds `variable` at the entry.
pub(in crate::construct) fn frame_slot(body: &FuncBody, variable: u32) -> u64 {
    let words = 1 + u64::from(body.wide);
    let header = if variable < body.locals.len() as u32 { 0 } else { FRAME_HEADER };
    words * u64::from(variable) + u64::from(header)
}

/// The region of the loops around the entry, and of the loop of the entry itself.
pub(in crate::construct) const ENCLOSING: u32 = u32::MAX;

/// What is known of the entry.
pub(in crate::construct) struct Merged<'m> {
    /// The `loop` opcodes around it and its own, ascending.
    pub loops: Vec<u32>,
    /// Whether it has been reached.
    pub entered: bool,
    /// What the outermost loop around the entry assigns, and so any of them.
    pub assigned_locals: &'m LocalSet,
    /// Operands below these are below that loop. Nothing ever assigns them.
    pub base: u32,
}

impl Merged<'_> {
    pub fn pc(&self) -> u32 {
        self.loops[self.loops.len() - 1]
    }

    /// Whether the entry is from `open` to `end`.
    pub fn within(&self, open: u32, end: u32) -> bool {
        (open..end).contains(&self.pc())
    }

    /// Whether a loop around the entry may write `variable` of this body.
    pub fn assigned(&self, body: &FuncBody, variable: u32) -> bool {
        match variable.checked_sub(body.locals.len() as u32) {
            Some(operand) => operand >= self.base,
            None => self.assigned_locals.contains(variable),
        }
    }
}

/// How far the rounds have come.
#[derive(Default)]
pub(in crate::construct) struct Rounds {
    /// The loop that is translated next.
    pub again: Option<u32>,
    /// Bytes of code by which translation has gone back so far.
    pub back: u32,
    /// The exits of the first round of loops that are open, with the number of frames around them.
    pub exits: Vec<(usize, Edge)>,
}
