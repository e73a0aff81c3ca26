//! Selection of memory accesses, globals, and the accounting of fuel and time.

use super::address::ADDRESS;
use super::selection::{Lower, SegmentUse, width};
use crate::analysis::Cfg;
use crate::ir::family::{Bits, Family, Integer, Load, Memory};
use crate::ir::{Func, Op, Type, Value};
use crate::mir::frequency::Estimate;
use crate::mir::{Flow, Origin};
use crate::regalloc::{Class, Reg};
use crate::seeded::{self, Fault};
use crate::x64::abi;
use crate::x64::insts::{Asm, Cond, Inst, Mem, Segment, Width};
use std::mem::offset_of;
use weir_bytecode::Trap;
use weir_bytecode::types::MemoryType;
use weir_contract::{Bounds, InstanceCtx, MISSED, MemoryCtx, StoreCtx};

/// With this number of accesses, memory 0's base gets a pinned register. If it were left to the allocator, a range as
/// long as the function would be split around every bottleneck and reloaded for almost every access.
const ACCESSES_FOR_PINNED_BASE: usize = 6;
/// Accesses are relative to `gs` if a call is expected to gain this, in instructions that are not executed. The comparison at the entry costs
/// as much as two to four instructions.
const LEAST_GAIN: f32 = 4.0;
/// The gain of an access whose address is no sum, if the base of memory 0 needs no register.
const GAIN_OF_REGISTER: f32 = 0.125;
/// A load relative to `gs` takes a cycle longer: five instead of four on Zen 4. So the base keeps its register in functions in which more than
/// this share of the accesses load an address of another.
const MOST_CHASED: f32 = 0.2;

/// Numbers of accesses: all, those whose address is a sum that nothing else needs, and loads of the addresses of others.
#[derive(Default)]
struct Accesses {
    all: f32,
    sums: f32,
    chased: f32,
}

fn values(func: &Func<'_>, cfg: &Cfg) -> impl Iterator<Item = Value> {
    cfg.order().iter().flat_map(|&block| &func.block(block).insts).copied()
}

impl Lower<'_, '_> {
    /// Chooses what accesses to memory 0 are relative to.
    pub(super) fn choose_base(&mut self, flow: &Flow, cfg: &Cfg) {
        let options = &self.request.options;
        let guarded = |ty| Bounds::of(ty, 0, options.guard_regions) == Bounds::Guard;
        if options.segment && self.request.module.memories.first().is_some_and(guarded) {
            let Accesses { all, sums, chased } = self.accesses(flow);
            let without_base = chased <= MOST_CHASED * all;
            let gain = sums + if without_base { GAIN_OF_REGISTER * (all - sums) } else { 0.0 };
            if gain >= if options.opt_all { f32::MIN_POSITIVE } else { LEAST_GAIN } {
                self.segment = if without_base { SegmentUse::All } else { SegmentUse::Sums };
            }
        }
        let accesses = values(self.func, cfg).filter(|&value| self.is_access(value)).count();
        if self.segment != SegmentUse::All && accesses >= ACCESSES_FOR_PINNED_BASE {
            // Tail calls do not return, but they need the other register too.
            let is_call = |value| self.func.op(value).is_call() || self.func.op(value).is_tail_call();
            let base = if values(self.func, cfg).any(is_call) { abi::BASE } else { abi::BASE_OF_LEAF };
            (self.code.pinned_base, self.memory_base) = (Some(base), base);
        }
    }

    /// The accesses to memory 0 that a call is expected to execute.
    fn accesses(&self, flow: &Flow) -> Accesses {
        let of_origin = |(&origin, estimate): (&Origin, &Estimate)| match origin {
            Origin::Block(block) => Some((block, estimate.weight)),
            Origin::Edge(..) => None,
        };
        let blocks = || flow.origins.iter().zip(&flow.estimates).filter_map(of_origin);
        let of_block = |block| self.func.block(block).insts.iter().copied().filter(|&value| self.is_access(value));
        let mut is_address = vec![false; self.func.num_values()];
        let mut accesses = Accesses::default();
        for (block, weight) in blocks() {
            for value in of_block(block) {
                let inst = self.func.inst(value);
                let address = self.resolve(inst.args[0]);
                // A pointer that goes around a loop.
                if !std::mem::replace(&mut is_address[address.index()], true) && self.func.op(address) == Op::Phi {
                    self.func.args(address).iter().for_each(|&arg| is_address[self.resolve(arg).index()] = true);
                }
                let is_single = self.info.uses[address.index()] == 1 && self.info.def_blocks.of(address) == block;
                accesses.all += weight;
                accesses.sums += if inst.imm == 0 && self.func.op(address) == Op::Add && is_single { weight } else { 0.0 };
            }
        }
        for (block, weight) in blocks() {
            accesses.chased += weight * of_block(block).filter(|value| is_address[value.index()]).count() as f32;
        }
        accesses
    }

