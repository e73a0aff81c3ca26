//! The state of instruction selection, and the requests for operands.

use super::value_info::ValueInfo;
use crate::analysis::Edges;
use crate::ir::family::{Family, Global, Load};
use crate::ir::{Block, Effect, Func, Op, Type, Value};
use crate::regalloc::{Class, Reg};
use crate::request::Request;
use crate::x64::code::Code;
use crate::x64::insts::{Asm, Inst, Mem, Rm, Width};
use weir_contract::Layout;

/// Which accesses to memory 0 that its guard region protects are relative to `gs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SegmentUse {
    /// None.
    None,
    /// Those whose address is a sum that may wrap around.
    Sums,
    /// All: the base needs no register.
    All,
}

/// The state of selection.
pub struct Lower<'l, 'a> {
    /// The function.
    pub func: &'l Func<'a>,
    /// The request for which it is compiled.
    pub request: &'l Request<'l>,
    /// The offsets of the instance's records.
    pub layout: Layout,
    /// Information about the values.
    pub info: ValueInfo,
    /// By value, its register, if it has one.
    pub regs: Vec<Reg>,
    /// By value, whether it is a load that was folded into its user.
    pub folded: Vec<bool>,
    /// The code being built.
    pub code: Code,
    /// All instructions so far, the last one first.
    pub reversed: Vec<Inst>,
    /// The instructions of the value being selected, the first one first.
    pub pending: Vec<Inst>,
    /// The block of that value.
    pub block: Block,
    /// The value's index in the block.
    pub position: usize,
    /// The number of instructions before it in the block that may trap or write.
    pub effects: u32,
    /// The value's offset in the module.
    pub pc: u32,
    /// The register with memory 0's base, if it is read.
    pub memory_base: Reg,
    /// Which accesses to memory 0 are relative to `gs`.
    pub segment: SegmentUse,
    /// The registers with the addresses of the memories' records, if they are read.
    pub memory_records: Vec<Reg>,
    /// The registers with the memories' lengths, if they are read between here and the next instruction that may change them.
    pub memory_lengths: Vec<Reg>,
    /// The register with the interpreter's frame, if it is read.
    pub frame: Reg,
    /// Whether the operation being selected is on vectors of 256 bits.
    pub long: bool,
    /// The indices of edges.
    pub edges: Edges,
}

/// The number of bits that a value takes in a register.
pub fn width(ty: Type) -> Width {
    match ty {
        Type::I32 | Type::F32 => Width::D,
        Type::V128 | Type::V256 => Width::X,
        Type::Void | Type::I64 | Type::F64 | Type::Ref | Type::Gc => Width::Q,
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

    /// The value whose register holds `value`.
    pub fn resolve(&self, value: Value) -> Value {
        self.info.alias[value.index()]
    }

    /// The bits of a scalar constant, zero-extended. For vectors see [`Lower::vector_constant`].
    pub fn constant(&self, value: Value) -> Option<u64> {
        let value = self.resolve(value);
        self.func.as_const(value).filter(|_| self.func.ty(value).half() != Type::V128)
    }

    /// A constant as an immediate, if it fits in 32 bits.
    pub fn immediate(&self, value: Value, width: Width) -> Option<i64> {
        let bits = self.constant(value)?;
        match width {
            Width::Q => i32::try_from(bits as i64).ok().map(i64::from),
            Width::B | Width::W | Width::D | Width::X => Some(i64::from(bits as i32)),
        }
    }

    /// The instruction that defines `value`, if it may be folded into the one being selected: it is pure, has the type that the
    /// user expects, and is in the same block.
    pub fn local(&self, value: Value, ty: Type) -> Option<Value> {
        let value = self.resolve(value);
        let op = self.func.op(value);
        let pure = op.effect() == Effect::Pure && !op.is_defined_elsewhere() && op != Op::OsrSlot;
        (pure && self.func.ty(value) == ty && self.info.def_blocks.of(value) == self.block).then_some(value)
    }

    /// The instruction that [`Lower::local`] returns, if `value` has no other use.
    pub fn single(&self, value: Value, ty: Type) -> Option<Value> {
        self.local(value, ty).filter(|value| self.info.uses[value.index()] == 1)
    }

    pub fn fresh(&mut self, ty: Type) -> Reg {
        match ty {
            Type::V128 => self.code.new_wide_reg(),
            Type::V256 => self.code.new_long_reg(),
            Type::Gc => self.code.new_traced_reg(),
            Type::Void | Type::I32 | Type::I64 | Type::F32 | Type::F64 | Type::Ref => self.code.new_reg(class(ty)),
        }
    }

    /// The register of `value`; a constant is loaded into a new one.
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
            Type::Void | Type::I32 | Type::I64 | Type::V128 | Type::V256 | Type::Ref | Type::Gc => {
                Inst::new(Asm::MovImm, Width::Q).imm(bits as i64)
            }
        };
        self.push(inst.dst(reg));
        reg
    }

    pub fn constant_mem(&mut self, bits: u64, ty: Type) -> Mem {
        let bytes = if ty == Type::F32 { 4 } else { 8 };
        Mem::constant(self.code.pool.offset(bits.into(), bytes))
    }

    /// The register that the selected instruction defines for `value`, whether it was requested or not.
    pub fn result(&mut self, value: Value) -> Reg {
        match self.regs[value.index()] {
            reg if reg.is_none() => self.fresh(self.func.ty(value)),
            reg => reg,
        }
    }

    /// `value` as a right operand: in memory if it is a load that may be folded or a constant float or vector, else in a
    /// register.
    pub fn rm(&mut self, value: Value, ty: Type) -> Rm {
        if let Some(mem) = self.fold_load(value, ty) {
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

    /// Whether [`Lower::rm`] would fold a load.
    pub fn can_fold_load(&self, value: Value, ty: Type) -> bool {
        let value = self.resolve(value);
        let (i, op) = (value.index(), self.func.op(value));
        let available = self.func.ty(value) == ty
            && self.info.def_blocks.of(value) == self.block
            && self.info.uses[i] == 1
            && self.regs[i].is_none();
        let before = self.info.effects_before[i];
        available
            && if op == Op::GlobalGet {
                before == self.effects
            } else {
                op.access_width(ty).is_some() && before + 1 == self.effects
            }
    }

    /// The address of `value` if it is a load of all its bits, or of a global, that may be folded.
    pub fn fold_load(&mut self, value: Value, ty: Type) -> Option<Mem> {
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
            Family::Call(_) | Family::Exception(_) | Family::Accounting(_) | Family::Terminator(_) => false,
        };
        (whole && self.can_fold_load(value, ty)).then(|| self.fold(value))
    }

    /// Folds an access or `global_get` into the instruction being selected.
    pub fn fold(&mut self, value: Value) -> Mem {
        self.folded[value.index()] = true;
        if self.func.op(value) == Op::GlobalGet { self.global(self.func.inst(value).aux) } else { self.access(value) }
    }

    /// Loads `value` from memory.
    pub fn load(&mut self, value: Value, mem: Mem) {
        let ty = self.func.ty(value);
        let op = if ty.is_float() { Asm::Vmov } else { Asm::Mov };
        let dst = self.result(value);
        self.push(Inst::new(op, width(ty)).dst(dst).mem(mem));
    }
}
