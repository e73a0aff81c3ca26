//! The printer of the textual form. [`super::parse()`] is its inverse: `parse(print(f)) == f`.
//!
//! ```text
//! func 3 (i32, i64) -> i32          or: func 3 (i32) -> (i32, i64) osr @0x41
//! inlined f7 0x12c as 0x3e8 to 0x3fb in 0x28     the code of a function in the place of the call @0x28
//! b0:
//!   v0: i32 = param 0
//!   jump b1                                    @0x1a
//! b1: preds b0, b1
//!   v3: i32 = phi b0: v0, b1: v4
//!   v4: i32 = load8_u mem1 v3 +16              @0x1d
//!   branch v4, b1, b2                          @0x20
//! b2: preds b1
//!   return v4
//! ```
//!
//! Immediates come before the arguments. The printer omits memory 0, offset 0, lane 0, pc 0, instructions in no block,
//! empty blocks that are not branched to, and the numbers of void instructions, which cannot be referred to. Numbers
//! are the function's own, so that a value keeps its name from stage to stage.

use super::family::Family;
use super::func::Func;
use super::index::{Block, Value};
use super::ops::{Fields, NO_TAG, Op, Type, vector_opcode};
use std::fmt::{self, Display, Formatter, Write};
use weir_bytecode::Trap;
use weir_contract::Entry;

/// The text of `func`.
pub fn print(func: &Func<'_>) -> String {
    func.to_string()
}

/// The text of one instruction of `block`, without its pc.
pub fn inst<'f>(func: &'f Func<'_>, block: Block, value: Value) -> impl Display + 'f {
    fmt::from_fn(move |f| write_inst(f, func, block, value))
}

/// Column at which the pc of an instruction starts.
const PC_COLUMN: usize = 44;

/// A line with its pcs, in the form that every stage of the compiler uses; a pc of 0 means none.
pub(crate) fn at<'l>(line: &'l str, pcs: &'l [u32]) -> impl Display + 'l {
    fmt::from_fn(move |f| {
        let mut pcs = pcs.iter().filter(|pc| **pc != 0).peekable();
        match pcs.peek() {
            None => f.write_str(line)?,
            Some(_) => write!(f, "{line:<PC_COLUMN$}")?,
        }
        pcs.try_for_each(|pc| write!(f, " @{pc:#x}"))
    })
}

impl Display for Func<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "func {} ({})", self.index, list(&self.params))?;
        match *self.results {
            [] => {}
            [result] => write!(f, " -> {result}")?,
            _ => write!(f, " -> ({})", list(&self.results))?,
        }
        if let Entry::Osr(pc) = self.entry {
            write!(f, " osr @{pc:#x}")?;
        }
        f.write_char('\n')?;
        self.copies.iter().try_for_each(|copy| writeln!(f, "{copy}"))?;
        let mut line = String::new();
        for block in self.blocks() {
            let data = self.block(block);
            if block != Block::ENTRY && data.insts.is_empty() && data.preds.is_empty() {
                continue;
            }
            write!(f, "{block}:")?;
            if !data.preds.is_empty() {
                write!(f, " preds {}", list(&data.preds))?;
            }
            f.write_char('\n')?;
            for &value in &data.insts {
                line.clear();
                write!(line, "  {}", inst(self, block, value))?;
                writeln!(f, "{}", at(&line, &[self.inst(value).pc]))?;
            }
        }
        Ok(())
    }
}

