//! Selection by block: the values passed along edges, the entry, and the dispatch on operations.

use super::calls::CallBy;
use super::numeric::Comparison;
use super::selection::{Lower, width};
use super::value_info::ValueInfo;
use crate::analysis::frequency::TableCounts;
use crate::ir::family::{Accounting, Call, Exception, Family, Global, Leaf, Reference, Simd, Store};
use crate::ir::{Block, Calls, Entry, Op, Probability, Type, Value};
use crate::meter::{Ended, Meter};
use crate::mir::frequency::{self, Estimate};
use crate::mir::{CodeBlock, Flow, Origin, RegList, Regs, Target};
use crate::regalloc::{Class, Reg, RegSet};
use crate::request::Refusal;
use crate::x64::abi::{self, ArgLocation};
use crate::x64::code::Code;
use crate::x64::insts::{Asm, Inst, Width};
use smallvec::SmallVec;
use std::mem::offset_of;
use weir_contract::StoreCtx;

impl Lower<'_, '_> {
    /// The bytes of what it has made so far, about, and of its lists of values.
    fn size(&self, flow: &Flow) -> usize {
        let Lower { reversed, code, regs, .. } = self;
        let of_values = regs.len() * (ValueInfo::OF_VALUE + size_of::<Reg>() + size_of::<bool>());
        // Most calls pass few values.
        let of_lists = code.lists.len() * (size_of::<RegList>() + 8 * size_of::<Reg>());
        size_of_val(&**reversed) + size_of_val(&*code.blocks) + of_lists + of_values + flow.size()
    }

