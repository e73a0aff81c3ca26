//! Use counts. Cost: O(values + arguments).

use crate::ir::{Block, Func, Value};

/// Adds to `counts`, by value, how often instructions of `blocks` use it. An argument counts as the value that `of` gives for it;
/// instructions whose own value is another one count as no users. In code that dce has not cleaned, dead users count, too.
pub fn count_uses(func: &Func<'_>, blocks: impl Iterator<Item = Block>, of: impl Fn(Value) -> Value, counts: &mut [u32]) {
    for &value in blocks.flat_map(|block| &func.block(block).insts) {
        if of(value) == value {
            func.args(value).iter().for_each(|&arg| counts[of(arg).index()] += 1);
        }
    }
}
