//! Numeric operations. Cranelift's instructions have the same meaning as the Wasm instructions in TABLE 2, including
//! traps and NaNs, except that comparisons have results of 8 bits.

use super::Translator;
use super::condition::integer_condition;
use crate::ir::family::{Bits, Compare, Convert, Float, FloatCompare, FloatUnary, Integer};
use crate::ir::{Type, Value};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self as clif, InstBuilder, MemFlagsData, types};

impl Translator<'_, '_> {
    pub(super) fn integer(&mut self, op: Integer, a: clif::Value, b: clif::Value) -> clif::Value {
        self.check_division(op, a, b);
        let ins = self.b.ins();
        match op {
            Integer::Add => ins.iadd(a, b),
            Integer::Sub => ins.isub(a, b),
            Integer::Mul => ins.imul(a, b),
            Integer::MulHigh => ins.umulhi(a, b),
            Integer::DivS => ins.sdiv(a, b),
            Integer::DivU => ins.udiv(a, b),
            Integer::RemS => ins.srem(a, b),
            Integer::RemU => ins.urem(a, b),
            Integer::And => ins.band(a, b),
            Integer::Or => ins.bor(a, b),
            Integer::Xor => ins.bxor(a, b),
            Integer::Shl => ins.ishl(a, b),
            Integer::ShrS => ins.sshr(a, b),
            Integer::ShrU => ins.ushr(a, b),
            Integer::Rotl => ins.rotl(a, b),
            Integer::Rotr => ins.rotr(a, b),
        }
    }

    pub(super) fn compare(&mut self, op: Compare, value: Value) -> clif::Value {
        let a = self.arg(value, 0);
        let condition = integer_condition!(op, Compare, Compare::Eqz => return self.is_zero(a));
        let b = self.arg(value, 1);
        let bit = self.b.ins().icmp(condition, a, b);
        self.b.ins().uextend(types::I32, bit)
    }

    /// Returns 1 if an integer is 0 or a reference is null, else 0.
    pub(super) fn is_zero(&mut self, a: clif::Value) -> clif::Value {
        let bit = self.b.ins().icmp_imm_u(IntCC::Equal, a, 0);
        self.b.ins().uextend(types::I32, bit)
    }

    pub(super) fn bits(&mut self, op: Bits, ty: clif::Type, a: clif::Value) -> clif::Value {
        let ins = self.b.ins();
        match op {
            Bits::Clz => ins.clz(a),
            Bits::Ctz => ins.ctz(a),
            Bits::Popcnt => ins.popcnt(a),
            Bits::Sext8 => self.sign_extend(types::I8, ty, a),
            Bits::Sext16 => self.sign_extend(types::I16, ty, a),
            Bits::Sext32 => self.sign_extend(types::I32, ty, a),
        }
    }

    pub(super) fn float(&mut self, op: Float, a: clif::Value, b: clif::Value) -> clif::Value {
        let ins = self.b.ins();
        match op {
            Float::Fadd => ins.fadd(a, b),
            Float::Fsub => ins.fsub(a, b),
            Float::Fmul => ins.fmul(a, b),
            Float::Fdiv => ins.fdiv(a, b),
            Float::Fmin => ins.fmin(a, b),
            Float::Fmax => ins.fmax(a, b),
            Float::Fcopysign => ins.fcopysign(a, b),
        }
    }

    pub(super) fn float_unary(&mut self, op: FloatUnary, a: clif::Value) -> clif::Value {
        let ins = self.b.ins();
        match op {
            FloatUnary::Fabs => ins.fabs(a),
            FloatUnary::Fneg => ins.fneg(a),
            FloatUnary::Fceil => ins.ceil(a),
            FloatUnary::Ffloor => ins.floor(a),
            FloatUnary::Ftrunc => ins.trunc(a),
            FloatUnary::Fnearest => ins.nearest(a),
            FloatUnary::Fsqrt => ins.sqrt(a),
        }
    }

    pub(super) fn float_compare(&mut self, op: FloatCompare, a: clif::Value, b: clif::Value) -> clif::Value {
        let condition = match op {
            FloatCompare::Feq => FloatCC::Equal,
            FloatCompare::Fne => FloatCC::NotEqual,
            FloatCompare::Flt => FloatCC::LessThan,
            FloatCompare::Fgt => FloatCC::GreaterThan,
            FloatCompare::Fle => FloatCC::LessThanOrEqual,
            FloatCompare::Fge => FloatCC::GreaterThanOrEqual,
        };
        let bit = self.b.ins().fcmp(condition, a, b);
        self.b.ins().uextend(types::I32, bit)
    }

    pub(super) fn convert(&mut self, op: Convert, ty: clif::Type, a: clif::Value) -> clif::Value {
        if let Convert::TruncS | Convert::TruncU = op {
            self.check_truncation(op == Convert::TruncS, ty, a);
        }
        let ins = self.b.ins();
        match op {
            Convert::Wrap => ins.ireduce(ty, a),
            Convert::ExtendS => ins.sextend(ty, a),
            Convert::ExtendU => ins.uextend(ty, a),
            Convert::TruncS => ins.fcvt_to_sint(ty, a),
            Convert::TruncU => ins.fcvt_to_uint(ty, a),
            Convert::TruncSatS => ins.fcvt_to_sint_sat(ty, a),
            Convert::TruncSatU => ins.fcvt_to_uint_sat(ty, a),
            Convert::ConvertS => ins.fcvt_from_sint(ty, a),
            Convert::ConvertU => ins.fcvt_from_uint(ty, a),
            Convert::Demote => ins.fdemote(ty, a),
            Convert::Promote => ins.fpromote(ty, a),
            Convert::Reinterpret => ins.bitcast(ty, MemFlagsData::new(), a),
        }
    }

    /// Sign-extends the low bits of `a`, as many as `from` has.
    fn sign_extend(&mut self, from: clif::Type, to: clif::Type, a: clif::Value) -> clif::Value {
        let low = self.b.ins().ireduce(from, a);
        self.b.ins().sextend(to, low)
    }

    /// Zero-extends a 32-bit integer to 64 bits; returns a 64-bit integer unchanged.
    pub(super) fn widen(&mut self, ty: Type, a: clif::Value) -> clif::Value {
        if ty == Type::I32 { self.b.ins().uextend(types::I64, a) } else { a }
    }
}
