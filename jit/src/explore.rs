//! Shows every stage of a function's compilation as text, in the format of filetests, so that any section can be pasted
//! into one. `@` and a number at the end of a line give the offset of the line's bytecode.

pub mod gates;

use crate::pipeline::{self, Form, Observer, Phase, Unit};
use crate::request::{Compiled, Options, Reloc, RelocTarget, Request};
use crate::x64;
use bumpalo::Bump;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::ControlFlow;
use weir_bytecode::{Imm, Instrs, Module, print};

/// The text of one stage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Section {
    /// `bytecode`, `sidetable`, `targets`, `profile`, `build`, `gates`, the name of a pass, `lower`, `regalloc`, `layout`, `asm` or
    /// `bytes`; or `refusal` if the compiler refused the function there. The phases `emit`, `cranelift` and `baseline` end with
    /// bytes and are shown as `asm` and `bytes`; the baseline compiler has no stages between `sidetable` and these.
    pub stage: &'static str,
    /// The function after that stage.
    pub text: String,
}

/// Compiles as [`crate::compile()`] does and shows every stage: the functions that calls through tables can reach; the profile's
/// counts, if there are any; the passes that changed something; and the gates, which are computed for each SSA stage, where they differ
/// from the previous ones.
///
/// # Panics
/// As [`crate::compile()`].
pub fn explore(request: &Request<'_>) -> Vec<Section> {
    let begins = Form::Bytecode(&Bump::new());
    run(request, pipeline::rest(&begins, request.backend))
}

/// Shows the stages before the back end, as [`explore`] does: the last stage is the optimised SSA.
///
/// # Panics
/// As [`crate::compile()`].
pub fn explore_ssa(request: &Request<'_>) -> Vec<Section> {
    run(request, pipeline::front())
}

fn run(request: &Request<'_>, phases: impl Iterator<Item = Phase>) -> Vec<Section> {
    let bytecode = Section { stage: "bytecode", text: print::code(request.module, request.func).to_string() };
    let side_table = Section { stage: "sidetable", text: print::side_table(request.module, request.func).to_string() };
    let mut sections = Sections { all: vec![bytecode, side_table], gates: String::new() };
    let targets = targets(request.module, request.func);
    if !targets.is_empty() {
        sections.push("targets", targets);
    }
    if let Some(profile) = request.profile.filter(|profile| !profile.is_empty()) {
        sections.push("profile", profile.to_string());
    }
    let options = Options { lines: true, ..request.options.clone() };
    let request = &Request { options: &options, ..*request };
    let arena = Bump::new();
    let mut unit = Unit::new(request, Form::Bytecode(&arena), Bump::new());
    if let Err(refusal) = pipeline::run(&mut unit, phases, &mut sections) {
        sections.push("refusal", format!("{refusal}\n"));
    }
    sections.all
}

/// Records the function after each phase.
struct Sections {
    all: Vec<Section>,
    gates: String,
}

impl Sections {
    fn push(&mut self, stage: &'static str, text: String) {
        self.all.push(Section { stage, text });
    }
}

impl Observer for Sections {
    fn after(&mut self, phase: &'static str, form: &Form<'_>) -> ControlFlow<()> {
        match form {
            Form::Bytecode(_) => {}
            Form::Ssa(func) => {
                self.push(phase, func.to_string());
                let gates = gates::print(func);
                if gates != self.gates {
                    self.gates.clone_from(&gates);
                    self.push("gates", gates);
                }
            }
            Form::Machine(code) => self.push(phase, code.to_string()),
            Form::Bytes(compiled) => {
                if cfg!(target_arch = "x86_64") {
                    self.push("asm", x64::disassemble(&compiled.code, &compiled.lines));
                }
                self.push("bytes", bytes(compiled));
            }
        }
        ControlFlow::Continue(())
    }
}

