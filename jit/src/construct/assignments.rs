//! Assignments to locals by position. A local that a `block` or an `if` does not assign passes unchanged from the block
//! where that region opens to the join at its end.
//!
//! The walk sees every assignment in a region before the region's join. Assignments are kept per local, newest first. A
//! query examines at most [`STEPS`] of them, from the newest: most reads are of locals that were written recently.

use crate::slow_growth;

/// Assignments that a query examines before it assumes that the local is assigned.
const STEPS: u32 = 8;

const NONE: u32 = u32::MAX;

/// The assignments so far, and the regions that end with a join.
#[derive(Debug)]
pub(super) struct Assignments {
    /// Bytecode offsets of the beginning and the end of each region.
    spans: Vec<(u32, u32)>,
    /// Index of each local's newest assignment, `NONE` if there is none.
    newest: Vec<u32>,
    /// Bytecode offset of each assignment, and the index of the previous one to the same local.
    assignments: Vec<(u32, u32)>,
}

impl Assignments {
    /// Creates an empty list for this many locals.
    pub(super) fn new(locals: usize) -> Assignments {
        Assignments { spans: Vec::new(), newest: vec![NONE; locals], assignments: Vec::new() }
    }

    /// Records an assignment at `pc`, after all others.
    pub(super) fn assign(&mut self, local: u32, pc: u32) {
        let before = std::mem::replace(&mut self.newest[local as usize], self.assignments.len() as u32);
        slow_growth::push(&mut self.assignments, (pc, before));
    }

    /// Adds the region from `open` to `end` and returns its index.
    pub(super) fn region(&mut self, open: u32, end: u32) -> u32 {
        slow_growth::push(&mut self.spans, (open, end));
        self.spans.len() as u32 - 1
    }

    /// Returns whether the region may assign `variable`. Variables other than locals count as assigned.
    pub(super) fn may_assign(&self, region: u32, variable: u32) -> bool {
        let (open, end) = self.spans[region as usize];
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
