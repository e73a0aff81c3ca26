//! Selection for OSR bodies: reading the interpreter's frame at the entry, and leaving the body at a loop header.

use super::selection::{Lower, width};
use crate::ir::{Type, Value};
use crate::mir::{RegList, Target};
use crate::regalloc::{Class, Reg, RegSet};
use crate::x64::abi;
use crate::x64::insts::{Asm, Inst, Mem, Width};
use std::mem::offset_of;
use weir_contract::{Helper, InstanceCtx, StoreCtx};

impl Lower<'_, '_> {
    /// A slot of the interpreter's frame.
    fn frame_slot(&mut self, slot: u64) -> Mem {
        Mem::at(self.frame(), 8 * slot as i32)
    }

    /// The register with the address of the interpreter's frame, which the entry defines.
    fn frame(&mut self) -> Reg {
        if self.frame.is_none() {
            self.frame = self.code.new_reg(Class::Int);
        }
        self.frame
    }

    pub(super) fn lower_osr_slot(&mut self, value: Value) {
        let mem = self.frame_slot(self.func.inst(value).imm);
        self.load(value, mem);
    }

    pub(super) fn lower_osr_store(&mut self, value: Value) {
        let inst = self.func.inst(value);
        let (arg, slot) = (inst.args[0], inst.imm);
        let (src, mem) = (self.reg(arg), self.frame_slot(slot));
        let op = if src.class() == Class::Float { Asm::VmovTo } else { Asm::MovTo };
        self.push(Inst::new(op, width(self.func.ty(arg))).src(src).mem(mem));
    }

    /// Subtracts from the store's ticks.
    pub(super) fn lower_osr_tick(&mut self, value: Value) {
        let work = self.func.inst(value).imm as i64;
        let store = self.field(abi::INSTANCE, offset_of!(InstanceCtx, store));
        let ticks = self.field(store, offset_of!(StoreCtx, osr_ticks));
        let left = self.result(value);
        self.push(Inst::new(Asm::Sub, Width::Q).dst(left).src(ticks).imm(work));
        let mem = Mem::at(store, offset_of!(StoreCtx, osr_ticks) as i32);
        self.push(Inst::new(Asm::MovTo, Width::Q).src(left).mem(mem));
    }

    pub(super) fn lower_osr_target(&mut self, value: Value) {
        let at = self.loop_argument(self.func.inst(value).imm);
        let target = self.call_helper(Helper::OsrTarget, &[at]);
        let dst = self.result(value);
        self.push(Inst::new(Asm::Mov, Width::Q).dst(dst).reg(target));
    }

    /// Jumps to the address that is the argument, in the convention of OSR bodies.
    pub(super) fn lower_osr_exit(&mut self, value: Value) {
        let inst = self.func.inst(value);
        let (target, at, frame) = (self.reg(inst.args[0]), self.loop_argument(inst.imm), self.frame());
        let uses = vec![(frame, abi::RDI), (target, abi::RAX), (at, abi::CALLEE)];
        let list = RegList {
            uses,
            defs: Vec::new(),
            clobbers: RegSet::EMPTY,
            target: Target::Address,
            restore: false,
            handlers: Vec::new(),
            roots: Vec::new(),
        };
        self.push_list(Asm::TailCall, list);
    }

    /// The function and the index of a loop in one register, as the contract's helpers take them.
    fn loop_argument(&mut self, index: u64) -> Reg {
        self.constant_reg(u64::from(self.func.index) | index << 32, Type::I64)
    }
}
