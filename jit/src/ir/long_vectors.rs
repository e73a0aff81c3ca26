//! The rule about values of type v256, for the [verifier](mod@crate::analysis::verify).

use super::family::{Family, Leaf};
use super::func::Func;
use super::index::{Block, Value};
use super::ops::{Op, Type};
use rustc_hash::FxHashSet;

/// A violation of rule 13: the block, the instruction if it is one that is wrong, and what is wrong.
pub type Misplaced = (Block, Option<Value>, String);

/// Checks rule 13 in these blocks, except for the operations on vectors. `defined_in` gives the block of a value's definition.
pub fn check(func: &Func<'_>, blocks: &[Block], defined_in: impl Fn(Value) -> Option<Block>) -> Result<(), Misplaced> {
    let all = || blocks.iter().flat_map(|&block| func.block(block).insts.iter().map(move |&value| (block, value)));
    let mut live: Vec<(Value, Block)> = Vec::new();
    for (block, value) in all().filter(|&(_, value)| func.has_v256(value)) {
        let allowed = match func.op(value).family() {
            Family::Leaf(leaf) => leaf == Leaf::Phi,
            Family::Simd(_) | Family::Load(_) | Family::Store(_) => true,
            Family::Integer(_) | Family::Bits(_) | Family::Compare(_) | Family::Convert(_) => false,
            Family::Float(_) | Family::FloatUnary(_) | Family::FloatCompare(_) => false,
            Family::Reference(_) | Family::Memory(_) | Family::Global(_) | Family::Table(_) => false,
            Family::Call(_) | Family::Exception(_) | Family::Accounting(_) | Family::Terminator(_) => false,
        };
        if !allowed {
            return Err((block, Some(value), "no operand or result of it can be a v256".into()));
        }
        let args = func.args(value).iter().enumerate().filter(|&(_, &arg)| func.ty(arg) == Type::V256);
        let phi = func.op(value) == Op::Phi;
        live.extend(args.map(|(i, &arg)| (arg, if phi { func.block(block).preds[i] } else { block })));
        if func.ty(value) == Type::V256 {
            live.push((value, block));
        }
    }
    let mut seen = FxHashSet::default();
    while let Some((value, block)) = live.pop() {
        if !seen.insert((value, block)) {
            continue;
        }
        let calls = |&value: &Value| func.op(value).is_call() || func.op(value) == Op::Poll;
        if func.block(block).insts.iter().any(calls) {
            return Err((block, None, format!("{value} is live in a block that calls")));
        }
        if defined_in(value).is_some_and(|home| home != block) {
            live.extend(func.block(block).preds.iter().map(|&pred| (value, pred)));
        }
    }
    Ok(())
}
