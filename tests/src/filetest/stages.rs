//! From the input of a filetest to its stage: the compiler's driver runs the phases between them.

use super::head::{Head, MACHINE};
use super::options::check_used;
use std::fmt::Write;
use std::ops::ControlFlow;
use weir_bytecode::{Instrs, Module, print};
use weir_contract::profile::Counted;
use weir_jit::compile::TextForm;
use weir_jit::explore::gates;
use weir_jit::ir::{Func, Op};
use weir_jit::opt::passes;
use weir_jit::pipeline::{self, Form, Observer, Phase, Unit};
use weir_jit::request::RelocTarget;
use weir_jit::{Compiled, Request, x64};

/// The result of a stage.
#[derive(Debug)]
pub struct Output {
    /// Its output.
    pub text: String,
    /// The function in its last form, if that has a text from which compilation can continue. `None` if no phase has run on
    /// bytecode.
    pub function: Option<(TextForm, String)>,
}

/// Runs the phases from `form`, the function of `request`, to the stage. SSA without a module has no request.
///
/// # Errors
/// The stage cannot be reached from there, an option or the profile has no effect on the way, or the compiler refuses
/// the function.
///
/// # Panics
/// If the result of a phase is malformed.
pub fn run(head: &Head<'_>, request: Option<&Request<'_>>, form: Form<'_>) -> Result<Output, String> {
    let phases = phases(head, &form)?;
    check_effects(head, request, &form, &phases)?;
    let module = request.map(|request| request.module);
    let mut seen = Recorder { head, module, function: text_of(&form), wrong: None };
    let mut unit = match (request, form) {
        (Some(request), form) => Unit::new(request, form, Default::default()),
        (None, Form::Ssa(func)) => Unit::without_module(func, &head.options),
        (None, form) => return Err(format!("a module is needed for {form:?}")),
    };
    let _ = pipeline::run(&mut unit, phases, &mut seen).map_err(|refusal| refusal.to_string())?;
    if let Some(wrong) = seen.wrong {
        return Err(wrong);
    }
    let text = shown(head.stages[head.stages.len() - 1], request, &unit.finish().form)?;
    Ok(Output { text, function: seen.function })
}

/// The phases between a form and the stage.
fn phases(head: &Head<'_>, form: &Form<'_>) -> Result<Vec<Phase>, String> {
    if let Some(stage) = head.stages.iter().find(|stage| MACHINE.contains(stage)) {
        let mut phases: Vec<Phase> = pipeline::rest(form, head.backend()).collect();
        let name = if *stage == "asm" { "emit" } else { stage };
        let end = phases.iter().position(|phase| phase.name == name);
        phases.truncate(end.ok_or_else(|| format!("this code has gone through {stage}"))? + 1);
        return Ok(phases);
    }
    let mut phases = Vec::new();
    if matches!(form, Form::Bytecode(_)) && !["bytecode", "sidetable"].contains(&head.stages[0]) {
        phases.push(pipeline::BUILD);
    }
    for stage in &head.stages {
        match *stage {
            "bytecode" | "sidetable" | "build" | "gates" | "print" => {}
            "opt" => phases.extend(passes::ORDER.iter().copied().map(Phase::of)),
            name => phases.push(Phase::of(passes::by_name(name).ok_or_else(|| format!("no stage {name}"))?)),
        }
    }
    Ok(phases)
}

/// Checks that options and profile are read on the way to the stage, or by the engine that executes the runs.
fn check_effects(head: &Head<'_>, request: Option<&Request<'_>>, form: &Form<'_>, phases: &[Phase]) -> Result<(), String> {
    let mut names: Vec<&str> = phases.iter().map(|phase| phase.name).collect();
    let executed = request.is_some() && head.has_runs();
    if executed && head.needs_machine() {
        names.extend(pipeline::rest(form, head.backend()).map(|phase| phase.name));
    }
    check_used(&head.given, &names, executed)?;
    let read_by = |phase: &str| names.contains(&phase);
    if !head.profile.is_empty() && !read_by("build") || !head.calls.is_empty() && !read_by("inline") {
        return Err("`;; profile` has no effect on these phases".into());
    }
    Ok(())
}

/// Records the text of the function, and compares the profile with the branches.
struct Recorder<'h, 't> {
    head: &'h Head<'t>,
    module: Option<&'h Module>,
    function: Option<(TextForm, String)>,
    wrong: Option<String>,
}

