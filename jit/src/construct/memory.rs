//! Loads, stores and the other memory instructions.

use super::builder::Builder;
use crate::ir::{Op, Type};
use weir_bytecode::instrs::MemArg;

impl Builder<'_, '_> {
    /// Translates a load or store of a value of type `ty`.
    pub(super) fn access(&mut self, op: Op, ty: Type, arg: MemArg) {
        if op.arity() == Some(1) {
            let address = self.pop();
            let value = self.emit(op, ty, arg.memory, arg.offset, &[address]);
            self.push(value);
        } else {
            let operands: [_; 2] = self.pop_array();
            self.emit(op, Type::Void, arg.memory, arg.offset, &operands);
        }
    }

    pub(super) fn memory_size(&mut self, memory: u32) {
        let size = self.emit(Op::MemorySize, self.index_type(memory), memory, 0, &[]);
        self.push(size);
    }

    pub(super) fn memory_grow(&mut self, memory: u32) {
        let delta = self.pop();
        let size = self.emit(Op::MemoryGrow, self.index_type(memory), memory, 0, &[delta]);
        self.push(size);
    }

    /// `fill`, `copy` and `init` of memories and tables; `other` is the source memory or table, or the segment.
    pub(super) fn bulk(&mut self, op: Op, target: u32, other: u32) {
        let operands: [_; 3] = self.pop_array();
        self.emit(op, Type::Void, target, u64::from(other), &operands);
    }

    /// `data.drop` and `elem.drop`.
    pub(super) fn drop_segment(&mut self, op: Op, segment: u32) {
        self.emit(op, Type::Void, 0, u64::from(segment), &[]);
    }

    fn index_type(&self, memory: u32) -> Type {
        if self.module.memories[memory as usize].memory64 { Type::I64 } else { Type::I32 }
    }
}
