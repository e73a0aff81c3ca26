//! Copies made by allocation, before they are ordered.

use super::client::Place;

/// A group of copies that are executed in parallel. The groups of one gap are executed in the order of these variants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// Along the edge into the block.
    EdgeIn,
    /// Between the segments of an interval.
    Move,
    /// For the instruction's fixed operands.
    Setup,
    /// Along the edge out of the block.
    EdgeOut,
}

impl Copy {
    /// A number by which copies are in the order of their execution, except within a group.
    #[inline]
    pub fn order(&self) -> u32 {
        4 * self.key.0 + self.key.1 as u32
    }
}

/// One copy of a group.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    /// The instruction after the gap, and the group.
    pub key: (u32, Phase),
    /// Source.
    pub from: Place,
    /// Destination.
    pub to: Place,
}
