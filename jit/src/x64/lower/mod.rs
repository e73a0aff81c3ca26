//! Instruction selection: from SSA to [`Code`].
//!
//! Blocks are walked from the last to the first and each from its end, so that every user is seen before what it uses.
//! Selecting an instruction asks for its operands as registers, memory operands or immediates; an operand that is used once
//! and stands in the same block may be taken *into* its user: a comparison into a branch, a load into an addition.
//! A pure value of which nobody asked for the register is then never computed. A load is taken only if nothing that
//! traps or writes stands between it and its user, so the order of effects is untouched.
//!
//! **The upper half of an i32.** Every machine instruction on 32 bits clears the upper half of its destination, so the
//! register of an i32 value is zero-extended, and addresses and `extend_u` need no instruction. Exceptions are what
//! arrives from outside or from an i64: parameters, results of calls, `wrap`. Those are zero-extended where they are
//! defined, but only if somebody reads the upper half ([`facts::Facts::upper`]). The upper half of a spilled i32 is kept too.
//!
//! Constants are made anew at every use and never live long.

mod calls;
mod control;
mod division;
mod facts;
mod memory;
mod numeric;
mod tables;
mod vector;

use super::abi::{self, Travel};
use super::code::Code;
use super::insts::{Asm, Inst, Mem, Rm, Width};
use super::processor;
use crate::ir::family::{Accounting, Call, Family, Global, Leaf, Memory, Reference, Simd, Store, Table};
use crate::ir::{Block, Effect, Entry, Func, Op, Probability, Type, Value};
use crate::mir::{CodeBlock, Flow, Origin, RegList, Regs, Target, frequency};
use crate::regalloc::{Class, Reg, RegSet};
use crate::request::{Refusal, Request};
use facts::Facts;
use smallvec::SmallVec;
use weir_contract::Layout;

/// Selects instructions for `func`.
///
/// # Errors
/// [`Refusal::Unsupported`] on a processor that lacks instructions of TABLE 3.
pub fn lower(func: &Func<'_>, request: &Request<'_>) -> Result<Code, Refusal> {
    processor::check()?;
    let flow = Flow::of(func);
    let order: Vec<Block> = flow
        .origins
        .iter()
        .filter_map(|origin| match origin {
            Origin::Block(block) => Some(*block),
            Origin::Edge(..) => None,
        })
        .collect();
    vector::check_processor(func, &order)?;
    let pinned_base = memory::pinned_base(func, &order);
    let lower = Lower {
        func,
        request,
        layout: Layout::of(request.module),
        facts: Facts::of(func, &order),
        regs: vec![Reg::NONE; func.num_values()],
        taken: vec![false; func.num_values()],
        code: Code::new(pinned_base),
        reversed: Vec::with_capacity(2 * func.num_values()),
        pending: Vec::with_capacity(32),
        block: Block::ENTRY,
        position: 0,
        effects: 0,
        pc: 0,
        memory_base: pinned_base.unwrap_or(Reg::NONE),
        memory_records: vec![Reg::NONE; request.module.memories.len()],
        frame: Reg::NONE,
    };
    Ok(lower.run(flow))
}

/// The state of selection.
struct Lower<'l, 'a> {
    func: &'l Func<'a>,
    request: &'l Request<'l>,
    layout: Layout,
    facts: Facts,
    /// Registers of the values that somebody asked for.
    regs: Vec<Reg>,
    /// Loads that became part of their user.
    taken: Vec<bool>,
    code: Code,
    /// All code so far, last instruction first.
    reversed: Vec<Inst>,
    /// Code of the value being selected, first instruction first.
    pending: Vec<Inst>,
    /// Where that value stands: the block, and the index in it.
    block: Block,
    position: usize,
    effects: u32,
    pc: u32,
    /// Holds memory 0's base, if asked for.
    memory_base: Reg,
    /// Hold the addresses of the memories' records, if asked for.
    memory_records: Vec<Reg>,
    /// Holds the interpreter's frame, if asked for.
    frame: Reg,
}

/// Width of the registers' part that holds a value.
fn width(ty: Type) -> Width {
    match ty {
        Type::I32 | Type::F32 => Width::D,
        Type::V128 => Width::X,
        _ => Width::Q,
    }
}

fn class(ty: Type) -> Class {
    if ty.is_float() { Class::Float } else { Class::Int }
}

