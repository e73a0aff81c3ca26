//! Operations on floats, and conversions from and to them.

use super::compiler::Compiler;
use super::frame::FLOAT_SCRATCH;
use super::numeric::width;
use super::stencil::Immediate;
use super::values::{At, Kind, Popped};
use crate::ir::Type;
use crate::ir::family::{Convert, Float, FloatCompare};
use crate::regalloc::{Class, Reg};
use crate::request::Refusal;
use crate::x64::insts::{Asm, Cond, Inst, Rm};
use weir_bytecode::Opcode;
use weir_bytecode::semantics::trunc_range;

/// The greatest f32 that is not above `bound`. The f32s above it are those above `bound`.
fn at_most(bound: f64) -> f32 {
    let nearest = bound as f32;
    if f64::from(nearest) > bound { nearest.next_down() } else { nearest }
}

impl Compiler<'_> {
    /// A float as a right operand: in memory if it is a constant or only in its slot.
    fn float_rm(&mut self, popped: &mut Popped) -> Rm {
        match popped.at {
            At::Const(bits) if bits != 0 => Rm::Mem(self.float_constant(popped.kind, bits)),
            At::Const(_) | At::Slot | At::Reg(_) | At::Local(_) => self.rm(popped),
        }
    }

    pub fn float(&mut self, opcode: Opcode, op: Float, ty: Type) -> Result<(), Refusal> {
        let op = match op {
            Float::Fadd => Asm::Vadd,
            Float::Fsub => Asm::Vsub,
            Float::Fmul => Asm::Vmul,
            Float::Fdiv => Asm::Vdiv,
            Float::Fmin | Float::Fmax | Float::Fcopysign => return self.stencil(opcode, Immediate::None),
        };
        if self.request.options.canonical_nans {
            return self.stencil(opcode, Immediate::None);
        }
        let (mut b, mut a) = (self.pop(), self.pop());
        let src = self.reg(&mut a);
        let rm = self.float_rm(&mut b);
        let dst = self.result_like(a);
        self.emit_any(&Inst::new(op, width(ty)).dst(dst).src(src).rm(rm));
        self.push(a.kind, dst);
        Ok(())
    }

    pub fn compare_floats(&mut self, op: FloatCompare, ty: Type) {
        let (mut b, mut a) = (self.pop(), self.pop());
        // "Above" is false for unordered operands; "below" is not.
        let (cond, swapped) = match op {
            FloatCompare::Feq => (Cond::FloatE, false),
            FloatCompare::Fne => (Cond::FloatNE, false),
            FloatCompare::Flt => (Cond::A, true),
            FloatCompare::Fgt => (Cond::A, false),
            FloatCompare::Fle => (Cond::AE, true),
            FloatCompare::Fge => (Cond::AE, false),
        };
        if swapped {
            (a, b) = (b, a);
        }
        let src = self.reg(&mut a);
        let rm = self.float_rm(&mut b);
        self.emit(&Inst::new(Asm::Vucomi, width(ty)).src(src).rm(rm));
        self.condition(cond);
    }

    pub fn convert_float(&mut self, opcode: Opcode, op: Convert, operand: Type, result: Type) -> Result<(), Refusal> {
        let saturating = match (op, operand, result) {
            (Convert::TruncS, Type::F32, Type::I32) => Opcode::I32TruncSatF32S,
            (Convert::TruncS, Type::F32, _) => Opcode::I64TruncSatF32S,
            (Convert::TruncS, _, Type::I32) => Opcode::I32TruncSatF64S,
            (Convert::TruncS, ..) => Opcode::I64TruncSatF64S,
            (Convert::TruncU, Type::F32, Type::I32) => Opcode::I32TruncSatF32U,
            (Convert::TruncU, Type::F32, _) => Opcode::I64TruncSatF32U,
            (Convert::TruncU, _, Type::I32) => Opcode::I32TruncSatF64U,
            (Convert::TruncU, ..) => Opcode::I64TruncSatF64U,
            (Convert::Reinterpret, ..) => {
                self.reinterpret(result);
                return Ok(());
            }
            (Convert::Wrap | Convert::ExtendS | Convert::ExtendU | Convert::TruncSatS | Convert::TruncSatU, ..) => {
                return self.stencil(opcode, Immediate::None);
            }
            (Convert::ConvertS | Convert::ConvertU | Convert::Demote | Convert::Promote, ..) => {
                return self.stencil(opcode, Immediate::None);
            }
        };
        self.check_range(op == Convert::TruncS, operand, result);
        self.stencil(saturating, Immediate::None)
    }

    /// Traps unless the float on top of the stack, truncated, is an integer of type `result`.
    fn check_range(&mut self, signed: bool, operand: Type, result: Type) {
        let (least, most) = trunc_range(if result == Type::I32 { 32 } else { 64 }, signed);
        let width = width(operand);
        let mut popped = self.pop();
        let reg = self.reg(&mut popped);
        let kind = popped.kind;
        let bound = |compiler: &mut Self, value: f64| {
            let bits = if kind == Kind::F32 { at_most(value).to_bits().into() } else { value.to_bits() };
            compiler.float_constant(kind, bits)
        };
        let least = bound(self, least);
        self.emit(&Inst::new(Asm::Vucomi, width).src(reg).mem(least));
        self.untruncated_if(Cond::BE, reg, width);
        let most = bound(self, most);
        self.emit(&Inst::new(Asm::Vmov, width).dst(FLOAT_SCRATCH).mem(most));
        self.emit(&Inst::new(Asm::Vucomi, width).src(FLOAT_SCRATCH).reg(reg));
        self.untruncated_if(Cond::BE, reg, width);
        self.push_again(popped, reg);
    }

    /// Pushes again an operand that was popped into `reg`.
    fn push_again(&mut self, popped: Popped, reg: Reg) {
        match popped.at {
            At::Local(local) => self.push_copy(local),
            At::Slot | At::Const(_) | At::Reg(_) => self.push(popped.kind, reg),
        }
    }

    fn reinterpret(&mut self, result: Type) {
        let kind = Kind::of_ssa(result);
        let mut popped = self.pop();
        match popped.at {
            At::Const(bits) => return self.push_at(kind, At::Const(bits)),
            At::Slot => return self.push_stored(kind),
            At::Reg(_) | At::Local(_) => {}
        }
        let src = self.reg(&mut popped);
        let dst = self.fresh(kind.class());
        match kind.class() {
            Class::Int => self.out.float_bits(dst, src, kind.width()),
            Class::Float => self.emit(&Inst::new(Asm::ToFloat, kind.width()).dst(dst).reg(src)),
        }
        self.push(kind, dst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_f32_exclude_the_floats_that_the_bounds_of_f64_exclude() {
        for (bits, signed) in [(32, true), (32, false), (64, true), (64, false)] {
            let (above, below) = trunc_range(bits, signed);
            let (least, most) = (at_most(above), at_most(below));
            assert!(f64::from(least) <= above && f64::from(least.next_up()) > above, "{bits} {signed}");
            assert!(f64::from(most) >= below && f64::from(most.next_down()) < below, "{bits} {signed}");
        }
    }
}
