//! From a request to machine code: phases as data, and the driver that runs them.
//!
//! A phase transforms the function; its time, its verification and what an observer sees of it are the driver's. The phases are
//! `build`, the passes of the optimiser in their order, and those of a back end. [`compile`](mod@crate::compile),
//! [`explore`](crate::explore) and the filetests of machine code differ in their observers and in the form they begin with. Filetests
//! of single passes run these through [`opt::run_pass`].

use crate::construct::{BuildStats, build};
use crate::ir::Func;
use crate::mir::{allocate, layout, verify};
use crate::opt::{self, Changed, Pass, passes};
use crate::request::{Backend, CompileStats, Compiled, Refusal, Request};
use crate::x64;
use bumpalo::Bump;
use std::ops::ControlFlow;
use std::time::Instant;

/// What a function is while it is compiled.
#[derive(Debug)]
pub enum Form<'a> {
    /// Bytecode of the request's module.
    Bytecode,
    /// SSA.
    Ssa(Func<'a>),
    /// Instructions of the native back end.
    Machine(x64::Code),
    /// Bytes.
    Bytes(Compiled),
}

/// A function on its way through the phases.
pub struct Unit<'r, 'a> {
    /// What is compiled, and how.
    pub request: &'r Request<'r>,
    /// What it is now.
    pub form: Form<'a>,
    /// Counts and times so far.
    pub stats: CompileStats,
    arena: &'a Bump,
    passes: opt::Context<'r>,
}

impl<'r, 'a> Unit<'r, 'a> {
    /// The function of `request`, in this form. SSA is built in `arena`; `scratch` is the passes' and empty between them.
    pub fn new(request: &'r Request<'r>, form: Form<'a>, arena: &'a Bump, scratch: Bump) -> Unit<'r, 'a> {
        let passes = opt::Context { module: Some(request.module), scratch, ..opt::Context::new(request.options) };
        Unit { request, form, stats: CompileStats::default(), arena, passes }
    }

    /// Counts what a back end begins with.
    pub fn count_ssa(&mut self) {
        if let Form::Ssa(func) = &self.form {
            self.stats.counters.values = func.blocks().map(|block| func.block(block).insts.len() as u64).sum();
        }
        self.stats.counters += self.passes.counters.take();
    }

    /// The scratch memory again.
    pub fn into_scratch(self) -> Bump {
        self.passes.scratch
    }

    fn ssa(&mut self) -> &mut Func<'a> {
        match &mut self.form {
            Form::Ssa(func) => func,
            form => panic!("the phase is of SSA, not of {form:?}"),
        }
    }

    fn machine(&mut self) -> &mut x64::Code {
        match &mut self.form {
            Form::Machine(code) => code,
            form => panic!("the phase is of machine code, not of {form:?}"),
        }
    }
}

/// A step of the compilation.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// Its name in flags, dumps and statistics.
    pub name: &'static str,
    run: Run,
    /// Checks the result.
    verify: fn(&Unit<'_, '_>) -> Result<(), String>,
}

#[derive(Clone, Copy, Debug)]
enum Run {
    Pass(&'static Pass),
    Step(fn(&mut Unit<'_, '_>) -> Result<(), Refusal>),
}

/// Bytecode to SSA with branch probabilities.
const BUILD: Phase = Phase { name: "build", run: Run::Step(run_build), verify: verify_ssa };

/// SSA to bytes by the native back end.
pub const NATIVE: &[Phase] = &[
    Phase { name: "lower", run: Run::Step(run_lower), verify: verify_machine },
    Phase { name: "regalloc", run: Run::Step(run_regalloc), verify: verify_machine },
    Phase { name: "layout", run: Run::Step(run_layout), verify: verify_machine },
    Phase { name: "emit", run: Run::Step(run_emit), verify: verify_bytes },
];

/// SSA to bytes by Cranelift.
pub const CRANELIFT: &[Phase] = &[Phase { name: "cranelift", run: Run::Step(run_cranelift), verify: verify_bytes }];

/// What comes before a back end.
pub fn front() -> impl Iterator<Item = Phase> {
    let pass = |pass: &&'static Pass| Phase { name: pass.name, run: Run::Pass(pass), verify: verify_ssa };
    std::iter::once(BUILD).chain(passes::ORDER.iter().map(pass))
}

/// The phases of a back end.
pub fn back(backend: Backend) -> &'static [Phase] {
    match backend {
        Backend::Native => NATIVE,
        Backend::Cranelift => CRANELIFT,
    }
}

/// Sees a function after each phase.
pub trait Observer {
    /// After a phase ran, and changed the function if it is a pass. Breaking stops the compilation there.
    fn after(&mut self, phase: &'static str, form: &Form<'_>) -> ControlFlow<()>;
}

