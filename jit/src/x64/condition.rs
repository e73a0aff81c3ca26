//! Conditions of integer comparisons.

use super::insts::Cond;
use crate::ir::family::Compare;

/// The condition that is true after comparing two integers exactly when `op` is; for [`Compare::Eqz`], after comparing its
/// operand with zero.
pub fn integer_condition(op: Compare) -> Cond {
    match op {
        Compare::Eq | Compare::Eqz => Cond::E,
        Compare::Ne => Cond::NE,
        Compare::LtS => Cond::L,
        Compare::LtU => Cond::B,
        Compare::GtS => Cond::G,
        Compare::GtU => Cond::A,
        Compare::LeS => Cond::LE,
        Compare::LeU => Cond::BE,
        Compare::GeS => Cond::GE,
        Compare::GeU => Cond::AE,
    }
}
