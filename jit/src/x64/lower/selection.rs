//! The state of instruction selection, and how selecting an instruction requests its operands.

use super::facts::Facts;
use crate::ir::family::{Family, Global, Load};
use crate::ir::{Block, Effect, Func, Op, Type, Value};
use crate::regalloc::{Class, Reg};
use crate::request::Request;
use crate::x64::code::Code;
use crate::x64::insts::{Asm, Inst, Mem, Rm, Width};
use weir_contract::Layout;

/// The state of selection.
pub struct Lower<'l, 'a> {
    /// The function.
    pub func: &'l Func<'a>,
    /// The request it is compiled for.
    pub request: &'l Request<'l>,
    /// Where the instance has its records.
    pub layout: Layout,
    /// Facts about the values.
    pub facts: Facts,
    /// Registers of the values that are in one.
    pub regs: Vec<Reg>,
    /// Loads that became part of their user.
    pub taken: Vec<bool>,
    /// The code that is made.
    pub code: Code,
    /// All instructions so far, last instruction first.
    pub reversed: Vec<Inst>,
    /// Instructions of the value being selected, first instruction first.
    pub pending: Vec<Inst>,
    /// The block of that value.
    pub block: Block,
    /// Its index in the block.
    pub position: usize,
    /// How many instructions before it in the block may trap or write.
    pub effects: u32,
    /// Its offset in the module.
    pub pc: u32,
    /// Holds memory 0's base, if it is read.
    pub memory_base: Reg,
    /// Hold the addresses of the memories' records, if they are read.
    pub memory_records: Vec<Reg>,
    /// Holds the interpreter's frame, if it is read.
    pub frame: Reg,
}

/// How much of a register a value takes.
pub fn width(ty: Type) -> Width {
    match ty {
        Type::I32 | Type::F32 => Width::D,
        Type::V128 => Width::X,
        Type::Void | Type::I64 | Type::F64 | Type::Ref => Width::Q,
    }
}

/// The bank of the registers that hold a value.
pub fn class(ty: Type) -> Class {
    if ty.is_float() { Class::Float } else { Class::Int }
}

impl Lower<'_, '_> {
    pub fn push(&mut self, inst: Inst) {
        self.pending.push(Inst { pc: self.pc, ..inst });
    }

    pub fn flush(&mut self) {
        self.reversed.extend(self.pending.drain(..).rev());
    }

    /// The value whose register `value` is in.
    pub fn resolve(&self, value: Value) -> Value {
        self.facts.alias[value.index()]
    }

    /// The bits of a constant, extended with zeros; a vector is none, but see [`Lower::vector_constant`].
    pub fn constant(&self, value: Value) -> Option<u64> {
        let value = self.resolve(value);
        self.func.as_const(value).filter(|_| self.func.ty(value) != Type::V128)
    }

    /// A constant as an immediate, if it is one that 32 bits can hold.
    pub fn immediate(&self, value: Value, width: Width) -> Option<i64> {
        let bits = self.constant(value)?;
        match width {
            Width::Q => i32::try_from(bits as i64).ok().map(i64::from),
            Width::B | Width::W | Width::D | Width::X => Some(i64::from(bits as i32)),
        }
    }

    /// The instruction that defines `value` if it may become part of the one being selected: pure, of the type that the
    /// user takes it for, and in the same block.
    pub fn local(&self, value: Value, ty: Type) -> Option<Value> {
        let value = self.resolve(value);
        let op = self.func.op(value);
        let pure = op.effect() == Effect::Pure && !op.is_defined_elsewhere() && op != Op::OsrSlot;
        (pure && self.func.ty(value) == ty && self.facts.homes.of(value) == self.block).then_some(value)
    }

    /// The same if it has no other use.
    pub fn single(&self, value: Value, ty: Type) -> Option<Value> {
        self.local(value, ty).filter(|value| self.facts.uses[value.index()] == 1)
    }

    pub fn fresh(&mut self, ty: Type) -> Reg {
        if ty == Type::V128 { self.code.new_wide_reg() } else { self.code.new_reg(class(ty)) }
    }

    /// The register that `value` is in; a constant is put into a new one.
    pub fn reg(&mut self, value: Value) -> Reg {
        let value = self.resolve(value);
        if let Some(bits) = self.constant(value) {
            return self.constant_reg(bits, self.func.ty(value));
        }
        if let Some(bits) = self.vector_constant(value) {
            return self.vector_constant_reg(bits);
        }
        if self.regs[value.index()].is_none() {
            self.regs[value.index()] = self.fresh(self.func.ty(value));
        }
        self.regs[value.index()]
    }

