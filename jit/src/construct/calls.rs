//! Calls.

use super::builder::Builder;
use crate::ir::{Op, Type, Value};
use weir_bytecode::FuncType;

impl<'m> Builder<'_, 'm> {
    pub(super) fn call(&mut self, func: u32) {
        let ty = self.module.func_type(func);
        let args = self.pop_list(ty.params.len());
        self.returning(Op::Call, ty, func, 0, &args);
        self.spare_operands = args;
    }

    pub(super) fn call_indirect(&mut self, ty: u32, table: u32) {
        let (index, ty) = (ty, &self.module.types[ty as usize]);
        let args = self.pop_list(ty.params.len() + 1);
        self.returning(Op::CallIndirect, ty, index, table, &args);
        self.spare_operands = args;
    }

    pub(super) fn return_call(&mut self, func: u32) {
        let args = self.pop_list(self.module.func_type(func).params.len());
        self.terminate(Op::ReturnCall, func, 0, &args);
        self.block = None;
    }

    pub(super) fn return_call_indirect(&mut self, ty: u32, table: u32) {
        let args = self.pop_list(self.module.types[ty as usize].params.len() + 1);
        self.terminate(Op::ReturnCallIndirect, ty, u64::from(table), &args);
        self.block = None;
    }

    pub(super) fn call_ref(&mut self, ty: u32) {
        let func_type = &self.module.types[ty as usize];
        let args = self.pop_referenced(ty);
        self.returning(Op::CallRef, func_type, ty, 0, &args);
    }

    pub(super) fn return_call_ref(&mut self, ty: u32) {
        let args = self.pop_referenced(ty);
        self.terminate(Op::ReturnCallRef, ty, 0, &args);
        self.block = None;
    }

    /// Pops the arguments of a function of type `ty` and, last, the reference to it, checked not to be null.
    fn pop_referenced(&mut self, ty: u32) -> Vec<Value> {
        let mut args = self.pop_list(self.module.types[ty as usize].params.len() + 1);
        if let Some(reference) = args.last_mut() {
            *reference = self.non_null(*reference);
        }
        args
    }

    /// Checks that the reference is not null, and returns it.
    pub(super) fn non_null(&mut self, reference: Value) -> Value {
        if matches!(self.func.op(reference), Op::NonNull | Op::RefFunc) {
            return reference;
        }
        let ty = self.func.ty(reference);
        self.emit(Op::NonNull, ty, 0, 0, &[reference])
    }

    /// Emits a call that returns, and pushes its results.
    fn returning(&mut self, op: Op, ty: &'m FuncType, aux: u32, table: u32, args: &[Value]) {
        let first = ty.results.first().map_or(Type::Void, |&ty| ty.into());
        let call = self.emit(op, first, aux, u64::from(table), args);
        if first != Type::Void {
            self.push(call);
        }
        for (i, &ty) in ty.results.iter().enumerate().skip(1) {
            let result = self.emit(Op::Result, ty.into(), 0, i as u64, &[call]);
            self.push(result);
        }
        self.protect();
    }
}