impl Display for Type {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Display for Op {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn write_inst(f: &mut Formatter<'_>, func: &Func<'_>, block: Block, value: Value) -> fmt::Result {
    let inst = func.inst(value);
    if inst.ty != Type::Void {
        write!(f, "{value}: {} = ", inst.ty)?;
    }
    write!(f, "{}", inst.op)?;
    write_fields(f, func, value)?;
    let args = list(&inst.args);
    if inst.op == Op::Phi {
        return write_phi(f, func, block, value);
    }
    if inst.op.calls_function() || inst.op.is_tail_call() {
        let space = if inst.op.fields() == Fields::Func { "" } else { " " };
        return write!(f, "{space}({args})");
    }
    if inst.op == Op::BrTable {
        let succs = &func.block(block).succs;
        return match func.table_counts(block) {
            None => write!(f, " {args} [{}]", list(succs)),
            Some(counts) => {
                let counted: Vec<String> = succs.iter().zip(counts).map(|(succ, count)| format!("{succ}: {count}")).collect();
                write!(f, " {args} [{}]", list(&counted))
            }
        };
    }
    if let (Family::Store(_), 1.., [address, values @ ..]) = (inst.op.family(), inst.imm, &inst.args[..]) {
        write!(f, " {address} +{}", inst.imm)?;
        return values.iter().try_for_each(|value| write!(f, ", {value}"));
    }
    if !inst.args.is_empty() {
        write!(f, " {args}")?;
    }
    if inst.op.fields() == Fields::Access && inst.imm != 0 {
        write!(f, " +{}", inst.imm)?;
    }
    if inst.op.is_terminator() {
        let comma = if inst.args.is_empty() { "" } else { "," };
        match &*func.block(block).succs {
            [] => {}
            succs => write!(f, "{comma} {}", list(succs))?,
        }
    }
    Ok(())
}

/// Writes the fields between the operation's name and its arguments.
fn write_fields(f: &mut Formatter<'_>, func: &Func<'_>, value: Value) -> fmt::Result {
    let inst = func.inst(value);
    let (aux, imm) = (inst.aux, inst.imm);
    match inst.op.fields() {
        Fields::None => Ok(()),
        Fields::Bits => {
            f.write_char(' ')?;
            write_bits(f, inst.ty, imm)
        }
        Fields::Number => write!(f, " {imm}"),
        Fields::Access | Fields::Memory if aux == 0 => Ok(()),
        Fields::Access | Fields::Memory => write!(f, " mem{aux}"),
        Fields::Memories if (aux, imm) == (0, 0) => Ok(()),
        Fields::Memories => write!(f, " mem{aux} mem{imm}"),
        Fields::MemorySegment if aux == 0 => write!(f, " data{imm}"),
        Fields::MemorySegment => write!(f, " mem{aux} data{imm}"),
        Fields::Segment => write!(f, " data{imm}"),
        Fields::Global => write!(f, " g{aux}"),
        Fields::Table => write!(f, " table{aux}"),
        Fields::Tables => write!(f, " table{aux} table{imm}"),
        Fields::TableSegment => write!(f, " table{aux} elem{imm}"),
        Fields::ElemSegment => write!(f, " elem{imm}"),
        Fields::Func => write!(f, " f{aux}"),
        Fields::Element => write!(f, " f{aux} table{imm}"),
        Fields::Indirect => write!(f, " t{aux} table{imm}"),
        Fields::Type => write!(f, " t{aux}"),
        Fields::Tag => write!(f, " tag{aux}"),
        Fields::Handler if aux == NO_TAG => write!(f, " handler{imm}"),
        Fields::Handler => write!(f, " handler{imm} tag{aux}"),
        Fields::Vector => {
            match vector_opcode(aux) {
                Some(op) => write!(f, " {}", op.mnemonic())?,
                None => write!(f, " {aux}")?,
            }
            if imm == 0 { Ok(()) } else { write!(f, " lane{imm}") }
        }
        Fields::Probability => inst.probability.map_or(Ok(()), |probability| write!(f, " {probability}")),
        Fields::Trap => match u8::try_from(aux).ok().and_then(Trap::from_code) {
            Some(trap) => write!(f, " {trap:?}"),
            None => write!(f, " {aux}"),
        },
    }
}

/// Writes the arguments of a phi, each with its predecessor, or without them if there are not as many of both.
fn write_phi(f: &mut Formatter<'_>, func: &Func<'_>, block: Block, phi: Value) -> fmt::Result {
    let (args, preds) = (func.args(phi), &func.block(block).preds);
    for (i, arg) in args.iter().enumerate() {
        f.write_str(if i == 0 { " " } else { ", " })?;
        if args.len() == preds.len() {
            write!(f, "{}: ", preds[i])?;
        }
        write!(f, "{arg}")?;
    }
    Ok(())
}

/// Writes a constant: in decimal if that gives the same bits, a NaN with its payload, otherwise in hexadecimal.
///
/// # Errors
/// The errors of `f`.
pub fn write_bits(f: &mut impl Write, ty: Type, bits: u64) -> fmt::Result {
    match ty {
        Type::I32 if bits >> 32 == 0 => write!(f, "{}", bits as i32),
        Type::I64 => write!(f, "{}", bits as i64),
        Type::F32 if bits >> 32 == 0 => {
            let float = f32::from_bits(bits as u32);
            match float.is_nan() {
                true => write_nan(f, float.is_sign_negative(), bits & 0x007F_FFFF),
                false => write!(f, "{float:?}"),
            }
        }
        Type::F64 => {
            let float = f64::from_bits(bits);
            match float.is_nan() {
                true => write_nan(f, float.is_sign_negative(), bits & 0x000F_FFFF_FFFF_FFFF),
                false => write!(f, "{float:?}"),
            }
        }
        Type::Ref | Type::Gc if bits == 0 => f.write_str("null"),
        Type::Void | Type::I32 | Type::F32 | Type::V128 | Type::V256 | Type::Ref | Type::Gc => write!(f, "{bits:#x}"),
    }
}

fn write_nan(f: &mut impl Write, negative: bool, payload: u64) -> fmt::Result {
    write!(f, "{}nan:{payload:#x}", if negative { "-" } else { "" })
}

fn list<T: Display>(items: &[T]) -> impl Display + '_ {
    fmt::from_fn(move |f| {
        items.iter().enumerate().try_for_each(|(i, item)| write!(f, "{}{item}", if i == 0 { "" } else { ", " }))
    })
}
