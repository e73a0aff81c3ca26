//! Selection of integer division and remainder.
//!
//! Division by a constant other than 0, 1 and -1 becomes a multiplication by its scaled reciprocal, rounded up:
//! `x / d = x * m >> p` with `m = ⌈2ᵖ / d⌉`, exact when `p` is large enough for the rounding error not to reach the next
//! integer (Granlund and Montgomery, PLDI 1994, theorems 4.2 and 5.1). In 32 bits the product is formed in 64.

use super::numeric::bits;
use super::selection::{Lower, width};
use crate::ir::{Type, Value};
use crate::regalloc::{Class, Reg};
use crate::x64::insts::{Asm, Inst, Mem, Width};

impl Lower<'_, '_> {
    /// Selects the division or remainder given by `signed` and `remainder`.
    pub(super) fn lower_division(&mut self, value: Value, signed: bool, remainder: bool) {
        let func = self.func;
        let inst = func.inst(value);
        let (dividend, divisor) = (inst.args[0], inst.args[1]);
        let op = match (signed, remainder) {
            (true, false) => Asm::DivS,
            (false, false) => Asm::DivU,
            (true, true) => Asm::RemS,
            (false, true) => Asm::RemU,
        };
        if let Some(constant) = self.constant(divisor) {
            let constant = if inst.ty == Type::I32 { i64::from(constant as i32) } else { constant as i64 };
            let magic = if signed { Quotient::signed(constant, inst.ty) } else { Quotient::unsigned(constant, inst.ty) };
            if let Some(quotient) = magic {
                let (x, dst) = (self.reg(dividend), self.result(value));
                return match remainder {
                    true => self.push_remainder(quotient, dst, x, constant, inst.ty),
                    false => self.push_quotient(quotient, dst, x, inst.ty),
                };
            }
        }
        let (src, rm, dst) = (self.reg(dividend), self.reg(divisor), self.result(value));
        self.push(Inst::new(op, width(inst.ty)).dst(dst).src(src).reg(rm));
    }

    /// `dst ← x - x / d * d`
    fn push_remainder(&mut self, quotient: Quotient, dst: Reg, x: Reg, d: i64, ty: Type) {
        let width = width(ty);
        if let Quotient::Shift(count) = quotient {
            let mask = (1u64 << count) - 1;
            return match i32::try_from(mask) {
                Ok(mask) => self.push(Inst::new(Asm::And, width).dst(dst).src(x).imm(mask.into())),
                Err(_) => {
                    let mask = self.constant_reg(mask, Type::I64);
                    self.push(Inst::new(Asm::And, width).dst(dst).src(x).reg(mask));
                }
            };
        }
        let (q, product) = (self.int(), self.int());
        self.push_quotient(quotient, q, x, ty);
        match (d.unsigned_abs().is_power_of_two(), i32::try_from(d)) {
            (true, _) => {
                let (shifted, count) = (self.int(), d.unsigned_abs().trailing_zeros());
                self.push(Inst::new(Asm::Shl, width).dst(shifted).src(q).imm(count.into()));
                match d < 0 {
                    true => self.push(Inst::new(Asm::Neg, width).dst(product).src(shifted)),
                    false => return self.push(Inst::new(Asm::Sub, width).dst(dst).src(x).reg(shifted)),
                }
            }
            (_, Ok(d)) => self.push(Inst::new(Asm::ImulImm, width).dst(product).reg(q).imm(d.into())),
            (_, Err(_)) => {
                let d = self.constant_reg(d as u64, Type::I64);
                self.push(Inst::new(Asm::Imul, width).dst(product).src(q).reg(d));
            }
        }
        self.push(Inst::new(Asm::Sub, width).dst(dst).src(x).reg(product));
    }

