//! NaNs whose bits the specification leaves to the implementation. Where results must not depend on the machine, each
//! such NaN is replaced by the canonical one: positive, quiet, all other payload bits zero.

use crate::Opcode;
use crate::lanes::{self, LaneOp, Lanes, Shape};
use crate::opcodes::{Effect, StackType};
use crate::types::ValType;

/// The floats in an instruction's result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Floats {
    /// One f32.
    F32,
    /// One f64.
    F64,
    /// Four f32.
    F32x4,
    /// Two f64.
    F64x2,
}

/// The canonical NaN of type f32.
pub const F32: u32 = 0x7FC0_0000;
/// The canonical NaN of type f64.
pub const F64: u64 = 0x7FF8_0000_0000_0000;

/// Returns the floats in the result of an instruction whose NaNs the specification leaves open. `None` for instructions
/// that move bits or never produce NaN.
pub const fn open(op: Opcode) -> Option<Floats> {
    match op.lanes() {
        Some(lanes) => of_lanes(lanes),
        None => of_number(op),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "those that are not listed have no float as result, which is checked below")]
const fn of_number(op: Opcode) -> Option<Floats> {
    use Opcode as O;
    match op {
        O::F32Add | O::F32Sub | O::F32Mul | O::F32Div | O::F32Min | O::F32Max => Some(Floats::F32),
        O::F32Ceil | O::F32Floor | O::F32Trunc | O::F32Nearest | O::F32Sqrt | O::F32DemoteF64 => Some(Floats::F32),
        O::F64Add | O::F64Sub | O::F64Mul | O::F64Div | O::F64Min | O::F64Max => Some(Floats::F64),
        O::F64Ceil | O::F64Floor | O::F64Trunc | O::F64Nearest | O::F64Sqrt | O::F64PromoteF32 => Some(Floats::F64),
        _ => None,
    }
}

/// Returns whether the instruction gives a float that is copied, possibly with another sign, or converted from an integer.
const fn makes_no_nan(op: Opcode) -> bool {
    use Opcode as O;
    let of_f32 = matches!(
        op,
        O::F32Const | O::F32Load | O::F32ReinterpretI32 | O::F32Abs | O::F32Neg | O::F32Copysign | O::F32x4ExtractLane
    );
    let of_f64 = matches!(
        op,
        O::F64Const | O::F64Load | O::F64ReinterpretI64 | O::F64Abs | O::F64Neg | O::F64Copysign | O::F64x2ExtractLane
    );
    let to_f32 = matches!(op, O::F32ConvertI32S | O::F32ConvertI32U | O::F32ConvertI64S | O::F32ConvertI64U);
    let to_f64 = matches!(op, O::F64ConvertI32S | O::F64ConvertI32U | O::F64ConvertI64S | O::F64ConvertI64U);
    of_f32 || of_f64 || to_f32 || to_f64
}

/// Returns whether a result is a float whatever the immediates are.
const fn gives_float(op: Opcode) -> bool {
    let mut i = 0;
    match op.effect() {
        Effect::Fixed { results, .. } => {
            while i < results.len() {
                if matches!(results[i], ValType::F32 | ValType::F64) {
                    return true;
                }
                i += 1;
            }
        }
        Effect::Typed { results, .. } => {
            while i < results.len() {
                if matches!(results[i], StackType::Val(ValType::F32 | ValType::F64)) {
                    return true;
                }
                i += 1;
            }
        }
        Effect::Control(_) => {}
    }
    false
}

// An instruction whose result is a float is in one of the two lists above.
const _: () = {
    let mut i = 0;
    while i < Opcode::ALL.len() {
        let op = Opcode::ALL[i];
        let listed = of_number(op).is_some() as u32 + makes_no_nan(op) as u32;
        assert!(listed == gives_float(op) as u32, "an instruction that gives a float is listed once");
        i += 1;
    }
};

