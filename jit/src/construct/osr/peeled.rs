//! An OSR body whose loops nest as in the source.
//!
//! Translation starts at the entry's loop and goes on after it, through the rest of a round of each loop around it. The label of
//! such a loop leads forward, to its `end`: from there the loop is translated once more, as what it is, and what leaves it meets what
//! came out of the first round. So a nest of depth n holds the innermost loop n times.
//!
//! The operands below the entry are in the frame. Nothing ever assigns them.

use super::super::builder::Builder;
use super::super::frames::{Edge, Frame};

impl Builder<'_, '_> {
    /// The first round of the loop at `pc` ends: goes back to it, with these edges.
    pub(in crate::construct) fn translate_again(&mut self, pc: u32, frame: &Frame, edges: &[Edge]) {
        let (params, results) = frame.ty.arity(self.module);
        if self.block.is_some() {
            let exit = self.fall_through(results);
            self.rounds.exits.push((self.frames.len(), exit));
        }
        self.stack.truncate(frame.height());
        let block = self.enter_new_block(edges);
        self.join_operands(block, edges, params);
        self.rounds.again = Some(pc);
        self.rounds.back += self.pc - pc;
        self.segment = 0;
    }

    /// The exit of the first round of the loop that ends here.
    pub(in crate::construct) fn first_exit(&mut self) -> Option<Edge> {
        let frames = self.frames.len();
        self.rounds.exits.pop_if(|exit| exit.0 == frames).map(|exit| exit.1)
    }
}
