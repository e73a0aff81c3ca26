//! The meaning of every numeric instruction, and the conversions of loads and stores. The interpreter, constant folding
//! and the IR evaluator all call this file, so that they agree.
//!
//! Vectors are in [`vector`].
//!
//! Integers are `i32` and `i64`, comparisons return an `i32` of 0 or 1, and functions that may trap return a `Result`.
//! A *slot* is 8 bytes: i32 and f32 are its low half, and results have a zero upper half.
//!
//! NaNs: `abs`, `neg`, `copysign`, the reinterpretations, loads and stores move bits and keep signalling NaNs. Every other
//! operation that makes a float from a float makes a quiet NaN. `+ - * /` and `sqrt` leave that to the processor; rounding, `min`
//! and `max` go through library code or comparisons, which need not quiet, so they do it by hand.

pub mod nan;
pub mod vector;

use crate::Opcode;
use crate::trap::Trap;
use crate::types::ValType;

/// Calls the macro `$m` with every numeric instruction: `Opcode, function, (operands) -> result, meaning;`, where the
/// result is a `Result<_, Trap>` if it may trap.
#[macro_export]
macro_rules! for_each_numeric {
    ($m:ident) => {
        $m! {
            // i32 comparisons
            I32Eqz, i32_eqz, (a: i32) -> i32, i32::from(a == 0);
            I32Eq, i32_eq, (a: i32, b: i32) -> i32, i32::from(a == b);
            I32Ne, i32_ne, (a: i32, b: i32) -> i32, i32::from(a != b);
            I32LtS, i32_lt_s, (a: i32, b: i32) -> i32, i32::from(a < b);
            I32LtU, i32_lt_u, (a: i32, b: i32) -> i32, i32::from((a as u32) < b as u32);
            I32GtS, i32_gt_s, (a: i32, b: i32) -> i32, i32::from(a > b);
            I32GtU, i32_gt_u, (a: i32, b: i32) -> i32, i32::from(a as u32 > b as u32);
            I32LeS, i32_le_s, (a: i32, b: i32) -> i32, i32::from(a <= b);
            I32LeU, i32_le_u, (a: i32, b: i32) -> i32, i32::from(a as u32 <= b as u32);
            I32GeS, i32_ge_s, (a: i32, b: i32) -> i32, i32::from(a >= b);
            I32GeU, i32_ge_u, (a: i32, b: i32) -> i32, i32::from(a as u32 >= b as u32);
            // i64 comparisons
            I64Eqz, i64_eqz, (a: i64) -> i32, i32::from(a == 0);
            I64Eq, i64_eq, (a: i64, b: i64) -> i32, i32::from(a == b);
            I64Ne, i64_ne, (a: i64, b: i64) -> i32, i32::from(a != b);
            I64LtS, i64_lt_s, (a: i64, b: i64) -> i32, i32::from(a < b);
            I64LtU, i64_lt_u, (a: i64, b: i64) -> i32, i32::from((a as u64) < b as u64);
            I64GtS, i64_gt_s, (a: i64, b: i64) -> i32, i32::from(a > b);
            I64GtU, i64_gt_u, (a: i64, b: i64) -> i32, i32::from(a as u64 > b as u64);
            I64LeS, i64_le_s, (a: i64, b: i64) -> i32, i32::from(a <= b);
            I64LeU, i64_le_u, (a: i64, b: i64) -> i32, i32::from(a as u64 <= b as u64);
            I64GeS, i64_ge_s, (a: i64, b: i64) -> i32, i32::from(a >= b);
            I64GeU, i64_ge_u, (a: i64, b: i64) -> i32, i32::from(a as u64 >= b as u64);
            // f32 comparisons
            F32Eq, f32_eq, (a: f32, b: f32) -> i32, i32::from(a == b);
            F32Ne, f32_ne, (a: f32, b: f32) -> i32, i32::from(a != b);
            F32Lt, f32_lt, (a: f32, b: f32) -> i32, i32::from(a < b);
            F32Gt, f32_gt, (a: f32, b: f32) -> i32, i32::from(a > b);
            F32Le, f32_le, (a: f32, b: f32) -> i32, i32::from(a <= b);
            F32Ge, f32_ge, (a: f32, b: f32) -> i32, i32::from(a >= b);
            // f64 comparisons
            F64Eq, f64_eq, (a: f64, b: f64) -> i32, i32::from(a == b);
            F64Ne, f64_ne, (a: f64, b: f64) -> i32, i32::from(a != b);
            F64Lt, f64_lt, (a: f64, b: f64) -> i32, i32::from(a < b);
            F64Gt, f64_gt, (a: f64, b: f64) -> i32, i32::from(a > b);
            F64Le, f64_le, (a: f64, b: f64) -> i32, i32::from(a <= b);
            F64Ge, f64_ge, (a: f64, b: f64) -> i32, i32::from(a >= b);
            // i32 arithmetic
            I32Clz, i32_clz, (a: i32) -> i32, a.leading_zeros() as i32;
            I32Ctz, i32_ctz, (a: i32) -> i32, a.trailing_zeros() as i32;
            I32Popcnt, i32_popcnt, (a: i32) -> i32, a.count_ones() as i32;
            I32Add, i32_add, (a: i32, b: i32) -> i32, a.wrapping_add(b);
            I32Sub, i32_sub, (a: i32, b: i32) -> i32, a.wrapping_sub(b);
            I32Mul, i32_mul, (a: i32, b: i32) -> i32, a.wrapping_mul(b);
            I32DivS, i32_div_s, (a: i32, b: i32) -> Result<i32, Trap>, a.checked_div(nonzero(b)?).ok_or(Trap::IntegerOverflow);
            I32DivU, i32_div_u, (a: i32, b: i32) -> Result<i32, Trap>, Ok((a as u32 / nonzero(b)? as u32) as i32);
            I32RemS, i32_rem_s, (a: i32, b: i32) -> Result<i32, Trap>, Ok(a.wrapping_rem(nonzero(b)?));
            I32RemU, i32_rem_u, (a: i32, b: i32) -> Result<i32, Trap>, Ok((a as u32 % nonzero(b)? as u32) as i32);
            I32And, i32_and, (a: i32, b: i32) -> i32, a & b;
            I32Or, i32_or, (a: i32, b: i32) -> i32, a | b;
            I32Xor, i32_xor, (a: i32, b: i32) -> i32, a ^ b;
            I32Shl, i32_shl, (a: i32, b: i32) -> i32, a.wrapping_shl(b as u32);
            I32ShrS, i32_shr_s, (a: i32, b: i32) -> i32, a.wrapping_shr(b as u32);
            I32ShrU, i32_shr_u, (a: i32, b: i32) -> i32, (a as u32).wrapping_shr(b as u32) as i32;
            I32Rotl, i32_rotl, (a: i32, b: i32) -> i32, a.rotate_left(b as u32 % u32::BITS);
            I32Rotr, i32_rotr, (a: i32, b: i32) -> i32, a.rotate_right(b as u32 % u32::BITS);
            // i64 arithmetic
            I64Clz, i64_clz, (a: i64) -> i64, a.leading_zeros() as i64;
            I64Ctz, i64_ctz, (a: i64) -> i64, a.trailing_zeros() as i64;
            I64Popcnt, i64_popcnt, (a: i64) -> i64, a.count_ones() as i64;
            I64Add, i64_add, (a: i64, b: i64) -> i64, a.wrapping_add(b);
            I64Sub, i64_sub, (a: i64, b: i64) -> i64, a.wrapping_sub(b);
            I64Mul, i64_mul, (a: i64, b: i64) -> i64, a.wrapping_mul(b);
            I64DivS, i64_div_s, (a: i64, b: i64) -> Result<i64, Trap>, a.checked_div(nonzero(b)?).ok_or(Trap::IntegerOverflow);
            I64DivU, i64_div_u, (a: i64, b: i64) -> Result<i64, Trap>, Ok((a as u64 / nonzero(b)? as u64) as i64);
            I64RemS, i64_rem_s, (a: i64, b: i64) -> Result<i64, Trap>, Ok(a.wrapping_rem(nonzero(b)?));
            I64RemU, i64_rem_u, (a: i64, b: i64) -> Result<i64, Trap>, Ok((a as u64 % nonzero(b)? as u64) as i64);
            I64And, i64_and, (a: i64, b: i64) -> i64, a & b;
            I64Or, i64_or, (a: i64, b: i64) -> i64, a | b;
            I64Xor, i64_xor, (a: i64, b: i64) -> i64, a ^ b;
            I64Shl, i64_shl, (a: i64, b: i64) -> i64, a.wrapping_shl(b as u32);
            I64ShrS, i64_shr_s, (a: i64, b: i64) -> i64, a.wrapping_shr(b as u32);
            I64ShrU, i64_shr_u, (a: i64, b: i64) -> i64, (a as u64).wrapping_shr(b as u32) as i64;
            I64Rotl, i64_rotl, (a: i64, b: i64) -> i64, a.rotate_left(b as u32 % u64::BITS);
            I64Rotr, i64_rotr, (a: i64, b: i64) -> i64, a.rotate_right(b as u32 % u64::BITS);
            // f32 arithmetic
            F32Abs, f32_abs, (a: f32) -> f32, a.abs();
            F32Neg, f32_neg, (a: f32) -> f32, -a;
            F32Ceil, f32_ceil, (a: f32) -> f32, a.ceil().quiet();
            F32Floor, f32_floor, (a: f32) -> f32, a.floor().quiet();
            F32Trunc, f32_trunc, (a: f32) -> f32, a.trunc().quiet();
            F32Nearest, f32_nearest, (a: f32) -> f32, a.round_ties_even().quiet();
            F32Sqrt, f32_sqrt, (a: f32) -> f32, a.sqrt();
            F32Add, f32_add, (a: f32, b: f32) -> f32, a + b;
            F32Sub, f32_sub, (a: f32, b: f32) -> f32, a - b;
            F32Mul, f32_mul, (a: f32, b: f32) -> f32, a * b;
            F32Div, f32_div, (a: f32, b: f32) -> f32, a / b;
            F32Min, f32_min, (a: f32, b: f32) -> f32, a.minimum_of(b);
            F32Max, f32_max, (a: f32, b: f32) -> f32, a.maximum_of(b);
            F32Copysign, f32_copysign, (a: f32, b: f32) -> f32, a.copysign(b);
            // f64 arithmetic
            F64Abs, f64_abs, (a: f64) -> f64, a.abs();
            F64Neg, f64_neg, (a: f64) -> f64, -a;
            F64Ceil, f64_ceil, (a: f64) -> f64, a.ceil().quiet();
            F64Floor, f64_floor, (a: f64) -> f64, a.floor().quiet();
            F64Trunc, f64_trunc, (a: f64) -> f64, a.trunc().quiet();
            F64Nearest, f64_nearest, (a: f64) -> f64, a.round_ties_even().quiet();
            F64Sqrt, f64_sqrt, (a: f64) -> f64, a.sqrt();
            F64Add, f64_add, (a: f64, b: f64) -> f64, a + b;
            F64Sub, f64_sub, (a: f64, b: f64) -> f64, a - b;
            F64Mul, f64_mul, (a: f64, b: f64) -> f64, a * b;
            F64Div, f64_div, (a: f64, b: f64) -> f64, a / b;
            F64Min, f64_min, (a: f64, b: f64) -> f64, a.minimum_of(b);
            F64Max, f64_max, (a: f64, b: f64) -> f64, a.maximum_of(b);
            F64Copysign, f64_copysign, (a: f64, b: f64) -> f64, a.copysign(b);
            // Conversions
            I32WrapI64, i32_wrap_i64, (a: i64) -> i32, a as i32;
            I32TruncF32S, i32_trunc_f32_s, (a: f32) -> Result<i32, Trap>, Ok(within(f64::from(a), I32_RANGE)? as i32);
            I32TruncF32U, i32_trunc_f32_u, (a: f32) -> Result<i32, Trap>, Ok(within(f64::from(a), U32_RANGE)? as u32 as i32);
            I32TruncF64S, i32_trunc_f64_s, (a: f64) -> Result<i32, Trap>, Ok(within(a, I32_RANGE)? as i32);
            I32TruncF64U, i32_trunc_f64_u, (a: f64) -> Result<i32, Trap>, Ok(within(a, U32_RANGE)? as u32 as i32);
            I64ExtendI32S, i64_extend_i32_s, (a: i32) -> i64, i64::from(a);
            I64ExtendI32U, i64_extend_i32_u, (a: i32) -> i64, i64::from(a as u32);
            I64TruncF32S, i64_trunc_f32_s, (a: f32) -> Result<i64, Trap>, Ok(within(f64::from(a), I64_RANGE)? as i64);
            I64TruncF32U, i64_trunc_f32_u, (a: f32) -> Result<i64, Trap>, Ok(within(f64::from(a), U64_RANGE)? as u64 as i64);
            I64TruncF64S, i64_trunc_f64_s, (a: f64) -> Result<i64, Trap>, Ok(within(a, I64_RANGE)? as i64);
            I64TruncF64U, i64_trunc_f64_u, (a: f64) -> Result<i64, Trap>, Ok(within(a, U64_RANGE)? as u64 as i64);
            F32ConvertI32S, f32_convert_i32_s, (a: i32) -> f32, a as f32;
            F32ConvertI32U, f32_convert_i32_u, (a: i32) -> f32, a as u32 as f32;
            F32ConvertI64S, f32_convert_i64_s, (a: i64) -> f32, a as f32;
            F32ConvertI64U, f32_convert_i64_u, (a: i64) -> f32, a as u64 as f32;
            F32DemoteF64, f32_demote_f64, (a: f64) -> f32, (a as f32).quiet();
            F64ConvertI32S, f64_convert_i32_s, (a: i32) -> f64, a as f64;
            F64ConvertI32U, f64_convert_i32_u, (a: i32) -> f64, a as u32 as f64;
            F64ConvertI64S, f64_convert_i64_s, (a: i64) -> f64, a as f64;
            F64ConvertI64U, f64_convert_i64_u, (a: i64) -> f64, a as u64 as f64;
            F64PromoteF32, f64_promote_f32, (a: f32) -> f64, f64::from(a).quiet();
            I32ReinterpretF32, i32_reinterpret_f32, (a: f32) -> i32, a.to_bits() as i32;
            I64ReinterpretF64, i64_reinterpret_f64, (a: f64) -> i64, a.to_bits() as i64;
            F32ReinterpretI32, f32_reinterpret_i32, (a: i32) -> f32, f32::from_bits(a as u32);
            F64ReinterpretI64, f64_reinterpret_i64, (a: i64) -> f64, f64::from_bits(a as u64);
            I32Extend8S, i32_extend8_s, (a: i32) -> i32, i32::from(a as i8);
            I32Extend16S, i32_extend16_s, (a: i32) -> i32, i32::from(a as i16);
            I64Extend8S, i64_extend8_s, (a: i64) -> i64, i64::from(a as i8);
            I64Extend16S, i64_extend16_s, (a: i64) -> i64, i64::from(a as i16);
            I64Extend32S, i64_extend32_s, (a: i64) -> i64, i64::from(a as i32);
            I32TruncSatF32S, i32_trunc_sat_f32_s, (a: f32) -> i32, a as i32;
            I32TruncSatF32U, i32_trunc_sat_f32_u, (a: f32) -> i32, a as u32 as i32;
            I32TruncSatF64S, i32_trunc_sat_f64_s, (a: f64) -> i32, a as i32;
            I32TruncSatF64U, i32_trunc_sat_f64_u, (a: f64) -> i32, a as u32 as i32;
            I64TruncSatF32S, i64_trunc_sat_f32_s, (a: f32) -> i64, a as i64;
            I64TruncSatF32U, i64_trunc_sat_f32_u, (a: f32) -> i64, a as u64 as i64;
            I64TruncSatF64S, i64_trunc_sat_f64_s, (a: f64) -> i64, a as i64;
            I64TruncSatF64U, i64_trunc_sat_f64_u, (a: f64) -> i64, a as u64 as i64;
        }
    };
}

