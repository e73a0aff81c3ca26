//! Constant folding, for construction and every pass. No operation is folded to a NaN, whose bits may differ between
//! machines, or to a trap.

use super::ops::{Op, Type};
use weir_bytecode::{Opcode, semantics};

/// The result bits of `op` on one or two constants of type `operand`; the result has type `result`.
pub fn fold(op: Op, operand: Type, result: Type, args: &[u64]) -> Option<u64> {
    fold_opcode(op.opcode(operand, result)?, result, args)
}

/// The result bits of a Wasm instruction on one or two constants; the result has type `result`.
pub fn fold_opcode(opcode: Opcode, result: Type, args: &[u64]) -> Option<u64> {
    let bits = semantics::eval(opcode, args)?.ok()? & mask(result);
    (!is_nan(result, bits)).then_some(bits)
}

/// Whether these bits are a NaN of the type.
pub fn is_nan(ty: Type, bits: u64) -> bool {
    match ty {
        Type::F32 => f32::from_bits(bits as u32).is_nan(),
        Type::F64 => f64::from_bits(bits).is_nan(),
        Type::Void | Type::I32 | Type::I64 | Type::V128 | Type::V256 | Type::Ref | Type::Gc => false,
    }
}

/// A mask of the bits that a number of the type has.
pub fn mask(ty: Type) -> u64 {
    match ty {
        Type::I32 | Type::F32 => 0xFFFF_FFFF,
        Type::Void | Type::I64 | Type::F64 | Type::V128 | Type::V256 | Type::Ref | Type::Gc => u64::MAX,
    }
}
