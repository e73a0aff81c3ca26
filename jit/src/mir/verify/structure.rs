//! Checks of blocks, edges, loops, lists and layout.

use crate::graph::loops::Nest;
use crate::mir::code::{Layout, MachineCode, Packed};
use crate::mir::isa::{Control, Inst};
use crate::mir::list::Target;
use crate::regalloc::RegSet;

/// Checks the structure: see [`super`].
pub(super) fn check<I: Inst>(code: &MachineCode<I>) -> Result<(), String> {
    check_blocks(code)?;
    check_edges(code)?;
    check_loops(code)?;
    check_lists(code)?;
    let pool = code.pool.bytes().len();
    code.insts.iter().try_for_each(|inst| inst.check(pool).map_err(|what| format!("{inst:?}: {what}")))
}

fn check_blocks<I: Inst>(code: &MachineCode<I>) -> Result<(), String> {
    let mut end = 0;
    for (number, block) in code.blocks.iter().enumerate() {
        if block.insts.start != end || block.insts.is_empty() || block.insts.end as usize > code.insts.len() {
            return Err(format!("b{number} holds instructions {:?} after {end}", block.insts));
        }
        end = block.insts.end;
        let (last, others) = code.block_insts(number).split_last().expect("it is not empty");
        if others.iter().any(|inst| inst.control() != Control::Next) {
            return Err(format!("control leaves b{number} before its end"));
        }
        let succs = block.succs.len();
        let fits = match last.control() {
            Control::Next => false,
            Control::Jump => succs == 1,
            Control::Branch => succs == 2,
            Control::Table(_) => succs > 0,
            Control::Leave => succs == 0,
            Control::Try => succs > 1 && handlers(code, last) == succs - 1,
            Control::Throw => handlers(code, last) == succs,
        };
        if !fits {
            return Err(format!("b{number} ends with {last:?} and has {succs} successors"));
        }
    }
    match end as usize == code.insts.len() && !code.blocks.is_empty() {
        true => Ok(()),
        false => Err("instructions outside of blocks".into()),
    }
}

/// The number of exceptional edges after an instruction.
fn handlers<I: Inst>(code: &MachineCode<I>, inst: &I) -> usize {
    inst.list().and_then(|list| code.lists.get(list as usize)).map_or(0, |list| list.handlers.len())
}

fn check_edges<I: Inst>(code: &MachineCode<I>) -> Result<(), String> {
    let count = code.blocks.len() as u32;
    let mut preds = vec![Vec::new(); code.blocks.len()];
    for (number, block) in (0u32..).zip(&code.blocks) {
        for &succ in &block.succs {
            if succ == 0 || succ >= count {
                return Err(format!("b{number} goes on to b{succ}"));
            }
            preds[succ as usize].push(number);
        }
        let mut sorted = block.succs.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() != block.succs.len() {
            return Err(format!("b{number} has a successor twice"));
        }
    }
    for (number, (block, preds)) in code.blocks.iter().zip(&preds).enumerate() {
        if block.preds[..] != preds[..] {
            return Err(format!("b{number} has predecessors {preds:?} and lists {:?}", block.preds));
        }
        let throws = code.block_insts(number).last().is_some_and(|last| last.control() == Control::Throw);
        let branches = block.succs.len() > 1 || throws;
        if let Some(succ) = block.succs.iter().find(|&&succ| branches && preds_of(code, succ) > 1) {
            return Err(format!("the edge from b{number} to b{succ} is critical"));
        }
    }
    Ok(())
}

fn preds_of<I: Inst>(code: &MachineCode<I>, block: u32) -> usize {
    code.blocks[block as usize].preds.len()
}

fn check_loops<I: Inst>(code: &MachineCode<I>) -> Result<(), String> {
    let mut open: Vec<&std::ops::Range<u32>> = Vec::new();
    let mut last_start = None;
    for range in &code.loops {
        while open.pop_if(|around| around.end <= range.start).is_some() {}
        let nested = open.last().is_none_or(|around| range.end <= around.end);
        if !nested || range.is_empty() || range.end as usize > code.blocks.len() || last_start >= Some(range.start) {
            return Err(format!("loop {range:?} is not nested"));
        }
        last_start = Some(range.start);
        open.push(range);
    }
    if (code.first_rare() as usize) < code.blocks.len() {
        return Ok(());
    }
    let Nest { innermost, .. } = Nest::of(&code.loops, code.blocks.len());
    for (number, block) in (0u32..).zip(&code.blocks) {
        for &succ in block.succs.iter().filter(|&&succ| succ <= number) {
            let (from, to) = (innermost[number as usize], innermost[succ as usize]);
            if from == to && from.is_none_or(|found| code.loops[found as usize].start != succ) {
                return Err(format!("the edge from b{number} back to b{succ} is of no loop"));
            }
        }
    }
    Ok(())
}

