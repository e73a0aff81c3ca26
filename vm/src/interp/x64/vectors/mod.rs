//! Vector instructions, in slots of two words. The handlers need AVX, whose memory operands need no alignment. An instruction
//! without a handler is [any vector instruction](any), so that no function has to run in the portable loop because of its vectors.
//!
//! A handler leaves a vector as its result in memory only: `rax` is undefined after it.

mod any;
mod asm;
mod floats;
mod integers;
mod lanes;
mod memory;

pub(super) use any::{any_vector, exact_vector, prefix};

use super::table::{Handlers, Table, VECTORS, with};
use weir_bytecode::Opcode;

/// The handlers of instructions that never produce NaN, or leave if they do.
const COMMON: [Handlers; 8] = [
    memory::accesses::<2>(),
    lanes::lanes::<2>(),
    integers::bits::<2>(),
    integers::comparisons::<2>(),
    integers::arithmetic::<2>(),
    integers::widths::<2>(),
    floats::moves::<2>(),
    floats::conversions::<2>(),
];

/// The handlers of instructions that may produce NaN, any or none.
const ANY: Handlers = floats::any::floats::<2>();
const EXACT: Handlers = floats::exact::floats::<2>();

/// The instructions without a handler.
const WITHOUT: &[Opcode] = &[
    Opcode::I8x16Popcnt,
    Opcode::I8x16Shl,
    Opcode::I8x16ShrS,
    Opcode::I8x16ShrU,
    Opcode::I32x4ExtaddPairwiseI16x8U,
    Opcode::I64x2Abs,
    Opcode::I64x2ShrS,
    Opcode::I32x4TruncSatF32x4U,
    Opcode::I32x4TruncSatF64x2UZero,
    Opcode::I32x4RelaxedTruncF32x4U,
    Opcode::I32x4RelaxedTruncF64x2UZero,
    Opcode::I16x8RelaxedDotI8x16I7x16S,
    Opcode::I32x4RelaxedDotI8x16I7x16AddS,
];

// Every vector instruction has one handler or is among those without.
const _: () = {
    let (any, exact) = (handlers_by_code(ANY), handlers_by_code(EXACT));
    let mut i = 0;
    while i < Opcode::ALL.len() {
        let code = Opcode::ALL[i] as usize;
        if code >= 0x200 {
            assert!(any[code - 0x200] == 1 && exact[code - 0x200] == 1);
        }
        i += 1;
    }
};

/// Returns by code the number of handlers in [`COMMON`] and `floats`, plus one for each instruction in [`WITHOUT`].
const fn handlers_by_code(floats: Handlers) -> [u8; VECTORS] {
    let mut counts = count([0; VECTORS], floats);
    let mut i = 0;
    while i < COMMON.len() {
        counts = count(counts, COMMON[i]);
        i += 1;
    }
    let mut i = 0;
    while i < WITHOUT.len() {
        counts[WITHOUT[i] as usize - 0x200] += 1;
        i += 1;
    }
    counts
}

/// Adds the handlers in `list` to their numbers by code.
const fn count(mut counts: [u8; VECTORS], list: Handlers) -> [u8; VECTORS] {
    let mut i = 0;
    while i < list.len() {
        counts[list[i].0 as usize - 0x200] += 1;
        i += 1;
    }
    counts
}

/// Adds the handlers to a table. With `exact` they leave if a result is NaN.
pub(super) fn add(table: Table<VECTORS>, exact: bool) -> Table<VECTORS> {
    with(with(table, &COMMON, false), &[if exact { EXACT } else { ANY }], false)
}