    /// Whether a value is an access to memory 0.
    fn is_access(&self, value: Value) -> bool {
        self.func.op(value).access_width(Type::I32).is_some() && self.func.inst(value).aux == 0
    }

    /// The address of the access `value`, after a bounds check if it needs one.
    pub(super) fn access(&mut self, value: Value) -> Mem {
        let inst = self.func.inst(value);
        let (address, memory, offset) = (inst.args[0], inst.aux, inst.imm);
        let bytes = inst.op.access_width(self.func.operand_type(value)).expect("an access");
        let ty = &self.request.module.memories[memory as usize];
        let pc = std::mem::replace(&mut self.pc, inst.pc);
        let left_to_guard = seeded::is(Fault::DisplacementPastGuard) && offset >= 1 << 31;
        let bounds = if left_to_guard { Bounds::Guard } else { Bounds::of(ty, offset, self.request.options.guard_regions) };
        let mem = match bounds {
            Bounds::Guard => Mem { pc: inst.pc, ..self.guarded(address, memory, offset as i32) },
            Bounds::Explicit => self.checked(address, memory, offset, bytes, *ty),
        };
        self.pc = pc;
        mem
    }

    fn guarded(&mut self, address: Value, memory: u32, offset: i32) -> Mem {
        if let Some(constant) = self.constant(address)
            && let Ok(disp) = i32::try_from(constant + offset as u64)
        {
            return self.relative(memory, None, disp);
        }
        if let Some((index, shift, disp)) = self.address_parts(address)
            && let Some(disp) = disp.checked_add(offset)
        {
            let index = self.reg(index);
            return self.relative(memory, Some((index, shift)), disp);
        }
        if memory == 0
            && offset == 0
            && self.segment != SegmentUse::None
            && let Some(sum) = self.single(address, Type::I32).filter(|&sum| self.func.op(sum) == Op::Add)
        {
            // The sum of 32 bits wraps around as the processor's does. An offset would be added to 64 bits.
            let (a, b) = self.args(sum);
            let (a, b) = self.order_commutative(a, b, Type::I32);
            let segment = if seeded::is(Fault::SegmentWrapDropped) { Segment::Memory } else { Segment::Memory32 };
            return self.sum(a, b, Type::I32).relative_to(segment);
        }
        let mut index = self.reg(address);
        if seeded::is(Fault::IndexSignExtended) {
            let extended = self.code.new_reg(Class::Int);
            self.push(Inst::new(Asm::Movsxd, Width::Q).dst(extended).reg(index));
            index = extended;
        }
        self.relative(memory, Some((index, 0)), offset)
    }

    /// The address of `index << shift + disp` in a memory.
    fn relative(&mut self, memory: u32, index: Option<(Reg, u8)>, disp: i32) -> Mem {
        if memory == 0 && self.segment == SegmentUse::All {
            let sum = match index {
                None => Mem::at(Reg::NONE, disp),
                Some((index, 0)) => Mem::at(index, disp),
                Some((index, shift)) => Mem::indexed(Reg::NONE, index, shift, disp),
            };
            return sum.relative_to(Segment::Memory);
        }
        let base = self.base(memory);
        index.map_or(Mem::at(base, disp), |(index, shift)| Mem::indexed(base, index, shift, disp))
    }

    /// An address as `index << shift + disp`, where neither the shift nor the addition can wrap around in 32 bits.
    fn address_parts(&self, address: Value) -> Option<(Value, u8, i32)> {
        let mut inner = self.single(address, Type::I32)?;
        let mut disp = 0;
        if self.func.op(inner) == Op::Add {
            let args = self.func.args(inner);
            disp = i32::try_from(self.constant(args[1])?).ok()?;
            ADDRESS.sum(self.largest(args[0], 4)?, disp as u64)?;
            match self.single(args[0], Type::I32) {
                Some(shifted) if self.func.op(shifted) == Op::Shl => inner = shifted,
                _ => return Some((args[0], 0, disp)),
            }
        }
        let args = self.func.args(inner);
        if self.func.op(inner) != Op::Shl {
            return None;
        }
        let shift = self.constant(args[1])?;
        ADDRESS.scales(self.largest(args[0], 4)?, shift).then_some((args[0], shift as u8, disp))
    }

