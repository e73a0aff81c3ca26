//! `weir dump`: sections, declarations and instructions, with offsets in the module.

use crate::args::Dump;
use crate::explore::find;
use crate::failure::{Done, Failure};
use crate::style::Headings;
use crate::{load, progress, validate};
use std::io::{self, Write};
use wasmparser::{Parser, Payload};
use weir::Error;
use weir_bytecode::module::{ConstExpr, ElemMode, ExternIndex, ExternType, Module as Bytecode};
use weir_bytecode::names::Plain;
use weir_bytecode::print;
use weir_bytecode::types::{GlobalType, Limits, MemoryType, TableType, ValType};

/// Prints the module, or one function of it.
pub(crate) fn run(args: &Dump) -> Done {
    let module = load::module(&validate::engine()?, &args.module)?;
    let what = || Some(format!("printing {}", args.module.display()));
    progress::while_printing(what, || print(args, module.bytecode()))
}

fn print(args: &Dump, module: &Bytecode) -> Done {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match &args.func {
        Some(name) => write!(out, "{}", print::code(module, find(module, name)?))?,
        None => {
            let headings = Headings::of_stdout();
            sections(&mut out, &headings, &module.bytes)?;
            declarations(&mut out, &headings, module)?;
            for func in module.imported_funcs..module.funcs.len() as u32 {
                write!(out, "\n{}", print::code(module, func))?;
            }
        }
    }
    out.flush()?;
    Ok(0)
}

/// Prints the offsets of each section's contents.
fn sections(out: &mut impl Write, headings: &Headings, bytes: &[u8]) -> Result<(), Failure> {
    headings.write(out, "sections")?;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(|error| Failure::Module(Error::new(error)))?;
        let Some((id, range)) = payload.as_section() else { continue };
        let name = match &payload {
            Payload::CustomSection(custom) => format!("custom `{}`", Plain(custom.name())),
            _ => section_name(id).to_string(),
        };
        writeln!(out, "  {:#08x}..{:#08x}  {name}, {} bytes", range.start, range.end, range.end - range.start)?;
    }
    Ok(())
}

fn section_name(id: u8) -> &'static str {
    const NAMES: [&str; 14] = [
        "custom",
        "type",
        "import",
        "function",
        "table",
        "memory",
        "global",
        "export",
        "start",
        "element",
        "code",
        "data",
        "data count",
        "tag",
    ];
    NAMES.get(id as usize).copied().unwrap_or("unknown")
}

/// Prints everything but code.
fn declarations(out: &mut impl Write, headings: &Headings, module: &Bytecode) -> io::Result<()> {
    headings.write(out, "types")?;
    for (i, ty) in module.types.iter().enumerate() {
        writeln!(out, "  {i}: {ty}")?;
    }
    headings.write(out, "imports")?;
    for import in &module.imports {
        let what = match &import.ty {
            ExternType::Func(ty) => format!("func {}", module.types[*ty as usize]),
            ExternType::Table(ty) => format!("table {}", table(ty)),
            ExternType::Memory(ty) => format!("memory {}", memory(ty)),
            ExternType::Global(ty) => format!("global {}", global(ty)),
            ExternType::Tag(ty) => format!("tag {}", module.types[*ty as usize]),
        };
        writeln!(out, "  {:?}.{:?}: {what}", import.module, import.name)?;
    }
    defined(out, headings, "tables", module.imported_tables, module.tables.iter().map(|item| table(&item.ty)))?;
    defined(out, headings, "memories", module.imported_memories, module.memories.iter().map(memory))?;
    defined(out, headings, "globals", module.imported_globals, module.globals.iter().map(global))?;
    if !module.tags.is_empty() {
        let types = module.tags.iter().map(|&ty| module.types[ty as usize].to_string());
        defined(out, headings, "tags", module.imported_tags, types)?;
    }
    headings.write(out, "exports")?;
    for export in &module.exports {
        let (kind, index) = match export.item {
            ExternIndex::Func(i) => ("func", i),
            ExternIndex::Table(i) => ("table", i),
            ExternIndex::Memory(i) => ("memory", i),
            ExternIndex::Global(i) => ("global", i),
            ExternIndex::Tag(i) => ("tag", i),
        };
        writeln!(out, "  {:?}: {kind} {index}", export.name)?;
    }
    if let Some(start) = module.start {
        headings.write(out, "start")?;
        writeln!(out, "  func {start}")?;
    }
    segments(out, headings, module)
}

/// Prints the items of an index space that are not imported.
fn defined(
    out: &mut impl Write,
    headings: &Headings,
    title: &str,
    imported: u32,
    items: impl Iterator<Item = String>,
) -> io::Result<()> {
    headings.write(out, title)?;
    for (i, item) in items.enumerate().skip(imported as usize) {
        writeln!(out, "  {i}: {item}")?;
    }
    Ok(())
}

fn limits(limits: &Limits) -> String {
    limits.max.map_or_else(|| format!("{} or more", limits.min), |max| format!("{} to {max}", limits.min))
}

fn table(ty: &TableType) -> String {
    format!("{} {}{}", limits(&ty.limits), ValType::Ref(ty.element), if ty.table64 { ", 64-bit indices" } else { "" })
}

fn memory(ty: &MemoryType) -> String {
    let pages = format!("{} pages of {} bytes", limits(&ty.limits), 1u64 << ty.page_size_log2);
    let index = if ty.memory64 { ", 64-bit indices" } else { "" };
    format!("{pages}{index}{}", if ty.shared { ", shared" } else { "" })
}

fn global(ty: &GlobalType) -> String {
    format!("{}{}", if ty.mutable { "mutable " } else { "" }, ty.value)
}

fn segments(out: &mut impl Write, headings: &Headings, module: &Bytecode) -> io::Result<()> {
    let at = |ConstExpr(ops): &ConstExpr| ops.iter().map(|op| format!("{op:?}")).collect::<Vec<_>>().join(" ");
    headings.write(out, "elements")?;
    for (i, elem) in module.elems.iter().enumerate() {
        let mode = match &elem.mode {
            ElemMode::Passive => "passive".to_string(),
            ElemMode::Declared => "declared".to_string(),
            ElemMode::Active { table, offset } => format!("table {table} at {}", at(offset)),
        };
        writeln!(out, "  {i}: {} of {}, {mode}", elem.items.len(), ValType::Ref(elem.ty))?;
    }
    headings.write(out, "data")?;
    for (i, data) in module.data.iter().enumerate() {
        let mode = match &data.active {
            None => "passive".to_string(),
            Some((memory, offset)) => format!("memory {memory} at {}", at(offset)),
        };
        writeln!(out, "  {i}: {:#08x}..{:#08x}, {} bytes, {mode}", data.range.start, data.range.end, data.range.len())?;
    }
    Ok(())
}
