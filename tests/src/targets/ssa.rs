//! Text as SSA: what the verifier accepts prints as a text that is parsed to the same function, and keeps its meaning in every pass.

use super::passes::keep_meaning;
use super::target::{Target, files};
use crate::rng::Rng;
use bumpalo::Bump;
use weir_jit::analysis::verify;
use weir_jit::ir::sandbox::RESULTS;
use weir_jit::ir::{Op, Value, parse, print};

/// The target.
pub const TARGET: Target = Target { name: "ssa", run, seeds: || files("filetests", &["ssa"]) };

fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let arena = Bump::new();
    let Ok(func) = parse(&arena, text) else { return };
    // Malformed functions may have parts that are not printed.
    if verify(&func, None).is_err() {
        return;
    }
    let printed = print(&func);
    match parse(&arena, &printed) {
        Ok(again) => assert!(again == func, "this text is not parsed to the function that it prints:\n{printed}"),
        Err(error) => panic!("{error} in the printed text:\n{printed}"),
    }
    // A text does not say how many results a call has.
    let has_more = |value: &Value| func.op(*value) == Op::Result && func.inst(*value).imm >= RESULTS as u64;
    if func.blocks().any(|block| func.block(block).insts.iter().any(has_more)) {
        return;
    }
    keep_meaning(&printed, &mut Rng::new(data.len() as u64));
}
