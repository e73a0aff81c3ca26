//! The only definition of every vector instruction, as the parent module has it for numbers.
//!
//! A v128 is a `u128` whose lowest bits are lane 0. Instructions take it as an array of lanes, whose type gives the
//! interpretation: `I8x16` is signed, `U8x16` unsigned.
//!
//! # Relaxed instructions
//!
//! The specification lets each of them choose among a few results. Weir always chooses the same, on every processor and
//! in every tier: that of the corresponding strict instruction. If there is none,
//!
//! - `relaxed_madd` and `relaxed_nmadd` round twice, after multiplying and after adding;
//! - the dot products take the 7-bit operand as signed, and their sums of two products wrap around.

use super::{
    f32_abs, f32_add, f32_ceil, f32_demote_f64, f32_div, f32_floor, f32_max, f32_min, f32_mul, f32_nearest, f32_neg, f32_sqrt,
    f32_sub, f32_trunc, f64_abs, f64_add, f64_ceil, f64_div, f64_floor, f64_max, f64_min, f64_mul, f64_nearest, f64_neg,
    f64_promote_f32, f64_sqrt, f64_sub, f64_trunc,
};
use crate::Opcode;
use std::array::from_fn;
use std::ops::{Mul, Neg};

/// Calls the macro `$m` with every instruction on vectors that has neither immediates nor access to memory: `Opcode, function,
/// (operands) -> result, meaning;`. None of them traps.
#[macro_export]
macro_rules! for_each_vector {
    ($m:ident) => {
        $m! {
            // Lanes and masks
            I8x16Swizzle, i8x16_swizzle, (a: U8x16, b: U8x16) -> U8x16, swizzle(a, b);
            I8x16Splat, i8x16_splat, (a: i32) -> I8x16, [a as i8; 16];
            I16x8Splat, i16x8_splat, (a: i32) -> I16x8, [a as i16; 8];
            I32x4Splat, i32x4_splat, (a: i32) -> I32x4, [a; 4];
            I64x2Splat, i64x2_splat, (a: i64) -> I64x2, [a; 2];
            F32x4Splat, f32x4_splat, (a: f32) -> F32x4, [a; 4];
            F64x2Splat, f64x2_splat, (a: f64) -> F64x2, [a; 2];
            I8x16AllTrue, i8x16_all_true, (a: I8x16) -> i32, i32::from(!a.contains(&0));
            I8x16Bitmask, i8x16_bitmask, (a: I8x16) -> i32, bitmask(a);
            I16x8AllTrue, i16x8_all_true, (a: I16x8) -> i32, i32::from(!a.contains(&0));
            I16x8Bitmask, i16x8_bitmask, (a: I16x8) -> i32, bitmask(a);
            I32x4AllTrue, i32x4_all_true, (a: I32x4) -> i32, i32::from(!a.contains(&0));
            I32x4Bitmask, i32x4_bitmask, (a: I32x4) -> i32, bitmask(a);
            I64x2AllTrue, i64x2_all_true, (a: I64x2) -> i32, i32::from(!a.contains(&0));
            I64x2Bitmask, i64x2_bitmask, (a: I64x2) -> i32, bitmask(a);
            // Bits
            V128Not, v128_not, (a: V128) -> V128, !a;
            V128And, v128_and, (a: V128, b: V128) -> V128, a & b;
            V128Andnot, v128_andnot, (a: V128, b: V128) -> V128, a & !b;
            V128Or, v128_or, (a: V128, b: V128) -> V128, a | b;
            V128Xor, v128_xor, (a: V128, b: V128) -> V128, a ^ b;
            V128Bitselect, v128_bitselect, (a: V128, b: V128, c: V128) -> V128, a & c | b & !c;
            V128AnyTrue, v128_any_true, (a: V128) -> i32, i32::from(a != 0);
            // Comparisons
            I8x16Eq, i8x16_eq, (a: I8x16, b: I8x16) -> I8x16, compare(a, b, PartialEq::eq);
            I8x16Ne, i8x16_ne, (a: I8x16, b: I8x16) -> I8x16, compare(a, b, PartialEq::ne);
            I8x16LtS, i8x16_lt_s, (a: I8x16, b: I8x16) -> I8x16, compare(a, b, PartialOrd::lt);
            I8x16LtU, i8x16_lt_u, (a: U8x16, b: U8x16) -> I8x16, compare(a, b, PartialOrd::lt);
            I8x16GtS, i8x16_gt_s, (a: I8x16, b: I8x16) -> I8x16, compare(a, b, PartialOrd::gt);
            I8x16GtU, i8x16_gt_u, (a: U8x16, b: U8x16) -> I8x16, compare(a, b, PartialOrd::gt);
            I8x16LeS, i8x16_le_s, (a: I8x16, b: I8x16) -> I8x16, compare(a, b, PartialOrd::le);
            I8x16LeU, i8x16_le_u, (a: U8x16, b: U8x16) -> I8x16, compare(a, b, PartialOrd::le);
            I8x16GeS, i8x16_ge_s, (a: I8x16, b: I8x16) -> I8x16, compare(a, b, PartialOrd::ge);
            I8x16GeU, i8x16_ge_u, (a: U8x16, b: U8x16) -> I8x16, compare(a, b, PartialOrd::ge);
            I16x8Eq, i16x8_eq, (a: I16x8, b: I16x8) -> I16x8, compare(a, b, PartialEq::eq);
            I16x8Ne, i16x8_ne, (a: I16x8, b: I16x8) -> I16x8, compare(a, b, PartialEq::ne);
            I16x8LtS, i16x8_lt_s, (a: I16x8, b: I16x8) -> I16x8, compare(a, b, PartialOrd::lt);
            I16x8LtU, i16x8_lt_u, (a: U16x8, b: U16x8) -> I16x8, compare(a, b, PartialOrd::lt);
            I16x8GtS, i16x8_gt_s, (a: I16x8, b: I16x8) -> I16x8, compare(a, b, PartialOrd::gt);
            I16x8GtU, i16x8_gt_u, (a: U16x8, b: U16x8) -> I16x8, compare(a, b, PartialOrd::gt);
            I16x8LeS, i16x8_le_s, (a: I16x8, b: I16x8) -> I16x8, compare(a, b, PartialOrd::le);
            I16x8LeU, i16x8_le_u, (a: U16x8, b: U16x8) -> I16x8, compare(a, b, PartialOrd::le);
            I16x8GeS, i16x8_ge_s, (a: I16x8, b: I16x8) -> I16x8, compare(a, b, PartialOrd::ge);
            I16x8GeU, i16x8_ge_u, (a: U16x8, b: U16x8) -> I16x8, compare(a, b, PartialOrd::ge);
            I32x4Eq, i32x4_eq, (a: I32x4, b: I32x4) -> I32x4, compare(a, b, PartialEq::eq);
            I32x4Ne, i32x4_ne, (a: I32x4, b: I32x4) -> I32x4, compare(a, b, PartialEq::ne);
            I32x4LtS, i32x4_lt_s, (a: I32x4, b: I32x4) -> I32x4, compare(a, b, PartialOrd::lt);
            I32x4LtU, i32x4_lt_u, (a: U32x4, b: U32x4) -> I32x4, compare(a, b, PartialOrd::lt);
            I32x4GtS, i32x4_gt_s, (a: I32x4, b: I32x4) -> I32x4, compare(a, b, PartialOrd::gt);
            I32x4GtU, i32x4_gt_u, (a: U32x4, b: U32x4) -> I32x4, compare(a, b, PartialOrd::gt);
            I32x4LeS, i32x4_le_s, (a: I32x4, b: I32x4) -> I32x4, compare(a, b, PartialOrd::le);
            I32x4LeU, i32x4_le_u, (a: U32x4, b: U32x4) -> I32x4, compare(a, b, PartialOrd::le);
            I32x4GeS, i32x4_ge_s, (a: I32x4, b: I32x4) -> I32x4, compare(a, b, PartialOrd::ge);
            I32x4GeU, i32x4_ge_u, (a: U32x4, b: U32x4) -> I32x4, compare(a, b, PartialOrd::ge);
            F32x4Eq, f32x4_eq, (a: F32x4, b: F32x4) -> I32x4, compare(a, b, PartialEq::eq);
            F32x4Ne, f32x4_ne, (a: F32x4, b: F32x4) -> I32x4, compare(a, b, PartialEq::ne);
            F32x4Lt, f32x4_lt, (a: F32x4, b: F32x4) -> I32x4, compare(a, b, PartialOrd::lt);
            F32x4Gt, f32x4_gt, (a: F32x4, b: F32x4) -> I32x4, compare(a, b, PartialOrd::gt);
            F32x4Le, f32x4_le, (a: F32x4, b: F32x4) -> I32x4, compare(a, b, PartialOrd::le);
            F32x4Ge, f32x4_ge, (a: F32x4, b: F32x4) -> I32x4, compare(a, b, PartialOrd::ge);
            F64x2Eq, f64x2_eq, (a: F64x2, b: F64x2) -> I64x2, compare(a, b, PartialEq::eq);
            F64x2Ne, f64x2_ne, (a: F64x2, b: F64x2) -> I64x2, compare(a, b, PartialEq::ne);
            F64x2Lt, f64x2_lt, (a: F64x2, b: F64x2) -> I64x2, compare(a, b, PartialOrd::lt);
            F64x2Gt, f64x2_gt, (a: F64x2, b: F64x2) -> I64x2, compare(a, b, PartialOrd::gt);
            F64x2Le, f64x2_le, (a: F64x2, b: F64x2) -> I64x2, compare(a, b, PartialOrd::le);
            F64x2Ge, f64x2_ge, (a: F64x2, b: F64x2) -> I64x2, compare(a, b, PartialOrd::ge);
            I64x2Eq, i64x2_eq, (a: I64x2, b: I64x2) -> I64x2, compare(a, b, PartialEq::eq);
            I64x2Ne, i64x2_ne, (a: I64x2, b: I64x2) -> I64x2, compare(a, b, PartialEq::ne);
            I64x2LtS, i64x2_lt_s, (a: I64x2, b: I64x2) -> I64x2, compare(a, b, PartialOrd::lt);
            I64x2GtS, i64x2_gt_s, (a: I64x2, b: I64x2) -> I64x2, compare(a, b, PartialOrd::gt);
            I64x2LeS, i64x2_le_s, (a: I64x2, b: I64x2) -> I64x2, compare(a, b, PartialOrd::le);
            I64x2GeS, i64x2_ge_s, (a: I64x2, b: I64x2) -> I64x2, compare(a, b, PartialOrd::ge);
            // Integers
            I8x16Abs, i8x16_abs, (a: I8x16) -> I8x16, a.map(i8::wrapping_abs);
            I8x16Neg, i8x16_neg, (a: I8x16) -> I8x16, a.map(i8::wrapping_neg);
            I8x16Popcnt, i8x16_popcnt, (a: U8x16) -> U8x16, a.map(|a| a.count_ones() as u8);
            I8x16Shl, i8x16_shl, (a: I8x16, b: i32) -> I8x16, a.map(|a| a.wrapping_shl(b as u32));
            I8x16ShrS, i8x16_shr_s, (a: I8x16, b: i32) -> I8x16, a.map(|a| a.wrapping_shr(b as u32));
            I8x16ShrU, i8x16_shr_u, (a: U8x16, b: i32) -> U8x16, a.map(|a| a.wrapping_shr(b as u32));
            I8x16Add, i8x16_add, (a: I8x16, b: I8x16) -> I8x16, zip(a, b, i8::wrapping_add);
            I8x16AddSatS, i8x16_add_sat_s, (a: I8x16, b: I8x16) -> I8x16, zip(a, b, i8::saturating_add);
            I8x16AddSatU, i8x16_add_sat_u, (a: U8x16, b: U8x16) -> U8x16, zip(a, b, u8::saturating_add);
            I8x16Sub, i8x16_sub, (a: I8x16, b: I8x16) -> I8x16, zip(a, b, i8::wrapping_sub);
            I8x16SubSatS, i8x16_sub_sat_s, (a: I8x16, b: I8x16) -> I8x16, zip(a, b, i8::saturating_sub);
            I8x16SubSatU, i8x16_sub_sat_u, (a: U8x16, b: U8x16) -> U8x16, zip(a, b, u8::saturating_sub);
            I8x16MinS, i8x16_min_s, (a: I8x16, b: I8x16) -> I8x16, zip(a, b, Ord::min);
            I8x16MinU, i8x16_min_u, (a: U8x16, b: U8x16) -> U8x16, zip(a, b, Ord::min);
            I8x16MaxS, i8x16_max_s, (a: I8x16, b: I8x16) -> I8x16, zip(a, b, Ord::max);
            I8x16MaxU, i8x16_max_u, (a: U8x16, b: U8x16) -> U8x16, zip(a, b, Ord::max);
            I8x16AvgrU, i8x16_avgr_u, (a: U8x16, b: U8x16) -> U8x16, zip(a, b, |a, b| (a | b) - ((a ^ b) >> 1));
            I16x8Abs, i16x8_abs, (a: I16x8) -> I16x8, a.map(i16::wrapping_abs);
            I16x8Neg, i16x8_neg, (a: I16x8) -> I16x8, a.map(i16::wrapping_neg);
            I16x8Q15mulrSatS, i16x8_q15mulr_sat_s, (a: I16x8, b: I16x8) -> I16x8, zip(a, b, q15mulr);
            I16x8Shl, i16x8_shl, (a: I16x8, b: i32) -> I16x8, a.map(|a| a.wrapping_shl(b as u32));
            I16x8ShrS, i16x8_shr_s, (a: I16x8, b: i32) -> I16x8, a.map(|a| a.wrapping_shr(b as u32));
            I16x8ShrU, i16x8_shr_u, (a: U16x8, b: i32) -> U16x8, a.map(|a| a.wrapping_shr(b as u32));
            I16x8Add, i16x8_add, (a: I16x8, b: I16x8) -> I16x8, zip(a, b, i16::wrapping_add);
            I16x8AddSatS, i16x8_add_sat_s, (a: I16x8, b: I16x8) -> I16x8, zip(a, b, i16::saturating_add);
            I16x8AddSatU, i16x8_add_sat_u, (a: U16x8, b: U16x8) -> U16x8, zip(a, b, u16::saturating_add);
            I16x8Sub, i16x8_sub, (a: I16x8, b: I16x8) -> I16x8, zip(a, b, i16::wrapping_sub);
            I16x8SubSatS, i16x8_sub_sat_s, (a: I16x8, b: I16x8) -> I16x8, zip(a, b, i16::saturating_sub);
            I16x8SubSatU, i16x8_sub_sat_u, (a: U16x8, b: U16x8) -> U16x8, zip(a, b, u16::saturating_sub);
            I16x8Mul, i16x8_mul, (a: I16x8, b: I16x8) -> I16x8, zip(a, b, i16::wrapping_mul);
            I16x8MinS, i16x8_min_s, (a: I16x8, b: I16x8) -> I16x8, zip(a, b, Ord::min);
            I16x8MinU, i16x8_min_u, (a: U16x8, b: U16x8) -> U16x8, zip(a, b, Ord::min);
            I16x8MaxS, i16x8_max_s, (a: I16x8, b: I16x8) -> I16x8, zip(a, b, Ord::max);
            I16x8MaxU, i16x8_max_u, (a: U16x8, b: U16x8) -> U16x8, zip(a, b, Ord::max);
            I16x8AvgrU, i16x8_avgr_u, (a: U16x8, b: U16x8) -> U16x8, zip(a, b, |a, b| (a | b) - ((a ^ b) >> 1));
            I32x4Abs, i32x4_abs, (a: I32x4) -> I32x4, a.map(i32::wrapping_abs);
            I32x4Neg, i32x4_neg, (a: I32x4) -> I32x4, a.map(i32::wrapping_neg);
            I32x4Shl, i32x4_shl, (a: I32x4, b: i32) -> I32x4, a.map(|a| a.wrapping_shl(b as u32));
            I32x4ShrS, i32x4_shr_s, (a: I32x4, b: i32) -> I32x4, a.map(|a| a.wrapping_shr(b as u32));
            I32x4ShrU, i32x4_shr_u, (a: U32x4, b: i32) -> U32x4, a.map(|a| a.wrapping_shr(b as u32));
            I32x4Add, i32x4_add, (a: I32x4, b: I32x4) -> I32x4, zip(a, b, i32::wrapping_add);
            I32x4Sub, i32x4_sub, (a: I32x4, b: I32x4) -> I32x4, zip(a, b, i32::wrapping_sub);
            I32x4Mul, i32x4_mul, (a: I32x4, b: I32x4) -> I32x4, zip(a, b, i32::wrapping_mul);
            I32x4MinS, i32x4_min_s, (a: I32x4, b: I32x4) -> I32x4, zip(a, b, Ord::min);
            I32x4MinU, i32x4_min_u, (a: U32x4, b: U32x4) -> U32x4, zip(a, b, Ord::min);
            I32x4MaxS, i32x4_max_s, (a: I32x4, b: I32x4) -> I32x4, zip(a, b, Ord::max);
            I32x4MaxU, i32x4_max_u, (a: U32x4, b: U32x4) -> U32x4, zip(a, b, Ord::max);
            I64x2Abs, i64x2_abs, (a: I64x2) -> I64x2, a.map(i64::wrapping_abs);
            I64x2Neg, i64x2_neg, (a: I64x2) -> I64x2, a.map(i64::wrapping_neg);
            I64x2Shl, i64x2_shl, (a: I64x2, b: i32) -> I64x2, a.map(|a| a.wrapping_shl(b as u32));
            I64x2ShrS, i64x2_shr_s, (a: I64x2, b: i32) -> I64x2, a.map(|a| a.wrapping_shr(b as u32));
            I64x2ShrU, i64x2_shr_u, (a: U64x2, b: i32) -> U64x2, a.map(|a| a.wrapping_shr(b as u32));
            I64x2Add, i64x2_add, (a: I64x2, b: I64x2) -> I64x2, zip(a, b, i64::wrapping_add);
            I64x2Sub, i64x2_sub, (a: I64x2, b: I64x2) -> I64x2, zip(a, b, i64::wrapping_sub);
            I64x2Mul, i64x2_mul, (a: I64x2, b: I64x2) -> I64x2, zip(a, b, i64::wrapping_mul);
            // Integers of one width made from another
            I8x16NarrowI16x8S, i8x16_narrow_i16x8_s, (a: I16x8, b: I16x8) -> I8x16, concat(a, b, |a| a.clamp(-128, 127) as i8);
            I8x16NarrowI16x8U, i8x16_narrow_i16x8_u, (a: I16x8, b: I16x8) -> U8x16, concat(a, b, |a| a.clamp(0, 255) as u8);
            I16x8ExtaddPairwiseI8x16S, i16x8_extadd_pairwise_i8x16_s, (a: I8x16) -> I16x8,
                pairwise(a.map(i16::from), i16::wrapping_add);
            I16x8ExtaddPairwiseI8x16U, i16x8_extadd_pairwise_i8x16_u, (a: U8x16) -> U16x8,
                pairwise(a.map(u16::from), u16::wrapping_add);
            I32x4ExtaddPairwiseI16x8S, i32x4_extadd_pairwise_i16x8_s, (a: I16x8) -> I32x4,
                pairwise(a.map(i32::from), i32::wrapping_add);
            I32x4ExtaddPairwiseI16x8U, i32x4_extadd_pairwise_i16x8_u, (a: U16x8) -> U32x4,
                pairwise(a.map(u32::from), u32::wrapping_add);
            I16x8NarrowI32x4S, i16x8_narrow_i32x4_s, (a: I32x4, b: I32x4) -> I16x8,
                concat(a, b, |a| a.clamp(-0x8000, 0x7FFF) as i16);
            I16x8NarrowI32x4U, i16x8_narrow_i32x4_u, (a: I32x4, b: I32x4) -> U16x8, concat(a, b, |a| a.clamp(0, 0xFFFF) as u16);
            I16x8ExtendLowI8x16S, i16x8_extend_low_i8x16_s, (a: I8x16) -> I16x8, low(a).map(From::from);
            I16x8ExtendHighI8x16S, i16x8_extend_high_i8x16_s, (a: I8x16) -> I16x8, high(a).map(From::from);
            I16x8ExtendLowI8x16U, i16x8_extend_low_i8x16_u, (a: U8x16) -> U16x8, low(a).map(From::from);
            I16x8ExtendHighI8x16U, i16x8_extend_high_i8x16_u, (a: U8x16) -> U16x8, high(a).map(From::from);
            I16x8ExtmulLowI8x16S, i16x8_extmul_low_i8x16_s, (a: I8x16, b: I8x16) -> I16x8, products(low(a), low(b));
            I16x8ExtmulHighI8x16S, i16x8_extmul_high_i8x16_s, (a: I8x16, b: I8x16) -> I16x8, products(high(a), high(b));
            I16x8ExtmulLowI8x16U, i16x8_extmul_low_i8x16_u, (a: U8x16, b: U8x16) -> U16x8, products(low(a), low(b));
            I16x8ExtmulHighI8x16U, i16x8_extmul_high_i8x16_u, (a: U8x16, b: U8x16) -> U16x8, products(high(a), high(b));
            I32x4ExtendLowI16x8S, i32x4_extend_low_i16x8_s, (a: I16x8) -> I32x4, low(a).map(From::from);
            I32x4ExtendHighI16x8S, i32x4_extend_high_i16x8_s, (a: I16x8) -> I32x4, high(a).map(From::from);
            I32x4ExtendLowI16x8U, i32x4_extend_low_i16x8_u, (a: U16x8) -> U32x4, low(a).map(From::from);
            I32x4ExtendHighI16x8U, i32x4_extend_high_i16x8_u, (a: U16x8) -> U32x4, high(a).map(From::from);
            I32x4DotI16x8S, i32x4_dot_i16x8_s, (a: I16x8, b: I16x8) -> I32x4, pairwise(products(a, b), i32::wrapping_add);
            I32x4ExtmulLowI16x8S, i32x4_extmul_low_i16x8_s, (a: I16x8, b: I16x8) -> I32x4, products(low(a), low(b));
            I32x4ExtmulHighI16x8S, i32x4_extmul_high_i16x8_s, (a: I16x8, b: I16x8) -> I32x4, products(high(a), high(b));
            I32x4ExtmulLowI16x8U, i32x4_extmul_low_i16x8_u, (a: U16x8, b: U16x8) -> U32x4, products(low(a), low(b));
            I32x4ExtmulHighI16x8U, i32x4_extmul_high_i16x8_u, (a: U16x8, b: U16x8) -> U32x4, products(high(a), high(b));
            I64x2ExtendLowI32x4S, i64x2_extend_low_i32x4_s, (a: I32x4) -> I64x2, low(a).map(From::from);
            I64x2ExtendHighI32x4S, i64x2_extend_high_i32x4_s, (a: I32x4) -> I64x2, high(a).map(From::from);
            I64x2ExtendLowI32x4U, i64x2_extend_low_i32x4_u, (a: U32x4) -> U64x2, low(a).map(From::from);
            I64x2ExtendHighI32x4U, i64x2_extend_high_i32x4_u, (a: U32x4) -> U64x2, high(a).map(From::from);
            I64x2ExtmulLowI32x4S, i64x2_extmul_low_i32x4_s, (a: I32x4, b: I32x4) -> I64x2, products(low(a), low(b));
            I64x2ExtmulHighI32x4S, i64x2_extmul_high_i32x4_s, (a: I32x4, b: I32x4) -> I64x2, products(high(a), high(b));
            I64x2ExtmulLowI32x4U, i64x2_extmul_low_i32x4_u, (a: U32x4, b: U32x4) -> U64x2, products(low(a), low(b));
            I64x2ExtmulHighI32x4U, i64x2_extmul_high_i32x4_u, (a: U32x4, b: U32x4) -> U64x2, products(high(a), high(b));
            // Floats
            F32x4Ceil, f32x4_ceil, (a: F32x4) -> F32x4, a.map(f32_ceil);
            F32x4Floor, f32x4_floor, (a: F32x4) -> F32x4, a.map(f32_floor);
            F32x4Trunc, f32x4_trunc, (a: F32x4) -> F32x4, a.map(f32_trunc);
            F32x4Nearest, f32x4_nearest, (a: F32x4) -> F32x4, a.map(f32_nearest);
            F64x2Ceil, f64x2_ceil, (a: F64x2) -> F64x2, a.map(f64_ceil);
            F64x2Floor, f64x2_floor, (a: F64x2) -> F64x2, a.map(f64_floor);
            F64x2Trunc, f64x2_trunc, (a: F64x2) -> F64x2, a.map(f64_trunc);
            F64x2Nearest, f64x2_nearest, (a: F64x2) -> F64x2, a.map(f64_nearest);
            F32x4Abs, f32x4_abs, (a: F32x4) -> F32x4, a.map(f32_abs);
            F32x4Neg, f32x4_neg, (a: F32x4) -> F32x4, a.map(f32_neg);
            F32x4Sqrt, f32x4_sqrt, (a: F32x4) -> F32x4, a.map(f32_sqrt);
            F32x4Add, f32x4_add, (a: F32x4, b: F32x4) -> F32x4, zip(a, b, f32_add);
            F32x4Sub, f32x4_sub, (a: F32x4, b: F32x4) -> F32x4, zip(a, b, f32_sub);
            F32x4Mul, f32x4_mul, (a: F32x4, b: F32x4) -> F32x4, zip(a, b, f32_mul);
            F32x4Div, f32x4_div, (a: F32x4, b: F32x4) -> F32x4, zip(a, b, f32_div);
            F32x4Min, f32x4_min, (a: F32x4, b: F32x4) -> F32x4, zip(a, b, f32_min);
            F32x4Max, f32x4_max, (a: F32x4, b: F32x4) -> F32x4, zip(a, b, f32_max);
            F32x4Pmin, f32x4_pmin, (a: F32x4, b: F32x4) -> F32x4, zip(a, b, |a, b| if b < a { b } else { a });
            F32x4Pmax, f32x4_pmax, (a: F32x4, b: F32x4) -> F32x4, zip(a, b, |a, b| if a < b { b } else { a });
            F64x2Abs, f64x2_abs, (a: F64x2) -> F64x2, a.map(f64_abs);
            F64x2Neg, f64x2_neg, (a: F64x2) -> F64x2, a.map(f64_neg);
            F64x2Sqrt, f64x2_sqrt, (a: F64x2) -> F64x2, a.map(f64_sqrt);
            F64x2Add, f64x2_add, (a: F64x2, b: F64x2) -> F64x2, zip(a, b, f64_add);
            F64x2Sub, f64x2_sub, (a: F64x2, b: F64x2) -> F64x2, zip(a, b, f64_sub);
            F64x2Mul, f64x2_mul, (a: F64x2, b: F64x2) -> F64x2, zip(a, b, f64_mul);
            F64x2Div, f64x2_div, (a: F64x2, b: F64x2) -> F64x2, zip(a, b, f64_div);
            F64x2Min, f64x2_min, (a: F64x2, b: F64x2) -> F64x2, zip(a, b, f64_min);
            F64x2Max, f64x2_max, (a: F64x2, b: F64x2) -> F64x2, zip(a, b, f64_max);
            F64x2Pmin, f64x2_pmin, (a: F64x2, b: F64x2) -> F64x2, zip(a, b, |a, b| if b < a { b } else { a });
            F64x2Pmax, f64x2_pmax, (a: F64x2, b: F64x2) -> F64x2, zip(a, b, |a, b| if a < b { b } else { a });
            // Conversions
            F32x4DemoteF64x2Zero, f32x4_demote_f64x2_zero, (a: F64x2) -> F32x4,
                [f32_demote_f64(a[0]), f32_demote_f64(a[1]), 0.0, 0.0];
            F64x2PromoteLowF32x4, f64x2_promote_low_f32x4, (a: F32x4) -> F64x2, low(a).map(f64_promote_f32);
            I32x4TruncSatF32x4S, i32x4_trunc_sat_f32x4_s, (a: F32x4) -> I32x4, a.map(|a| a as i32);
            I32x4TruncSatF32x4U, i32x4_trunc_sat_f32x4_u, (a: F32x4) -> U32x4, a.map(|a| a as u32);
            F32x4ConvertI32x4S, f32x4_convert_i32x4_s, (a: I32x4) -> F32x4, a.map(|a| a as f32);
            F32x4ConvertI32x4U, f32x4_convert_i32x4_u, (a: U32x4) -> F32x4, a.map(|a| a as f32);
            I32x4TruncSatF64x2SZero, i32x4_trunc_sat_f64x2_s_zero, (a: F64x2) -> I32x4, [a[0] as i32, a[1] as i32, 0, 0];
            I32x4TruncSatF64x2UZero, i32x4_trunc_sat_f64x2_u_zero, (a: F64x2) -> U32x4, [a[0] as u32, a[1] as u32, 0, 0];
            F64x2ConvertLowI32x4S, f64x2_convert_low_i32x4_s, (a: I32x4) -> F64x2, low(a).map(f64::from);
            F64x2ConvertLowI32x4U, f64x2_convert_low_i32x4_u, (a: U32x4) -> F64x2, low(a).map(f64::from);
            // Relaxed: each has the result of its strict counterpart or, without one, the result described above
            I8x16RelaxedSwizzle, i8x16_relaxed_swizzle, (a: U8x16, b: U8x16) -> U8x16, i8x16_swizzle(a, b);
            I32x4RelaxedTruncF32x4S, i32x4_relaxed_trunc_f32x4_s, (a: F32x4) -> I32x4, i32x4_trunc_sat_f32x4_s(a);
            I32x4RelaxedTruncF32x4U, i32x4_relaxed_trunc_f32x4_u, (a: F32x4) -> U32x4, i32x4_trunc_sat_f32x4_u(a);
            I32x4RelaxedTruncF64x2SZero, i32x4_relaxed_trunc_f64x2_s_zero, (a: F64x2) -> I32x4, i32x4_trunc_sat_f64x2_s_zero(a);
            I32x4RelaxedTruncF64x2UZero, i32x4_relaxed_trunc_f64x2_u_zero, (a: F64x2) -> U32x4, i32x4_trunc_sat_f64x2_u_zero(a);
            F32x4RelaxedMadd, f32x4_relaxed_madd, (a: F32x4, b: F32x4, c: F32x4) -> F32x4, f32x4_add(f32x4_mul(a, b), c);
            F32x4RelaxedNmadd, f32x4_relaxed_nmadd, (a: F32x4, b: F32x4, c: F32x4) -> F32x4,
                f32x4_add(f32x4_neg(f32x4_mul(a, b)), c);
            F64x2RelaxedMadd, f64x2_relaxed_madd, (a: F64x2, b: F64x2, c: F64x2) -> F64x2, f64x2_add(f64x2_mul(a, b), c);
            F64x2RelaxedNmadd, f64x2_relaxed_nmadd, (a: F64x2, b: F64x2, c: F64x2) -> F64x2,
                f64x2_add(f64x2_neg(f64x2_mul(a, b)), c);
            I8x16RelaxedLaneselect, i8x16_relaxed_laneselect, (a: V128, b: V128, c: V128) -> V128, v128_bitselect(a, b, c);
            I16x8RelaxedLaneselect, i16x8_relaxed_laneselect, (a: V128, b: V128, c: V128) -> V128, v128_bitselect(a, b, c);
            I32x4RelaxedLaneselect, i32x4_relaxed_laneselect, (a: V128, b: V128, c: V128) -> V128, v128_bitselect(a, b, c);
            I64x2RelaxedLaneselect, i64x2_relaxed_laneselect, (a: V128, b: V128, c: V128) -> V128, v128_bitselect(a, b, c);
            F32x4RelaxedMin, f32x4_relaxed_min, (a: F32x4, b: F32x4) -> F32x4, f32x4_min(a, b);
            F32x4RelaxedMax, f32x4_relaxed_max, (a: F32x4, b: F32x4) -> F32x4, f32x4_max(a, b);
            F64x2RelaxedMin, f64x2_relaxed_min, (a: F64x2, b: F64x2) -> F64x2, f64x2_min(a, b);
            F64x2RelaxedMax, f64x2_relaxed_max, (a: F64x2, b: F64x2) -> F64x2, f64x2_max(a, b);
            I16x8RelaxedQ15mulrS, i16x8_relaxed_q15mulr_s, (a: I16x8, b: I16x8) -> I16x8, i16x8_q15mulr_sat_s(a, b);
            I16x8RelaxedDotI8x16I7x16S, i16x8_relaxed_dot_i8x16_i7x16_s, (a: I8x16, b: I8x16) -> I16x8,
                pairwise(products(a, b), i16::wrapping_add);
            I32x4RelaxedDotI8x16I7x16AddS, i32x4_relaxed_dot_i8x16_i7x16_add_s, (a: I8x16, b: I8x16, c: I32x4) -> I32x4,
                i32x4_add(i32x4_extadd_pairwise_i16x8_s(i16x8_relaxed_dot_i8x16_i7x16_s(a, b)), c);
        }
    };
}