impl Observer for Recorder<'_, '_> {
    fn after(&mut self, phase: &'static str, form: &Form<'_>) -> ControlFlow<()> {
        if let Some(text) = text_of(form) {
            self.function = Some(text);
        }
        if let ("build", Form::Ssa(func)) = (phase, form) {
            self.wrong = check_profile(self.head, func, self.module).err();
        }
        if self.wrong.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Checks that the profile's branches and calls exist, in the function or in another of its module, which it may inline.
fn check_profile(head: &Head<'_>, func: &Func<'_>, module: Option<&Module>) -> Result<(), String> {
    let bodies = |module: &Module| -> Vec<u32> {
        let others = (module.imported_funcs..module.funcs.len() as u32).filter(|&other| other != func.index);
        let instrs = others.filter_map(|other| module.body(other)).flat_map(|body| Instrs::new(module, body.entry, body.end));
        instrs.filter(|instr| Counted::of(instr).is_some()).map(|instr| instr.pc).collect()
    };
    let elsewhere = module.map_or_else(Vec::new, bodies);
    let ends = func.blocks().filter_map(|block| func.terminator(block));
    let pcs: Vec<u32> =
        ends.filter(|&last| matches!(func.op(last), Op::Branch | Op::BrTable)).map(|last| func.inst(last).pc).collect();
    if let Some(branch) = head.profile.iter().find(|branch| !pcs.contains(&branch.pc) && !elsewhere.contains(&branch.pc)) {
        return Err(format!("branches are at {pcs:x?}, none at {:#x}", branch.pc));
    }
    let insts = func.blocks().flat_map(|block| func.block(block).insts.iter().map(|&value| func.inst(value)));
    let is_counted = |op: Op| matches!(op, Op::CallIndirect | Op::CallRef | Op::ReturnCallIndirect | Op::ReturnCallRef);
    let pcs: Vec<u32> = insts.filter(|inst| is_counted(inst.op)).map(|inst| inst.pc).collect();
    match head.calls.iter().find(|call| !pcs.contains(&call.pc) && !elsewhere.contains(&call.pc)) {
        None => Ok(()),
        Some(call) => Err(format!("indirect calls are at {pcs:x?}, none at {:#x}", call.pc)),
    }
}

fn text_of(form: &Form<'_>) -> Option<(TextForm, String)> {
    match form {
        Form::Ssa(func) => Some((TextForm::Ssa, func.to_string())),
        Form::Machine(code) => Some((TextForm::Machine, code.to_string())),
        Form::Bytecode(_) | Form::Bytes(_) => None,
    }
}

fn shown(stage: &str, request: Option<&Request<'_>>, form: &Form<'_>) -> Result<String, String> {
    Ok(match (stage, form, request) {
        ("bytecode", Form::Bytecode(_), Some(request)) => print::code(request.module, request.func).to_string(),
        ("sidetable", Form::Bytecode(_), Some(request)) => print::side_table(request.module, request.func).to_string(),
        ("gates", Form::Ssa(func), _) => gates::print(func),
        ("asm", Form::Bytes(compiled), _) => x64::disassemble(&compiled.code, &compiled.lines),
        (_, Form::Ssa(func), _) => func.to_string(),
        (_, Form::Machine(code), _) => code.to_string(),
        (_, Form::Bytes(compiled), _) => emitted(compiled),
        (stage, Form::Bytecode(_), _) => return Err(format!("stage {stage} has no output")),
    })
}

/// Assembly, relocations, traps and calls.
fn emitted(compiled: &Compiled) -> String {
    let mut text = x64::disassemble(&compiled.code, &compiled.lines);
    for reloc in &compiled.relocs {
        let _ = match reloc.target {
            RelocTarget::Signature => writeln!(text, "reloc {:x} type{}", reloc.offset, reloc.index),
            RelocTarget::Cell | RelocTarget::Ticks(_) | RelocTarget::Counters(_) => {
                writeln!(text, "reloc {:x} func{} {:+}", reloc.offset, reloc.index, reloc.addend)
            }
        };
    }
    for trap in &compiled.traps {
        let _ = writeln!(text, "trap {:x} {:?} @{:#x}", trap.offset, trap.site, trap.pc);
    }
    for (offset, pc) in &compiled.calls {
        let _ = writeln!(text, "call {offset:x} @{pc:#x}");
    }
    text
}
