//! Edge cases of the numeric instructions, and a test that none is missing.

use super::*;
use crate::opcodes::{Immediates, Signature};

const SNAN32: u32 = 0x7FA0_1234;
const SNAN64: u64 = 0xFFF4_0000_0000_0ABC;

/// The numeric instructions: those with operands and a fixed signature without vectors.
fn numeric(op: Opcode) -> Option<Signature> {
    let vector = |ty: &ValType| *ty == ValType::V128;
    op.signature()
        .filter(|signature| !signature.operands.is_empty() && !signature.operands.iter().chain([&signature.result]).any(vector))
}

fn slot(ty: ValType, bits: u64) -> u64 {
    if matches!(ty, ValType::I32 | ValType::F32) { bits & 0xFFFF_FFFF } else { bits }
}

#[test]
fn every_opcode_with_a_fixed_signature_evaluates() {
    for &op in Opcode::ALL {
        let numeric = numeric(op).is_some();
        let result = eval(op, &[6, 3]);
        assert_eq!(result.is_some(), numeric, "{}", op.mnemonic());
        if numeric {
            assert_eq!(op.immediates(), Immediates::None);
        }
    }
}

#[test]
fn the_table_agrees_with_table_1() {
    macro_rules! ty {
        (i32) => {
            ValType::I32
        };
        (i64) => {
            ValType::I64
        };
        (f32) => {
            ValType::F32
        };
        (f64) => {
            ValType::F64
        };
        (Result<$ty:ident, Trap>) => {
            ty!($ty)
        };
    }
    macro_rules! check {
        ($($op:ident, $name:ident, ($($arg:ident: $ty:ident),*) -> $result:ident $(<$ok:ident, Trap>)?, $meaning:expr;)*) => {
            $(
                let signature = Opcode::$op.signature().unwrap();
                assert_eq!(signature.operands, &[$(ty!($ty)),*], stringify!($op));
                assert_eq!(signature.result, ty!($result $(<$ok, Trap>)?), stringify!($op));
                assert_eq!(Opcode::$op.mnemonic().replace('.', "_"), stringify!($name));
            )*
        };
    }
    for_each_numeric!(check);
}

#[test]
fn results_of_four_bytes_have_a_zero_upper_half_and_ignore_that_of_operands() {
    for &op in Opcode::ALL {
        let Some(signature) = numeric(op) else { continue };
        for bits in [0, 1, 0x7FC0_0000, 0x8000_0000, 0xFFFF_FFFF, 0x4049_0FDB, u64::MAX, 0x3FF8_0000_0000_0000] {
            let clean: Vec<u64> = signature.operands.iter().map(|&ty| slot(ty, bits)).collect();
            let dirty: Vec<u64> = signature.operands.iter().map(|&ty| slot(ty, bits) | (u64::MAX ^ slot(ty, u64::MAX))).collect();
            let result = eval(op, &clean).unwrap();
            assert_eq!(result, eval(op, &dirty).unwrap(), "{}", op.mnemonic());
            if let Ok(value) = result {
                assert_eq!(value, slot(signature.result, value), "{}", op.mnemonic());
            }
        }
    }
}

#[test]
fn wide_arithmetic_carries_between_the_halves() {
    assert_eq!(i64_add128([-1, 0, 1, 0]), [0, 1]);
    assert_eq!(i64_add128([-1, -1, 1, 0]), [0, 0]);
    assert_eq!(i64_add128([i64::MIN, 5, i64::MIN, -7]), [0, -1]);
    assert_eq!(i64_sub128([0, 1, 1, 0]), [-1, 0]);
    assert_eq!(i64_sub128([0, 0, 0, 1]), [0, -1]);
    assert_eq!(i64_mul_wide_s([-1, -1]), [1, 0]);
    assert_eq!(i64_mul_wide_s([i64::MIN, 2]), [0, -1]);
    assert_eq!(i64_mul_wide_u([-1, -1]), [1, -2]);
    assert_eq!(i64_mul_wide_u([i64::MIN, 2]), [0, 1]);
}

