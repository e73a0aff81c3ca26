//! Products of 64 bits by 64 that are computed from halves.
//!
//! Wasm 1.0 has no instruction for the upper half of a product. With `x1` and `x0` for the upper and lower 32 bits of `x`, programs compute
//! it from four products (Knuth, The Art of Computer Programming 2, 4.3.1, algorithm M; Warren, "Hacker's Delight", 8-2):
//!
//! ```text
//! middle = a1·b0 + (a0·b0 >> 32)             or    middle = a1·b0
//! carry  = a0·b1 + middle0                   or    carry  = a0·b1 + middle0 + (a0·b0 >> 32)
//! high   = a1·b1 + (middle >> 32) + (carry >> 32)
//! low    = carry << 32 | (a0·b0)0
//! ```
//!
//! No sum before `high` wraps: (2³² − 1)² + 2·(2³² − 1) = 2⁶⁴ − 1. So `high` is `mul_high a, b` and `low` is `mul a, b`, which are one machine
//! instruction each. The first form is that of compiler-rt's `__multi3`, to which compilers translate products of 128 bits, and of Go's
//! `bits.Mul64`; the second that of xxHash. `a` and `b` may be exchanged in each product, the terms of a sum may have any order, and `high` may be a
//! part of a longer sum. One factor may be a constant.
//!
//! It runs after simplification, which has put constants on the right. Cost: O(instructions), because sums are followed for a
//! few terms only.

use super::pass::{Analysis, Changed, Context, Pass};
use crate::ir::{Block, Func, Op, Type, Value};

/// Recognition of products.
pub const PASS: Pass = Pass { name: "products", run, needs: &[], keeps: Analysis::OF_BLOCKS };

/// The terms of a sum that are looked at.
const TERMS: usize = 8;
const LOWER: u64 = 0xFFFF_FFFF;
const HALF: u64 = 32;

fn run(func: &mut Func<'_>, cx: &Context<'_>) -> Changed {
    let mut changed = 0;
    let mut new = Vec::new();
    for block in func.blocks() {
        if !cx.meter.allows_more_code(func.size()) {
            break;
        }
        for i in 0..func.block(block).insts.len() {
            if !cx.goes_on(1) {
                return Changed(changed);
            }
            let value = func.block(block).insts[i];
            let (op, ty) = (func.op(value), func.ty(value));
            if ty != Type::I64 || !matches!(op, Op::Add | Op::Or) {
                continue;
            }
            if !cx.goes_on(TERMS) {
                return Changed(changed);
            }
            if let Some(product) = low(func, value).filter(|_| cx.spend()) {
                let args = product.map(|factor| factor.value(func, value, &mut |value| new.push((i, value))));
                func.become_op(value, Op::Mul, 0, &args);
                changed += 1;
            } else if let Some(high) = high(func, value).filter(|_| cx.spend()) {
                high.put(func, value, &mut |value| new.push((i, value)));
                changed += 1;
            }
        }
        insert(func, block, &mut new);
    }
    Changed(changed)
}

fn insert(func: &mut Func<'_>, block: Block, new: &mut Vec<(usize, Value)>) {
    if !new.is_empty() {
        func.insert(block, new);
        new.clear();
    }
}

/// A factor, or a half of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Factor {
    Value(Value),
    Const(u64),
}

impl Factor {
    /// Returns the value, a new one for a constant, which is passed to `insert`. It is for an instruction in the place of `user`.
    fn value(self, func: &mut Func<'_>, user: Value, insert: &mut impl FnMut(Value)) -> Value {
        match self {
            Factor::Value(value) => value,
            Factor::Const(bits) => {
                let constant = func.create(Op::Const, Type::I64, func.inst(user).pc, 0, bits, &[]);
                insert(constant);
                constant
            }
        }
    }