/// Calls the macro `$m` with every instruction on one lane of a vector: `Opcode, function, (operands; lane) -> result,
/// meaning;`. The lane is a `usize` below their number.
#[macro_export]
macro_rules! for_each_lane {
    ($m:ident) => {
        $m! {
            I8x16ExtractLaneS, i8x16_extract_lane_s, (a: I8x16; lane) -> i32, i32::from(a[lane]);
            I8x16ExtractLaneU, i8x16_extract_lane_u, (a: U8x16; lane) -> i32, i32::from(a[lane]);
            I8x16ReplaceLane, i8x16_replace_lane, (a: I8x16, b: i32; lane) -> I8x16, replace(a, lane, b as i8);
            I16x8ExtractLaneS, i16x8_extract_lane_s, (a: I16x8; lane) -> i32, i32::from(a[lane]);
            I16x8ExtractLaneU, i16x8_extract_lane_u, (a: U16x8; lane) -> i32, i32::from(a[lane]);
            I16x8ReplaceLane, i16x8_replace_lane, (a: I16x8, b: i32; lane) -> I16x8, replace(a, lane, b as i16);
            I32x4ExtractLane, i32x4_extract_lane, (a: I32x4; lane) -> i32, a[lane];
            I32x4ReplaceLane, i32x4_replace_lane, (a: I32x4, b: i32; lane) -> I32x4, replace(a, lane, b);
            I64x2ExtractLane, i64x2_extract_lane, (a: I64x2; lane) -> i64, a[lane];
            I64x2ReplaceLane, i64x2_replace_lane, (a: I64x2, b: i64; lane) -> I64x2, replace(a, lane, b);
            F32x4ExtractLane, f32x4_extract_lane, (a: F32x4; lane) -> f32, a[lane];
            F32x4ReplaceLane, f32x4_replace_lane, (a: F32x4, b: f32; lane) -> F32x4, replace(a, lane, b);
            F64x2ExtractLane, f64x2_extract_lane, (a: F64x2; lane) -> f64, a[lane];
            F64x2ReplaceLane, f64x2_replace_lane, (a: F64x2, b: f64; lane) -> F64x2, replace(a, lane, b);
        }
    };
}

