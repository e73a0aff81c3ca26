//! Selection of numeric operations, comparisons and `select`.

use super::selection::{Lower, class, width};
use crate::ir::family::{Bits, Compare, Convert, Family, Float, FloatCompare, FloatUnary, Integer, Reference};
use crate::ir::{Op, Type, Value};
use crate::regalloc::{Class, Reg};
use crate::x64::condition::integer_condition;
use crate::x64::insts::{Asm, Cond, FloatEquality, Inst, Mem, Rm, Trunc, Width};
use weir_bytecode::Trap;

/// Rounding modes of `vround`, exceptions suppressed.
pub(super) const NEAREST: i64 = 8;
pub(super) const FLOOR: i64 = 9;
pub(super) const CEIL: i64 = 10;
pub(super) const TRUNC: i64 = 11;

impl Lower<'_, '_> {
    pub(super) fn lower_integer(&mut self, op: Integer, value: Value) {
        match op {
            Integer::Add => self.lower_add(value),
            Integer::Sub => self.lower_sub(value),
            Integer::Mul => self.lower_mul(value),
            Integer::MulHigh => {
                let (a, b) = self.args(value);
                let (dst, src, factor) = (self.result(value), self.reg(a), self.reg(b));
                self.push(Inst::new(Asm::Mulx, Width::Q).dst(dst).src(src).reg(factor));
            }
            Integer::And => self.lower_and(value),
            Integer::Or => self.lower_two_address(value, Asm::Or),
            Integer::Xor => self.lower_xor(value),
            Integer::DivS => self.lower_division(value, true, false),
            Integer::DivU => self.lower_division(value, false, false),
            Integer::RemS => self.lower_division(value, true, true),
            Integer::RemU => self.lower_division(value, false, true),
            Integer::Shl => self.lower_shift(value, Asm::Shl, Asm::Shlx),
            Integer::ShrS => self.lower_shift(value, Asm::Sar, Asm::Sarx),
            Integer::ShrU => self.lower_shift(value, Asm::Shr, Asm::Shrx),
            Integer::Rotl | Integer::Rotr => self.lower_rotate(value),
        }
    }

    pub(super) fn lower_bits(&mut self, op: Bits, value: Value) {
        match op {
            Bits::Clz => self.lower_move(value, Asm::Lzcnt),
            Bits::Ctz => self.lower_move(value, Asm::Tzcnt),
            Bits::Popcnt => self.lower_move(value, Asm::Popcnt),
            Bits::Sext8 => self.lower_move_narrow(value, Asm::Movsx8),
            Bits::Sext16 => self.lower_move_narrow(value, Asm::Movsx16),
            Bits::Sext32 => self.lower_move_narrow(value, Asm::Movsxd),
        }
    }

    pub(super) fn lower_binary_float(&mut self, op: Float, value: Value) {
        match op {
            Float::Fadd => self.lower_float(value, Asm::Vadd, true),
            Float::Fmul => self.lower_float(value, Asm::Vmul, true),
            Float::Fsub => self.lower_float(value, Asm::Vsub, false),
            Float::Fdiv => self.lower_float(value, Asm::Vdiv, false),
            Float::Fmin => self.lower_min_max(value, Asm::Fmin),
            Float::Fmax => self.lower_min_max(value, Asm::Fmax),
            Float::Fcopysign => self.lower_copysign(value),
        }
    }

    pub(super) fn lower_unary_float(&mut self, op: FloatUnary, value: Value) {
        match op {
            FloatUnary::Fabs | FloatUnary::Fneg => self.lower_sign(value),
            FloatUnary::Fceil => self.lower_round(value, CEIL),
            FloatUnary::Ffloor => self.lower_round(value, FLOOR),
            FloatUnary::Ftrunc => self.lower_round(value, TRUNC),
            FloatUnary::Fnearest => self.lower_round(value, NEAREST),
            FloatUnary::Fsqrt => self.lower_move(value, Asm::Vsqrt),
        }
    }

