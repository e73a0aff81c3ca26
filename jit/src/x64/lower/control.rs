//! Selection of terminators.

use super::calls::CallBy;
use super::selection::Lower;
use crate::ir::Value;
use crate::ir::family::Terminator;
use crate::mir::Flow;
use crate::regalloc::Class;
use crate::seeded::{self, Fault};
use crate::x64::insts::{Asm, Inst, Width};

impl Lower<'_, '_> {
    /// Selects every terminator except `jump`.
    pub(super) fn lower_terminator(&mut self, op: Terminator, value: Value, flow: &Flow, node: usize) {
        let inst = self.func.inst(value);
        match op {
            // All edges of a branch may have become one.
            Terminator::Branch | Terminator::BrTable if flow.succs[node].len() == 1 => self.push(Inst::new(Asm::Jmp, Width::Q)),
            Terminator::Branch => {
                let cond = self.flags(inst.args[0]);
                self.push(Inst::new(Asm::Jcc, Width::Q).cond(cond));
            }
            Terminator::BrTable => {
                let index = self.reg(inst.args[0]);
                let (a, b) = (self.code.new_reg(Class::Int), self.code.new_reg(Class::Int));
                self.code.tables.push(flow.targets[node].to_vec());
                let table = self.code.tables.len() as i64 - 1;
                let op = if self.request.options.spectre_mitigation && !seeded::is(Fault::JumpMaskDropped) {
                    Asm::JmpTableMasked
                } else {
                    Asm::JmpTable
                };
                self.push(Inst::new(op, Width::D).dst(a).src(b).reg(index).imm(table));
            }
            Terminator::Return => self.lower_return(value),
            Terminator::ReturnCall => self.lower_tail_call(value, CallBy::Index),
            Terminator::ReturnCallIndirect => self.lower_tail_call(value, CallBy::Element),
            Terminator::ReturnCallRef => self.lower_tail_call(value, CallBy::Reference),
            Terminator::OsrExit => self.lower_osr_exit(value),
            Terminator::Throw => self.lower_throw(value),
            Terminator::ThrowRef => self.lower_throw_ref(value),
            // The call ends the block.
            Terminator::Try => {}
            // Its arguments are those of the edge.
            Terminator::Jump => self.push(Inst::new(Asm::Jmp, Width::Q)),
            Terminator::Trap => self.push(Inst::new(Asm::Ud2, Width::Q).imm(inst.aux.into())),
        }
    }
}
