//! Machine code as text. [`parse`](super::parse) is its inverse.
//!
//! ```text
//! machine allocated pc 0x22 calls    stage, offset of the function, facts about the whole function; before allocation also `regs 9`,
//! inlined f7 0x12c as 0x3e8 to 0x3fb in 0x28    an inlined function, as in the text of SSA
//! table 0 1 0 2                      a jump table: indices of successors, the default last
//! pool 000000000000f03f              constants, in hexadecimal
//! saves rbx r12                      callee-saved registers that are used
//! slots 8 16                         bytes of the spill slots
//! b0:                                the entry; a block's predecessors follow from the successors
//!     v0:rdi = args                  register lists: virtual register, then its place
//!     v1 = mov.d [v0 + 8]!0x47 @0x45 0x47: the pc for a fault of this access, 0x45: the pc of the instruction
//!     rcx = copy slot0               inserted by the allocator
//!     j_ne b1 b2                     successors
//! b1(v3): loop to b4 freq 8          parameters; a loop from here to b4; executions per call, unless 1
//!                                    `weight 2.5`: the same for the allocator, unless equal
//!     jmp b2(v1)                     arguments for the successor's parameters
//! b2: cold p64                       rarely executed; probability of the first successor, in 256ths
//! b3: inner 2                        after layout, blocks are in the order of emission; this one and the next are a loop
//! b4: to b3                          a block that is not emitted, and the one to which jumps to it go
//! ```
//!
//! Virtual registers are `v0` (general-purpose), `t0` (the same, traced), `f0` (a float) and `x0` (a vector); physical ones have their
//! names. A call with `root2` has a root in slot 2.

use super::code::{CodeBlock, MachineCode, Packed, Stage};
use super::isa::{Control, Inst};
use super::list::{RegList, Target};
use super::text::Show;
use crate::ir::print::at;
use crate::regalloc::{Place, Reg, RegSet, SlotWidth};
use std::fmt::{self, Display, Write as _};

impl<I: Inst> MachineCode<I> {
    /// The number of virtual registers, if the highest that the code names is the last.
    pub(super) fn num_regs_named(&mut self) -> u32 {
        let mut most = 0;
        let mut name = |reg: Reg| most = most.max(if reg.is_virtual() { reg.index() as u32 + 1 } else { 0 });
        for inst in &mut self.insts {
            inst.operands(&mut self.lists, |operand| name(operand.reg));
        }
        self.blocks.iter().flat_map(|block| block.params.iter().chain(&block.args)).for_each(|&reg| name(reg));
        most
    }
}

impl<I: Inst> Display for MachineCode<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_head(f, self)?;
        let numbers = 0..self.blocks.len() as u32;
        let mut next_move = 0;
        match &self.layout {
            None => numbers.into_iter().try_for_each(|block| write_block(f, self, block, &mut next_move)),
            Some(layout) => {
                let skipped = numbers.filter(|&block| layout.targets[block as usize] != block);
                layout.blocks.iter().copied().chain(skipped).try_for_each(|block| {
                    let first = self.blocks[block as usize].insts.start;
                    next_move = self.allocated().moves.partition_point(|m| m.before < first);
                    write_block(f, self, block, &mut next_move)
                })
            }
        }
    }
}

fn write_head<I: Inst>(f: &mut fmt::Formatter<'_>, code: &MachineCode<I>) -> fmt::Result {
    let stage = Stage::ALL[code.stage() as usize].1;
    write!(f, "machine {stage} pc {:#x}", code.pc)?;
    if code.allocation.is_none() {
        write!(f, " regs {}", code.num_regs)?;
    }
    if let Some(base) = code.pinned_base {
        write!(f, " pinned {}", I::register_name(base))?;
    }
    for (fact, name) in [(code.calls, "calls"), (code.restores, "restores"), (code.raises, "raises")] {
        if fact {
            write!(f, " {name}")?;
        }
    }
    writeln!(f)?;
    code.copies.iter().try_for_each(|copy| writeln!(f, "{copy}"))?;
    for table in &code.tables {
        writeln!(f, "table {}", spaced(table))?;
    }
    if !code.pool.bytes().is_empty() {
        f.write_str("pool ")?;
        code.pool.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        writeln!(f)?;
    }
    let Some(allocation) = &code.allocation else { return Ok(()) };
    if allocation.saved != RegSet::EMPTY {
        writeln!(f, "saves {}", spaced(allocation.saved.iter().map(I::register_name)))?;
    }
    if !allocation.slots.is_empty() {
        let bytes = allocation.slots.iter().map(|slot| match slot {
            SlotWidth::Word => 8,
            SlotWidth::Wide => 16,
            SlotWidth::Long => 32,
        });
        writeln!(f, "slots {}", spaced(bytes))?;
    }
    Ok(())
}