/// Calls the macro `$m` with every load of a vector: `Opcode, bytes in memory, function;`. The bytes, as a number that
/// is zero-extended, are the function's operand.
#[macro_export]
macro_rules! for_each_vector_load {
    ($m:ident) => {
        $m! {
            V128Load, 16, identity;
            V128Load8x8S, 8, i16x8_extend_low_i8x16_s;
            V128Load8x8U, 8, i16x8_extend_low_i8x16_u;
            V128Load16x4S, 8, i32x4_extend_low_i16x8_s;
            V128Load16x4U, 8, i32x4_extend_low_i16x8_u;
            V128Load32x2S, 8, i64x2_extend_low_i32x4_s;
            V128Load32x2U, 8, i64x2_extend_low_i32x4_u;
            V128Load8Splat, 1, i8x16_splat;
            V128Load16Splat, 2, i16x8_splat;
            V128Load32Splat, 4, i32x4_splat;
            V128Load64Splat, 8, i64x2_splat;
            V128Load32Zero, 4, identity;
            V128Load64Zero, 8, identity;
        }
    };
}

/// Calls the macro `$m` with every access to memory of one lane: `Opcode, load or store, bytes in memory, function;`, which
/// replaces or extracts the lane.
#[macro_export]
macro_rules! for_each_lane_access {
    ($m:ident) => {
        $m! {
            V128Load8Lane, load, 1, i8x16_replace_lane;
            V128Load16Lane, load, 2, i16x8_replace_lane;
            V128Load32Lane, load, 4, i32x4_replace_lane;
            V128Load64Lane, load, 8, i64x2_replace_lane;
            V128Store8Lane, store, 1, i8x16_extract_lane_u;
            V128Store16Lane, store, 2, i16x8_extract_lane_u;
            V128Store32Lane, store, 4, i32x4_extract_lane;
            V128Store64Lane, store, 8, i64x2_extract_lane;
        }
    };
}

