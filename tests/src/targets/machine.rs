//! Text as machine code: what the verifier accepts prints as a text that is parsed to the same code, and layout of allocated code leaves
//! code that it accepts, too. Allocation and emission are left out: the verifier does not refuse all that they cannot take, such as lists
//! of physical registers before allocation, or immediates of a sequence that contradict its registers.

use super::target::{Target, files};
use bumpalo::Bump;
use weir_bytecode::{Module, validate};
use weir_contract::Entry;
use weir_jit::mir::Stage;
use weir_jit::mir::parse::parse;
use weir_jit::mir::verify::verify;
use weir_jit::pipeline::{self, Form, Unit};
use weir_jit::{Backend, Options, Request, x64};

/// The target.
pub const TARGET: Target = Target { name: "machine", run, seeds };

thread_local! {
    static MODULE: Module = {
        let wasm = wat::parse_str("(module (memory 1) (table 1 funcref) (func (param i32 i32) (result i32) unreachable))");
        validate::parse(wasm.expect("it is well formed").into()).expect("it is valid")
    };
}

fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let Ok(code) = parse::<x64::Inst>(text) else { return };
    // Malformed code may have parts that are not printed.
    if verify(&code).is_err() {
        return;
    }
    let printed = code.to_string();
    match parse::<x64::Inst>(&printed) {
        Ok(again) => assert!(again == code, "this text is not parsed to the code that it prints:\n{printed}"),
        Err(error) => panic!("{error} in the printed text:\n{printed}"),
    }
    if code.stage() != Stage::Allocated {
        return;
    }
    MODULE.with(|module| {
        let options = Options { verify: true, ..Options::default() };
        let (func, entry, backend) = (0, Entry::Call, Backend::Native);
        let request = Request { module, func, entry, sig_ids: &[0], backend, profile: None, callees: None, options: &options };
        let mut unit = Unit::new(&request, Form::Machine(code), Bump::new());
        let phases = pipeline::rest(&unit.form, backend).filter(|phase| phase.name != "emit");
        // A refusal is an answer.
        let _ = pipeline::run(&mut unit, phases, &mut ());
    });
}

/// The inputs and the outputs of the filetests.
fn seeds() -> Vec<Vec<u8>> {
    let inputs = files("filetests", &["mir"]);
    let expected = [inputs.clone(), files("filetests", &["ssa"])].concat();
    let output = |file: Vec<u8>| {
        let text = String::from_utf8(file).ok()?;
        let (_, expected) = text.split_once(";; expect\n")?;
        let lines = expected.lines().map(|line| line.trim_start_matches(";; ").trim_start_matches(";;"));
        let output = lines.collect::<Vec<_>>().join("\n");
        output.starts_with("machine").then(|| output.into_bytes())
    };
    inputs.into_iter().chain(expected.into_iter().filter_map(output)).collect()
}
