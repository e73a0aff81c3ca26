//! Bits and lanes that are integers.

use super::asm::{binary, fold, fold_three, invert, next, number, ones, replace, splat, swapped, unary, vectors};
use crate::interp::x64::asm::{dispatch, handlers};

/// Picks the bits of the first operand where the third has ones, and those of the second elsewhere.
macro_rules! select {
    () => {
        concat!(
            "vmovdqu xmm1, [rdi - 16]\nvpand xmm0, xmm1, [rdi - 48]\nvpandn xmm1, xmm1, [rdi - 32]\nvpor xmm0, xmm0, xmm1\n",
            fold_three!()
        )
    };
}

/// Whether no lane is 0, of those that `$compare` compares.
macro_rules! all_true {
    ($compare:literal) => {
        concat!(
            "vpxor xmm0, xmm0, xmm0\n",
            $compare,
            " xmm0, xmm0, [rdi - 16]\nxor eax, eax\nvptest xmm0, xmm0\nsete al\n",
            number!()
        )
    };
}

/// Moves the signs of the lanes to `eax`, with `$mask`.
macro_rules! bitmask {
    ($mask:literal) => {
        concat!("vmovdqu xmm0, [rdi - 16]\n", $mask, "\n", number!())
    };
}

/// Subtracts the operand from 0.
macro_rules! negate {
    ($subtract:literal) => {
        concat!("vpxor xmm0, xmm0, xmm0\n", $subtract, " xmm0, xmm0, [rdi - 16]\n", replace!())
    };
}

/// Shifts the lanes by the number in `eax` modulo their width, of which `$mask` is one less.
macro_rules! shift {
    ($op:literal, $mask:literal) => {
        concat!("and eax, ", $mask, "\nvmovd xmm1, eax\nvmovdqu xmm0, [rdi - 32]\n", $op, " xmm0, xmm0, xmm1\n", fold!())
    };
}

/// Whether unsigned lanes on the left are at most those on the right, or at least, of which `$extremum` picks the left one then.
macro_rules! unsigned {
    ($extremum:literal, $equal:literal $(, $then:expr)?) => {
        concat!(
            "vmovdqu xmm0, [rdi - 32]\n",
            $extremum,
            " xmm1, xmm0, [rdi - 16]\n",
            $equal,
            " xmm0, xmm0, xmm1\n",
            $($then,)?
            fold!()
        )
    };
}

/// Multiplies with `$multiply` lanes that `$extend` has made twice as wide, beginning at byte `$at` of the operands.
macro_rules! product {
    ($extend:literal, $multiply:literal, $at:literal) => {
        concat!(
            $extend,
            " xmm0, qword ptr [rdi + ",
            $at,
            " - 32]\n",
            $extend,
            " xmm1, qword ptr [rdi + ",
            $at,
            " - 16]\n",
            $multiply,
            " xmm0, xmm0, xmm1\n",
            fold!()
        )
    };
}

/// Makes the lanes of half the operand, from byte `$at` on, twice as wide.
macro_rules! extend {
    ($op:literal, $at:literal) => {
        concat!($op, " xmm0, qword ptr [rdi + ", $at, " - 16]\n", replace!())
    };
}

/// Rounded products of fractions. Only that of -1 and -1 is not exact: it would be 1, and is the largest number.
macro_rules! fractions {
    () => {
        binary!("vpmulhrsw", ones!("xmm1"), "vpsllw xmm1, xmm1, 15\nvpcmpeqw xmm1, xmm1, xmm0\nvpxor xmm0, xmm0, xmm1\n")
    };
}