/// Calls the macro `$m` with every load, `Opcode, type, in memory as slot;`. The last two are integer types of the
/// bits; the bits in memory are extended to those in the slot.
#[macro_export]
macro_rules! for_each_load {
    ($m:ident) => {
        $m! {
            I32Load, I32, i32 as i32;
            I64Load, I64, i64 as i64;
            F32Load, F32, i32 as i32;
            F64Load, F64, i64 as i64;
            I32Load8S, I32, i8 as i32;
            I32Load8U, I32, u8 as i32;
            I32Load16S, I32, i16 as i32;
            I32Load16U, I32, u16 as i32;
            I64Load8S, I64, i8 as i64;
            I64Load8U, I64, u8 as i64;
            I64Load16S, I64, i16 as i64;
            I64Load16U, I64, u16 as i64;
            I64Load32S, I64, i32 as i64;
            I64Load32U, I64, u32 as i64;
        }
    };
}

/// Calls the macro `$m` with every store, `Opcode, type, in the slot as memory;`. The bits in the slot are truncated to
/// those in memory.
#[macro_export]
macro_rules! for_each_store {
    ($m:ident) => {
        $m! {
            I32Store, I32, i32 as u32;
            I64Store, I64, i64 as u64;
            F32Store, F32, i32 as u32;
            F64Store, F64, i64 as u64;
            I32Store8, I32, i32 as u8;
            I32Store16, I32, i32 as u16;
            I64Store8, I64, i64 as u8;
            I64Store16, I64, i64 as u16;
            I64Store32, I64, i64 as u32;
        }
    };
}

