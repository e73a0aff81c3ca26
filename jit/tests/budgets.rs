//! Functions that would take a back end more than proportional time are refused with a reason.

#![cfg(feature = "cranelift")]

use weir_bytecode::validate;
use weir_jit::compile::Context;
use weir_jit::ir::Entry;
use weir_jit::{Backend, Options, Refusal, Request, compile};

fn compile_loops(count: usize, backend: Backend) -> Result<usize, Refusal> {
    let loops = "loop call 0 br_if 0 end ".repeat(count);
    let text = format!("(module (import \"\" \"\" (func (result i32))) (func {loops}))");
    let module = validate::parse(wat::parse_str(text).unwrap().into()).unwrap();
    let options = Options { verify: false, ..Options::default() };
    let request = Request {
        module: &module,
        func: 1,
        entry: Entry::Call,
        sig_ids: &[0, 1],
        backend,
        profile: None,
        callees: None,
        options: &options,
    };
    compile(&mut Context::default(), &request).map(|compiled| compiled.code.len())
}

#[test]
fn cranelift_refuses_functions_of_many_blocks() {
    let limit = 1 << 14;
    let refusal = Refusal::Budget { backend: Some(Backend::Cranelift), what: "the number of blocks for Cranelift", limit };
    assert_eq!(compile_loops(limit, Backend::Cranelift), Err(refusal));
    assert!(compile_loops(100, Backend::Cranelift).is_ok_and(|bytes| bytes > 0));
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_native_back_end_compiles_them() {
    assert!(compile_loops(1 << 14, Backend::Native).is_ok_and(|bytes| bytes > 1 << 18));
}
