//! Entry, blocks, edges, terminators, fuel and polls.

use super::unsupported::unsupported;
use super::{STORED, Translator, clif_type, trap_code};
use crate::ir::family::Terminator;
use crate::ir::{Block, Entry, Type, Value};
use crate::request::Refusal;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self as clif, BlockArg, BlockCall, InstBuilder, JumpTableData, types};
use std::mem::offset_of;
use weir_bytecode::Trap;
use weir_contract::{Helper, StackCtx, StoreCtx, param_places};

impl Translator<'_, '_> {
    /// Opens the entry block: reads the instance and the parameters, checks the stack, and declares the phis of all blocks.
    pub(super) fn enter(&mut self, check_stack: bool) {
        let module = self.request.module;
        for block in self.func.blocks() {
            for phi in self.func.phis(block) {
                let param = self.b.append_block_param(self.blocks[block.index()], clif_type(self.func.ty(phi)));
                self.values[phi.index()] = Some(param);
            }
        }
        let entry = self.blocks[Block::ENTRY.index()];
        self.b.append_block_params_for_function_params(entry);
        self.b.switch_to_block(entry);
        self.set_pc(module.body(self.func.index).map_or(0, |body| body.entry));
        self.instance = self.b.ins().get_pinned_reg(types::I64);
        let registers = self.b.block_params(entry).to_vec();
        self.params = match self.func.entry {
            Entry::Osr(_) => registers,
            Entry::Call => {
                let params = &module.func_type(self.func.index).params;
                self.receive(params, param_places(params), &registers)
            }
        };
        if check_stack {
            let sp = self.b.ins().get_stack_pointer(types::I64);
            let stack = self.stack_ctx();
            let limit = self.load_runtime(types::I64, stack, offset_of!(StackCtx, native_limit));
            let exhausted = self.b.ins().icmp(IntCC::UnsignedLessThan, sp, limit);
            self.trap_if(exhausted, trap_code(Trap::StackOverflow));
        }
    }

    /// A local or operand in the interpreter's frame, in an OSR body.
    pub(super) fn osr_slot(&mut self, slot: u64, ty: Type) -> clif::Value {
        self.load_runtime(clif_type(ty), self.params[0], 8 * slot as usize)
    }

    /// Translates the instructions of a block.
    pub(super) fn block(&mut self, block: Block) -> Result<(), Refusal> {
        // The entry is open already.
        if block != Block::ENTRY {
            self.b.switch_to_block(self.blocks[block.index()]);
        }
        let func = self.func;
        for &value in &func.block(block).insts {
            self.inst(block, value)?;
        }
        Ok(())
    }

    pub(super) fn terminator(&mut self, op: Terminator, block: Block, value: Value) -> Result<(), Refusal> {
        let inst = self.func.inst(value);
        self.set_pc(inst.pc);
        match op {
            Terminator::Jump => {
                let (to, args) = self.edge(block, 0);
                self.b.ins().jump(to, &args);
            }
            Terminator::Branch => {
                let condition = self.arg(value, 0);
                let (if_set, set_args) = self.edge(block, 0);
                let (if_zero, zero_args) = self.edge(block, 1);
                self.b.ins().brif(condition, if_set, &set_args, if_zero, &zero_args);
            }
            Terminator::BrTable => self.br_table(block, value),
            Terminator::Return => self.return_(value),
            Terminator::ReturnCall => self.return_call(value)?,
            Terminator::ReturnCallIndirect => self.return_call_indirect(value)?,
            Terminator::ReturnCallRef => self.return_call_ref(value)?,
            // It is not reached, as `osr_target` gives 0.
            Terminator::OsrExit => self.trap(trap_code(Trap::UnreachableCodeReached)),
            Terminator::Throw => self.throw(block, value)?,
            Terminator::ThrowRef => self.throw_ref(block, value)?,
            Terminator::Try => return Err(unsupported("handlers of exceptions".into())),
            Terminator::Trap => {
                let trap = u8::try_from(inst.aux).ok().and_then(Trap::from_code).expect("`trap` names a trap");
                // Otherwise Cranelift would merge a block that only traps into the branch to it, and give the trap the branch's
                // pc.
                self.b.ins().sequence_point();
                self.trap(trap_code(trap));
            }
        }
        Ok(())
    }

    fn br_table(&mut self, block: Block, value: Value) {
        let mut calls: Vec<BlockCall> = (0..self.func.block(block).succs.len())
            .map(|succ| {
                let (to, args) = self.edge(block, succ);
                self.b.func.dfg.block_call(to, &args)
            })
            .collect();
        let default = calls.pop().expect("there is always the default");
        let table = self.b.create_jump_table(JumpTableData::new(default, &calls));
        let index = self.arg(value, 0);
        self.b.ins().br_table(index, table);
    }

    /// Target and arguments of the edge from `from` to its successor number `succ`.
    fn edge(&self, from: Block, succ: usize) -> (clif::Block, Vec<BlockArg>) {
        let to = self.func.block(from).succs[succ];
        let target = self.blocks[to.index()];
        let index = self.edges.index(from, succ);
        let args = self.func.phis(to).map(|phi| BlockArg::Value(self.get(self.func.args(phi)[index]))).collect();
        (target, args)
    }

    /// `fuel -= cost; if fuel < 0 { trap }`
    pub(super) fn charge(&mut self, cost: u64) -> Option<clif::Value> {
        let store = self.store_ctx();
        let fuel = self.load_runtime(types::I64, store, offset_of!(StoreCtx, fuel));
        let cost = self.b.ins().iconst(types::I64, cost as i64);
        let left = self.b.ins().isub(fuel, cost);
        let flags = self.runtime_flags();
        self.b.ins().store(flags, left, store, offset_of!(StoreCtx, fuel) as i32);
        let exhausted = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, left, 0);
        self.trap_if(exhausted, trap_code(Trap::OutOfFuel));
        None
    }

    /// `if *epoch >= deadline { if poll() != 0 { trap } }`
    /// A number of the store.
    pub(super) fn store_field(&mut self, field: usize) -> clif::Value {
        let store = self.store_ctx();
        self.load_runtime(types::I64, store, field)
    }

    /// The epoch.
    pub(super) fn epoch(&mut self) -> clif::Value {
        let store = self.store_ctx();
        let epoch = self.load_fixed(types::I64, store, offset_of!(StoreCtx, epoch));
        // Other threads write it. An ordinary load in a loop without stores could be hoisted.
        let flags = self.runtime_flags();
        self.b.ins().atomic_load(types::I64, flags, epoch)
    }

    pub(super) fn poll(&mut self) -> Option<clif::Value> {
        let now = self.epoch();
        let deadline = self.store_field(offset_of!(StoreCtx, deadline));
        let passed = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, now, deadline);
        let [due, stop, on] = [(); 3].map(|()| self.b.create_block());
        self.b.ins().brif(passed, due, &[], on, &[]);
        for block in [due, stop] {
            self.b.set_cold_block(block);
        }
        self.b.switch_to_block(due);
        let status = self.call_helper(Helper::Poll, &[]);
        self.b.ins().brif(status, stop, &[], on, &[]);
        self.b.switch_to_block(stop);
        self.trap(STORED);
        self.b.switch_to_block(on);
        None
    }
}
