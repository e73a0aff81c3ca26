//! The block of each value. Cost: O(values).

use crate::ir::{Block, Func, Value};

/// The block that holds each value's instruction.
#[derive(Clone, Debug)]
pub struct Homes(Vec<Block>);

/// The block of a value that is in none.
const NOWHERE: Block = Block(u32::MAX);

impl Homes {
    /// Collects them. Values that are created later have none.
    pub fn compute(func: &Func<'_>) -> Homes {
        let mut homes = vec![NOWHERE; func.num_values()];
        for block in func.blocks() {
            func.block(block).insts.iter().for_each(|value| homes[value.index()] = block);
        }
        Homes(homes)
    }

    /// The block of `value`, which must be in one; for a value in none, a number that no block has.
    #[inline]
    pub fn of(&self, value: Value) -> Block {
        self.0[value.index()]
    }

    /// The block of `value`, if it is in one.
    pub fn get(&self, value: Value) -> Option<Block> {
        Some(self.of(value)).filter(|&block| block != NOWHERE)
    }
}
