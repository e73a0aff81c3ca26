//! Algebraic rules. Construction applies some as it emits code; the pass `simplify` applies all of them in place.
//!
//! Each rule is a match arm below, with its algebra as a comment and with a [`Kind`]. All rules hold for wrap-around
//! integers; for floats there are only those that move bits. The rules are folklore; see Warren, "Hacker's Delight".

use super::fold::{fold, is_nan, mask};
use super::func::Func;
use super::index::Value;
use super::ops::family::{Bits, Compare, Convert, Family, FloatUnary, Integer, Load};
use super::ops::{Op, Type};

/// A replacement for an operation.
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

/// The purpose of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Puts constants on the right of commutative integer operations, so that there is one form to recognise and share.
    Order,
    /// Removes the operation, or replaces it by `eqz`.
    Identity,
    /// Replaces the operation by a cheaper one.
    Strength,
    /// Replaces the operation by one of the same cost that later rules and passes expect.
    Form,
}

use Kind::{Form, Identity, Order, Strength};

/// The first rule that applies to `op` on `args`, which have type `operand`, with a result of type `result`.
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

/// The i32 that is non-zero exactly if `condition` is (`true`) or is not (`false`) non-zero, if there is a simpler one.
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
    let inner = func.inst(a).op;
    let x = func.root(*func.args(a).first()?);
    let same = |rewrite| Some((Identity, rewrite));
    let form = |rewrite| Some((Form, rewrite));
    match op.family() {
        Family::Compare(op) => match op {
            Compare::Eqz => negation(func, a, x),
            Compare::Eq | Compare::Ne | Compare::LtS | Compare::LtU | Compare::GtS | Compare::GtU => None,
            Compare::LeS | Compare::LeU | Compare::GeS | Compare::GeU => None,
        },
        Family::Convert(op) => match op {
            // narrow(widen(x)) = x
            Convert::Wrap if widens(inner) => same(Rewrite::Value(x)),
            // Reinterpreting twice gives the original value.
            Convert::Reinterpret if inner == Op::Reinterpret && func.ty(x) == result => same(Rewrite::Value(x)),
            Convert::Wrap | Convert::Reinterpret | Convert::ExtendS | Convert::ExtendU => None,
            Convert::TruncS | Convert::TruncU | Convert::TruncSatS | Convert::TruncSatU => None,
            Convert::ConvertS | Convert::ConvertU | Convert::Demote | Convert::Promote => None,
        },
        Family::Bits(op) => sign_extension(op, inner, x, a),
        // -(-x) = x, |-x| = |x|, ||x|| = |x|: these move bits, NaNs included
        Family::FloatUnary(op) => match op {
            FloatUnary::Fneg if inner == Op::Fneg => form(Rewrite::Value(x)),
            FloatUnary::Fabs if inner == Op::Fneg => form(Unary(Op::Fabs, x)),
            FloatUnary::Fabs if inner == Op::Fabs => form(Rewrite::Value(a)),
            FloatUnary::Fneg | FloatUnary::Fabs | FloatUnary::Fsqrt => None,
            FloatUnary::Fceil | FloatUnary::Ffloor | FloatUnary::Ftrunc | FloatUnary::Fnearest => None,
        },
        Family::Leaf(_) | Family::Integer(_) | Family::Float(_) | Family::FloatCompare(_) | Family::Simd(_) => None,
        Family::Reference(_) | Family::Load(_) | Family::Store(_) | Family::Memory(_) | Family::Global(_) => None,
        Family::Table(_) | Family::Call(_) | Family::Exception(_) | Family::Accounting(_) | Family::Terminator(_) => None,
    }
}

/// `!a`, where `x` is the first argument of `a`.
fn negation(func: &Func<'_>, a: Value, x: Value) -> Option<(Kind, Rewrite)> {
    let inner = func.inst(a);
    if let Some(inverse) = inner.op.inverse() {
        // !(a < b) = a >= b
        return Some((Form, Binary(inverse, x, inner.args[1])));
    }
    if inner.op == Op::Eqz {
        // !!b = b; !!x = x != 0
        return Some((Form, if func.op(x).is_boolean() { Rewrite::Value(x) } else { WithConst(Op::Ne, x, 0) }));
    }
    // !widen(x) = !x
    widens(inner.op).then_some((Form, Unary(Op::Eqz, x)))
}

/// Whether an operation extends an i32 to an i64.
fn widens(op: Op) -> bool {
    op == Op::ExtendS || op == Op::ExtendU
}

