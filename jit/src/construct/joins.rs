//! Which locals pass unchanged through a `block` or an `if`, from the block where it opens to the join at its end.
//!
//! The walk sees every assignment before the join of the structure that holds it. Assignments are kept per local, newest
//! first, and a question walks back from the newest at most [`STEPS`] of them: reads are mostly of
//! locals that were written not long ago.

use crate::slow_growth;

/// Assignments examined before one is assumed.
const STEPS: u32 = 8;

const NONE: u32 = u32::MAX;

/// The assignments so far, and the structures that have a join.
#[derive(Debug)]
pub(super) struct Joins {
    /// Bytecode offsets from the opening of a structure to its end.
    spans: Vec<(u32, u32)>,
    /// Index of each local's newest assignment, `NONE` if there is none.
    newest: Vec<u32>,
    /// Bytecode offset of each assignment, and the index of the one before it to the same local.
    assignments: Vec<(u32, u32)>,
}

impl Joins {
    /// Nothing is assigned yet, of this many locals.
    pub(super) fn new(locals: usize) -> Joins {
        Joins { spans: Vec::new(), newest: vec![NONE; locals], assignments: Vec::new() }
    }

    /// Records an assignment at `pc`, after all others.
    pub(super) fn assign(&mut self, local: u32, pc: u32) {
        let before = std::mem::replace(&mut self.newest[local as usize], self.assignments.len() as u32);
        slow_growth::push(&mut self.assignments, (pc, before));
    }

    /// A new join, of the structure from `open` to `end`.
    pub(super) fn join(&mut self, open: u32, end: u32) -> u32 {
        slow_growth::push(&mut self.spans, (open, end));
        self.spans.len() as u32 - 1
    }

    /// Whether the structure with this join may assign `variable`. Other variables count as assigned.
    pub(super) fn assigned(&self, join: u32, variable: u32) -> bool {
        let (open, end) = self.spans[join as usize];
        let Some(&newest) = self.newest.get(variable as usize) else { return true };
        let mut at = newest;
        for _ in 0..STEPS {
            let Some(&(pc, before)) = self.assignments.get(at as usize) else { return false };
            if pc < end {
                return pc >= open;
            }
            at = before;
        }
        true
    }
}
