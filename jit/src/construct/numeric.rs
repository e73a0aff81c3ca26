//! Numeric instructions: folded, simplified and shared as they are emitted.

use super::Builder;
use crate::ir::{Block, Effect, Op, Type, Value};
use weir_bytecode::Opcode;
use weir_bytecode::semantics::{self, nan};

/// Entries of the table of recent pure values: enough for the blocks that matter, small enough to stay in L1.
pub(super) const RECENT: usize = 512;

impl Builder<'_, '_> {
    pub(super) fn numeric(&mut self, op: Op, operand: Type, result: Type) {
        let value = if op.arity() == Some(1) {
            let [a] = self.pop_array();
            self.unary(op, operand, result, a)
        } else {
            let [a, b] = self.pop_array();
            self.binary(op, operand, result, a, b)
        };
        let value = self.with_canonical_nans(op.opcode(operand, result), value);
        self.push(value);
    }

    /// The result of `op`, whose NaNs are replaced if that is asked for.
    fn with_canonical_nans(&mut self, op: Option<Opcode>, value: Value) -> Value {
        let floats = op.filter(|_| self.options.canonical_nans).and_then(nan::open);
        let Some(floats) = floats.filter(|_| self.func.as_const(value).is_none()) else { return value };
        let ty = self.func.ty(value);
        let canonical = self.constant(ty, floats.canonical() as u64);
        let is_nan = self.shared(Op::Fne, Type::I32, &[value, value]);
        self.shared(Op::Select, ty, &[is_nan, canonical, value])
    }

    pub(super) fn select(&mut self) {
        let [a, b, condition] = self.pop_array();
        let known = self.func.as_const(condition).filter(|_| self.options.refinements.fold);
        let value = match known {
            _ if a == b && self.options.refinements.identities => a,
            Some(0) => b,
            Some(_) => a,
            None => self.shared(Op::Select, self.func.ty(a), &[condition, a, b]),
        };
        self.push(value);
    }

    /// `i64.add128`: the low halves carry if their sum is less than either.
    pub(super) fn add128(&mut self) {
        let [a_low, a_high, b_low, b_high] = self.pop_array();
        let low = self.int64(Op::Add, a_low, b_low);
        let carry = self.less64(low, a_low);
        let high = self.int64(Op::Add, a_high, b_high);
        let high = self.int64(Op::Add, high, carry);
        self.push(low);
        self.push(high);
    }

    /// `i64.sub128`: the low halves borrow if the first is less.
    pub(super) fn sub128(&mut self) {
        let [a_low, a_high, b_low, b_high] = self.pop_array();
        let low = self.int64(Op::Sub, a_low, b_low);
        let borrow = self.less64(a_low, b_low);
        let high = self.int64(Op::Sub, a_high, b_high);
        let high = self.int64(Op::Sub, high, borrow);
        self.push(low);
        self.push(high);
    }

    /// `i64.mul_wide_u` or, with `signed`, `i64.mul_wide_s`: a negative factor counts for 2⁶⁴ too much in the unsigned
    /// product, so that its high half has the other factor too much.
    pub(super) fn mul_wide(&mut self, signed: bool) {
        let [a, b] = self.pop_array();
        let low = self.int64(Op::Mul, a, b);
        let mut high = self.int64(Op::MulHigh, a, b);
        if signed {
            let sign = self.constant(Type::I64, 63);
            for (factor, other) in [(a, b), (b, a)] {
                let negative = self.int64(Op::ShrS, factor, sign);
                let excess = self.int64(Op::And, negative, other);
                high = self.int64(Op::Sub, high, excess);
            }
        }
        self.push(low);
        self.push(high);
    }

    fn int64(&mut self, op: Op, a: Value, b: Value) -> Value {
        self.binary(op, Type::I64, Type::I64, a, b)
    }

    /// 1 if `a` is less than `b`, both unsigned.
    fn less64(&mut self, a: Value, b: Value) -> Value {
        let less = self.binary(Op::LtU, Type::I64, Type::I32, a, b);
        self.unary(Op::ExtendU, Type::I32, Type::I64, less)
    }

    pub(super) fn unary(&mut self, op: Op, operand: Type, result: Type, a: Value) -> Value {
        if let Some(value) = self.fold(op, operand, result, &[a]) {
            return value;
        }
        let inner = self.func.inst(a);
        match (op, inner.op) {
            // The low half of a widened value is the value; the bits of a reinterpreted value are its own.
            (Op::Wrap, Op::ExtendS | Op::ExtendU) | (Op::Reinterpret, Op::Reinterpret) if self.options.refinements.identities => {
                self.stats.simplified += 1;
                let original = inner.args[0];
                self.func.find(original)
            }
            _ => self.shared(op, result, &[a]),
        }
    }

    fn binary(&mut self, op: Op, operand: Type, result: Type, a: Value, b: Value) -> Value {
        if let Some(value) = self.fold(op, operand, result, &[a, b]) {
            return value;
        }
        // Constants stand on the right, so that there is one form to recognise and to share.
        let swap = op.is_commutative() && !operand.is_float() && self.func.as_const(a).is_some();
        let (a, b) = if swap { (b, a) } else { (a, b) };
        let constant = self.func.as_const(b);
        let simpler = if self.options.refinements.identities { simplify(op, operand, a, b, constant) } else { Simpler::Nothing };
        self.stats.simplified += u32::from(!matches!(simpler, Simpler::Nothing));
        match simpler {
            Simpler::Value(value) => value,
            Simpler::Constant(bits) => self.constant(result, bits),
            Simpler::Eqz => self.unary(Op::Eqz, operand, Type::I32, a),
            Simpler::Nothing => {
                let (op, b) = self.reduce(op, operand, b);
                self.shared(op, result, &[a, b])
            }
        }
    }

