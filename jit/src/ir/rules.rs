//! Algebraic rules, for construction, which applies some as it emits, and for the pass `simplify`, which applies all in place.
//!
//! Each rule is a match arm below, with its algebra, and of a [`Kind`]. All rules hold for wrap-around integers; floats have
//! only those that move bits. The rules are folklore; see Warren, "Hacker's Delight".

use super::fold::{fold, is_nan, mask};
use super::func::Func;
use super::index::Value;
use super::ops::family::{Bits, Compare, Convert, Family, Integer, Load};
use super::ops::{Op, Type};

/// What an operation is equal to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rewrite {
    /// This value.
    Value(Value),
    /// A constant of its type.
    Const(u64),
    /// Another operation on one value.
    Unary(Op, Value),
    /// Another operation on two values.
    Binary(Op, Value, Value),
    /// Another operation on three values.
    Ternary(Op, Value, Value, Value),
    /// Another operation on a value and a constant of the same type.
    WithConst(Op, Value, u64),
}

use Rewrite::{Binary, Const, Ternary, Unary, WithConst};

/// What a rule is good for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Constants on the right of operations on integers that commute: one form to recognise and to share.
    Order,
    /// The operation goes away, or becomes `eqz`.
    Identity,
    /// A cheaper operation takes its place.
    Strength,
    /// Another form of the same cost, which later rules and passes expect.
    Form,
}

use Kind::{Form, Identity, Order, Strength};

/// The first rule that applies to `op` on `args`, which are of type `operand`, with a result of type `result`.
///
/// Every rule for two arguments needs a constant or equal arguments. Most operations have neither, which is checked inline.
#[inline]
pub fn rewrite(func: &Func<'_>, op: Op, operand: Type, result: Type, args: &[Value]) -> Option<(Kind, Rewrite)> {
    match *args {
        [a] => unary(func, op, result, a),
        [a, b] if a == b || func.op(a) == Op::Const || func.op(b) == Op::Const => binary(func, op, operand, a, b),
        [condition, a, b] if op == Op::Select => select(func, condition, a, b),
        _ => None,
    }
}

fn select(func: &Func<'_>, condition: Value, a: Value, b: Value) -> Option<(Kind, Rewrite)> {
    if a == b {
        // c ? a : a = a
        return Some((Identity, Rewrite::Value(a)));
    }
    if let Some(bits) = func.as_const(condition) {
        // 0 ? a : b = b
        return Some((Identity, Rewrite::Value(if bits != 0 { a } else { b })));
    }
    match truth(func, condition)? {
        // (x != 0) ? a : b = x ? a : b
        (x, true) => Some((Form, Ternary(Op::Select, x, a, b))),
        // !x ? a : b = x ? b : a
        (x, false) => Some((Form, Ternary(Op::Select, x, b, a))),
    }
}

/// The i32 that is non-zero exactly if `condition` is (true) or is not (false), if that is simpler.
pub fn truth(func: &Func<'_>, condition: Value) -> Option<(Value, bool)> {
    let inst = func.inst(condition);
    let &x = inst.args.first()?;
    let Family::Compare(op) = inst.op.family() else { return None };
    match op {
        Compare::Eqz if func.ty(x) == Type::I32 => Some((x, false)),
        Compare::Ne if func.ty(x) == Type::I32 && func.as_const(inst.args[1]) == Some(0) => Some((x, true)),
        Compare::Eqz | Compare::Eq | Compare::Ne => None,
        Compare::LtS | Compare::LtU | Compare::GtS | Compare::GtU => None,
        Compare::LeS | Compare::LeU | Compare::GeS | Compare::GeU => None,
    }
}

