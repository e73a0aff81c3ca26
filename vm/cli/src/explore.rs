//! `weir explore`: prints a function after every stage of the compiler.

use crate::args::{Explore, Tier};
use crate::failure::{Done, Failure};
use crate::module_page::{self, Source};
use crate::page::page;
use crate::style::Headings;
use crate::{load, names, profile, progress};
use std::io::Write;
use std::path::Path;
use weir::{Engine, Module, Section};
use weir_bytecode::module::{ExternIndex, Module as Bytecode};

/// Prints the stages of the requested functions, each after a line `;; stage`, or writes a page that shows them.
pub(crate) fn run(args: &Explore) -> Done {
    let whole = args.html.as_ref().filter(|_| args.func.is_none());
    let engine = Engine::new(&args.code.config(whole.is_some())).map_err(Failure::of_engine)?;
    let module = load::module(&engine, &args.module)?;
    profile::use_from(args.code.profile_use.as_deref(), &module)?;
    if let Some(file) = whole {
        return write_module_page(file, args, &module);
    }
    let bytecode = module.bytecode();
    let funcs = match &args.func {
        Some(name) => vec![find(bytecode, name)?],
        None => (bytecode.imported_funcs..bytecode.funcs.len() as u32).collect(),
    };
    let what = || Some(format!("compiling functions of {}", args.module.display()));
    progress::while_printing(what, || print(args, &module, &funcs))
}

/// Prints the stages of these functions, or with `--html` writes the page of each.
fn print(args: &Explore, module: &Module, funcs: &[u32]) -> Done {
    let bytecode = module.bytecode();
    let mut out = std::io::stdout().lock();
    let headings = Headings::of_stdout();
    let mut seen = Vec::new();
    let mut found = false;
    for &func in funcs {
        let osr = args.osr.as_ref().map(|wanted| find_loop(wanted, bytecode, func)).transpose()?;
        let sections = if args.baseline { module.explore_baseline(func) } else { module.explore(func, osr) };
        let sections = sections.map_err(Failure::of_engine)?;
        if let Some(file) = &args.html {
            write_page(file, args, bytecode, func, &sections)?;
            continue;
        }
        headings.write(&mut out, &format!(";; function {func} {}", names::of(bytecode, func).unwrap_or_default()))?;
        for section in sections {
            seen.push(section.stage);
            if args.stage.as_ref().is_none_or(|stage| stage == section.stage) {
                found = true;
                headings.write(&mut out, &format!(";; {}", section.stage))?;
                writeln!(out, "{}", section.text.trim_end())?;
            }
        }
    }
    match &args.stage {
        Some(stage) if !found => Err(no_stage(stage, &seen)),
        _ => Ok(0),
    }
}

/// Writes the page of a whole module.
fn write_module_page(file: &Path, args: &Explore, module: &Module) -> Done {
    let counts = module.saved_profile().map_err(Failure::Module)?;
    let guest_profile = args.guest_profile.as_deref();
    let page = module_page::page(&Source { module, path: &args.module, counts: &counts, guest_profile })?;
    std::fs::write(file, page).map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))?;
    Ok(0)
}

/// Writes the stages of one function as a page.
fn write_page(file: &Path, args: &Explore, module: &Bytecode, func: u32, sections: &[Section]) -> Result<(), Failure> {
    let name = names::of(module, func).unwrap_or_else(|| format!("function {func}"));
    let module_name = args.module.file_name().unwrap_or_default().to_string_lossy();
    let entered = args.osr.as_ref().map_or_else(String::new, |wanted| format!(", entered at loop {wanted}"));
    let back_end = match args.code.engine.tier {
        Tier::Cranelift => ", compiled by Cranelift",
        Tier::Baseline => ", compiled by the baseline compiler",
        Tier::Auto if args.baseline => ", compiled by the baseline compiler",
        Tier::Auto | Tier::Interp | Tier::Native | Tier::Ssa => "",
    };
    let bytes = module.body(func).map_or(0, |body| body.len());
    let subtitle =
        format!("function {func} of {module_name}, {}, {bytes} bytes of bytecode{entered}{back_end}", module.func_type(func));
    let written = std::fs::write(file, page(&name, &subtitle, sections));
    written.map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))
}

/// Returns the function with this index, this name in the name section, or this export.
pub(crate) fn find(module: &Bytecode, name: &str) -> Result<u32, Failure> {
    let exported = || {
        module.exports.iter().find_map(|export| match export.item {
            ExternIndex::Func(func) if &*export.name == name => Some(func),
            _ => None,
        })
    };
    let named = || (0..module.funcs.len() as u32).find(|&func| module.func_name(func) == Some(name));
    let func = name.parse().ok().or_else(exported).or_else(named);
    match func {
        Some(func) if func < module.imported_funcs => Err(Failure::Usage(format!("function {func} is imported and has no code"))),
        Some(func) if (func as usize) < module.funcs.len() => Ok(func),
        _ => {
            let range = match (module.funcs.len() as u32).checked_sub(module.imported_funcs) {
                None | Some(0) => "it defines none".to_string(),
                Some(_) => format!("it defines functions {} to {}", module.imported_funcs, module.funcs.len() - 1),
            };
            Err(Failure::Usage(format!("the module has no function with index, name or export `{name}`; {range}")))
        }
    }
}

/// Returns the offset of the loop with this number or this offset.
fn find_loop(wanted: &str, module: &Bytecode, func: u32) -> Result<u32, Failure> {
    let body = module.validated_body(func).transpose().map_err(|error| Failure::Module(error.into()))?;
    let loops = body.map_or(&[][..], |body| &body.loops);
    let found = match wanted.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok().and_then(|pc| loops.iter().find(|info| info.pc == pc)),
        None => wanted.parse::<usize>().ok().and_then(|index| loops.get(index)),
    };
    found.map(|info| info.pc).ok_or_else(|| {
        let offsets: Vec<String> = loops.iter().map(|info| format!("{:#x}", info.pc)).collect();
        let found = if offsets.is_empty() { "it has none".into() } else { format!("its loops are at {}", offsets.join(", ")) };
        Failure::Usage(format!("function {func} has no loop with number or offset `{wanted}`; {found}"))
    })
}

fn no_stage(stage: &str, seen: &[&'static str]) -> Failure {
    let mut stages: Vec<&str> = Vec::new();
    for name in seen {
        if !stages.contains(name) {
            stages.push(name);
        }
    }
    Failure::Usage(format!("no stage `{stage}`; the stages of this compilation are {}", stages.join(", ")))
}