macro_rules! define_functions {
    ($($op:ident, $name:ident, ($($arg:ident: $ty:ident),*) -> $result:ty, $meaning:expr;)*) => {
        $(
            #[doc = concat!("[`Opcode::", stringify!($op), "`]")]
            #[inline(always)]
            #[allow(clippy::missing_errors_doc, reason = "the specification says when an instruction traps")]
            pub fn $name($($arg: $ty),*) -> $result {
                $meaning
            }
        )*

        /// Evaluates `op` on slots, or returns `None` if it is not numeric.
        ///
        /// # Panics
        /// If there are fewer arguments than operands.
        #[inline]
        pub fn eval(op: Opcode, args: &[u64]) -> Option<Result<u64, Trap>> {
            Some(match op {
                $(
                    Opcode::$op => {
                        let [$($arg),*] = *args.first_chunk().expect("as many arguments as operands");
                        $name($(<$ty>::from_slot($arg)),*).into_outcome()
                    }
                )*
                _ => return None,
            })
        }
    };
}

for_each_numeric!(define_functions);

/// The memory access of a load or a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Type of the value in the slot.
    pub ty: ValType,
    /// Bytes in memory.
    pub width: u32,
    /// Whether a load extends the sign; it never matters where `width` is that of `ty`.
    pub signed: bool,
    /// Whether it stores.
    pub store: bool,
}