    pub(super) fn lower_conversion(&mut self, op: Convert, value: Value) {
        match op {
            // The lower half, with zeros above it.
            Convert::Wrap | Convert::ExtendU => {
                let (dst, src) = (self.result(value), self.reg(self.func.args(value)[0]));
                self.push(Inst::new(Asm::Mov, Width::D).dst(dst).reg(src));
            }
            Convert::ExtendS => self.lower_convert(value, Asm::Movsxd, Width::Q),
            Convert::Demote => self.lower_convert(value, Asm::Vconvert, Width::Q),
            Convert::Promote => self.lower_convert(value, Asm::Vconvert, Width::D),
            Convert::ConvertS | Convert::ConvertU => self.lower_from_integer(value),
            Convert::TruncS => self.lower_to_integer(value, true, false),
            Convert::TruncU => self.lower_to_integer(value, false, false),
            Convert::TruncSatS => self.lower_to_integer(value, true, true),
            Convert::TruncSatU => self.lower_to_integer(value, false, true),
            Convert::Reinterpret => self.lower_reinterpret(value),
        }
    }

    pub(super) fn args(&self, value: Value) -> (Value, Value) {
        let args = self.func.args(value);
        (args[0], args[1])
    }

    /// `dst ← op(argument)`, both of the same type.
    fn lower_move(&mut self, value: Value, op: Asm) {
        self.lower_convert(value, op, width(self.func.ty(value)));
    }

    /// `dst ← op(argument)`; `width` is that of the instruction.
    fn lower_convert(&mut self, value: Value, op: Asm, width: Width) {
        let arg = self.func.args(value)[0];
        let (dst, rm) = (self.result(value), self.rm(arg, self.func.ty(arg)));
        self.push(Inst::new(op, width).dst(dst).rm(rm));
    }

    /// `dst ← op(argument)` for an instruction that reads fewer bits than its argument has. A load is not folded, because it
    /// would read fewer bytes and so trap less.
    fn lower_move_narrow(&mut self, value: Value, op: Asm) {
        let (dst, src) = (self.result(value), self.reg(self.func.args(value)[0]));
        self.push(Inst::new(op, width(self.func.ty(value))).dst(dst).reg(src));
    }

    /// A two-address instruction destroys its left operand, which should therefore be the operand without another use.
    pub(super) fn order_commutative(&self, a: Value, b: Value, ty: Type) -> (Value, Value) {
        let needed = |value: Value| !self.regs[self.resolve(value).index()].is_none();
        let swap = self.constant(b).is_none()
            && (self.constant(a).is_some()
                || self.can_fold_load(a, ty) && !self.can_fold_load(b, ty)
                || !self.can_fold_load(b, ty) && needed(a) && !needed(b));
        if swap { (b, a) } else { (a, b) }
    }

    /// A commutative integer operation.
    fn lower_two_address(&mut self, value: Value, op: Asm) {
        let ty = self.func.ty(value);
        let (a, b) = self.args(value);
        let (a, b) = self.order_commutative(a, b, ty);
        self.push_two_address(value, op, a, b);
    }

    fn push_two_address(&mut self, value: Value, op: Asm, a: Value, b: Value) {
        let ty = self.func.ty(value);
        let (dst, src) = (self.result(value), self.reg(a));
        let inst = Inst::new(op, width(ty)).dst(dst).src(src);
        let inst = match self.immediate(b, width(ty)) {
            Some(imm) => inst.imm(imm),
            None => {
                let rm = self.rm(b, ty);
                inst.rm(rm)
            }
        };
        self.push(inst);
    }

