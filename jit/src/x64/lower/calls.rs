//! Selection of calls, tail calls, returns and calls of the runtime's helpers.

use super::selection::{Lower, class, width};
use crate::ir::{Block, Entry, Op, Type, Value};
use crate::mir::{RegList, Target};
use crate::regalloc::{Class, Reg, RegSet};
use crate::seeded::{self, Fault};
use crate::x64::abi::{self, ArgLocation};
use crate::x64::insts::{Asm, Cond, Inst, Mem, STORED, Width};
use std::mem::offset_of;
use weir_bytecode::{FuncType, Trap, ValType};
use weir_contract::{Helper, InstanceCtx, StackCtx, TableEntry};

/// The way in which a call names its callee.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CallBy {
    /// The index of a function.
    Index,
    /// An element of a table.
    Element,
    /// A reference among the operands.
    Reference,
}

/// Definitions of registers by a call, instructions that extend them, and values in overflow slots.
pub(super) type Received = (Vec<(Reg, Reg)>, Vec<Inst>, Vec<(Value, u32)>);

impl<'l> Lower<'l, '_> {
    pub(super) fn push_list(&mut self, op: Asm, list: RegList) {
        self.code.lists.push(list);
        let index = self.code.lists.len() as i64 - 1;
        self.push(Inst::new(op, Width::Q).imm(index));
    }

    /// The signature, the target and the arguments of a call; for an indirect call, after its checks. The third part is what the call has in
    /// `CALLEE`, if anything.
    fn callee(&mut self, value: Value, by: CallBy) -> (&'l FuncType, Target, Option<Reg>, &'l [Value]) {
        let func = self.func;
        let module = self.request.module;
        let inst = func.inst(value);
        if by == CallBy::Element {
            let (index, args) = inst.args.split_last().expect("the index is an argument");
            let entry = self.table_entry(inst.imm as u32, *index, Trap::TableOutOfBounds);
            self.push(Inst::new(Asm::CheckSignature, Width::D).src(entry).imm(inst.aux.into()));
            let own = module.own_elements(inst.imm as u32).is_some() || seeded::is(Fault::InstanceNotLoaded);
            let ty = &module.types[inst.aux as usize];
            if own {
                let cell = self.field(entry, offset_of!(TableEntry, cell));
                return (ty, Target::Own, Some(cell), args);
            }
            return (ty, Target::Reference, Some(entry), args);
        }
        if by == CallBy::Reference {
            // A reference has cell and instance at the same offsets as a table element.
            let (reference, args) = inst.args.split_last().expect("the reference is an argument");
            return (&module.types[inst.aux as usize], Target::Reference, Some(self.reg(*reference)), args);
        }
        let ty = module.func_type(inst.aux);
        if inst.aux < module.imported_funcs {
            let reference = self.field(abi::INSTANCE, self.layout.import(inst.aux) as usize);
            return (ty, Target::Reference, Some(reference), &inst.args);
        }
        let itself = inst.aux == func.index && func.entry == Entry::Call;
        (ty, if itself { Target::Itself } else { Target::Cell(inst.aux) }, None, &inst.args)
    }

    /// The address of the overflow area.
    pub(super) fn overflow(&mut self) -> Reg {
        let stack = self.field(abi::INSTANCE, offset_of!(InstanceCtx, stack));
        self.field(stack, offset_of!(StackCtx, overflow))
    }

    /// Sends values to `places`: returns those that are passed in registers, and stores the others.
    fn send(&mut self, values: &[Value], places: impl Iterator<Item = ArgLocation>) -> Vec<(Reg, Reg)> {
        let mut uses = Vec::with_capacity(values.len());
        let mut overflow = None;
        for (&value, place) in values.iter().zip(places) {
            let reg = self.reg(value);
            match place {
                ArgLocation::Reg(place) => uses.push((reg, place)),
                ArgLocation::Overflow(slot) => {
                    let area = *overflow.get_or_insert_with(|| self.overflow());
                    self.store_slot(reg, Mem::at(area, 8 * slot as i32));
                }
            }
        }
        uses
    }

    /// Stores a register to a slot of the overflow area.
    pub(super) fn store_slot(&mut self, reg: Reg, slot: Mem) {
        let op = if reg.class() == Class::Float { Asm::VmovTo } else { Asm::MovTo };
        let width = if reg.is_wide() { Width::X } else { Width::Q };
        self.push(Inst::new(op, width).src(reg).mem(slot));
    }

    /// Loads values that were passed in slots of the overflow area.
    pub(super) fn load_overflow(&mut self, values: &[(Value, u32)]) {
        if values.is_empty() {
            return;
        }
        let area = self.overflow();
        for &(value, slot) in values {
            self.load(value, Mem::at(area, 8 * slot as i32));
        }
    }

    pub(super) fn lower_call(&mut self, value: Value, by: CallBy) {
        let (ty, target, reference, args) = self.callee(value, by);
        let mut uses = self.send(args, abi::params(&ty.params));
        uses.extend(reference.map(|reg| (reg, abi::CALLEE)));
        let restore = target == Target::Reference || self.request.module.effects.foreign_tail_calls;
        self.code.calls = true;
        self.code.restores |= restore;
        let list = RegList {
            uses,
            defs: Vec::new(),
            clobbers: abi::CALLER_SAVED,
            target,
            restore,
            handlers: Vec::new(),
            roots: Vec::new(),
        };
        if self.func.op(self.following(self.block, self.position)) == Op::Try {
            // The block of the normal edge has the results.
            return self.push_protected(Asm::TryCall, list);
        }
        let (defs, extended, overflow) = self.receive(value, self.block, self.position, &ty.results);
        let clobbers = defs.iter().fold(list.clobbers, |clobbers, &(_, place)| clobbers.without(place));
        self.push_list(Asm::Call, RegList { defs, clobbers, ..list });
        extended.into_iter().for_each(|inst| self.push(inst));
        self.load_overflow(&overflow);
    }

    /// Receives the results, of these types, of a call in `block`: returns the definitions of registers, the instructions that extend
    /// them, and the values in overflow slots.
    pub(super) fn receive(&mut self, call: Value, block: Block, position: usize, types: &[ValType]) -> Received {
        let (mut defs, mut extended, mut overflow) = (Vec::new(), Vec::new(), Vec::new());
        for (result, place) in self.results(call, block, position).into_iter().zip(abi::results(types)) {
            let Some(result) = result else { continue };
            match place {
                ArgLocation::Overflow(slot) => overflow.push((result, slot)),
                ArgLocation::Reg(place) => {
                    let reg = self.reg(result);
                    if self.func.ty(result) == Type::I32 && self.info.upper[result.index()] {
                        let raw = self.code.new_reg(Class::Int);
                        defs.push((raw, place));
                        extended.push(Inst::new(Asm::Mov, Width::D).dst(reg).reg(raw));
                    } else {
                        defs.push((reg, place));
                    }
                }
            }
        }
        (defs, extended, overflow)
    }

    /// The first instruction after the one at `position` that is not a result of it.
    fn following(&self, block: Block, position: usize) -> Value {
        let mut following = self.func.block(block).insts[position + 1..].iter().copied();
        following.find(|&value| self.func.op(value) != Op::Result).expect("a block has a terminator")
    }

    /// The results of the call at `position` of `block` that are used, by index.
    pub(super) fn results(&self, call: Value, block: Block, position: usize) -> Vec<Option<Value>> {
        let used = |value: Value| Some(value).filter(|value| !self.regs[value.index()].is_none());
        let mut results = vec![used(call)];
        let following = &self.func.block(block).insts[position + 1..];
        for &value in following.iter().take_while(|&&value| self.func.op(value) == Op::Result) {
            let index = self.func.inst(value).imm as usize;
            results.resize(results.len().max(index + 1), None);
            results[index] = used(value);
        }
        results
    }

    pub(super) fn lower_tail_call(&mut self, value: Value, by: CallBy) {
        let (ty, target, reference, args) = self.callee(value, by);
        let mut uses = self.send(args, abi::params(&ty.params));
        uses.extend(reference.map(|reg| (reg, abi::CALLEE)));
        let list = RegList {
            uses,
            defs: Vec::new(),
            clobbers: RegSet::EMPTY,
            target,
            restore: false,
            handlers: Vec::new(),
            roots: Vec::new(),
        };
        self.push_list(Asm::TailCall, list);
    }

    pub(super) fn lower_return(&mut self, value: Value) {
        let ty = self.request.module.func_type(self.func.index);
        let uses = self.send(self.func.args(value), abi::results(&ty.results));
        let list = RegList {
            uses,
            defs: Vec::new(),
            clobbers: RegSet::EMPTY,
            target: Target::None,
            restore: false,
            handlers: Vec::new(),
            roots: Vec::new(),
        };
        self.push_list(Asm::Ret, list);
    }

    /// Calls a helper with the instance and these arguments; returns the register of its result.
    pub(super) fn call_helper(&mut self, helper: Helper, args: &[Reg]) -> Reg {
        let uses = helper_args(helper, args);
        let result = self.code.new_reg(Class::Int);
        self.code.calls = true;
        self.push_list(
            Asm::Call,
            RegList {
                uses,
                defs: vec![(result, abi::RAX)],
                clobbers: abi::CALLER_SAVED.without(abi::RAX),
                target: Target::Helper(helper),
                restore: false,
                handlers: Vec::new(),
                roots: Vec::new(),
            },
        );
        result
    }

    pub(super) fn lower_memory_grow(&mut self, value: Value) {
        let inst = self.func.inst(value);
        let (memory, delta) = (self.constant_reg(inst.aux.into(), Type::I64), self.reg(inst.args[0]));
        let old = self.call_helper(Helper::MemoryGrow, &[memory, delta]);
        let dst = self.result(value);
        self.push(Inst::new(Asm::Mov, width(inst.ty)).dst(dst).reg(old));
    }

    /// Selects an operation whose helper returns a status.
    pub(super) fn lower_bulk(&mut self, helper: Helper, value: Value) {
        let inst = self.func.inst(value);
        let selector = inst.helper_immediates();
        let mut args = vec![self.constant_reg(selector, Type::I64)];
        for &arg in inst.args.iter() {
            debug_assert_eq!(class(self.func.ty(arg)), Class::Int);
            args.push(self.reg(arg));
        }
        let status = self.call_helper(helper, &args);
        self.push(Inst::new(Asm::Test, Width::D).src(status).reg(status));
        self.push(Inst::new(Asm::TrapIf, Width::Q).cond(Cond::NE).imm(STORED));
    }
}

/// The arguments of a helper after the instance, in their registers.
pub(super) fn helper_args(helper: Helper, args: &[Reg]) -> Vec<(Reg, Reg)> {
    debug_assert_eq!(args.len(), helper.arity());
    args.iter().copied().zip(abi::SYSTEM_V_ARGS[1..].iter().copied()).collect()
}