    /// Selects all instructions.
    pub fn run(mut self, mut flow: Flow, meter: &Meter<'_>) -> Result<Code, Refusal> {
        self.code.blocks.reserve(flow.origins.len());
        for node in (0..flow.origins.len()).rev() {
            let end = self.reversed.len() as u32;
            meter.spend_holding(1, || self.size(&flow))?;
            let args = match flow.origins[node] {
                Origin::Block(block) => self.lower_block(block, &flow, node, meter)?,
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
            let Estimate { cold, frequency, weight } = flow.estimates[node];
            let params = Regs::new();
            self.code.blocks.push(CodeBlock { insts, succs, preds, params, args, cold, probability, frequency, weight });
        }
        meter.ask()?;
        let code = self.finish(flow);
        meter.ask()?;
        Ok(code)
    }

    /// The probability of a block's first successor, if the block ends with a branch and the probability is known.
    fn probability(&self, block: Block, targets: &[u32]) -> Option<Probability> {
        let branch = self.func.terminator(block).map(|last| self.func.inst(last)).filter(|last| last.op == Op::Branch)?;
        let first = branch.probability?;
        Some(if targets[0] == 0 { first } else { first.complement() })
    }

    /// Estimates how often each block is executed.
    pub fn estimates(&self, flow: &Flow) -> Vec<Estimate> {
        let func = self.func;
        let blocks = flow.origins.len();
        let succs = |node: u32| &flow.succs[node as usize][..];
        let branch = |node: u32, k: usize| {
            let Origin::Block(block) = flow.origins[node as usize] else { return None };
            let first = self.probability(block, &flow.targets[node as usize]).filter(|_| succs(node).len() == 2)?;
            Some(if k == 0 { first } else { first.complement() }.as_f32())
        };
        let tables = (0..blocks).filter_map(|node| Some((node as u32, self.shares(flow, node)?))).collect();
        let leaves = |op: Op| matches!(op, Op::Trap | Op::OsrExit | Op::Throw | Op::ThrowRef);
        let rare = |node: u32| match flow.origins[node as usize] {
            Origin::Block(block) => {
                func.catch(block).is_some() || func.terminator(block).is_some_and(|last| leaves(func.op(last)))
            }
            Origin::Edge(block, k) => (k as usize) < func.exceptional_edges(block),
        };
        frequency::estimate(blocks, &flow.loops, succs, branch, &tables, rare)
    }

    /// How often a `br_table` at the end of a block goes to each successor, as a share: what the profile says, or else equal shares of more
    /// than two.
    fn shares(&self, flow: &Flow, node: usize) -> Option<Vec<f32>> {
        let Origin::Block(block) = flow.origins[node] else { return None };
        self.func.terminator(block).filter(|&last| self.func.op(last) == Op::BrTable)?;
        let succs = flow.succs[node].len();
        let Some(counts) = TableCounts::of(self.func, block) else {
            return (succs > 2).then(|| vec![1.0 / succs as f32; succs]);
        };
        let mut shares = vec![0.0; succs];
        flow.targets[node].iter().enumerate().for_each(|(label, &succ)| shares[succ as usize] += counts.share(label));
        Some(shares)
    }

    /// Reverses the instructions into forward order.
    fn finish(mut self, flow: Flow) -> Code {
        let total = self.reversed.len() as u32;
        self.reversed.reverse();
        self.code.blocks.reverse();
        for (block, origin) in self.code.blocks.iter_mut().zip(&flow.origins) {
            block.insts = total - block.insts.end..total - block.insts.start;
            if let Origin::Block(origin) = *origin {
                let live = self.func.phis(origin).filter(|&phi| self.info.is_live_phi(phi));
                block.params = live.map(|phi| self.regs[phi.index()]).collect();
            }
        }
        self.code.insts = self.reversed;
        self.code.order_lists();
        self.code.loops = flow.loops;
        let func = self.func;
        self.code.raises = !self.request.options.signals;
        self.code.copies = func.copies.clone();
        self.code.pc = self.request.module.body(self.func.index).map_or(0, |body| body.entry);
        self.code
    }

    /// Selects a block's instructions; returns its arguments for its successor.
    fn lower_block(&mut self, block: Block, flow: &Flow, node: usize, meter: &Meter<'_>) -> Result<Regs, Ended> {
        self.block = block;
        let func = self.func;
        let mut args = Regs::new();
        for (position, &value) in func.block(block).insts.iter().enumerate().rev() {
            meter.spend_holding(1, || self.size(flow))?;
            let inst = func.inst(value);
            self.position = position;
            self.pc = inst.pc;
            self.effects = self.info.effects_before[value.index()];
            // What it calls may grow a memory.
            if inst.op.calls() != Calls::None {
                self.load_memory_lengths();
                self.flush();
            }
            if inst.op == Op::Jump {
                args = self.lower_jump(block, 0);
            } else if self.is_wanted(value) {
                self.lower_value(value, flow, node);
            }
            self.flush();
        }
        self.load_memory_lengths();
        self.flush();
        Ok(args)
    }

    /// Selects a jump along an edge that passes arguments.
    fn lower_jump(&mut self, block: Block, k: usize) -> Regs {
        let func = self.func;
        let mut args = Regs::new();
        let live = func.phis(func.block(block).succs[k]).filter(|&phi| self.info.is_live_phi(phi));
        let live: SmallVec<[Value; 8]> = live.collect();
        let index = self.edges.index(block, k);
        for phi in live {
            self.reg(phi);
            args.push(self.reg(func.args(phi)[index]));
        }
        self.push(Inst::new(Asm::Jmp, Width::Q));
        let terminator = func.terminator(block).map(|last| func.op(last));
        if terminator == Some(Op::Try) && k + 1 == func.block(block).succs.len() {
            let after = std::mem::take(&mut self.pending);
            self.lower_protected_results(block);
            self.pending.extend(after);
        }
        args
    }

    /// Whether a value must be computed at its position.
    fn is_wanted(&self, value: Value) -> bool {
        let op = self.func.op(value);
        if op.is_defined_elsewhere() {
            false
        } else if op.is_removable() {
            !self.regs[value.index()].is_none() && self.resolve(value) == value
        } else {
            !self.folded[value.index()]
        }
    }

    /// The first instructions of the function: the arguments, and loads that are made once per call.
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
            let places: Vec<ArgLocation> = abi::params(&self.request.module.func_type(func.index).params).collect();
            for &param in func.block(Block::ENTRY).insts.iter().filter(|&&value| func.op(value) == Op::Param) {
                let reg = self.regs[param.index()];
                if reg.is_none() {
                    continue;
                }
                match places[func.inst(param).imm as usize] {
                    ArgLocation::Overflow(slot) => overflow.push((param, slot)),
                    ArgLocation::Reg(place) if func.ty(param) == Type::I32 && self.info.upper[param.index()] => {
                        let raw = self.code.new_reg(Class::Int);
                        defs.push((raw, place));
                        extended.push(Inst::new(Asm::Mov, Width::D).dst(reg).reg(raw));
                    }
                    ArgLocation::Reg(place) => defs.push((reg, place)),
                }
            }
        }
        let list = RegList {
            uses: Vec::new(),
            defs,
            clobbers: RegSet::EMPTY,
            target: Target::None,
            restore: false,
            handlers: Vec::new(),
            roots: Vec::new(),
        };
        self.push_list(Asm::Args, list);
        extended.into_iter().for_each(|inst| self.push(inst));
        self.load_overflow(&overflow);
        self.load_memory_records();
    }

    fn lower_value(&mut self, value: Value, flow: &Flow, node: usize) {
        let inst = self.func.inst(value);
        match inst.op.family() {
            Family::Leaf(op) => match op {
                Leaf::OsrSlot => self.lower_osr_slot(value),
                Leaf::Select => self.lower_select(value),
                // These are materialised at their uses, or defined by the entry, by edges or by calls.
                Leaf::Const | Leaf::Param | Leaf::Phi | Leaf::Result => {}
            },
            Family::Integer(op) => self.lower_integer(op, value),
            Family::Bits(op) => self.lower_bits(op, value),
            Family::Compare(op) => self.lower_set(value, Comparison::Integers(op)),
            Family::FloatCompare(op) => self.lower_set(value, Comparison::Floats(op)),
            Family::Float(op) => self.lower_binary_float(op, value),
            Family::FloatUnary(op) => self.lower_unary_float(op, value),
            Family::Convert(op) => self.lower_conversion(op, value),
            Family::Simd(Simd::Vector) => self.lower_vector(value),
            Family::Simd(Simd::Half) => self.lower_half(value),
            Family::Simd(Simd::Join) => self.lower_join(value),
            Family::Simd(Simd::Splice) => self.lower_splice(value),
            Family::Reference(op) => match op {
                Reference::NonNull => self.lower_non_null(value),
                Reference::RefIsNull => self.lower_set(value, Comparison::Null),
                Reference::RefFunc => self.lower_ref_func(value),
                Reference::ElementDiffers => self.lower_element_differs(value),
                Reference::FuncDiffers => self.lower_func_differs(value),
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
            Family::Memory(op) => self.lower_memory(op, value),
            Family::Table(op) => self.lower_table(op, value),
            Family::Call(op) => match op {
                Call::Call => self.lower_call(value, CallBy::Index),
                Call::CallIndirect => self.lower_call(value, CallBy::Element),
                Call::CallRef => self.lower_call(value, CallBy::Reference),
            },
            Family::Exception(Exception::Catch) => self.lower_catch(value),
            Family::Accounting(op) => match op {
                Accounting::Fuel => self.lower_fuel(value),
                Accounting::Poll => self.lower_poll(),
                Accounting::FuelLeft => self.lower_store_field(value, offset_of!(StoreCtx, fuel)),
                Accounting::Deadline => self.lower_store_field(value, offset_of!(StoreCtx, deadline)),
                Accounting::Epoch => self.lower_epoch(value),
                Accounting::Miss => self.lower_miss(value),
                Accounting::OsrTick => self.lower_osr_tick(value),
                Accounting::OsrTarget => self.lower_osr_target(value),
                Accounting::OsrStore => self.lower_osr_store(value),
            },
            Family::Terminator(op) => self.lower_terminator(op, value, flow, node),
        }
    }
}