    fn lower_add(&mut self, value: Value) {
        let ty = self.func.ty(value);
        let (a, b) = self.args(value);
        let (a, b) = self.order_commutative(a, b, ty);
        if self.can_fold_load(b, ty) {
            return self.push_two_address(value, Asm::Add, a, b);
        }
        if self.constant(b).is_some() && self.immediate(b, width(ty)).is_none() {
            return self.push_two_address(value, Asm::Add, a, b);
        }
        let mem = self.sum(a, b, ty);
        let dst = self.result(value);
        self.push(Inst::new(Asm::Lea, width(ty)).dst(dst).mem(mem));
    }

    /// `a + b` as an address for `lea`: base, scaled index and displacement if the sum has them.
    pub(super) fn sum(&mut self, a: Value, b: Value, ty: Type) -> Mem {
        if let Some(disp) = self.immediate(b, width(ty)) {
            if let Some(inner) = self.single(a, ty).filter(|&inner| self.func.op(inner) == Op::Add) {
                let (x, y) = self.args(inner);
                if self.constant(x).is_none() && self.constant(y).is_none() {
                    return Mem { disp: disp as i32, ..self.sum(x, y, ty) };
                }
            }
            return match self.scaled(a, ty) {
                Some((index, shift)) => Mem::indexed(Reg::NONE, self.reg(index), shift, disp as i32),
                None => Mem::at(self.reg(a), disp as i32),
            };
        }
        if let Some((index, shift)) = self.scaled(b, ty) {
            return Mem::indexed(self.reg(a), self.reg(index), shift, 0);
        }
        if let Some((index, shift)) = self.scaled(a, ty) {
            return Mem::indexed(self.reg(b), self.reg(index), shift, 0);
        }
        Mem::indexed(self.reg(a), self.reg(b), 0, 0)
    }

    /// The value that, shifted left by 1 to 3, gives `value`.
    fn scaled(&self, value: Value, ty: Type) -> Option<(Value, u8)> {
        let inst = self.func.inst(self.single(value, ty).filter(|&inner| self.func.op(inner) == Op::Shl)?);
        let shift = self.constant(inst.args[1])? & u64::from(bits(ty) - 1);
        (1..=3).contains(&shift).then_some((inst.args[0], shift as u8))
    }

    fn lower_sub(&mut self, value: Value) {
        let ty = self.func.ty(value);
        let (a, b) = self.args(value);
        let dst = self.result(value);
        if self.constant(a) == Some(0) {
            let src = self.reg(b);
            return self.push(Inst::new(Asm::Neg, width(ty)).dst(dst).src(src));
        }
        match self.immediate(b, width(ty)).and_then(|imm| (imm as i32).checked_neg()) {
            Some(disp) => {
                let src = self.reg(a);
                self.push(Inst::new(Asm::Lea, width(ty)).dst(dst).mem(Mem::at(src, disp)));
            }
            None => self.push_two_address(value, Asm::Sub, a, b),
        }
    }

    fn lower_mul(&mut self, value: Value) {
        let ty = self.func.ty(value);
        let (a, b) = self.args(value);
        let (a, b) = self.order_commutative(a, b, ty);
        let Some(factor) = self.immediate(b, width(ty)) else {
            return self.push_two_address(value, Asm::Imul, a, b);
        };
        let dst = self.result(value);
        match factor {
            3 | 5 | 9 => {
                let src = self.reg(a);
                let mem = Mem::indexed(src, src, (factor - 1).trailing_zeros() as u8, 0);
                self.push(Inst::new(Asm::Lea, width(ty)).dst(dst).mem(mem));
            }
            // `ir::rules` makes this a shift, too, but constant propagation, which finds more constants, runs after it.
            _ if factor > 0 && factor & (factor - 1) == 0 => {
                let src = self.reg(a);
                self.push(Inst::new(Asm::Shl, width(ty)).dst(dst).src(src).imm(factor.trailing_zeros().into()));
            }
            _ => {
                let rm = self.rm(a, ty);
                self.push(Inst::new(Asm::ImulImm, width(ty)).dst(dst).rm(rm).imm(factor));
            }
        }
    }