/// A v128 seen as bits.
pub type V128 = u128;
/// A v128 seen as 16 signed bytes.
pub type I8x16 = [i8; 16];
/// A v128 seen as 16 unsigned bytes.
pub type U8x16 = [u8; 16];
/// A v128 seen as 8 signed lanes of 16 bits.
pub type I16x8 = [i16; 8];
/// A v128 seen as 8 unsigned lanes of 16 bits.
pub type U16x8 = [u16; 8];
/// A v128 seen as 4 signed lanes of 32 bits.
pub type I32x4 = [i32; 4];
/// A v128 seen as 4 unsigned lanes of 32 bits.
pub type U32x4 = [u32; 4];
/// A v128 seen as 2 signed lanes of 64 bits.
pub type I64x2 = [i64; 2];
/// A v128 seen as 2 unsigned lanes of 64 bits.
pub type U64x2 = [u64; 2];
/// A v128 seen as 4 floats.
pub type F32x4 = [f32; 4];
/// A v128 seen as 2 floats.
pub type F64x2 = [f64; 2];

/// A Rust type that a slot of 16 bytes can hold: a view of a v128, or a number in the slot's lowest bits.
pub trait Wide: Sized {
    /// The value in `slot`.
    fn from_wide(slot: u128) -> Self;

    /// The slot that holds it, the bits above a number's zero.
    fn into_wide(self) -> u128;
}