fn check_lists<I: Inst>(code: &MachineCode<I>) -> Result<(), String> {
    let (mut lists, mut tables) = (0, 0);
    let (mut calls, mut restores) = (false, false);
    for block in &code.blocks {
        for inst in &code.insts[block.insts.start as usize..block.insts.end as usize] {
            if let Some(index) = inst.list() {
                let list = code.lists.get(index as usize).filter(|_| index == lists);
                let list = list.ok_or_else(|| format!("{inst:?}: list {lists} is expected"))?;
                lists += 1;
                calls |= inst.is_call();
                restores |= list.restore || !list.handlers.is_empty();
                if !list.handlers.is_empty() && !matches!(inst.control(), Control::Try | Control::Throw) {
                    return Err(format!("{inst:?}: handlers of no call that ends its block"));
                }
                if inst.is_call() && matches!(list.target, Target::None | Target::Address) {
                    return Err(format!("{inst:?}: a call without a target"));
                }
                if inst.is_tail_call() && matches!(list.target, Target::None | Target::Helper(_)) {
                    return Err(format!("{inst:?}: a tail call of no function"));
                }
                let destroyed = if inst.is_call() { I::CALLER_SAVED } else { RegSet::EMPTY };
                if list.clobbers != list.defs.iter().fold(destroyed, |set, &(_, place)| set.without(place)) {
                    return Err(format!("{inst:?} destroys {:?}", list.clobbers));
                }
            }
            if let Control::Table(index) = inst.control() {
                let table = code.tables.get(index as usize).filter(|_| index == tables);
                let table = table.ok_or_else(|| format!("{inst:?}: table {tables} is expected"))?;
                tables += 1;
                if table.is_empty() || table.iter().any(|&entry| entry as usize >= block.succs.len()) {
                    return Err(format!("{inst:?}: table {table:?} for {} successors", block.succs.len()));
                }
            }
        }
    }
    if (lists as usize, tables as usize) != (code.lists.len(), code.tables.len()) {
        return Err("a register list or a jump table belongs to no instruction".into());
    }
    match (calls, restores) == (code.calls, code.restores) {
        true => Ok(()),
        false => Err(format!("calls {} and restores {}, as instructions say {calls} and {restores}", code.calls, code.restores)),
    }
}

/// Checks layout: see [`super`].
pub(super) fn check_layout<I: Inst>(code: &MachineCode<I>, layout: &Layout) -> Result<(), String> {
    let count = code.blocks.len();
    let lengths = [layout.targets.len(), layout.packed.len(), layout.replicas.len()];
    if lengths != [count; 3] || layout.blocks.first() != Some(&0) {
        return Err("the layout is of other blocks, or does not begin with the entry".into());
    }
    let mut emitted = vec![false; count];
    for &block in &layout.blocks {
        if std::mem::replace(&mut emitted[block as usize], true) {
            return Err(format!("b{block} is emitted twice"));
        }
    }
    for (position, &block) in layout.blocks.iter().enumerate() {
        let Some(Packed::Dispatch(blocks) | Packed::Inner(blocks)) = layout.packed[block as usize] else { continue };
        if blocks == 0 || blocks as usize > layout.blocks.len() - position {
            return Err(format!("{blocks} blocks from b{block} on are packed, {} follow", layout.blocks.len() - position));
        }
    }
    for (block, replica) in (0..count).filter_map(|block| Some((block, layout.replicas[block]? as usize))) {
        let jumps = code.block_insts(block).last().is_some_and(|last| last.control() == Control::Jump);
        let target = jumps.then(|| layout.targets[code.blocks[block].succs[0] as usize]);
        if !emitted[block] || layout.replica(block).is_empty() || target != layout.blocks.get(replica).copied() {
            return Err(format!("b{block} does not jump to the blocks of which it has a copy"));
        }
    }
    for (number, (&target, &emitted)) in layout.targets.iter().zip(&emitted).enumerate() {
        if emitted != (target as usize == number) {
            return Err(format!("b{number} is emitted or skipped, not both: jumps go to b{target}"));
        }
        if emitted {
            continue;
        }
        let [jump] = code.block_insts(number) else { return Err(format!("b{number} is skipped and not empty")) };
        let copies = code.allocated().moves_before(code.blocks[number].insts.start);
        if jump.control() != Control::Jump || copies || layout.packed[number].is_some() {
            return Err(format!("b{number} is skipped and not empty, or is packed"));
        }
        let next = code.blocks[number].succs[0] as usize;
        if layout.targets[next] != target {
            return Err(format!("b{number} goes on to b{next}, whose target is not b{target}"));
        }
    }
    Ok(())
}