vectors! { bits;
    v128_not = V128Not: ones!("xmm0"), "vpxor xmm0, xmm0, [rdi - 16]", replace!();
    v128_and = V128And: binary!("vpand");
    v128_andnot = V128Andnot: swapped!("vpandn");
    v128_or = V128Or: binary!("vpor");
    v128_xor = V128Xor: binary!("vpxor");
    v128_bitselect = V128Bitselect: select!();
    i8x16_relaxed_laneselect = I8x16RelaxedLaneselect: select!();
    i16x8_relaxed_laneselect = I16x8RelaxedLaneselect: select!();
    i32x4_relaxed_laneselect = I32x4RelaxedLaneselect: select!();
    i64x2_relaxed_laneselect = I64x2RelaxedLaneselect: select!();
    v128_any_true = V128AnyTrue:
        "vmovdqu xmm0, [rdi - 16]", "xor eax, eax", "vptest xmm0, xmm0", "setne al", number!();
    i8x16_all_true = I8x16AllTrue: all_true!("vpcmpeqb");
    i16x8_all_true = I16x8AllTrue: all_true!("vpcmpeqw");
    i32x4_all_true = I32x4AllTrue: all_true!("vpcmpeqd");
    i64x2_all_true = I64x2AllTrue: all_true!("vpcmpeqq");
    i8x16_bitmask = I8x16Bitmask: bitmask!("vpmovmskb eax, xmm0");
    i16x8_bitmask = I16x8Bitmask: bitmask!("vpacksswb xmm0, xmm0, xmm0\nvpmovmskb eax, xmm0\nmovzx eax, al");
    i32x4_bitmask = I32x4Bitmask: bitmask!("vmovmskps eax, xmm0");
    i64x2_bitmask = I64x2Bitmask: bitmask!("vmovmskpd eax, xmm0");
}

vectors! { comparisons;
    i8x16_eq = I8x16Eq: binary!("vpcmpeqb");
    i8x16_ne = I8x16Ne: binary!("vpcmpeqb", invert!());
    i8x16_lt_s = I8x16LtS: swapped!("vpcmpgtb");
    i8x16_gt_s = I8x16GtS: binary!("vpcmpgtb");
    i8x16_le_s = I8x16LeS: binary!("vpcmpgtb", invert!());
    i8x16_ge_s = I8x16GeS: swapped!("vpcmpgtb", invert!());
    i8x16_lt_u = I8x16LtU: unsigned!("vpmaxub", "vpcmpeqb", invert!());
    i8x16_gt_u = I8x16GtU: unsigned!("vpminub", "vpcmpeqb", invert!());
    i8x16_le_u = I8x16LeU: unsigned!("vpminub", "vpcmpeqb");
    i8x16_ge_u = I8x16GeU: unsigned!("vpmaxub", "vpcmpeqb");
    i16x8_eq = I16x8Eq: binary!("vpcmpeqw");
    i16x8_ne = I16x8Ne: binary!("vpcmpeqw", invert!());
    i16x8_lt_s = I16x8LtS: swapped!("vpcmpgtw");
    i16x8_gt_s = I16x8GtS: binary!("vpcmpgtw");
    i16x8_le_s = I16x8LeS: binary!("vpcmpgtw", invert!());
    i16x8_ge_s = I16x8GeS: swapped!("vpcmpgtw", invert!());
    i16x8_lt_u = I16x8LtU: unsigned!("vpmaxuw", "vpcmpeqw", invert!());
    i16x8_gt_u = I16x8GtU: unsigned!("vpminuw", "vpcmpeqw", invert!());
    i16x8_le_u = I16x8LeU: unsigned!("vpminuw", "vpcmpeqw");
    i16x8_ge_u = I16x8GeU: unsigned!("vpmaxuw", "vpcmpeqw");
    i32x4_eq = I32x4Eq: binary!("vpcmpeqd");
    i32x4_ne = I32x4Ne: binary!("vpcmpeqd", invert!());
    i32x4_lt_s = I32x4LtS: swapped!("vpcmpgtd");
    i32x4_gt_s = I32x4GtS: binary!("vpcmpgtd");
    i32x4_le_s = I32x4LeS: binary!("vpcmpgtd", invert!());
    i32x4_ge_s = I32x4GeS: swapped!("vpcmpgtd", invert!());
    i32x4_lt_u = I32x4LtU: unsigned!("vpmaxud", "vpcmpeqd", invert!());
    i32x4_gt_u = I32x4GtU: unsigned!("vpminud", "vpcmpeqd", invert!());
    i32x4_le_u = I32x4LeU: unsigned!("vpminud", "vpcmpeqd");
    i32x4_ge_u = I32x4GeU: unsigned!("vpmaxud", "vpcmpeqd");
    i64x2_eq = I64x2Eq: binary!("vpcmpeqq");
    i64x2_ne = I64x2Ne: binary!("vpcmpeqq", invert!());
    i64x2_lt_s = I64x2LtS: swapped!("vpcmpgtq");
    i64x2_gt_s = I64x2GtS: binary!("vpcmpgtq");
    i64x2_le_s = I64x2LeS: binary!("vpcmpgtq", invert!());
    i64x2_ge_s = I64x2GeS: swapped!("vpcmpgtq", invert!());
}

