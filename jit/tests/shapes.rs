//! Functions made to be quadratic for a careless compiler are compiled, or refused by a budget; this test would not end otherwise.

#[expect(dead_code, reason = "the example has sizes of its own")]
#[path = "../examples/ssa/shapes.rs"]
mod shapes;

use weir_bytecode::validate;
use weir_jit::compile::Context;
use weir_jit::ir::Entry;
use weir_jit::{Backend, Options, Refusal, Request, compile};

#[test]
fn every_shape_is_compiled_or_refused() {
    let (options, mut cx) = (Options::default(), Context::default());
    for (name, shape) in shapes::ALL {
        let module = validate::parse(shapes::module(*shape, 150_000).into()).expect("shapes are valid");
        let func = module.imported_funcs + module.bodies.len() as u32 - 1;
        let sig_ids = vec![0; module.types.len()];
        let entry = Entry::Call;
        let request = Request {
            module: &module,
            func,
            entry,
            sig_ids: &sig_ids,
            backend: Backend::Native,
            profile: None,
            options: &options,
        };
        match compile(&mut cx, &request) {
            Ok(compiled) => assert!(!compiled.code.is_empty(), "{name}"),
            Err(Refusal::Budget { .. }) => assert!(name.starts_with("locals"), "{name} is refused"),
            Err(refusal) => panic!("{name}: {refusal}"),
        }
    }
}