    /// An upper bound, from its definition, of an i32 whose register is always zero-extended.
    fn largest(&self, value: Value, depth: u32) -> Option<u64> {
        let value = self.resolve(value);
        let args = self.func.args(value);
        if self.func.ty(value) != Type::I32 || depth == 0 {
            return None;
        }
        match self.func.op(value).family() {
            Family::Load(Load::Load8U) => Some(0xFF),
            Family::Load(Load::Load16U) => Some(0xFFFF),
            Family::Bits(Bits::Clz | Bits::Ctz | Bits::Popcnt) => Some(32),
            Family::Integer(Integer::And) => self.constant(args[1]).or(self.constant(args[0])),
            Family::Integer(Integer::ShrU) => {
                let count = self.constant(args[1])?;
                Some(ADDRESS.shifted_right(self.largest(args[0], depth - 1), count))
            }
            Family::Integer(Integer::Shl) => {
                let bound = self.largest(args[0], depth - 1)?;
                ADDRESS.shifted_left(bound, self.constant(args[1])?)
            }
            Family::Leaf(_) if seeded::is(Fault::FalseRange) => Some(0xFF),
            Family::Leaf(_) | Family::Integer(_) | Family::Bits(_) | Family::Compare(_) | Family::FloatCompare(_) => None,
            Family::Float(_) | Family::FloatUnary(_) | Family::Convert(_) | Family::Simd(_) | Family::Reference(_) => None,
            Family::Load(_) | Family::Store(_) | Family::Memory(_) | Family::Global(_) | Family::Table(_) => None,
            Family::Call(_) | Family::Exception(_) | Family::Accounting(_) | Family::Terminator(_) => None,
        }
    }

    /// Computes `address + offset + bytes`, traps because of it if that exceeds the memory's length, and returns the memory operand that
    /// is `bytes` lower. Speculative execution after a failed check accesses the end of the memory, or the inaccessible bytes before
    /// a memory that is shorter than the access.
    fn checked(&mut self, address: Value, memory: u32, offset: u64, bytes: u32, ty: MemoryType) -> Mem {
        let masked = self.request.options.masks(&ty, offset) && !seeded::is(Fault::MemoryMaskDropped);
        let memory64 = ty.memory64;
        let base = self.base(memory);
        let index = self.reg(address);
        let len = self.length(memory);
        let mut end = self.code.new_reg(Class::Int);
        let trap = Trap::MemoryOutOfBounds;
        let bytes = if seeded::is(Fault::WidthLeftOut) { 0 } else { bytes };
        let distance = offset.checked_add(bytes.into()).unwrap_or_else(|| {
            // Every address is out of bounds. The store's address, which is never null, makes the condition true.
            self.push(Inst::new(Asm::Cmp, Width::Q).mem(Mem::at(abi::INSTANCE, offset_of!(InstanceCtx, store) as i32)));
            self.trap_if(Cond::NE, trap);
            bytes.into()
        });
        let sum = match (i32::try_from(distance), memory64) {
            // Both terms are below 2³³.
            (Ok(distance), false) => Inst::new(Asm::Lea, Width::Q).mem(Mem::at(index, distance)),
            (Err(_), false) => {
                let distance = self.constant_reg(distance, Type::I64);
                Inst::new(Asm::Lea, Width::Q).mem(Mem::indexed(index, distance, 0, 0))
            }
            (Ok(distance), true) => Inst::new(Asm::Add, Width::Q).src(index).imm(distance.into()),
            (Err(_), true) => {
                let distance = self.constant_reg(distance, Type::I64);
                Inst::new(Asm::Add, Width::Q).src(index).reg(distance)
            }
        };
        self.push(sum.dst(end));
        let trap_if = |end: Reg| Inst::new(Asm::TrapIf, Width::Q).cond(Cond::B).src(end).imm(trap as i64);
        if memory64 && !seeded::is(Fault::CarryIgnored) {
            // Speculative execution continues with a sum that has wrapped around, which the other check compares as well.
            self.push(trap_if(end));
        }
        if !seeded::is(Fault::BoundsCheckDropped) {
            // In this order the condition is the carry flag alone: a conditional move on two flags takes twice as long.
            self.push(Inst::new(Asm::Cmp, Width::Q).src(len).reg(end));
            self.push(trap_if(end));
            if masked {
                end = self.mask_speculation(Cond::B, end, len);
            }
        }
        Mem::indexed(base, end, 0, -(bytes as i32))
    }