vectors! { arithmetic;
    i8x16_abs = I8x16Abs: unary!("vpabsb");
    i8x16_neg = I8x16Neg: negate!("vpsubb");
    i8x16_add = I8x16Add: binary!("vpaddb");
    i8x16_add_sat_s = I8x16AddSatS: binary!("vpaddsb");
    i8x16_add_sat_u = I8x16AddSatU: binary!("vpaddusb");
    i8x16_sub = I8x16Sub: binary!("vpsubb");
    i8x16_sub_sat_s = I8x16SubSatS: binary!("vpsubsb");
    i8x16_sub_sat_u = I8x16SubSatU: binary!("vpsubusb");
    i8x16_min_s = I8x16MinS: binary!("vpminsb");
    i8x16_min_u = I8x16MinU: binary!("vpminub");
    i8x16_max_s = I8x16MaxS: binary!("vpmaxsb");
    i8x16_max_u = I8x16MaxU: binary!("vpmaxub");
    i8x16_avgr_u = I8x16AvgrU: binary!("vpavgb");
    i16x8_abs = I16x8Abs: unary!("vpabsw");
    i16x8_neg = I16x8Neg: negate!("vpsubw");
    i16x8_shl = I16x8Shl: shift!("vpsllw", "15");
    i16x8_shr_s = I16x8ShrS: shift!("vpsraw", "15");
    i16x8_shr_u = I16x8ShrU: shift!("vpsrlw", "15");
    i16x8_add = I16x8Add: binary!("vpaddw");
    i16x8_add_sat_s = I16x8AddSatS: binary!("vpaddsw");
    i16x8_add_sat_u = I16x8AddSatU: binary!("vpaddusw");
    i16x8_sub = I16x8Sub: binary!("vpsubw");
    i16x8_sub_sat_s = I16x8SubSatS: binary!("vpsubsw");
    i16x8_sub_sat_u = I16x8SubSatU: binary!("vpsubusw");
    i16x8_mul = I16x8Mul: binary!("vpmullw");
    i16x8_min_s = I16x8MinS: binary!("vpminsw");
    i16x8_min_u = I16x8MinU: binary!("vpminuw");
    i16x8_max_s = I16x8MaxS: binary!("vpmaxsw");
    i16x8_max_u = I16x8MaxU: binary!("vpmaxuw");
    i16x8_avgr_u = I16x8AvgrU: binary!("vpavgw");
    i16x8_q15mulr_sat_s = I16x8Q15mulrSatS: fractions!();
    i16x8_relaxed_q15mulr_s = I16x8RelaxedQ15mulrS: fractions!();
    i32x4_abs = I32x4Abs: unary!("vpabsd");
    i32x4_neg = I32x4Neg: negate!("vpsubd");
    i32x4_shl = I32x4Shl: shift!("vpslld", "31");
    i32x4_shr_s = I32x4ShrS: shift!("vpsrad", "31");
    i32x4_shr_u = I32x4ShrU: shift!("vpsrld", "31");
    i32x4_add = I32x4Add: binary!("vpaddd");
    i32x4_sub = I32x4Sub: binary!("vpsubd");
    i32x4_mul = I32x4Mul: binary!("vpmulld");
    i32x4_min_s = I32x4MinS: binary!("vpminsd");
    i32x4_min_u = I32x4MinU: binary!("vpminud");
    i32x4_max_s = I32x4MaxS: binary!("vpmaxsd");
    i32x4_max_u = I32x4MaxU: binary!("vpmaxud");
    i32x4_dot_i16x8_s = I32x4DotI16x8S: binary!("vpmaddwd");
    i64x2_neg = I64x2Neg: negate!("vpsubq");
    i64x2_shl = I64x2Shl: shift!("vpsllq", "63");
    i64x2_shr_u = I64x2ShrU: shift!("vpsrlq", "63");
    i64x2_add = I64x2Add: binary!("vpaddq");
    i64x2_sub = I64x2Sub: binary!("vpsubq");
    i64x2_mul = I64x2Mul:
        "mov rax, [rdi - 32]", "imul rax, [rdi - 16]", "vmovq xmm0, rax", "mov rax, [rdi - 24]", "imul rax, [rdi - 8]",
        "vmovq xmm1, rax", "vpunpcklqdq xmm0, xmm0, xmm1", fold!();
}