/// The sign extension `op` of `a`, which is the operation `inner` on `x`.
fn sign_extension(op: Bits, inner: Op, x: Value, a: Value) -> Option<(Kind, Rewrite)> {
    let bits = match op {
        Bits::Sext8 => 8,
        Bits::Sext16 => 16,
        Bits::Sext32 => 32,
        Bits::Clz | Bits::Ctz | Bits::Popcnt => return None,
    };
    if op == Bits::Sext32 && inner == Op::ExtendU {
        // sign(zero-extended x) = sign-extended x
        return Some((Form, Unary(Op::ExtendS, x)));
    }
    if sign_bits(inner) <= bits {
        // Sign extension of a value that is already sign-extended from as few bits or fewer
        return Some((Form, Rewrite::Value(a)));
    }
    // Sign extension looks at the low bits only
    (inner == Op::Sext16 || inner == Op::Sext32).then_some((Form, Unary(op.into(), x)))
}

/// The number of bits from which the value of an operation is sign-extended, or more than any type has.
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
        Family::Call(_) | Family::Exception(_) | Family::Accounting(_) | Family::Terminator(_) => ANY,
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
        // c op x = x op' c. For floats, c is not a NaN, so the choice between two NaNs stays the same.
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
        Type::Void | Type::F32 | Type::F64 | Type::V128 | Type::V256 | Type::Ref | Type::Gc => None,
    }
}

/// `x op x` for integers; float operations are not included.
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

/// `x op c` for integers of type `ty`.
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

/// Whether `x op c` is `c` for every `x`.
pub fn absorbs(op: Op, ty: Type, c: u64) -> bool {
    match op.family() {
        Family::Integer(op) => absorbs_integer(op, ty, c),
        Family::Leaf(_) | Family::Bits(_) | Family::Compare(_) | Family::FloatCompare(_) | Family::Float(_) => false,
        Family::FloatUnary(_) | Family::Convert(_) | Family::Simd(_) | Family::Reference(_) => false,
        Family::Load(_) | Family::Store(_) | Family::Memory(_) | Family::Global(_) | Family::Table(_) => false,
        Family::Call(_) | Family::Exception(_) | Family::Accounting(_) | Family::Terminator(_) => false,
    }
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
    match op {
        // x == 0 = !x
        Compare::Eq if c == 0 => Some((Identity, Unary(Op::Eqz, x))),
        // b != 0 = b
        Compare::Ne if c == 0 && func.op(x).is_boolean() => Some((Form, Rewrite::Value(x))),
        // Unsigned: x < 0 is false, x >= 0 is true, x > 0 is x != 0, x <= 0 and x < 1 are !x
        Compare::LtU if c == 0 => Some((Identity, Const(0))),
        Compare::GeU if c == 0 => Some((Identity, Const(1))),
        Compare::GtU if c == 0 => Some((Form, WithConst(Op::Ne, x, 0))),
        Compare::LeU if c == 0 => Some((Form, Unary(Op::Eqz, x))),
        Compare::LtU if c == 1 => Some((Form, Unary(Op::Eqz, x))),
        Compare::Eqz | Compare::Eq | Compare::Ne => None,
        Compare::LtS | Compare::GtS | Compare::LeS | Compare::GeS => None,
        Compare::LtU | Compare::GtU | Compare::LeU | Compare::GeU => None,
    }
}

/// `(x op d) op c = x op (d op c)` for integers, if `x op d` has no other use. Otherwise both values would be live:
/// machine code grows by 1 %, because the old value of every frame pointer that is moved must then be kept too.
pub fn reassociate(func: &Func<'_>, uses: &[u32], op: Op, inner: Value, c: Value) -> Option<Rewrite> {
    let (ty, &[x, d]) = (func.ty(inner), func.args(inner)) else { return None };
    if !associates(op) || func.op(inner) != op || uses[inner.index()] != 1 {
        return None;
    }
    let combined = fold(op, ty, ty, &[func.as_const(d)?, func.as_const(c)?])?;
    Some(WithConst(op, x, combined))
}

/// Whether `(a op b) op c = a op (b op c)` for integers.
fn associates(op: Op) -> bool {
    match op.family() {
        Family::Integer(op) => match op {
            Integer::Add | Integer::Mul | Integer::And | Integer::Or | Integer::Xor => true,
            Integer::Sub | Integer::MulHigh | Integer::DivS | Integer::DivU | Integer::RemS | Integer::RemU => false,
            Integer::Shl | Integer::ShrS | Integer::ShrU | Integer::Rotl | Integer::Rotr => false,
        },
        Family::Leaf(_) | Family::Bits(_) | Family::Compare(_) | Family::FloatCompare(_) | Family::Float(_) => false,
        Family::FloatUnary(_) | Family::Convert(_) | Family::Simd(_) | Family::Reference(_) => false,
        Family::Load(_) | Family::Store(_) | Family::Memory(_) | Family::Global(_) | Family::Table(_) => false,
        Family::Call(_) | Family::Exception(_) | Family::Accounting(_) | Family::Terminator(_) => false,
    }
}