fn write_block<I: Inst>(f: &mut fmt::Formatter<'_>, code: &MachineCode<I>, number: u32, next_move: &mut usize) -> fmt::Result {
    let block = &code.blocks[number as usize];
    write!(f, "b{number}{}:", parenthesised::<I>(&block.params))?;
    if let Ok(found) = code.loops.binary_search_by_key(&number, |range| range.start) {
        write!(f, " loop to b{}", code.loops[found].end - 1)?;
    }
    if block.cold {
        f.write_str(" cold")?;
    }
    if block.frequency != 1.0 {
        write!(f, " freq {}", block.frequency)?;
    }
    if block.weight != block.frequency {
        write!(f, " weight {}", block.weight)?;
    }
    if let Some(probability) = block.probability {
        write!(f, " {probability}")?;
    }
    if let Some(layout) = &code.layout {
        match layout.targets[number as usize] {
            target if target != number => write!(f, " to b{target}")?,
            _ => match layout.packed[number as usize] {
                Some(Packed::Dispatch(blocks)) => write!(f, " dispatch {blocks}")?,
                Some(Packed::Inner(blocks)) => write!(f, " inner {blocks}")?,
                None => {}
            },
        }
        if let Some(start) = layout.replicas[number as usize] {
            write!(f, " replicates b{}", layout.blocks[start as usize])?;
        }
    }
    writeln!(f)?;
    let moves = code.allocation.as_ref().map_or(&[][..], |allocation| &allocation.moves);
    let mut line = String::new();
    for i in block.insts.clone() {
        let inst = &code.insts[i as usize];
        while let Some(m) = moves.get(*next_move).filter(|m| m.before == i) {
            writeln!(f, "    {} = copy {}", Show(m.to, I::register_name), Show(m.from, I::register_name))?;
            *next_move += 1;
        }
        line.clear();
        write_inst(&mut line, code, block, inst)?;
        writeln!(f, "{}", at(&line, &[inst.pc()]))?;
    }
    Ok(())
}

fn write_inst<I: Inst>(line: &mut String, code: &MachineCode<I>, block: &CodeBlock, inst: &I) -> fmt::Result {
    line.push_str("    ");
    if let Some(list) = inst.list() {
        write_list(line, inst, &code.lists[list as usize])?;
    } else {
        inst.write(line)?;
    }
    if !matches!(inst.control(), Control::Next | Control::Leave) {
        block.succs.iter().try_for_each(|succ| write!(line, " b{succ}"))?;
        line.push_str(&parenthesised::<I>(&block.args));
    }
    Ok(())
}

fn write_list<I: Inst>(line: &mut String, inst: &I, list: &RegList) -> fmt::Result {
    let pairs = |pairs: &[(Reg, Reg)]| {
        spaced(pairs.iter().map(|&(reg, place)| match reg == place {
            true => I::register_name(place).to_string(),
            false => format!("{}:{}", Show(Place::Reg(reg), I::register_name), I::register_name(place)),
        }))
    };
    if !list.defs.is_empty() {
        write!(line, "{} = ", pairs(&list.defs))?;
    }
    line.push_str(&inst.name());
    match list.target {
        Target::None => {}
        Target::Itself => line.push_str(" itself"),
        Target::Cell(func) => write!(line, " func{func}")?,
        Target::Reference => line.push_str(" reference"),
        Target::Own => line.push_str(" own"),
        Target::Address => line.push_str(" address"),
        Target::Helper(helper) => write!(line, " {helper:?}")?,
    }
    if !list.uses.is_empty() {
        write!(line, " {}", pairs(&list.uses))?;
    }
    if list.restore {
        line.push_str(" restore");
    }
    list.handlers.iter().try_for_each(|handler| write!(line, " handler{handler}"))?;
    list.roots.iter().try_for_each(|root| write!(line, " root{root}"))?;
    Ok(())
}

/// Items separated by spaces.
fn spaced<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(" ")
}

fn parenthesised<I: Inst>(regs: &[Reg]) -> String {
    match regs {
        [] => String::new(),
        regs => format!("({})", spaced(regs.iter().map(|&reg| Show(Place::Reg(reg), I::register_name)))),
    }
}
