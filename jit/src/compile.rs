//! The compiler's entry points: from bytecode, or a later form, to machine code, and from bytecode to optimised SSA. [`pipeline`]
//! has the phases.

use crate::analysis::verify;
use crate::baseline::Stencils;
use crate::ir::{self, Func};
use crate::meter::Meter;
use crate::mir::{self, MachineCode};
use crate::pipeline::{self, Finished, Form, Observer, Unit};
use crate::x64;
use bumpalo::Bump;
use std::ops::ControlFlow;

pub use crate::request::{Backend, CompileStats, Compiled, FunctionText, Options, Refusal, Reloc, Request, TextForm, TrapEntry};

/// Memory and results that are reused for the next function: scratch memory, and the stencils of the baseline compiler.
#[derive(Debug, Default)]
pub struct Context {
    arena: Bump,
    scratch: Bump,
    stencils: Stencils,
    steps: u64,
}

/// Functions with more bytes are compiled in new arenas. How much of an arena is used depends a little on the length of its chunks, and so on
/// the functions before, but whether a function is within the limit of its memory must not.
const FRESH: u32 = 64 << 10;

impl Context {
    /// Returns the [steps](crate::meter) of the last compilation, which may have been refused.
    pub fn steps(&self) -> u64 {
        self.steps
    }
}

/// Compiles one function: bytecode → SSA → optimised SSA → machine code. A text in [`Options::texts`] replaces the
/// stages before it.
///
/// # Errors
/// A [`Refusal`] if the back end cannot or will not compile the function, or if such a text is malformed.
///
/// # Panics
/// If [`Options::verify`] is on and the result of a phase is malformed.
pub fn compile(cx: &mut Context, request: &Request<'_>) -> Result<Compiled, Refusal> {
    compile_until(cx, request, &|| false)
}

/// [`compile`], until `stop` returns true. It is asked several times in a millisecond, but for large functions not within an analysis, nor while Cranelift
/// compiles.
///
/// # Errors
/// # Panics
/// As [`compile`]; and [`Refusal::Ended`].
pub fn compile_until(cx: &mut Context, request: &Request<'_>, stop: &dyn Fn() -> bool) -> Result<Compiled, Refusal> {
    if request.module.body(request.func).is_some_and(|body| body.len() > FRESH) {
        (cx.arena, cx.scratch) = (Bump::new(), Bump::new());
    }
    cx.arena.reset();
    cx.steps = 0;
    let text = match request.backend {
        Backend::Native => text_of(request, &[TextForm::Ssa, TextForm::Machine]),
        Backend::Cranelift => text_of(request, &[TextForm::Ssa]),
        Backend::Baseline => None,
    };
    let form = text.map_or(Ok(Form::Bytecode(&cx.arena)), |text| read(&cx.arena, text, request))?;
    let mut phases = pipeline::rest(&form, request.backend);
    let mut unit = Unit::metered(request, form, std::mem::take(&mut cx.scratch), meter_of(request, stop));
    unit.stencils = std::mem::take(&mut cx.stencils);
    let done = pipeline::run(&mut unit, &mut phases, &mut UntilMachine);
    let (compiled, steps, mut scratch, stencils) = if done.is_err() {
        end(unit, done)
    } else {
        let mut unit = unit.after_ssa();
        pipeline::clear(&mut cx.arena);
        let done = pipeline::run(&mut unit, phases, &mut ());
        end(unit, done)
    };
    // The context may not be used again for a long time.
    pipeline::clear(&mut cx.arena);
    pipeline::clear(&mut scratch);
    (cx.scratch, cx.stencils, cx.steps) = (scratch, stencils, steps);
    compiled
}

/// Stops when there is machine code, which takes nothing of the SSA's arena.
struct UntilMachine;

