//! Linear memories and globals.

use super::{STORED, Translator, clif_type, trap_code};
use crate::ir::family::{Load, Memory, Store};
use crate::ir::{Op, Type, Value};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self as clif, InstBuilder, MemFlagsData, types};
use std::mem::offset_of;
use weir_bytecode::Trap;
use weir_contract::{Bounds, Helper, InstanceCtx, MemoryCtx};

impl Translator<'_, '_> {
    pub(super) fn store(&mut self, op: Store, value: Value) -> Option<clif::Value> {
        let (address, offset, flags) = self.accessed(value);
        let stored = self.arg(value, 1);
        let ins = self.b.ins();
        match op {
            Store::Store8 => ins.istore8(flags, stored, address, offset),
            Store::Store16 => ins.istore16(flags, stored, address, offset),
            Store::Store32 => ins.istore32(flags, stored, address, offset),
            Store::Store => ins.store(flags, stored, address, offset),
        };
        None
    }

    pub(super) fn load(&mut self, op: Load, value: Value) -> clif::Value {
        let (address, offset, flags) = self.accessed(value);
        let vector = self.func.ty(value) == Type::V128;
        let ty = clif_type(self.func.operand_type(value));
        let ins = self.b.ins();
        match op {
            Load::Load => ins.load(ty, flags, address, offset),
            Load::Load8S => ins.sload8(ty, flags, address, offset),
            Load::Load8U => ins.uload8(ty, flags, address, offset),
            Load::Load16S => ins.sload16(ty, flags, address, offset),
            Load::Load16U => ins.uload16(ty, flags, address, offset),
            Load::Load32S => ins.sload32(flags, address, offset),
            Load::Load32U if vector => {
                let number = ins.load(types::I32, flags, address, offset);
                self.zero_extended(number)
            }
            Load::Load32U => ins.uload32(flags, address, offset),
            Load::Load64U => {
                let number = ins.load(types::I64, flags, address, offset);
                self.zero_extended(number)
            }
        }
    }

    /// The native address of a load or store, and an offset that the access itself adds.
    fn accessed(&mut self, value: Value) -> (clif::Value, i32, MemFlagsData) {
        let inst = self.func.inst(value);
        let width = inst.op.access_width(self.func.operand_type(value)).expect("an access has a width");
        self.address(inst.aux, self.arg(value, 0), inst.imm, width)
    }

    /// The native address of an access of `width` bytes, in bounds or guarded, and an offset that the access itself adds.
    fn address(&mut self, memory: u32, index: clif::Value, offset: u64, width: u32) -> (clif::Value, i32, MemFlagsData) {
        let ty = self.request.module.memories[memory as usize];
        let out_of_bounds = trap_code(Trap::MemoryOutOfBounds);
        let flags = MemFlagsData::new().with_alias_region(Some(self.heap));
        let index = self.widen(self.index_type(memory), index);
        let base = self.memory_base(memory);
        if Bounds::of(&ty, offset, self.request.options.guard_regions) == Bounds::Guard {
            let address = self.b.ins().iadd(base, index);
            return (address, offset as i32, flags.with_trap_code(Some(out_of_bounds)));
        }
        let len = self.memory_len(memory);
        let outside = match offset.checked_add(width.into()) {
            // No memory is that large.
            None => {
                let outside = self.b.ins().iconst(types::I8, 1);
                self.trap_if(outside, out_of_bounds);
                outside
            }
            Some(reach) => {
                let reach = self.b.ins().iconst(types::I64, reach as i64);
                let end = self.b.ins().iadd(index, reach);
                self.note_operand(end);
                // Both are well below 2⁶³ if the index has 32 bits.
                if ty.memory64 {
                    let wraps = self.b.ins().icmp(IntCC::UnsignedLessThan, end, index);
                    self.trap_if(wraps, out_of_bounds);
                }
                let outside = self.b.ins().icmp(IntCC::UnsignedGreaterThan, end, len);
                self.trap_if(outside, out_of_bounds);
                outside
            }
        };
        let address = self.b.ins().iadd(base, index);
        let constant = self.b.ins().iconst(types::I64, offset as i64);
        let address = self.b.ins().iadd(address, constant);
        if !self.request.options.masks(&ty, offset) {
            return (address, 0, flags.with_notrap());
        }
        // Speculative execution after a failed check reads at address 0.
        let null = self.b.ins().iconst(types::I64, 0);
        let address = self.b.ins().select_spectre_guard(outside, null, address);
        (address, 0, flags.with_notrap())
    }

