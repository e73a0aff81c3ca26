//! Traps: faulting instructions, or, without signal handlers, calls of [`Helper::Raise`].

use super::{STORED, Translator, trap_code};
use crate::ir::family::Integer;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self as clif, InstBuilder, TrapCode, types};
use std::mem::offset_of;
use weir_bytecode::{Trap, semantics};
use weir_contract::{Helper, StoreCtx};

impl Translator<'_, '_> {
    /// Ends the current block.
    pub(super) fn trap(&mut self, code: TrapCode) {
        if !self.request.options.signals {
            if code != STORED {
                let store = self.store_ctx();
                let flags = self.runtime_flags();
                let trap = self.b.ins().iconst(types::I64, i64::from(code.as_raw().get()));
                self.b.ins().store(flags, trap, store, offset_of!(StoreCtx, trap) as i32);
            }
            self.call_helper(Helper::Raise, &[]);
        }
        self.b.ins().trap(code);
    }

    /// Stores the number or address that a trap after it is because of. A block for each trap would cost more than a store for each check: see
    /// [`MAX_BLOCKS`](super::MAX_BLOCKS).
    pub(super) fn note_operand(&mut self, operand: clif::Value) {
        let (store, flags) = (self.store_ctx(), self.runtime_flags());
        self.b.ins().store(flags, operand, store, offset_of!(StoreCtx, operand) as i32);
    }

    /// Traps if `condition` is not 0.
    pub(super) fn trap_if(&mut self, condition: clif::Value, code: TrapCode) {
        if self.request.options.signals {
            self.b.ins().trapnz(condition, code);
            return;
        }
        let [wrong, right] = [(); 2].map(|()| self.b.create_block());
        self.b.ins().brif(condition, wrong, &[], right, &[]);
        self.b.set_cold_block(wrong);
        self.b.switch_to_block(wrong);
        self.trap(code);
        self.b.switch_to_block(right);
    }

    /// Without signal handlers, checks a division in advance, because Cranelift's instructions would fault.
    pub(super) fn check_division(&mut self, op: Integer, a: clif::Value, b: clif::Value) {
        let divides = match op {
            Integer::DivS | Integer::DivU | Integer::RemS | Integer::RemU => true,
            Integer::Add | Integer::Sub | Integer::Mul | Integer::MulHigh => false,
            Integer::And | Integer::Or | Integer::Xor => false,
            Integer::Shl | Integer::ShrS | Integer::ShrU | Integer::Rotl | Integer::Rotr => false,
        };
        if self.request.options.signals || !divides {
            return;
        }
        let by_zero = self.b.ins().icmp_imm_u(IntCC::Equal, b, 0);
        self.trap_if(by_zero, trap_code(Trap::IntegerDivisionByZero));
        if op == Integer::DivS {
            let ty = self.b.func.dfg.value_type(a);
            let least = self.b.ins().iconst(ty, if ty == types::I32 { i64::from(i32::MIN as u32) } else { i64::MIN });
            let is_least = self.b.ins().icmp(IntCC::Equal, a, least);
            let by_minus_one = self.b.ins().icmp_imm_s(IntCC::Equal, b, -1);
            let overflows = self.b.ins().band(is_least, by_minus_one);
            self.trap_if(overflows, trap_code(Trap::IntegerOverflow));
        }
    }

    /// In the same way, checks the truncation of a float to an integer of type `ty`.
    pub(super) fn check_truncation(&mut self, signed: bool, ty: clif::Type, a: clif::Value) {
        if self.request.options.signals {
            return;
        }
        // The bounds, which are exclusive, are f64 even if `a` is f32, because every f32 is also an f64.
        let from = self.b.func.dfg.value_type(a);
        let a = if from == types::F32 { self.b.ins().fpromote(types::F64, a) } else { a };
        let is_nan = self.b.ins().fcmp(FloatCC::Unordered, a, a);
        self.trap_if(is_nan, trap_code(Trap::BadConversionToInteger));
        let (above, below) = semantics::trunc_range(ty.bits(), signed);
        for (condition, bound) in [(FloatCC::LessThanOrEqual, above), (FloatCC::GreaterThanOrEqual, below)] {
            let bound = self.b.ins().f64const(bound);
            let outside = self.b.ins().fcmp(condition, a, bound);
            self.trap_if(outside, trap_code(Trap::IntegerOverflow));
        }
    }
}