    fn lower_and(&mut self, value: Value) {
        let ty = self.func.ty(value);
        let (a, b) = self.args(value);
        let (a, b) = self.order_commutative(a, b, ty);
        let dst = self.result(value);
        let extension = match self.constant(b) {
            Some(0xFF) => Some((Asm::Movzx8, Width::D)),
            Some(0xFFFF) => Some((Asm::Movzx16, Width::D)),
            Some(0xFFFF_FFFF) if ty == Type::I64 => Some((Asm::Mov, Width::D)),
            _ => None,
        };
        if let Some((op, width)) = extension {
            let src = self.reg(a);
            return self.push(Inst::new(op, width).dst(dst).reg(src));
        }
        for (inverted, other) in [(a, b), (b, a)] {
            if let Some(inner) = self.single(inverted, ty).filter(|&inner| self.is_not(inner, ty))
                && self.immediate(other, width(ty)).is_none()
            {
                let src = self.reg(self.func.args(inner)[0]);
                let rm = self.rm(other, ty);
                return self.push(Inst::new(Asm::Andn, width(ty)).dst(dst).src(src).rm(rm));
            }
        }
        self.push_two_address(value, Asm::And, a, b);
    }

    /// Whether `value` is `xor x, -1`.
    fn is_not(&self, value: Value, ty: Type) -> bool {
        self.func.op(value) == Op::Xor && self.immediate(self.func.args(value)[1], width(ty)) == Some(-1)
    }

    fn lower_xor(&mut self, value: Value) {
        let ty = self.func.ty(value);
        if !self.is_not(value, ty) {
            return self.lower_two_address(value, Asm::Xor);
        }
        let (dst, src) = (self.result(value), self.reg(self.func.args(value)[0]));
        self.push(Inst::new(Asm::Not, width(ty)).dst(dst).src(src));
    }

    fn lower_shift(&mut self, value: Value, by_constant: Asm, by_register: Asm) {
        let ty = self.func.ty(value);
        let (a, count) = self.args(value);
        let dst = self.result(value);
        match self.constant(count) {
            Some(count) => {
                let src = self.reg(a);
                let count = count & u64::from(bits(ty) - 1);
                self.push(Inst::new(by_constant, width(ty)).dst(dst).src(src).imm(count as i64));
            }
            None => {
                let count = self.reg(count);
                let rm = self.rm(a, ty);
                self.push(Inst::new(by_register, width(ty)).dst(dst).src(count).rm(rm));
            }
        }
    }

    fn lower_rotate(&mut self, value: Value) {
        let ty = self.func.ty(value);
        let (a, count) = self.args(value);
        let left = self.func.op(value) == Op::Rotl;
        let dst = self.result(value);
        match self.constant(count) {
            Some(count) => {
                let right = if left { count.wrapping_neg() } else { count } & u64::from(bits(ty) - 1);
                let rm = self.rm(a, ty);
                self.push(Inst::new(Asm::Rorx, width(ty)).dst(dst).rm(rm).imm(right as i64));
            }
            None => {
                let (src, count) = (self.reg(a), self.reg(count));
                let op = if left { Asm::RolCl } else { Asm::RorCl };
                self.push(Inst::new(op, width(ty)).dst(dst).src(src).reg(count));
            }
        }
    }

    fn lower_float(&mut self, value: Value, op: Asm, commutative: bool) {
        let ty = self.func.ty(value);
        let (mut a, mut b) = self.args(value);
        // NaN payloads may depend on the order of operands, which WebAssembly leaves open.
        if commutative {
            (a, b) = self.order_commutative(a, b, ty);
        }
        let src = self.reg(a);
        let rm = self.rm(b, ty);
        let dst = self.result(value);
        self.push(Inst::new(op, width(ty)).dst(dst).src(src).rm(rm));
    }