    /// The type of addresses in `memory`.
    fn index_type(&self, memory: u32) -> Type {
        if self.request.module.memories[memory as usize].memory64 { Type::I64 } else { Type::I32 }
    }

    fn memory_ctx(&mut self, memory: u32) -> clif::Value {
        self.load_fixed(types::I64, self.instance, self.layout.memory(memory) as usize)
    }

    fn memory_base(&mut self, memory: u32) -> clif::Value {
        if memory == 0 {
            return self.load_fixed(types::I64, self.instance, offset_of!(InstanceCtx, memory0_base));
        }
        let ctx = self.memory_ctx(memory);
        self.load_fixed(types::I64, ctx, offset_of!(MemoryCtx, base))
    }

    /// The size of a memory in bytes.
    fn memory_len(&mut self, memory: u32) -> clif::Value {
        let ctx = self.memory_ctx(memory);
        self.load_runtime(types::I64, ctx, offset_of!(MemoryCtx, len))
    }

    fn memory_size(&mut self, memory: u32) -> clif::Value {
        let len = self.memory_len(memory);
        let page = self.request.module.memories[memory as usize].page_size_log2;
        let pages = self.b.ins().ushr_imm_u(len, i64::from(page));
        self.narrow(memory, pages)
    }

    fn memory_grow(&mut self, value: Value) -> clif::Value {
        let memory = self.func.inst(value).aux;
        let delta = self.widen(self.index_type(memory), self.arg(value, 0));
        let index = self.b.ins().iconst(types::I64, i64::from(memory));
        let old = self.call_helper(Helper::MemoryGrow, &[index, delta]);
        self.narrow(memory, old)
    }

    /// A number of pages as a value of `memory`'s index type.
    fn narrow(&mut self, memory: u32, pages: clif::Value) -> clif::Value {
        if self.index_type(memory) == Type::I32 { self.b.ins().ireduce(types::I32, pages) } else { pages }
    }

    /// An operation on memories.
    pub(super) fn memory(&mut self, op: Memory, value: Value) -> Option<clif::Value> {
        let helper = match op {
            Memory::MemorySize => return Some(self.memory_size(self.func.inst(value).aux)),
            Memory::MemoryGrow => return Some(self.memory_grow(value)),
            Memory::MemoryFill => const { Op::MemoryFill.helper() },
            Memory::MemoryCopy => const { Op::MemoryCopy.helper() },
            Memory::MemoryInit => const { Op::MemoryInit.helper() },
            Memory::DataDrop => const { Op::DataDrop.helper() },
        };
        self.bulk(helper, value)
    }

    /// A bulk operation: calls a helper with the immediates packed into its first argument.
    pub(super) fn bulk(&mut self, helper: Helper, value: Value) -> Option<clif::Value> {
        let inst = self.func.inst(value);
        let immediates = inst.helper_immediates();
        let mut args = vec![self.b.ins().iconst(types::I64, immediates as i64)];
        for &arg in inst.args.iter() {
            args.push(self.widen(self.func.ty(arg), self.get(arg)));
        }
        let status = self.call_helper(helper, &args);
        self.trap_if(status, STORED);
        None
    }

    pub(super) fn global_get(&mut self, global: u32, ty: Type) -> clif::Value {
        let (base, offset) = self.global_slot(global);
        let flags = if self.request.module.globals[global as usize].mutable {
            self.global_flags()
        } else {
            MemFlagsData::trusted().with_readonly().with_can_move()
        };
        self.b.ins().load(clif_type(ty), flags, base, offset)
    }

    pub(super) fn global_set(&mut self, global: u32, value: clif::Value) -> Option<clif::Value> {
        let (base, offset) = self.global_slot(global);
        let flags = self.global_flags();
        self.b.ins().store(flags, value, base, offset);
        None
    }

    fn global_flags(&self) -> MemFlagsData {
        MemFlagsData::trusted().with_alias_region(Some(self.globals))
    }

    /// Base and offset of the slot of `global`.
    fn global_slot(&mut self, global: u32) -> (clif::Value, i32) {
        let offset = self.layout.global(global);
        if self.layout.global_is_pointer(global) {
            return (self.load_fixed(types::I64, self.instance, offset as usize), 0);
        }
        (self.instance, offset as i32)
    }
}
