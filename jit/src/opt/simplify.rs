//! Folds constants and replaces operations by simpler ones, by local algebra.
//!
//! Each rule is a match arm below, with its algebra. All rules hold for wrap-around integers; floats have only those
//! that move bits, and nothing is ever folded to a NaN (whose bits may differ from machine to machine) or to a trap.
//!
//! ```text
//! v2: i32 = const 8
//! v3: i32 = mul v2, v0      →    v3: i32 = shl v0, v5     with v5 = const 3
//! v4: i32 = eqz v3
//! branch v4, b1, b2         →    branch v3, b2, b1
//! ```
//!
//! It runs first, so that every later pass sees few forms of the same thing: constants stand right, `sub` of a constant
//! is an `add`, conditions carry no `eqz`. One sweep in reverse postorder, where arguments have been simplified before
//! what uses them, except along back edges; each instruction is rewritten until no rule applies, and every rule makes
//! it smaller or more canonical. Cost: O(instructions). The rules are folklore; see Warren, "Hacker's Delight".

use super::{Analysis, Changed, Context, Pass};
use crate::ir::{Block, Effect, Func, Op, Type, Value};
use bumpalo::Bump;
use weir_bytecode::{Opcode, semantics};

/// Constant folding and algebraic simplification.
pub const PASS: Pass = Pass { name: "simplify", run, needs: &[Analysis::Cfg], keeps: Analysis::OF_BLOCKS };

fn run(func: &mut Func<'_>, cx: &Context<'_>) -> Changed {
    let uses = count_uses(func, &cx.scratch);
    let mut changed = 0;
    // New constants, each with the index that it goes before.
    let mut constants = Vec::new();
    for &block in cx.cfg().order() {
        for i in 0..func.block(block).insts.len() {
            let value = func.block(block).insts[i];
            func.resolve_args(value);
            while let Some(rewrite) = simplify(func, uses, block, value) {
                if !cx.spend() {
                    break;
                }
                constants.extend(apply(func, block, value, rewrite).map(|constant| (i, constant)));
                changed += 1;
                if func.is_replaced(value) {
                    break;
                }
            }
        }
        if !constants.is_empty() {
            func.insert(block, &constants);
            constants.clear();
        }
    }
    func.settle();
    Changed(changed)
}

/// What an instruction turns into.
enum Rewrite {
    /// This value, everywhere.
    Value(Value),
    /// A constant of its type.
    Const(u64),
    /// Another operation on one value, two, or three.
    Unary(Op, Value),
    Binary(Op, Value, Value),
    Ternary(Op, Value, Value, Value),
    /// Another operation on a value and a new constant of the same type.
    WithConst(Op, Value, u64),
    /// A branch on this value, with exchanged successors.
    BranchUnless(Value),
    /// A branch on this value.
    BranchIf(Value),
}

use Rewrite::{Binary, BranchIf, BranchUnless, Const, Ternary, Unary, WithConst};

/// Does it. Returns the new constant that it takes, if it takes one.
fn apply(func: &mut Func<'_>, block: Block, value: Value, rewrite: Rewrite) -> Option<Value> {
    match rewrite {
        Rewrite::Value(new) => func.replace(value, new),
        Const(bits) => func.become_op(value, Op::Const, bits, &[]),
        Unary(op, a) => func.become_op(value, op, 0, &[a]),
        Binary(op, a, b) => func.become_op(value, op, 0, &[a, b]),
        Ternary(op, a, b, c) => func.become_op(value, op, 0, &[a, b, c]),
        WithConst(op, a, bits) => {
            let (ty, pc) = (func.ty(a), func.inst(value).pc);
            let constant = func.create(Op::Const, ty, pc, 0, bits & mask(ty), &[]);
            func.become_op(value, op, 0, &[a, constant]);
            return Some(constant);
        }
        BranchIf(condition) => func.set_args(value, &[condition]),
        BranchUnless(condition) => {
            func.set_args(value, &[condition]);
            func.swap_arms(block);
        }
    }
    None
}

