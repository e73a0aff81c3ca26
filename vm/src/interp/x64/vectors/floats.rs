//! Lanes that are floats.

use super::asm::{binary, fold, fold_three, next, ones, replace, splat, swapped, unary, vectors};
use crate::interp::x64::asm::{dispatch, handlers};

/// Clears the signs of the operand's lanes, or inverts them: `$op` of the operand and all ones, shifted with `$shift`.
macro_rules! signs {
    ($shift:literal, $op:literal) => {
        concat!(ones!("xmm0"), $shift, "\n", $op, " xmm0, xmm0, [rdi - 16]\n", replace!())
    };
}

/// `min` and `max`. Leaves if an operand is NaN. The two orders of the operands differ only in the sign of zero, which `$zero`
/// combines.
macro_rules! extremum {
    ($kind:literal, $op:literal, $zero:literal) => {
        concat!(
            "vmovdqu xmm0, [rdi - 32]\nvmovdqu xmm1, [rdi - 16]\nvcmpunord",
            $kind,
            " xmm2, xmm0, xmm1\nvptest xmm2, xmm2\njne 9f\n",
            $op,
            $kind,
            " xmm2, xmm0, xmm1\n",
            $op,
            $kind,
            " xmm0, xmm1, xmm0\n",
            $zero,
            " xmm0, xmm0, xmm2\n",
            fold!()
        )
    };
}

/// Converts f32 to i32. `vcvttps2dq` gives 0x80000000 for values out of range. NaN is therefore replaced by 0 before, and the bits
/// of the results for values that are too large are inverted after.
macro_rules! truncate {
    () => {
        concat!(
            "vmovdqu xmm0, [rdi - 16]\nvcmpordps xmm1, xmm0, xmm0\nvpand xmm0, xmm0, xmm1\n",
            splat!("xmm1", "0x4f000000"),
            "vcmpleps xmm1, xmm1, xmm0\nvcvttps2dq xmm0, xmm0\nvpxor xmm0, xmm0, xmm1\n",
            replace!()
        )
    };
}

/// Converts f64 to i32. Values that are too small become 0x80000000. The minimum with the largest i32 is its second operand for NaN, where
/// that is 0.
macro_rules! truncate_low {
    () => {
        concat!(
            "mov rcx, 0x41dfffffffc00000\nvmovq xmm1, rcx\nvpunpcklqdq xmm1, xmm1, xmm1\nvmovdqu xmm0, [rdi - 16]\n",
            "vcmpordpd xmm2, xmm0, xmm0\nvpand xmm1, xmm1, xmm2\nvminpd xmm0, xmm0, xmm1\nvcvttpd2dq xmm0, xmm0\n",
            replace!()
        )
    };
}

vectors! { moves;
    f32x4_abs = F32x4Abs: signs!("vpsrld xmm0, xmm0, 1", "vpand");
    f32x4_neg = F32x4Neg: signs!("vpslld xmm0, xmm0, 31", "vpxor");
    f64x2_abs = F64x2Abs: signs!("vpsrlq xmm0, xmm0, 1", "vpand");
    f64x2_neg = F64x2Neg: signs!("vpsllq xmm0, xmm0, 63", "vpxor");
    f32x4_eq = F32x4Eq: binary!("vcmpeqps");
    f32x4_ne = F32x4Ne: binary!("vcmpneqps");
    f32x4_lt = F32x4Lt: binary!("vcmpltps");
    f32x4_gt = F32x4Gt: swapped!("vcmpltps");
    f32x4_le = F32x4Le: binary!("vcmpleps");
    f32x4_ge = F32x4Ge: swapped!("vcmpleps");
    f64x2_eq = F64x2Eq: binary!("vcmpeqpd");
    f64x2_ne = F64x2Ne: binary!("vcmpneqpd");
    f64x2_lt = F64x2Lt: binary!("vcmpltpd");
    f64x2_gt = F64x2Gt: swapped!("vcmpltpd");
    f64x2_le = F64x2Le: binary!("vcmplepd");
    f64x2_ge = F64x2Ge: swapped!("vcmplepd");
    f32x4_min = F32x4Min: extremum!("ps", "vmin", "vpor");
    f32x4_max = F32x4Max: extremum!("ps", "vmax", "vpand");
    f64x2_min = F64x2Min: extremum!("pd", "vmin", "vpor");
    f64x2_max = F64x2Max: extremum!("pd", "vmax", "vpand");
    f32x4_relaxed_min = F32x4RelaxedMin: extremum!("ps", "vmin", "vpor");
    f32x4_relaxed_max = F32x4RelaxedMax: extremum!("ps", "vmax", "vpand");
    f64x2_relaxed_min = F64x2RelaxedMin: extremum!("pd", "vmin", "vpor");
    f64x2_relaxed_max = F64x2RelaxedMax: extremum!("pd", "vmax", "vpand");
    // These are the processor's instructions: the second operand, unless it is not less than the first, or not greater.
    f32x4_pmin = F32x4Pmin: swapped!("vminps");
    f32x4_pmax = F32x4Pmax: swapped!("vmaxps");
    f64x2_pmin = F64x2Pmin: swapped!("vminpd");
    f64x2_pmax = F64x2Pmax: swapped!("vmaxpd");
}