impl Lower<'_, '_> {
    fn run(mut self, mut flow: Flow) -> Code {
        self.code.blocks.reserve(flow.origins.len());
        for node in (0..flow.origins.len()).rev() {
            let end = self.reversed.len() as u32;
            let args = match flow.origins[node] {
                Origin::Block(block) => self.lower_block(block, &flow, node),
                Origin::Edge(block, k) => self.lower_jump(block, k as usize),
            };
            if node == 0 {
                self.lower_entry();
            }
            self.flush();
            let insts = end..self.reversed.len() as u32;
            let succs = std::mem::take(&mut flow.succs[node]);
            let preds = std::mem::take(&mut flow.preds[node]);
            let probability = match flow.origins[node] {
                Origin::Block(block) => self.probability(block, &flow.targets[node]),
                Origin::Edge(..) => None,
            };
            let cold = flow.cold[node];
            self.code.blocks.push(CodeBlock { insts, succs, preds, args, cold, probability, ..CodeBlock::default() });
        }
        self.finish(flow)
    }

    /// Probability that control goes on from a block to the first of its successors, if it ends with a branch and this is known.
    fn probability(&self, block: Block, targets: &[u32]) -> Option<Probability> {
        let branch = self.func.terminator(block).map(|last| self.func.inst(last)).filter(|last| last.op == Op::Branch)?;
        let first = branch.probability?;
        Some(if targets[0] == 0 { first } else { first.complement() })
    }

    /// Puts everything in forward order.
    fn finish(mut self, flow: Flow) -> Code {
        let total = self.reversed.len() as u32;
        self.reversed.reverse();
        self.code.blocks.reverse();
        for (block, origin) in self.code.blocks.iter_mut().zip(&flow.origins) {
            block.insts = total - block.insts.end..total - block.insts.start;
            if let Origin::Block(origin) = *origin {
                let live = self.func.phis(origin).filter(|&phi| self.facts.is_live_phi(phi));
                block.params = live.map(|phi| self.regs[phi.index()]).collect();
            }
        }
        self.code.insts = self.reversed;
        self.code.order_lists();
        self.code.loops = flow.loops;
        frequency::estimate(&mut self.code);
        self.code.raises = !self.request.options.signals;
        self.code.pc = self.request.module.body(self.func.index).map_or(0, |body| body.entry);
        self.code
    }

    /// Selects a block's instructions; answers what it passes to its successor.
    fn lower_block(&mut self, block: Block, flow: &Flow, node: usize) -> Regs {
        self.block = block;
        let func = self.func;
        let mut args = Regs::new();
        for (position, &value) in func.block(block).insts.iter().enumerate().rev() {
            let inst = func.inst(value);
            self.position = position;
            self.pc = inst.pc;
            self.effects = self.facts.effects_before[value.index()];
            match inst.op {
                Op::Jump => args = self.lower_jump(block, 0),
                op if op.is_terminator() => self.lower_terminator(value, flow, node),
                _ if self.is_wanted(value) => self.lower_value(value),
                _ => {}
            }
            self.flush();
        }
        args
    }

    /// A jump along an edge that passes arguments.
    fn lower_jump(&mut self, block: Block, k: usize) -> Regs {
        let func = self.func;
        let mut args = Regs::new();
        let mut live = func.phis(func.block(block).succs[k]).filter(|&phi| self.facts.is_live_phi(phi)).peekable();
        // A block may have many predecessors to search.
        let index = live.peek().map_or(0, |_| func.edge(block, k).1);
        for phi in live.collect::<SmallVec<[Value; 8]>>() {
            self.reg(phi);
            args.push(self.reg(func.args(phi)[index]));
        }
        self.push(Inst::new(Asm::Jmp, Width::Q));
        args
    }

    /// Whether a value must be computed at its place.
    fn is_wanted(&self, value: Value) -> bool {
        match self.func.op(value) {
            Op::Param | Op::Phi | Op::Result | Op::Const => false,
            op if op.is_removable() => !self.regs[value.index()].is_none() && self.resolve(value) == value,
            _ => !self.taken[value.index()],
        }
    }