/// The first rule that applies to `value`, which stands in `block`.
fn simplify(func: &Func<'_>, uses: &[u32], block: Block, value: Value) -> Option<Rewrite> {
    let inst = func.inst(value);
    if inst.args.is_empty() || !matches!(inst.op.effect(), Effect::Pure | Effect::Trap | Effect::Terminator) {
        return None;
    }
    if let Some(bits) = fold(func, value) {
        return Some(Const(bits));
    }
    match (inst.op, &*inst.args) {
        (Op::Select, &[condition, a, b]) => select(func, condition, a, b),
        (Op::Branch, &[condition]) => branch(func, block, condition),
        (op, &[a]) => unary(func, op, inst.ty, a),
        (op, &[a, b]) if func.ty(a) == func.ty(b) => binary(func, op, a, b).or_else(|| reassociate(func, uses, op, a, b)),
        _ => None,
    }
}

/// The value of a numeric operation on constants.
fn fold(func: &Func<'_>, value: Value) -> Option<u64> {
    let inst = func.inst(value);
    let foldable = inst.args.iter().all(|&arg| func.as_const(arg).is_some());
    if !foldable || !matches!(inst.op.effect(), Effect::Pure | Effect::Trap) {
        return None;
    }
    let opcode = inst.op.opcode(func.operand_type(value), inst.ty)?;
    let mut args = [0; 2];
    for (slot, &arg) in args.iter_mut().zip(&*inst.args) {
        *slot = func.as_const(arg)?;
    }
    fold_bits(opcode, inst.ty, &args[..inst.args.len()])
}

/// What a numeric instruction makes of constants, unless that is a trap or a NaN.
pub(super) fn fold_bits(opcode: Opcode, ty: Type, args: &[u64]) -> Option<u64> {
    let bits = semantics::eval(opcode, args)?.ok()?;
    let bits = if matches!(ty, Type::I32 | Type::F32) { bits & 0xFFFF_FFFF } else { bits };
    (!is_nan(ty, bits)).then_some(bits)
}

fn is_nan(ty: Type, bits: u64) -> bool {
    match ty {
        Type::F32 => f32::from_bits(bits as u32).is_nan(),
        Type::F64 => f64::from_bits(bits).is_nan(),
        _ => false,
    }
}

fn select(func: &Func<'_>, condition: Value, a: Value, b: Value) -> Option<Rewrite> {
    if let Some(bits) = func.as_const(condition) {
        // 0 ? a : b = b
        return Some(Rewrite::Value(if bits != 0 { a } else { b }));
    }
    if a == b {
        // c ? a : a = a
        return Some(Rewrite::Value(a));
    }
    match truth(func, condition) {
        // (x != 0) ? a : b = x ? a : b
        Some((x, true)) => Some(Ternary(Op::Select, x, a, b)),
        // !x ? a : b = x ? b : a
        Some((x, false)) => Some(Ternary(Op::Select, x, b, a)),
        None => None,
    }
}

fn branch(func: &Func<'_>, block: Block, condition: Value) -> Option<Rewrite> {
    match truth(func, condition)? {
        // if x != 0 = if x
        (x, true) => Some(BranchIf(x)),
        // Phis tell two edges to one block apart by their order, which must then stay.
        (x, false) => (func.block(block).succs[0] != func.block(block).succs[1]).then_some(BranchUnless(x)),
    }
}

/// The i32 that is non-zero exactly if `condition` is (true) or is not (false), if that is simpler.
fn truth(func: &Func<'_>, condition: Value) -> Option<(Value, bool)> {
    let inst = func.inst(condition);
    let &x = inst.args.first()?;
    if func.ty(x) != Type::I32 {
        return None;
    }
    match inst.op {
        Op::Eqz => Some((x, false)),
        Op::Ne if func.as_const(inst.args[1]) == Some(0) => Some((x, true)),
        _ => None,
    }
}

