//! Use counts. Cost: O(values + arguments).

use crate::ir::{Block, Func, Value};

/// Counts, by value, the uses by instructions of `blocks`, and adds them to `counts`. An argument counts as the value
/// that `of` returns for it; instructions that `of` maps to another value count as no users. In code on which dead code
/// elimination has not run, dead users count too.
pub fn count_uses(func: &Func<'_>, blocks: impl Iterator<Item = Block>, of: impl Fn(Value) -> Value, counts: &mut [u32]) {
    for &value in blocks.flat_map(|block| &func.block(block).insts) {
        if of(value) == value {
            func.args(value).iter().for_each(|&arg| counts[of(arg).index()] += 1);
        }
    }
}