/// The functions that each call through a table can reach, as far as the module says it, and at most this many.
fn targets(module: &Module, func: u32) -> String {
    const SHOWN: usize = 32;
    let mut text = String::new();
    let Some(body) = module.body(func) else { return text };
    for instr in Instrs::new(module, body.entry, body.end) {
        let Imm::CallIndirect { ty, table } = instr.imm else { continue };
        let _ = write!(text, "{:#08x}  table {table}, type {ty}:", instr.pc);
        let _ = match module.own_callees(table, ty).map(BTreeSet::from_iter) {
            None => writeln!(text, " any, the table is not private"),
            Some(callees) if callees.is_empty() => writeln!(text, " none, it traps"),
            Some(callees) => {
                let shown: String = callees.iter().take(SHOWN).map(|callee| format!(" f{callee}")).collect();
                let more = callees.len().saturating_sub(SHOWN);
                if more > 0 { writeln!(text, "{shown} and {more} more") } else { writeln!(text, "{shown}") }
            }
        };
    }
    text
}

/// The bytes, 16 on a line after the offset of the first, with `..` for those that a relocation fills in; then the
/// relocations.
fn bytes(compiled: &Compiled) -> String {
    let mut bytes: Vec<Option<u8>> = compiled.code.iter().copied().map(Some).collect();
    for reloc in &compiled.relocs {
        bytes[reloc.offset as usize..][..4].fill(None);
    }
    let mut text = String::new();
    for (i, line) in bytes.chunks(16).enumerate() {
        let _ = write!(text, "{:6x} ", 16 * i);
        for byte in line {
            let _ = match byte {
                Some(byte) => write!(text, " {byte:02x}"),
                None => write!(text, " .."),
            };
        }
        text.push('\n');
    }
    for Reloc { offset, target, index, addend } in &compiled.relocs {
        let of = match target {
            RelocTarget::Cell => "",
            RelocTarget::Ticks(_) => " ticks",
            RelocTarget::Counters(_) => " counters",
            RelocTarget::Signature => {
                let _ = writeln!(text, "reloc {offset:#x} type {index}");
                continue;
            }
        };
        let _ = writeln!(text, "reloc {offset:#x} f{index}{of} {addend:+}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Entry, parse};
    use crate::opt;
    use crate::request::Backend;
    use weir_bytecode::validate;

    const LOOP: &str = r#"(module (func $count (param i32) (result i32)
        (local i32)
        loop
            local.get 1
            i32.const 1
            i32.add
            local.tee 1
            local.get 0
            i32.ne
            i32.const 0
            i32.ne
            br_if 0
        end
        local.get 1))"#;

    fn stages(options: &Options) -> Vec<Section> {
        let module = validate::parse(wat::parse_str(LOOP).unwrap().into()).unwrap();
        let entry = Entry::Call;
        explore(&Request {
            module: &module,
            func: 0,
            entry,
            sig_ids: &[0],
            backend: Backend::Native,
            profile: None,
            callees: None,
            options,
        })
    }

    #[test]
    fn every_stage_is_shown() {
        let sections = stages(&Options::default());
        let names: Vec<&str> = sections.iter().map(|section| section.stage).collect();
        assert_eq!(names[..5], ["bytecode", "sidetable", "build", "gates", "simplify"]);
        if cfg!(target_arch = "x86_64") && names.last() != Some(&"refusal") {
            assert_eq!(names[names.len() - 4..], ["regalloc", "layout", "asm", "bytes"]);
        }
        let text = |stage: &str| &sections.iter().find(|section| section.stage == stage).unwrap().text;
        assert!(text("bytecode").contains("func 0 [i32] -> [i32] ;; count\n"), "{}", text("bytecode"));
        assert!(text("bytecode").contains("    i32.const 1\n"), "the loop's body is indented: {}", text("bytecode"));
        assert!(text("sidetable").contains("assigns locals [1]"), "{}", text("sidetable"));
        parse(&Bump::new(), text("build")).unwrap();
        assert!(text("gates").contains("μ("), "{}", text("gates"));
    }

    #[test]
    fn passes_obey_the_options() {
        let off = Options { passes_off: vec!["simplify".into()], ..Options::default() };
        let none = Options { rewrite_fuel: Some(0), ..Options::default() };
        assert!(stages(&off).iter().all(|section| section.stage != "simplify"));
        assert!(stages(&none).iter().all(|section| opt::passes::by_name(section.stage).is_none()));
    }
}
