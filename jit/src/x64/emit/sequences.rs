//! The rows of TABLE 3 that are written by hand. The likely path is written in place, the rare one after the function.

#![allow(clippy::useless_conversion, reason = "dynasm! converts register numbers")]

use super::{Cold, Emitter, Needed, Rare};
use crate::regalloc::Reg;
use crate::request::{Reloc, RelocTarget};
use crate::seeded::{self, Fault};
use crate::x64::abi;
use crate::x64::insts::{Asm, Cond, FloatEquality, Inst, Mem, Rm, STORED, Sequence, Trunc, Width};
use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};
use std::mem::offset_of;
use weir_bytecode::Trap;
use weir_contract::{Helper, InstanceCtx, NULL_SIG, StoreCtx, TableEntry, TrapSite};

impl Emitter<'_> {
    /// Emits a row that is not a single instruction of the processor.
    pub(super) fn sequence(&mut self, sequence: Sequence, inst: &Inst, flags_needed: Needed, block: usize, next: Option<u32>) {
        if changes_flags(sequence) {
            self.tested = None;
        }
        match sequence {
            Sequence::Jump => self.jump_or_replicate(block, next),
            Sequence::Branch => self.branch(inst.cond, block, next),
            Sequence::JumpTable => self.jump_table(inst, block, next),
            Sequence::Call => self.call(inst),
            Sequence::TryCall => self.try_call(inst, block, next),
            Sequence::Throw => self.throw(inst, block),
            Sequence::TailCall => self.tail_call(inst),
            Sequence::Return => {
                self.epilogue();
                dynasm!(self.out.asm; .arch x64; ret);
            }
            Sequence::Trap => self.ud2(inst.imm, inst.pc),
            Sequence::Args => {}
            Sequence::TrapIf => self.trap_if(inst),
            Sequence::Constant if inst.imm == 0 && flags_needed == Needed::None => {
                self.tested = None;
                self.out.clear(inst.dst);
            }
            Sequence::Constant => self.plain(inst, |out| out.constant(inst.dst, inst.imm)),
            Sequence::EntryCell => {
                let (field, index) = (self.out.address(inst.dst) as u32, inst.imm as u32);
                self.relocs.push(Reloc { offset: field, target: RelocTarget::Cell, index, addend: -4 });
            }
            Sequence::Zero => self.out.clear(inst.dst),
            Sequence::Ones => {
                self.out.encode(&Inst::new(Asm::Pcmpeq, Width::D).long(inst.long).dst(inst.dst).src(inst.dst).reg(inst.dst));
            }
            Sequence::Division => self.divide(inst),
            Sequence::HighProduct => dynasm!(self.out.asm; .arch x64; imul Rq(inst.rm_reg().encoding())),
            Sequence::Set => self.set(inst),
            Sequence::MinMax => self.min_max(inst),
            Sequence::FloatSelect => self.float_select(inst),
            Sequence::FromFloat => self.move_from_float(inst),
            Sequence::FromUnsigned => self.convert_unsigned(inst),
            Sequence::Truncation => self.truncate(inst),
            Sequence::Miss => self.miss(inst),
            Sequence::CheckSignature if seeded::is(Fault::SignatureDropped) => {}
            Sequence::CheckSignature => {
                let other = self.push_cold(Rare::Signature, inst);
                let sig = Mem::at(inst.src, offset_of!(TableEntry, sig) as i32);
                let field = self.out.compare_with_field(sig);
                self.signature(field, inst.imm as u32);
                self.jump_cold(Cond::NE, other);
            }
        }
    }

    fn trap_if(&mut self, inst: &Inst) {
        if inst.imm != Trap::Interrupt as i64 {
            let trap = self.push_cold(Rare::Trap, inst);
            return self.jump_cold(inst.cond, trap);
        }
        let (due, back) = self.push_cold_with_return(Rare::Poll, inst);
        self.jump_cold(inst.cond, due);
        dynasm!(self.out.asm; .arch x64; =>back);
        self.tested = None;
    }

    fn miss(&mut self, inst: &Inst) {
        let store = Mem::at(abi::INSTANCE, offset_of!(InstanceCtx, store) as i32);
        let misses = Mem::at(inst.dst, offset_of!(StoreCtx, misses) as i32);
        self.out.encode(&Inst::new(Asm::Mov, Width::Q).dst(inst.dst).mem(store));
        self.out.encode(&Inst::new(Asm::SubTo, Width::Q).mem(misses).imm(1));
        let (many, back) = self.push_cold_with_return(Rare::Misses, inst);
        self.jump_cold(Cond::S, many);
        dynasm!(self.out.asm; .arch x64; =>back);
    }

    fn min_max(&mut self, inst: &Inst) {
        // Equal or unordered operands.
        let (special, back) = self.push_cold_with_return(Rare::MinMax, inst);
        self.out.encode(&Inst::new(Asm::Vucomi, inst.width).src(inst.src).rm(inst.rm));
        self.jump_cold(Cond::E, special);
        let op = if inst.op == Asm::Fmin { Asm::Vmin } else { Asm::Vmax };
        self.out.encode(&Inst { op, ..*inst });
        dynasm!(self.out.asm; .arch x64; =>back);
    }

    fn convert_unsigned(&mut self, inst: &Inst) {
        let (negative, back) = self.push_cold_with_return(Rare::LargeUnsigned, inst);
        let src = inst.rm_reg();
        self.out.encode(&Inst::new(Asm::Test, Width::Q).src(src).reg(src));
        self.jump_cold(Cond::S, negative);
        self.out.encode(&Inst::new(signed_conversion(inst.op), Width::Q).dst(inst.dst).reg(src));
        dynasm!(self.out.asm; .arch x64; =>back);
    }

    pub(super) fn cold(&mut self, cold: &Cold) {
        let (inst, entry, back) = (&cold.inst, cold.entry, cold.back);
        dynasm!(self.out.asm; .arch x64; =>entry);
        match cold.case {
            Rare::Poll => {
                self.clear_upper_halves();
                // The helper calls the host, and preserves the registers.
                dynasm!(self.out.asm
                    ; .arch x64
                    ; push rax
                    ; mov rax, [r15 + offset_of!(InstanceCtx, helpers) as i32]
                    ; call QWORD [rax + 8 * Helper::Poll as i32]
                );
                self.calls.push((self.offset() as u32, inst.pc));
                dynasm!(self.out.asm; .arch x64; test eax, eax; pop rax; jz =>back);
                self.ud2(STORED, inst.pc);
            }
            Rare::Misses => {
                self.clear_upper_halves();
                // The helper preserves the other registers.
                dynasm!(self.out.asm
                    ; .arch x64
                    ; push rax
                    ; push r11
                    ; mov rax, [r15 + offset_of!(InstanceCtx, helpers) as i32]
                    ; mov r11, QWORD inst.imm
                    ; call QWORD [rax + 8 * Helper::Tick as i32]
                );
                self.calls.push((self.offset() as u32, inst.pc));
                dynasm!(self.out.asm; .arch x64; pop r11; pop rax; jmp =>back);
            }
            Rare::Trap => self.trap_because(inst.imm, inst.src, inst.pc),
            Rare::QuotientByMinusOne => {
                // A quotient by -1 is the negation, which overflows exactly when the division does.
                self.out.encode(&Inst::new(Asm::Neg, inst.width).dst(inst.dst));
                self.jump_cold(Cond::NO, back);
                self.ud2(Trap::IntegerOverflow as i64, inst.pc);
            }
            Rare::RemainderByMinusOne => {
                self.out.clear(inst.dst);
                dynasm!(self.out.asm; .arch x64; jmp =>back);
            }
            Rare::MinMax => {
                // Equal operands have different bits only if they are zeros; then "or" gives the lesser and "and" the greater.
                let merge = if inst.op == Asm::Fmin { Asm::Vor } else { Asm::Vand };
                let nan = self.out.asm.new_dynamic_label();
                self.jump_cold(Cond::P, nan);
                self.out.encode(&Inst { op: merge, ..*inst });
                dynasm!(self.out.asm; .arch x64; jmp =>back; =>nan);
                self.out.encode(&Inst { op: Asm::Vadd, ..*inst });
                dynasm!(self.out.asm; .arch x64; jmp =>back);
            }
            Rare::LargeUnsigned => self.convert_large(inst, back),
            Rare::Truncation => self.truncate_rest(inst, back),
            Rare::Signature => self.refuse_signature(inst),
            Rare::Segment => {
                let field = self.out.address(abi::R10);
                self.begin_at(field);
                dynasm!(self.out.asm
                    ; .arch x64
                    ; mov rax, [r15 + offset_of!(InstanceCtx, helpers) as i32]
                    ; jmp QWORD [rax + 8 * Helper::Relocate as i32]
                );
            }
        }
    }

    fn refuse_signature(&mut self, inst: &Inst) {
        let mismatch = self.out.asm.new_dynamic_label();
        let sig = Mem::at(inst.src, offset_of!(TableEntry, sig) as i32);
        self.out.encode(&Inst::new(Asm::Cmp, Width::D).mem(sig).imm(i64::from(NULL_SIG as i32)));
        self.jump_cold(Cond::NE, mismatch);
        self.ud2(Trap::IndirectCallToNull as i64, inst.pc);
        dynasm!(self.out.asm; .arch x64; =>mismatch);
        self.trap_because(Trap::BadSignature as i64, inst.src, inst.pc);
    }

    /// Traps because of the number or address in `operand`, if it is a register.
    fn trap_because(&mut self, trap: i64, operand: Reg, pc: u32) {
        if !operand.is_none() {
            // No other register is needed any more.
            let scratch = if operand == abi::RAX { abi::RCX } else { abi::RAX };
            let store = Mem::at(abi::INSTANCE, offset_of!(InstanceCtx, store) as i32);
            let field = Mem::at(scratch, offset_of!(StoreCtx, operand) as i32);
            self.out.encode(&Inst::new(Asm::Mov, Width::Q).dst(scratch).mem(store));
            self.out.encode(&Inst::new(Asm::MovTo, Width::Q).src(operand).mem(field));
        }
        self.ud2(trap, pc);
    }

    fn divide(&mut self, inst: &Inst) {
        let divisor = inst.rm_reg();
        if self.code.raises {
            let trap = Inst { op: Asm::TrapIf, src: Reg::NONE, imm: Trap::IntegerDivisionByZero as i64, ..*inst };
            let by_zero = self.push_cold(Rare::Trap, &trap);
            self.out.encode(&Inst::new(Asm::Test, inst.width).src(divisor).reg(divisor));
            self.jump_cold(Cond::E, by_zero);
        }
        let rare = match inst.op == Asm::DivS {
            true => Some(Rare::QuotientByMinusOne),
            false => (inst.op == Asm::RemS).then_some(Rare::RemainderByMinusOne),
        };
        let wide = inst.width == Width::Q;
        let back = rare.map(|rare| {
            let (minus_one, back) = self.push_cold_with_return(rare, inst);
            self.out.encode(&Inst::new(Asm::Cmp, inst.width).reg(divisor).imm(-1));
            self.jump_cold(Cond::E, minus_one);
            match wide {
                true => dynasm!(self.out.asm; .arch x64; cqo),
                false => dynasm!(self.out.asm; .arch x64; cdq),
            }
            back
        });
        if back.is_none() {
            dynasm!(self.out.asm; .arch x64; xor edx, edx);
        }
        self.trap(TrapSite::Trap(Trap::IntegerDivisionByZero), inst.pc);
        let n = divisor.encoding();
        match (back.is_some(), inst.width) {
            (true, Width::Q) => dynasm!(self.out.asm; .arch x64; idiv Rq(n)),
            (true, _) => dynasm!(self.out.asm; .arch x64; idiv Rd(n)),
            (false, Width::Q) => dynasm!(self.out.asm; .arch x64; div Rq(n)),
            (false, _) => dynasm!(self.out.asm; .arch x64; div Rd(n)),
        }
        if let Some(back) = back {
            dynasm!(self.out.asm; .arch x64; =>back);
        }
    }

    fn set(&mut self, inst: &Inst) {
        self.out.set(inst.cond, inst.dst);
        self.out.encode(&Inst::new(Asm::Movzx8, Width::D).dst(inst.dst).reg(inst.dst));
    }

    /// The destination already holds the other value.
    fn float_select(&mut self, inst: &Inst) {
        let (take, keep) = (self.out.asm.new_dynamic_label(), self.out.asm.new_dynamic_label());
        match inst.cond.float_equality() {
            Some(FloatEquality::Equal) => {
                self.jump_cold(Cond::P, keep);
                self.jump_cold(Cond::NE, keep);
            }
            Some(FloatEquality::Unequal) => {
                self.jump_cold(Cond::P, take);
                self.jump_cold(Cond::E, keep);
            }
            None => self.jump_cold(inst.cond.inverted(), keep),
        }
        dynasm!(self.out.asm; .arch x64; =>take);
        self.out.encode(&Inst::new(Asm::Vmov, inst.width).dst(inst.dst).rm(inst.rm));
        dynasm!(self.out.asm; .arch x64; =>keep);
    }

    fn move_from_float(&mut self, inst: &Inst) {
        match inst.rm {
            Rm::Reg(src) => self.out.float_bits(inst.dst, src, inst.width),
            Rm::None | Rm::Mem(_) | Rm::Slot(_) => self.out.encode(&Inst::new(Asm::Mov, inst.width).dst(inst.dst).rm(inst.rm)),
        }
    }

    /// Converts an unsigned integer that exceeds the signed range: it is halved, with the lost bit kept for rounding, converted
    /// and doubled.
    fn convert_large(&mut self, inst: &Inst, back: DynamicLabel) {
        let (half, src) = (inst.src, inst.rm_reg());
        let even = self.out.asm.new_dynamic_label();
        self.out.copy(half, src);
        dynasm!(self.out.asm; .arch x64; shr Rq(half.encoding()), 1; jnc =>even; or Rq(half.encoding()), 1; =>even);
        self.out.encode(&Inst::new(signed_conversion(inst.op), Width::Q).dst(inst.dst).reg(half));
        let width = if inst.op == Asm::CvtUnsignedSs { Width::D } else { Width::Q };
        self.out.encode(&Inst::new(Asm::Vadd, width).dst(inst.dst).src(inst.dst).reg(inst.dst));
        dynasm!(self.out.asm; .arch x64; jmp =>back);
    }

    /// `dst ← src`, a float of width `from`, as a signed integer of width `to`, or the least integer if it is out of range.
    fn convert(&mut self, dst: Reg, src: Reg, from: Width, to: Width) {
        let (dst, src) = (dst.encoding(), src.encoding());
        match (from, to) {
            (Width::Q, Width::Q) => dynasm!(self.out.asm; .arch x64; vcvttsd2si Rq(dst), Rx(src)),
            (Width::Q, _) => dynasm!(self.out.asm; .arch x64; vcvttsd2si Rd(dst), Rx(src)),
            (_, Width::Q) => dynasm!(self.out.asm; .arch x64; vcvttss2si Rq(dst), Rx(src)),
            (..) => dynasm!(self.out.asm; .arch x64; vcvttss2si Rd(dst), Rx(src)),
        }
    }

    fn truncate(&mut self, inst: &Inst) {
        let Trunc { signed, from, .. } = Trunc::from_imm(inst.imm);
        let (dst, src) = (inst.dst, inst.rm_reg());
        let (rest, back) = self.push_cold_with_return(Rare::Truncation, inst);
        match (signed, inst.width) {
            (true, width) => {
                // Only the least integer minus 1 overflows.
                self.convert(dst, src, from, width);
                self.out.encode(&Inst::new(Asm::Cmp, width).reg(dst).imm(1));
                self.jump_cold(Cond::O, rest);
            }
            (false, Width::Q) => {
                self.convert(dst, src, from, Width::Q);
                self.out.encode(&Inst::new(Asm::Test, Width::Q).src(dst).reg(dst));
                self.jump_cold(Cond::S, rest);
            }
            (false, _) => {
                self.convert(dst, src, from, Width::Q);
                self.out.encode(&Inst::new(Asm::Mov, Width::D).dst(inst.src).reg(dst));
                self.out.encode(&Inst::new(Asm::Cmp, Width::Q).src(inst.src).reg(dst));
                self.jump_cold(Cond::NE, rest);
            }
        }
        dynasm!(self.out.asm; .arch x64; =>back);
    }

    /// Truncates values that the likely path cannot represent.
    fn truncate_rest(&mut self, inst: &Inst, back: DynamicLabel) {
        let Trunc { signed, saturating, from } = Trunc::from_imm(inst.imm);
        let (dst, src) = (inst.dst, inst.rm_reg());
        match (signed, inst.width) {
            _ if signed && saturating => {}
            // The least integer, which also signals failure, is the result for a fraction above it too.
            (true, Width::Q) => {
                self.move_from_float(&Inst::new(Asm::FromFloat, from).dst(dst).reg(src));
                let bits = if from == Width::Q {
                    dynasm!(self.out.asm; .arch x64; rol Rq(dst.encoding()), 12);
                    (-(2f64.powi(63))).to_bits().rotate_left(12) as i64
                } else {
                    (-(2f32.powi(63))).to_bits() as i32 as i64
                };
                self.out.encode(&Inst::new(Asm::Cmp, from).reg(dst).imm(bits));
                self.out.constant(dst, i64::MIN);
                self.jump_cold(Cond::E, back);
            }
            (true, _) => {
                let failed = self.out.asm.new_dynamic_label();
                self.convert(dst, src, from, Width::Q);
                self.out.encode(&Inst::new(Asm::Cmp, Width::Q).reg(dst).imm(i32::MIN.into()));
                self.jump_cold(Cond::NE, failed);
                self.out.encode(&Inst::new(Asm::Mov, Width::D).dst(dst).reg(dst));
                dynasm!(self.out.asm; .arch x64; jmp =>back; =>failed);
            }
            // From 2⁶³ on, 2⁶³ is subtracted and added again.
            (false, Width::Q) => {
                let failed = self.out.asm.new_dynamic_label();
                self.float_bits(dst, 2f64.powi(63), from);
                self.out.encode(&Inst::new(Asm::ToFloat, from).dst(inst.src).reg(dst));
                self.out.encode(&Inst::new(Asm::Vsub, from).dst(inst.src).src(src).reg(inst.src));
                self.convert(dst, inst.src, from, Width::Q);
                self.out.encode(&Inst::new(Asm::Test, Width::Q).src(dst).reg(dst));
                self.jump_cold(Cond::S, failed);
                dynasm!(self.out.asm; .arch x64; bts Rq(dst.encoding()), 63; jmp =>back; =>failed);
            }
            (false, _) => {}
        }
        let nan = self.out.asm.new_dynamic_label();
        self.out.encode(&Inst::new(Asm::Vucomi, from).src(src).reg(src));
        self.jump_cold(Cond::P, nan);
        if !saturating {
            self.ud2(Trap::IntegerOverflow as i64, inst.pc);
            dynasm!(self.out.asm; .arch x64; =>nan);
            return self.ud2(Trap::BadConversionToInteger as i64, inst.pc);
        }
        let (least, greatest) = match (signed, inst.width) {
            (true, Width::Q) => (i64::MIN, i64::MAX),
            (true, _) => (i32::MIN as u32 as i64, i32::MAX.into()),
            (false, Width::Q) => (0, -1),
            (false, _) => (0, u32::MAX.into()),
        };
        self.move_from_float(&Inst::new(Asm::FromFloat, from).dst(dst).reg(src));
        self.out.encode(&Inst::new(Asm::Test, from).src(dst).reg(dst));
        self.out.constant(dst, least);
        self.jump_cold(Cond::S, back);
        self.out.constant(dst, greatest);
        dynasm!(self.out.asm; .arch x64; jmp =>back; =>nan);
        self.out.clear(dst);
        dynasm!(self.out.asm; .arch x64; jmp =>back);
    }

    /// `dst ← bits of value` as a float of `width`.
    fn float_bits(&mut self, dst: Reg, value: f64, width: Width) {
        let bits = if width == Width::Q { value.to_bits() as i64 } else { (value as f32).to_bits().into() };
        self.out.constant(dst, bits);
    }
}

/// Whether the code of a sequence changes flags that [`Emitter::tested`] describes. The other sequences preserve them,
/// end their block, or update `tested` themselves.
fn changes_flags(sequence: Sequence) -> bool {
    match sequence {
        Sequence::HighProduct
        | Sequence::Division
        | Sequence::Set
        | Sequence::MinMax
        | Sequence::FloatSelect
        | Sequence::FromFloat
        | Sequence::FromUnsigned
        | Sequence::Truncation
        | Sequence::CheckSignature
        | Sequence::Miss
        | Sequence::TryCall
        | Sequence::Throw
        | Sequence::Call => true,
        Sequence::Constant
        | Sequence::Zero
        | Sequence::Ones
        | Sequence::EntryCell
        | Sequence::TrapIf
        | Sequence::Args
        | Sequence::TailCall
        | Sequence::Return
        | Sequence::Trap
        | Sequence::Jump
        | Sequence::Branch
        | Sequence::JumpTable => false,
    }
}

fn signed_conversion(op: Asm) -> Asm {
    if op == Asm::CvtUnsignedSs { Asm::CvtSs } else { Asm::CvtSd }
}