macro_rules! define_accesses {
    (load $($op:ident, $ty:ident, $memory:ident as $slot:ident;)*) => {
        const fn load_access(op: Opcode) -> Option<Access> {
            Some(match op {
                $(
                    Opcode::$op => Access {
                        ty: ValType::$ty,
                        width: size_of::<$memory>() as u32,
                        signed: $memory::MIN != 0,
                        store: false,
                    },
                )*
                _ => return None,
            })
        }
    };
    (store $($op:ident, $ty:ident, $slot:ident as $memory:ident;)*) => {
        const fn store_access(op: Opcode) -> Option<Access> {
            Some(match op {
                $(
                    Opcode::$op => Access {
                        ty: ValType::$ty,
                        width: size_of::<$memory>() as u32,
                        signed: false,
                        store: true,
                    },
                )*
                _ => return None,
            })
        }
    };
}

macro_rules! define_loads {
    ($($row:tt)*) => { define_accesses!(load $($row)*); };
}

macro_rules! define_stores {
    ($($row:tt)*) => { define_accesses!(store $($row)*); };
}

for_each_load!(define_loads);
for_each_store!(define_stores);

/// `ref.is_null`: the slot of null is 0.
#[inline(always)]
pub const fn ref_is_null(reference: i64) -> i32 {
    (reference == 0) as i32
}