    /// The factor with these halves, if they are of one.
    fn joined(lower: Factor, upper: Factor) -> Option<Factor> {
        match (lower, upper) {
            (Factor::Value(x), Factor::Value(y)) if x == y => Some(lower),
            (Factor::Const(lower), Factor::Const(upper)) => Some(Factor::Const(upper << HALF | lower)),
            _ => None,
        }
    }

    /// Whether `half` is the upper half of this factor.
    fn has_upper(self, half: Factor) -> bool {
        match self {
            Factor::Value(_) => half == self,
            Factor::Const(bits) => half == Factor::Const(bits >> HALF),
        }
    }
}

/// The arguments of `value`, if it is such an operation on i64.
fn args(func: &Func<'_>, value: Value, op: Op) -> Option<[Value; 2]> {
    let inst = func.inst(value);
    match *inst.args {
        [a, b] if inst.op == op && inst.ty == Type::I64 => Some([func.root(a), func.root(b)]),
        _ => None,
    }
}

/// The first argument of `value`, if it is such an operation on i64 and the second is this constant.
fn with_const(func: &Func<'_>, value: Value, op: Op, bits: u64) -> Option<Value> {
    args(func, value, op).filter(|args| func.as_const(args[1]) == Some(bits)).map(|args| args[0])
}

/// The value of which `value` is the lower half, as an i64.
fn lower_of(func: &Func<'_>, value: Value) -> Option<Value> {
    let inst = func.inst(value);
    if inst.op == Op::ExtendU && inst.ty == Type::I64 {
        let narrow = func.root(inst.args[0]);
        return (func.op(narrow) == Op::Wrap).then(|| func.root(func.args(narrow)[0]));
    }
    with_const(func, value, Op::And, LOWER)
}

/// The value of which `value` is the upper half.
fn upper_of(func: &Func<'_>, value: Value) -> Option<Value> {
    with_const(func, value, Op::ShrU, HALF)
}

/// The factor of which `value` is a half: a constant is that half itself.
fn half(func: &Func<'_>, value: Value, of: fn(&Func<'_>, Value) -> Option<Value>) -> Option<Factor> {
    match func.as_const(value) {
        Some(bits) => (bits <= LOWER).then_some(Factor::Const(bits)),
        None => of(func, value).map(Factor::Value),
    }
}

/// The terms of the sum `value`, in no order; `None` if there are more than [`TERMS`].
fn terms(func: &Func<'_>, value: Value) -> Option<Vec<Value>> {
    let (mut terms, mut open) = (Vec::new(), vec![value]);
    while let Some(value) = open.pop() {
        match args(func, value, Op::Add) {
            Some(args) => open.extend(args),
            None => terms.push(value),
        }
        if terms.len() + open.len() > TERMS {
            return None;
        }
    }
    Some(terms)
}

/// Removes the first term that `find` finds something for, and returns that.
fn take<T>(terms: &mut Vec<Value>, find: impl Fn(Value) -> Option<T>) -> Option<T> {
    let (i, found) = terms.iter().enumerate().find_map(|(i, &term)| Some((i, find(term)?)))?;
    terms.swap_remove(i);
    Some(found)
}

/// A product, of which the sum of the second column is known.
struct Carry {
    factors: [Factor; 2],
    /// The sum in the first column, with the carry of the product of lower halves or without.
    middle: Value,
    /// The product of the lower halves.
    least: Value,
}