macro_rules! impl_wide_lanes {
    ($($ty:ident * $count:literal;)*) => {
        $(
            impl Wide for [$ty; $count] {
                #[inline(always)]
                fn from_wide(slot: u128) -> [$ty; $count] {
                    let bytes = slot.to_le_bytes();
                    from_fn(|i| $ty::from_le_bytes(from_fn(|j| bytes[size_of::<$ty>() * i + j])))
                }

                #[inline(always)]
                fn into_wide(self) -> u128 {
                    u128::from_le_bytes(from_fn(|i| self[i / size_of::<$ty>()].to_le_bytes()[i % size_of::<$ty>()]))
                }
            }
        )*
    };
}

impl_wide_lanes! { i8 * 16; u8 * 16; i16 * 8; u16 * 8; i32 * 4; u32 * 4; i64 * 2; u64 * 2; f32 * 4; f64 * 2; }

impl Wide for u128 {
    #[inline(always)]
    fn from_wide(slot: u128) -> u128 {
        slot
    }

    #[inline(always)]
    fn into_wide(self) -> u128 {
        self
    }
}

macro_rules! impl_wide_numbers {
    ($($ty:ident)*) => {
        $(
            impl Wide for $ty {
                #[inline(always)]
                fn from_wide(slot: u128) -> $ty {
                    super::Slot::from_slot(slot as u64)
                }

                #[inline(always)]
                fn into_wide(self) -> u128 {
                    u128::from(super::Slot::into_slot(self))
                }
            }
        )*
    };
}

