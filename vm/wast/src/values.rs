//! Comparison of a value with the one that a script expects.

use wast::core::{AbstractHeapType, HeapType, NanPattern, V128Pattern, WastRetCore};
use wast::token::{F32, F64};
use weir::{Store, Val};

/// Returns whether `found` has the type and the value, or one of the values, that a script expects.
pub(super) fn matches(store: &Store<()>, found: Val, expected: &WastRetCore<'_>) -> bool {
    match (expected, found) {
        (WastRetCore::I32(expected), Val::I32(found)) => *expected == found,
        (WastRetCore::I64(expected), Val::I64(found)) => *expected == found,
        (WastRetCore::F32(expected), Val::F32(found)) => matches_f32(expected, found),
        (WastRetCore::F64(expected), Val::F64(found)) => matches_f64(expected, found),
        (WastRetCore::V128(expected), Val::V128(found)) => matches_v128(expected, found.as_u128()),
        (WastRetCore::RefNull(None), Val::FuncRef(None) | Val::ExternRef(None) | Val::ExnRef(None)) => true,
        (WastRetCore::RefNull(Some(ty)), Val::FuncRef(None)) => is_func(ty),
        (WastRetCore::RefNull(Some(ty)), Val::ExternRef(None)) => is_extern(ty),
        (WastRetCore::RefNull(Some(ty)), Val::ExnRef(None)) => is_exn(ty),
        // A script cannot identify a function: an index has no meaning outside of a module.
        (WastRetCore::RefFunc(None), Val::FuncRef(Some(_))) => true,
        (WastRetCore::RefExtern(None), Val::ExternRef(Some(_))) => true,
        (WastRetCore::RefExtern(Some(expected)), Val::ExternRef(Some(found))) => {
            let data = found.data(store).ok().flatten();
            data.and_then(|data| data.downcast_ref::<u32>()) == Some(expected)
        }
        (WastRetCore::Either(any), found) => any.iter().any(|expected| matches(store, found, expected)),
        _ => false,
    }
}

/// Returns whether the null of this type is a null function reference. A type with an index is a function type, because
/// Weir has no other types.
fn is_func(ty: &HeapType<'_>) -> bool {
    match ty {
        HeapType::Abstract { shared, ty } => !shared && matches!(ty, AbstractHeapType::Func | AbstractHeapType::NoFunc),
        HeapType::Concrete(_) => true,
        HeapType::Exact(_) => false,
    }
}

/// Returns whether the null of this type is a null reference to an exception.
fn is_exn(ty: &HeapType<'_>) -> bool {
    match ty {
        HeapType::Abstract { shared, ty } => !shared && matches!(ty, AbstractHeapType::Exn | AbstractHeapType::NoExn),
        HeapType::Concrete(_) | HeapType::Exact(_) => false,
    }
}

/// Returns whether the null of this type is a null host reference.
fn is_extern(ty: &HeapType<'_>) -> bool {
    match ty {
        HeapType::Abstract { shared, ty } => !shared && matches!(ty, AbstractHeapType::Extern | AbstractHeapType::NoExtern),
        HeapType::Concrete(_) | HeapType::Exact(_) => false,
    }
}

/// The canonical NaN of an f32, without sign.
const QUIET_NAN_32: u32 = 0x7FC0_0000;

fn matches_f32(expected: &NanPattern<F32>, found: u32) -> bool {
    match expected {
        NanPattern::Value(expected) => expected.bits == found,
        NanPattern::CanonicalNan => found & (u32::MAX >> 1) == QUIET_NAN_32,
        NanPattern::ArithmeticNan => found & QUIET_NAN_32 == QUIET_NAN_32,
    }
}

/// The canonical NaN of an f64, without sign.
const QUIET_NAN_64: u64 = 0x7FF8_0000_0000_0000;

fn matches_f64(expected: &NanPattern<F64>, found: u64) -> bool {
    match expected {
        NanPattern::Value(expected) => expected.bits == found,
        NanPattern::CanonicalNan => found & (u64::MAX >> 1) == QUIET_NAN_64,
        NanPattern::ArithmeticNan => found & QUIET_NAN_64 == QUIET_NAN_64,
    }
}

fn matches_v128(expected: &V128Pattern, found: u128) -> bool {
    let equal = |expected: [u8; 16]| u128::from_le_bytes(expected) == found;
    match expected {
        V128Pattern::I8x16(lanes) => equal(std::array::from_fn(|i| lanes[i] as u8)),
        V128Pattern::I16x8(lanes) => equal(std::array::from_fn(|i| lanes[i / 2].to_le_bytes()[i % 2])),
        V128Pattern::I32x4(lanes) => equal(std::array::from_fn(|i| lanes[i / 4].to_le_bytes()[i % 4])),
        V128Pattern::I64x2(lanes) => equal(std::array::from_fn(|i| lanes[i / 8].to_le_bytes()[i % 8])),
        V128Pattern::F32x4(lanes) => (0..).zip(lanes).all(|(i, lane)| matches_f32(lane, (found >> (32 * i)) as u32)),
        V128Pattern::F64x2(lanes) => (0..).zip(lanes).all(|(i, lane)| matches_f64(lane, (found >> (64 * i)) as u64)),
    }
}