impl Observer for UntilMachine {
    fn after(&mut self, _: &'static str, form: &Form<'_>) -> ControlFlow<()> {
        if matches!(form, Form::Machine(_)) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Runs the phases before the back end, which are the same for each: bytecode → SSA → optimised SSA. `scratch` is
/// memory for the passes and is empty afterwards. SSA in [`Options::texts`] is returned as it is.
///
/// # Errors
/// A [`Refusal`] if the code has no SSA or is too large, or if such a text is malformed.
///
/// # Panics
/// As [`compile`].
pub fn translate<'a>(
    arena: &'a Bump,
    scratch: &mut Bump,
    request: &Request<'_>,
    stats: &mut CompileStats,
) -> Result<Func<'a>, Refusal> {
    let form = match text_of(request, &[TextForm::Ssa]) {
        Some(text) => read(arena, text, request)?,
        None => Form::Bytecode(arena),
    };
    let phases = matches!(form, Form::Bytecode(_)).then(pipeline::front);
    let mut unit = Unit::metered(request, form, std::mem::take(scratch), meter_of(request, &|| false));
    let done = pipeline::run(&mut unit, phases.into_iter().flatten(), &mut ());
    let finished = unit.finish();
    (*stats, *scratch) = (finished.stats, finished.scratch);
    let _ = done?;
    match finished.form {
        Form::Ssa(func) => Ok(func),
        form => unreachable!("the phases before a back end end with SSA, not with {form:?}"),
    }
}

/// Compiles SSA without optimising it.
///
/// # Errors
/// # Panics
/// As [`compile`].
pub fn compile_ssa(func: Func<'_>, request: &Request<'_>) -> Result<Compiled, Refusal> {
    run_rest(Form::Ssa(func), request)
}

/// Compiles machine code; the first phase is the one after the last phase that it went through.
///
/// # Errors
/// # Panics
/// As [`compile`].
pub fn compile_machine(code: MachineCode<x64::Inst>, request: &Request<'_>) -> Result<Compiled, Refusal> {
    run_rest(Form::Machine(code), request)
}

/// The text that replaces the requested function, if there is one in one of these forms.
fn text_of<'r>(request: &Request<'r>, forms: &[TextForm]) -> Option<&'r FunctionText> {
    let is_it = |text: &&FunctionText| (text.func, text.entry) == (request.func, request.entry) && forms.contains(&text.form);
    request.options.texts.iter().find(is_it)
}

/// Parses a function from its text and checks it.
fn read<'a>(arena: &'a Bump, text: &FunctionText, request: &Request<'_>) -> Result<Form<'a>, Refusal> {
    let malformed = |what| Refusal::Unsupported { backend: request.backend, what };
    match text.form {
        TextForm::Ssa => {
            let func = ir::parse(arena, &text.text).map_err(|error| malformed(error.to_string()))?;
            if (func.index, func.entry) != (request.func, request.entry) {
                return Err(malformed(format!("a text of function {}, {:?}", func.index, func.entry)));
            }
            verify(&func, Some(request.module)).map_err(|error| malformed(error.to_string()))?;
            Ok(Form::Ssa(func))
        }
        TextForm::Machine => {
            let code = mir::parse::parse(&text.text).map_err(|error| malformed(error.to_string()))?;
            mir::verify::verify(&code).map_err(malformed)?;
            Ok(Form::Machine(code))
        }
    }
}

/// The meter of a compilation, which limits its steps and its memory in proportion to the function.
fn meter_of<'s>(request: &Request<'_>, stop: &'s dyn Fn() -> bool) -> Meter<'s> {
    let (bytes, loops) = request.module.body(request.func).map_or((0, 0), |body| (body.len(), body.loops.len()));
    // What loops take in baseline code, the other compilers leave to it.
    Meter::of(bytes, if request.backend == Backend::Baseline { 0 } else { loops }, stop)
}

/// Runs the remaining phases.
fn run_rest(form: Form<'_>, request: &Request<'_>) -> Result<Compiled, Refusal> {
    let phases = pipeline::rest(&form, request.backend);
    let mut unit = Unit::metered(request, form, Bump::new(), meter_of(request, &|| false));
    let done = pipeline::run(&mut unit, phases, &mut ());
    end(unit, done).0
}

/// Returns the code, the steps that were taken, the scratch memory and the stencils.
fn end(unit: Unit<'_, '_>, done: Result<ControlFlow<()>, Refusal>) -> (Result<Compiled, Refusal>, u64, Bump, Stencils) {
    let Finished { form, stats, scratch, stencils, .. } = unit.finish();
    let steps = stats.counters.steps;
    let compiled = done.map(|_| match form {
        Form::Bytes(compiled) => Compiled { stats, ..compiled },
        form => unreachable!("a back end ends with bytes, not with {form:?}"),
    });
    (compiled, steps, scratch, stencils)
}
