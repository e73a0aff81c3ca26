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
    assert!(reduced.len() < 80, "{} bytes of {}", reduced.len(), wasm.len());
    println!("{}", wasmprinter::print_bytes(&reduced).expect("it is valid"));
}

/// The compiler has a fault, which random programs show. `cargo test -p weir-tests --features seeded-faults --test reduce`
#[test]
#[cfg(feature = "seeded-faults")]
fn a_difference_between_tiers_is_reduced() {
    use weir_jit::seeded::{Fault, with};
    use weir_tests::reduce::Tiers;

    let tiers = Tiers::new(true, |name| name == "native");
    for fault in [Fault::UpperHalfDirty, Fault::JumpTableOffByOne, Fault::TableCheckDropped] {
        let differs = |wasm: &[u8]| with(Some(fault), || matches!(tiers.difference(wasm), Ok(Some(_))));
        let (seed, wasm) =
            (0..2000).map(|seed| (seed, generate(seed).wasm)).find(|(_, wasm)| differs(wasm)).expect("a difference");
        let reduced = reduce(&wasm, &mut |candidate| differs(candidate));
        let left = instructions(&module(&reduced));
        let text = wasmprinter::print_bytes(&reduced).expect("it is valid");
        println!("{fault:?}: {} of {} bytes of seed {seed}\n{text}", reduced.len(), wasm.len());
        assert!(left.len() <= 12, "{fault:?}: {left:?}");
        with(None, || assert!(matches!(tiers.difference(&reduced), Ok(None)), "{fault:?}: without the fault, too"));
    }
}
