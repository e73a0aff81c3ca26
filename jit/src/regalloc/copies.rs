//! Copies made by allocation, before they are ordered.

use super::client::Place;

/// A group of copies that are executed at once. The groups of one gap follow each other in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// From the predecessor.
    EdgeIn,
    /// Between segments.
    Move,
    /// For the instruction.
    Setup,
    /// For the successor.
    EdgeOut,
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
