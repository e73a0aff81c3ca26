//! Operations on integers. Shifts, rotations and quotients need more than the low bits of their operands.

use super::{Packer, whole};
use crate::ir::family::Integer;
use crate::ir::{Type, Value};
use crate::opt::vectorise::work::{Count, Node};
use weir_bytecode::lanes::{self, LaneOp, Shift, Whole};

impl Packer<'_, '_, '_> {
    /// An operation on integers in each lane.
    pub(super) fn integers(&mut self, op: Integer, values: &[Value]) -> Option<usize> {
        use lanes::Integer as Lanes;
        match op {
            Integer::Add => self.apply(self.lane_op(LaneOp::Integer(Lanes::Add), false)?, values, true),
            Integer::Sub => self.apply(self.lane_op(LaneOp::Integer(Lanes::Sub), false)?, values, false),
            Integer::Mul => self.apply(self.lane_op(LaneOp::Integer(Lanes::Mul), false)?, values, true),
            Integer::And if self.constant(values).is_some_and(|mask| self.has_all_ones(mask)) => self.pack(&self.args(values, 0)),
            Integer::And => self.apply(whole(Whole::And)?, values, true),
            Integer::Or => self.apply(whole(Whole::Or)?, values, true),
            Integer::Xor => self.apply(whole(Whole::Xor)?, values, true),
            Integer::Shl => self.shift(Shift::Shl, values),
            Integer::ShrS => self.shift(Shift::ShrS, values),
            Integer::ShrU => self.shift(Shift::ShrU, values),
            Integer::Rotl | Integer::Rotr => self.rotation(op, values),
            Integer::DivS => self.halving(values),
            Integer::DivU => self.division(values),
            Integer::MulHigh | Integer::RemS | Integer::RemU => None,
        }
    }

    /// The constant that is the second operand of each copy.
    fn constant(&self, values: &[Value]) -> Option<u64> {
        let of = |&value: &Value| self.func.as_const(self.func.args(value)[1]);
        let first = of(&values[0])?;
        values.iter().all(|value| of(value) == Some(first)).then_some(first)
    }

    /// Whether a mask has no zeros in the bits of a lane.
    fn has_all_ones(&self, mask: u64) -> bool {
        mask.trailing_ones() >= 8 * self.layout.lane as u32
    }

    /// A shift of a vector by a constant below the width of the lanes.
    pub(super) fn shifted(&mut self, op: Shift, node: usize, count: u64) -> Option<usize> {
        let opcode = self.lane_op(LaneOp::Shift(op), false)?;
        Some(if count == 0 { node } else { self.node(Node::Shift(opcode, node, Count::Number(count))) })
    }

    /// A rotation of values that fill a lane by a constant.
    fn rotation(&mut self, op: Integer, values: &[Value]) -> Option<usize> {
        let bits = 8 * self.layout.lane;
        let count = self.constant(values).filter(|_| self.fills_lane(self.func.ty(values[0])))? % bits;
        let left = if op == Integer::Rotl { count } else { (bits - count) % bits };
        let node = self.pack(&self.args(values, 0))?;
        if left == 0 {
            return Some(node);
        }
        let (up, down) = (self.shifted(Shift::Shl, node, left)?, self.shifted(Shift::ShrU, node, bits - left)?);
        Some(self.node(Node::Op(whole(Whole::Or)?, vec![up, down])))
    }

    /// A signed division by a power of two of values that fill a lane: a negative number is first increased by the divisor minus 1,
    /// so that the shift rounds towards zero.
    fn halving(&mut self, values: &[Value]) -> Option<usize> {
        let bits = 8 * self.layout.lane;
        let fills = self.fills_lane(self.func.ty(values[0]));
        let divisor =
            self.constant(values).filter(|&divisor| fills && divisor.is_power_of_two() && divisor >> (bits - 1) == 0)?;
        let log2 = u64::from(divisor.trailing_zeros());
        let node = self.pack(&self.args(values, 0))?;
        if log2 == 0 {
            return Some(node);
        }
        let sign = self.shifted(Shift::ShrS, node, bits - 1)?;
        let increase = self.shifted(Shift::ShrU, sign, bits - log2)?;
        let add = self.lane_op(LaneOp::Integer(lanes::Integer::Add), false)?;
        let raised = self.node(Node::Op(add, vec![node, increase]));
        self.shifted(Shift::ShrS, raised, log2)
    }

    /// An unsigned division of values of few bits by a constant: the high bits of a product, if that fits into a lane (T. Granlund, P.
    /// Montgomery, "Division by invariant integers using multiplication", 1994).
    fn division(&mut self, values: &[Value]) -> Option<usize> {
        let divisor = self.constant(values).filter(|&divisor| divisor > 0)?;
        let dividends = self.args(values, 0);
        let lane = 8 * self.layout.lane;
        let bits = (1..=lane.min(32)).find(|&bits| dividends.iter().all(|&value| self.bounds.fits(value, bits)))?;
        // The quotient of a dividend of `bits` bits is exact if `excess` is at most 2^(count - bits).
        let (factor, count) = (bits..lane.min(48)).find_map(|count| {
            let factor = (1u64 << count).div_ceil(divisor);
            let excess = factor * divisor - (1 << count);
            let fits = u128::from(factor) << bits <= 1 << lane;
            (fits && excess <= 1 << (count - bits)).then_some((factor, count))
        })?;
        let node = self.pack(&dividends)?;
        let by = self.node(Node::Number(factor));
        let multiply = self.lane_op(LaneOp::Integer(lanes::Integer::Mul), false)?;
        let product = self.node(Node::Op(multiply, vec![node, by]));
        self.shifted(Shift::ShrU, product, count)
    }

    /// The sign-extension of the low bits.
    pub(super) fn sign_extension(&mut self, bits: u64, values: &[Value]) -> Option<usize> {
        let node = self.pack(&self.args(values, 0))?;
        let above = (8 * self.layout.lane).saturating_sub(bits);
        let raised = self.shifted(Shift::Shl, node, above)?;
        self.shifted(Shift::ShrS, raised, above)
    }

    /// A shift by a count that all copies share. In lanes narrower than the values, the count must be a constant below their
    /// width, and bits that a shift to the right brings in must be zero, or not be needed.
    fn shift(&mut self, op: Shift, values: &[Value]) -> Option<usize> {
        let func = self.func;
        let counts = self.args(values, 1);
        let constant = self.constant(values);
        let shared = constant.is_some() || counts.iter().all(|&count| count == counts[0]);
        let full = self.fills_lane(func.ty(values[0]));
        let shifted = self.args(values, 0);
        let below = |bits: u64| shifted.iter().all(|&value| self.bounds.fits(value, bits));
        let lane = 8 * self.layout.lane;
        let needed = values.iter().map(|&value| self.demand.bits(value)).max().unwrap_or(0);
        let exact = match constant {
            Some(count) if full => count < lane,
            Some(count) => count < lane && (op == Shift::Shl || below(lane) || needed + count <= lane),
            // The count of the vector shift has 32 bits.
            None => full && func.ty(counts[0]) == Type::I32 && self.counted.is_invariant(counts[0]),
        };
        if !shared || !exact {
            return None;
        }
        // The sign of a value that is wider than a lane is not in the lane: it is zero, or not needed.
        let op = if op == Shift::ShrS && !full { Shift::ShrU } else { op };
        let opcode = self.lane_op(LaneOp::Shift(op), false)?;
        let node = self.pack(&shifted)?;
        let count = constant.map_or(Count::Value(counts[0]), Count::Number);
        Some(self.node(Node::Shift(opcode, node, count)))
    }
}