    /// `value`, or after a trap on the same condition `harmless` instead.
    pub(super) fn mask_speculation(&mut self, cond: Cond, value: Reg, harmless: Reg) -> Reg {
        let masked = self.code.new_reg(Class::Int);
        self.push(Inst::new(Asm::Cmov, Width::Q).dst(masked).src(value).reg(harmless).cond(cond));
        masked
    }

    pub(super) fn trap_if(&mut self, cond: Cond, trap: Trap) {
        self.push(Inst::new(Asm::TrapIf, Width::Q).cond(cond).imm(trap as i64));
    }

    /// The register with the base of a memory.
    fn base(&mut self, memory: u32) -> Reg {
        if memory != 0 {
            let (record, base) = (self.record(memory), self.code.new_reg(Class::Int));
            self.push(Inst::new(Asm::Mov, Width::Q).dst(base).mem(Mem::at(record, offset_of!(MemoryCtx, base) as i32)));
            return base;
        }
        if self.memory_base.is_none() {
            self.memory_base = self.code.new_reg(Class::Int);
        }
        self.memory_base
    }

    /// The register with the address of a memory's record.
    fn record(&mut self, memory: u32) -> Reg {
        let i = memory as usize;
        if self.memory_records[i].is_none() {
            self.memory_records[i] = self.code.new_reg(Class::Int);
        }
        self.memory_records[i]
    }

    /// The register with a memory's length, between two instructions after which it may be another.
    fn length(&mut self, memory: u32) -> Reg {
        let i = memory as usize;
        if self.memory_lengths[i].is_none() {
            self.memory_lengths[i] = self.code.new_reg(Class::Int);
        }
        self.memory_lengths[i]
    }

    /// Defines the registers that [`Lower::length`] has returned, before the first instruction that uses them.
    pub(super) fn load_memory_lengths(&mut self) {
        for memory in 0..self.memory_lengths.len() {
            let length = std::mem::replace(&mut self.memory_lengths[memory], Reg::NONE);
            if !length.is_none() {
                let record = self.record(memory as u32);
                self.load_field(length, record, offset_of!(MemoryCtx, len));
            }
        }
    }

    /// Defines, in the entry block, the registers that [`Lower::base`] and [`Lower::record`] have returned.
    pub(super) fn load_memory_records(&mut self) {
        if !self.memory_base.is_none() {
            self.load_field(self.memory_base, abi::INSTANCE, offset_of!(InstanceCtx, memory0_base));
        }
        for memory in 0..self.memory_records.len() {
            if !self.memory_records[memory].is_none() {
                self.load_field(self.memory_records[memory], abi::INSTANCE, self.layout.memory(memory as u32) as usize);
            }
        }
    }

    /// `dst ← [base + offset]`, a pointer or a 64-bit number of the runtime.
    pub(super) fn load_field(&mut self, dst: Reg, base: Reg, offset: usize) {
        self.push(Inst::new(Asm::Mov, Width::Q).dst(dst).mem(Mem::at(base, offset as i32)));
    }

    /// `[base + offset]`, a pointer or a 64-bit number of the runtime, in a new register.
    pub(super) fn field(&mut self, base: Reg, offset: usize) -> Reg {
        let dst = self.code.new_reg(Class::Int);
        self.load_field(dst, base, offset);
        dst
    }

    /// The slot of a global.
    pub(super) fn global(&mut self, global: u32) -> Mem {
        let offset = self.layout.global(global);
        match self.layout.global_is_pointer(global) {
            true => Mem::at(self.field(abi::INSTANCE, offset as usize), 0),
            false => Mem::at(abi::INSTANCE, offset as i32),
        }
    }

