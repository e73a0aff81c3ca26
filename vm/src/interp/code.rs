//! The codes of TABLE 1 as patterns.

#![allow(non_upper_case_globals, reason = "named like the opcodes")]

use weir_bytecode::for_each_opcode;

macro_rules! define_codes {
    ($($name:ident, $code:literal, $mnemonic:literal, $imm:ident, $effect:tt $(($how:ident))?, $kind:ident $(($($lanes:tt)*))?;)*) => {
        $(pub(super) const $name: u16 = $code;)*
    };
}
for_each_opcode!(define_codes);

/// The prefix of the opcodes from 0x100 on.
pub(super) const Prefix: u16 = 0xFC;
/// The prefix of the vector opcodes, from 0x200 on.
pub(super) const VectorPrefix: u16 = 0xFD;