/// `i64.add128`: the sum of two numbers of 128 bits, low half before high half.
#[inline(always)]
pub const fn i64_add128([a_low, a_high, b_low, b_high]: [i64; 4]) -> [i64; 2] {
    split(join(a_low, a_high).wrapping_add(join(b_low, b_high)))
}

/// `i64.sub128`: the difference of two numbers of 128 bits.
#[inline(always)]
pub const fn i64_sub128([a_low, a_high, b_low, b_high]: [i64; 4]) -> [i64; 2] {
    split(join(a_low, a_high).wrapping_sub(join(b_low, b_high)))
}

/// `i64.mul_wide_s`: the product of two signed numbers in 128 bits.
#[inline(always)]
pub const fn i64_mul_wide_s([a, b]: [i64; 2]) -> [i64; 2] {
    split(a as i128 * b as i128)
}

/// `i64.mul_wide_u`: the product of two unsigned numbers in 128 bits.
#[inline(always)]
pub const fn i64_mul_wide_u([a, b]: [i64; 2]) -> [i64; 2] {
    split((a as u64 as u128 * b as u64 as u128) as i128)
}

const fn join(low: i64, high: i64) -> i128 {
    low as u64 as i128 | (high as i128) << 64
}

const fn split(wide: i128) -> [i64; 2] {
    [wide as i64, (wide >> 64) as i64]
}