const fn of_lanes(lanes: Lanes) -> Option<Floats> {
    use lanes::{Convert, Float, FloatUnary, Ternary};
    let computes = match lanes.op {
        LaneOp::Float(op) => match op {
            Float::Add | Float::Sub | Float::Mul | Float::Div => true,
            Float::Min | Float::Max | Float::RelaxedMin | Float::RelaxedMax => true,
            // They are selections.
            Float::Pmin | Float::Pmax => false,
        },
        LaneOp::FloatUnary(op) => match op {
            FloatUnary::Sqrt | FloatUnary::Ceil | FloatUnary::Floor | FloatUnary::Trunc | FloatUnary::Nearest => true,
            FloatUnary::Abs | FloatUnary::Neg => false,
        },
        LaneOp::Convert(op) => match op {
            Convert::DemoteZero | Convert::PromoteLow => true,
            Convert::ConvertS | Convert::ConvertU | Convert::ConvertLowS | Convert::ConvertLowU => false,
            Convert::TruncSatS | Convert::TruncSatU | Convert::TruncSatSZero | Convert::TruncSatUZero => false,
            Convert::RelaxedTruncS | Convert::RelaxedTruncU => false,
            Convert::RelaxedTruncSZero | Convert::RelaxedTruncUZero => false,
        },
        LaneOp::Ternary(op) => match op {
            Ternary::RelaxedMadd | Ternary::RelaxedNmadd => true,
            Ternary::RelaxedLaneselect | Ternary::RelaxedDotAddS => false,
        },
        LaneOp::Whole(_) | LaneOp::Permute(_) | LaneOp::Lane(_) | LaneOp::Shift(_) | LaneOp::Test(_) => false,
        LaneOp::IntegerUnary(_) | LaneOp::Integer(_) | LaneOp::Compare(_) | LaneOp::Widen(_) | LaneOp::Product(_) => false,
        LaneOp::FloatCompare(_) => false,
    };
    match lanes.shape {
        Shape::F32x4 if computes => Some(Floats::F32x4),
        Shape::F64x2 if computes => Some(Floats::F64x2),
        Shape::F32x4 | Shape::F64x2 => None,
        Shape::V128 | Shape::I8x16 | Shape::I16x8 | Shape::I32x4 | Shape::I64x2 => None,
    }
}

impl Floats {
    /// Bits of one, and of the canonical NaN.
    fn lane(self) -> (u32, u128) {
        match self {
            Floats::F32 | Floats::F32x4 => (32, F32.into()),
            Floats::F64 | Floats::F64x2 => (64, F64.into()),
        }
    }

    /// Returns the canonical NaN in each of the floats; the bits above them are zero.
    pub fn canonical(self) -> u128 {
        let (width, nan) = self.lane();
        match self {
            Floats::F32 | Floats::F64 => nan,
            Floats::F32x4 | Floats::F64x2 => (0..128 / width).fold(0, |bits, lane| bits | nan << (lane * width)),
        }
    }

    /// Replaces each NaN in `bits` by the canonical one.
    pub fn canonicalise(self, bits: u128) -> u128 {
        let (width, nan) = self.lane();
        let lanes = if matches!(self, Floats::F32 | Floats::F64) { 1 } else { 128 / width };
        let mask = (1 << width) - 1;
        (0..lanes).map(|lane| lane * width).fold(bits, |bits, at| {
            let float = bits >> at & mask;
            let is_nan = if width == 32 { f32::from_bits(float as u32).is_nan() } else { f64::from_bits(float as u64).is_nan() };
            if is_nan { bits & !(mask << at) | nan << at } else { bits }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_nans_change() {
        let bits = |lanes: [u32; 4]| lanes.iter().rev().fold(0, |bits, &lane| bits << 32 | u128::from(lane));
        let (one, infinity) = (1f32.to_bits(), f32::INFINITY.to_bits());
        let vector = bits([0xFFC0_0000, one, 0x7F80_0001, infinity]);
        assert_eq!(Floats::F32x4.canonicalise(vector), bits([F32, one, F32, infinity]));
        assert_eq!(Floats::F32.canonicalise(vector), bits([F32, one, 0x7F80_0001, infinity]));
        let (first, second) = (u128::from(0xFFF8_0000_0000_0001u64), u128::from(2f64.to_bits()));
        assert_eq!(Floats::F64x2.canonicalise(first | second << 64), u128::from(F64) | second << 64);
        assert_eq!(Floats::F64.canonicalise(second << 64 | first), second << 64 | u128::from(F64));
        assert_eq!(Floats::F32x4.canonical(), bits([F32; 4]));
        assert_eq!(Floats::F64x2.canonical(), u128::from(F64) << 64 | u128::from(F64));
        assert_eq!((Floats::F32.canonical(), Floats::F64.canonical()), (F32.into(), F64.into()));
    }

    /// By name: the instructions that compute a float from floats, and no others.
    #[test]
    fn the_list_is_complete() {
        const COMPUTE: [&str; 17] = [
            "add",
            "sub",
            "mul",
            "div",
            "min",
            "max",
            "sqrt",
            "ceil",
            "floor",
            "trunc",
            "nearest",
            "demote",
            "promote",
            "relaxed_madd",
            "relaxed_nmadd",
            "relaxed_min",
            "relaxed_max",
        ];
        for &op in Opcode::ALL {
            let (ty, name) = op.mnemonic().split_once('.').unwrap_or_default();
            let computes = COMPUTE.contains(&name) || name.starts_with("demote_") || name.starts_with("promote_");
            let expected = match ty {
                "f32" => Some(Floats::F32),
                "f64" => Some(Floats::F64),
                "f32x4" => Some(Floats::F32x4),
                "f64x2" => Some(Floats::F64x2),
                _ => None,
            };
            assert_eq!(open(op), expected.filter(|_| computes), "{}", op.mnemonic());
        }
    }
}