impl_wide_numbers! { i32 i64 f32 f64 }

macro_rules! define_vectors {
    ($($op:ident, $name:ident, ($($arg:ident: $ty:ty),*) -> $result:ty, $meaning:expr;)*) => {
        $(
            #[doc = concat!("[`Opcode::", stringify!($op), "`]")]
            #[inline(always)]
            pub fn $name($($arg: $ty),*) -> $result {
                $meaning
            }
        )*

        /// Evaluates `op` on slots of 16 bytes, or returns `None` if it has immediates or is not on vectors.
        ///
        /// # Panics
        /// If there are fewer arguments than operands.
        #[inline]
        pub fn eval(op: Opcode, args: &[u128]) -> Option<u128> {
            Some(match op {
                $(
                    Opcode::$op => {
                        let [$($arg),*] = *args.first_chunk().expect("as many arguments as operands");
                        $name($(Wide::from_wide($arg)),*).into_wide()
                    }
                )*
                _ => return None,
            })
        }
    };
}

for_each_vector!(define_vectors);

macro_rules! define_lanes {
    ($($op:ident, $name:ident, ($($arg:ident: $ty:ty),*; $lane:ident) -> $result:ty, $meaning:expr;)*) => {
        $(
            #[doc = concat!("[`Opcode::", stringify!($op), "`]")]
            ///
            /// # Panics
            /// There is no such lane.
            #[inline(always)]
            pub fn $name($($arg: $ty,)* $lane: usize) -> $result {
                $meaning
            }
        )*

        /// Evaluates `op` on slots of 16 bytes, or returns `None` if it has no lane for its only immediate.
        ///
        /// # Panics
        /// If there are fewer arguments than operands, or no such lane.
        #[inline]
        pub fn eval_lane(op: Opcode, args: &[u128], lane: u8) -> Option<u128> {
            Some(match op {
                $(
                    Opcode::$op => {
                        let [$($arg),*] = *args.first_chunk().expect("as many arguments as operands");
                        $name($(Wide::from_wide($arg),)* lane.into()).into_wide()
                    }
                )*
                _ => return None,
            })
        }
    };
}