    fn lower_min_max(&mut self, value: Value, op: Asm) {
        let (a, b) = self.args(value);
        let (src, rm, dst) = (self.reg(a), self.reg(b), self.result(value));
        self.push(Inst::new(op, width(self.func.ty(value))).dst(dst).src(src).reg(rm));
    }

    /// The mask in all lanes, so that one constant serves as a 128-bit memory operand.
    fn sign_mask(&mut self, ty: Type, inverted: bool) -> Mem {
        let lane = if ty == Type::F32 { 0x8000_0000_8000_0000 } else { 1u64 << 63 };
        let lane = u128::from(if inverted { !lane } else { lane });
        Mem::constant(self.code.pool.offset(lane << 64 | lane, 16))
    }

    fn lower_sign(&mut self, value: Value) {
        let ty = self.func.ty(value);
        let abs = self.func.op(value) == Op::Fabs;
        let mask = self.sign_mask(ty, abs);
        let (dst, src) = (self.result(value), self.reg(self.func.args(value)[0]));
        let op = if abs { Asm::Vand } else { Asm::Vxor };
        self.push(Inst::new(op, width(ty)).dst(dst).src(src).mem(mask));
    }

    fn lower_copysign(&mut self, value: Value) {
        let ty = self.func.ty(value);
        let (magnitude, sign) = self.args(value);
        let (magnitude, sign) = (self.reg(magnitude), self.reg(sign));
        let (mask, inverse) = (self.sign_mask(ty, false), self.sign_mask(ty, true));
        let (a, b, dst) = (self.fresh(ty), self.fresh(ty), self.result(value));
        self.push(Inst::new(Asm::Vand, width(ty)).dst(a).src(magnitude).mem(inverse));
        self.push(Inst::new(Asm::Vand, width(ty)).dst(b).src(sign).mem(mask));
        self.push(Inst::new(Asm::Vor, width(ty)).dst(dst).src(a).reg(b));
    }

    fn lower_round(&mut self, value: Value, mode: i64) {
        let ty = self.func.ty(value);
        let (dst, rm) = (self.result(value), self.rm(self.func.args(value)[0], ty));
        self.push(Inst::new(Asm::Vround, width(ty)).dst(dst).rm(rm).imm(mode));
    }

    fn lower_from_integer(&mut self, value: Value) {
        let arg = self.func.args(value)[0];
        let (from, single) = (self.func.ty(arg), self.func.ty(value) == Type::F32);
        let dst = self.result(value);
        if self.func.op(value) == Op::ConvertU && from == Type::I64 {
            let (src, scratch) = (self.reg(arg), self.code.new_reg(Class::Int));
            let op = if single { Asm::CvtUnsignedSs } else { Asm::CvtUnsignedSd };
            return self.push(Inst::new(op, Width::Q).dst(dst).src(scratch).reg(src));
        }
        let op = if single { Asm::CvtSs } else { Asm::CvtSd };
        // A zero-extended unsigned 32-bit integer is a signed 64-bit one.
        let extended = self.func.op(value) == Op::ConvertU;
        let (rm, width) = if extended { (Rm::Reg(self.reg(arg)), Width::Q) } else { (self.rm(arg, from), width(from)) };
        self.push(Inst::new(op, width).dst(dst).rm(rm));
    }

    fn lower_to_integer(&mut self, value: Value, signed: bool, saturating: bool) {
        let arg = self.func.args(value)[0];
        let (to, from) = (self.func.ty(value), width(self.func.ty(arg)));
        let trunc = Trunc { signed, saturating, from };
        let (dst, src) = (self.result(value), self.reg(arg));
        let scratch = match (trunc.signed, to) {
            (true, _) => Reg::NONE,
            (false, Type::I32) => self.code.new_reg(Class::Int),
            (false, _) => self.code.new_reg(Class::Float),
        };
        self.push(Inst::new(Asm::Trunc, width(to)).dst(dst).src(scratch).reg(src).imm(trunc.to_imm()));
    }