    pub(super) fn lower_load(&mut self, op: Load, value: Value) {
        let ty = self.func.operand_type(value);
        let (load, load_width) = match op {
            Load::Load if ty.is_float() => (Asm::Vmov, width(ty)),
            Load::Load => (Asm::Mov, width(ty)),
            Load::Load8U => (Asm::Movzx8, Width::D),
            Load::Load16U => (Asm::Movzx16, Width::D),
            // A float load clears the bits above it.
            Load::Load32U if ty == Type::V128 => (Asm::Vmov, Width::D),
            Load::Load32U => (Asm::Mov, Width::D),
            Load::Load64U => (Asm::Vmov, Width::Q),
            Load::Load8S => (Asm::Movsx8, width(ty)),
            Load::Load16S => (Asm::Movsx16, width(ty)),
            Load::Load32S => (Asm::Movsxd, Width::Q),
        };
        let dst = self.result(value);
        let mem = self.access(value);
        self.push(Inst::new(load, load_width).long(ty == Type::V256).dst(dst).mem(mem));
    }

    pub(super) fn lower_store(&mut self, store: Value, width: Width) {
        if self.lower_update(store, width) || self.lower_lane_store(store, width) {
            return;
        }
        let stored = self.func.args(store)[1];
        let ty = self.func.ty(stored);
        // The bits of a constant need no register of its type.
        let source = match self.constant(stored) {
            Some(bits) => match self.immediate(stored, width) {
                Some(imm) => Err(imm),
                None => Ok(self.constant_reg(bits, Type::I64)),
            },
            None => Ok(self.reg(stored)),
        };
        let op = if ty.is_float() && self.constant(stored).is_none() { Asm::VmovTo } else { Asm::MovTo };
        let mem = self.access(store);
        let inst = Inst::new(op, width).long(ty == Type::V256).mem(mem);
        self.push(match source {
            Ok(reg) => inst.src(reg),
            Err(imm) => inst.imm(imm),
        });
    }

    /// Selects `store(a, op(load(a), x))` as one instruction, if possible.
    fn lower_update(&mut self, store: Value, width: Width) -> bool {
        let (address, stored) = (self.func.args(store)[0], self.func.args(store)[1]);
        let ty = self.func.ty(stored);
        let Some(inner) = self.single(stored, ty) else {
            return false;
        };
        let Family::Integer(op) = self.func.op(inner).family() else { return false };
        let op = match op {
            Integer::Add => Asm::AddTo,
            Integer::Sub => Asm::SubTo,
            Integer::And => Asm::AndTo,
            Integer::Or => Asm::OrTo,
            Integer::Xor => Asm::XorTo,
            Integer::Mul | Integer::MulHigh | Integer::DivS | Integer::DivU | Integer::RemS | Integer::RemU => return false,
            Integer::Shl | Integer::ShrS | Integer::ShrU | Integer::Rotl | Integer::Rotr => return false,
        };
        let (a, b) = (self.func.args(inner)[0], self.func.args(inner)[1]);
        let (load, other) = if self.loads_from(a, store, address, ty) {
            (a, b)
        } else if self.func.op(inner) != Op::Sub && self.loads_from(b, store, address, ty) {
            (b, a)
        } else {
            return false;
        };
        let source = match self.immediate(other, width) {
            Some(imm) => Err(imm),
            None => Ok(self.reg(other)),
        };
        let load = self.resolve(load);
        let mem = self.fold(load);
        let inst = Inst::new(op, width).mem(mem);
        self.push(match source {
            Ok(reg) => inst.src(reg),
            Err(imm) => inst.imm(imm),
        });
        true
    }

    /// Whether `value` is a load of exactly the bytes that `store` writes, and can be folded into it.
    fn loads_from(&self, value: Value, store: Value, address: Value, ty: Type) -> bool {
        let value = self.resolve(value);
        let (load, store) = (self.func.inst(value), self.func.inst(store));
        store_of_width(load.op) == Some(store.op)
            && (load.aux, load.imm) == (store.aux, store.imm)
            && self.resolve(load.args[0]) == self.resolve(address)
            && self.can_fold_load(value, ty)
    }

    /// Selects operations on memories.
    pub(super) fn lower_memory(&mut self, op: Memory, value: Value) {
        let helper = match op {
            Memory::MemorySize => return self.lower_memory_size(value),
            Memory::MemoryGrow => return self.lower_memory_grow(value),
            Memory::MemoryFill => const { Op::MemoryFill.helper() },
            Memory::MemoryCopy => const { Op::MemoryCopy.helper() },
            Memory::MemoryInit => const { Op::MemoryInit.helper() },
            Memory::DataDrop => const { Op::DataDrop.helper() },
        };
        self.lower_bulk(helper, value);
    }

