//! References and tables. Bulk table operations are in `memory`.

use super::builder::Builder;
use crate::ir::{Op, Type, Value};

impl Builder<'_, '_> {
    pub(super) fn ref_is_null(&mut self) {
        let reference = self.pop();
        let value = self.is_null(reference);
        self.push(value);
    }

    /// Returns 1 if a reference is null, else 0.
    pub(super) fn is_null(&mut self, reference: Value) -> Value {
        match self.func.as_const(reference).filter(|_| self.options.refinements.fold) {
            // Null is the only constant reference.
            Some(bits) => self.constant(Type::I32, u64::from(bits == 0)),
            None => self.shared(Op::RefIsNull, Type::I32, &[reference]),
        }
    }

    pub(super) fn ref_func(&mut self, func: u32) {
        let reference = self.emit(Op::RefFunc, Type::Ref, func, 0, &[]);
        self.push(reference);
    }

    pub(super) fn table_get(&mut self, table: u32) {
        let index = self.pop();
        let ty = self.module.tables[table as usize].ty.element.heap.into();
        let reference = self.emit(Op::TableGet, ty, table, 0, &[index]);
        self.push(reference);
    }

    pub(super) fn table_set(&mut self, table: u32) {
        let operands: [_; 2] = self.pop_array();
        self.emit(Op::TableSet, Type::Void, table, 0, &operands);
    }

    pub(super) fn table_size(&mut self, table: u32) {
        let size = self.emit(Op::TableSize, self.table_index(table), table, 0, &[]);
        self.push(size);
    }

    pub(super) fn table_grow(&mut self, table: u32) {
        let operands: [_; 2] = self.pop_array();
        let size = self.emit(Op::TableGrow, self.table_index(table), table, 0, &operands);
        self.push(size);
    }

    /// The type of indices into `table`.
    fn table_index(&self, table: u32) -> Type {
        if self.module.tables[table as usize].ty.table64 { Type::I64 } else { Type::I32 }
    }
}
