//! A test that no vector instruction is missing, and edge cases that are easy to get wrong. The specification's suite has the rest.

use super::*;
use crate::ValType;
use crate::opcodes::Immediates;

#[test]
fn the_tables_agree_with_table_1() {
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
        ($vector:ident) => {
            ValType::V128
        };
    }
    let mut seen = Vec::new();
    let mut check = |op: Opcode, name: &str, operands: &[ValType], result: ValType, immediates: Immediates| {
        let signature = op.signature().unwrap();
        assert_eq!((signature.operands, signature.result), (operands, result), "{name}");
        assert_eq!(op.mnemonic().replace('.', "_"), name);
        assert_eq!(op.immediates(), immediates, "{name}");
        seen.push(op);
    };
    macro_rules! plain {
        ($($op:ident, $name:ident, ($($arg:ident: $ty:ident),*) -> $result:ident, $meaning:expr;)*) => {
            $(check(Opcode::$op, stringify!($name), &[$(ty!($ty)),*], ty!($result), Immediates::None);)*
        };
    }
    macro_rules! lanes {
        ($($op:ident, $name:ident, ($($arg:ident: $ty:ident),*; $lane:ident) -> $result:ident, $meaning:expr;)*) => {
            $(check(Opcode::$op, stringify!($name), &[$(ty!($ty)),*], ty!($result), Immediates::Lane);)*
        };
    }
    for_each_vector!(plain);
    for_each_lane!(lanes);
    check(Opcode::I8x16Shuffle, "i8x16_shuffle", &[ValType::V128; 2], ValType::V128, Immediates::Shuffle);
    check(Opcode::V128Const, "v128_const", &[], ValType::V128, Immediates::V128);
    let mut access = |op: Opcode, name: String, immediates| {
        assert_eq!((op.mnemonic(), op.immediates()), (name.as_str(), immediates));
        seen.push(op);
    };
    macro_rules! loads {
        ($($op:ident, $width:literal, $name:ident;)*) => {
            // The function is a splat or an extension of that many bytes, or none at all.
            $(access(Opcode::$op, Opcode::$op.mnemonic().into(), Immediates::MemArg);)*
        };
    }
    macro_rules! lane_accesses {
        ($($op:ident, $kind:ident, $width:literal, $name:ident;)*) => {
            $(access(Opcode::$op, format!("v128.{}{}_lane", stringify!($kind), 8 * $width), Immediates::MemArgLane);)*
        };
    }
    for_each_vector_load!(loads);
    for_each_lane_access!(lane_accesses);
    access(Opcode::V128Store, "v128.store".into(), Immediates::MemArg);
    seen.sort();
    let vectors: Vec<Opcode> = Opcode::ALL.iter().copied().filter(|op| op.is_vector()).collect();
    assert_eq!(seen, vectors);
    assert_eq!(vectors.len(), 256);
}

#[test]
fn lane_0_is_in_the_lowest_bits() {
    assert_eq!(<[i16; 8]>::from_wide(0x8000_0000_0000_0000_0000_0000_0002_FFFF), [-1, 2, 0, 0, 0, 0, 0, i16::MIN]);
    assert_eq!([1i64, -1].into_wide(), 0xFFFF_FFFF_FFFF_FFFF_0000_0000_0000_0001);
    assert_eq!((-1i32).into_wide(), 0xFFFF_FFFF);
    assert_eq!(i32::from_wide(u128::MAX), -1);
    assert_eq!([0.0f32, 1.0, 0.0, 0.0].into_wide(), 0x3F80_0000 << 32);
    assert_eq!(eval(Opcode::I32x4Splat, &[7]), Some(0x0000_0007_0000_0007_0000_0007_0000_0007));
    assert_eq!(eval_lane(Opcode::I8x16ExtractLaneS, &[0xFE << 8], 1), Some(0xFFFF_FFFE));
    assert_eq!(eval_lane(Opcode::I64x2ReplaceLane, &[0, 5], 1), Some(5 << 64));
    assert_eq!((eval(Opcode::I32Add, &[1, 2]), eval_lane(Opcode::I32Add, &[1, 2], 0)), (None, None));
}

#[test]
fn saturation_and_rounding() {
    assert_eq!(i16x8_q15mulr_sat_s([i16::MIN; 8], [i16::MIN; 8]), [i16::MAX; 8]);
    assert_eq!(i16x8_q15mulr_sat_s([i16::MIN; 8], [i16::MAX; 8]), [-32767; 8]);
    assert_eq!(i8x16_avgr_u([255; 16], [254; 16]), [255; 16]);
    assert_eq!(i8x16_avgr_u([0; 16], [1; 16]), [1; 16]);
    assert_eq!(i8x16_narrow_i16x8_u([-1, 256, 255, 0, 0, 0, 0, 0], [1; 8])[..4], [0, 255, 255, 0]);
    assert_eq!(i8x16_narrow_i16x8_s([-129, 128, 5, 0, 0, 0, 0, 0], [7; 8])[7..9], [0, 7]);
    assert_eq!(i32x4_dot_i16x8_s([i16::MIN; 8], [i16::MIN; 8]), [i32::MIN; 4]);
    assert_eq!(i16x8_relaxed_dot_i8x16_i7x16_s([-128; 16], [-128; 16]), [i16::MIN; 8]);
    assert_eq!(i8x16_abs([i8::MIN; 16]), [i8::MIN; 16]);
    assert_eq!(i8x16_shl([1; 16], 9), [2; 16]);
    assert_eq!(i64x2_shr_s([i64::MIN; 2], 127), [-1; 2]);
}

#[test]
fn lanes_are_picked() {
    let a: U8x16 = from_fn(|i| i as u8 + 100);
    let b: U8x16 = from_fn(|i| i as u8 + 200);
    assert_eq!(i8x16_shuffle(a, b, [31, 0, 15, 16, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])[..4], [215, 100, 115, 200]);
    assert_eq!(i8x16_swizzle(a, [0, 15, 16, 255, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])[..5], [100, 115, 0, 0, 101]);
    assert_eq!(i16x8_bitmask([-1, 0, 0, 1, 0, 0, 0, -5]), 0x81);
    assert_eq!(i64x2_extend_high_i32x4_u([1, 2, 3, u32::MAX]), [3, 0xFFFF_FFFF]);
    assert_eq!(i16x8_extadd_pairwise_i8x16_s([-128; 16]), [-256; 8]);
}

#[test]
fn pseudo_minimum_and_maximum_are_comparisons() {
    let nan = f32::NAN;
    assert!(f32x4_pmin([nan; 4], [1.0; 4])[0].is_nan() && f32x4_pmin([1.0; 4], [nan; 4])[0] == 1.0);
    assert!(f32x4_pmax([0.0; 4], [-0.0; 4])[0].is_sign_positive() && f32x4_pmax([-0.0; 4], [0.0; 4])[0].is_sign_negative());
    assert!(f64x2_min([0.0; 2], [-0.0; 2])[0].is_sign_negative() && f64x2_max([f64::NAN; 2], [1.0; 2])[0].is_nan());
}

/// The products' exact sum is 2⁻²⁴ away from the result of two roundings.
#[test]
fn relaxed_multiply_and_add_rounds_twice() {
    let x = 1.0 + f32::EPSILON;
    assert_eq!(f32x4_relaxed_madd([x; 4], [x; 4], [-(x * x); 4]), [0.0; 4]);
    assert_eq!(f32x4_relaxed_nmadd([x; 4], [x; 4], [x * x; 4]), [0.0; 4]);
}
