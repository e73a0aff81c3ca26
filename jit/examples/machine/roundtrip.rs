//! The text of machine code is read back to the same code, which ends as the same bytes.

use std::ops::ControlFlow;
use weir_jit::compile::{Compiled, compile_machine};
use weir_jit::mir::parse::parse;
use weir_jit::pipeline::{self, Form, Observer, Unit};
use weir_jit::{Options, Request, x64};

/// Compiles, and after each phase of the back end reads the text of the code back. `Ok(false)` if the compiler refuses the
/// function.
///
/// # Errors
/// The first difference, with the text.
pub fn check(request: &Request<'_>) -> Result<bool, String> {
    let arena = bumpalo::Bump::new();
    let mut copies = Copies { request, copies: Vec::new(), result: Ok(()) };
    let mut unit = Unit::new(request, Form::Bytecode(&arena), bumpalo::Bump::new());
    let phases = pipeline::rest(&unit.form, request.backend);
    let done = pipeline::run(&mut unit, phases, &mut copies);
    copies.result?;
    Ok(done.is_ok())
}

/// Reads every form of machine code back, and compiles the copies to the end.
struct Copies<'r> {
    request: &'r Request<'r>,
    /// The text after each phase, and the compiled code of the copy parsed from it.
    copies: Vec<(String, Compiled)>,
    result: Result<(), String>,
}

impl Copies<'_> {
    fn copy(&mut self, code: &x64::Code) -> Result<(), String> {
        let text = code.to_string();
        let copy: x64::Code = parse(&text).map_err(|error| format!("{error}\n{text}"))?;
        if copy != *code {
            return Err(format!("this text is read as other code, which prints as the second one:\n{text}\n{copy}"));
        }
        // Equal code has been verified.
        let options = Options { verify: false, ..self.request.options.clone() };
        let request = Request { options: &options, ..*self.request };
        let compiled = compile_machine(copy, &request).map_err(|refusal| format!("{refusal}\n{text}"))?;
        self.copies.push((text, compiled));
        Ok(())
    }

    fn compare(&self, compiled: &Compiled) -> Result<(), String> {
        let tables = |of: &Compiled| format!("{:?} {:?} {:?} {:?}", of.relocs, of.traps, of.calls, of.lines);
        for (text, copy) in &self.copies {
            if copy.code != compiled.code || tables(copy) != tables(compiled) {
                return Err(format!("this text ends as other bytes or tables:\n{text}"));
            }
        }
        match self.copies.len() {
            3 => Ok(()),
            phases => Err(format!("{phases} forms of machine code")),
        }
    }
}

impl Observer for Copies<'_> {
    fn after(&mut self, phase: &'static str, form: &Form<'_>) -> ControlFlow<()> {
        let done = match form {
            Form::Bytecode(_) | Form::Ssa(_) => Ok(()),
            Form::Machine(code) => self.copy(code),
            Form::Bytes(compiled) => self.compare(compiled),
        };
        self.result = done.map_err(|what| format!("after {phase}: {what}"));
        if self.result.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
