//! Folds constants and replaces operations by simpler ones, by the rules of [`rules`].
//!
//! ```text
//! v2: i32 = const 8
//! v3: i32 = mul v2, v0      →    v3: i32 = shl v0, v5     with v5 = const 3
//! v4: i32 = eqz v3
//! branch v4, b1, b2         →    branch v3, b2, b1
//! ```
//!
//! It runs first, so that every later pass sees fewer forms of the same computation: constants are on the right, `sub`
//! of a constant is an `add`, conditions contain no `eqz`. One sweep in reverse postorder, in which arguments are
//! simplified before their users, except along back edges. Each instruction is rewritten until no rule applies; every
//! rule makes it smaller or more canonical. Cost: O(instructions).

use super::pass::{Analysis, Changed, Context, Pass};
use crate::analysis::{Cfg, uses::count_uses};
use crate::ir::fold::{fold, mask};
use crate::ir::rules::{self, Rewrite};
use crate::ir::{Block, Effect, Func, Op, Type, Value};

/// Constant folding and algebraic simplification.
pub const PASS: Pass = Pass { name: "simplify", run, needs: &[Analysis::Cfg], keeps: Analysis::OF_BLOCKS };

fn run(func: &mut Func<'_>, cx: &Context<'_>) -> Changed {
    sweep(func, cx.cfg(), cx)
}

/// Simplifies `func`, whose graph is `cfg`. It need not be the function of the context.
pub(super) fn sweep(func: &mut Func<'_>, cfg: &Cfg, cx: &Context<'_>) -> Changed {
    let uses = cx.scratch.alloc_slice_fill_copy(func.num_values(), 0);
    count_uses(func, func.blocks(), |value| value, uses);
    let _ = cx.meter.ask();
    let mut changed = 0;
    // New constants, each with the index before which it is inserted.
    let mut constants = Vec::new();
    'blocks: for &block in cfg.order() {
        for i in 0..func.block(block).insts.len() {
            if !cx.goes_on(1) {
                break 'blocks;
            }
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

/// The result of simplifying an instruction.
enum Change {
    /// A rewrite by a rule.
    Rewrite(Rewrite),
    /// A branch on this value, with exchanged successors.
    BranchUnless(Value),
    /// A branch on this value.
    BranchIf(Value),
}

/// Makes the change. Returns the new constant that it needs, if any.
fn apply(func: &mut Func<'_>, block: Block, value: Value, change: Change) -> Option<Value> {
    match change {
        Change::Rewrite(Rewrite::Value(new)) => func.replace(value, new),
        Change::Rewrite(Rewrite::Const(bits)) => func.become_op(value, Op::Const, bits, &[]),
        Change::Rewrite(Rewrite::Unary(op, a)) => func.become_op(value, op, 0, &[a]),
        Change::Rewrite(Rewrite::Binary(op, a, b)) => func.become_op(value, op, 0, &[a, b]),
        Change::Rewrite(Rewrite::Ternary(op, a, b, c)) => func.become_op(value, op, 0, &[a, b, c]),
        Change::Rewrite(Rewrite::WithConst(op, a, bits)) => {
            let (ty, pc) = (func.ty(a), func.inst(value).pc);
            let constant = func.create(Op::Const, ty, pc, 0, bits & mask(ty), &[]);
            func.become_op(value, op, 0, &[a, constant]);
            return Some(constant);
        }
        Change::BranchIf(condition) => func.set_args(value, &[condition]),
        Change::BranchUnless(condition) => {
            func.set_args(value, &[condition]);
            func.swap_arms(block);
        }
    }
    None
}

/// The first rule that applies to `value`, which is in `block`.
fn simplify(func: &Func<'_>, uses: &[u32], block: Block, value: Value) -> Option<Change> {
    let inst = func.inst(value);
    if inst.op == Op::Branch {
        return branch(func, block, inst.args[0]);
    }
    if inst.args.is_empty() || !matches!(inst.op.effect(), Effect::Pure | Effect::Trap) {
        return None;
    }
    let operand = func.ty(inst.args[0]);
    let simpler = match fold_value(func, value, operand) {
        Some(bits) => Some(Rewrite::Const(bits)),
        None => rules::rewrite(func, inst.op, operand, inst.ty, &inst.args).map(|(_, rewrite)| rewrite),
    };
    let simpler = simpler.or_else(|| match *inst.args {
        [a, b] if func.ty(a) == func.ty(b) => rules::reassociate(func, uses, inst.op, a, b),
        _ => None,
    });
    simpler.map(Change::Rewrite)
}

/// The value of a numeric operation on constants.
fn fold_value(func: &Func<'_>, value: Value, operand: Type) -> Option<u64> {
    let inst = func.inst(value);
    let mut bits = [0; 2];
    let bits = bits.get_mut(..inst.args.len())?;
    for (slot, &arg) in bits.iter_mut().zip(&*inst.args) {
        *slot = func.as_const(arg)?;
    }
    fold(inst.op, operand, inst.ty, bits)
}

fn branch(func: &Func<'_>, block: Block, condition: Value) -> Option<Change> {
    match rules::truth(func, condition)? {
        // if x != 0 = if x
        (x, true) => Some(Change::BranchIf(x)),
        // Phis distinguish two edges to one block by their order, which must not change then.
        (x, false) => (func.block(block).succs[0] != func.block(block).succs[1]).then_some(Change::BranchUnless(x)),
    }
}
