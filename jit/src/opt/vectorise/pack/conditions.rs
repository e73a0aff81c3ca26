//! Conditions, selections, and the lesser and greater of two numbers.

use super::extreme::{Extreme, is_truth};
use super::{Packer, whole};
use crate::ir::Value;
use crate::ir::family::{Compare, Family, FloatCompare, Integer};
use crate::opt::vectorise::work::Node;
use weir_bytecode::lanes::{self, LaneOp, Whole};

impl Packer<'_, '_, '_> {
    /// All ones in the lanes of the copies in which these values, of type i32, are not zero.
    pub(super) fn mask(&mut self, values: &[Value]) -> Option<usize> {
        // Conditions that share operands would otherwise have exponentially many masks.
        if let Some(&known) = self.masks.get(values) {
            return Some(known);
        }
        let node = self.mask_new(values)?;
        self.masks.insert(values.to_vec(), node);
        Some(node)
    }

    fn mask_new(&mut self, values: &[Value]) -> Option<usize> {
        let func = self.func;
        let op = self.operation(values)?;
        let compared = func.operand_type(values[0]);
        if !values.iter().all(|&value| func.operand_type(value) == compared) {
            return None;
        }
        match op.family() {
            Family::Compare(Compare::Eqz) => {
                let args = self.args(values, 0);
                if args.iter().all(|&arg| is_truth(func, arg)) {
                    let mask = self.mask(&args)?;
                    return Some(self.node(Node::Op(whole(Whole::Not)?, vec![mask])));
                }
                self.against_zero(lanes::Compare::Eq, &args)
            }
            Family::Compare(op) => {
                let pairs: Vec<Value> = values.iter().flat_map(|&value| func.args(value).iter().copied()).collect();
                if !self.are_whole(&pairs) {
                    return None;
                }
                let signed = self.fills_lane(compared);
                let op = match op {
                    Compare::Eqz => return None,
                    Compare::Eq => lanes::Compare::Eq,
                    Compare::Ne => lanes::Compare::Ne,
                    // In lanes narrower than the values the numbers are not negative.
                    Compare::LtS if signed => lanes::Compare::LtS,
                    Compare::GtS if signed => lanes::Compare::GtS,
                    Compare::LeS if signed => lanes::Compare::LeS,
                    Compare::GeS if signed => lanes::Compare::GeS,
                    Compare::LtS | Compare::LtU => lanes::Compare::LtU,
                    Compare::GtS | Compare::GtU => lanes::Compare::GtU,
                    Compare::LeS | Compare::LeU => lanes::Compare::LeU,
                    Compare::GeS | Compare::GeU => lanes::Compare::GeU,
                };
                self.apply(self.lane_op(LaneOp::Compare(op), false)?, values, false)
            }
            Family::FloatCompare(op) if self.fills_lane(compared) => {
                let op = match op {
                    FloatCompare::Feq => lanes::FloatCompare::Eq,
                    FloatCompare::Fne => lanes::FloatCompare::Ne,
                    FloatCompare::Flt => lanes::FloatCompare::Lt,
                    FloatCompare::Fgt => lanes::FloatCompare::Gt,
                    FloatCompare::Fle => lanes::FloatCompare::Le,
                    FloatCompare::Fge => lanes::FloatCompare::Ge,
                };
                self.apply(self.lane_op(LaneOp::FloatCompare(op), true)?, values, false)
            }
            Family::Integer(op @ (Integer::And | Integer::Or)) if values.iter().all(|&value| is_truth(func, value)) => {
                let [a, b] = [0, 1].map(|i| self.args(values, i));
                let (a, b) = (self.mask(&a)?, self.mask(&b)?);
                let both = if op == Integer::And { Whole::And } else { Whole::Or };
                Some(self.node(Node::Op(whole(both)?, vec![a, b])))
            }
            Family::Leaf(_) | Family::Integer(_) | Family::Bits(_) | Family::Convert(_) | Family::Load(_) => {
                self.against_zero(lanes::Compare::Ne, values)
            }
            Family::Float(_) | Family::FloatUnary(_) | Family::FloatCompare(_) | Family::Simd(_) | Family::Reference(_) => None,
            Family::Store(_) | Family::Memory(_) | Family::Global(_) | Family::Table(_) | Family::Call(_) => None,
            Family::Exception(_) | Family::Accounting(_) | Family::Terminator(_) => None,
        }
    }

    /// A comparison with zero of values all of whose bits are in a lane, or zero.
    fn against_zero(&mut self, compare: lanes::Compare, values: &[Value]) -> Option<usize> {
        if !self.are_whole(values) {
            return None;
        }
        let (opcode, compared) = (self.lane_op(LaneOp::Compare(compare), false)?, self.pack(values)?);
        let zero = self.node(Node::Number(0));
        Some(self.node(Node::Op(opcode, vec![compared, zero])))
    }

    /// A selection in each lane.
    pub(super) fn selection(&mut self, values: &[Value]) -> Option<usize> {
        let func = self.func;
        if let Some((op, ..)) = Extreme::of(func, values[0]) {
            let found = values.iter().map(|&value| Extreme::of(func, value).filter(|found| found.0 == op));
            if let Some(found) = found.collect::<Option<Vec<_>>>() {
                let (a, b): (Vec<Value>, Vec<Value>) = found.iter().map(|&(_, a, b)| (a, b)).unzip();
                // In lanes narrower than the values the numbers are not negative.
                let signed = op.signed && self.fills_lane(func.ty(values[0]));
                let op = Extreme { signed, ..op }.lanes();
                if let Some(opcode) = self.lane_op(LaneOp::Integer(op), false)
                    && self.are_whole(&a)
                    && self.are_whole(&b)
                {
                    let (a, b) = (self.pack(&a)?, self.pack(&b)?);
                    return Some(self.node(Node::Op(opcode, vec![a, b])));
                }
            }
        }
        let (conditions, if_set, if_zero) = (self.args(values, 0), self.args(values, 1), self.args(values, 2));
        let mask = self.mask(&conditions)?;
        // If one side is zero, the mask applied to the other side is the selection.
        let zero = |values: &[Value]| values.iter().all(|&value| func.as_const(value) == Some(0));
        if zero(&if_zero) {
            let set = self.pack(&if_set)?;
            return Some(self.node(Node::Op(whole(Whole::And)?, vec![set, mask])));
        }
        if zero(&if_set) {
            let rest = self.pack(&if_zero)?;
            return Some(self.node(Node::Op(whole(Whole::Andnot)?, vec![rest, mask])));
        }
        let (a, b) = (self.pack(&if_set)?, self.pack(&if_zero)?);
        Some(self.node(Node::Op(whole(Whole::Bitselect)?, vec![a, b, mask])))
    }
}