    fn lower_reinterpret(&mut self, value: Value) {
        let arg = self.func.args(value)[0];
        let (from, to) = (self.func.ty(arg), self.func.ty(value));
        let dst = self.result(value);
        // A load can go to either bank.
        if let Some(mem) = self.fold_load(arg, from) {
            let op = if to.is_float() { Asm::Vmov } else { Asm::Mov };
            return self.push(Inst::new(op, width(to)).dst(dst).mem(mem));
        }
        let src = self.reg(arg);
        let op = if to.is_float() { Asm::ToFloat } else { Asm::FromFloat };
        self.push(Inst::new(op, width(to)).dst(dst).reg(src));
    }

    /// Materialises a comparison.
    pub(super) fn lower_set(&mut self, value: Value, comparison: Comparison) {
        let dst = self.result(value);
        let cond = self.compare(value, comparison);
        // Equality of floats takes two flags: one of them chooses between the other and a constant.
        let (cond, constant) = match cond.float_equality() {
            Some(FloatEquality::Equal) => (Cond::NP, 0),
            Some(FloatEquality::Unequal) => (Cond::P, 1),
            None => return self.push(Inst::new(Asm::Set, Width::D).dst(dst).cond(cond)),
        };
        let first = self.fresh(Type::I32);
        let constant = self.constant_mem(constant, Type::F32);
        self.push(Inst::new(Asm::Set, Width::D).dst(first).cond(cond));
        self.push(Inst::new(Asm::Cmov, Width::D).dst(dst).src(first).mem(constant).cond(Cond::NE));
    }

    /// The argument, after a check that traps if it is null.
    pub(super) fn lower_non_null(&mut self, value: Value) {
        let reference = self.func.args(value)[0];
        let (dst, src) = (self.result(value), self.reg(reference));
        self.push(Inst::new(Asm::Test, Width::Q).src(src).reg(src));
        self.trap_if(Cond::E, Trap::NullReference);
        self.push(Inst::new(Asm::Mov, Width::Q).dst(dst).reg(src));
    }

    /// Sets the flags for a condition value, and returns the condition that is true if the value is non-zero. No instruction
    /// that writes flags may come between this and the instruction that reads them.
    pub(super) fn flags(&mut self, condition: Value) -> Cond {
        let inner = self.local(condition, Type::I32);
        match inner.and_then(|inner| Some((inner, self.comparison(inner)?))) {
            Some((inner, comparison)) => self.compare(inner, comparison),
            None => {
                self.test_zero(condition, Type::I32, Cond::NE);
                Cond::NE
            }
        }
    }

    /// The comparison that `value` computes, if it is one.
    fn comparison(&self, value: Value) -> Option<Comparison> {
        match self.func.op(value).family() {
            Family::Compare(op) => Some(Comparison::Integers(op)),
            Family::FloatCompare(op) => Some(Comparison::Floats(op)),
            Family::Reference(Reference::RefIsNull) => Some(Comparison::Null),
            Family::Simd(_) => self.tests_vector(value).then_some(Comparison::Vector),
            Family::Leaf(_) | Family::Integer(_) | Family::Bits(_) | Family::Float(_) | Family::FloatUnary(_) => None,
            Family::Convert(_) | Family::Reference(Reference::NonNull | Reference::RefFunc) => None,
            Family::Reference(Reference::ElementDiffers | Reference::FuncDiffers) => None,
            Family::Load(_) | Family::Store(_) | Family::Memory(_) | Family::Global(_) | Family::Table(_) => None,
            Family::Call(_) | Family::Exception(_) | Family::Accounting(_) | Family::Terminator(_) => None,
        }
    }

