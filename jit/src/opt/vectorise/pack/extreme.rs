//! Selections of the lesser or the greater of two integers, and values that are comparisons.

use crate::ir::family::{Compare, Family};
use crate::ir::{Func, Op, Value};
use weir_bytecode::lanes;

/// A selection of the lesser or the greater of two integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extreme {
    /// Whether it selects the lesser one.
    pub less: bool,
    /// Whether the numbers are signed.
    pub signed: bool,
}

impl Extreme {
    /// The selection that `value` is, and its operands.
    pub fn of(func: &Func<'_>, value: Value) -> Option<(Extreme, Value, Value)> {
        let &[condition, a, b] = func.args(value) else { return None };
        let Family::Compare(op) = func.op(condition).family() else { return None };
        let &[p, q] = func.args(condition) else { return None };
        if func.op(value) != Op::Select || (a, b) != (p, q) && (b, a) != (p, q) {
            return None;
        }
        let (less, signed) = match op {
            Compare::LtS | Compare::LeS => (true, true),
            Compare::LtU | Compare::LeU => (true, false),
            Compare::GtS | Compare::GeS => (false, true),
            Compare::GtU | Compare::GeU => (false, false),
            Compare::Eqz | Compare::Eq | Compare::Ne => return None,
        };
        Some((Extreme { less: less == ((a, b) == (p, q)), signed }, a, b))
    }

    /// The operation on lanes.
    pub fn lanes(self) -> lanes::Integer {
        match (self.less, self.signed) {
            (true, true) => lanes::Integer::MinS,
            (true, false) => lanes::Integer::MinU,
            (false, true) => lanes::Integer::MaxS,
            (false, false) => lanes::Integer::MaxU,
        }
    }

    /// The comparison of the selected number with the other one.
    pub fn compare(self) -> Op {
        match (self.less, self.signed) {
            (true, true) => Op::LtS,
            (true, false) => Op::LtU,
            (false, true) => Op::GtS,
            (false, false) => Op::GtU,
        }
    }
}

/// Whether a value is 0 or 1 because it is a comparison, or a combination of some.
pub(super) fn is_truth(func: &Func<'_>, value: Value) -> bool {
    let compares = |value: Value| matches!(func.op(value).family(), Family::Compare(_) | Family::FloatCompare(_));
    compares(value) || matches!(func.op(value), Op::And | Op::Or) && func.args(value).iter().all(|&arg| compares(arg))
}
