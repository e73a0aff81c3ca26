//! The rules about landing blocks and the edges that lead there, for the [verifier](mod@crate::analysis::verify).

use super::func::Func;
use super::index::{Block, Value};
use super::ops::{NO_TAG, Op, Type};
use weir_bytecode::module::Module;
use weir_bytecode::sidetable::Handler;

/// The handlers of `func` in its module, by branch entry.
pub fn handlers(func: &Func<'_>, module: Option<&Module>) -> Vec<Handler> {
    let body = module.filter(|module| func.index < module.funcs.len() as u32).and_then(|module| module.body(func.index));
    let mut handlers: Vec<Handler> = body.map_or(Vec::new(), |body| body.handlers.to_vec());
    handlers.sort_unstable_by_key(|handler| handler.entry);
    handlers
}

/// Checks the edges from `block` by rule 12.
pub fn check_edges(func: &Func<'_>, block: Block) -> Result<(), String> {
    let data = func.block(block);
    let exceptional = func.exceptional_edges(block);
    for (k, &succ) in data.succs.iter().enumerate() {
        match (func.catch(succ).is_some(), k < exceptional) {
            (true, false) => return Err(format!("{succ} is a landing block")),
            (false, true) => return Err(format!("{succ} is no landing block")),
            (true, true) | (false, false) => {}
        }
    }
    let mut landings: Vec<Block> = data.succs[..exceptional].to_vec();
    landings.sort_unstable();
    if landings.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err("a landing block twice".into());
    }
    let tries = func.terminator(block).is_some_and(|last| func.op(last) == Op::Try);
    if tries && protected_call(func, block).is_none() { Err("it does not follow a call".into()) } else { Ok(()) }
}

/// The position of the call that is protected by the `try` at the end of `block`.
fn protected_call(func: &Func<'_>, block: Block) -> Option<usize> {
    let (last, others) = func.block(block).insts.split_last()?;
    let call = others.iter().rposition(|&value| func.op(value) != Op::Result)?;
    (func.op(*last) == Op::Try && func.op(others[call]).calls_function()).then_some(call)
}

/// Checks value number `i` of a `catch`, whose type is `ty`. `handlers` are those of the function in `module`. An error is the number
/// of the rule and the violation.
pub fn check_caught(
    (module, handlers): (&Module, &[Handler]),
    func: &Func<'_>,
    catch: Value,
    (i, ty): (usize, Type),
) -> Result<(), (u32, String)> {
    let inst = func.inst(catch);
    let Ok(found) = handlers.binary_search_by_key(&inst.imm, |handler| handler.entry.into()) else {
        return Err((12, format!("no handler has the branch entry {}", inst.imm)));
    };
    let Handler { tag, reference, saved, .. } = handlers[found];
    if tag.unwrap_or(NO_TAG) != inst.aux {
        return Err((12, format!("the handler is of tag {tag:?}")));
    }
    let payload = tag.map_or(&[][..], |tag| &module.tag_type(tag).params);
    let refers = reference || saved.is_some();
    let caught: Vec<Type> = payload.iter().map(|&ty| ty.into()).chain(refers.then_some(Type::Gc)).collect();
    let declared = caught.get(i).copied().or((i == 0).then_some(Type::Void));
    if declared == Some(ty) { Ok(()) } else { Err((7, format!("value {i} of {caught:?}"))) }
}

/// Whether argument `i` of `user`, in block `at`, is available there, given that its definition, at a position in a block, dominates the
/// use. If it is the call before a `try`, or a result of it, the use must come after the normal edge.
pub fn is_on_normal_path(
    func: &Func<'_>,
    dominates: impl Fn(Block, Block) -> bool,
    (from, position): (Block, usize),
    user: (Block, Value),
    i: usize,
) -> bool {
    let (at, user) = user;
    let protected = protected_call(func, from).is_some_and(|call| position >= call);
    let Some(&normal) = func.block(from).succs.last().filter(|_| protected) else { return true };
    let after = |block: Block| func.block(normal).preds.len() == 1 && dominates(normal, block);
    if func.op(user) != Op::Phi {
        return from == at || after(at);
    }
    match func.block(at).preds[i] {
        pred if pred == from => at == normal,
        pred => after(pred),
    }
}
