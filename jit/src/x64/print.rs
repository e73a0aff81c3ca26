//! Machine instructions as text: `dst = mnemonic.width src, rm, imm`. Virtual registers are `v0` (general-purpose),
//! `f0` (a float) and `x0` (a vector), physical ones have their names.

use super::abi;
use super::code::{Code, RegList, Target};
use super::insts::{Asm, Inst, Mem, Rm, Shape, Width};
use crate::ir::print::at;
use crate::regalloc::{Move, Place, Reg};
use std::fmt::{self, Write as _};

/// All of `code`, with the allocator's copies, each of which stands with the instruction behind it.
pub fn code(code: &Code, moves: &[Move]) -> String {
    let mut text = String::new();
    let mut moves = moves.iter().peekable();
    for (number, block) in code.blocks.iter().enumerate() {
        let _ = write!(text, "b{number}");
        if !block.params.is_empty() {
            let _ = write!(text, "({})", list(&block.params));
        }
        text.push_str(if block.cold { ": cold\n" } else { ":\n" });
        for i in block.insts.clone() {
            let inst = &code.insts[i as usize];
            while let Some(m) = moves.next_if(|m| m.before == i) {
                let line = format!("    {} = copy {}", Show(m.to), Show(m.from));
                let _ = writeln!(text, "{}", at(&line, &[inst.pc]));
            }
            let mut line = format!("    {}", Shown(inst, code));
            if matches!(inst.op, Asm::Jmp | Asm::Jcc | Asm::JmpTable) {
                let succs: Vec<String> = block.succs.iter().map(|succ| format!("b{succ}")).collect();
                let _ = write!(line, " {}", succs.join(" "));
                if !block.args.is_empty() {
                    let _ = write!(line, "({})", list(&block.args));
                }
            }
            let _ = writeln!(text, "{}", at(&line, &[inst.pc]));
        }
    }
    text
}

fn list(regs: &[Reg]) -> String {
    regs.iter().map(|&reg| Show(Place::Reg(reg)).to_string()).collect::<Vec<_>>().join(" ")
}

struct Show(Place);

impl fmt::Display for Show {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Place::Reg(reg) if reg.is_physical() => f.write_str(abi::name(reg)),
            Place::Reg(reg) => write!(f, "{reg:?}"),
            Place::Slot(slot) => write!(f, "slot{slot}"),
        }
    }
}

struct Shown<'c>(&'c Inst, &'c Code);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(inst, code) = *self;
        let reg = |reg| Show(Place::Reg(reg));
        let shape = inst.op.shape();
        if shape == Shape::List {
            return write_list(f, inst.op, &code.lists[inst.imm as usize]);
        }
        if !inst.dst.is_none() {
            write!(f, "{} = ", reg(inst.dst))?;
        }
        f.write_str(inst.op.mnemonic())?;
        if inst.op.reads_flags() {
            write!(f, "_{}", format!("{:?}", inst.cond).to_lowercase())?;
        }
        if shape != Shape::Nullary {
            f.write_str(match inst.width {
                Width::B => ".b",
                Width::W => ".w",
                Width::D => ".d",
                Width::Q => ".q",
                Width::X => ".x",
            })?;
        }
        let mut separator = " ";
        let mut operand = |f: &mut fmt::Formatter<'_>, text: &dyn fmt::Display| {
            write!(f, "{separator}{text}")?;
            separator = ", ";
            Ok(())
        };
        let destination = matches!(shape, Shape::Store | Shape::Update);
        if destination {
            operand(f, &ShowRm(&inst.rm))?;
        }
        if !inst.src.is_none() {
            operand(f, &reg(inst.src))?;
        }
        if !destination && inst.rm != Rm::None {
            operand(f, &ShowRm(&inst.rm))?;
        }
        let has_imm = match shape {
            Shape::TwoAddress => inst.rm == Rm::None,
            Shape::Store if inst.op == Asm::PextractTo => true,
            Shape::Compare | Shape::Store | Shape::Update => inst.src.is_none(),
            Shape::Const | Shape::MoveImm | Shape::OneUse | Shape::WithScratch | Shape::Table => true,
            Shape::RegisterImm | Shape::ThreeImm | Shape::Extract => true,
            Shape::Unary => matches!(inst.op, Asm::Shl | Asm::Shr | Asm::Sar),
            Shape::Nullary => matches!(inst.op, Asm::TrapIf | Asm::Ud2),
            _ => false,
        };
        if has_imm {
            operand(f, &inst.imm)?;
        }
        Ok(())
    }
}

fn write_list(f: &mut fmt::Formatter<'_>, op: Asm, list: &RegList) -> fmt::Result {
    let pairs = |pairs: &[(Reg, Reg)]| {
        let one = |&(reg, place): &(Reg, Reg)| format!("{}:{}", Show(Place::Reg(reg)), abi::name(place));
        pairs.iter().map(one).collect::<Vec<_>>().join(" ")
    };
    if !list.defs.is_empty() {
        write!(f, "{} = ", pairs(&list.defs))?;
    }
    f.write_str(op.mnemonic())?;
    match list.target {
        Target::None => {}
        Target::Itself => f.write_str(" itself")?,
        Target::Cell(func) => write!(f, " f{func}")?,
        Target::Reference => f.write_str(" reference")?,
        Target::Helper(helper) => write!(f, " {helper:?}")?,
    }
    match list.uses.is_empty() {
        true => Ok(()),
        false => write!(f, " {}", pairs(&list.uses)),
    }
}

struct ShowRm<'r>(&'r Rm);

impl fmt::Display for ShowRm<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mem = match self.0 {
            Rm::None => return Ok(()),
            Rm::Reg(reg) => return write!(f, "{}", Show(Place::Reg(*reg))),
            Rm::Mem(mem) => mem,
        };
        let Mem { base, index, shift, disp, pooled, .. } = *mem;
        if pooled {
            return write!(f, "[pool + {disp}]");
        }
        let mut terms = Vec::new();
        if !base.is_none() {
            terms.push(Show(Place::Reg(base)).to_string());
        }
        if !index.is_none() {
            terms.push(format!("{} * {}", Show(Place::Reg(index)), 1 << shift));
        }
        if disp != 0 || terms.is_empty() {
            terms.push(disp.to_string());
        }
        write!(f, "[{}]", terms.join(" + "))
    }
}
