//! An OSR body whose loops nest as in the source: their first iterations are peeled.
//!
//! Translation starts at the entry's loop and continues after it, through the rest of an iteration of each loop around
//! it. The label of such a loop leads forward, to its `end`. From there the loop is translated again, as a loop, and
//! its exits meet those of the first iteration. A nest of depth n therefore contains the innermost loop n times.
//!
//! The operands below the entry are in the frame, and are never assigned.

use super::super::builder::Builder;
use super::super::frames::{Edge, Frame};

impl Builder<'_, '_> {
    /// Ends the first iteration of the loop at `pc`, and goes back to translate the loop, which these edges enter.
    pub(in crate::construct) fn retranslate_loop(&mut self, pc: u32, frame: &Frame, edges: &[Edge]) {
        let (params, results) = frame.ty.arity(self.module);
        if self.block.is_some() {
            let exit = self.fall_through(results);
            self.peeling.exits.push((self.frames.len(), exit));
        }
        self.stack.truncate(frame.height());
        let block = self.enter_new_block(edges);
        self.join_operands(block, edges, params);
        self.peeling.next_loop = Some(pc);
        self.peeling.retranslated += self.pc - pc;
        self.segment = self.segments_before_loop(pc);
    }

    /// Returns the exit of the first iteration of the loop that ends here.
    pub(in crate::construct) fn first_exit(&mut self) -> Option<Edge> {
        let frames = self.frames.len();
        self.peeling.exits.pop_if(|exit| exit.0 == frames).map(|exit| exit.1)
    }
}
