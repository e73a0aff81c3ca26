//! Numeric operations. Cranelift's instructions mean what the Wasm instructions mean that TABLE 2 names, traps and
//! NaNs included, but that comparisons give 8 bits.

use super::{Translator, clif_type, unsupported};
use crate::ir::{Op, Type, Value};
use crate::request::Refusal;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self as clif, InstBuilder, MemFlagsData, types};

impl Translator<'_, '_> {
    pub(super) fn numeric(&mut self, value: Value) -> Result<clif::Value, Refusal> {
        let inst = self.func.inst(value);
        let result = match inst.args.len() {
            1 => self.unary(inst.op, clif_type(inst.ty), self.arg(value, 0)),
            2 => self.binary(inst.op, self.arg(value, 0), self.arg(value, 1)),
            _ => None,
        };
        result.ok_or_else(|| unsupported(inst.op.name().into()))
    }

    fn binary(&mut self, op: Op, a: clif::Value, b: clif::Value) -> Option<clif::Value> {
        if let Some(condition) = int_condition(op) {
            let bit = self.b.ins().icmp(condition, a, b);
            return Some(self.b.ins().uextend(types::I32, bit));
        }
        if let Some(condition) = float_condition(op) {
            let bit = self.b.ins().fcmp(condition, a, b);
            return Some(self.b.ins().uextend(types::I32, bit));
        }
        if let Op::DivS | Op::DivU | Op::RemS | Op::RemU = op {
            self.check_division(op, a, b);
        }
        let ins = self.b.ins();
        Some(match op {
            Op::Add => ins.iadd(a, b),
            Op::Sub => ins.isub(a, b),
            Op::Mul => ins.imul(a, b),
            Op::MulHigh => ins.umulhi(a, b),
            Op::DivS => ins.sdiv(a, b),
            Op::DivU => ins.udiv(a, b),
            Op::RemS => ins.srem(a, b),
            Op::RemU => ins.urem(a, b),
            Op::And => ins.band(a, b),
            Op::Or => ins.bor(a, b),
            Op::Xor => ins.bxor(a, b),
            Op::Shl => ins.ishl(a, b),
            Op::ShrS => ins.sshr(a, b),
            Op::ShrU => ins.ushr(a, b),
            Op::Rotl => ins.rotl(a, b),
            Op::Rotr => ins.rotr(a, b),
            Op::Fadd => ins.fadd(a, b),
            Op::Fsub => ins.fsub(a, b),
            Op::Fmul => ins.fmul(a, b),
            Op::Fdiv => ins.fdiv(a, b),
            Op::Fmin => ins.fmin(a, b),
            Op::Fmax => ins.fmax(a, b),
            Op::Fcopysign => ins.fcopysign(a, b),
            _ => return None,
        })
    }

    fn unary(&mut self, op: Op, ty: clif::Type, a: clif::Value) -> Option<clif::Value> {
        if let Op::TruncS | Op::TruncU = op {
            self.check_truncation(op == Op::TruncS, ty, a);
        }
        let ins = self.b.ins();
        Some(match op {
            Op::Clz => ins.clz(a),
            Op::Ctz => ins.ctz(a),
            Op::Popcnt => ins.popcnt(a),
            Op::Eqz | Op::RefIsNull => {
                let bit = ins.icmp_imm_u(IntCC::Equal, a, 0);
                self.b.ins().uextend(types::I32, bit)
            }
            Op::Fabs => ins.fabs(a),
            Op::Fneg => ins.fneg(a),
            Op::Fceil => ins.ceil(a),
            Op::Ffloor => ins.floor(a),
            Op::Ftrunc => ins.trunc(a),
            Op::Fnearest => ins.nearest(a),
            Op::Fsqrt => ins.sqrt(a),
            Op::Wrap => ins.ireduce(ty, a),
            Op::ExtendS => ins.sextend(ty, a),
            Op::ExtendU => ins.uextend(ty, a),
            Op::Sext8 => self.sign_extend(types::I8, ty, a),
            Op::Sext16 => self.sign_extend(types::I16, ty, a),
            Op::Sext32 => self.sign_extend(types::I32, ty, a),
            Op::TruncS => ins.fcvt_to_sint(ty, a),
            Op::TruncU => ins.fcvt_to_uint(ty, a),
            Op::TruncSatS => ins.fcvt_to_sint_sat(ty, a),
            Op::TruncSatU => ins.fcvt_to_uint_sat(ty, a),
            Op::ConvertS => ins.fcvt_from_sint(ty, a),
            Op::ConvertU => ins.fcvt_from_uint(ty, a),
            Op::Demote => ins.fdemote(ty, a),
            Op::Promote => ins.fpromote(ty, a),
            Op::Reinterpret => ins.bitcast(ty, MemFlagsData::new(), a),
            _ => return None,
        })
    }

    /// Sign-extends the low bits of `a` that `from` has.
    fn sign_extend(&mut self, from: clif::Type, to: clif::Type, a: clif::Value) -> clif::Value {
        let low = self.b.ins().ireduce(from, a);
        self.b.ins().sextend(to, low)
    }

    /// An unsigned 32-bit or a 64-bit integer as 64 bits.
    pub(super) fn widen(&mut self, ty: Type, a: clif::Value) -> clif::Value {
        if ty == Type::I32 { self.b.ins().uextend(types::I64, a) } else { a }
    }
}

fn int_condition(op: Op) -> Option<IntCC> {
    Some(match op {
        Op::Eq => IntCC::Equal,
        Op::Ne => IntCC::NotEqual,
        Op::LtS => IntCC::SignedLessThan,
        Op::LtU => IntCC::UnsignedLessThan,
        Op::GtS => IntCC::SignedGreaterThan,
        Op::GtU => IntCC::UnsignedGreaterThan,
        Op::LeS => IntCC::SignedLessThanOrEqual,
        Op::LeU => IntCC::UnsignedLessThanOrEqual,
        Op::GeS => IntCC::SignedGreaterThanOrEqual,
        Op::GeU => IntCC::UnsignedGreaterThanOrEqual,
        _ => return None,
    })
}

fn float_condition(op: Op) -> Option<FloatCC> {
    Some(match op {
        Op::Feq => FloatCC::Equal,
        Op::Fne => FloatCC::NotEqual,
        Op::Flt => FloatCC::LessThan,
        Op::Fgt => FloatCC::GreaterThan,
        Op::Fle => FloatCC::LessThanOrEqual,
        Op::Fge => FloatCC::GreaterThanOrEqual,
        _ => return None,
    })
}
