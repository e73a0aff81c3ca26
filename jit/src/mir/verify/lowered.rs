//! Checks of code over virtual registers.

use crate::mir::code::MachineCode;
use crate::mir::isa::Inst;
use crate::regalloc::{Operand, Position, Reg, RegSet, Role};

/// Where a register is defined: block, and index of the instruction, `None` for a parameter.
type Definition = (u32, Option<u32>);

/// See [`super`].
pub(super) fn check<I: Inst>(code: &MachineCode<I>) -> Result<(), String> {
    let mut definitions: Vec<Option<Definition>> = vec![None; code.num_regs as usize];
    each_operand(code, |operand, block, inst| match operand.role {
        Role::Use => Ok(()),
        Role::Def => define(&mut definitions, operand.reg, (block, inst)),
    })?;
    let dominators = dominators(code);
    each_operand(code, |operand, block, inst| match operand.role {
        Role::Def => Ok(()),
        Role::Use => {
            let definition = definitions.get(operand.reg.index()).copied().flatten();
            let (at, defined) = definition.ok_or_else(|| format!("{:?} is never defined", operand.reg))?;
            let before = if at == block { defined < inst || inst.is_none() } else { dominates(&dominators, at, block) };
            if before { Ok(()) } else { Err(format!("{:?} is used in b{block} where it may not be defined", operand.reg)) }
        }
    })?;
    check_arguments(code)?;
    check_physical(code)
}

fn define(definitions: &mut [Option<Definition>], reg: Reg, at: Definition) -> Result<(), String> {
    let slot = definitions.get_mut(reg.index()).ok_or_else(|| format!("{reg:?} has too high a number"))?;
    match slot.replace(at) {
        None => Ok(()),
        Some(_) => Err(format!("{reg:?} is defined twice")),
    }
}

/// Calls `f` with each virtual register: parameters of a block as definitions without an instruction, its arguments as uses after
/// its last instruction.
fn each_operand<I: Inst>(
    code: &MachineCode<I>,
    mut f: impl FnMut(Operand, u32, Option<u32>) -> Result<(), String>,
) -> Result<(), String> {
    let mut lists = code.lists.clone();
    let plain = |reg, role| Operand { reg, constraint: crate::regalloc::Constraint::Any, role, position: Position::Early };
    for (number, block) in (0u32..).zip(&code.blocks) {
        block.params.iter().try_for_each(|&reg| f(plain(reg, Role::Def), number, None))?;
        for i in block.insts.clone() {
            let mut result = Ok(());
            code.insts[i as usize].clone().operands(&mut lists, |operand| {
                if result.is_ok() {
                    result = f(operand, number, Some(i));
                }
            });
            result?;
        }
        block.args.iter().try_for_each(|&reg| f(plain(reg, Role::Use), number, Some(u32::MAX)))?;
    }
    Ok(())
}

fn check_arguments<I: Inst>(code: &MachineCode<I>) -> Result<(), String> {
    for (number, block) in code.blocks.iter().enumerate() {
        let kinds = |regs: &[Reg]| regs.iter().map(|reg| (reg.class(), reg.is_wide())).collect::<Vec<_>>();
        let expected = match block.succs[..] {
            [succ] => kinds(&code.blocks[succ as usize].params),
            _ => Vec::new(),
        };
        if kinds(&block.args) != expected {
            return Err(format!("b{number} passes {:?} for parameters {expected:?}", block.args));
        }
        let several = block.succs.len() > 1;
        if let Some(succ) = block.succs.iter().find(|&&succ| several && !code.blocks[succ as usize].params.is_empty()) {
            return Err(format!("b{succ} has parameters, of which b{number} passes none"));
        }
    }
    match code.blocks[0].params.is_empty() {
        true => Ok(()),
        false => Err("the entry has parameters".into()),
    }
}

fn check_physical<I: Inst>(code: &MachineCode<I>) -> Result<(), String> {
    let all = I::CALLER_SAVED.union(I::CALLEE_SAVED);
    let allocatable: RegSet = code.pinned_base.map_or(all, |base| all.without(base));
    let mut lists = code.lists.clone();
    for inst in code.insts.iter().filter(|inst| inst.list().is_none()) {
        let mut wrong = None;
        inst.clone().places(&mut lists, |operand, _| {
            if operand.reg.is_physical() && allocatable.contains(operand.reg) {
                wrong = Some(operand.reg);
            }
        });
        if let Some(reg) = wrong {
            return Err(format!("{inst:?} names {}, which is allocatable", I::register_name(reg)));
        }
    }
    Ok(())
}

/// For each block, its immediate dominator; the entry is its own. Cooper, Harvey and Kennedy (2001), on blocks in reverse
/// postorder, which loops that were made contiguous may have changed: so the order is found anew.
fn dominators<I: Inst>(code: &MachineCode<I>) -> Vec<(u32, u32)> {
    let order = postorder(code);
    let mut number = vec![0u32; code.blocks.len()];
    (0..).zip(&order).for_each(|(i, &block)| number[block as usize] = i);
    let mut idom: Vec<Option<u32>> = vec![None; code.blocks.len()];
    idom[0] = Some(0);
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for &block in order.iter().rev().filter(|&&block| block != 0) {
            let mut found: Option<u32> = None;
            for &pred in code.blocks[block as usize].preds.iter().filter(|&&pred| idom[pred as usize].is_some()) {
                found = Some(found.map_or(pred, |other| common(&idom, &number, pred, other)));
            }
            changed |= idom[block as usize] != found;
            idom[block as usize] = found;
        }
    }
    intervals(&idom, &order)
}

fn common(idom: &[Option<u32>], number: &[u32], mut a: u32, mut b: u32) -> u32 {
    let up = |block: u32| idom[block as usize].expect("processed before");
    while a != b {
        while number[a as usize] < number[b as usize] {
            a = up(a);
        }
        while number[b as usize] < number[a as usize] {
            b = up(b);
        }
    }
    a
}

fn postorder<I: Inst>(code: &MachineCode<I>) -> Vec<u32> {
    let mut seen = vec![false; code.blocks.len()];
    seen[0] = true;
    let (mut order, mut stack) = (Vec::with_capacity(code.blocks.len()), vec![(0u32, 0usize)]);
    while let Some((block, next)) = stack.last_mut() {
        match code.blocks[*block as usize].succs.get(*next) {
            Some(&succ) => {
                *next += 1;
                if !std::mem::replace(&mut seen[succ as usize], true) {
                    stack.push((succ, 0));
                }
            }
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
    order
}

/// For each block, when a walk of the dominator tree enters and leaves it.
fn intervals(idom: &[Option<u32>], postorder: &[u32]) -> Vec<(u32, u32)> {
    let mut children = vec![Vec::new(); idom.len()];
    for &block in postorder.iter().rev().filter(|&&block| block != 0) {
        children[idom[block as usize].unwrap_or(0) as usize].push(block);
    }
    let mut found = vec![(u32::MAX, 0); idom.len()];
    let (mut clock, mut stack) = (0, vec![(0u32, 0usize)]);
    while let Some((block, next)) = stack.last_mut() {
        if *next == 0 {
            found[*block as usize].0 = clock;
            clock += 1;
        }
        match children[*block as usize].get(*next) {
            Some(&child) => {
                *next += 1;
                stack.push((child, 0));
            }
            None => {
                found[*block as usize].1 = clock;
                stack.pop();
            }
        }
    }
    found
}

fn dominates(intervals: &[(u32, u32)], a: u32, b: u32) -> bool {
    let (a, b) = (intervals[a as usize], intervals[b as usize]);
    a.0 <= b.0 && b.0 < a.1
}