#[test]
fn division_traps() {
    assert_eq!(i32_div_s(1, 0), Err(Trap::IntegerDivisionByZero));
    assert_eq!(i32_div_s(i32::MIN, -1), Err(Trap::IntegerOverflow));
    assert_eq!(i32_div_s(-7, 2), Ok(-3));
    assert_eq!(i32_div_u(-1, 2), Ok(0x7FFF_FFFF));
    assert_eq!(i32_rem_s(i32::MIN, -1), Ok(0));
    assert_eq!(i32_rem_s(-7, 2), Ok(-1));
    assert_eq!(i32_rem_u(-1, 10), Ok(5));
    assert_eq!(i32_rem_u(1, 0), Err(Trap::IntegerDivisionByZero));
    assert_eq!(i64_div_s(i64::MIN, -1), Err(Trap::IntegerOverflow));
    assert_eq!(i64_rem_s(i64::MIN, -1), Ok(0));
    assert_eq!(i64_div_u(-1, 2), Ok(i64::MAX));
    assert_eq!(i64_div_u(5, 0), Err(Trap::IntegerDivisionByZero));
    assert_eq!(i64_rem_s(5, 0), Err(Trap::IntegerDivisionByZero));
}

#[test]
fn shift_counts_wrap() {
    assert_eq!(i32_shl(1, 33), 2);
    assert_eq!(i32_shr_s(i32::MIN, 63), -1);
    assert_eq!(i32_shr_u(i32::MIN, -1), 1);
    assert_eq!(i32_rotl(i32::MIN, 33), 1);
    assert_eq!(i64_rotr(1, 65), i64::MIN);
    assert_eq!(i64_shl(1, 64), 1);
    // The count is taken modulo 64 from all of its bits; those above the 32nd are multiples of 64.
    assert_eq!(i64_shr_u(-1, (1 << 32) + 63), 1);
    assert_eq!(i64_clz(0), 64);
    assert_eq!(i32_ctz(0), 32);
}

#[test]
fn truncation_traps_exactly_outside_the_range() {
    assert_eq!(i32_trunc_f64_s(-2147483648.9), Ok(i32::MIN));
    assert_eq!(i32_trunc_f64_s(-2147483649.0), Err(Trap::IntegerOverflow));
    assert_eq!(i32_trunc_f64_s(2147483647.9), Ok(i32::MAX));
    assert_eq!(i32_trunc_f32_s(2147483648.0), Err(Trap::IntegerOverflow));
    assert_eq!(i32_trunc_f32_s(-2147483648.0), Ok(i32::MIN));
    assert_eq!(i32_trunc_f64_u(-0.9), Ok(0));
    assert_eq!(i32_trunc_f64_u(-1.0), Err(Trap::IntegerOverflow));
    assert_eq!(i32_trunc_f64_u(4294967295.9), Ok(-1));
    assert_eq!(i64_trunc_f64_s(-9223372036854775808.0), Ok(i64::MIN));
    assert_eq!(i64_trunc_f64_s(-9223372036854777856.0), Err(Trap::IntegerOverflow));
    assert_eq!(i64_trunc_f64_s(9223372036854774784.0), Ok(9223372036854774784));
    assert_eq!(i64_trunc_f64_s(9223372036854775808.0), Err(Trap::IntegerOverflow));
    assert_eq!(i64_trunc_f32_u(18446742974197923840.0), Ok(-1099511627776));
    assert_eq!(i64_trunc_f32_u(18446744073709551616.0), Err(Trap::IntegerOverflow));
    assert_eq!(i64_trunc_f32_s(f32::NAN), Err(Trap::BadConversionToInteger));
    assert_eq!(i32_trunc_f64_u(f64::NAN), Err(Trap::BadConversionToInteger));
    assert_eq!(i32_trunc_f32_u(f32::INFINITY), Err(Trap::IntegerOverflow));
    assert_eq!(i32_trunc_sat_f64_s(f64::NAN), 0);
    assert_eq!(i32_trunc_sat_f64_u(-5.0), 0);
    assert_eq!(i64_trunc_sat_f32_u(f32::INFINITY), -1);
    assert_eq!(i64_trunc_sat_f64_s(f64::NEG_INFINITY), i64::MIN);
}

#[test]
fn conversions_round_to_nearest_even() {
    assert_eq!(f32_convert_i32_s(16777217), 16777216.0);
    assert_eq!(f32_convert_i64_u(-1), 18446744073709551616.0);
    assert_eq!(f32_convert_i64_s(0x7FFF_FFBF_FFFF_FFFF), 9223371487098961920.0);
    assert_eq!(f64_convert_i64_u(0x8000_0000_0000_0400u64 as i64), 9223372036854775808.0);
    assert_eq!(f64_convert_i32_u(-1), 4294967295.0);
}