fn unary(func: &Func<'_>, op: Op, result: Type, a: Value) -> Option<(Kind, Rewrite)> {
    let inner = func.inst(a);
    let x = func.root(*inner.args.first()?);
    let same = |rewrite| Some((Identity, rewrite));
    let form = |rewrite| Some((Form, rewrite));
    match (op, inner.op) {
        // !(a < b) = a >= b
        (Op::Eqz, compare) if compare.inverse().is_some() => form(Binary(compare.inverse()?, x, inner.args[1])),
        // !!b = b
        (Op::Eqz, Op::Eqz) if func.op(x).is_boolean() => form(Rewrite::Value(x)),
        // !!x = x != 0
        (Op::Eqz, Op::Eqz) => form(WithConst(Op::Ne, x, 0)),
        // !widen(x) = !x
        (Op::Eqz, Op::ExtendS | Op::ExtendU) => form(Unary(Op::Eqz, x)),
        // narrow(widen(x)) = x
        (Op::Wrap, Op::ExtendS | Op::ExtendU) => same(Rewrite::Value(x)),
        // sign(zero-extended x) = sign-extended x
        (Op::Sext32, Op::ExtendU) => form(Unary(Op::ExtendS, x)),
        // Sign extension of a value that is sign-extended from as few bits or fewer
        (Op::Sext8, inner) if sign_bits(inner) <= 8 => form(Rewrite::Value(a)),
        (Op::Sext16, inner) if sign_bits(inner) <= 16 => form(Rewrite::Value(a)),
        (Op::Sext32, inner) if sign_bits(inner) <= 32 => form(Rewrite::Value(a)),
        // Sign extension looks at the low bits only
        (Op::Sext8, Op::Sext16 | Op::Sext32) => form(Unary(Op::Sext8, x)),
        (Op::Sext16, Op::Sext32) => form(Unary(Op::Sext16, x)),
        // -(-x) = x, |-x| = |x|, ||x|| = |x|: these move bits, NaNs included
        (Op::Fneg, Op::Fneg) => form(Rewrite::Value(x)),
        (Op::Fabs, Op::Fneg) => form(Unary(Op::Fabs, x)),
        (Op::Fabs, Op::Fabs) => form(Rewrite::Value(a)),
        // There and back again
        (Op::Reinterpret, Op::Reinterpret) if func.ty(x) == result => same(Rewrite::Value(x)),
        _ => None,
    }
}

/// From how many bits the value of an operation is sign-extended; more than it can have if from none.
fn sign_bits(op: Op) -> u32 {
    const ANY: u32 = u32::MAX;
    match op.family() {
        Family::Bits(op) => match op {
            Bits::Sext8 => 8,
            Bits::Sext16 => 16,
            Bits::Sext32 => 32,
            Bits::Clz | Bits::Ctz | Bits::Popcnt => ANY,
        },
        Family::Load(op) => match op {
            Load::Load8S => 8,
            Load::Load16S => 16,
            Load::Load32S => 32,
            Load::Load | Load::Load8U | Load::Load16U | Load::Load32U | Load::Load64U => ANY,
        },
        Family::Convert(Convert::ExtendS) => 32,
        Family::Leaf(_) | Family::Integer(_) | Family::Compare(_) | Family::Convert(_) => ANY,
        Family::Float(_) | Family::FloatUnary(_) | Family::FloatCompare(_) | Family::Simd(_) => ANY,
        Family::Reference(_) | Family::Store(_) | Family::Memory(_) | Family::Global(_) | Family::Table(_) => ANY,
        Family::Call(_) | Family::Accounting(_) | Family::Terminator(_) => ANY,
    }
}

fn binary(func: &Func<'_>, op: Op, operand: Type, a: Value, b: Value) -> Option<(Kind, Rewrite)> {
    if func.ty(a) != func.ty(b) {
        return None;
    }
    if let Some(bits) = func.as_const(a)
        && func.as_const(b).is_none()
        && let Some(mirror) = op.mirror()
        && !is_nan(operand, bits)
    {
        // c op x = x op' c, which for floats leaves the choice between two NaNs as it is: c is none
        let kind = if mirror == op && !operand.is_float() { Order } else { Form };
        return Some((kind, Binary(mirror, b, a)));
    }
    if a == b
        && let Some(rewrite) = with_itself(op, a)
    {
        return Some((Identity, rewrite));
    }
    match operand {
        Type::I32 | Type::I64 => with_const(func, op, operand, a, func.as_const(b)?),
        Type::Void | Type::F32 | Type::F64 | Type::V128 | Type::Ref => None,
    }
}

/// `x op x` of integers; float operations are not among them.
fn with_itself(op: Op, x: Value) -> Option<Rewrite> {
    if let Family::Integer(op) = op.family() {
        return match op {
            // x - x = x ^ x = 0
            Integer::Sub | Integer::Xor => Some(Const(0)),
            // x & x = x | x = x
            Integer::And | Integer::Or => Some(Rewrite::Value(x)),
            Integer::Add | Integer::Mul | Integer::MulHigh => None,
            Integer::DivS | Integer::DivU | Integer::RemS | Integer::RemU => None,
            Integer::Shl | Integer::ShrS | Integer::ShrU | Integer::Rotl | Integer::Rotr => None,
        };
    }
    let Family::Compare(op) = op.family() else { return None };
    match op {
        Compare::Eqz => None,
        // x <= x
        Compare::Eq | Compare::LeS | Compare::LeU | Compare::GeS | Compare::GeU => Some(Const(1)),
        // x < x
        Compare::Ne | Compare::LtS | Compare::LtU | Compare::GtS | Compare::GtU => Some(Const(0)),
    }
}

/// `x op c` of integers of type `ty`.
fn with_const(func: &Func<'_>, op: Op, ty: Type, x: Value, c: u64) -> Option<(Kind, Rewrite)> {
    if let Family::Integer(op) = op.family() {
        return arithmetic_with_const(op, ty, x, c);
    }
    let Family::Compare(op) = op.family() else { return None };
    compare_with_const(func, op, x, c)
}

