//! From a request to machine code: phases as data, and the driver that runs them.
//!
//! A phase transforms the function. The driver times it, verifies the result, and shows the result to an observer. The
//! phases are `build`, the passes of the optimiser in their order, and those of a back end. The baseline compiler is one phase.
//! [`compile`](mod@crate::compile), [`explore`](crate::explore), the evaluator and the filetests use this driver: they differ in
//! the [`Form`] that they begin with, the phases that they name and the [`Observer`]. A stencil of the baseline compiler is a
//! function of its own, which the driver compiles within the phase `baseline`; the time of that phase includes it.

use crate::baseline::{self, Stencils};
use crate::construct::{BuildStats, build_metered, weigh_ticks};
pub use crate::form::{Form, Observer};
use crate::ir::inlined::Copies;
use crate::ir::{Entry, Func};
use crate::meter::Meter;
use crate::mir::{allocate, layout, verify};
use crate::opt::{self, Changed, Pass, passes};
use crate::request::{Backend, CompileStats, Compiled, Options, Refusal, Request};
use crate::x64;
use bumpalo::Bump;
use std::ops::ControlFlow;
use std::time::Instant;
use weir_bytecode::Module;

/// A function during its compilation.
pub struct Unit<'r, 'a> {
    /// Its current form.
    pub form: Form<'a>,
    /// Counts and times so far.
    pub stats: CompileStats,
    /// The stencils that the baseline compiler has made so far.
    pub stencils: Stencils,
    request: Option<&'r Request<'r>>,
    passes: opt::Context<'r>,
}

/// The result of a [`Unit`].
pub struct Finished<'a> {
    /// The final form of the function.
    pub form: Form<'a>,
    /// Counts and times.
    pub stats: CompileStats,
    /// The number of rewrites that the passes could still have made; `None` for no limit.
    pub rewrites_left: Option<u64>,
    /// The memory of the passes, which is empty.
    pub scratch: Bump,
    /// The stencils of the baseline compiler.
    pub stencils: Stencils,
}

impl<'r, 'a> Unit<'r, 'a> {
    /// The function of `request`, in this form. `scratch` is memory for the passes, empty between them.
    pub fn new(request: &'r Request<'r>, form: Form<'a>, scratch: Bump) -> Unit<'r, 'a> {
        Unit::metered(request, form, scratch, Meter::default())
    }

    /// [`Unit::new`], with a limit of its steps.
    pub fn metered(request: &'r Request<'r>, form: Form<'a>, scratch: Bump, meter: Meter<'r>) -> Unit<'r, 'a> {
        let native = request.backend == Backend::Native;
        let long_vectors = native && x64::has_avx2();
        let (module, profile, callees) = (Some(request.module), request.profile, request.callees);
        let build: Option<opt::Build> = Some(build_callee);
        let defaults = opt::Context::new(request.options);
        let passes = opt::Context { module, profile, callees, build, scratch, native, long_vectors, meter, ..defaults };
        Unit { form, stats: CompileStats::default(), stencils: Stencils::default(), request: Some(request), passes }
    }

    /// A function in SSA that belongs to no module. Passes can run on it, but a back end cannot.
    pub fn without_module(func: Func<'a>, options: &'r Options) -> Unit<'r, 'a> {
        Unit {
            form: Form::Ssa(func),
            stats: CompileStats::default(),
            stencils: Stencils::default(),
            request: None,
            passes: opt::Context::new(options),
        }
    }

    /// The unit after the last phase that needs its SSA: it no longer uses the arena in which that is.
    ///
    /// # Panics
    /// It is bytecode or SSA.
    pub fn after_ssa<'b>(self) -> Unit<'r, 'b> {
        let Unit { form, stats, stencils, request, mut passes } = self;
        let form = match form {
            Form::Machine(code) => Form::Machine(code),
            Form::Bytes(compiled) => Form::Bytes(compiled),
            form @ (Form::Bytecode(_) | Form::Ssa(_)) => panic!("{form:?} is not done with the SSA"),
        };
        passes.analyses = opt::Analyses::default();
        clear(&mut passes.scratch);
        Unit { form, stats, stencils, request, passes }
    }

    /// Ends the compilation.
    pub fn finish(mut self) -> Finished<'a> {
        self.count_ssa();
        let Unit { form, stats, stencils, passes: opt::Context { fuel, scratch, .. }, .. } = self;
        Finished { form, stats, rewrites_left: fuel.get(), scratch, stencils }
    }

    /// Counts the SSA in its current state, and adds the passes' counts since the last time.
    fn count_ssa(&mut self) {
        if let Form::Ssa(func) = &self.form {
            self.stats.counters.values = func.blocks().map(|block| func.block(block).insts.len() as u64).sum();
        }
        self.stats.counters += self.passes.counters.take();
        self.stats.counters.steps = self.passes.meter.spent();
    }

    /// The bytes of its form and of the analyses of it.
    fn size(&self) -> usize {
        let of_analyses = if let Form::Ssa(func) = &self.form { self.passes.analyses.size(func) } else { 0 };
        self.form.size() + of_analyses
    }

    fn request(&self) -> &'r Request<'r> {
        self.request.expect("the phase is of a function in a module")
    }
}

