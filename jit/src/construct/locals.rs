//! Locals and globals.

use super::builder::Builder;
use crate::ir::{Op, Type, Value};

impl Builder<'_, '_> {
    pub(super) fn local_get(&mut self, local: u32) {
        let (ty, block) = (self.body.locals[local as usize].into(), self.here());
        let value = self.ssa.read_variable(&mut self.func, &mut self.vars, local, block, ty);
        self.push(value);
    }

    pub(super) fn local_set(&mut self, local: u32) {
        let value = self.pop();
        self.write_local(local, value);
    }

    pub(super) fn local_tee(&mut self, local: u32) {
        let value = self.pop();
        self.write_local(local, value);
        self.push(value);
    }

    pub(super) fn write_local(&mut self, local: u32, value: Value) {
        self.vars.assignments.assign(local, self.position());
        self.ssa.write_variable(local, self.here(), value);
    }

    pub(super) fn global_get(&mut self, global: u32) {
        let ty = self.module.globals[global as usize].value.into();
        let value = self.emit(Op::GlobalGet, ty, global, 0, &[]);
        self.push(value);
    }

    pub(super) fn global_set(&mut self, global: u32) {
        let value = self.pop();
        self.emit(Op::GlobalSet, Type::Void, global, 0, &[value]);
    }
}
