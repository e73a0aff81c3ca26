//! Counted loops of one block: inductions, linear forms and the comparison that controls the exit.
//!
//! An *induction* is a phi of type i32 to which each round adds a constant, its step. A *linear form* is a sum of
//! multiples of inductions and of values that the loop does not change, and a constant, modulo 2³². In round t an
//! induction is its start plus t times its step, so a linear form is its value in round 0 plus t times its *stride*.
//!
//! Only the comparison that ends the block is a bound of the loop. Others may be true or false in any round (a bound that
//! was inferred from such a comparison made LLVM's loops wrong: issue 70521 of its tracker).
//!
//! The pass `vectorise` uses this. Cost: O(instructions of the block), because forms have at most four terms.

use crate::ir::family::{Compare, Family, Integer};
use crate::ir::{Block, Effect, Func, Op, Type, Value};
use rustc_hash::FxHashMap;

/// A sum with more terms is not a linear form.
const MAX_TERMS: usize = 4;

/// A sum of multiples of values and a constant, modulo 2³².
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Linear {
    /// Values with their factors, which are not 0; ascending by value.
    pub terms: Vec<(Value, u32)>,
    /// The constant.
    pub constant: u32,
}

impl Linear {
    /// `self + factor * other`, if it has few enough terms.
    fn plus(&self, factor: u32, other: &Linear) -> Option<Linear> {
        let mut terms = self.terms.clone();
        for &(value, multiple) in &other.terms {
            let multiple = multiple.wrapping_mul(factor);
            match terms.binary_search_by_key(&value, |term| term.0) {
                Ok(at) => terms[at].1 = terms[at].1.wrapping_add(multiple),
                Err(at) => terms.insert(at, (value, multiple)),
            }
        }
        terms.retain(|term| term.1 != 0);
        let constant = self.constant.wrapping_add(other.constant.wrapping_mul(factor));
        (terms.len() <= MAX_TERMS).then_some(Linear { terms, constant })
    }
}

/// The condition on which a loop goes on: how the tested value compares with the bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Test {
    /// It differs.
    Differs,
    /// It is less, or with `or_equal` not greater, as a signed or unsigned number; the tested value ascends.
    Less {
        /// Whether it may be equal.
        or_equal: bool,
        /// Whether the numbers are signed.
        signed: bool,
    },
    /// It is greater, or with `or_equal` not less; the tested value descends.
    Greater {
        /// Whether it may be equal.
        or_equal: bool,
        /// Whether the numbers are signed.
        signed: bool,
    },
}

impl Test {
    /// The operation that compares the tested value with the bound, and is true if the loop goes on.
    pub fn op(self) -> Op {
        match self {
            Test::Differs => Op::Ne,
            Test::Less { or_equal: false, signed: true } => Op::LtS,
            Test::Less { or_equal: false, signed: false } => Op::LtU,
            Test::Less { or_equal: true, signed: true } => Op::LeS,
            Test::Less { or_equal: true, signed: false } => Op::LeU,
            Test::Greater { or_equal: false, signed: true } => Op::GtS,
            Test::Greater { or_equal: false, signed: false } => Op::GtU,
            Test::Greater { or_equal: true, signed: true } => Op::GeS,
            Test::Greater { or_equal: true, signed: false } => Op::GeU,
        }
    }
}

/// The comparison that controls the exit of a loop. It is made at the end of each round.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Control {
    /// The condition on which the loop goes on.
    pub test: Test,
    /// The tested value.
    pub tested: Linear,
    /// What is added to the tested value in each round; not 0, and negative if it descends.
    pub step: i32,
    /// The bound, in which no induction occurs.
    pub bound: Linear,
}

/// An induction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Induction {
    /// The phi.
    pub phi: Value,
    /// Its value in round 0.
    pub start: Value,
    /// What each round adds.
    pub step: u32,
}