fn unary(func: &Func<'_>, op: Op, ty: Type, a: Value) -> Option<Rewrite> {
    let inner = func.inst(a);
    let x = inner.args.first().copied();
    let x_is = |ty| x.is_some_and(|x| func.ty(x) == ty);
    match (op, inner.op, x) {
        // !(a < b) = a >= b
        (Op::Eqz, compare, Some(x)) if compare.inverse().is_some() => Some(Binary(compare.inverse()?, x, inner.args[1])),
        // !!b = b
        (Op::Eqz, Op::Eqz, Some(x)) if func.op(x).is_boolean() => Some(Rewrite::Value(x)),
        // !!x = x != 0
        (Op::Eqz, Op::Eqz, Some(x)) => Some(WithConst(Op::Ne, x, 0)),
        // !widen(x) = !x
        (Op::Eqz, Op::ExtendS | Op::ExtendU, Some(x)) => Some(Unary(Op::Eqz, x)),
        // narrow(widen(x)) = x
        (Op::Wrap, Op::ExtendS | Op::ExtendU, Some(x)) => Some(Rewrite::Value(x)),
        // sign(zero-extended x) = sign-extended x
        (Op::Sext32, Op::ExtendU, Some(x)) => Some(Unary(Op::ExtendS, x)),
        // Sign extension of what is sign-extended from as few bits or fewer
        (Op::Sext8, Op::Sext8 | Op::Load8S, _) => Some(Rewrite::Value(a)),
        (Op::Sext16, Op::Sext8 | Op::Sext16 | Op::Load8S | Op::Load16S, _) => Some(Rewrite::Value(a)),
        (Op::Sext32, Op::Sext8 | Op::Sext16 | Op::Sext32 | Op::ExtendS, _) => Some(Rewrite::Value(a)),
        (Op::Sext32, Op::Load8S | Op::Load16S | Op::Load32S, _) => Some(Rewrite::Value(a)),
        // Sign extension looks at the low bits only
        (Op::Sext8, Op::Sext16 | Op::Sext32, Some(x)) => Some(Unary(Op::Sext8, x)),
        (Op::Sext16, Op::Sext32, Some(x)) => Some(Unary(Op::Sext16, x)),
        // -(-x) = x, |-x| = |x|, ||x|| = |x|: these move bits, NaNs included
        (Op::Fneg, Op::Fneg, Some(x)) => Some(Rewrite::Value(x)),
        (Op::Fabs, Op::Fneg, Some(x)) => Some(Unary(Op::Fabs, x)),
        (Op::Fabs, Op::Fabs, _) => Some(Rewrite::Value(a)),
        // There and back again
        (Op::Reinterpret, Op::Reinterpret, Some(x)) if x_is(ty) => Some(Rewrite::Value(x)),
        _ => None,
    }
}

fn binary(func: &Func<'_>, op: Op, a: Value, b: Value) -> Option<Rewrite> {
    if let Some(swapped) = op.mirror()
        && func.as_const(a).is_some_and(|bits| !is_nan(func.ty(a), bits))
        && func.as_const(b).is_none()
    {
        // c op x = x op' c, which for floats leaves the choice between two NaNs as it is: c is none
        return Some(Binary(swapped, b, a));
    }
    if a == b
        && let Some(rewrite) = with_itself(op, a)
    {
        return Some(rewrite);
    }
    match func.ty(a) {
        ty @ (Type::I32 | Type::I64) => match func.as_const(b) {
            Some(c) => with_const(func, op, ty, a, c),
            None => None,
        },
        _ => None,
    }
}

/// `x op x` of integers; float operations are not among them.
fn with_itself(op: Op, x: Value) -> Option<Rewrite> {
    match op {
        // x - x = x ^ x = 0
        Op::Sub | Op::Xor => Some(Const(0)),
        // x & x = x | x = x
        Op::And | Op::Or => Some(Rewrite::Value(x)),
        // x <= x
        Op::Eq | Op::LeS | Op::LeU | Op::GeS | Op::GeU => Some(Const(1)),
        // x < x
        Op::Ne | Op::LtS | Op::LtU | Op::GtS | Op::GtU => Some(Const(0)),
        _ => None,
    }
}