/// `carry` of the formulas above.
fn carry(func: &Func<'_>, value: Value) -> Option<Carry> {
    let mut cross = terms(func, value)?;
    let middle = take(&mut cross, |term| lower_of(func, term))?;
    let product_above = |term: Value| upper_of(func, term).filter(|&product| args(func, product, Op::Mul).is_some());
    let least = match cross.len() {
        1 => {
            let mut first = terms(func, middle).filter(|terms| terms.len() == 2)?;
            let least = take(&mut first, product_above)?;
            cross.extend(first);
            least
        }
        2 => {
            let least = take(&mut cross, product_above)?;
            cross.push(middle);
            least
        }
        _ => return None,
    };
    let [x, y] = args(func, least, Op::Mul)?;
    let lower = [half(func, x, lower_of)?, half(func, y, lower_of)?];
    let mut upper = [None; 2];
    // Each of the two is the lower half of a factor by the upper half of the other one.
    for &product in &cross {
        let [x, y] = args(func, product, Op::Mul)?;
        let (i, half) = [(0, x, y), (0, y, x), (1, x, y), (1, y, x)].into_iter().find_map(|(i, x, y)| {
            let (low, up) = (half(func, x, lower_of)?, half(func, y, upper_of)?);
            let fits = low == lower[i] && upper[1 - i].is_none() && Factor::joined(lower[1 - i], up).is_some();
            fits.then_some((1 - i, up))
        })?;
        upper[i] = Some(half);
    }
    let factors = [Factor::joined(lower[0], upper[0]?)?, Factor::joined(lower[1], upper[1]?)?];
    Some(Carry { factors, middle, least })
}

/// The factors of which `value` is the lower half of the product.
fn low(func: &Func<'_>, value: Value) -> Option<[Factor; 2]> {
    let args = args(func, value, func.op(value))?;
    [(0, 1), (1, 0)].into_iter().find_map(|(i, j)| {
        let (shifted, least) = (with_const(func, args[i], Op::Shl, HALF)?, lower_of(func, args[j])?);
        carry(func, shifted).filter(|carry| carry.least == least).map(|carry| carry.factors)
    })
}

/// A sum of the upper half of a product and other terms.
struct High {
    factors: [Factor; 2],
    rest: Vec<Value>,
}

/// `high` of the formulas above, and other terms.
fn high(func: &Func<'_>, value: Value) -> Option<High> {
    let args = args(func, value, Op::Add)?;
    let is_last = |a: Value, b: Value| upper_of(func, a).is_some() || func.op(a) == Op::Mul && func.op(b) == Op::Add;
    if !is_last(args[0], args[1]) && !is_last(args[1], args[0]) {
        return None;
    }
    let terms = terms(func, value)?;
    let shifted = |term: &Value| upper_of(func, *term);
    if terms.iter().filter_map(shifted).count() < 2 {
        return None;
    }
    terms.iter().filter_map(shifted).find_map(|sum| {
        let Carry { factors, middle, .. } = carry(func, sum)?;
        let mut rest = terms.clone();
        take(&mut rest, |term| upper_of(func, term).filter(|&shifted| shifted == sum))?;
        take(&mut rest, |term| upper_of(func, term).filter(|&shifted| shifted == middle))?;
        take(&mut rest, |term| {
            let [x, y] = self::args(func, term, Op::Mul)?.map(|factor| half(func, factor, upper_of));
            let is = |x: Option<Factor>, y: Option<Factor>| Some(factors[0].has_upper(x?) && factors[1].has_upper(y?));
            (is(x, y)? || is(y, x)?).then_some(())
        })?;
        Some(High { factors, rest })
    })
}

impl High {
    /// Puts it in the place of `value`. New instructions are passed to `insert`, in order.
    fn put(self, func: &mut Func<'_>, value: Value, insert: &mut impl FnMut(Value)) {
        let args = self.factors.map(|factor| factor.value(func, value, insert));
        let mut create = |func: &mut Func<'_>, op: Op, args: &[Value]| {
            let new = func.create(op, Type::I64, func.inst(value).pc, 0, 0, args);
            insert(new);
            new
        };
        match *self.rest {
            [] => func.become_op(value, Op::MulHigh, 0, &args),
            [first, ref others @ ..] => {
                let high = create(func, Op::MulHigh, &args);
                let sum = others.iter().fold(first, |sum, &term| create(func, Op::Add, &[sum, term]));
                func.become_op(value, Op::Add, 0, &[sum, high]);
            }
        }
    }
}

#[cfg(test)]
mod tests;
