//! The reducer: a random program with a property ends as the few instructions that have it.

use weir_bytecode::{Instrs, Module, Opcode, validate};
use weir_tests::generate::generate;
use weir_tests::reduce::reduce;

fn module(wasm: &[u8]) -> Module {
    validate::parse(wasm.into()).expect("it is valid")
}

/// The instructions of all bodies, without the last `end` of each.
fn instructions(module: &Module) -> Vec<Opcode> {
    let of_body = |func: u32| {
        let body = module.body(func).expect("a function that is defined");
        let mut ops: Vec<Opcode> = Instrs::new(module, body.entry, body.end).map(|instr| instr.op).collect();
        ops.pop();
        ops
    };
    (module.imported_funcs..module.funcs.len() as u32).flat_map(of_body).collect()
}

/// The property needs no execution: the module has this instruction.
#[test]
fn a_module_is_reduced_to_an_instruction() {
    let has = |wasm: &[u8]| instructions(&module(wasm)).contains(&Opcode::I32Popcnt);
    let wasm = (0..).map(|seed| generate(seed).wasm).find(|wasm| has(wasm)).expect("a program with it");
    let reduced = reduce(&wasm, &mut |candidate| has(candidate));
    let left = module(&reduced);
    assert_eq!(left.bodies.len(), 1, "{}", wasmprinter::print_bytes(&reduced).expect("it is valid"));
    let left = instructions(&left);
    assert!(left.len() <= 3, "{left:?}");
    // Imports stay, and programs differ in them.
    let imports = wasmparser::Parser::new(0).parse_all(&reduced).find_map(|part| match part {
        Ok(wasmparser::Payload::ImportSection(imports)) => Some((imports.range().end - imports.range().start) as usize),
        _ => None,
    });
    let len = reduced.len() - imports.unwrap_or(0);
    assert!(len < 60, "{len} bytes of {}", wasm.len());
    println!("{}", wasmprinter::print_bytes(&reduced).expect("it is valid"));
}
