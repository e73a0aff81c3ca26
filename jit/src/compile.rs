//! The compiler's two entry points: bytecode to machine code, and bytecode to optimised SSA. [`pipeline`] has the phases.

use crate::ir::Func;
use crate::mir::{self, MachineCode};
use crate::pipeline::{self, Form, Unit};
use crate::x64;
use bumpalo::Bump;

pub use crate::request::{
    Backend, CompileStats, Compiled, Inlining, MachineText, Options, Refusal, Reloc, Request, TrapEntry, add_to,
};

/// Scratch memory reused from function to function.
#[derive(Debug, Default)]
pub struct Context {
    arena: Bump,
    scratch: Bump,
}

/// Compiles one function: bytecode → SSA → optimised SSA → machine code.
///
/// # Errors
/// A [`Refusal`] when the back end cannot or will not compile it.
///
/// # Panics
/// If [`Options::verify`] is on and the result of a phase is malformed.
pub fn compile(cx: &mut Context, request: &Request<'_>) -> Result<Compiled, Refusal> {
    let mut replaced = request.options.machine_code.iter();
    if let Some(found) =
        replaced.find(|of| (of.func, of.entry, request.backend) == (request.func, request.entry, Backend::Native))
    {
        return compile_text(found, request);
    }
    cx.arena.reset();
    let mut unit = Unit::new(request, Form::Bytecode, &cx.arena, std::mem::take(&mut cx.scratch));
    let done = run_front(&mut unit).and_then(|()| run_back(&mut unit, pipeline::back(request.backend)));
    cx.scratch = unit.into_scratch();
    done
}

/// The phases before a back end, the same for each: bytecode → SSA → optimised SSA. `scratch` is for the passes and empty
/// after them.
///
/// # Errors
/// A [`Refusal`] of code that has no SSA, or too much.
///
/// # Panics
/// As [`compile`].
pub fn translate<'a>(
    arena: &'a Bump,
    scratch: &mut Bump,
    request: &Request<'_>,
    stats: &mut CompileStats,
) -> Result<Func<'a>, Refusal> {
    let mut unit = Unit::new(request, Form::Bytecode, arena, std::mem::take(scratch));
    let done = run_front(&mut unit);
    let form = std::mem::replace(&mut unit.form, Form::Bytecode);
    *stats = std::mem::take(&mut unit.stats);
    *scratch = unit.into_scratch();
    done?;
    match form {
        Form::Ssa(func) => Ok(func),
        form => unreachable!("the phases before a back end end with SSA, not with {form:?}"),
    }
}

/// Compiles SSA as it is.
///
/// # Errors
/// # Panics
/// As [`compile`].
pub fn compile_ssa(func: &Func<'_>, request: &Request<'_>) -> Result<Compiled, Refusal> {
    match request.backend {
        Backend::Native => compile_machine(x64::lower(func, request)?, request),
        #[cfg(feature = "cranelift")]
        Backend::Cranelift => crate::cranelift::compile(func, request),
        #[cfg(not(feature = "cranelift"))]
        Backend::Cranelift => run_back(&mut Unit::new(request, Form::Bytecode, &Bump::new(), Bump::new()), pipeline::CRANELIFT),
    }
}

/// Compiles machine code from the phase after the last one that it went through.
///
/// # Errors
/// # Panics
/// As [`compile`].
pub fn compile_machine(code: MachineCode<x64::Inst>, request: &Request<'_>) -> Result<Compiled, Refusal> {
    let done = code.stage() as usize + 1;
    let arena = Bump::new();
    let mut unit = Unit::new(request, Form::Machine(code), &arena, Bump::new());
    run_back(&mut unit, &pipeline::NATIVE[done..])
}

/// Compiles the text of machine code from the phase after the last one that it went through.
///
/// # Errors
/// [`Refusal::Unsupported`] if it is no text of machine code, or the code is malformed; others as [`compile`].
///
/// # Panics
/// As [`compile`].
fn compile_text(text: &MachineText, request: &Request<'_>) -> Result<Compiled, Refusal> {
    let unsupported = |what| Refusal::Unsupported { backend: Backend::Native, what };
    let code = mir::parse::parse(&text.text).map_err(|error| unsupported(error.to_string()))?;
    mir::verify::verify(&code).map_err(unsupported)?;
    let mut compiled = compile_machine(code, request)?;
    compiled.inlining = Inlining::of_chains(&text.inlined, &compiled.traps, &compiled.calls);
    Ok(compiled)
}

fn run_front(unit: &mut Unit<'_, '_>) -> Result<(), Refusal> {
    let _ = pipeline::run(unit, pipeline::front(), &mut ())?;
    unit.count_ssa();
    Ok(())
}

fn run_back(unit: &mut Unit<'_, '_>, phases: &[pipeline::Phase]) -> Result<Compiled, Refusal> {
    let _ = pipeline::run(unit, phases.iter().copied(), &mut ())?;
    let stats = std::mem::take(&mut unit.stats);
    match std::mem::replace(&mut unit.form, Form::Bytecode) {
        Form::Bytes(compiled) => Ok(Compiled { stats, ..compiled }),
        form => unreachable!("a back end ends with bytes, not with {form:?}"),
    }
}