    fn push_quotient(&mut self, quotient: Quotient, dst: Reg, x: Reg, ty: Type) {
        let width = width(ty);
        match quotient {
            Quotient::Shift(count) => self.push(Inst::new(Asm::Shr, width).dst(dst).src(x).imm(count.into())),
            Quotient::SignedShift { count, negative } => self.push_signed_shift(dst, x, count, negative, ty),
            Quotient::Product { factor, shift } => {
                let product = self.int();
                self.push_product(product, x, factor);
                self.push(Inst::new(Asm::Shr, Width::Q).dst(dst).src(product).imm(shift.into()));
            }
            Quotient::High { factor, before, after } => {
                let (shifted, high) = (if before == 0 { x } else { self.int() }, if after == 0 { dst } else { self.int() });
                if before != 0 {
                    self.push(Inst::new(Asm::Shr, width).dst(shifted).src(x).imm(before.into()));
                }
                let factor = self.constant_reg(factor, Type::I64);
                self.push(Inst::new(Asm::Mulx, Width::Q).dst(high).src(shifted).reg(factor));
                if after != 0 {
                    self.push(Inst::new(Asm::Shr, Width::Q).dst(dst).src(high).imm(after.into()));
                }
            }
            Quotient::HighPlus { factor, shift } => {
                let [high, rest, half, sum] = [(); 4].map(|()| self.int());
                let factor = self.constant_reg(factor, Type::I64);
                self.push(Inst::new(Asm::Mulx, Width::Q).dst(high).src(x).reg(factor));
                // (x + high) >> shift without the carry.
                self.push(Inst::new(Asm::Sub, Width::Q).dst(rest).src(x).reg(high));
                self.push(Inst::new(Asm::Shr, Width::Q).dst(half).src(rest).imm(1));
                self.push(Inst::new(Asm::Lea, Width::Q).dst(sum).mem(Mem::indexed(half, high, 0, 0)));
                self.push(Inst::new(Asm::Shr, Width::Q).dst(dst).src(sum).imm(i64::from(shift) - 1));
            }
            Quotient::SignedProduct { factor, shift, negative } => {
                let [wide, product, quotient] = [(); 3].map(|()| self.int());
                self.push(Inst::new(Asm::Movsxd, Width::Q).dst(wide).reg(x));
                self.push_product(product, wide, factor);
                self.push(Inst::new(Asm::Sar, Width::Q).dst(quotient).src(product).imm(shift.into()));
                self.push_plus_sign(dst, quotient, product, negative, Width::D);
            }
            Quotient::SignedHigh { factor, shift, negative } => self.push_signed_high(dst, x, factor, shift, negative),
        }
    }

    fn push_signed_high(&mut self, dst: Reg, x: Reg, factor: u64, shift: u32, negative: bool) {
        let [mut high, quotient] = [(); 2].map(|()| self.int());
        let reg = self.constant_reg(factor, Type::I64);
        self.push(Inst::new(Asm::ImulHigh, Width::Q).dst(high).src(x).reg(reg));
        if factor >> 63 != 0 {
            // The signed multiplication took the factor as 2⁶⁴ less.
            let sum = self.int();
            self.push(Inst::new(Asm::Lea, Width::Q).dst(sum).mem(Mem::indexed(high, x, 0, 0)));
            high = sum;
        }
        self.push(Inst::new(Asm::Sar, Width::Q).dst(quotient).src(high).imm(shift.into()));
        self.push_plus_sign(dst, quotient, high, negative, Width::Q);
    }

    /// `dst ← quotient`, which was rounded down, rounded towards zero instead: 1 is added if it, like `product`, is negative.
    /// It is negated if the divisor was negative.
    fn push_plus_sign(&mut self, dst: Reg, quotient: Reg, product: Reg, negative: bool, width: Width) {
        let sign = self.int();
        match negative {
            false => {
                self.push(Inst::new(Asm::Shr, Width::Q).dst(sign).src(product).imm(63));
                self.push(Inst::new(Asm::Lea, width).dst(dst).mem(Mem::indexed(quotient, sign, 0, 0)));
            }
            true => {
                self.push(Inst::new(Asm::Sar, Width::Q).dst(sign).src(product).imm(63));
                self.push(Inst::new(Asm::Sub, width).dst(dst).src(sign).reg(quotient));
            }
        }
    }

