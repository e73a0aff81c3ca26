//! NaNs whose bits the specification leaves to the implementation. Where results must not depend on the machine, each
//! such NaN is replaced by the canonical one: positive, quiet, all other payload bits zero.

use crate::Opcode;

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
#[expect(clippy::wildcard_enum_match_arm, reason = "most operations give no NaN, and the others are listed")]
pub const fn open(op: Opcode) -> Option<Floats> {
    use Opcode as O;
    match op {
        O::F32Add | O::F32Sub | O::F32Mul | O::F32Div | O::F32Min | O::F32Max => Some(Floats::F32),
        O::F32Ceil | O::F32Floor | O::F32Trunc | O::F32Nearest | O::F32Sqrt | O::F32DemoteF64 => Some(Floats::F32),
        O::F64Add | O::F64Sub | O::F64Mul | O::F64Div | O::F64Min | O::F64Max => Some(Floats::F64),
        O::F64Ceil | O::F64Floor | O::F64Trunc | O::F64Nearest | O::F64Sqrt | O::F64PromoteF32 => Some(Floats::F64),
        O::F32x4Add | O::F32x4Sub | O::F32x4Mul | O::F32x4Div | O::F32x4Min | O::F32x4Max => Some(Floats::F32x4),
        O::F32x4Ceil | O::F32x4Floor | O::F32x4Trunc | O::F32x4Nearest | O::F32x4Sqrt => Some(Floats::F32x4),
        O::F32x4DemoteF64x2Zero => Some(Floats::F32x4),
        O::F32x4RelaxedMadd | O::F32x4RelaxedNmadd | O::F32x4RelaxedMin | O::F32x4RelaxedMax => Some(Floats::F32x4),
        O::F64x2Add | O::F64x2Sub | O::F64x2Mul | O::F64x2Div | O::F64x2Min | O::F64x2Max => Some(Floats::F64x2),
        O::F64x2Ceil | O::F64x2Floor | O::F64x2Trunc | O::F64x2Nearest | O::F64x2Sqrt => Some(Floats::F64x2),
        O::F64x2PromoteLowF32x4 => Some(Floats::F64x2),
        O::F64x2RelaxedMadd | O::F64x2RelaxedNmadd | O::F64x2RelaxedMin | O::F64x2RelaxedMax => Some(Floats::F64x2),
        _ => None,
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