/// A loop of one block.
#[derive(Debug)]
pub struct Counted<'f, 'a> {
    func: &'f Func<'a>,
    /// The block, which is its own successor.
    pub block: Block,
    /// The index of the edge into the loop among the block's predecessors.
    pub entry: usize,
    /// The index of the back edge.
    pub back: usize,
    /// The inductions, in the order of their phis.
    pub inductions: Vec<Induction>,
    /// The other phis.
    pub others: Vec<Value>,
    /// By value of the block, its position.
    positions: FxHashMap<Value, usize>,
    /// By value of the block, whether it is equal in all rounds.
    invariant: FxHashMap<Value, bool>,
    linear: FxHashMap<Value, Option<Linear>>,
}

impl<'f, 'a> Counted<'f, 'a> {
    /// The loop that consists of `block`, if it is one with a single entry edge.
    pub fn of(func: &'f Func<'a>, block: Block) -> Option<Counted<'f, 'a>> {
        let data = func.block(block);
        let back = data.preds.iter().position(|&pred| pred == block)?;
        if data.preds.len() != 2 || data.preds[1 - back] == block || data.succs.len() != 2 {
            return None;
        }
        let positions = data.insts.iter().enumerate().map(|(i, &value)| (value, i)).collect();
        let mut found = Counted {
            func,
            block,
            entry: 1 - back,
            back,
            inductions: Vec::new(),
            others: Vec::new(),
            positions,
            invariant: FxHashMap::default(),
            linear: FxHashMap::default(),
        };
        for &value in &data.insts {
            found.visit(value);
        }
        for phi in func.phis(block) {
            let args = func.args(phi);
            match found.linear(args[back]).and_then(|next| next.plus(u32::MAX, &Linear { terms: vec![(phi, 1)], constant: 0 })) {
                Some(Linear { terms, constant }) if func.ty(phi) == Type::I32 && terms.is_empty() => {
                    found.inductions.push(Induction { phi, start: args[found.entry], step: constant });
                }
                _ => found.others.push(phi),
            }
        }
        Some(found)
    }

    /// The position in the block of a value that is defined there.
    pub fn position(&self, value: Value) -> Option<usize> {
        self.positions.get(&value).copied()
    }

    /// Whether the value is equal in all rounds and can be computed before the loop.
    pub fn is_invariant(&self, value: Value) -> bool {
        self.invariant.get(&value).copied().unwrap_or(!self.positions.contains_key(&value))
    }

    /// Records whether the block's next value is invariant, and its linear form.
    fn visit(&mut self, value: Value) {
        let func = self.func;
        let inst = func.inst(value);
        let pure = inst.op.effect() == Effect::Pure && inst.op != Op::Phi;
        let invariant = pure && inst.args.iter().all(|&arg| self.is_invariant(arg));
        self.invariant.insert(value, invariant);
        if inst.ty == Type::I32 {
            let linear = self.compute(value, invariant);
            self.linear.insert(value, linear);
        }
    }

    /// The linear form of a value, if it has one.
    pub fn linear(&self, value: Value) -> Option<Linear> {
        match self.linear.get(&value) {
            Some(known) => known.clone(),
            None if self.positions.contains_key(&value) || self.func.ty(value) != Type::I32 => None,
            None => Some(self.leaf(value)),
        }
    }

    fn leaf(&self, value: Value) -> Linear {
        match self.func.as_const(value) {
            Some(bits) => Linear { terms: Vec::new(), constant: bits as u32 },
            None => Linear { terms: vec![(value, 1)], constant: 0 },
        }
    }

