//! Selection of throws, of calls whose exceptions have handlers, and of landing blocks.
//!
//! A call that ends its block defines no register there: its exceptional edges leave from the call itself. The first instruction of the
//! block of its normal edge defines the registers of the results.

use super::calls::helper_args;
use super::selection::Lower;
use crate::ir::{Block, NO_TAG, Op, Type, Value};
use crate::mir::{RegList, Target};
use crate::regalloc::{Reg, RegSet};
use crate::x64::abi;
use crate::x64::insts::{Asm, Mem};
use weir_bytecode::ValType;
use weir_contract::{Helper, slot_words};

impl Lower<'_, '_> {
    /// Pushes a call that ends the current block, with the handlers of its exceptional edges.
    pub(super) fn push_protected(&mut self, op: Asm, list: RegList) {
        let landings = &self.func.block(self.block).succs[..self.func.exceptional_edges(self.block)];
        let entry = |&landing: &Block| {
            let catch = self.func.catch(landing).expect("the edge leads to a landing block");
            self.func.inst(catch).imm as u32
        };
        let handlers: Vec<u32> = landings.iter().map(entry).collect();
        self.code.restores |= !handlers.is_empty();
        self.push_list(op, RegList { handlers, ..list });
    }

    /// Selects the results of the call that is protected by the `try` at the end of `block`, at the beginning of its normal edge.
    pub(super) fn lower_protected_results(&mut self, block: Block) {
        let func = self.func;
        let insts = &func.block(block).insts;
        let position = insts[..insts.len() - 1].iter().rposition(|&value| func.op(value) != Op::Result).expect("a call");
        let call = insts[position];
        self.pc = func.inst(call).pc;
        let types = &self.request.module.types[self.callee_type(call) as usize].results;
        let (defs, extended, overflow) = self.receive(call, block, position, types);
        if !defs.is_empty() {
            let (uses, clobbers, target) = (Vec::new(), RegSet::EMPTY, Target::None);
            self.push_list(
                Asm::Results,
                RegList { uses, defs, clobbers, target, restore: false, handlers: Vec::new(), roots: Vec::new() },
            );
        }
        extended.into_iter().for_each(|inst| self.push(inst));
        self.load_overflow(&overflow);
    }

    /// The type index of the function that `call` calls.
    fn callee_type(&self, call: Value) -> u32 {
        let inst = self.func.inst(call);
        if inst.op == Op::Call { self.request.module.funcs[inst.aux as usize] } else { inst.aux }
    }

    /// `throw`
    pub(super) fn lower_throw(&mut self, value: Value) {
        let inst = self.func.inst(value);
        let words = slot_words(&self.request.module.tag_type(inst.aux).params);
        if !inst.args.is_empty() {
            let area = self.overflow();
            for (i, &arg) in inst.args.iter().enumerate() {
                let reg = self.reg(arg);
                self.store_slot(reg, Mem::at(area, (8 * i * words) as i32));
            }
        }
        let at = self.constant_reg(u64::from(inst.aux) | u64::from(inst.pc) << 32, Type::I64);
        self.end_with_throw(Helper::Throw, at);
    }

    /// `throw_ref`
    pub(super) fn lower_throw_ref(&mut self, value: Value) {
        let reference = self.reg(self.func.inst(value).args[0]);
        self.end_with_throw(Helper::ThrowRef, reference);
    }

    fn end_with_throw(&mut self, helper: Helper, what: Reg) {
        self.code.calls = true;
        let (uses, target) = (helper_args(helper, &[what]), Target::Helper(helper));
        let clobbers = abi::CALLER_SAVED;
        self.push_protected(
            Asm::Throw,
            RegList { uses, defs: Vec::new(), clobbers, target, restore: false, handlers: Vec::new(), roots: Vec::new() },
        );
    }

    /// Loads what a handler passes on, which the vm has written to the overflow slots: the payload as the parameters of a call, then the
    /// reference.
    pub(super) fn lower_catch(&mut self, value: Value) {
        let tag = self.func.inst(value).aux;
        let payload: &[ValType] = if tag == NO_TAG { &[] } else { &self.request.module.tag_type(tag).params };
        let words = slot_words(payload) as u32;
        let results = self.results(value, self.block, self.position);
        let slots: Vec<(Value, u32)> =
            (0..).zip(results).filter_map(|(i, result): (u32, _)| Some((result?, i * words))).collect();
        self.load_overflow(&slots);
    }
}
