//! Values of programs: random ones, and their comparison.

use crate::rng::Rng;
use wasm_encoder as enc;
use wasm_encoder::InstructionSink;
use weir_bytecode::semantics::nan::Floats;
use weir_bytecode::types::ValType;

/// A value, floats as bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// i32
    I32(i32),
    /// i64
    I64(i64),
    /// f32
    F32(u32),
    /// f64
    F64(u64),
    /// v128
    V128(u128),
}

impl Value {
    /// Whether the specification allows one in place of the other: equal bits, or both are NaNs.
    pub fn same(self, other: Value) -> bool {
        match (self, other) {
            (Value::F32(a), Value::F32(b)) => a == b || f32::from_bits(a).is_nan() && f32::from_bits(b).is_nan(),
            (Value::F64(a), Value::F64(b)) => a == b || f64::from_bits(a).is_nan() && f64::from_bits(b).is_nan(),
            _ => self == other,
        }
    }

    /// The type.
    pub fn ty(self) -> ValType {
        match self {
            Value::I32(_) => ValType::I32,
            Value::I64(_) => ValType::I64,
            Value::F32(_) => ValType::F32,
            Value::F64(_) => ValType::F64,
            Value::V128(_) => ValType::V128,
        }
    }

    /// The bits; of a float that is a NaN those of the canonical one. A vector has no other NaN.
    pub fn canonical_bits(self) -> u128 {
        match self {
            Value::I32(x) => x as u32 as u128,
            Value::I64(x) => x as u64 as u128,
            Value::F32(x) => Floats::F32.canonicalise(x.into()),
            Value::F64(x) => Floats::F64.canonicalise(x.into()),
            Value::V128(x) => x,
        }
    }

    /// The integer of type `ty`, which is i64 or otherwise i32, with these bits.
    pub(super) fn integer(ty: ValType, bits: u64) -> Value {
        if ty == ValType::I64 { Value::I64(bits as i64) } else { Value::I32(bits as i32) }
    }

    /// Appends the instruction that pushes the value.
    pub(super) fn push(self, sink: &mut InstructionSink<'_>) {
        match self {
            Value::I32(x) => sink.i32_const(x),
            Value::I64(x) => sink.i64_const(x),
            Value::F32(x) => sink.f32_const(enc::Ieee32::new(x)),
            Value::F64(x) => sink.f64_const(enc::Ieee64::new(x)),
            Value::V128(x) => sink.v128_const(x as i128),
        };
    }

    /// Zero of type `ty`.
    pub(super) fn zero(ty: ValType) -> Value {
        match ty {
            ValType::I32 => Value::I32(0),
            ValType::I64 => Value::I64(0),
            ValType::F32 => Value::F32(0),
            ValType::F64 => Value::F64(0),
            _ => Value::V128(0),
        }
    }

    /// The value of a global that the host makes for a program that imports it. The number at the end of the name determines it; without one
    /// it is zero. An immutable integer, which may be the offset of a segment, is below 4.
    pub(crate) fn of_global(name: &str, ty: ValType, mutable: bool) -> Value {
        let Ok(number) = name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<u64>() else { return Value::zero(ty) };
        match ty {
            ValType::I32 if !mutable => Value::I32((number % 4) as i32),
            ValType::I64 if !mutable => Value::I64((number % 4) as i64),
            _ => Value::random(ty, &mut Rng::new(number)),
        }
    }

    /// A value of type `ty`, often at the edge of a range.
    pub(crate) fn random(ty: ValType, rng: &mut Rng) -> Value {
        match ty {
            ValType::I32 => Value::I32(random_int(rng, 32) as i32),
            ValType::I64 => Value::I64(random_int(rng, 64)),
            ValType::F32 => Value::F32(random_float(rng, f32::to_bits, |x| x as f32, |bits| bits as u32)),
            ValType::F64 => Value::F64(random_float(rng, f64::to_bits, |x| x, |bits| bits)),
            ValType::V128 => Value::V128(random_vector(rng)),
            _ => unreachable!("generated programs hold numbers and vectors only"),
        }
    }
}

/// Lanes of one type, half of the time all equal; NaNs are canonical.
fn random_vector(rng: &mut Rng) -> u128 {
    let (ty, bits) = *rng.pick(&[
        (ValType::I32, 8),
        (ValType::I32, 16),
        (ValType::I32, 32),
        (ValType::I64, 64),
        (ValType::F32, 32),
        (ValType::F64, 64),
    ]);
    let mut lane = || Value::random(ty, rng).canonical_bits() & ((1 << bits) - 1);
    let first = lane();
    let alike = lane() & 1 == 0;
    (0..128).step_by(bits).fold(0, |all, at| all | if alike { first } else { lane() } << at)
}

fn random_int(rng: &mut Rng, width: u32) -> i64 {
    match rng.below(8) {
        0..3 => i64::from(rng.below(16)) - 4,
        3 => (1i64 << rng.below(width)).wrapping_sub(i64::from(rng.below(2))),
        4 => -1 << rng.below(width),
        5 => i64::from(rng.below(1 << 16)),
        6 => *rng.pick(&[i64::MAX, i64::MIN, i32::MAX.into(), i32::MIN.into(), u32::MAX.into()]),
        _ => rng.bits() as i64,
    }
}

fn random_float<F, B>(rng: &mut Rng, bits: fn(F) -> B, float: fn(f64) -> F, raw: fn(u64) -> B) -> B {
    const EDGES: [f64; 16] = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -1.5,
        1e-40,
        5e-324,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        2147483648.0,
        -2147483649.0,
        4294967296.0,
        9223372036854775808.0,
        18446744073709551616.0,
    ];
    match rng.below(4) {
        0 => bits(float(*rng.pick(&EDGES))),
        1 => bits(float(f64::from(rng.below(2000)) / 8.0 - 100.0)),
        2 => bits(float(rng.bits() as i64 as f64)),
        _ => raw(rng.bits()),
    }
}