vectors! { widths;
    i8x16_narrow_i16x8_s = I8x16NarrowI16x8S: binary!("vpacksswb");
    i8x16_narrow_i16x8_u = I8x16NarrowI16x8U: binary!("vpackuswb");
    i16x8_narrow_i32x4_s = I16x8NarrowI32x4S: binary!("vpackssdw");
    i16x8_narrow_i32x4_u = I16x8NarrowI32x4U: binary!("vpackusdw");
    i16x8_extend_low_i8x16_s = I16x8ExtendLowI8x16S: extend!("vpmovsxbw", "0");
    i16x8_extend_high_i8x16_s = I16x8ExtendHighI8x16S: extend!("vpmovsxbw", "8");
    i16x8_extend_low_i8x16_u = I16x8ExtendLowI8x16U: extend!("vpmovzxbw", "0");
    i16x8_extend_high_i8x16_u = I16x8ExtendHighI8x16U: extend!("vpmovzxbw", "8");
    i32x4_extend_low_i16x8_s = I32x4ExtendLowI16x8S: extend!("vpmovsxwd", "0");
    i32x4_extend_high_i16x8_s = I32x4ExtendHighI16x8S: extend!("vpmovsxwd", "8");
    i32x4_extend_low_i16x8_u = I32x4ExtendLowI16x8U: extend!("vpmovzxwd", "0");
    i32x4_extend_high_i16x8_u = I32x4ExtendHighI16x8U: extend!("vpmovzxwd", "8");
    i64x2_extend_low_i32x4_s = I64x2ExtendLowI32x4S: extend!("vpmovsxdq", "0");
    i64x2_extend_high_i32x4_s = I64x2ExtendHighI32x4S: extend!("vpmovsxdq", "8");
    i64x2_extend_low_i32x4_u = I64x2ExtendLowI32x4U: extend!("vpmovzxdq", "0");
    i64x2_extend_high_i32x4_u = I64x2ExtendHighI32x4U: extend!("vpmovzxdq", "8");
    // The sums are products with ones, of which the lanes of one vector are signed.
    i16x8_extadd_pairwise_i8x16_s = I16x8ExtaddPairwiseI8x16S:
        splat!("xmm0", "0x01010101"), "vpmaddubsw xmm0, xmm0, [rdi - 16]", replace!();
    i16x8_extadd_pairwise_i8x16_u = I16x8ExtaddPairwiseI8x16U:
        splat!("xmm1", "0x01010101"), "vmovdqu xmm0, [rdi - 16]", "vpmaddubsw xmm0, xmm0, xmm1", replace!();
    i32x4_extadd_pairwise_i16x8_s = I32x4ExtaddPairwiseI16x8S:
        splat!("xmm0", "0x00010001"), "vpmaddwd xmm0, xmm0, [rdi - 16]", replace!();
    i16x8_extmul_low_i8x16_s = I16x8ExtmulLowI8x16S: product!("vpmovsxbw", "vpmullw", "0");
    i16x8_extmul_high_i8x16_s = I16x8ExtmulHighI8x16S: product!("vpmovsxbw", "vpmullw", "8");
    i16x8_extmul_low_i8x16_u = I16x8ExtmulLowI8x16U: product!("vpmovzxbw", "vpmullw", "0");
    i16x8_extmul_high_i8x16_u = I16x8ExtmulHighI8x16U: product!("vpmovzxbw", "vpmullw", "8");
    i32x4_extmul_low_i16x8_s = I32x4ExtmulLowI16x8S: product!("vpmovsxwd", "vpmulld", "0");
    i32x4_extmul_high_i16x8_s = I32x4ExtmulHighI16x8S: product!("vpmovsxwd", "vpmulld", "8");
    i32x4_extmul_low_i16x8_u = I32x4ExtmulLowI16x8U: product!("vpmovzxwd", "vpmulld", "0");
    i32x4_extmul_high_i16x8_u = I32x4ExtmulHighI16x8U: product!("vpmovzxwd", "vpmulld", "8");
    i64x2_extmul_low_i32x4_s = I64x2ExtmulLowI32x4S: product!("vpmovsxdq", "vpmuldq", "0");
    i64x2_extmul_high_i32x4_s = I64x2ExtmulHighI32x4S: product!("vpmovsxdq", "vpmuldq", "8");
    i64x2_extmul_low_i32x4_u = I64x2ExtmulLowI32x4U: product!("vpmovzxdq", "vpmuludq", "0");
    i64x2_extmul_high_i32x4_u = I64x2ExtmulHighI32x4U: product!("vpmovzxdq", "vpmuludq", "8");
}