    /// `op` and its second operand, or what is cheaper and does the same where that is a power of two.
    fn reduce(&mut self, op: Op, ty: Type, b: Value) -> (Op, Value) {
        let power = |bits: &u64| matches!(ty, Type::I32 | Type::I64) && bits.is_power_of_two();
        let constant = self.func.as_const(b).filter(|_| self.options.refinements.strength);
        let Some(bits) = constant.filter(power) else { return (op, b) };
        let (op, bits) = match op {
            // x * 2^k = x << k
            Op::Mul => (Op::Shl, u64::from(bits.trailing_zeros())),
            // x /u 2^k = x >>u k
            Op::DivU => (Op::ShrU, u64::from(bits.trailing_zeros())),
            // x %u 2^k = x & (2^k - 1)
            Op::RemU => (Op::And, bits - 1),
            _ => return (op, b),
        };
        self.stats.reduced += 1;
        (op, self.constant(ty, bits))
    }

    /// The constant that `op` computes from constants, unless it would trap or is a NaN, whose bits are
    /// the processor's to choose.
    fn fold(&mut self, op: Op, operand: Type, result: Type, args: &[Value]) -> Option<Value> {
        if !self.options.refinements.fold {
            return None;
        }
        let mut slots = [0; 2];
        for (slot, &arg) in slots.iter_mut().zip(args) {
            *slot = self.func.as_const(arg)?;
        }
        let bits = semantics::eval(op.opcode(operand, result)?, &slots)?.ok()?;
        let nan = match result {
            Type::F32 => f32::from_bits(bits as u32).is_nan(),
            Type::F64 => f64::from_bits(bits).is_nan(),
            _ => false,
        };
        if nan {
            return None;
        }
        self.stats.folded += 1;
        Some(self.constant(result, bits))
    }

    /// Emits `op`, or finds it in the block at hand if it is pure and was emitted there not long ago.
    pub(super) fn shared(&mut self, op: Op, ty: Type, args: &[Value]) -> Value {
        if op.effect() != Effect::Pure || !self.options.refinements.number {
            return self.emit(op, ty, 0, 0, args);
        }
        let hash = args.iter().fold(op as u64 ^ (ty as u64) << 8, |hash, arg| {
            (hash.rotate_left(5) ^ u64::from(arg.0)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        });
        let slot = (hash >> (u64::BITS - RECENT.ilog2())) as usize;
        let (block, value): (Block, Value) = self.recent[slot];
        if block == self.here() {
            let inst = self.func.inst(value);
            if inst.op == op && inst.ty == ty && *inst.args == *args {
                self.stats.shared += 1;
                return value;
            }
        }
        let value = self.emit(op, ty, 0, 0, args);
        self.recent[slot] = (self.here(), value);
        value
    }
}

/// What a binary operation is equal to.
enum Simpler {
    /// This value.
    Value(Value),
    /// This constant of the result type.
    Constant(u64),
    /// `eqz` of its first operand.
    Eqz,
    /// Nothing simpler.
    Nothing,
}

/// Identities of the integers; `constant` is `b`'s value if it is constant. None is used for floats, where NaNs and
/// signed zeros leave few of them true.
fn simplify(op: Op, ty: Type, a: Value, b: Value, constant: Option<u64>) -> Simpler {
    use Simpler::{Constant, Eqz, Nothing, Value};
    let (ones, width) = match ty {
        Type::I32 => (u64::from(u32::MAX), 32),
        Type::I64 => (u64::MAX, 64),
        _ => return Nothing,
    };
    match (op, constant) {
        // x + 0 = x - 0 = x | 0 = x ^ 0 = x
        (Op::Add | Op::Sub | Op::Or | Op::Xor, Some(0)) => Value(a),
        // x * 1 = x / 1 = x
        (Op::Mul | Op::DivS | Op::DivU, Some(1)) => Value(a),
        // x * 0 = x & 0 = 0
        (Op::Mul | Op::And, Some(0)) => Constant(0),
        // x % 1 = 0
        (Op::RemS | Op::RemU, Some(1)) => Constant(0),
        // x & -1 = x
        (Op::And, Some(bits)) if bits == ones => Value(a),
        // x | -1 = -1
        (Op::Or, Some(bits)) if bits == ones => Constant(ones),
        // x << 0 = x, the amount modulo the width
        (Op::Shl | Op::ShrS | Op::ShrU | Op::Rotl | Op::Rotr, Some(bits)) if bits % width == 0 => Value(a),
        // x == 0 is eqz x
        (Op::Eq, Some(0)) => Eqz,
        // x <u 0 is false, x >=u 0 is true
        (Op::LtU, Some(0)) => Constant(0),
        (Op::GeU, Some(0)) => Constant(1),
        // x & x = x | x = x
        (Op::And | Op::Or, _) if a == b => Value(a),
        // x - x = x ^ x = 0
        (Op::Sub | Op::Xor, _) if a == b => Constant(0),
        // x == x, x <= x, x >= x
        (Op::Eq | Op::LeS | Op::LeU | Op::GeS | Op::GeU, _) if a == b => Constant(1),
        // x != x, x < x, x > x
        (Op::Ne | Op::LtS | Op::LtU | Op::GtS | Op::GtU, _) if a == b => Constant(0),
        _ => Nothing,
    }
}