/// Returns the memory access of `op`, or `None` if it is neither a load nor a store.
pub const fn access(op: Opcode) -> Option<Access> {
    match load_access(op) {
        Some(access) => Some(access),
        None => store_access(op),
    }
}

impl Access {
    /// The slot that a load makes from `raw`, the bytes at the address as a little-endian number. Bits of `raw` above the
    /// access's width have no effect.
    #[inline(always)]
    pub const fn extend(self, raw: u64) -> u64 {
        let unused = 64 - 8 * self.width;
        let extended = if self.signed { ((raw << unused) as i64 >> unused) as u64 } else { raw << unused >> unused };
        match self.ty {
            ValType::I32 | ValType::F32 => extended & 0xFFFF_FFFF,
            ValType::I64 | ValType::F64 | ValType::V128 | ValType::Ref(_) => extended,
        }
    }
}

/// A Rust type that a slot can hold.
pub trait Slot: Sized {
    /// The value in `slot`.
    fn from_slot(slot: u64) -> Self;

    /// The slot that holds it, the upper half of 4-byte types zero.
    fn into_slot(self) -> u64;
}

impl Slot for i32 {
    #[inline(always)]
    fn from_slot(slot: u64) -> i32 {
        slot as i32
    }

    #[inline(always)]
    fn into_slot(self) -> u64 {
        u64::from(self as u32)
    }
}

impl Slot for i64 {
    #[inline(always)]
    fn from_slot(slot: u64) -> i64 {
        slot as i64
    }

    #[inline(always)]
    fn into_slot(self) -> u64 {
        self as u64
    }
}

impl Slot for f32 {
    #[inline(always)]
    fn from_slot(slot: u64) -> f32 {
        f32::from_bits(slot as u32)
    }

