//! Numeric instructions: folded, simplified and shared as they are emitted.

use super::builder::{Builder, RECENT};
use crate::hash_table::mix;
use crate::ir::fold::fold;
use crate::ir::rules::{self, Kind, Rewrite};
use crate::ir::{Block, Effect, Op, Type, Value};
use weir_bytecode::Opcode;
use weir_bytecode::semantics::nan;

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

    /// Replaces NaNs in the result of `op` by canonical ones, if the options say so.
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
        let value = self.simplified(Op::Select, Type::I32, self.func.ty(a), [condition, a, b]);
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

    /// `i64.mul_wide_u` or, with `signed`, `i64.mul_wide_s`. The unsigned product treats a negative factor as 2⁶⁴ too
    /// large, so the other factor is subtracted from the high half.
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

    /// Returns 1 if `a` is less than `b`, both unsigned.
    fn less64(&mut self, a: Value, b: Value) -> Value {
        let less = self.binary(Op::LtU, Type::I64, Type::I32, a, b);
        self.unary(Op::ExtendU, Type::I32, Type::I64, less)
    }

    pub(super) fn unary(&mut self, op: Op, operand: Type, result: Type, a: Value) -> Value {
        self.fold(op, operand, result, &[a]).unwrap_or_else(|| self.simplified(op, operand, result, [a]))
    }

    fn binary(&mut self, op: Op, operand: Type, result: Type, a: Value, b: Value) -> Value {
        self.fold(op, operand, result, &[a, b]).unwrap_or_else(|| self.simplified(op, operand, result, [a, b]))
    }

    /// Emits `op` after the rules that construction applies.
    fn simplified<const N: usize>(&mut self, op: Op, operand: Type, result: Type, args: [Value; N]) -> Value {
        let applies = |kind| match kind {
            Kind::Order => true,
            Kind::Identity => self.options.refinements.identities,
            Kind::Strength => self.options.refinements.strength,
            Kind::Form => false,
        };
        let rule = rules::rewrite(&self.func, op, operand, result, &args).filter(|&(kind, _)| applies(kind));
        let Some((kind, rewrite)) = rule else { return self.shared(op, result, &args) };
        self.stats.counters.simplified += u64::from(kind == Kind::Identity);
        self.stats.counters.reduced += u64::from(kind == Kind::Strength);
        match rewrite {
            Rewrite::Value(value) => value,
            Rewrite::Const(bits) => self.constant(result, bits),
            Rewrite::Unary(op, a) => self.unary(op, operand, result, a),
            Rewrite::Binary(op, a, b) => self.simplified(op, operand, result, [a, b]),
            Rewrite::Ternary(op, a, b, c) => self.shared(op, result, &[a, b, c]),
            Rewrite::WithConst(op, a, bits) => {
                let b = self.constant(operand, bits);
                self.shared(op, result, &[a, b])
            }
        }
    }

    /// Returns the constant that `op` computes from constants.
    fn fold(&mut self, op: Op, operand: Type, result: Type, args: &[Value]) -> Option<Value> {
        if !self.options.refinements.fold {
            return None;
        }
        let mut bits = [0; 2];
        for (slot, &arg) in bits.iter_mut().zip(args) {
            *slot = self.func.as_const(arg)?;
        }
        let bits = fold(op, operand, result, &bits[..args.len()])?;
        self.stats.counters.folded += 1;
        Some(self.constant(result, bits))
    }

    /// Emits `op`, or returns an equal pure value emitted recently in the current block.
    pub(super) fn shared(&mut self, op: Op, ty: Type, args: &[Value]) -> Value {
        if op.effect() != Effect::Pure || !self.options.refinements.number {
            return self.emit(op, ty, 0, 0, args);
        }
        let hash = args.iter().fold(op as u64 ^ (ty as u64) << 8, |hash, arg| mix(hash, arg.0.into()));
        let slot = (hash >> (u64::BITS - RECENT.ilog2())) as usize;
        let (block, value): (Block, Value) = self.recent[slot];
        if block == self.here() {
            let inst = self.func.inst(value);
            if inst.op == op && inst.ty == ty && *inst.args == *args {
                self.stats.counters.shared += 1;
                return value;
            }
        }
        let value = self.emit(op, ty, 0, 0, args);
        self.recent[slot] = (self.here(), value);
        value
    }
}