    /// Sets the flags by a comparison, and returns the condition that is true if the comparison is.
    fn compare(&mut self, value: Value, comparison: Comparison) -> Cond {
        let func = self.func;
        let inst = func.inst(value);
        let ty = func.ty(inst.args[0]);
        let a = inst.args[0];
        match comparison {
            Comparison::Integers(Compare::Eqz) if ty == Type::I32 => self.flags(a).inverted(),
            Comparison::Integers(Compare::Eqz) | Comparison::Null => {
                self.test_zero(a, ty, Cond::E);
                Cond::E
            }
            Comparison::Integers(op) => self.compare_integers(a, inst.args[1], ty, integer_condition(op)),
            Comparison::Floats(op) => {
                let b = inst.args[1];
                match op {
                    FloatCompare::Feq => self.compare_floats(a, b, ty, Cond::FloatE),
                    FloatCompare::Fne => self.compare_floats(a, b, ty, Cond::FloatNE),
                    // Unordered operands set the carry flag too, so only "above" implies an order.
                    FloatCompare::Flt => self.compare_floats(b, a, ty, Cond::A),
                    FloatCompare::Fgt => self.compare_floats(a, b, ty, Cond::A),
                    FloatCompare::Fle => self.compare_floats(b, a, ty, Cond::AE),
                    FloatCompare::Fge => self.compare_floats(a, b, ty, Cond::AE),
                }
            }
            Comparison::Vector => self.test_vector(value),
        }
    }

    fn compare_integers(&mut self, a: Value, b: Value, ty: Type, cond: Cond) -> Cond {
        let width = width(ty);
        if self.constant(a).is_some() && self.constant(b).is_none() {
            return self.compare_integers(b, a, ty, cond.swapped());
        }
        if self.constant(b) == Some(0) {
            self.test_zero(a, ty, cond);
            return cond;
        }
        if let Some(imm) = self.immediate(b, width) {
            let (rm, width) = match self.fold_byte(a, imm, cond) {
                Some(mem) => (Rm::Mem(mem), Width::B),
                None => (self.rm(a, ty), width),
            };
            self.push(Inst::new(Asm::Cmp, width).rm(rm).imm(imm));
            return cond;
        }
        if self.can_fold_load(a, ty) && !self.can_fold_load(b, ty) {
            let src = self.reg(b);
            let rm = self.rm(a, ty);
            self.push(Inst::new(Asm::Cmp, width).src(src).rm(rm));
            return cond.swapped();
        }
        let src = self.reg(a);
        let rm = self.rm(b, ty);
        self.push(Inst::new(Asm::Cmp, width).src(src).rm(rm));
        cond
    }

    /// Folds the load of a byte that is compared with `imm`, if comparing bytes gives the same result: both are zero-extended,
    /// and the comparison is not signed.
    fn fold_byte(&mut self, value: Value, imm: i64, cond: Cond) -> Option<Mem> {
        let value = self.resolve(value);
        let ty = self.func.ty(value);
        let signless = matches!(cond, Cond::E | Cond::NE | Cond::B | Cond::AE | Cond::BE | Cond::A);
        let fits = self.func.op(value) == Op::Load8U && signless && (0..=255).contains(&imm);
        (fits && self.can_fold_load(value, ty)).then(|| self.fold(value))
    }

    /// Sets the flags like a comparison with zero, for an instruction that reads `cond`.
    fn test_zero(&mut self, value: Value, ty: Type, cond: Cond) {
        let width = width(ty);
        if let Some(inner) = self.single(value, ty).filter(|&inner| self.func.op(inner) == Op::And) {
            let (a, b) = self.args(inner);
            let (a, b) = self.order_commutative(a, b, ty);
            let inst = match self.immediate(b, width) {
                Some(imm) => {
                    let rm = self.rm(a, ty);
                    Inst::new(Asm::Test, width).rm(rm).imm(imm)
                }
                None => {
                    let src = self.reg(a);
                    let rm = self.rm(b, ty);
                    Inst::new(Asm::Test, width).src(src).rm(rm)
                }
            };
            return self.push(inst);
        }
        if let Some(mem) = self.fold_byte(value, 0, cond) {
            return self.push(Inst::new(Asm::Cmp, Width::B).mem(mem));
        }
        let inst = match self.rm(value, ty) {
            Rm::Reg(reg) => Inst::new(Asm::Test, width).src(reg).reg(reg),
            rm @ (Rm::None | Rm::Mem(_) | Rm::Slot(_)) => Inst::new(Asm::Cmp, width).rm(rm),
        };
        self.push(inst);
    }

