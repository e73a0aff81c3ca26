//! The block of each value. Cost: O(values).

use crate::ir::{Block, Func, Value};

/// The block that holds each value's instruction.
#[derive(Clone, Debug)]
pub struct DefBlocks(Vec<Block>);

/// The block of a value that is in no block.
const NOWHERE: Block = Block(u32::MAX);

impl DefBlocks {
    /// Computes the blocks. Values that are created later have none.
    pub fn compute(func: &Func<'_>) -> DefBlocks {
        let mut def_blocks = vec![NOWHERE; func.num_values()];
        for block in func.blocks() {
            func.block(block).insts.iter().for_each(|value| def_blocks[value.index()] = block);
        }
        DefBlocks(def_blocks)
    }

    /// The block of `value`. For a value in no block, the result is a number that no block has.
    #[inline]
    pub fn of(&self, value: Value) -> Block {
        self.0[value.index()]
    }

    /// The block of `value`, if it is in one.
    pub fn get(&self, value: Value) -> Option<Block> {
        Some(self.of(value)).filter(|&block| block != NOWHERE)
    }
}
