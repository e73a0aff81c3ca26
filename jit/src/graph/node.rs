//! The blocks of a graph, whatever type numbers them.

/// The number of a block.
pub trait Node: Copy {
    /// Block number `index`.
    fn new(index: u32) -> Self;

    /// Its number.
    fn index(self) -> usize;
}

impl Node for u32 {
    fn new(index: u32) -> u32 {
        index
    }

    fn index(self) -> usize {
        self as usize
    }
}
