//! The flags that later instructions read: where none are, an instruction that writes flags may replace one that does not.

use crate::mir::FlagSet;
use crate::x64::code::Code;

/// The flags set before or by an instruction that are read after it, in its block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Needed {
    None,
    /// Zero and sign only, which describe a result.
    Result,
    All,
}

/// By instruction, the flags that are needed.
pub(super) fn flags_needed(code: &Code) -> Vec<Needed> {
    let mut all = vec![Needed::None; code.insts.len()];
    for block in &code.blocks {
        let mut needed = Needed::None;
        for i in block.insts.clone().rev() {
            let inst = &code.insts[i as usize];
            all[i as usize] = needed;
            if !inst.op.keeps_flags() {
                needed = Needed::None;
            }
            if inst.op.reads_flags() {
                let of_result = FlagSet::ZERO.and(FlagSet::SIGN).contains(inst.cond.flags());
                needed = needed.max(if of_result { Needed::Result } else { Needed::All });
            }
        }
    }
    all
}
