//! The codes of TABLE 1 as patterns.

#![allow(non_upper_case_globals, reason = "named like the opcodes")]

use weir_bytecode::{Opcode, for_each_opcode};

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

/// The pattern of the bytes that begin no instruction of TABLE 1. With it, a match on the first byte of instructions needs no
/// wildcard, so that the compiler names a row without an arm.
macro_rules! unassigned {
    () => {
        0x16 | 0x17 | 0x1D | 0x1E | 0x27 | 0xC5..=0xCF | 0xD3 | 0xD7..=0xFB | 0xFE..
    };
}
pub(super) use unassigned;

/// The pattern of the codes with prefix 0xFC that are not instructions.
macro_rules! unassigned_after_prefix {
    () => {
        ..0x100 | 0x112 | 0x117..
    };
}
pub(super) use unassigned_after_prefix;

/// The pattern of the instructions with prefix 0xFC that the loop leaves to [`super::memory::execute`], where `code` is in scope.
macro_rules! bulk_after_prefix {
    () => {
        code::MemoryInit
            | code::DataDrop
            | code::MemoryCopy
            | code::MemoryFill
            | code::TableInit
            | code::ElemDrop
            | code::TableCopy
            | code::TableSize
            | code::TableFill
    };
}
pub(super) use bulk_after_prefix;

const _: () = {
    let mut i = 0;
    while i < Opcode::ALL.len() {
        let is_unassigned = match Opcode::ALL[i] as u16 {
            code @ 0..=0xFF => matches!(code, Prefix | VectorPrefix | unassigned!()),
            code @ 0x100..=0x1FF => matches!(code, unassigned_after_prefix!()),
            // `vector` has the others.
            0x200.. => false,
        };
        assert!(!is_unassigned, "the code of an instruction is not among the unassigned ones");
        i += 1;
    }
};