for_each_lane!(define_lanes);

/// `i8x16.shuffle`: lanes of `a`, and from 16 on of `b`, picked by `lanes`.
///
/// # Panics
/// A lane is 32 or more.
#[inline(always)]
pub fn i8x16_shuffle(a: U8x16, b: U8x16, lanes: [u8; 16]) -> U8x16 {
    lanes.map(|lane| if lane < 16 { a[usize::from(lane)] } else { b[usize::from(lane - 16)] })
}

/// The conversion of loads that leave their bytes unchanged.
#[inline(always)]
pub fn identity(a: V128) -> V128 {
    a
}

#[inline(always)]
fn zip<A: Copy, R, const N: usize>(a: [A; N], b: [A; N], f: impl Fn(A, A) -> R) -> [R; N] {
    from_fn(|i| f(a[i], b[i]))
}

/// All ones where `f` holds, else zero.
#[inline(always)]
fn compare<A, R, const N: usize>(a: [A; N], b: [A; N], f: impl Fn(&A, &A) -> bool) -> [R; N]
where
    R: From<bool> + Neg<Output = R>,
{
    from_fn(|i| -R::from(f(&a[i], &b[i])))
}

/// The lanes' signs, lane 0's in bit 0.
#[inline(always)]
fn bitmask<A: Default + PartialOrd, const N: usize>(a: [A; N]) -> i32 {
    a.iter().rev().fold(0, |bits, lane| bits << 1 | i32::from(*lane < A::default()))
}