/// Nothing is observed.
impl Observer for () {
    fn after(&mut self, _: &'static str, _: &Form<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Runs `phases`, one after the other, as far as `observer` lets them.
///
/// # Errors
/// A [`Refusal`] when a phase cannot or will not compile the function.
///
/// # Panics
/// If [`Options::verify`](crate::Options::verify) is on and the result of a phase is malformed.
pub fn run(
    unit: &mut Unit<'_, '_>,
    phases: impl IntoIterator<Item = Phase>,
    observer: &mut impl Observer,
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
        if !changed {
            continue;
        }
        if unit.request.options.verify
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
    let Request { module, func, entry, profile, options, .. } = *unit.request;
    let mut counts = BuildStats::default();
    let mut func = build(unit.arena, module, func, entry, options, &mut counts)?;
    if let Some(profile) = profile {
        crate::profile::weigh(profile, &mut func);
    }
    unit.stats.counters += counts.counters;
    unit.form = Form::Ssa(func);
    Ok(())
}

fn verify_ssa(unit: &Unit<'_, '_>) -> Result<(), String> {
    match &unit.form {
        Form::Ssa(func) => crate::analysis::verify(func, Some(unit.request.module)).map_err(|error| format!("{error}\n{func}")),
        form => Err(format!("SSA is expected, not {form:?}")),
    }
}

fn run_lower(unit: &mut Unit<'_, '_>) -> Result<(), Refusal> {
    let request = unit.request;
    unit.form = Form::Machine(x64::lower(unit.ssa(), request)?);
    Ok(())
}

fn run_regalloc(unit: &mut Unit<'_, '_>) -> Result<(), Refusal> {
    let options = unit.request.options;
    let code = unit.machine();
    let allocated = allocate::allocate(code, options.allocator, options.verify);
    allocated.map_err(|error| Refusal::Unsupported { backend: Backend::Native, what: error.to_string() })?;
    let counts = code.allocated().count_moves();
    let counters = &mut unit.stats.counters;
    (counters.spills, counters.reloads, counters.copies) = (counts.spills.into(), counts.reloads.into(), counts.copies.into());
    Ok(())
}

fn run_layout(unit: &mut Unit<'_, '_>) -> Result<(), Refusal> {
    layout::lay_out(unit.machine());
    Ok(())
}

fn verify_machine(unit: &Unit<'_, '_>) -> Result<(), String> {
    match &unit.form {
        Form::Machine(code) => verify::verify(code).map_err(|error| format!("{error}\n{code}")),
        form => Err(format!("machine code is expected, not {form:?}")),
    }
}

fn run_emit(unit: &mut Unit<'_, '_>) -> Result<(), Refusal> {
    let options = unit.request.options;
    unit.form = Form::Bytes(x64::emit(unit.machine(), options)?);
    Ok(())
}

#[cfg(feature = "cranelift")]
fn run_cranelift(unit: &mut Unit<'_, '_>) -> Result<(), Refusal> {
    let request = unit.request;
    unit.form = Form::Bytes(crate::cranelift::compile(unit.ssa(), request)?);
    Ok(())
}

#[cfg(not(feature = "cranelift"))]
fn run_cranelift(_: &mut Unit<'_, '_>) -> Result<(), Refusal> {
    Err(Refusal::Unsupported { backend: Backend::Cranelift, what: "anything: it is not built in".into() })
}

/// Tables are sorted and inside the code.
fn verify_bytes(unit: &Unit<'_, '_>) -> Result<(), String> {
    let Form::Bytes(compiled) = &unit.form else { return Err(format!("bytes are expected, not {:?}", unit.form)) };
    let end = compiled.code.len() as u32;
    let sorted = compiled.relocs.is_sorted_by_key(|reloc| reloc.offset) && compiled.traps.is_sorted_by_key(|trap| trap.offset);
    let relocs = compiled.relocs.iter().map(|reloc| reloc.offset + 4);
    let traps = compiled.traps.iter().map(|trap| trap.offset + 1);
    let calls = compiled.calls.iter().map(|call| call.0);
    match sorted && relocs.chain(traps).chain(calls).all(|behind| behind <= end) {
        true => Ok(()),
        false => Err("relocations or traps are not sorted, or an entry of a table is outside of the code".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Entry;
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
        let request =
            Request { module: &module, func: 0, entry: Entry::Call, sig_ids: &[0], backend, profile: None, options: &options };
        for (name, stage) in [("build", None), ("lower", Some(0)), ("regalloc", Some(1)), ("layout", Some(2)), ("emit", None)] {
            let arena = Bump::new();
            let mut unit = Unit::new(&request, Form::Bytecode, &arena, Bump::new());
            let phases = front().chain(back(backend).iter().copied());
            assert_eq!(run(&mut unit, phases, &mut StopAfter(name)), Ok(ControlFlow::Break(())), "{name}");
            assert_eq!(unit.stats.phases.last().map(|phase| phase.0), Some(name));
            let found = match &unit.form {
                Form::Machine(code) => Some(code.stage() as usize),
                Form::Bytecode | Form::Ssa(_) | Form::Bytes(_) => None,
            };
            assert_eq!(found, stage, "{name}");
        }
    }
}