    pub fn constant_reg(&mut self, bits: u64, ty: Type) -> Reg {
        let reg = self.fresh(ty);
        let inst = match ty {
            Type::F32 | Type::F64 if bits == 0 => Inst::new(Asm::Vzero, width(ty)),
            Type::F32 | Type::F64 => Inst::new(Asm::Vmov, width(ty)).mem(self.constant_mem(bits, ty)),
            Type::Void | Type::I32 | Type::I64 | Type::V128 | Type::Ref => Inst::new(Asm::MovImm, Width::Q).imm(bits as i64),
        };
        self.push(inst.dst(reg));
        reg
    }

    pub fn constant_mem(&mut self, bits: u64, ty: Type) -> Mem {
        let bytes = if ty == Type::F32 { 4 } else { 8 };
        Mem::constant(self.code.pool.offset(bits.into(), bytes))
    }

    /// The register that the selected instruction defines for `value`, requested or not.
    pub fn result(&mut self, value: Value) -> Reg {
        match self.regs[value.index()] {
            reg if reg.is_none() => self.fresh(self.func.ty(value)),
            reg => reg,
        }
    }

    /// `value` as right operand: in memory if it is a load that may be taken or a constant float or vector, else in a
    /// register.
    pub fn rm(&mut self, value: Value, ty: Type) -> Rm {
        if let Some(mem) = self.take_load(value, ty) {
            return Rm::Mem(mem);
        }
        match self.constant(value) {
            Some(bits) if ty.is_float() => Rm::Mem(self.constant_mem(bits, ty)),
            _ => match self.vector_constant(value) {
                Some(bits) if bits != 0 => Rm::Mem(self.vector_mem(bits)),
                _ => Rm::Reg(self.reg(value)),
            },
        }
    }

    /// Whether [`Lower::rm`] would find a load to take.
    pub fn can_take_load(&self, value: Value, ty: Type) -> bool {
        let value = self.resolve(value);
        let (i, op) = (value.index(), self.func.op(value));
        let available = self.func.ty(value) == ty
            && self.facts.homes.of(value) == self.block
            && self.facts.uses[i] == 1
            && self.regs[i].is_none();
        let before = self.facts.effects_before[i];
        available
            && if op == Op::GlobalGet {
                before == self.effects
            } else {
                op.access_width(ty).is_some() && before + 1 == self.effects
            }
    }

    /// The place of `value` if it is a load of all its bits, or of a global, that may be taken.
    pub fn take_load(&mut self, value: Value, ty: Type) -> Option<Mem> {
        let value = self.resolve(value);
        let whole = match self.func.op(value).family() {
            Family::Load(load) => match load {
                Load::Load => true,
                Load::Load8S | Load::Load8U | Load::Load16S | Load::Load16U => false,
                Load::Load32S | Load::Load32U | Load::Load64U => false,
            },
            Family::Global(global) => match global {
                Global::GlobalGet => true,
                Global::GlobalSet => false,
            },
            Family::Leaf(_) | Family::Integer(_) | Family::Bits(_) | Family::Compare(_) | Family::FloatCompare(_) => false,
            Family::Float(_) | Family::FloatUnary(_) | Family::Convert(_) | Family::Simd(_) | Family::Reference(_) => false,
            Family::Store(_) | Family::Memory(_) | Family::Table(_) => false,
            Family::Call(_) | Family::Accounting(_) | Family::Terminator(_) => false,
        };
        (whole && self.can_take_load(value, ty)).then(|| self.take(value))
    }

    /// Makes an access or `global_get` part of the instruction being selected.
    pub fn take(&mut self, value: Value) -> Mem {
        self.taken[value.index()] = true;
        if self.func.op(value) == Op::GlobalGet { self.global(self.func.inst(value).aux) } else { self.access(value) }
    }

    /// Loads a value of `value`'s type from a slot.
    pub fn load(&mut self, value: Value, mem: Mem) {
        let ty = self.func.ty(value);
        let op = if ty.is_float() { Asm::Vmov } else { Asm::Mov };
        let dst = self.result(value);
        self.push(Inst::new(op, width(ty)).dst(dst).mem(mem));
    }
}
