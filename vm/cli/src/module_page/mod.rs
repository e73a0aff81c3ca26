//! A module as one HTML page: an index of its functions with their samples, counts, events and calls, and the stages of the hottest ones.
//! Its appearance and behaviour are in `module.html`; the data are made here. The page is self-contained, and builds what it shows
//! when that is asked for.

mod samples;
mod stages;

use crate::failure::Failure;
use crate::page::{escape, fill, json};
use crate::{names, progress};
use samples::{FuncSamples, Samples};
use serde_json::{Value, json as value};
use std::collections::BTreeMap;
use std::path::Path;
use weir::{FrameTier, Module, ModuleProfile, ProfiledModule, Section};
use weir_bytecode::module::{ExternIndex, ExternType};
use weir_bytecode::{Imm, Instrs, Module as Bytecode, Opcode};

const TEMPLATE: &str = include_str!("module.html");
/// Bytes of all stages on the page.
const MAX_STAGES: usize = 12 << 20;
/// Bytes of a function's stages above which only a few are kept.
const MAX_ALL_STAGES: usize = 1 << 20;
/// Bytes of those few, above which only the bytecode is kept.
const MAX_FEW_STAGES: usize = 4 << 20;
/// Functions whose stages are on the page.
const MAX_DETAILED: usize = 250;
/// Bytes of a name.
const MAX_NAME: usize = 160;
/// Events of tiers on the page.
const MAX_EVENTS: usize = 50_000;
/// Direct and indirect calls on the page, counted once for each caller and callee.
const MAX_CALLS: usize = 400_000;

/// A function on the page.
#[derive(Default)]
struct Func {
    name: String,
    ty: String,
    bytes: u32,
    exported: bool,
    /// Functions that it calls directly, with the number of calls in its code.
    callees: BTreeMap<u32, u32>,
    /// Number of its indirect calls.
    indirect: u32,
    /// Executed branches and indirect calls, as a saved profile counts them.
    counted: u64,
    /// Targets of its indirect calls in the profile.
    targets: BTreeMap<u32, u64>,
}

/// What the page is made from.
pub(crate) struct Source<'s> {
    /// The module, whose engine has the settings of the compilations.
    pub module: &'s Module,
    /// Its file.
    pub path: &'s Path,
    /// The profile that compilations use.
    pub counts: &'s ModuleProfile,
    /// A file of `--profile guest=FILE.json`.
    pub guest_profile: Option<&'s Path>,
}

/// Returns the page.
pub(crate) fn page(source: &Source<'_>) -> Result<String, Failure> {
    let bytecode = source.module.bytecode();
    let samples = samples(source)?;
    let funcs = functions(bytecode, source.counts);
    let order = order(bytecode, &funcs, samples.as_ref());
    let (details, left_out) = details(source, &order);
    let file = source.path.file_name().unwrap_or_default().to_string_lossy();
    let defined = bytecode.funcs.len() - bytecode.imported_funcs as usize;
    let mut notes = vec![format!("{defined} functions, {} imported, {} bytes", bytecode.imported_funcs, bytecode.bytes.len())];
    if let Some(samples) = &samples {
        notes.push(format!("{} samples in {:.2} s", samples.total, samples.duration / 1000.0));
    }
    if left_out > 0 {
        notes.push(format!("the stages of {left_out} functions are left out"));
    }
    let data = data(bytecode, &funcs, samples.as_ref(), &order, &file);
    let texts = [("title", escape(&file)), ("subtitle", escape(&notes.join("; "))), ("data", json(&data)), ("details", details)];
    Ok(fill(TEMPLATE, &texts))
}