/// Lanes of `a` picked by those of `b`, zero where there is none.
#[inline(always)]
fn swizzle(a: U8x16, b: U8x16) -> U8x16 {
    b.map(|lane| a.get(usize::from(lane)).copied().unwrap_or(0))
}

/// The lower lanes, `M` of them.
#[inline(always)]
fn low<A: Copy, const N: usize, const M: usize>(a: [A; N]) -> [A; M] {
    from_fn(|i| a[i])
}

/// The upper lanes, `M` of them.
#[inline(always)]
fn high<A: Copy, const N: usize, const M: usize>(a: [A; N]) -> [A; M] {
    from_fn(|i| a[N - M + i])
}

/// `f` of each lane of `a`, then of each of `b`.
#[inline(always)]
fn concat<A: Copy, R, const N: usize, const M: usize>(a: [A; N], b: [A; N], f: impl Fn(A) -> R) -> [R; M] {
    from_fn(|i| f(if i < N { a[i] } else { b[i - N] }))
}

/// `f` of each two neighbours.
#[inline(always)]
fn pairwise<A: Copy, const N: usize, const M: usize>(a: [A; N], f: impl Fn(A, A) -> A) -> [A; M] {
    from_fn(|i| f(a[2 * i], a[2 * i + 1]))
}

/// Products in a type that holds them all.
#[inline(always)]
fn products<A: Copy, R: From<A> + Mul<Output = R>, const N: usize>(a: [A; N], b: [A; N]) -> [R; N] {
    from_fn(|i| R::from(a[i]) * R::from(b[i]))
}

/// The product of two fixed-point numbers with 15 fractional bits, rounded, -1 × -1 saturated.
#[inline(always)]
fn q15mulr(a: i16, b: i16) -> i16 {
    ((i32::from(a) * i32::from(b) + 0x4000) >> 15).min(0x7FFF) as i16
}

#[inline(always)]
fn replace<A, const N: usize>(mut a: [A; N], lane: usize, value: A) -> [A; N] {
    a[lane] = value;
    a
}

#[cfg(test)]
mod tests;