/// The most memory that an empty arena keeps for the next function.
const KEPT: usize = 1 << 20;

/// Empties an arena.
pub fn clear(arena: &mut Bump) {
    arena.reset();
    if arena.allocated_bytes() > KEPT {
        *arena = Bump::new();
    }
}

/// A step of the compilation.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// Its name in options, dumps and statistics.
    pub name: &'static str,
    run: Run,
    /// Checks the result.
    verify: fn(&Unit<'_, '_>) -> Result<(), String>,
}

impl Phase {
    /// A pass as a phase.
    pub fn of(pass: &'static Pass) -> Phase {
        Phase { name: pass.name, run: Run::Pass(pass), verify: verify_ssa }
    }
}

#[derive(Clone, Copy, Debug)]
enum Run {
    Pass(&'static Pass),
    Step(fn(&mut Unit<'_, '_>) -> Result<(), Refusal>),
}

/// Bytecode to SSA with branch probabilities.
pub const BUILD: Phase = Phase { name: "build", run: Run::Step(run_build), verify: verify_ssa };

/// SSA to bytes by the native back end.
pub const NATIVE: &[Phase] = &[
    Phase { name: "lower", run: Run::Step(run_lower), verify: verify_machine },
    Phase { name: "regalloc", run: Run::Step(run_regalloc), verify: verify_machine },
    Phase { name: "layout", run: Run::Step(run_layout), verify: verify_machine },
    Phase { name: "emit", run: Run::Step(run_emit), verify: verify_bytes },
];

/// SSA to bytes by Cranelift.
pub const CRANELIFT: &[Phase] = &[Phase { name: "cranelift", run: Run::Step(run_cranelift), verify: verify_bytes }];

/// Bytecode to bytes by the baseline compiler.
pub const BASELINE: &[Phase] = &[Phase { name: "baseline", run: Run::Step(run_baseline), verify: verify_bytes }];

/// The phases before a back end that begins with SSA.
pub fn front() -> impl Iterator<Item = Phase> {
    std::iter::once(BUILD).chain(passes::ORDER.iter().copied().map(Phase::of))
}

/// The phases of a back end.
pub fn back(backend: Backend) -> &'static [Phase] {
    match backend {
        Backend::Native => NATIVE,
        Backend::Cranelift => CRANELIFT,
        Backend::Baseline => BASELINE,
    }
}

/// The phases from a form to the end of a compilation by this back end: for SSA, all phases of the back end; for machine code, those of
/// the native back end after its stage; for bytes, none.
pub fn rest(form: &Form<'_>, backend: Backend) -> impl Iterator<Item = Phase> + use<> {
    let (front, back) = match form {
        Form::Bytecode(_) if backend == Backend::Baseline => (None, BASELINE),
        Form::Bytecode(_) => (Some(front()), back(backend)),
        Form::Ssa(_) => (None, back(backend)),
        Form::Machine(code) => (None, &NATIVE[code.stage() as usize + 1..]),
        Form::Bytes(_) => (None, &[][..]),
    };
    front.into_iter().flatten().chain(back.iter().copied())
}