vectors! { conversions;
    f32x4_convert_i32x4_s = F32x4ConvertI32x4S: unary!("vcvtdq2ps");
    // The halves are exact, and so is the product: only the sum rounds.
    f32x4_convert_i32x4_u = F32x4ConvertI32x4U:
        "vmovdqu xmm0, [rdi - 16]", "vpsrld xmm1, xmm0, 16", "vcvtdq2ps xmm1, xmm1", splat!("xmm2", "0x47800000"),
        "vmulps xmm1, xmm1, xmm2", "vpslld xmm0, xmm0, 16", "vpsrld xmm0, xmm0, 16", "vcvtdq2ps xmm0, xmm0",
        "vaddps xmm0, xmm0, xmm1", replace!();
    f64x2_convert_low_i32x4_s = F64x2ConvertLowI32x4S: "vcvtdq2pd xmm0, qword ptr [rdi - 16]", replace!();
    // 2^52 has the exponent with which the last bit of the fraction is 1.
    f64x2_convert_low_i32x4_u = F64x2ConvertLowI32x4U:
        "vpmovzxdq xmm0, qword ptr [rdi - 16]", "mov rcx, 0x4330000000000000", "vmovq xmm1, rcx",
        "vpunpcklqdq xmm1, xmm1, xmm1", "vpor xmm0, xmm0, xmm1", "vsubpd xmm0, xmm0, xmm1", replace!();
    i32x4_trunc_sat_f32x4_s = I32x4TruncSatF32x4S: truncate!();
    i32x4_relaxed_trunc_f32x4_s = I32x4RelaxedTruncF32x4S: truncate!();
    i32x4_trunc_sat_f64x2_s_zero = I32x4TruncSatF64x2SZero: truncate_low!();
    i32x4_relaxed_trunc_f64x2_s_zero = I32x4RelaxedTruncF64x2SZero: truncate_low!();
}

/// Any NaN is allowed as a result.
macro_rules! any_nan {
    ($kind:literal) => {
        ""
    };
}

/// Leaves if a lane of the result is NaN: the portable loop determines which NaN it is.
macro_rules! no_nan {
    ($kind:literal) => {
        concat!("vcmpunord", $kind, " xmm1, xmm0, xmm0\nvptest xmm1, xmm1\njne 9f\n")
    };
}

/// `$op` of the operand at `$size`.
macro_rules! float_unary {
    ($nan:ident, $kind:literal, $op:literal, $size:literal $(, $control:literal)?) => {
        concat!($op, " xmm0, ", $size, " ptr [rdi - 16]", $(", ", $control,)? "\n", $nan!($kind), replace!())
    };
}

/// Arithmetic on two operands.
macro_rules! float {
    ($nan:ident, $kind:literal, $op:literal) => {
        binary!($op, $nan!($kind))
    };
}

/// The product of two operands and `$op` of the third and the product, which rounds it first.
macro_rules! multiply {
    ($nan:ident, $kind:literal, $op:literal) => {
        concat!(
            "vmovdqu xmm1, [rdi - 48]\nvmul",
            $kind,
            " xmm1, xmm1, [rdi - 32]\nvmovdqu xmm0, [rdi - 16]\n",
            $op,
            $kind,
            " xmm0, xmm0, xmm1\n",
            $nan!($kind),
            fold_three!()
        )
    };
}

/// Instructions whose result may be a NaN that the specification leaves open.
macro_rules! floats {
    ($module:ident: $nan:ident) => {
        pub(super) mod $module {
            use $crate::interp::x64::vectors::floats::*;

            vectors! { floats;
                f32x4_sqrt = F32x4Sqrt: float_unary!($nan, "ps", "vsqrtps", "xmmword");
                f32x4_nearest = F32x4Nearest: float_unary!($nan, "ps", "vroundps", "xmmword", "8");
                f32x4_floor = F32x4Floor: float_unary!($nan, "ps", "vroundps", "xmmword", "9");
                f32x4_ceil = F32x4Ceil: float_unary!($nan, "ps", "vroundps", "xmmword", "10");
                f32x4_trunc = F32x4Trunc: float_unary!($nan, "ps", "vroundps", "xmmword", "11");
                f32x4_add = F32x4Add: float!($nan, "ps", "vaddps");
                f32x4_sub = F32x4Sub: float!($nan, "ps", "vsubps");
                f32x4_mul = F32x4Mul: float!($nan, "ps", "vmulps");
                f32x4_div = F32x4Div: float!($nan, "ps", "vdivps");
                f32x4_relaxed_madd = F32x4RelaxedMadd: multiply!($nan, "ps", "vadd");
                f32x4_relaxed_nmadd = F32x4RelaxedNmadd: multiply!($nan, "ps", "vsub");
                f64x2_sqrt = F64x2Sqrt: float_unary!($nan, "pd", "vsqrtpd", "xmmword");
                f64x2_nearest = F64x2Nearest: float_unary!($nan, "pd", "vroundpd", "xmmword", "8");
                f64x2_floor = F64x2Floor: float_unary!($nan, "pd", "vroundpd", "xmmword", "9");
                f64x2_ceil = F64x2Ceil: float_unary!($nan, "pd", "vroundpd", "xmmword", "10");
                f64x2_trunc = F64x2Trunc: float_unary!($nan, "pd", "vroundpd", "xmmword", "11");
                f64x2_add = F64x2Add: float!($nan, "pd", "vaddpd");
                f64x2_sub = F64x2Sub: float!($nan, "pd", "vsubpd");
                f64x2_mul = F64x2Mul: float!($nan, "pd", "vmulpd");
                f64x2_div = F64x2Div: float!($nan, "pd", "vdivpd");
                f64x2_relaxed_madd = F64x2RelaxedMadd: multiply!($nan, "pd", "vadd");
                f64x2_relaxed_nmadd = F64x2RelaxedNmadd: multiply!($nan, "pd", "vsub");
                f32x4_demote_f64x2_zero = F32x4DemoteF64x2Zero: float_unary!($nan, "ps", "vcvtpd2ps", "xmmword");
                f64x2_promote_low_f32x4 = F64x2PromoteLowF32x4: float_unary!($nan, "pd", "vcvtps2pd", "qword");
            }
        }
    };
}

floats!(any: any_nan);
floats!(exact: no_nan);
