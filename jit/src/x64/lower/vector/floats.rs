//! Vectors of floats, and conversions.

use super::{Lower, splat};
use crate::ir::Value;
use crate::regalloc::Reg;
use crate::x64::insts::{Asm, Mem, Width};
use crate::x64::lower::numeric::{CEIL, FLOOR, NEAREST, TRUNC};
use weir_bytecode::lanes::{Convert, Float, FloatCompare, FloatUnary};

/// Predicates of `vcmpp`.
const EQUAL: u8 = 0;
const LESS: u8 = 1;
const LESS_OR_EQUAL: u8 = 2;
const UNORDERED: u8 = 3;
const UNEQUAL: u8 = 4;
const NOT_LESS: u8 = 5;

/// A float as bits of the width.
fn bits(width: Width, value: f64) -> u64 {
    if width == Width::Q { value.to_bits() } else { (value as f32).to_bits().into() }
}

fn sign(width: Width) -> u128 {
    splat(width, bits(width, -0.0))
}

impl Lower<'_, '_> {
    /// A constant with `value` in all lanes.
    fn floats(&mut self, width: Width, value: f64) -> Mem {
        self.vector_mem(splat(width, bits(width, value)))
    }

    pub(super) fn unary_floats(&mut self, op: FloatUnary, width: Width, a: Value) -> Reg {
        match op {
            FloatUnary::Abs => self.masked(Asm::Vand, !sign(width), a),
            FloatUnary::Neg => self.masked(Asm::Vxor, sign(width), a),
            FloatUnary::Sqrt => self.of_all(Asm::VsqrtAll, width, a),
            FloatUnary::Ceil => self.round(width, a, CEIL),
            FloatUnary::Floor => self.round(width, a, FLOOR),
            FloatUnary::Trunc => self.round(width, a, TRUNC),
            FloatUnary::Nearest => self.round(width, a, NEAREST),
        }
    }

    fn masked(&mut self, op: Asm, mask: u128, a: Value) -> Reg {
        let (a, mask) = (self.reg(a), self.vector_mem(mask));
        self.three(op, Width::X, a, mask)
    }

    pub(super) fn convert_lanes(&mut self, op: Convert, a: Value) -> Reg {
        match op {
            Convert::ConvertS => self.of_all(Asm::IntToSingle, Width::X, a),
            Convert::ConvertU => self.unsigned_to_singles(a),
            Convert::ConvertLowS => {
                let a = self.widened(a);
                self.two(Asm::IntToDouble, Width::X, a)
            }
            Convert::ConvertLowU => self.unsigned_to_doubles(a),
            Convert::TruncSatS | Convert::RelaxedTruncS => self.singles_to_signed(a),
            Convert::TruncSatU | Convert::RelaxedTruncU => self.singles_to_unsigned(a),
            Convert::TruncSatSZero | Convert::RelaxedTruncSZero => self.doubles_to_signed(a),
            Convert::TruncSatUZero | Convert::RelaxedTruncUZero => self.doubles_to_unsigned(a),
            Convert::DemoteZero => self.of_all(Asm::DoubleToSingle, Width::X, a),
            Convert::PromoteLow => {
                let a = self.widened(a);
                self.two(Asm::SingleToDouble, Width::X, a)
            }
        }
    }

    fn of_all(&mut self, op: Asm, width: Width, a: Value) -> Reg {
        let a = self.rm(a, self.vector_type());
        self.two(op, width, a)
    }

    fn round(&mut self, width: Width, a: Value, mode: i64) -> Reg {
        let a = self.rm(a, self.vector_type());
        self.two_imm(Asm::VroundAll, width, a, mode as u8)
    }

    pub(super) fn binary_floats(&mut self, op: Float, width: Width, a: Value, b: Value) -> Reg {
        match op {
            // NaN payloads may depend on the order of operands, which WebAssembly leaves open.
            Float::Add => self.commutative(Asm::VaddAll, width, a, b),
            Float::Mul => self.commutative(Asm::VmulAll, width, a, b),
            Float::Sub => self.lanewise(Asm::VsubAll, width, a, b),
            Float::Div => self.lanewise(Asm::VdivAll, width, a, b),
            Float::Min | Float::RelaxedMin => self.min_lanes(width, a, b),
            Float::Max | Float::RelaxedMax => self.max_lanes(width, a, b),
            // If the comparison is false, the result is the right operand, which is the first one here.
            Float::Pmin => self.lanewise(Asm::VminAll, width, b, a),
            Float::Pmax => self.lanewise(Asm::VmaxAll, width, b, a),
        }
    }