/// Runs `phases`, one after the other, unless `observer` stops them.
///
/// # Errors
/// A [`Refusal`] if a phase cannot or will not compile the function, or if it may take no more steps.
///
/// # Panics
/// If [`Options::verify`] is on and the result of a phase is malformed; if a phase does not apply to the function's
/// form; or if a phase needs a module and the function has none.
pub fn run(
    unit: &mut Unit<'_, '_>,
    phases: impl IntoIterator<Item = Phase>,
    observer: &mut (impl Observer + ?Sized),
) -> Result<ControlFlow<()>, Refusal> {
    for phase in phases {
        let start = Instant::now();
        let changed = match phase.run {
            Run::Step(step) => {
                step(unit)?;
                true
            }
            Run::Pass(pass) if unit.passes.is_off(pass) => continue,
            Run::Pass(pass) => {
                let Form::Ssa(func) = &mut unit.form else { panic!("{} is a pass on SSA", pass.name) };
                let Changed(changes) = opt::apply(pass, func, &mut unit.passes);
                unit.stats.changes.push((pass.name, changes));
                changes > 0
            }
        };
        unit.stats.phases.push((phase.name, start.elapsed().as_nanos() as u64));
        unit.passes.meter.keep(unit.size())?;
        if !changed {
            continue;
        }
        if unit.passes.options.verify
            && let Err(error) = (phase.verify)(unit)
        {
            panic!("malformed after {}: {error}", phase.name);
        }
        if observer.after(phase.name, &unit.form).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn run_build(unit: &mut Unit<'_, '_>) -> Result<(), Refusal> {
    let Request { module, func, entry, profile, options, .. } = *unit.request();
    let Form::Bytecode(arena) = unit.form else { panic!("SSA is built from bytecode, not from {:?}", unit.form) };
    let mut counts = BuildStats::default();
    let mut func = build_metered(arena, module, (func, entry), options, &unit.passes.meter, &mut counts)?;
    if let Some(profile) = profile {
        crate::profile::weigh(profile, &mut func);
    }
    if options.leaves && func.entry != Entry::Call {
        weigh_ticks(&mut func);
    }
    unit.stats.counters += counts.counters;
    unit.form = Form::Ssa(func);
    Ok(())
}

/// Builds a function that may be inlined.
fn build_callee<'a>(arena: &'a Bump, module: &Module, func: u32, options: &Options, meter: &Meter<'_>) -> Option<Func<'a>> {
    build_metered(arena, module, (func, Entry::Call), options, meter, &mut BuildStats::default()).ok()
}

fn run_baseline(unit: &mut Unit<'_, '_>) -> Result<(), Refusal> {
    let request = unit.request();
    let Form::Bytecode(_) = unit.form else { panic!("the baseline compiler takes bytecode, not {:?}", unit.form) };
    unit.form = Form::Bytes(baseline::compile(request, &mut unit.stencils, run_native, &unit.passes.meter)?);
    Ok(())
}

/// Compiles by the native back end, without passes, as far as `observer` lets it.
pub(crate) fn run_native(request: &Request<'_>, observer: &mut dyn Observer) -> Result<Option<Compiled>, Refusal> {
    let arena = Bump::new();
    let mut unit = Unit::new(request, Form::Bytecode(&arena), Bump::new());
    let phases = std::iter::once(BUILD).chain(NATIVE.iter().copied());
    if run(&mut unit, phases, observer)?.is_break() {
        return Ok(None);
    }
    match unit.form {
        Form::Bytes(compiled) => Ok(Some(compiled)),
        form => unreachable!("the native back end ends with bytes, not with {form:?}"),
    }
}

fn verify_ssa(unit: &Unit<'_, '_>) -> Result<(), String> {
    match &unit.form {
        Form::Ssa(func) => crate::analysis::verify(func, unit.passes.module).map_err(|error| format!("{error}\n{func}")),
        form => Err(format!("SSA is expected, not {form:?}")),
    }
}

fn run_lower(unit: &mut Unit<'_, '_>) -> Result<(), Refusal> {
    let request = unit.request();
    unit.count_ssa();
    unit.form = Form::Machine(x64::lower(unit.form.ssa(), request, &unit.passes.meter)?);
    Ok(())
}

fn run_regalloc(unit: &mut Unit<'_, '_>) -> Result<(), Refusal> {
    let (code, opt::Context { options, meter, .. }) = (unit.form.machine(), &unit.passes);
    let allocated = allocate::allocate(code, options.allocator, options.verify, meter);
    meter.check()?;
    allocated.map_err(|error| Refusal::Unsupported { backend: Backend::Native, what: error.to_string() })?;
    let counts = code.allocated().count_moves();
    let counters = &mut unit.stats.counters;
    (counters.spills, counters.reloads, counters.copies) = (counts.spills.into(), counts.reloads.into(), counts.copies.into());
    Ok(())
}

fn run_layout(unit: &mut Unit<'_, '_>) -> Result<(), Refusal> {
    layout::lay_out(unit.form.machine());
    Ok(())
}

fn verify_machine(unit: &Unit<'_, '_>) -> Result<(), String> {
    match &unit.form {
        Form::Machine(code) => verify::verify(code).map_err(|error| format!("{error}\n{code}")),
        form => Err(format!("machine code is expected, not {form:?}")),
    }
}

fn run_emit(unit: &mut Unit<'_, '_>) -> Result<(), Refusal> {
    let (code, opt::Context { options, meter, .. }) = (unit.form.machine(), &unit.passes);
    let mut compiled = x64::emit(code, options, meter)?;
    name(&code.copies, &mut compiled);
    unit.form = Form::Bytes(compiled);
    Ok(())
}

/// Gives traps, calls and lines the offsets of their instructions in the module, and traps and calls the calls around them that were
/// inlined.
fn name(copies: &Copies, compiled: &mut Compiled) {
    if copies.is_empty() {
        return;
    }
    compiled.inlining = copies.chains(&compiled.traps, &compiled.calls);
    compiled.traps.iter_mut().for_each(|trap| trap.pc = copies.own(trap.pc));
    compiled.calls.iter_mut().for_each(|call| call.1 = copies.own(call.1));
    compiled.lines.iter_mut().for_each(|line| line.1 = copies.own(line.1));
}

#[cfg(feature = "cranelift")]
fn run_cranelift(unit: &mut Unit<'_, '_>) -> Result<(), Refusal> {
    let request = unit.request();
    unit.count_ssa();
    let func = unit.form.ssa();
    let mut compiled = crate::cranelift::compile(func, request)?;
    name(&func.copies, &mut compiled);
    unit.form = Form::Bytes(compiled);
    Ok(())
}

#[cfg(not(feature = "cranelift"))]
fn run_cranelift(_: &mut Unit<'_, '_>) -> Result<(), Refusal> {
    Err(Refusal::Unsupported { backend: Backend::Cranelift, what: "anything: it is not built in".into() })
}

/// Checks that the tables are sorted and within the code.
fn verify_bytes(unit: &Unit<'_, '_>) -> Result<(), String> {
    let Form::Bytes(compiled) = &unit.form else { return Err(format!("bytes are expected, not {:?}", unit.form)) };
    let end = compiled.code.len() as u32;
    let sorted = compiled.relocs.is_sorted_by_key(|reloc| reloc.offset) && compiled.traps.is_sorted_by_key(|trap| trap.offset);
    let relocs = compiled.relocs.iter().map(|reloc| reloc.offset + 4);
    let traps = compiled.traps.iter().map(|trap| trap.offset + 1);
    let calls = compiled.calls.iter().map(|call| call.0);
    match sorted && relocs.chain(traps).chain(calls).all(|after| after <= end) {
        true => Ok(()),
        false => Err("relocations or traps are not sorted, or an entry of a table is outside of the code".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Options;
    use weir_bytecode::validate;

    /// Stops after the phase with this name.
    struct StopAfter(&'static str);

    impl Observer for StopAfter {
        fn after(&mut self, phase: &'static str, _: &Form<'_>) -> ControlFlow<()> {
            if phase == self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn an_observer_stops_after_any_phase() {
        let text = "(module (func (param i32) (result i32) (i32.mul (local.get 0) (i32.const 8))))";
        let module = validate::parse(wat::parse_str(text).unwrap().into()).unwrap();
        let (options, backend) = (Options::default(), Backend::Native);
        let request = Request {
            module: &module,
            func: 0,
            entry: Entry::Call,
            sig_ids: &[0],
            backend,
            profile: None,
            callees: None,
            options: &options,
        };
        for (name, stage) in [("build", None), ("lower", Some(0)), ("regalloc", Some(1)), ("layout", Some(2)), ("emit", None)] {
            let arena = Bump::new();
            let mut unit = Unit::new(&request, Form::Bytecode(&arena), Bump::new());
            let phases = rest(&unit.form, backend);
            assert_eq!(run(&mut unit, phases, &mut StopAfter(name)), Ok(ControlFlow::Break(())), "{name}");
            assert_eq!(unit.stats.phases.last().map(|phase| phase.0), Some(name));
            let found = match &unit.form {
                Form::Machine(code) => Some(code.stage() as usize),
                Form::Bytecode(_) | Form::Ssa(_) | Form::Bytes(_) => None,
            };
            assert_eq!(found, stage, "{name}");
        }
    }
}