    fn compare_floats(&mut self, a: Value, b: Value, ty: Type, cond: Cond) -> Cond {
        let symmetric = matches!(cond, Cond::FloatE | Cond::FloatNE);
        let (a, b) = if symmetric { self.order_commutative(a, b, ty) } else { (a, b) };
        let src = self.reg(a);
        let rm = self.rm(b, ty);
        self.push(Inst::new(Asm::Vucomi, width(ty)).src(src).rm(rm));
        cond
    }

    pub(super) fn lower_select(&mut self, value: Value) {
        let ty = self.func.ty(value);
        let args = self.func.args(value);
        let (condition, mut then, mut otherwise) = (args[0], args[1], args[2]);
        if ty.is_float() && self.lower_float_select_as_min_max(value) {
            return;
        }
        let dst = self.result(value);
        // Operands first, because computing them may write flags.
        let registers = (self.reg(then), self.reg(otherwise));
        let mut cond = self.flags(condition);
        let (mut then_reg, mut otherwise_reg) = registers;
        if cond == Cond::FloatE {
            (then, otherwise) = (otherwise, then);
            (then_reg, otherwise_reg) = (otherwise_reg, then_reg);
            cond = Cond::FloatNE;
        }
        // The operand that is overwritten should be one without another use.
        let _ = (then, otherwise);
        let op = if class(ty) == Class::Float { Asm::FloatSelect } else { Asm::Cmov };
        self.push(Inst::new(op, width(ty)).dst(dst).src(otherwise_reg).reg(then_reg).cond(cond));
    }

    /// `a < b ? a : b` is exactly `vmin a, b`, NaNs and zeros included, and likewise for the other three forms.
    fn lower_float_select_as_min_max(&mut self, value: Value) -> bool {
        let func = self.func;
        let args = func.args(value);
        let Some(comparison) = self.local(args[0], Type::I32) else {
            return false;
        };
        let Family::FloatCompare(op) = func.op(comparison).family() else { return false };
        let (a, b) = self.args(comparison);
        let (mut less, mut greater) = match op {
            FloatCompare::Flt => (a, b),
            FloatCompare::Fgt => (b, a),
            FloatCompare::Feq | FloatCompare::Fne | FloatCompare::Fle | FloatCompare::Fge => return false,
        };
        (less, greater) = (self.resolve(less), self.resolve(greater));
        let (then, otherwise) = (self.resolve(args[1]), self.resolve(args[2]));
        let (op, a, b) = match (then, otherwise) {
            (t, o) if (t, o) == (less, greater) => (Asm::Vmin, less, greater),
            (t, o) if (t, o) == (greater, less) => (Asm::Vmax, greater, less),
            _ => return false,
        };
        let (src, rm, dst) = (self.reg(a), self.reg(b), self.result(value));
        self.push(Inst::new(op, width(func.ty(value))).dst(dst).src(src).reg(rm));
        true
    }
}

/// The number of bits of an integer of type `ty`.
pub(super) fn bits(ty: Type) -> u32 {
    if ty == Type::I32 { 32 } else { 64 }
}

/// A comparison that sets the flags.
#[derive(Clone, Copy)]
pub(super) enum Comparison {
    /// Of integers.
    Integers(Compare),
    /// Of floats.
    Floats(FloatCompare),
    /// Of a reference with null.
    Null,
    /// Of a vector's lanes or bits with zero.
    Vector,
}
