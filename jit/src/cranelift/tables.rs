//! Tables and references. The calls of helpers are in `memory`.

use super::{Translator, trap_code};
use crate::ir::family::Table;
use crate::ir::{Op, Value};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self as clif, InstBuilder, types};
use std::mem::offset_of;
use weir_bytecode::Trap;
use weir_contract::{Helper, TableCtx, TableEntry};

impl Translator<'_, '_> {
    fn table_ctx(&mut self, table: u32) -> clif::Value {
        self.load_fixed(types::I64, self.instance, self.layout.table(table) as usize)
    }

    /// The address of a table element. Traps with `trap` if the index is out of bounds.
    pub(super) fn table_entry(&mut self, table: u32, index: Value, trap: Trap) -> clif::Value {
        let index = self.widen(self.func.ty(index), self.get(index));
        let table = self.table_ctx(table);
        let len = self.load_runtime(types::I64, table, offset_of!(TableCtx, len));
        let outside = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, index, len);
        self.trap_if(outside, trap_code(trap));
        let entries = self.load_runtime(types::I64, table, offset_of!(TableCtx, entries));
        let size = self.b.ins().iconst(types::I64, size_of::<TableEntry>() as i64);
        let offset = self.b.ins().imul(index, size);
        let entry = self.b.ins().iadd(entries, offset);
        if !self.request.options.spectre_mitigation {
            return entry;
        }
        // Speculative execution after a failed check reads the first element.
        self.b.ins().select_spectre_guard(outside, entries, entry)
    }

    /// An operation on tables.
    pub(super) fn table(&mut self, op: Table, value: Value) -> Option<clif::Value> {
        let helper = match op {
            Table::TableGet => return Some(self.table_get(value)),
            Table::TableSize => return Some(self.table_size(self.func.inst(value).aux)),
            Table::TableGrow => return Some(self.table_grow(value)),
            Table::TableSet => const { Op::TableSet.helper() },
            Table::TableFill => const { Op::TableFill.helper() },
            Table::TableCopy => const { Op::TableCopy.helper() },
            Table::TableInit => const { Op::TableInit.helper() },
            Table::ElemDrop => const { Op::ElemDrop.helper() },
        };
        self.bulk(helper, value)
    }

    fn table_get(&mut self, value: Value) -> clif::Value {
        let inst = self.func.inst(value);
        let entry = self.table_entry(inst.aux, inst.args[0], Trap::TableOutOfBounds);
        self.load_runtime(types::I64, entry, offset_of!(TableEntry, reference))
    }

    fn table_size(&mut self, table: u32) -> clif::Value {
        let ctx = self.table_ctx(table);
        let len = self.load_runtime(types::I64, ctx, offset_of!(TableCtx, len));
        self.table_index(table, len)
    }

    fn table_grow(&mut self, value: Value) -> clif::Value {
        let inst = self.func.inst(value);
        let delta = self.widen(self.func.ty(inst.args[1]), self.arg(value, 1));
        let table = self.b.ins().iconst(types::I64, i64::from(inst.aux));
        let old = self.call_helper(Helper::TableGrow, &[table, self.arg(value, 0), delta]);
        self.table_index(inst.aux, old)
    }

    pub(super) fn ref_func(&mut self, func: u32) -> clif::Value {
        let func = self.b.ins().iconst(types::I64, i64::from(func));
        self.call_helper(Helper::RefFunc, &[func])
    }

    /// A number of elements as a value of `table`'s index type.
    fn table_index(&mut self, table: u32, elements: clif::Value) -> clif::Value {
        match self.request.module.tables[table as usize].ty.table64 {
            true => elements,
            false => self.b.ins().ireduce(types::I32, elements),
        }
    }
}
