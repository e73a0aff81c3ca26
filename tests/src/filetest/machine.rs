//! Stages of the native back end, from a module or from the text of machine code.

use super::Test;
use bumpalo::Bump;
use std::fmt::Write;
use weir::{Config, Tier};
use weir_bytecode::{Module, validate};
use weir_contract::profile::Profile;
use weir_jit::compile::MachineText;
use weir_jit::construct::{BuildStats, build};
use weir_jit::explore::explore;
use weir_jit::ir::{Entry, Op};
use weir_jit::mir::{parse, verify};
use weir_jit::pipeline::{self, Form, Unit};
use weir_jit::{Backend, Compiled, Options, Request, x64};

impl Test<'_> {
    /// What one stage of the compilation for x86-64 looks like. If it shows machine code, adds its text to `machine_code`, or that
    /// of the last phase which has a text.
    pub(super) fn section(
        &self,
        module: &Module,
        func: u32,
        entry: Entry,
        stage: &str,
        machine_code: &mut Vec<MachineText>,
    ) -> Result<String, String> {
        let sig_ids: Vec<u32> = (0..module.types.len() as u32).collect();
        let options = &self.head.options;
        self.check_profile(module, func, entry)?;
        let mut branches = self.head.profile.clone();
        branches.sort_by_key(|branch| branch.pc);
        let profile = (!branches.is_empty()).then(|| Profile { branches: branches.into(), calls: [].into() });
        let profile = profile.as_ref();
        let request = Request { module, func, entry, sig_ids: &sig_ids, backend: Backend::Native, profile, options };
        let sections = explore(&request);
        let text = |stage: &str| match sections.iter().find(|section| section.stage == stage) {
            Some(found) => Ok(found.text.clone()),
            None => Err(format!("no stage {stage} of function {func}: {}", sections[sections.len() - 1].text)),
        };
        if self.head.needs_machine() {
            let shown = if ["lower", "regalloc"].contains(&stage) { stage } else { "layout" };
            machine_code.push(MachineText { func, entry, text: text(shown)?, inlined: Vec::new() });
        }
        if stage != "emit" {
            return text(stage);
        }
        finish(&text("layout")?, &request, "emit")
    }

    /// The profile is of branches that exist.
    fn check_profile(&self, module: &Module, func: u32, entry: Entry) -> Result<(), String> {
        if self.head.profile.is_empty() {
            return Ok(());
        }
        let arena = Bump::new();
        let ssa = build(&arena, module, func, entry, &Options::default(), &mut BuildStats::default());
        let ssa = ssa.map_err(|refusal| refusal.to_string())?;
        let ends = ssa.blocks().filter_map(|block| ssa.terminator(block));
        let pcs: Vec<u32> = ends.filter(|&last| ssa.op(last) == Op::Branch).map(|last| ssa.inst(last).pc).collect();
        match self.head.profile.iter().find(|branch| !pcs.contains(&branch.pc)) {
            None => Ok(()),
            Some(branch) => Err(format!("function {func} has branches at {pcs:#x?}, none at {:#x}", branch.pc)),
        }
    }

    /// Output for machine code.
    pub(super) fn mir(&self) -> Result<String, String> {
        let text = if self.head.module.is_empty() { "(module (func))".to_string() } else { self.head.module.join("\n") };
        let bytes = wat::parse_str(&text).map_err(|error| error.to_string())?;
        let module = validate::parse(bytes.into()).map_err(|error| error.to_string())?;
        let func = module.imported_funcs;
        let entry = match (self.head.osr, module.body(func)) {
            (Some(osr), Some(body)) => Entry::Osr(body.loops.get(osr).ok_or("no such loop")?.pc),
            _ => Entry::Call,
        };
        let sig_ids: Vec<u32> = (0..module.types.len() as u32).collect();
        let options = Options { lines: true, ..self.head.options.clone() };
        let request = Request {
            module: &module,
            func,
            entry,
            sig_ids: &sig_ids,
            backend: Backend::Native,
            profile: None,
            options: &options,
        };
        let stage = self.head.stages[0];
        let output = finish(self.input, &request, stage)?;
        let made = if stage == "emit" { self.input } else { &output };
        let inlined = self.head.inlined.clone();
        self.run_machine_code(&text, vec![MachineText { func, entry, text: made.into(), inlined }])?;
        Ok(output)
    }

    /// Executes the runs with this machine code in the place of what the compiler makes of these functions.
    pub(super) fn run_machine_code(&self, module: &str, code: Vec<MachineText>) -> Result<(), String> {
        let mut config = Config::new();
        config.register_allocator(match self.head.options.allocator {
            weir_jit::request::Allocator::LinearScan => weir::Allocator::Own,
            weir_jit::request::Allocator::Regalloc2 => weir::Allocator::Regalloc2,
        });
        config.machine_code(code);
        match self.head.osr {
            None => config.tier(Tier::Native),
            // Calls are interpreted first, and enter loops when they have become hot.
            Some(_) => config.tier(Tier::Auto).synchronous_compilation(true).tier_up_threshold(Some(1)),
        };
        self.run_with(module, &mut config)
    }
}