/// Reads the samples.
fn samples(source: &Source<'_>) -> Result<Option<Samples>, Failure> {
    let Some(path) = source.guest_profile else { return Ok(None) };
    let wrong = |error: String| Failure::Usage(format!("--guest-profile {}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let hash = ProfiledModule::of("", source.module).hash;
    Samples::read(&text, source.module.bytecode(), &hash).map(Some).map_err(wrong)
}

/// Returns the beginning of a name.
fn short(name: &str) -> String {
    match name.len() <= MAX_NAME {
        true => name.into(),
        false => format!("{}…", &name[..name.floor_char_boundary(MAX_NAME)]),
    }
}

/// Reads all functions, imported ones first.
fn functions(module: &Bytecode, counts: &ModuleProfile) -> Vec<Func> {
    let imports = module.imports.iter().filter(|import| matches!(import.ty, ExternType::Func(_)));
    let mut funcs: Vec<Func> =
        imports.map(|import| Func { name: short(&format!("{}.{}", import.module, import.name)), ..Func::default() }).collect();
    for func in module.imported_funcs..module.funcs.len() as u32 {
        let mut info = Func {
            name: names::of(module, func).map_or_else(|| format!("function {func}"), |name| short(&name)),
            ..Func::default()
        };
        if let Some(Ok(body)) = module.validated_body(func) {
            info.bytes = body.len();
            for instr in Instrs::new(module, body.entry, body.end) {
                match (instr.op, instr.imm) {
                    (Opcode::Call | Opcode::ReturnCall, Imm::Index(callee)) => *info.callees.entry(callee).or_default() += 1,
                    (Opcode::CallIndirect | Opcode::ReturnCallIndirect | Opcode::CallRef | Opcode::ReturnCallRef, _) => {
                        info.indirect += 1;
                    }
                    _ => {}
                }
            }
        }
        funcs.push(info);
    }
    for (func, info) in (0..).zip(&mut funcs) {
        info.ty = module.func_type(func).to_string();
    }
    for export in &module.exports {
        if let ExternIndex::Func(func) = export.item {
            funcs[func as usize].exported = true;
        }
    }
    for ((func, _), profile) in &counts.entries {
        let info = &mut funcs[*func as usize];
        let branches = profile.branches.iter().flat_map(|branch| &branch.counts[..]).map(|&count| u64::from(count));
        info.counted += branches.sum::<u64>();
        for call in &profile.calls {
            info.counted += u64::from(call.others);
            for &(target, count) in &call.targets {
                info.counted += u64::from(count);
                if let Some(target) = target {
                    *info.targets.entry(target).or_default() += u64::from(count);
                }
            }
        }
    }
    funcs
}

/// Returns the defined functions, the hottest first: by samples, then by counts, then by index.
fn order(module: &Bytecode, funcs: &[Func], samples: Option<&Samples>) -> Vec<u32> {
    let own = |func: u32| samples.and_then(|samples| samples.funcs.get(&func)).map_or((0, 0), |func| (func.own, func.total));
    let mut order: Vec<u32> = (module.imported_funcs..funcs.len() as u32).collect();
    order.sort_by_key(|&func| (std::cmp::Reverse((own(func), funcs[func as usize].counted)), func));
    order
}

/// Returns the elements with the stages of functions, as many as there is room for, and the number of the functions left out.
fn details(source: &Source<'_>, order: &[u32]) -> (String, usize) {
    let (mut html, mut size, mut included) = (String::new(), 0, 0);
    let what = || Some(format!("compiling functions of {}", source.path.display()));
    progress::during(what, || {
        for &func in order.iter().take(MAX_DETAILED) {
            let Some((stages, bytes)) = stages_of(source.module, func, MAX_STAGES - size) else { continue };
            size += bytes;
            included += 1;
            html += &format!("<script type=\"application/json\" id=\"stages-{func}\">{}</script>\n", json(&stages));
        }
    });
    (html, order.len() - included)
}

/// Returns the stages of a function, all or the most important ones, if they fit into `room` bytes.
fn stages_of(module: &Module, func: u32, room: usize) -> Option<(Value, usize)> {
    // A tier may have no optimiser.
    let mut sections: Vec<Section> = module.explore(func, None).unwrap_or_default();
    if let Ok(baseline) = module.explore_baseline(func) {
        let known = sections.len();
        sections.extend(baseline.into_iter().filter_map(|section| match section.stage {
            "asm" => Some(Section { stage: "baseline", ..section }),
            "bytecode" | "sidetable" if known == 0 => Some(section),
            _ => None,
        }));
    }
    sections.retain(|section| section.stage != "bytes");
    let (all, size) = stages::stages(&sections, |_| true);
    if size <= room.min(MAX_ALL_STAGES) {
        return Some((all, size));
    }
    let few = |stage: &str| matches!(stage, "bytecode" | "asm" | "baseline" | "refusal");
    let (few, size) = stages::stages(&sections, few);
    if size <= room.min(MAX_FEW_STAGES) {
        return Some((few, size));
    }
    let (bytecode, size) = stages::stages(&sections, |stage| stage == "bytecode");
    (size <= room).then_some((bytecode, size))
}

/// Returns the index.
fn data(module: &Bytecode, funcs: &[Func], samples: Option<&Samples>, order: &[u32], file: &str) -> Value {
    let (mut calls_left, mut rows) = (MAX_CALLS, Vec::new());
    for (func, info) in (0..).zip(funcs) {
        let callees: Vec<u32> = info.callees.iter().take(calls_left).flat_map(|(&callee, &count)| [callee, count]).collect();
        calls_left -= callees.len() / 2;
        let targets: Vec<u64> = info.targets.iter().flat_map(|(&target, &count)| [u64::from(target), count]).collect();
        let mut row = value!({ "n": info.name, "t": info.ty, "b": info.bytes });
        let entries = [
            ("x", value!(u8::from(info.exported)), info.exported),
            ("c", value!(callees), !callees.is_empty()),
            ("i", value!(info.indirect), info.indirect > 0),
            ("k", value!(info.counted), info.counted > 0),
            ("g", value!(targets), !targets.is_empty()),
        ];
        for (key, entry, _) in entries.into_iter().filter(|(.., is_there)| *is_there) {
            row[key] = entry;
        }
        if let Some(sampled) = samples.and_then(|samples| samples.funcs.get(&func)) {
            row["s"] = sampled_row(sampled);
        }
        rows.push(row);
    }
    let tiers: Vec<&str> = FrameTier::ALL.iter().map(|tier| tier.name()).collect();
    let sampled = samples.map(|samples| {
        let events: Vec<Value> =
            samples.events.iter().take(MAX_EVENTS).map(|(time, func, what)| value!([time, func, what])).collect();
        value!({ "total": samples.total, "duration": samples.duration, "parts": samples.parts, "events": events })
    });
    value!({
        "file": file,
        "imported": module.imported_funcs,
        "funcs": rows,
        "order": order,
        "tiers": tiers,
        "samples": sampled,
        "callsLeftOut": calls_left == 0,
    })
}

fn sampled_row(func: &FuncSamples) -> Value {
    let by_pc: Vec<u64> = func.by_pc.iter().flat_map(|(&pc, &weight)| [u64::from(pc), weight]).collect();
    let callees: Vec<u64> = func.callees.iter().flat_map(|(&callee, &weight)| [u64::from(callee), weight]).collect();
    let sources: BTreeMap<String, String> = func.sources.iter().map(|(pc, source)| (pc.to_string(), short(source))).collect();
    value!({ "o": func.own, "t": func.total, "r": func.by_tier, "p": by_pc, "c": callees, "l": sources })
}