    fn compute(&self, value: Value, invariant: bool) -> Option<Linear> {
        let inst = self.func.inst(value);
        let arg = |i: usize| self.linear(inst.args[i]);
        let constant = |i: usize| self.func.as_const(inst.args[i]).map(|bits| bits as u32);
        let sum = match inst.op.family() {
            Family::Integer(Integer::Add) => arg(0).zip(arg(1)).and_then(|(a, b)| a.plus(1, &b)),
            Family::Integer(Integer::Sub) => arg(0).zip(arg(1)).and_then(|(a, b)| a.plus(u32::MAX, &b)),
            Family::Integer(Integer::Shl) => {
                arg(0).zip(constant(1)).and_then(|(a, count)| Linear::default().plus(1 << (count & 31), &a))
            }
            Family::Integer(Integer::Mul) => arg(0).zip(constant(1)).and_then(|(a, by)| Linear::default().plus(by, &a)),
            Family::Leaf(_) if matches!(inst.op, Op::Phi | Op::Const) => Some(self.leaf(value)),
            Family::Leaf(_) | Family::Integer(_) | Family::Bits(_) | Family::Compare(_) | Family::FloatCompare(_) => None,
            Family::Float(_) | Family::FloatUnary(_) | Family::Convert(_) | Family::Simd(_) | Family::Reference(_) => None,
            Family::Load(_) | Family::Store(_) | Family::Memory(_) | Family::Global(_) | Family::Table(_) => None,
            Family::Call(_) | Family::Exception(_) | Family::Accounting(_) | Family::Terminator(_) => None,
        };
        // The loop need not compute an invariant value as a sum of others.
        sum.or_else(|| invariant.then(|| self.leaf(value)))
    }

    /// What each round adds to a linear form; `None` if a term is a phi that is no induction.
    pub fn stride(&self, form: &Linear) -> Option<u32> {
        form.terms.iter().try_fold(0u32, |stride, &(value, factor)| {
            if self.is_invariant(value) {
                return Some(stride);
            }
            let induction = self.inductions.iter().find(|induction| induction.phi == value)?;
            Some(stride.wrapping_add(induction.step.wrapping_mul(factor)))
        })
    }

