//! Globals, conditions, and operations on integers.

use super::compiler::Compiler;
use super::frame::SCRATCH;
use super::stencil::{self, Immediate};
use super::values::{At, Kind, Popped, Set};
use crate::ir::family::{Bits, Compare, Convert, Family, Integer};
use crate::ir::{Op, Type};
use crate::regalloc::{Class, Reg};
use crate::request::{Backend, Refusal};
use crate::x64::abi;
use crate::x64::condition::integer_condition;
use crate::x64::insts::{Asm, Cond, Inst, Mem, Rm, Width};
use weir_bytecode::opcodes::{Control, Effect};
use weir_bytecode::{Opcode, Trap, ValType};
use weir_contract::TrapSite;

/// The width of an operation at this type.
pub fn width(ty: Type) -> Width {
    Kind::of_ssa(ty).width()
}

/// The use of a condition by the instruction after the one that computed it.
#[derive(Clone, Copy, Debug)]
enum ConditionUse {
    /// `i32.eqz` inverts it.
    Eqz,
    /// `br_if` branches on it.
    BrIf,
    /// `if` branches on it.
    If,
    /// `select` without a type selects by it.
    Select,
    /// The instruction takes a number, or does not take it.
    Number,
}

impl ConditionUse {
    fn of(op: Opcode) -> ConditionUse {
        match op.effect() {
            Effect::Control(control) => match control {
                Control::If => ConditionUse::If,
                Control::BrIf => ConditionUse::BrIf,
                Control::Unreachable | Control::Nop | Control::Block | Control::Loop | Control::Else | Control::End => {
                    ConditionUse::Number
                }
                Control::Br | Control::BrTable | Control::BrOnNull | Control::BrOnNonNull => ConditionUse::Number,
                Control::Return | Control::Call(_) | Control::ReturnCall(_) => ConditionUse::Number,
                Control::TryTable | Control::Try | Control::Catch | Control::CatchAll | Control::Delegate => ConditionUse::Number,
                Control::Throw | Control::ThrowRef | Control::Rethrow => ConditionUse::Number,
            },
            Effect::Fixed { .. } | Effect::Typed { .. } if op == Opcode::I32Eqz => ConditionUse::Eqz,
            Effect::Fixed { .. } | Effect::Typed { .. } if op == Opcode::Select => ConditionUse::Select,
            Effect::Fixed { .. } | Effect::Typed { .. } => ConditionUse::Number,
        }
    }
}