    pub(super) fn compare_float_lanes(&mut self, op: FloatCompare, width: Width, a: Value, b: Value) -> Reg {
        match op {
            FloatCompare::Eq => self.compare_floats_all(width, a, b, EQUAL),
            FloatCompare::Ne => self.compare_floats_all(width, a, b, UNEQUAL),
            FloatCompare::Lt => self.compare_floats_all(width, a, b, LESS),
            FloatCompare::Le => self.compare_floats_all(width, a, b, LESS_OR_EQUAL),
            FloatCompare::Gt => self.compare_floats_all(width, b, a, LESS),
            FloatCompare::Ge => self.compare_floats_all(width, b, a, LESS_OR_EQUAL),
        }
    }

    fn compare_floats_all(&mut self, width: Width, a: Value, b: Value, predicate: u8) -> Reg {
        let src = self.reg(a);
        let rm = self.rm(b, self.vector_type());
        self.three_imm(Asm::VcmpAll, width, src, rm, predicate)
    }

    /// The minimum in both orders differs if one compares the other zero, or a number with a NaN. Merging both with "or" gives
    /// the lesser of two zeros, and a NaN if either operand is one.
    fn min_lanes(&mut self, width: Width, a: Value, b: Value) -> Reg {
        let (a, b) = (self.reg(a), self.reg(b));
        let [one, other] = [(a, b), (b, a)].map(|(a, b)| self.three(Asm::VminAll, width, a, b));
        let merged = self.three(Asm::Vor, Width::X, one, other);
        let nans = self.three_imm(Asm::VcmpAll, width, merged, merged, UNORDERED);
        let quiet = self.three(Asm::Vor, Width::X, merged, nans);
        self.without_payload(width, quiet, nans)
    }

    /// The maximum, from both orders as in `min_lanes`. If those are zeros of different signs, the result is -0 minus
    /// -0, which is 0.
    fn max_lanes(&mut self, width: Width, a: Value, b: Value) -> Reg {
        let (a, b) = (self.reg(a), self.reg(b));
        let [one, other] = [(a, b), (b, a)].map(|(a, b)| self.three(Asm::VmaxAll, width, a, b));
        let differing = self.three(Asm::Vxor, Width::X, one, other);
        let merged = self.three(Asm::Vor, Width::X, one, differing);
        let quiet = self.three(Asm::VsubAll, width, merged, differing);
        let nans = self.three_imm(Asm::VcmpAll, width, quiet, quiet, UNORDERED);
        self.without_payload(width, quiet, nans)
    }

    /// In the lanes where `nans` is all ones, keeps only sign, exponent and the quiet bit of `a`.
    fn without_payload(&mut self, width: Width, a: Reg, nans: Reg) -> Reg {
        let kept = if width == Width::Q { 13 } else { 10 };
        let payload = self.two_imm(Asm::PsrlImm, width, nans, kept);
        self.three(Asm::Pandn, Width::X, payload, a)
    }

    /// `a * b + c`, or `-(a * b) + c`, rounded twice.
    pub(super) fn multiply_add(&mut self, width: Width, [a, b, c]: [Value; 3], negated: bool) -> Reg {
        let mut product = self.commutative(Asm::VmulAll, width, a, b);
        if negated {
            let sign = self.vector_mem(sign(width));
            product = self.three(Asm::Vxor, Width::X, product, sign);
        }
        let c = self.rm(c, self.vector_type());
        self.three(Asm::VaddAll, width, product, c)
    }

