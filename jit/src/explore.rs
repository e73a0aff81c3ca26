//! Every stage of a function's compilation as text: the same text that filetests hold, so that any section pastes into
//! one. `@` and a number at the end of a line name the bytecode that the line comes from.

use crate::analysis::gates;
use crate::compile::{back_end, construct, passes};
use crate::ir::Func;
use crate::request::{Backend, CompileStats, Options, Refusal, Request};
use crate::{opt, x64};
use bumpalo::Bump;
use weir_bytecode::print;

/// The text of one stage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Section {
    /// `bytecode`, `sidetable`, `build`, `gates`, the name of a pass, `lower`, `regalloc` or `asm`; `refusal` if the compiler
    /// refused the function there.
    pub stage: &'static str,
    /// What it looked like then.
    pub text: String,
}

/// Compiles as [`crate::compile()`] does and writes down every stage; of the passes, those that changed something, and of the
/// gates, which are found anew for each SSA stage, those that differ from the last.
///
/// # Panics
/// As [`crate::compile()`].
pub fn explore(request: &Request<'_>) -> Vec<Section> {
    let mut sections = vec![
        Section { stage: "bytecode", text: print::code(request.module, request.func).to_string() },
        Section { stage: "sidetable", text: print::side_table(request.module, request.func).to_string() },
    ];
    let options = Options { lines: true, ..request.options.clone() };
    let request = &Request { options: &options, ..*request };
    let arena = Bump::new();
    let mut func = match construct(&arena, request, &mut CompileStats::default()) {
        Ok(func) => func,
        Err(refusal) => {
            sections.push(Section { stage: "refusal", text: format!("{refusal}\n") });
            return sections;
        }
    };
    let mut gated = String::new();
    let mut dump = |stage, func: &Func<'_>| {
        sections.push(Section { stage, text: func.to_string() });
        let text = gates::print(func);
        if text != gated {
            gated.clone_from(&text);
            sections.push(Section { stage: "gates", text });
        }
    };
    dump("build", &func);
    opt::run(&mut func, &mut opt::Context { dump: Some(&mut dump), ..passes(request) });
    match back_end_sections(&func, request) {
        Ok(last) => sections.extend(last),
        Err(refusal) => sections.push(Section { stage: "refusal", text: format!("{refusal}\n") }),
    }
    sections
}

fn back_end_sections(func: &Func<'_>, request: &Request<'_>) -> Result<Vec<Section>, Refusal> {
    if request.backend == Backend::Native {
        let listing = x64::explore(func, request)?;
        return Ok(vec![
            Section { stage: "lower", text: listing.lowered },
            Section { stage: "regalloc", text: listing.allocated },
            Section { stage: "asm", text: listing.assembly },
        ]);
    }
    let compiled = back_end(func, request, &mut CompileStats::default())?;
    let text = match cfg!(target_arch = "x86_64") {
        true => x64::disassemble(&compiled.code, &compiled.lines),
        false => format!("{} bytes\n", compiled.code.len()),
    };
    Ok(vec![Section { stage: "asm", text }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Entry, parse};
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
        explore(&Request { module: &module, func: 0, entry, sig_ids: &[0], backend: Backend::Native, profile: None, options })
    }

    #[test]
    fn every_stage_is_shown() {
        let sections = stages(&Options::default());
        let names: Vec<&str> = sections.iter().map(|section| section.stage).collect();
        assert_eq!(names[..5], ["bytecode", "sidetable", "build", "gates", "simplify"]);
        if cfg!(target_arch = "x86_64") && names.last() != Some(&"refusal") {
            assert_eq!(names[names.len() - 3..], ["lower", "regalloc", "asm"]);
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