impl Compiler<'_> {
    /// The slot of a global.
    fn global(&mut self, global: u32) -> Mem {
        let offset = self.layout.global(global) as i32;
        if !self.layout.global_is_pointer(global) {
            return Mem::at(abi::INSTANCE, offset);
        }
        self.emit(&Inst::new(Asm::Mov, Width::Q).dst(SCRATCH).mem(Mem::at(abi::INSTANCE, offset)));
        Mem::at(SCRATCH, 0)
    }

    pub fn global_get(&mut self, global: u32) {
        let kind = Kind::of(self.module.globals[global as usize].value);
        let reg = self.result(kind.class());
        let mem = self.global(global);
        let op = if kind.class() == Class::Float { Asm::Vmov } else { Asm::Mov };
        self.emit_any(&Inst::new(op, kind.width()).dst(reg).mem(mem));
        self.push(kind, reg);
    }

    pub fn global_set(&mut self, global: u32) {
        let mut popped = self.pop();
        let immediate = self.immediate(popped).filter(|_| popped.kind.class() == Class::Int);
        let reg = immediate.is_none().then(|| self.reg(&mut popped));
        let mem = self.global(global);
        let op = if popped.kind.class() == Class::Float { Asm::VmovTo } else { Asm::MovTo };
        let inst = Inst::new(op, popped.kind.width()).mem(mem);
        self.emit_any(&match reg {
            Some(reg) => inst.src(reg),
            None => inst.imm(immediate.unwrap_or_default()),
        });
    }

    /// Pops a condition and sets the flags: NE if it is true.
    pub fn test_condition(&mut self) {
        let mut popped = self.pop();
        if let At::Slot = popped.at {
            let mem = self.slots.mem(popped.index);
            return self.emit(&Inst::new(Asm::Cmp, Width::D).mem(mem).imm(0));
        }
        let reg = self.reg(&mut popped);
        self.emit(&Inst::new(Asm::Test, Width::D).src(reg).reg(reg));
        self.release(reg);
    }

    /// Handles a condition in the flags: passes it to the next instruction, or makes it a number.
    pub fn condition(&mut self, mut cond: Cond) {
        loop {
            let (at, pc) = (self.reader.at, self.pc);
            let fused = cond.float_equality().is_none();
            self.registers.locked = Set::EMPTY;
            self.pc = self.next_pc();
            match ConditionUse::of(self.reader.opcode()) {
                ConditionUse::Eqz => cond = cond.inverted(),
                ConditionUse::BrIf if fused => {
                    let depth = self.reader.u32();
                    return self.branch_if(depth, cond);
                }
                ConditionUse::If if fused => {
                    let ty = self.reader.block_type();
                    return self.if_(ty, cond);
                }
                ConditionUse::Select if fused => return self.select(cond),
                ConditionUse::BrIf | ConditionUse::If | ConditionUse::Select | ConditionUse::Number => {
                    (self.reader.at, self.pc) = (at, pc);
                    let reg = self.set(cond);
                    return self.push(Kind::I32, reg);
                }
            }
        }
    }

    /// A condition as 0 or 1 in a new register.
    fn set(&mut self, cond: Cond) -> Reg {
        let reg = self.fresh(Class::Int);
        match cond {
            Cond::FloatE | Cond::FloatNE => {
                let other = self.fresh(Class::Int);
                let (ordered, equal, op) = match cond == Cond::FloatE {
                    true => (Cond::NP, Cond::E, Asm::And),
                    false => (Cond::P, Cond::NE, Asm::Or),
                };
                self.out.set(ordered, other);
                self.out.set(equal, reg);
                self.emit_any(&Inst::new(op, Width::D).dst(reg).src(reg).reg(other));
            }
            Cond::O | Cond::NO | Cond::B | Cond::AE | Cond::E | Cond::NE | Cond::BE | Cond::A => self.out.set(cond, reg),
            Cond::S | Cond::NS | Cond::P | Cond::NP | Cond::L | Cond::GE | Cond::LE | Cond::G => self.out.set(cond, reg),
        }
        self.emit(&Inst::new(Asm::Movzx8, Width::D).dst(reg).reg(reg));
        reg
    }

    /// Compiles `select` on the flags; the first operand is selected if the condition is true.
    pub fn select(&mut self, cond: Cond) {
        let mut second = self.pop();
        let mut first = self.pop();
        let other = self.reg(&mut second);
        let reg = self.writable(&mut first);
        let kind = first.kind;
        match kind.class() {
            Class::Int => {
                let unextended = self.registers.unextended.contains(other) || self.registers.unextended.contains(reg);
                let cmov = Inst::new(Asm::Cmov, kind.width()).cond(cond.inverted());
                self.emit(&cmov.dst(reg).src(reg).reg(other));
                // A conditional move of 32 bits clears the upper half in either case.
                if unextended && kind.width() == Width::D {
                    self.registers.unextended.remove(reg);
                }
            }
            Class::Float => {
                let taken = self.jump_if(cond);
                self.out.copy(reg, other);
                self.bind(taken);
            }
        }
        self.push(kind, reg);
    }

    // Integers

    /// The operand as a register, or as its slot if it is only there.
    pub fn rm(&mut self, popped: &mut Popped) -> Rm {
        match popped.at {
            At::Slot => Rm::Mem(self.slots.mem(popped.index)),
            At::Const(_) | At::Reg(_) | At::Local(_) => Rm::Reg(self.reg(popped)),
        }
    }

    /// # Errors
    /// If the operation is only a part of instructions, and no instruction consists of it alone.
    fn integer(&mut self, op: Integer, ty: Type) -> Result<(), Refusal> {
        match op {
            Integer::Add => self.add(ty, false),
            Integer::Sub => self.add(ty, true),
            Integer::Mul => self.multiply(ty),
            Integer::And => self.two_address(Asm::And, ty, true),
            Integer::Or => self.two_address(Asm::Or, ty, true),
            Integer::Xor => self.two_address(Asm::Xor, ty, true),
            Integer::DivS => self.divide(ty, true, true),
            Integer::DivU => self.divide(ty, false, true),
            Integer::RemS => self.divide(ty, true, false),
            Integer::RemU => self.divide(ty, false, false),
            Integer::Shl => self.shift(ty, Asm::Shl, Asm::Shlx),
            Integer::ShrS => self.shift(ty, Asm::Sar, Asm::Sarx),
            Integer::ShrU => self.shift(ty, Asm::Shr, Asm::Shrx),
            Integer::Rotl => self.rotate(ty, true),
            Integer::Rotr => self.rotate(ty, false),
            Integer::MulHigh => return Err(unsupported(Op::from(op))),
        }
        Ok(())
    }

    /// Whether the operand's register may be overwritten.
    fn is_own(&self, popped: Popped) -> bool {
        matches!(popped.at, At::Reg(reg) if !self.registers.owned.contains(reg))
    }

    fn add(&mut self, ty: Type, subtract: bool) {
        let (mut b, mut a) = (self.pop(), self.pop());
        if !subtract && (self.constant(a).is_some() || !self.is_own(a) && self.is_own(b)) && self.constant(b).is_none() {
            (a, b) = (b, a);
        }
        let width = width(ty);
        let immediate = self.immediate(b).and_then(|imm| if subtract { (imm as i32).checked_neg() } else { Some(imm as i32) });
        if self.is_own(a) || subtract && immediate.is_none() {
            return self.apply(if subtract { Asm::Sub } else { Asm::Add }, width, a, b);
        }
        let src = self.reg(&mut a);
        let mem = match immediate {
            Some(imm) => Mem::at(src, imm),
            None => Mem::indexed(src, self.reg(&mut b), 0, 0),
        };
        let dst = self.result_like(b);
        self.emit(&Inst::new(Asm::Lea, width).dst(dst).mem(mem));
        self.push(a.kind, dst);
    }

    fn two_address(&mut self, op: Asm, ty: Type, commutes: bool) {
        let (mut b, mut a) = (self.pop(), self.pop());
        if commutes && (self.constant(a).is_some() || !self.is_own(a) && self.is_own(b)) && self.constant(b).is_none() {
            (a, b) = (b, a);
        }
        self.apply(op, width(ty), a, b);
    }

    /// `a ← op(a, b)`
    fn apply(&mut self, op: Asm, width: Width, mut a: Popped, mut b: Popped) {
        let immediate = self.immediate(b);
        let rm = if immediate.is_none() { self.rm(&mut b) } else { Rm::None };
        let reg = self.overwritten(&mut a);
        self.emit_any(&Inst::new(op, width).dst(reg).src(reg).rm(rm).imm(immediate.unwrap_or_default()));
        self.registers.unextended.remove(reg);
        self.push(a.kind, reg);
    }

    fn multiply(&mut self, ty: Type) {
        let (mut b, mut a) = (self.pop(), self.pop());
        if self.constant(a).is_some() {
            (a, b) = (b, a);
        }
        let Some(imm) = self.immediate(b) else { return self.apply(Asm::Imul, width(ty), a, b) };
        let rm = self.rm(&mut a);
        let dst = self.result_like(a);
        self.emit(&Inst::new(Asm::ImulImm, width(ty)).dst(dst).rm(rm).imm(imm));
        self.push(a.kind, dst);
    }

    fn shift(&mut self, ty: Type, by_constant: Asm, by_register: Asm) {
        let (mut count, mut a) = (self.pop(), self.pop());
        let bits = if ty == Type::I32 { 32 } else { 64 };
        if let Some(count) = self.constant(count) {
            let reg = self.overwritten(&mut a);
            let count = (count % bits) as i64;
            self.emit_any(&Inst::new(by_constant, width(ty)).dst(reg).src(reg).imm(count));
            // A shift by 0 does not clear the upper half.
            if count != 0 {
                self.registers.unextended.remove(reg);
            }
            return self.push(a.kind, reg);
        }
        let by = self.reg(&mut count);
        let rm = self.rm(&mut a);
        let dst = self.result_like(a);
        self.emit_any(&Inst::new(by_register, width(ty)).dst(dst).src(by).rm(rm));
        self.push(a.kind, dst);
    }

    fn rotate(&mut self, ty: Type, left: bool) {
        let (count, mut a) = (self.pop(), self.pop());
        let bits = if ty == Type::I32 { 32u64 } else { 64 };
        if let Some(count) = self.constant(count) {
            let right = if left { count.wrapping_neg() } else { count } % bits;
            let rm = self.rm(&mut a);
            let dst = self.result_like(a);
            self.emit(&Inst::new(Asm::Rorx, width(ty)).dst(dst).rm(rm).imm(right as i64));
            return self.push(a.kind, dst);
        }
        if count.at != At::Reg(abi::RCX) {
            self.claim(abi::RCX, &mut [&mut a]);
            self.move_to(count, abi::RCX);
        }
        let reg = self.writable(&mut a);
        let op = if left { Asm::RolCl } else { Asm::RorCl };
        // A shift by 0 does not clear the upper half.
        let reg = self.extended(&mut Popped { at: At::Reg(reg), ..a });
        self.emit_any(&Inst::new(op, width(ty)).dst(reg).src(reg).reg(abi::RCX));
        self.push(a.kind, reg);
    }

    fn divide(&mut self, ty: Type, signed: bool, quotient: bool) {
        let (mut b, mut a) = (self.pop(), self.pop());
        let width = width(ty);
        if a.at != At::Reg(abi::RAX) {
            self.claim(abi::RAX, &mut [&mut b]);
        }
        self.claim(abi::RDX, &mut [&mut a, &mut b]);
        self.move_to(a, abi::RAX);
        let divisor = self.reg(&mut b);
        if !self.request.options.signals {
            self.emit(&Inst::new(Asm::Test, width).src(divisor).reg(divisor));
            self.trap_if(Cond::E, Trap::IntegerDivisionByZero);
        }
        if signed {
            self.emit(&Inst::new(Asm::Cmp, width).reg(divisor).imm(-1));
            self.divide_by_minus_one(quotient, width);
            self.out.extend_sign(width);
        } else {
            self.out.clear(abi::RDX);
        }
        if self.request.options.signals {
            self.note_trap(TrapSite::Trap(Trap::IntegerDivisionByZero), self.pc);
        }
        self.out.divide(divisor, width, signed);
        if signed {
            self.end_division();
        }
        for reg in [abi::RAX, abi::RDX] {
            self.registers.unextended.remove(reg);
        }
        self.push(a.kind, if quotient { abi::RAX } else { abi::RDX });
    }

    pub fn compare(&mut self, op: Compare, ty: Type) {
        let width = width(ty);
        if op == Compare::Eqz {
            let mut a = self.pop();
            match a.at {
                At::Slot => {
                    let mem = self.slots.mem(a.index);
                    self.emit(&Inst::new(Asm::Cmp, width).mem(mem).imm(0));
                }
                At::Const(_) | At::Reg(_) | At::Local(_) => {
                    let reg = self.reg(&mut a);
                    self.emit(&Inst::new(Asm::Test, width).src(reg).reg(reg));
                }
            }
            return self.condition(Cond::E);
        }
        let (mut b, mut a) = (self.pop(), self.pop());
        match self.immediate(b) {
            Some(imm) => {
                let rm = self.rm(&mut a);
                self.emit(&Inst::new(Asm::Cmp, width).rm(rm).imm(imm));
            }
            None => {
                let src = self.reg(&mut a);
                let rm = self.rm(&mut b);
                self.emit(&Inst::new(Asm::Cmp, width).src(src).rm(rm));
            }
        }
        self.condition(integer_condition(op));
    }

    pub fn bits(&mut self, op: Bits, ty: Type) {
        let op = match op {
            Bits::Clz => Asm::Lzcnt,
            Bits::Ctz => Asm::Tzcnt,
            Bits::Popcnt => Asm::Popcnt,
            Bits::Sext8 => Asm::Movsx8,
            Bits::Sext16 => Asm::Movsx16,
            Bits::Sext32 => Asm::Movsxd,
        };
        let mut a = self.pop();
        let src = self.reg(&mut a);
        let dst = self.result_like(a);
        self.emit_any(&Inst::new(op, width(ty)).dst(dst).reg(src));
        self.push(a.kind, dst);
    }

    /// Compiles conversions between integers; returns false for any other.
    pub fn convert_integer(&mut self, op: Convert) -> bool {
        match op {
            Convert::Wrap => self.wrap(),
            Convert::ExtendU => self.extend_unsigned(),
            Convert::ExtendS => {
                let mut a = self.pop();
                let rm = self.rm(&mut a);
                let dst = self.result_like(a);
                self.emit(&Inst::new(Asm::Movsxd, Width::Q).dst(dst).rm(rm));
                self.push(Kind::I64, dst);
            }
            Convert::TruncS | Convert::TruncU | Convert::TruncSatS | Convert::TruncSatU | Convert::ConvertS => return false,
            Convert::ConvertU | Convert::Demote | Convert::Promote | Convert::Reinterpret => return false,
        }
        true
    }

    fn wrap(&mut self) {
        let mut a = self.pop();
        match a.at {
            At::Const(bits) => self.push_at(Kind::I32, At::Const(u64::from(bits as u32))),
            // The lower half of the slot is the result.
            At::Slot => self.push_stored(Kind::I32),
            At::Reg(reg) if self.is_own(a) => self.push_unextended(reg),
            At::Reg(_) | At::Local(_) => {
                let (src, dst) = (self.reg(&mut a), self.fresh(Class::Int));
                self.emit(&Inst::new(Asm::Mov, Width::D).dst(dst).reg(src));
                self.push(Kind::I32, dst);
            }
        }
    }

    fn extend_unsigned(&mut self) {
        let mut a = self.pop();
        if let Some(bits) = self.constant(a) {
            return self.push_at(Kind::I64, At::Const(u64::from(bits as u32)));
        }
        let src = self.reg(&mut a);
        let dst = if self.is_own(Popped { at: At::Reg(src), ..a }) { src } else { self.fresh(Class::Int) };
        if dst != src || self.registers.unextended.contains(src) {
            self.emit(&Inst::new(Asm::Mov, Width::D).dst(dst).reg(src));
        }
        self.registers.unextended.remove(dst);
        self.push(Kind::I64, dst);
    }

    /// Compiles a numeric instruction of TABLE 2.
    pub fn numeric(&mut self, op: Opcode, family: Family, operand: Type, result: Type) -> Result<(), Refusal> {
        match family {
            Family::Integer(op) => self.integer(op, operand)?,
            Family::Compare(op) => self.compare(op, operand),
            Family::Bits(op) => self.bits(op, operand),
            Family::Convert(convert) if self.convert_integer(convert) => {}
            Family::Convert(convert) => return self.convert_float(op, convert, operand, result),
            Family::Float(float) => return self.float(op, float, operand),
            Family::FloatUnary(_) => return self.stencil(op, Immediate::None),
            Family::FloatCompare(compare) => self.compare_floats(compare, operand),
            Family::Leaf(_) | Family::Reference(_) | Family::Simd(_) | Family::Load(_) | Family::Store(_) => {
                return Err(stencil::unsupported(op));
            }
            Family::Memory(_) | Family::Global(_) | Family::Table(_) | Family::Call(_) => {
                return Err(stencil::unsupported(op));
            }
            Family::Exception(_) | Family::Accounting(_) | Family::Terminator(_) => return Err(stencil::unsupported(op)),
        }
        Ok(())
    }
}

/// The refusal of an operation for which the baseline compiler has no code.
pub fn unsupported(op: Op) -> Refusal {
    Refusal::Unsupported { backend: Backend::Baseline, what: op.name().into() }
}

/// The kind of a memory's addresses or of a table's indices.
pub fn index_kind(is64: bool) -> Kind {
    Kind::of(if is64 { ValType::I64 } else { ValType::I32 })
}
