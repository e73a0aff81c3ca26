//! The values of a loop that are used after it, as they are when its last round is one of the vector loop's. If all of them can be
//! computed then, the loop itself need not run after the vector loop.

use super::work::Work;
use crate::analysis::counted::{Counted, Linear};
use crate::ir::{Func, Type, Value};

/// Values that are used in other blocks than their own.
#[derive(Debug)]
pub struct Outer(Vec<bool>);

impl Outer {
    /// Those of a function. Cost: O(instructions).
    pub fn of(func: &Func<'_>) -> Outer {
        let mut block_of = vec![u32::MAX; func.num_values()];
        for block in func.blocks() {
            func.block(block).insts.iter().for_each(|value| block_of[value.index()] = block.0);
        }
        let mut outer = vec![false; func.num_values()];
        for block in func.blocks() {
            let used = func.block(block).insts.iter().flat_map(|&user| func.args(user));
            used.for_each(|value| outer[value.index()] |= block_of[value.index()] != block.0);
        }
        Outer(outer)
    }

    /// Whether a value may be used outside. It may if it has been made since.
    pub fn has(&self, value: Value) -> bool {
        self.0.get(value.index()).is_none_or(|&outer| outer)
    }
}

/// What a value is after some rounds.
#[derive(Clone, Debug)]
pub enum Last {
    /// A sum that each round, after the first one, increases by this.
    Linear(Linear, u32),
    /// What this phi, of a reduction or a recurrence, is in the round that would follow.
    Next(Value),
}

/// By value of the loop that is used after it, what it is in the last round. `None` if one of them cannot be told.
pub fn ending(func: &Func<'_>, counted: &Counted<'_, '_>, work: &Work, outer: &Outer) -> Option<Vec<(Value, Last)>> {
    let last = |value: Value| {
        if func.ty(value) == Type::I32
            && let Some(form) = counted.linear(value)
            && let Some(stride) = counted.stride(&form)
        {
            return Some((value, Last::Linear(form, stride)));
        }
        work.carried().find(|&phi| func.args(phi)[counted.back] == value).map(|phi| (value, Last::Next(phi)))
    };
    func.block(counted.block).insts.iter().copied().filter(|&value| outer.has(value)).map(last).collect()
}