#[test]
fn min_max_and_rounding_keep_the_sign_of_zero() {
    assert_eq!(f32_min(0.0, -0.0).to_bits(), (-0.0f32).to_bits());
    assert_eq!(f64_min(-0.0, 0.0).to_bits(), (-0.0f64).to_bits());
    assert_eq!(f32_max(-0.0, 0.0).to_bits(), 0);
    assert_eq!(f64_max(-0.0, -0.0).to_bits(), (-0.0f64).to_bits());
    assert_eq!(f32_nearest(-0.3).to_bits(), (-0.0f32).to_bits());
    assert_eq!(f64_ceil(-0.7).to_bits(), (-0.0f64).to_bits());
    assert_eq!(f64_nearest(2.5), 2.0);
    assert_eq!(f32_nearest(3.5), 4.0);
    assert_eq!(f64_trunc(-1.9), -1.0);
    assert_eq!(f32_floor(-1.1), -2.0);
    assert_eq!(f64_min(f64::NEG_INFINITY, 1.0), f64::NEG_INFINITY);
}

#[test]
fn operations_on_signalling_nans_give_quiet_ones() {
    for &op in Opcode::ALL {
        let Some(signature) = op.signature() else { continue };
        let bitwise = ["abs", "neg", "copysign", "reinterpret"].iter().any(|name| op.mnemonic().contains(name));
        let float = |ty: ValType| matches!(ty, ValType::F32 | ValType::F64);
        if bitwise || !float(signature.result) || !signature.operands.iter().any(|&ty| float(ty)) {
            continue;
        }
        let nan = |ty| if ty == ValType::F32 { u64::from(SNAN32) } else { SNAN64 };
        let one = |ty| if ty == ValType::F32 { u64::from(1f32.to_bits()) } else { 1f64.to_bits() };
        for which in 0..signature.operands.len() {
            let args: Vec<u64> =
                signature.operands.iter().enumerate().map(|(i, &ty)| if i == which { nan(ty) } else { one(ty) }).collect();
            let result = eval(op, std::hint::black_box(&args)).unwrap().unwrap();
            let quiet = if signature.result == ValType::F32 { 0x7FC0_0000 } else { 0x7FF8_0000_0000_0000 };
            assert_eq!(result & quiet, quiet, "{} {args:x?} = {result:x}", op.mnemonic());
        }
    }
}

#[test]
fn bitwise_operations_keep_signalling_nans() {
    let snan = f32::from_bits(SNAN32);
    assert_eq!(f32_neg(snan).to_bits(), SNAN32 ^ 1 << 31);
    assert_eq!(f32_abs(f32_neg(snan)).to_bits(), SNAN32);
    assert_eq!(f32_copysign(snan, -1.0).to_bits(), SNAN32 | 1 << 31);
    assert_eq!(i64_reinterpret_f64(f64_reinterpret_i64(SNAN64 as i64)), SNAN64 as i64);
    assert_eq!(eval(Opcode::F64Abs, &[SNAN64]), Some(Ok(SNAN64 & !(1 << 63))));
}

#[test]
fn every_memory_access_is_described() {
    for &op in Opcode::ALL {
        let scalar = op.immediates() == Immediates::MemArg && !op.mnemonic().starts_with("v128");
        assert_eq!(access(op).is_some(), scalar, "{}", op.mnemonic());
        let Some(access) = access(op) else { continue };
        let name = op.mnemonic();
        assert_eq!(access.store, name.contains("store"), "{name}");
        assert!(name.starts_with(&access.ty.to_string()), "{name}");
        let digits = name.trim_end_matches("_s").trim_end_matches("_u");
        let full = if name.contains("32.") { 4 } else { 8 };
        let width = ["8", "16", "32"].iter().find(|n| digits[3..].ends_with(**n)).map_or(full, |n| n.parse::<u32>().unwrap() / 8);
        assert_eq!(access.width, width, "{name}");
    }
}

#[test]
fn loads_extend() {
    let load = |op, raw| access(op).unwrap().extend(raw);
    let raw = 0xDEAD_BEEF_F0F1_F280;
    assert_eq!(load(Opcode::I32Load8S, raw), 0xFFFF_FF80);
    assert_eq!(load(Opcode::I32Load8U, raw), 0x80);
    assert_eq!(load(Opcode::I32Load16S, raw), 0xFFFF_F280);
    assert_eq!(load(Opcode::I64Load16S, raw), 0xFFFF_FFFF_FFFF_F280);
    assert_eq!(load(Opcode::I64Load32S, raw), 0xFFFF_FFFF_F0F1_F280);
    assert_eq!(load(Opcode::I64Load32U, raw), 0xF0F1_F280);
    assert_eq!(load(Opcode::I64Load, raw), raw);
    assert_eq!(load(Opcode::I32Load, raw), 0xF0F1_F280);
    assert_eq!(load(Opcode::F32Load, raw), 0xF0F1_F280);
    assert_eq!(load(Opcode::F64Load, raw), raw);
}