    /// As a fraction below the exponent of 2⁵², the integer is exact.
    fn unsigned_to_doubles(&mut self, a: Value) -> Reg {
        let (a, exponent) = (self.reg(a), self.vector_mem(splat(Width::D, bits(Width::Q, 2f64.powi(52)) >> 32)));
        let offset = self.floats(Width::Q, 2f64.powi(52));
        let above = self.three(Asm::PunpckLow, Width::D, a, exponent);
        self.three(Asm::VsubAll, Width::Q, above, offset)
    }

    /// Both halves are exact, and so is 2¹⁶ times the upper one; only the sum is rounded.
    fn unsigned_to_singles(&mut self, a: Value) -> Reg {
        let (a, half, scale) = (self.reg(a), self.vector_mem(splat(Width::D, 0xFFFF)), self.floats(Width::D, 65536.0));
        let upper = self.two_imm(Asm::PsrlImm, Width::D, a, 16);
        let lower = self.three(Asm::Pand, Width::X, a, half);
        let [upper, lower] = [upper, lower].map(|half| self.two(Asm::IntToSingle, Width::X, half));
        let upper = self.three(Asm::VmulAll, Width::D, upper, scale);
        self.three(Asm::VaddAll, Width::D, upper, lower)
    }

    /// `a` with 0 in place of NaNs.
    fn without_nans(&mut self, width: Width, a: Reg) -> Reg {
        let numbers = self.three_imm(Asm::VcmpAll, width, a, a, EQUAL);
        self.three(Asm::Vand, Width::X, a, numbers)
    }

    /// Values out of range become the least integer; those that are too great are inverted to the greatest.
    fn singles_to_signed(&mut self, a: Value) -> Reg {
        let (a, limit) = (self.reg(a), self.floats(Width::D, 2f64.powi(31)));
        let numbers = self.without_nans(Width::D, a);
        let great = self.three_imm(Asm::VcmpAll, Width::D, numbers, limit, NOT_LESS);
        let converted = self.two(Asm::SingleToInt, Width::X, numbers);
        self.three(Asm::Pxor, Width::X, converted, great)
    }

    /// From 2³¹ on, where the conversion gives that value, the excess is converted separately and added.
    fn singles_to_unsigned(&mut self, a: Value) -> Reg {
        let (a, zero, limit) = (self.reg(a), self.vector_constant_reg(0), self.floats(Width::D, 2f64.powi(31)));
        // For NaNs the result is the right operand.
        let numbers = self.three(Asm::VmaxAll, Width::D, a, zero);
        let excess = self.three(Asm::VsubAll, Width::D, numbers, limit);
        let great = self.three_imm(Asm::VcmpAll, Width::D, excess, limit, NOT_LESS);
        let excess = self.two(Asm::SingleToInt, Width::X, excess);
        let excess = self.three(Asm::Pxor, Width::X, excess, great);
        let excess = self.three(Asm::PmaxS, Width::D, excess, zero);
        let converted = self.two(Asm::SingleToInt, Width::X, numbers);
        self.three(Asm::Padd, Width::D, converted, excess)
    }

    /// The greatest integer is exact as a double, and limits the values; those that are too small become the least integer.
    fn doubles_to_signed(&mut self, a: Value) -> Reg {
        let (a, greatest) = (self.reg(a), self.floats(Width::Q, i32::MAX.into()));
        let numbers = self.without_nans(Width::Q, a);
        let low = self.three(Asm::VminAll, Width::Q, numbers, greatest);
        self.two(Asm::DoubleToInt, Width::X, low)
    }

    /// After limiting to the range and adding 2⁵², the integer is the lower half of the bits.
    fn doubles_to_unsigned(&mut self, a: Value) -> Reg {
        let (a, zero) = (self.reg(a), self.vector_constant_reg(0));
        let (greatest, offset) = (self.floats(Width::Q, u32::MAX.into()), self.floats(Width::Q, 2f64.powi(52)));
        // For NaNs the result is the right operand.
        let high = self.three(Asm::VmaxAll, Width::Q, a, zero);
        let low = self.three(Asm::VminAll, Width::Q, high, greatest);
        let whole = self.two_imm(Asm::VroundAll, Width::Q, low, TRUNC as u8);
        let above = self.three(Asm::VaddAll, Width::Q, whole, offset);
        self.three_imm(Asm::Shufps, Width::X, above, zero, 0x88)
    }
}
