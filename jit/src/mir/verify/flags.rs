//! Checks that conditions read the flags of a comparison.

use crate::mir::code::MachineCode;
use crate::mir::isa::{FlagSet, Inst};

/// Checks flags: see [`super`].
pub(super) fn check<I: Inst>(code: &MachineCode<I>) -> Result<(), String> {
    for number in 0..code.blocks.len() {
        // The last instruction that changes flags, and the flags that it defines.
        let mut defined: Option<(FlagSet, &I)> = None;
        for inst in code.block_insts(number) {
            let read = inst.flags_read();
            match defined {
                None if read != FlagSet::EMPTY => return Err(format!("{inst:?} reads flags, which b{number} has not set")),
                Some((flags, last)) if !flags.contains(read) => {
                    return Err(format!("{inst:?} reads flags of b{number} that {last:?} does not set"));
                }
                None | Some(_) => {}
            }
            if let Some(flags) = inst.flags_defined() {
                defined = Some((flags, inst));
            }
        }
    }
    Ok(())
}