    fn lower_memory_size(&mut self, value: Value) {
        let inst = self.func.inst(value);
        let page_size_log2 = self.request.module.memories[inst.aux as usize].page_size_log2;
        let (dst, record) = (self.result(value), self.record(inst.aux));
        let len = self.field(record, offset_of!(MemoryCtx, len));
        self.push(Inst::new(Asm::Shr, Width::Q).dst(dst).src(len).imm(page_size_log2.into()));
    }

    pub(super) fn lower_global_set(&mut self, global: u32, stored: Value) {
        let ty = self.func.ty(stored);
        let width = width(ty);
        let inst = match self.constant(stored) {
            Some(_) if self.immediate(stored, width).is_some() => {
                Inst::new(Asm::MovTo, width).imm(self.immediate(stored, width).unwrap_or_default())
            }
            Some(bits) => Inst::new(Asm::MovTo, width).src(self.constant_reg(bits, Type::I64)),
            None => {
                let op = if ty.is_float() { Asm::VmovTo } else { Asm::MovTo };
                Inst::new(op, width).src(self.reg(stored))
            }
        };
        let mem = match seeded::is(Fault::StoreToContext) {
            true => Mem::at(abi::INSTANCE, offset_of!(InstanceCtx, memory0_base) as i32),
            false => self.global(global),
        };
        self.push(inst.mem(mem));
    }

    pub(super) fn lower_fuel(&mut self, value: Value) {
        let imm = self.func.inst(value).imm;
        let store = self.field(abi::INSTANCE, offset_of!(InstanceCtx, store));
        let charge = Inst::new(Asm::SubTo, Width::Q).mem(Mem::at(store, offset_of!(StoreCtx, fuel) as i32));
        let charge = match i32::try_from(imm) {
            Ok(cost) => charge.imm(cost.into()),
            Err(_) => charge.src(self.constant_reg(imm, Type::I64)),
        };
        self.push(charge);
        self.trap_if(Cond::S, Trap::OutOfFuel);
    }

    pub(super) fn lower_miss(&mut self, value: Value) {
        let argument = u64::from(self.func.inst(value).aux) | u64::from(MISSED | self.func.index) << 32;
        let store = self.code.new_reg(Class::Int);
        self.push(Inst::new(Asm::Miss, Width::Q).dst(store).imm(argument as i64));
    }

    /// Selects a read of a number of the store.
    pub(super) fn lower_store_field(&mut self, value: Value, field: usize) {
        let store = self.field(abi::INSTANCE, offset_of!(InstanceCtx, store));
        let dst = self.result(value);
        self.load_field(dst, store, field);
    }

    pub(super) fn lower_epoch(&mut self, value: Value) {
        let store = self.field(abi::INSTANCE, offset_of!(InstanceCtx, store));
        let epoch = self.field(store, offset_of!(StoreCtx, epoch));
        let dst = self.result(value);
        self.load_field(dst, epoch, 0);
    }

    pub(super) fn lower_poll(&mut self) {
        let store = self.field(abi::INSTANCE, offset_of!(InstanceCtx, store));
        let epoch = self.field(store, offset_of!(StoreCtx, epoch));
        let now = self.field(epoch, 0);
        self.push(Inst::new(Asm::Cmp, Width::Q).src(now).mem(Mem::at(store, offset_of!(StoreCtx, deadline) as i32)));
        self.trap_if(Cond::AE, Trap::Interrupt);
    }
}

/// The store that writes as many bytes as `load` reads, or `None` if there is none or `load` is not a load.
fn store_of_width(load: Op) -> Option<Op> {
    match load.family() {
        Family::Load(load) => match load {
            Load::Load => Some(Op::Store),
            Load::Load8S | Load::Load8U => Some(Op::Store8),
            Load::Load16S | Load::Load16U => Some(Op::Store16),
            Load::Load32S | Load::Load32U => Some(Op::Store32),
            Load::Load64U => None,
        },
        Family::Leaf(_) | Family::Integer(_) | Family::Bits(_) | Family::Compare(_) | Family::FloatCompare(_) => None,
        Family::Float(_) | Family::FloatUnary(_) | Family::Convert(_) | Family::Simd(_) | Family::Reference(_) => None,
        Family::Store(_) | Family::Memory(_) | Family::Global(_) | Family::Table(_) => None,
        Family::Call(_) | Family::Exception(_) | Family::Accounting(_) | Family::Terminator(_) => None,
    }
}