/// Reads machine code and runs the phase `stage` alone on it, whose result is returned as text.
fn finish(text: &str, request: &Request<'_>, stage: &str) -> Result<String, String> {
    let code: x64::Code = parse::parse(text).map_err(|error| error.to_string())?;
    verify::verify(&code)?;
    let done = code.stage() as usize;
    if pipeline::NATIVE.get(done + 1).is_none_or(|next| next.name != stage) {
        return Err(format!("{stage} is not the phase after the one of this code, {}", pipeline::NATIVE[done].name));
    }
    let arena = Bump::new();
    let mut unit = Unit::new(request, Form::Machine(code), &arena, Bump::new());
    let _ = pipeline::run(&mut unit, [pipeline::NATIVE[done + 1]], &mut ()).map_err(|refusal| refusal.to_string())?;
    match &unit.form {
        Form::Machine(code) => Ok(code.to_string()),
        Form::Bytes(compiled) => Ok(emitted(compiled)),
        form => Err(format!("the phase ends with {form:?}")),
    }
}

/// Assembly, relocations, traps and calls.
fn emitted(compiled: &Compiled) -> String {
    let mut text = x64::disassemble(&compiled.code, &compiled.lines);
    for reloc in &compiled.relocs {
        let _ = writeln!(text, "reloc {:x} func{} {:+}", reloc.offset, reloc.func, reloc.addend);
    }
    for trap in &compiled.traps {
        let _ = writeln!(text, "trap {:x} {:?} @{:#x}", trap.offset, trap.site, trap.pc);
    }
    for (offset, pc) in &compiled.calls {
        let _ = writeln!(text, "call {offset:x} @{pc:#x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filetest::head::Head;

    fn check(text: &str) -> Result<String, String> {
        Test { input: text, head: Head::parse(text, "mir")? }.mir()
    }

    /// A function that returns 41 in the place of one that returns 42.
    fn returns_41(result: u32) -> String {
        let module = "(module (func (export \"f\") (result i32) (i32.const 42)))";
        let code = "machine laid_out pc 0x0\nb0:\n    args\n    rax = mov_imm.q 41\n    ret rax\n";
        format!(";; test: emit\n;; run: f() -> {result}\n;; module: {module}\n{code}")
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_run_executes_the_machine_code_and_not_the_module() {
        assert!(check(&returns_41(41)).is_ok_and(|text| text.contains("mov eax,29h")));
        assert!(check(&returns_41(42)).is_err_and(|error| error.contains("found 41")));
    }

    #[test]
    fn malformed_machine_code_is_an_error() {
        let refused = |text: &str, why: &str| {
            let error = check(&format!(";; test: regalloc\n{text}")).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        };
        refused("machine lowered pc 0x0\nb0:\n    args\n    v0 = add.d v1, 1\n    ret v0:rax\n", "v1 is never defined");
        refused("machine lowered pc 0x0\nb0:\n    args\n", "ends with");
        refused("machine lowered pc 0x0\nb0:\n    args\n    j_e b1\n", "which does not exist");
        refused("machine lowered pc 0x0\nb0:\n    args\n    v0 = sum.d v0, 1\n    ret\n", "no instruction `sum.d`");
        refused("machine laid_out pc 0x0\nb0:\n    args\n    ret\n", "is not the phase after");
        refused("machine allocated pc 0x0\nb0:\n    args\n    ret rax\n", "may not be written before");
    }
}
