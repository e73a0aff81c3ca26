//! The low bits of the integers of a block that their users need.

use crate::ir::family::{Bits, Convert, Family, Integer};
use crate::ir::{Block, Func, Op, Type, Value};
use rustc_hash::FxHashMap;

/// All bits of any integer.
const ALL: u64 = 64;

/// How many low bits of each integer of a block are needed: bits above them change neither what the block stores nor what it passes on.
///
/// A lane has the needed bits of its value. If all bits of the value are among them, except for zeros by its bound, the other bits of the lane
/// are zero too: what bounds the value, an operand with this property or a shift, does the same in the lane.
#[derive(Debug)]
pub struct Demand(FxHashMap<Value, u64>);

impl Demand {
    /// That of the block's integers, for a block that passes on only its phis and the operands of its terminator. Cost: O(instructions of the
    /// block).
    pub fn of(func: &Func<'_>, block: Block) -> Demand {
        let mut demand = Demand(FxHashMap::default());
        let data = func.block(block);
        // What the next round begins with is needed as a whole.
        for phi in func.phis(block) {
            func.args(phi).iter().for_each(|&arg| demand.needs(arg, ALL));
        }
        for &user in data.insts.iter().rev().filter(|&&user| func.op(user) != Op::Phi) {
            let bits = demand.bits(user);
            for (i, &arg) in func.args(user).iter().enumerate() {
                demand.needs(arg, of_operand(func, user, i, bits));
            }
        }
        demand
    }

    /// The bits of a value that are needed.
    pub fn bits(&self, value: Value) -> u64 {
        self.0.get(&value).copied().unwrap_or(0)
    }

    fn needs(&mut self, value: Value, bits: u64) {
        let known = self.0.entry(value).or_default();
        *known = bits.max(*known);
    }
}

/// How many low bits of its operand with the index `i` an instruction needs whose own `bits` low bits are needed.
fn of_operand(func: &Func<'_>, user: Value, i: usize, bits: u64) -> u64 {
    let inst = func.inst(user);
    let width = if inst.ty == Type::I32 { 32 } else { 64 };
    let constant = |at: usize| func.as_const(inst.args[at]);
    let count = || constant(1).filter(|&count| i == 0 && count < width);
    match inst.op.family() {
        Family::Store(_) if i == 1 => inst.op.access_width(func.operand_type(user)).map_or(ALL, |bytes| 8 * u64::from(bytes)),
        Family::Integer(Integer::Add | Integer::Sub | Integer::Mul | Integer::Or | Integer::Xor) => bits,
        // Where the other operand has zeros at the top, this one is not needed.
        Family::Integer(Integer::And) => match constant(1 - i) {
            Some(mask) => bits.min(64 - u64::from(mask.leading_zeros())),
            None => bits,
        },
        Family::Integer(Integer::Shl) => count().map_or(ALL, |count| bits.saturating_sub(count)),
        // Bits that come from above the sign are copies of it.
        Family::Integer(Integer::ShrU | Integer::ShrS) => {
            count().map(|count| bits + count).filter(|&bits| bits <= width).unwrap_or(ALL)
        }
        Family::Leaf(_) if inst.op == Op::Select && i > 0 => bits,
        Family::Bits(Bits::Sext8) => bits.min(8),
        Family::Bits(Bits::Sext16) => bits.min(16),
        Family::Bits(Bits::Sext32) => bits.min(32),
        Family::Convert(Convert::Wrap | Convert::ExtendS | Convert::ExtendU) => bits.min(32),
        Family::Leaf(_) | Family::Integer(_) | Family::Bits(_) | Family::Convert(_) | Family::Float(_) => ALL,
        Family::FloatUnary(_) | Family::Compare(_) | Family::FloatCompare(_) | Family::Simd(_) | Family::Reference(_) => ALL,
        Family::Load(_) | Family::Store(_) | Family::Memory(_) | Family::Global(_) | Family::Table(_) => ALL,
        Family::Call(_) | Family::Exception(_) | Family::Accounting(_) | Family::Terminator(_) => ALL,
    }
}