    /// What stands first in the function: the arguments, and what is loaded once for the whole of it.
    fn lower_entry(&mut self) {
        self.pc = 0;
        let func = self.func;
        let mut defs = Vec::new();
        let mut extended = Vec::new();
        let mut overflow = Vec::new();
        if !self.frame.is_none() {
            defs.push((self.frame, abi::RDI));
        }
        if func.entry == Entry::Call {
            let places: Vec<Travel> = abi::params(&self.request.module.func_type(func.index).params).collect();
            for &param in func.block(Block::ENTRY).insts.iter().filter(|&&value| func.op(value) == Op::Param) {
                let reg = self.regs[param.index()];
                if reg.is_none() {
                    continue;
                }
                match places[func.inst(param).imm as usize] {
                    Travel::Overflow(slot) => overflow.push((param, slot)),
                    Travel::Reg(place) if func.ty(param) == Type::I32 && self.facts.upper[param.index()] => {
                        let raw = self.code.new_reg(Class::Int);
                        defs.push((raw, place));
                        extended.push(Inst::new(Asm::Mov, Width::D).dst(reg).reg(raw));
                    }
                    Travel::Reg(place) => defs.push((reg, place)),
                }
            }
        }
        let list = RegList { uses: Vec::new(), defs, clobbers: RegSet::EMPTY, target: Target::None, restore: false };
        self.push_list(Asm::Args, list);
        extended.into_iter().for_each(|inst| self.push(inst));
        self.load_overflow(&overflow);
        self.load_memory_records();
    }

    fn push(&mut self, inst: Inst) {
        self.pending.push(Inst { pc: self.pc, ..inst });
    }

    fn flush(&mut self) {
        self.reversed.extend(self.pending.drain(..).rev());
    }

    /// The value whose register `value` is in.
    fn resolve(&self, value: Value) -> Value {
        self.facts.alias[value.index()]
    }

    /// The bits of a constant, extended with zeros; a vector is none, but see [`Lower::vector_constant`].
    fn constant(&self, value: Value) -> Option<u64> {
        let value = self.resolve(value);
        self.func.as_const(value).filter(|_| self.func.ty(value) != Type::V128)
    }

    /// A constant as an immediate, if it is one that 32 bits can hold.
    fn immediate(&self, value: Value, width: Width) -> Option<i64> {
        let bits = self.constant(value)?;
        match width {
            Width::Q => i32::try_from(bits as i64).ok().map(i64::from),
            _ => Some(i64::from(bits as i32)),
        }
    }

    /// The instruction behind `value` if it may become part of the one being selected: pure, of the type that the
    /// user takes it for, and in the same block.
    fn local(&self, value: Value, ty: Type) -> Option<Value> {
        let value = self.resolve(value);
        let op = self.func.op(value);
        let pure = op.effect() == Effect::Pure && !matches!(op, Op::Phi | Op::Param | Op::OsrSlot | Op::Result | Op::Const);
        (pure && self.func.ty(value) == ty && self.facts.home[value.index()] == self.block).then_some(value)
    }

    /// The same if nobody else uses it.
    fn single(&self, value: Value, ty: Type) -> Option<Value> {
        self.local(value, ty).filter(|value| self.facts.uses[value.index()] == 1)
    }

    fn fresh(&mut self, ty: Type) -> Reg {
        if ty == Type::V128 { self.code.new_wide_reg() } else { self.code.new_reg(class(ty)) }
    }

