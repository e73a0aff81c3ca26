//! A function's bytecode and its side table as text, for people: offsets in the module, mnemonics of the text format,
//! nesting by indentation.

use crate::instrs::{BlockType, Imm, MemArg, Nesting};
use crate::names::Plain;
use crate::sidetable::{LocalSet, NO_REGION};
use crate::{Instr, Instrs, Module, Opcode};
use std::fmt::{self, Display, Formatter, Write};

/// The most levels of nesting that are indented: with more, the text of deep nesting would be quadratic in the code.
const MAX_INDENT: usize = 64;

/// The instructions of function `func`, one a line; empty for an imported one.
pub fn code(module: &Module, func: u32) -> impl Display + '_ {
    fmt::from_fn(move |f| write_code(f, module, func))
}

/// The side table of function `func`: branch entries with the instructions that own them, loops, and fuel segments.
pub fn side_table(module: &Module, func: u32) -> impl Display + '_ {
    fmt::from_fn(move |f| write_side_table(f, module, func))
}

fn write_code(f: &mut Formatter<'_>, module: &Module, func: u32) -> fmt::Result {
    write!(f, "func {func} {}", module.func_type(func))?;
    if let Some(name) = module.func_name(func) {
        write!(f, " ;; {}", Plain(name))?;
    }
    f.write_char('\n')?;
    let Some(body) = module.body(func) else { return Ok(()) };
    let declared = &body.locals[module.func_type(func).params.len()..];
    if !declared.is_empty() {
        let types: Vec<String> = declared.iter().map(ToString::to_string).collect();
        writeln!(f, "locals {}", types.join(" "))?;
    }
    let mut depth = 1usize;
    for instr in Instrs::new(module, body.entry, body.end) {
        let (indent, next) = match instr.op.nesting() {
            Nesting::Same => (depth, depth),
            Nesting::Open => (depth, depth + 1),
            Nesting::Else => (depth - 1, depth),
            Nesting::End => (depth - 1, depth - 1),
        };
        depth = next;
        writeln!(f, "{:#08x}  {:2$}{instr}", instr.pc, "", 2 * indent.min(MAX_INDENT))?;
    }
    Ok(())
}

fn write_side_table(f: &mut Formatter<'_>, module: &Module, func: u32) -> fmt::Result {
    let Some(body) = module.body(func) else { return Ok(()) };
    writeln!(f, "branches")?;
    let mut stp = 0;
    for instr in Instrs::new(module, body.entry, body.end) {
        for _ in 0..instr.branch_entries() {
            let entry = &body.branches[stp];
            write!(f, "  {stp:3}: {:#08x} {:8}", instr.pc, instr.op.mnemonic())?;
            if instr.op == Opcode::Loop {
                writeln!(f, " is loop {}, work {}", entry.pc, entry.drop)?;
            } else if instr.op == Opcode::Rethrow {
                writeln!(f, " throws local {}", entry.pc)?;
            } else {
                let (pc, target, keep, drop) = (entry.pc, entry.stp, entry.keep, entry.drop);
                writeln!(f, " → {pc:#08x} stp {target} keep {keep} drop {drop}")?;
            }
            stp += 1;
        }
    }
    writeln!(f, "loops")?;
    for (i, info) in body.loops.iter().enumerate() {
        write!(f, "  {i:3}: {:#08x} stp {} height {}", info.pc, info.stp, info.height)?;
        if let Some(parent) = info.parent {
            write!(f, " in loop {parent}")?;
        }
        match &info.assigned {
            LocalSet::All => writeln!(f, " assigns any local")?,
            LocalSet::Only(locals) => writeln!(f, " assigns locals {locals:?}")?,
        }
    }
    if !body.regions.is_empty() {
        writeln!(f, "regions")?;
    }
    for (i, region) in body.regions.iter().enumerate() {
        write!(f, "  {i:3}: {:#08x}..{:#08x} height {}", region.start, region.end, region.height)?;
        if region.next != NO_REGION {
            write!(f, " then region {}", region.next)?;
        }
        f.write_char('\n')?;
        for handler in &body.handlers[region.first as usize..][..region.count as usize] {
            match handler.tag {
                Some(tag) => write!(f, "       catches tag {tag}")?,
                None => write!(f, "       catches all")?,
            }
            write!(f, "{} by entry {}", if handler.reference { " with reference" } else { "" }, handler.entry)?;
            match handler.saved {
                Some(local) => writeln!(f, ", saved in local {local}")?,
                None => f.write_char('\n')?,
            }
        }
    }
    writeln!(f, "segments")?;
    for segment in &body.segments {
        writeln!(f, "  {:#08x} costs {}", segment.pc, segment.cost)?;
    }
    Ok(())
}

