//! Selection of integer division and remainder.

use super::{Lower, width};
use crate::ir::{Op, Value};
use crate::x64::insts::{Asm, Inst};

impl Lower<'_, '_> {
    pub(super) fn lower_division(&mut self, value: Value) {
        let func = self.func;
        let inst = func.inst(value);
        let op = match inst.op {
            Op::DivS => Asm::DivS,
            Op::DivU => Asm::DivU,
            Op::RemS => Asm::RemS,
            _ => Asm::RemU,
        };
        let (src, rm, dst) = (self.reg(inst.args[0]), self.reg(inst.args[1]), self.result(value));
        self.push(Inst::new(op, width(inst.ty)).dst(dst).src(src).reg(rm));
    }
}