    #[inline(always)]
    fn into_slot(self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Slot for f64 {
    #[inline(always)]
    fn from_slot(slot: u64) -> f64 {
        f64::from_bits(slot)
    }

    #[inline(always)]
    fn into_slot(self) -> u64 {
        self.to_bits()
    }
}

/// The result of a function of this file, which may trap or not, so that one macro arm handles both.
pub trait Outcome {
    /// The result's slot, or the trap.
    ///
    /// # Errors
    /// The trap.
    fn into_outcome(self) -> Result<u64, Trap>;
}

impl<T: Slot> Outcome for T {
    #[inline(always)]
    fn into_outcome(self) -> Result<u64, Trap> {
        Ok(self.into_slot())
    }
}

impl<T: Slot> Outcome for Result<T, Trap> {
    #[inline(always)]
    fn into_outcome(self) -> Result<u64, Trap> {
        self.map(T::into_slot)
    }
}

/// The divisor, unless it is zero.
#[inline(always)]
fn nonzero<T: Default + PartialEq>(divisor: T) -> Result<T, Trap> {
    if divisor == T::default() { Err(Trap::IntegerDivisionByZero) } else { Ok(divisor) }
}

/// The floats that truncate to a value of an integer type, between two exclusive bounds. Every f32 is an f64, so these
/// serve both widths. -2⁶³ - 1 is no f64: the bound is the next one below -2⁶³.
pub type TruncRange = (f64, f64);

/// The range of i32, signed.
pub const I32_RANGE: TruncRange = (-2147483649.0, 2147483648.0);
/// The range of i32, unsigned.
pub const U32_RANGE: TruncRange = (-1.0, 4294967296.0);
/// The range of i64, signed.
pub const I64_RANGE: TruncRange = (-9223372036854777856.0, 9223372036854775808.0);
/// The range of i64, unsigned.
pub const U64_RANGE: TruncRange = (-1.0, 18446744073709551616.0);

/// The range of the integer type with 32 or 64 bits.
pub const fn trunc_range(bits: u32, signed: bool) -> TruncRange {
    match (bits == 32, signed) {
        (true, true) => I32_RANGE,
        (true, false) => U32_RANGE,
        (false, true) => I64_RANGE,
        (false, false) => U64_RANGE,
    }
}

#[inline(always)]
fn within(a: f64, (above, below): TruncRange) -> Result<f64, Trap> {
    if a > above && a < below {
        Ok(a)
    } else if a.is_nan() {
        Err(Trap::BadConversionToInteger)
    } else {
        Err(Trap::IntegerOverflow)
    }
}

/// Functions on floats that the standard library lacks.
trait Float {
    /// Itself, a signalling NaN made quiet.
    fn quiet(self) -> Self;
    /// The lesser; NaN if either is; -0 is less than +0.
    fn minimum_of(self, other: Self) -> Self;
    /// The greater; NaN if either is; -0 is less than +0.
    fn maximum_of(self, other: Self) -> Self;
}

macro_rules! impl_float {
    ($float:ident, $quiet_bit:expr) => {
        impl Float for $float {
            #[inline(always)]
            fn quiet(self) -> $float {
                if self.is_nan() { $float::from_bits(self.to_bits() | $quiet_bit) } else { self }
            }

            #[inline(always)]
            fn minimum_of(self, other: $float) -> $float {
                if self < other {
                    self
                } else if other < self {
                    other
                } else if self == other {
                    // Equal but for a zero's sign: the union of the signs is the lesser.
                    $float::from_bits(self.to_bits() | other.to_bits())
                } else {
                    (self + other).quiet()
                }
            }

            #[inline(always)]
            fn maximum_of(self, other: $float) -> $float {
                if self > other {
                    self
                } else if other > self {
                    other
                } else if self == other {
                    $float::from_bits(self.to_bits() & other.to_bits())
                } else {
                    (self + other).quiet()
                }
            }
        }
    };
}

impl_float!(f32, 1 << 22);
impl_float!(f64, 1 << 51);

#[cfg(test)]
mod tests;