    /// The comparison that controls the exit, if it bounds the number of rounds.
    pub fn control(&self) -> Option<Control> {
        let func = self.func;
        let branch = func.terminator(self.block).filter(|&last| func.op(last) == Op::Branch)?;
        let mut goes_on = func.block(self.block).succs[0] == self.block;
        let mut condition = func.args(branch)[0];
        while func.op(condition) == Op::Eqz && func.ty(func.args(condition)[0]) == Type::I32 {
            (condition, goes_on) = (func.args(condition)[0], !goes_on);
        }
        let (op, a, b) = if let Family::Compare(op) = func.op(condition).family()
            && let [a, b] = *func.args(condition)
            && self.positions.contains_key(&condition)
        {
            let op = if goes_on { Op::from(op) } else { Op::from(op).inverse()? };
            (op, self.linear(a)?, self.linear(b)?)
        } else {
            (if goes_on { Op::Ne } else { Op::Eq }, self.linear(condition)?, Linear::default())
        };
        let (op, tested, bound) = match (self.stride(&a)?, self.stride(&b)?) {
            (_, 0) => (op, a, b),
            (0, _) => (op.mirror()?, b, a),
            _ => return None,
        };
        let step = self.stride(&tested)? as i32;
        let Family::Compare(op) = op.family() else { return None };
        let (or_equal, signed) = (
            matches!(op, Compare::LeS | Compare::LeU | Compare::GeS | Compare::GeU),
            matches!(op, Compare::LtS | Compare::LeS | Compare::GtS | Compare::GeS),
        );
        let test = match op {
            Compare::Ne if step != 0 => Test::Differs,
            Compare::LtS | Compare::LtU | Compare::LeS | Compare::LeU if step > 0 => Test::Less { or_equal, signed },
            Compare::GtS | Compare::GtU | Compare::GeS | Compare::GeU if step < 0 => Test::Greater { or_equal, signed },
            Compare::Eqz | Compare::Eq | Compare::Ne | Compare::LtS | Compare::LtU | Compare::LeS | Compare::LeU => return None,
            Compare::GtS | Compare::GtU | Compare::GeS | Compare::GeU => return None,
        };
        Some(Control { test, tested, step, bound })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse;
    use bumpalo::Bump;

    /// A loop with an index `v2`, a pointer `v3`, a value `v4` that is no induction, and this end.
    fn with(end: &str, check: impl FnOnce(&Counted<'_, '_>)) {
        let arena = Bump::new();
        let text = format!(
            "func 0 (i32, i32)\nb0:\n v0: i32 = param 0\n v1: i32 = param 1\n v10: i32 = const 2\n v11: i32 = const -16\n jump b1
b1:\n v2: i32 = phi b0: v0, b1: v5\n v3: i32 = phi b0: v1, b1: v6\n v4: i32 = phi b0: v1, b1: v7
 v5: i32 = add v2, v10\n v6: i32 = add v3, v11\n v7: i32 = mul v4, v2\n v8: i32 = shl v5, v10\n v9: i32 = add v8, v1\n{end}
b2:\n return\n"
        );
        let func = parse(&arena, &text).unwrap();
        check(&Counted::of(&func, Block(1)).expect("a loop of one block"));
    }

    #[test]
    fn inductions_and_linear_forms() {
        with(" v12: i32 = and v1, v10\n v13: i32 = add v12, v3\n branch v5, b1, b2", |counted| {
            let steps: Vec<(Value, u32)> = counted.inductions.iter().map(|found| (found.phi, found.step)).collect();
            assert_eq!((steps, &counted.others[..]), (vec![(Value(2), 2), (Value(3), 16u32.wrapping_neg())], &[Value(4)][..]));
            // (v2 + 2) << 2, plus a parameter.
            let form = counted.linear(Value(9)).unwrap();
            assert_eq!(form, Linear { terms: vec![(Value(1), 1), (Value(2), 4)], constant: 8 });
            assert_eq!(counted.stride(&form), Some(8));
            // An invariant value that is not a sum is a term; a product of phis has no form.
            assert_eq!(counted.linear(Value(13)).unwrap().terms, [(Value(3), 1), (Value(12), 1)]);
            assert!(counted.linear(Value(7)).is_none() && counted.is_invariant(Value(12)) && !counted.is_invariant(Value(13)));
            // A phi that is no induction has a form, but no stride.
            assert_eq!(counted.linear(Value(4)).and_then(|form| counted.stride(&form)), None);
        });
    }

    #[test]
    fn the_comparison_at_the_end_controls() {
        let less = |or_equal, signed| Some((Test::Less { or_equal, signed }, 2));
        let greater = |or_equal, signed| Some((Test::Greater { or_equal, signed }, -16));
        let cases = [
            (" branch v5, b1, b2", Some((Test::Differs, 2))),
            (" v12: i32 = lt_s v5, v1\n branch v12, b1, b2", less(false, true)),
            (" v12: i32 = lt_u v5, v1\n branch v12, b2, b1", None),
            (" v12: i32 = gt_u v5, v1\n branch v12, b2, b1", less(true, false)),
            (" v12: i32 = ge_s v1, v5\n branch v12, b1, b2", less(true, true)),
            (" v12: i32 = eq v1, v5\n v13: i32 = eqz v12\n branch v13, b1, b2", Some((Test::Differs, 2))),
            (" v12: i32 = eq v1, v5\n branch v12, b1, b2", None),
            (" v12: i32 = gt_s v6, v1\n branch v12, b1, b2", greater(false, true)),
            (" v12: i32 = ge_u v6, v1\n branch v12, b1, b2", greater(true, false)),
            (" v12: i32 = lt_s v6, v1\n branch v12, b1, b2", None),
            (" v12: i32 = lt_s v5, v6\n branch v12, b1, b2", None),
            (" branch v7, b1, b2", None),
            (" branch v1, b1, b2", None),
        ];
        for (end, expected) in cases {
            with(end, |counted| {
                assert_eq!(counted.control().map(|control| (control.test, control.step)), expected, "{end}");
            });
        }
    }
}
