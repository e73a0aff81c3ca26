//! Upper bounds of the integers of a block, from what they are computed of.

use crate::ir::family::{Family, Integer, Load};
use crate::ir::{Block, Func, Op, Type, Value};
use rustc_hash::FxHashMap;

/// Of values outside the block, operands of operands are looked at this far, so that a bound takes at most 2³ steps.
const DEPTH: u32 = 3;

/// Upper bounds, as unsigned numbers, of the integers of a block.
#[derive(Debug)]
pub struct Bounds<'f, 'a> {
    func: &'f Func<'a>,
    known: FxHashMap<Value, u64>,
}

impl<'f, 'a> Bounds<'f, 'a> {
    /// The bounds of the block's integers. Cost: O(instructions of the block).
    pub fn of(func: &'f Func<'a>, block: Block) -> Bounds<'f, 'a> {
        let mut bounds = Bounds { func, known: FxHashMap::default() };
        for &value in &func.block(block).insts {
            if matches!(func.ty(value), Type::I32 | Type::I64) {
                let bound = bounds.compute(value, DEPTH);
                bounds.known.insert(value, bound);
            }
        }
        bounds
    }

    /// Whether an integer has at most this many bits.
    pub fn fits(&self, value: Value, bits: u64) -> bool {
        bits >= 64 || matches!(self.func.ty(value), Type::I32 | Type::I64) && self.bound(value, DEPTH) >> bits == 0
    }

    /// The bound of a value of the block, or that of another value.
    fn bound(&self, value: Value, depth: u32) -> u64 {
        match (self.known.get(&value), depth.checked_sub(1)) {
            (Some(&known), _) => known,
            (None, Some(depth)) if self.func.op(value) != Op::Phi => self.compute(value, depth),
            (None, _) => self.alone(value).unwrap_or_else(|| self.all(value)),
        }
    }

    /// The largest number of the value's type.
    fn all(&self, value: Value) -> u64 {
        if self.func.ty(value) == Type::I32 { u32::MAX.into() } else { u64::MAX }
    }

    /// A bound of the value whatever its operands are.
    fn alone(&self, value: Value) -> Option<u64> {
        let inst = self.func.inst(value);
        match inst.op.family() {
            Family::Leaf(_) if inst.op == Op::Const => Some(inst.imm),
            Family::Compare(_) | Family::FloatCompare(_) => Some(1),
            Family::Load(Load::Load8U) => Some(0xFF),
            Family::Load(Load::Load16U) => Some(0xFFFF),
            Family::Load(Load::Load32U) => Some(u32::MAX.into()),
            Family::Leaf(_) | Family::Integer(_) | Family::Bits(_) | Family::Convert(_) | Family::Float(_) => None,
            Family::FloatUnary(_) | Family::Simd(_) | Family::Reference(_) | Family::Load(_) | Family::Store(_) => None,
            Family::Memory(_) | Family::Global(_) | Family::Table(_) | Family::Call(_) | Family::Exception(_) => None,
            Family::Accounting(_) | Family::Terminator(_) => None,
        }
    }

    fn compute(&self, value: Value, depth: u32) -> u64 {
        let inst = self.func.inst(value);
        let all = self.all(value);
        let arg = |i: usize| self.bound(inst.args[i], depth);
        let count = || self.func.as_const(inst.args[1]).filter(|&count| count < if inst.ty == Type::I32 { 32 } else { 64 });
        let found = match inst.op.family() {
            // The arguments of loops' phis are not computed yet.
            Family::Leaf(_) if inst.op == Op::Phi => {
                inst.args.iter().map(|&arg| self.alone(arg)).try_fold(0, |bound, arg| Some(arg?.max(bound)))
            }
            Family::Leaf(_) if inst.op == Op::Select => Some(arg(1).max(arg(2))),
            // A sum or a product that may wrap around has no bound.
            Family::Integer(Integer::Add) => arg(0).checked_add(arg(1)),
            Family::Integer(Integer::Mul) => arg(0).checked_mul(arg(1)),
            Family::Integer(Integer::And) => Some(arg(0).min(arg(1))),
            Family::Integer(Integer::Or | Integer::Xor) => Some(ones(arg(0) | arg(1))),
            Family::Integer(Integer::Shl) => count().and_then(|count| arg(0).checked_mul(1 << count)),
            Family::Integer(Integer::ShrU) => count().map(|count| arg(0) >> count),
            // Of a number that is not negative.
            Family::Integer(Integer::ShrS) => count().filter(|_| arg(0) <= all >> 1).map(|count| arg(0) >> count),
            Family::Convert(_) if matches!(inst.op, Op::ExtendU | Op::Wrap) => Some(arg(0)),
            Family::Leaf(_) | Family::Load(_) | Family::Compare(_) | Family::FloatCompare(_) => self.alone(value),
            Family::Integer(_) | Family::Bits(_) | Family::Convert(_) | Family::Float(_) | Family::FloatUnary(_) => None,
            Family::Simd(_) | Family::Reference(_) | Family::Store(_) | Family::Memory(_) | Family::Global(_) => None,
            Family::Table(_) | Family::Call(_) | Family::Exception(_) | Family::Accounting(_) => None,
            Family::Terminator(_) => None,
        };
        found.filter(|&bound| bound <= all).unwrap_or(all)
    }
}

/// The least number of ones that is not less than `bound`.
fn ones(bound: u64) -> u64 {
    u64::MAX.checked_shr(bound.leading_zeros()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse;
    use bumpalo::Bump;

    #[test]
    fn bounds_of_what_is_computed() {
        let arena = Bump::new();
        let func = parse(
            &arena,
            "func 0 (i32, i64)
b0:
  v0: i32 = param 0
  v1: i64 = param 1
  v2: i32 = load8_u v0
  v3: i32 = load16_s v0
  v4: i32 = const 4
  v5: i32 = mul v2, v4
  v6: i32 = add v5, v2
  v7: i32 = shr_u v6, v4
  v8: i32 = shl v2, v4
  v9: i32 = shr_s v3, v4
  v10: i32 = or v2, v7
  v11: i32 = and v0, v2
  v12: i32 = lt_s v0, v3
  v13: i32 = select v0, v12, v2
  v14: i64 = extend_u v6
  v15: i32 = wrap v1
  v16: i32 = mul v3, v3
  v17: i64 = load32_u v0
  v18: i32 = wrap v17
  v19: i32 = add v0, v2
  return
",
        )
        .unwrap();
        let bounds = Bounds::of(&func, Block::ENTRY);
        let expected = [
            (2, 0xFF),
            (3, u32::MAX.into()),
            (5, 1020),
            (6, 1275),
            (7, 79),
            (8, 4080),
            (9, u32::MAX.into()),
            (10, 0xFF),
            (11, 0xFF),
            (12, 1),
            (13, 0xFF),
            (14, 1275),
            (15, u32::MAX.into()),
            (16, u32::MAX.into()),
            (17, u32::MAX.into()),
            (18, u32::MAX.into()),
            (19, u32::MAX.into()),
            (1, u64::MAX),
        ];
        for (value, expected) in expected {
            assert_eq!(bounds.bound(Value(value), 0), expected, "v{value}");
        }
        assert!(bounds.fits(Value(6), 11) && !bounds.fits(Value(6), 10) && bounds.fits(Value(1), 64));
    }
}