/// Mnemonic and immediates, as the text format has them; indices are numbers.
impl Display for Instr<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = if self.op == Opcode::SelectT { "select" } else { self.op.mnemonic() };
        f.write_str(name)?;
        match self.imm {
            Imm::None | Imm::Block(BlockType::Empty) => Ok(()),
            Imm::Block(BlockType::Value(ty)) | Imm::Type(ty) => write!(f, " (result {ty})"),
            Imm::Block(BlockType::Func(ty)) => write!(f, " (type {ty})"),
            Imm::TryTable(ty, clauses) => {
                match ty {
                    BlockType::Empty => {}
                    BlockType::Value(ty) => write!(f, " (result {ty})")?,
                    BlockType::Func(ty) => write!(f, " (type {ty})")?,
                }
                clauses.iter().try_for_each(|clause| {
                    let reference = if clause.reference { "_ref" } else { "" };
                    match clause.tag {
                        Some(tag) => write!(f, " (catch{reference} {tag} {})", clause.label),
                        None => write!(f, " (catch_all{reference} {})", clause.label),
                    }
                })
            }
            Imm::Label(index) | Imm::Index(index) => write!(f, " {index}"),
            Imm::Labels(labels) => labels.iter().try_for_each(|label| write!(f, " {label}")),
            // The text format has the memory or table before the segment, the binary format after it.
            Imm::Index2(a, b) if matches!(self.op, Opcode::MemoryInit | Opcode::TableInit) => write!(f, " {b} {a}"),
            Imm::Index2(a, b) => write!(f, " {a} {b}"),
            Imm::CallIndirect { ty, table: 0 } => write!(f, " (type {ty})"),
            Imm::CallIndirect { ty, table } => write!(f, " {table} (type {ty})"),
            Imm::Mem(arg) => write_mem_arg(f, arg),
            Imm::MemLane(arg, lane) => {
                write_mem_arg(f, arg)?;
                write!(f, " {lane}")
            }
            Imm::Lane(lane) => write!(f, " {lane}"),
            Imm::Shuffle(lanes) => lanes.iter().try_for_each(|lane| write!(f, " {lane}")),
            Imm::V128(value) => write!(f, " i64x2 {:#018x} {:#018x}", value as u64, (value >> 64) as u64),
            Imm::Heap(heap) => write!(f, " {heap}"),
            Imm::I32(value) => write!(f, " {value}"),
            Imm::I64(value) => write!(f, " {value}"),
            Imm::F32(bits) => {
                let float = f32::from_bits(bits);
                write_float(f, float.into(), format_args!("{float:?}"), u64::from(bits) & 0x007F_FFFF)
            }
            Imm::F64(bits) => {
                let float = f64::from_bits(bits);
                write_float(f, float, format_args!("{float:?}"), bits & 0x000F_FFFF_FFFF_FFFF)
            }
        }
    }
}

fn write_mem_arg(f: &mut Formatter<'_>, arg: MemArg) -> fmt::Result {
    if arg.memory != 0 {
        write!(f, " {}", arg.memory)?;
    }
    if arg.offset != 0 {
        write!(f, " offset={}", arg.offset)?;
    }
    Ok(())
}

/// A float, of which `text` is the decimal form, or a NaN with its payload.
fn write_float(f: &mut Formatter<'_>, float: f64, text: fmt::Arguments<'_>, payload: u64) -> fmt::Result {
    match (float.is_nan(), float.is_sign_negative()) {
        (false, _) => write!(f, " {text}"),
        (true, false) => write!(f, " nan:{payload:#x}"),
        (true, true) => write!(f, " -nan:{payload:#x}"),
    }
}
