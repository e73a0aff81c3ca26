//! Selection of operations on tables and references. Bulk operations are with the other calls of helpers.

use super::selection::{Lower, width};
use crate::ir::family::Table;
use crate::ir::{Op, Type, Value};
use crate::regalloc::{Class, Reg};
use crate::seeded::{self, Fault};
use crate::x64::abi;
use crate::x64::insts::{Asm, Cond, Inst, Mem, Width};
use std::mem::offset_of;
use weir_bytecode::Trap;
use weir_contract::{Helper, TableCtx, TableEntry};

impl Lower<'_, '_> {
    /// The address of a table element. Traps with `trap` if the index is out of bounds. Speculative execution after that accesses the first
    /// element.
    pub(super) fn table_entry(&mut self, table: u32, index: Value, trap: Trap) -> Reg {
        let mut index = self.reg(index);
        let masked = self.request.options.spectre_mitigation && !seeded::is(Fault::TableMaskDropped);
        let first = masked.then(|| self.constant_reg(0, Type::I64));
        let record = self.field(abi::INSTANCE, self.layout.table(table) as usize);
        if !seeded::is(Fault::TableCheckDropped) {
            let compare = Inst::new(Asm::Cmp, Width::Q);
            self.push(match self.request.module.own_elements(table).and_then(|len| i32::try_from(len).ok()) {
                Some(len) => compare.reg(index).imm(len.into()),
                None => compare.src(index).mem(Mem::at(record, offset_of!(TableCtx, len) as i32)),
            });
            self.trap_if(Cond::AE, trap);
            index = first.map_or(index, |first| self.mask_speculation(Cond::AE, index, first));
        }
        let (offset, entry) = (self.code.new_reg(Class::Int), self.code.new_reg(Class::Int));
        const { assert!(size_of::<TableEntry>() == 1 << 5) };
        self.push(Inst::new(Asm::Shl, Width::Q).dst(offset).src(index).imm(5));
        let entries = Mem::at(record, offset_of!(TableCtx, entries) as i32);
        self.push(Inst::new(Asm::Add, Width::Q).dst(entry).src(offset).mem(entries));
        entry
    }

    /// Selects operations on tables.
    pub(super) fn lower_table(&mut self, op: Table, value: Value) {
        let helper = match op {
            Table::TableGet => return self.lower_table_get(value),
            Table::TableSize => return self.lower_table_size(value),
            Table::TableGrow => return self.lower_table_grow(value),
            Table::TableSet => const { Op::TableSet.helper() },
            Table::TableFill => const { Op::TableFill.helper() },
            Table::TableCopy => const { Op::TableCopy.helper() },
            Table::TableInit => const { Op::TableInit.helper() },
            Table::ElemDrop => const { Op::ElemDrop.helper() },
        };
        self.lower_bulk(helper, value);
    }

    fn lower_table_get(&mut self, value: Value) {
        let inst = self.func.inst(value);
        let entry = self.table_entry(inst.aux, inst.args[0], Trap::TableOutOfBounds);
        self.load(value, Mem::at(entry, offset_of!(TableEntry, reference) as i32));
    }

    fn lower_table_size(&mut self, value: Value) {
        let record = self.field(abi::INSTANCE, self.layout.table(self.func.inst(value).aux) as usize);
        self.load(value, Mem::at(record, offset_of!(TableCtx, len) as i32));
    }

    fn lower_table_grow(&mut self, value: Value) {
        let inst = self.func.inst(value);
        let table = self.constant_reg(inst.aux.into(), Type::I64);
        let (reference, delta) = (self.reg(inst.args[0]), self.reg(inst.args[1]));
        let old = self.call_helper(Helper::TableGrow, &[table, reference, delta]);
        let dst = self.result(value);
        self.push(Inst::new(Asm::Mov, width(inst.ty)).dst(dst).reg(old));
    }

    /// `element_differs`
    pub(super) fn lower_element_differs(&mut self, value: Value) {
        let inst = self.func.inst(value);
        let entry = self.table_entry(inst.imm as u32, inst.args[0], Trap::TableOutOfBounds);
        let own = self.request.module.own_elements(inst.imm as u32).is_some();
        self.lower_differs(value, entry, own);
    }

    /// `func_differs`
    pub(super) fn lower_func_differs(&mut self, value: Value) {
        let reference = self.reg(self.func.inst(value).args[0]);
        self.lower_differs(value, reference, false);
    }

    /// The bits in which cell and instance of the table element, or of the `FuncRef`, at `found` differ from those of a function of this
    /// instance, or of the cell alone if it is one of them. An entry cell belongs to one function of one module.
    fn lower_differs(&mut self, value: Value, found: Reg, own: bool) {
        let func = self.func.inst(value).aux;
        let cell = self.code.new_reg(Class::Int);
        self.push(Inst::new(Asm::EntryCell, Width::Q).dst(cell).imm(func.into()));
        let differs = Inst::new(Asm::Xor, Width::Q).src(cell).mem(Mem::at(found, offset_of!(TableEntry, cell) as i32));
        if own {
            let dst = self.result(value);
            return self.push(differs.dst(dst));
        }
        let [other_cell, here, instance] = [(); 3].map(|()| self.code.new_reg(Class::Int));
        self.push(differs.dst(other_cell));
        self.push(Inst::new(Asm::Mov, Width::Q).dst(here).reg(abi::INSTANCE));
        let other = Mem::at(found, offset_of!(TableEntry, instance) as i32);
        self.push(Inst::new(Asm::Xor, Width::Q).dst(instance).src(here).mem(other));
        let dst = self.result(value);
        self.push(Inst::new(Asm::Or, Width::Q).dst(dst).src(other_cell).reg(instance));
    }

    pub(super) fn lower_ref_func(&mut self, value: Value) {
        let func = self.constant_reg(self.func.inst(value).aux.into(), Type::I64);
        let reference = self.call_helper(Helper::RefFunc, &[func]);
        let dst = self.result(value);
        self.push(Inst::new(Asm::Mov, Width::Q).dst(dst).reg(reference));
    }
}