    /// `x / ±2ᶜ`, rounded towards zero: 2ᶜ - 1 is added to a negative dividend first.
    fn push_signed_shift(&mut self, dst: Reg, x: Reg, count: u32, negative: bool, ty: Type) {
        let width = width(ty);
        let [sign, bias, sum] = [(); 3].map(|()| self.int());
        let low = i64::from(bits(ty) - count);
        if count == 1 {
            self.push(Inst::new(Asm::Shr, width).dst(bias).src(x).imm(low));
        } else {
            self.push(Inst::new(Asm::Sar, width).dst(sign).src(x).imm(i64::from(bits(ty)) - 1));
            self.push(Inst::new(Asm::Shr, width).dst(bias).src(sign).imm(low));
        }
        self.push(Inst::new(Asm::Lea, width).dst(sum).mem(Mem::indexed(x, bias, 0, 0)));
        let quotient = if negative { self.int() } else { dst };
        self.push(Inst::new(Asm::Sar, width).dst(quotient).src(sum).imm(count.into()));
        if negative {
            self.push(Inst::new(Asm::Neg, width).dst(dst).src(quotient));
        }
    }

    /// `dst ← x * factor` in 64 bits.
    fn push_product(&mut self, dst: Reg, x: Reg, factor: u64) {
        match i32::try_from(factor) {
            Ok(factor) => self.push(Inst::new(Asm::ImulImm, Width::Q).dst(dst).reg(x).imm(factor.into())),
            Err(_) => {
                let factor = self.constant_reg(factor, Type::I64);
                self.push(Inst::new(Asm::Imul, Width::Q).dst(dst).src(factor).reg(x));
            }
        }
    }

    fn int(&mut self) -> Reg {
        self.code.new_reg(Class::Int)
    }
}

/// How to divide by a constant. Shift counts are the whole `p`, except after a high half, which is already a shift by
/// 64.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Quotient {
    /// x >> count
    Shift(u32),
    /// By ±2ᶜ.
    SignedShift { count: u32, negative: bool },
    /// x * factor >> shift, in 64 bits
    Product { factor: u64, shift: u32 },
    /// high half of (x >> before) * factor, >> after
    High { factor: u64, before: u32, after: u32 },
    /// high half of x * (2⁶⁴ + factor), >> shift
    HighPlus { factor: u64, shift: u32 },
    /// x * factor >> shift, rounded towards zero
    SignedProduct { factor: u64, shift: u32, negative: bool },
    /// high half of x * factor, >> shift, rounded towards zero
    SignedHigh { factor: u64, shift: u32, negative: bool },
}

impl Quotient {
    /// Division by `d`, a bit pattern of type `ty`.
    fn unsigned(d: i64, ty: Type) -> Option<Quotient> {
        let d = if ty == Type::I32 { u64::from(d as u32) } else { d as u64 };
        if d == 0 {
            return None;
        }
        if d.is_power_of_two() {
            return Some(Quotient::Shift(d.trailing_zeros()));
        }
        let (factor, shift) = reciprocal(d, bits(ty))?;
        if ty == Type::I32 {
            return Some(match u32::try_from(factor) {
                Ok(factor) => Quotient::Product { factor: factor.into(), shift },
                // For a dividend of 32 bits, 2⁶⁴ / d may have an error of 2³².
                Err(_) => Quotient::High { factor: (1u128 << 64).div_ceil(d.into()) as u64, before: 0, after: 0 },
            });
        }
        if let Ok(factor) = u64::try_from(factor) {
            return Some(Quotient::High { factor, before: 0, after: shift - 64 });
        }
        // Dividing by the even part first leaves a dividend with fewer bits, for which a factor of 64 bits suffices.
        let before = d.trailing_zeros();
        if before > 0
            && let Some((factor, shift)) = reciprocal(d >> before, 64 - before)
            && let Ok(factor) = u64::try_from(factor << (64 - shift.min(64)))
        {
            return Some(Quotient::High { factor, before, after: shift.max(64) - 64 });
        }
        Some(Quotient::HighPlus { factor: factor as u64, shift: shift - 64 })
    }

