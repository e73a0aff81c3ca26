//! Accesses to memory.

use super::compiler::Compiler;
use super::frame::{BASE, SCRATCH};
use super::numeric::unsupported;
use super::values::{At, Kind, Popped};
use crate::ir::Op;
use crate::ir::family::{Family, Load, Store};
use crate::regalloc::{Class, Reg};
use crate::request::Refusal;
use crate::seeded::{self, Fault};
use crate::x64::abi;
use crate::x64::insts::{Asm, Cond, Inst, Mem, Rm, Width};
use std::mem::offset_of;
use weir_bytecode::Trap;
use weir_bytecode::instrs::MemArg;
use weir_bytecode::types::MemoryType;
use weir_contract::{Bounds, InstanceCtx, MemoryCtx, TrapSite};

impl Compiler<'_> {
    /// Compiles a load or a store of a value of this kind.
    ///
    /// # Errors
    /// If `op` is neither.
    pub fn access(&mut self, op: Op, kind: Kind, arg: MemArg) -> Result<(), Refusal> {
        match op.family() {
            Family::Load(load) => self.load(load, kind, arg),
            Family::Store(store) => self.store_value(store, kind, arg),
            Family::Leaf(_) | Family::Integer(_) | Family::Compare(_) | Family::Bits(_) | Family::Float(_) => {
                return Err(unsupported(op));
            }
            Family::FloatUnary(_) | Family::FloatCompare(_) | Family::Convert(_) | Family::Reference(_) => {
                return Err(unsupported(op));
            }
            Family::Simd(_) | Family::Memory(_) | Family::Global(_) | Family::Table(_) | Family::Call(_) => {
                return Err(unsupported(op));
            }
            Family::Exception(_) | Family::Accounting(_) | Family::Terminator(_) => return Err(unsupported(op)),
        }
        Ok(())
    }

    /// Loads a value of this kind; for a vector, `op` gives the number of bytes.
    pub fn load(&mut self, op: Load, kind: Kind, arg: MemArg) {
        let float = kind.class() == Class::Float;
        let (asm, width, bytes) = match op {
            Load::Load if float => (Asm::Vmov, kind.width(), bytes_of(kind.width())),
            Load::Load => (Asm::Mov, kind.width(), bytes_of(kind.width())),
            Load::Load8U => (Asm::Movzx8, Width::D, 1),
            Load::Load16U => (Asm::Movzx16, Width::D, 2),
            Load::Load32U if float => (Asm::Vmov, Width::D, 4),
            Load::Load32U => (Asm::Mov, Width::D, 4),
            Load::Load64U => (Asm::Vmov, Width::Q, 8),
            Load::Load8S => (Asm::Movsx8, kind.width(), 1),
            Load::Load16S => (Asm::Movsx16, kind.width(), 2),
            Load::Load32S => (Asm::Movsxd, Width::Q, 4),
        };
        let mut address = self.pop();
        let mem = self.address(&mut address, arg, bytes);
        let dst = match (float, address.at) {
            _ if let Some(pin) = self.destination(kind.class()) => pin,
            (false, At::Reg(reg)) if !self.registers.owned.contains(reg) => reg,
            (_, At::Reg(_) | At::Slot | At::Const(_) | At::Local(_)) => self.fresh(kind.class()),
        };
        if asm == Asm::Mov {
            self.faulting(&Inst::new(Asm::Mov, width).dst(dst).mem(mem));
        } else {
            self.faulting_any(&Inst::new(asm, width).dst(dst).mem(mem));
        }
        self.registers.unextended.remove(dst);
        self.push(kind, dst);
    }

    fn store_value(&mut self, op: Store, kind: Kind, arg: MemArg) {
        let width = match op {
            Store::Store => kind.width(),
            Store::Store8 => Width::B,
            Store::Store16 => Width::W,
            Store::Store32 => Width::D,
        };
        let (mut value, mut address) = (self.pop(), self.pop());
        self.store_popped_value(&mut value, &mut address, width, arg);
    }

    /// Stores as much of an operand as `width` says.
    pub fn store_popped_value(&mut self, value: &mut Popped, address: &mut Popped, width: Width, arg: MemArg) {
        let float = value.kind.class() == Class::Float;
        let immediate = self.immediate(*value).filter(|_| width != Width::X);
        let reg = immediate.is_none().then(|| self.reg(value));
        let mem = self.address(address, arg, bytes_of(width));
        match reg {
            Some(reg) if float => self.faulting_any(&Inst::new(Asm::VmovTo, width).src(reg).mem(mem)),
            Some(reg) => self.faulting(&Inst::new(Asm::MovTo, width).src(reg).mem(mem)),
            None => self.faulting(&Inst::new(Asm::MovTo, width).imm(immediate.unwrap_or_default()).mem(mem)),
        }
    }

    /// Emits an access that may fault if its address is not checked.
    #[inline(always)]
    fn faulting(&mut self, inst: &Inst) {
        self.emit(inst);
        self.note_fault(inst);
    }

    /// [`Compiler::faulting`] for a row that is chosen when the function is compiled.
    fn faulting_any(&mut self, inst: &Inst) {
        self.emit_any(inst);
        self.note_fault(inst);
    }

    /// Records that the last instruction may fault, if it may.
    #[inline(always)]
    fn note_fault(&mut self, inst: &Inst) {
        let crate::x64::insts::Rm::Mem(mem) = inst.rm else { return };
        if mem.pc != Mem::SAFE {
            let offset = self.out.last as u32;
            let site = TrapSite::Trap(Trap::MemoryOutOfBounds);
            self.traps.push(crate::request::TrapEntry { offset, site, pc: mem.pc });
        }
    }

    /// The address of an access of `bytes` bytes, after a bounds check if it needs one.
    pub fn address(&mut self, address: &mut Popped, arg: MemArg, bytes: u32) -> Mem {
        let ty = &self.module.memories[arg.memory as usize];
        match Bounds::of(ty, arg.offset, self.request.options.guard_regions) {
            Bounds::Guard => self.guarded(address, arg),
            Bounds::Explicit => self.checked(address, arg, bytes, *ty),
        }
    }

    fn guarded(&mut self, address: &mut Popped, arg: MemArg) -> Mem {
        let pc = self.pc;
        let offset = arg.offset as i32;
        if let Some(constant) = self.constant(*address)
            && let Ok(disp) = i32::try_from(constant + arg.offset)
        {
            let base = self.base(arg.memory);
            return Mem { pc, ..Mem::at(base, disp) };
        }
        let index = self.extended(address);
        let base = self.base(arg.memory);
        Mem { pc, ..Mem::indexed(base, index, 0, offset) }
    }

    /// A register with the base of a memory.
    fn base(&mut self, memory: u32) -> Reg {
        if memory == 0 {
            return BASE;
        }
        self.load_field(SCRATCH, abi::INSTANCE, self.layout.memory(memory) as usize);
        self.load_field(SCRATCH, SCRATCH, offset_of!(MemoryCtx, base));
        SCRATCH
    }

    /// `dst ← [base + offset]`, a pointer or a 64-bit number of the runtime.
    pub fn load_field(&mut self, dst: Reg, base: Reg, offset: usize) {
        self.emit(&Inst::new(Asm::Mov, Width::Q).dst(dst).mem(Mem::at(base, offset as i32)));
    }

    /// After a trap or a jump on a condition, replaces the value of `reg` by a harmless one on the same condition.
    fn mask_speculation(&mut self, cond: Cond, reg: Reg, harmless: impl Into<Rm>) {
        self.emit(&Inst::new(Asm::Cmov, Width::Q).dst(reg).src(reg).rm(harmless.into()).cond(cond));
    }

    /// After a trap or a jump on a condition, replaces an index by 0 on the same condition. `r11` is destroyed.
    pub fn mask_index(&mut self, cond: Cond, index: Reg) {
        self.out.constant(SCRATCH, 0);
        self.mask_speculation(cond, index, SCRATCH);
    }

    /// Computes `address + offset + bytes` in `r11`, traps if that exceeds the memory's length, and returns the memory operand
    /// that is `bytes` lower. Speculative execution after a failed check accesses the end of the memory, or the inaccessible bytes
    /// before a memory that is shorter than the access.
    fn checked(&mut self, address: &mut Popped, arg: MemArg, bytes: u32, ty: MemoryType) -> Mem {
        let masked = self.request.options.masks(&ty, arg.offset) && !seeded::is(Fault::MemoryMaskDropped);
        let memory64 = ty.memory64;
        let index = self.extended(address);
        let record = self.fresh(Class::Int);
        self.load_field(record, abi::INSTANCE, self.layout.memory(arg.memory) as usize);
        let len = Mem::at(record, offset_of!(MemoryCtx, len) as i32);
        match arg.offset.checked_add(bytes.into()) {
            None => {
                // Every address is out of bounds. The store's address, which is never null, makes the condition true.
                let store = Mem::at(abi::INSTANCE, offset_of!(InstanceCtx, store) as i32);
                self.emit(&Inst::new(Asm::Cmp, Width::Q).mem(store).imm(0));
                self.trap_if(Cond::NE, Trap::MemoryOutOfBounds);
                self.out.copy(SCRATCH, index);
            }
            Some(distance) => match i32::try_from(distance) {
                // Both terms are below 2³³.
                Ok(distance) if !memory64 => self.emit(&Inst::new(Asm::Lea, Width::Q).dst(SCRATCH).mem(Mem::at(index, distance))),
                _ => {
                    self.out.constant(SCRATCH, distance as i64);
                    self.emit(&Inst::new(Asm::Add, Width::Q).dst(SCRATCH).src(SCRATCH).reg(index));
                    if memory64 {
                        self.out_of_bounds_if(Cond::B);
                    }
                }
            },
        }
        if !seeded::is(Fault::BoundsCheckDropped) {
            self.emit(&Inst::new(Asm::Cmp, Width::Q).src(SCRATCH).mem(len));
            self.out_of_bounds_if(Cond::A);
            if masked {
                self.mask_speculation(Cond::A, SCRATCH, len);
            }
        }
        self.load_field(record, record, offset_of!(MemoryCtx, base));
        Mem::indexed(record, SCRATCH, 0, -(bytes as i32))
    }

    pub fn memory_size(&mut self, memory: u32) {
        let ty = &self.module.memories[memory as usize];
        let (kind, log2) = (super::numeric::index_kind(ty.memory64), ty.page_size_log2);
        let reg = self.fresh(Class::Int);
        self.load_field(reg, abi::INSTANCE, self.layout.memory(memory) as usize);
        self.load_field(reg, reg, offset_of!(MemoryCtx, len));
        self.emit(&Inst::new(Asm::Shr, Width::Q).dst(reg).src(reg).imm(log2.into()));
        self.push(kind, reg);
    }
}

/// The number of bytes of an access with this width.
pub fn bytes_of(width: Width) -> u32 {
    match width {
        Width::B => 1,
        Width::W => 2,
        Width::D => 4,
        Width::Q => 8,
        Width::X => 16,
    }
}