fn arithmetic_with_const(op: Integer, ty: Type, x: Value, c: u64) -> Option<(Kind, Rewrite)> {
    let (ones, width) = (mask(ty), if ty == Type::I32 { 32 } else { 64 });
    let log2 = u64::from(c.trailing_zeros());
    let same = |rewrite| Some((Identity, rewrite));
    let cheaper = |op, bits| Some((Strength, WithConst(op, x, bits)));
    match op {
        // x + 0 = x - 0 = x | 0 = x ^ 0 = x
        Integer::Add | Integer::Sub | Integer::Or | Integer::Xor if c == 0 => same(Rewrite::Value(x)),
        // x - c = x + -c
        Integer::Sub => Some((Form, WithConst(Op::Add, x, c.wrapping_neg()))),
        _ if absorbs_integer(op, ty, c) => same(Const(c)),
        // x * 1 = x / 1 = x
        Integer::Mul | Integer::DivS | Integer::DivU if c == 1 => same(Rewrite::Value(x)),
        // x % 1 = 0
        Integer::RemS | Integer::RemU if c == 1 => same(Const(0)),
        // x * 2^n = x << n
        Integer::Mul if c.is_power_of_two() => cheaper(Op::Shl, log2),
        // x / 2^n = x >> n, unsigned
        Integer::DivU if c.is_power_of_two() => cheaper(Op::ShrU, log2),
        // x % 2^n = x & (2^n - 1), unsigned
        Integer::RemU if c.is_power_of_two() => cheaper(Op::And, c - 1),
        // x & ~0 = x
        Integer::And if c == ones => same(Rewrite::Value(x)),
        // x << 0 = x, the count modulo the width
        Integer::Shl | Integer::ShrS | Integer::ShrU | Integer::Rotl | Integer::Rotr if c.is_multiple_of(width) => {
            same(Rewrite::Value(x))
        }
        Integer::Add | Integer::Mul | Integer::MulHigh | Integer::And | Integer::Or | Integer::Xor => None,
        Integer::DivS | Integer::DivU | Integer::RemS | Integer::RemU => None,
        Integer::Shl | Integer::ShrS | Integer::ShrU | Integer::Rotl | Integer::Rotr => None,
    }
}

/// Whether `x op c` is `c` whatever `x` is.
pub fn absorbs(op: Op, ty: Type, c: u64) -> bool {
    matches!(op.family(), Family::Integer(op) if absorbs_integer(op, ty, c))
}

fn absorbs_integer(op: Integer, ty: Type, c: u64) -> bool {
    match op {
        // x * 0 = x & 0 = 0
        Integer::Mul | Integer::And => c == 0,
        // x | ~0 = ~0
        Integer::Or => c == mask(ty),
        Integer::Add | Integer::Sub | Integer::MulHigh | Integer::Xor => false,
        Integer::DivS | Integer::DivU | Integer::RemS | Integer::RemU => false,
        Integer::Shl | Integer::ShrS | Integer::ShrU | Integer::Rotl | Integer::Rotr => false,
    }
}

fn compare_with_const(func: &Func<'_>, op: Compare, x: Value, c: u64) -> Option<(Kind, Rewrite)> {
    match (op, c) {
        // x == 0 = !x
        (Compare::Eq, 0) => Some((Identity, Unary(Op::Eqz, x))),
        // b != 0 = b
        (Compare::Ne, 0) if func.op(x).is_boolean() => Some((Form, Rewrite::Value(x))),
        // Unsigned: x < 0 is false, x >= 0 is true, x > 0 is x != 0, x <= 0 and x < 1 are !x
        (Compare::LtU, 0) => Some((Identity, Const(0))),
        (Compare::GeU, 0) => Some((Identity, Const(1))),
        (Compare::GtU, 0) => Some((Form, WithConst(Op::Ne, x, 0))),
        (Compare::LeU, 0) | (Compare::LtU, 1) => Some((Form, Unary(Op::Eqz, x))),
        _ => None,
    }
}

/// `(x op d) op c = x op (d op c)` of integers, if nothing else uses `x op d`. Else both would live: machine code grows by
/// one in a hundred, as every frame pointer that is moved is then kept in its old place, too.
pub fn reassociate(func: &Func<'_>, uses: &[u32], op: Op, inner: Value, c: Value) -> Option<Rewrite> {
    let (ty, &[x, d]) = (func.ty(inner), func.args(inner)) else { return None };
    let associates = matches!(op, Op::Add | Op::Mul | Op::And | Op::Or | Op::Xor) && func.op(inner) == op;
    if !associates || uses[inner.index()] != 1 {
        return None;
    }
    let combined = fold(op, ty, ty, &[func.as_const(d)?, func.as_const(c)?])?;
    Some(WithConst(op, x, combined))
}
