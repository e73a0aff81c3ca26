//! The trait of block numbers, whatever their type.

/// The number of a block.
pub trait Node: Copy {
    /// The block with this number.
    fn new(index: u32) -> Self;

    /// The block's number.
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