    /// The register that `value` is in; a constant is put into a new one.
    fn reg(&mut self, value: Value) -> Reg {
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

    fn constant_reg(&mut self, bits: u64, ty: Type) -> Reg {
        let reg = self.fresh(ty);
        let inst = match ty {
            Type::F32 | Type::F64 if bits == 0 => Inst::new(Asm::Vzero, width(ty)),
            Type::F32 | Type::F64 => Inst::new(Asm::Vmov, width(ty)).mem(self.constant_mem(bits, ty)),
            _ => Inst::new(Asm::MovImm, Width::Q).imm(bits as i64),
        };
        self.push(inst.dst(reg));
        reg
    }

    fn constant_mem(&mut self, bits: u64, ty: Type) -> Mem {
        let bytes = if ty == Type::F32 { 4 } else { 8 };
        Mem::constant(self.code.pool.offset(bits.into(), bytes))
    }

    /// The register that the selected instruction defines for `value`, asked for or not.
    fn result(&mut self, value: Value) -> Reg {
        match self.regs[value.index()] {
            reg if reg.is_none() => self.fresh(self.func.ty(value)),
            reg => reg,
        }
    }

    /// `value` as right operand: in memory if it is a load that may be taken or a constant float or vector, else in a
    /// register.
    fn rm(&mut self, value: Value, ty: Type) -> Rm {
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
    fn can_take_load(&self, value: Value, ty: Type) -> bool {
        let value = self.resolve(value);
        let (i, op) = (value.index(), self.func.op(value));
        let available =
            self.func.ty(value) == ty && self.facts.home[i] == self.block && self.facts.uses[i] == 1 && self.regs[i].is_none();
        available
            && match op {
                Op::GlobalGet => self.facts.effects_before[i] == self.effects,
                _ => op.access_width(ty).is_some() && self.facts.effects_before[i] + 1 == self.effects,
            }
    }

    fn take_load(&mut self, value: Value, ty: Type) -> Option<Mem> {
        let value = self.resolve(value);
        let op = self.func.op(value);
        if !matches!(op, Op::Load | Op::GlobalGet) || !self.can_take_load(value, ty) {
            return None;
        }
        Some(self.take(value))
    }

    /// Makes an access or `global_get` part of the instruction being selected.
    fn take(&mut self, value: Value) -> Mem {
        self.taken[value.index()] = true;
        match self.func.op(value) {
            Op::GlobalGet => self.global(self.func.inst(value).aux),
            _ => self.access(value),
        }
    }

    fn lower_value(&mut self, value: Value) {
        let inst = self.func.inst(value);
        match inst.op.family() {
            Family::Leaf(op) => match op {
                Leaf::OsrSlot => self.lower_osr_slot(value),
                Leaf::Select => self.lower_select(value),
                // Made where they are used, or defined by the entry, by edges and by calls.
                Leaf::Const | Leaf::Param | Leaf::Phi | Leaf::Result => {}
            },
            Family::Integer(op) => self.lower_integer(op, value),
            Family::Bits(op) => self.lower_bits(op, value),
            Family::Compare(_) | Family::FloatCompare(_) => self.lower_set(value),
            Family::Float(op) => self.lower_binary_float(op, value),
            Family::FloatUnary(op) => self.lower_unary_float(op, value),
            Family::Convert(op) => self.lower_conversion(op, value),
            Family::Simd(Simd::Vector) => self.lower_vector(value),
            Family::Reference(op) => match op {
                Reference::NonNull => self.lower_non_null(value),
                Reference::RefIsNull => self.lower_set(value),
                Reference::RefFunc => self.lower_ref_func(value),
            },
            Family::Load(op) => self.lower_load(op, value),
            Family::Store(op) => match op {
                Store::Store => self.lower_store(value, width(self.func.operand_type(value))),
                Store::Store8 => self.lower_store(value, Width::B),
                Store::Store16 => self.lower_store(value, Width::W),
                Store::Store32 => self.lower_store(value, Width::D),
            },
            Family::Global(op) => match op {
                Global::GlobalGet => {
                    let mem = self.global(inst.aux);
                    self.load(value, mem);
                }
                Global::GlobalSet => self.lower_global_set(inst.aux, inst.args[0]),
            },
            Family::Memory(op) => match op {
                Memory::MemorySize => self.lower_memory_size(value),
                Memory::MemoryGrow => self.lower_memory_grow(value),
                Memory::MemoryFill | Memory::MemoryCopy | Memory::MemoryInit | Memory::DataDrop => self.lower_bulk(value),
            },
            Family::Table(op) => match op {
                Table::TableGet => self.lower_table_get(value),
                Table::TableSize => self.lower_table_size(value),
                Table::TableGrow => self.lower_table_grow(value),
                Table::TableSet | Table::TableFill | Table::TableCopy | Table::TableInit | Table::ElemDrop => {
                    self.lower_bulk(value);
                }
            },
            Family::Call(Call::Call | Call::CallIndirect | Call::CallRef) => self.lower_call(value),
            Family::Accounting(op) => match op {
                Accounting::Fuel => self.lower_fuel(value),
                Accounting::Poll => self.lower_poll(),
            },
            Family::Terminator(_) => unreachable!("terminators are lowered with their edges"),
        }
    }

    fn lower_osr_slot(&mut self, value: Value) {
        if self.frame.is_none() {
            self.frame = self.code.new_reg(Class::Int);
        }
        let mem = Mem::at(self.frame, 8 * self.func.inst(value).imm as i32);
        self.load(value, mem);
    }

    /// Loads a value of `value`'s type from a slot.
    fn load(&mut self, value: Value, mem: Mem) {
        let ty = self.func.ty(value);
        let op = if ty.is_float() { Asm::Vmov } else { Asm::Mov };
        let dst = self.result(value);
        self.push(Inst::new(op, width(ty)).dst(dst).mem(mem));
    }
}
