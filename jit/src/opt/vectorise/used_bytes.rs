//! How many of the first bytes of the producer's vectors are used. LLVM loads 8 or 16 bytes where it extends the first 4, if the others are loaded
//! anyway by another copy of the loop's body.

use super::ending::Outer;
use crate::ir::{Block, Func, Op, Type, Value, vector_opcode};
use rustc_hash::FxHashMap;
use weir_bytecode::lanes::{LaneOp, Lanes};

/// The bytes of a vector of 128 bits.
const ALL: u64 = 16;

/// The numbers of first bytes that are used, by vector of a block.
#[derive(Debug, Default)]
pub struct UsedBytes(FxHashMap<Value, u64>);

impl UsedBytes {
    /// Those of a block that is a loop; all bytes, if it is not known which values are used outside. Cost: O(s) in its size.
    pub fn of(func: &Func<'_>, block: Block, outer: Option<&Outer>) -> UsedBytes {
        let Some(outer) = outer else { return UsedBytes::default() };
        let insts = &func.block(block).insts;
        let mut used = FxHashMap::default();
        for phi in func.phis(block) {
            used.extend(func.args(phi).iter().map(|&arg| (arg, ALL)));
        }
        // Users stand after their operands.
        for &value in insts.iter().rev() {
            let of_result = if outer.has(value) { ALL } else { used.get(&value).copied().unwrap_or(0) };
            used.insert(value, of_result);
            for &arg in func.args(value).iter().filter(|&&arg| func.ty(arg) == Type::V128) {
                let of_arg = used.entry(arg).or_insert(0);
                *of_arg = (*of_arg).max(of_operand(func, value, of_result));
            }
        }
        UsedBytes(used)
    }

    /// How many of the first bytes of a vector are used.
    pub fn get(&self, value: Value) -> u64 {
        self.0.get(&value).copied().unwrap_or(ALL)
    }
}

/// The number of first bytes of its operands on which this many first bytes of a value depend.
fn of_operand(func: &Func<'_>, value: Value, bytes: u64) -> u64 {
    let opcode = vector_opcode(func.inst(value).aux).filter(|_| func.op(value) == Op::Vector);
    let Some(Lanes { from, op, .. }) = opcode.and_then(|opcode| opcode.lanes()) else { return ALL };
    let lane = u64::from(from.lane_bits()) / 8;
    match op {
        _ if op.widens_low_half() => bytes.div_ceil(2).next_multiple_of(lane),
        LaneOp::IntegerUnary(_) | LaneOp::Compare(_) => bytes.next_multiple_of(lane),
        LaneOp::Integer(op) if !op.mixes_lanes() => bytes.next_multiple_of(lane),
        LaneOp::Integer(_) | LaneOp::Whole(_) | LaneOp::Permute(_) | LaneOp::Lane(_) | LaneOp::Shift(_) | LaneOp::Test(_) => ALL,
        LaneOp::Widen(_) | LaneOp::Product(_) | LaneOp::FloatUnary(_) | LaneOp::Float(_) | LaneOp::FloatCompare(_) => ALL,
        LaneOp::Convert(_) | LaneOp::Ternary(_) => ALL,
    }
}