/// `x op c` of integers of type `ty`.
fn with_const(func: &Func<'_>, op: Op, ty: Type, x: Value, c: u64) -> Option<Rewrite> {
    let (ones, bits) = (mask(ty), width(ty));
    match op {
        // x + 0 = x
        Op::Add | Op::Or | Op::Xor if c == 0 => Some(Rewrite::Value(x)),
        // x - c = x + -c
        Op::Sub => Some(WithConst(Op::Add, x, c.wrapping_neg())),
        // x * 0 = x & 0 = 0
        Op::Mul | Op::And if c == 0 => Some(Const(0)),
        // x * 1 = x
        Op::Mul | Op::DivS | Op::DivU if c == 1 => Some(Rewrite::Value(x)),
        // x % 1 = 0
        Op::RemS | Op::RemU if c == 1 => Some(Const(0)),
        // x * 2^n = x << n
        Op::Mul if c.is_power_of_two() => Some(WithConst(Op::Shl, x, c.trailing_zeros().into())),
        // x / 2^n = x >> n, unsigned
        Op::DivU if c.is_power_of_two() => Some(WithConst(Op::ShrU, x, c.trailing_zeros().into())),
        // x % 2^n = x & (2^n - 1), unsigned
        Op::RemU if c.is_power_of_two() => Some(WithConst(Op::And, x, c - 1)),
        // x & ~0 = x
        Op::And if c == ones => Some(Rewrite::Value(x)),
        // x | ~0 = ~0
        Op::Or if c == ones => Some(Const(ones)),
        // x << 0 = x
        Op::Shl | Op::ShrS | Op::ShrU | Op::Rotl | Op::Rotr if c.is_multiple_of(bits) => Some(Rewrite::Value(x)),
        // x == 0 = !x
        Op::Eq if c == 0 => Some(Unary(Op::Eqz, x)),
        // b != 0 = b
        Op::Ne if c == 0 && func.op(x).is_boolean() => Some(Rewrite::Value(x)),
        // Unsigned: x < 0 is false, x >= 0 is true, x > 0 is x != 0, x <= 0 and x < 1 are !x
        Op::LtU if c == 0 => Some(Const(0)),
        Op::GeU if c == 0 => Some(Const(1)),
        Op::GtU if c == 0 => Some(WithConst(Op::Ne, x, 0)),
        Op::LeU if c == 0 => Some(Unary(Op::Eqz, x)),
        Op::LtU if c == 1 => Some(Unary(Op::Eqz, x)),
        _ => None,
    }
}

/// `(x op d) op c = x op (d op c)` of integers, if nobody else uses `x op d`. Else both would live: machine code grows by
/// one in a hundred, as every frame pointer that is moved stays at hand where it was, too.
fn reassociate(func: &Func<'_>, uses: &[u32], op: Op, inner: Value, c: Value) -> Option<Rewrite> {
    let (ty, &[x, d]) = (func.ty(inner), func.args(inner)) else { return None };
    let associates = matches!(op, Op::Add | Op::Mul | Op::And | Op::Or | Op::Xor) && func.op(inner) == op;
    if !associates || uses[inner.index()] != 1 {
        return None;
    }
    let combined = semantics::eval(op.opcode(ty, ty)?, &[func.as_const(d)?, func.as_const(c)?])?.ok()?;
    Some(WithConst(op, x, combined))
}

/// How often each value is used.
fn count_uses<'s>(func: &Func<'_>, scratch: &'s Bump) -> &'s [u32] {
    let uses = scratch.alloc_slice_fill_copy(func.num_values(), 0);
    for value in func.blocks().flat_map(|block| &func.block(block).insts) {
        func.args(*value).iter().for_each(|arg| uses[arg.index()] += 1);
    }
    uses
}

/// Bits of an integer type.
fn width(ty: Type) -> u64 {
    if ty == Type::I32 { 32 } else { 64 }
}

/// All bits of an integer type.
fn mask(ty: Type) -> u64 {
    if ty == Type::I32 { 0xFFFF_FFFF } else { u64::MAX }
}