    fn signed(d: i64, ty: Type) -> Option<Quotient> {
        let (magnitude, negative) = (d.unsigned_abs(), d < 0);
        let bits = bits(ty);
        // Division by the least integer has only one quotient that is not 0, which is not worth a case.
        if magnitude < 2 || magnitude >> (bits - 1) != 0 {
            return None;
        }
        if magnitude.is_power_of_two() {
            return Some(Quotient::SignedShift { count: magnitude.trailing_zeros(), negative });
        }
        let d = u128::from(magnitude);
        let (factor, power) = (bits..2 * bits).find_map(|power| {
            let factor = (1u128 << power) / d + 1;
            let error = factor * d - (1u128 << power);
            (error < 1u128 << (power + 1 - bits)).then_some((factor as u64, power))
        })?;
        Some(match bits {
            32 => Quotient::SignedProduct { factor, shift: power, negative },
            _ => Quotient::SignedHigh { factor, shift: power - 64, negative },
        })
    }
}

/// The factor, of at most `bits` + 1 bits, and the shift for unsigned dividends of `bits` bits; `None` for the largest
/// divisors.
fn reciprocal(d: u64, bits: u32) -> Option<(u128, u32)> {
    (bits..(2 * bits).min(128)).find_map(|power| {
        let factor = (1u128 << power).div_ceil(d.into());
        let error = factor * u128::from(d) - (1u128 << power);
        (error <= 1u128 << (power - bits)).then_some((factor, power))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of the instructions for a quotient.
    fn compute(quotient: Quotient, x: i64, ty: Type) -> i64 {
        let narrow = ty == Type::I32;
        let ux = if narrow { u64::from(x as u32) } else { x as u64 };
        let high = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 64) as u64;
        let toward_zero = |q: i64, negative: bool| match (q + i64::from(q < 0), negative) {
            (q, true) => -q,
            (q, false) => q,
        };
        let result = match quotient {
            Quotient::Shift(count) => (ux >> count) as i64,
            Quotient::SignedShift { count, negative } => {
                let q = (x + if x < 0 { (1 << count) - 1 } else { 0 }) >> count;
                if negative { q.wrapping_neg() } else { q }
            }
            Quotient::Product { factor, shift } => (ux.wrapping_mul(factor) >> shift) as i64,
            Quotient::High { factor, before, after } => (high(ux >> before, factor) >> after) as i64,
            Quotient::HighPlus { factor, shift } => ((u128::from(high(ux, factor)) + u128::from(ux)) >> shift) as i64,
            Quotient::SignedProduct { factor, shift, negative } => {
                toward_zero(x.checked_mul(factor as i64).expect("in 64 bits") >> shift, negative)
            }
            Quotient::SignedHigh { factor, shift, negative } => {
                toward_zero(((i128::from(x) * i128::from(factor)) >> 64 >> shift) as i64, negative)
            }
        };
        if narrow { i64::from(result as i32) } else { result }
    }

    fn interesting(bits: u32) -> Vec<i64> {
        let small = -13..=13;
        let powers = (0..bits).flat_map(|k| [-1, 0, 1].map(|i| (1i64 << k).wrapping_add(i)));
        let others = [10, 100, 125, 625, 641, 1000, 10_000, 1_000_000_007, 0x1234_5678_9ABC_DEF1];
        let all = small.chain(powers).chain(others).flat_map(|x: i64| [x, x.wrapping_neg()]);
        all.map(|x| if bits == 32 { i64::from(x as i32) } else { x }).collect()
    }

    #[test]
    fn multiplying_by_the_reciprocal_divides() {
        for (ty, bits) in [(Type::I32, 32), (Type::I64, 64)] {
            let values = interesting(bits);
            for &d in &values {
                // Rounding errors show first at multiples of the divisor and their neighbours.
                let near = values.iter().flat_map(|&k| [-1, 0, 1].map(|i| k.wrapping_mul(d).wrapping_add(i)));
                for x in near.chain(values.iter().copied()) {
                    let x = if bits == 32 { i64::from(x as i32) } else { x };
                    if let Some(quotient) = Quotient::signed(d, ty) {
                        assert_eq!(compute(quotient, x, ty), x.wrapping_div(d), "{x} / {d} by {quotient:?}");
                    }
                    if let Some(quotient) = Quotient::unsigned(d, ty) {
                        let expected = match bits {
                            32 => i64::from((x as u32 / d as u32) as i32),
                            _ => (x as u64 / d as u64) as i64,
                        };
                        assert_eq!(compute(quotient, x, ty), expected, "{x} / {d} unsigned by {quotient:?}");
                    }
                }
            }
        }
    }
}
