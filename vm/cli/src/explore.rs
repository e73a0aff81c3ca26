//! `weir explore`: what every stage of the compiler makes of a function.

use crate::args::{AllocatorName, Explore};
use crate::failure::{Done, Failure};
use crate::page::page;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use weir::{Engine, Module};
use weir_bytecode::module::{ExternIndex, Module as Bytecode};
use weir_jit::explore::{Section, explore};
use weir_jit::ir::Entry;
use weir_jit::{Backend, Options, Request};

/// Prints the stages of the functions asked for, each under a line `;; stage`, or writes a page that shows them.
pub(crate) fn run(args: &Explore) -> Done {
    let module = Module::from_file(&Engine::default(), &args.module).map_err(Failure::Module)?;
    let module = module.bytecode();
    let funcs = match &args.func {
        Some(name) => vec![find(module, name)?],
        None => (module.imported_funcs..module.funcs.len() as u32).collect(),
    };
    // Only the code of a store compares identities of signatures with those of other modules.
    let sig_ids: Vec<u32> = (0..module.types.len() as u32).collect();
    let backend = if args.cranelift { Backend::Cranelift } else { Backend::Native };
    let allocator = args.allocator.map_or_else(weir_jit::request::Allocator::default, AllocatorName::of_compiler);
    let options = Options { allocator, ..Options::default() };
    let mut out = std::io::stdout().lock();
    let mut seen = Vec::new();
    let mut found = false;
    for func in funcs {
        let entry = entry(args, module, func)?;
        let sections = explore(&Request { module, func, entry, sig_ids: &sig_ids, backend, profile: None, options: &options });
        if let Some(file) = &args.html {
            write_page(file, args, module, func, &sections)?;
            continue;
        }
        writeln!(out, ";; function {func} {}", module.func_name(func).unwrap_or_default())?;
        for section in sections {
            seen.push(section.stage);
            if args.stage.as_ref().is_none_or(|stage| stage == section.stage) {
                found = true;
                writeln!(out, ";; {}\n{}", section.stage, section.text.trim_end())?;
            }
        }
    }
    match &args.stage {
        Some(stage) if !found => Err(no_stage(stage, &seen)),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Writes the stages of one function as a page.
fn write_page(file: &Path, args: &Explore, module: &Bytecode, func: u32, sections: &[Section]) -> Result<(), Failure> {
    let name = module.func_name(func).map_or_else(|| format!("function {func}"), ToString::to_string);
    let module_name = args.module.file_name().unwrap_or_default().to_string_lossy();
    let entered = args.osr.map_or_else(String::new, |index| format!(", entered at loop {index}"));
    let back_end = if args.cranelift { ", compiled by Cranelift" } else { "" };
    let bytes = module.body(func).map_or(0, |body| body.len());
    let subtitle =
        format!("function {func} of {module_name}, {}, {bytes} bytes of bytecode{entered}{back_end}", module.func_type(func));
    let written = std::fs::write(file, page(&name, &subtitle, sections));
    written.map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))
}

/// The function of this index, this name in the name section, or this export.
pub(crate) fn find(module: &Bytecode, name: &str) -> Result<u32, Failure> {
    let exported = || {
        module.exports.iter().find_map(|export| match export.item {
            ExternIndex::Func(func) if &*export.name == name => Some(func),
            _ => None,
        })
    };
    let named = || module.func_names.iter().find(|(_, known)| &**known == name).map(|(func, _)| *func);
    let func = name.parse().ok().or_else(exported).or_else(named);
    match func {
        Some(func) if func < module.imported_funcs => Err(Failure::Usage(format!("function {func} is imported, it has no code"))),
        Some(func) if (func as usize) < module.funcs.len() => Ok(func),
        _ => Err(Failure::Usage(format!("the module has no function `{name}`"))),
    }
}

/// By a call, or at the loop asked for.
fn entry(args: &Explore, module: &Bytecode, func: u32) -> Result<Entry, Failure> {
    let Some(index) = args.osr else { return Ok(Entry::Call) };
    let loops = module.body(func).map_or(&[][..], |body| &body.loops);
    match loops.get(index as usize) {
        Some(info) => Ok(Entry::Osr(info.pc)),
        None => Err(Failure::Usage(format!("function {func} has {} loops, and no loop {index}", loops.len()))),
    }
}

fn no_stage(stage: &str, seen: &[&'static str]) -> Failure {
    let mut stages: Vec<&str> = Vec::new();
    for name in seen {
        if !stages.contains(name) {
            stages.push(name);
        }
    }
    Failure::Usage(format!("nothing was made by a stage `{stage}`, but by {}", stages.join(", ")))
}
