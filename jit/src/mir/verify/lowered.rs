//! Checks of code with virtual registers.

use crate::graph::dominators::Dominators;
use crate::graph::order::Order;
use crate::mir::code::MachineCode;
use crate::mir::isa::Inst;
use crate::regalloc::{Operand, Position, Reg, RegSet, Role, SlotWidth};

/// Where a register is defined, under which name: the block, and the index of the instruction or `None` for a parameter.
type Definition = (Reg, u32, Option<u32>);

/// Checks lowered code: see [`super`].
pub(super) fn check<I: Inst>(code: &MachineCode<I>) -> Result<(), String> {
    let mut definitions: Vec<Option<Definition>> = vec![None; code.num_regs as usize];
    each_operand(code, |operand, block, inst| match operand.role {
        Role::Use => Ok(()),
        Role::Def => define(&mut definitions, (operand.reg, block, inst)),
    })?;
    let dominators = dominators(code);
    each_operand(code, |operand, block, inst| match operand.role {
        Role::Def => Ok(()),
        Role::Use => {
            let definition = definitions.get(operand.reg.index()).copied().flatten();
            let (reg, at, defined) = definition.ok_or_else(|| format!("{:?} is never defined", operand.reg))?;
            if reg.class() != operand.reg.class() {
                return Err(format!("{:?} is used, and {reg:?} defined", operand.reg));
            }
            let before = if at == block { defined < inst || inst.is_none() } else { dominators.dominates(at, block) };
            if before { Ok(()) } else { Err(format!("{:?} is used in b{block} where it may not be defined", operand.reg)) }
        }
    })?;
    check_arguments(code)?;
    check_physical(code)
}

fn define(definitions: &mut [Option<Definition>], at: Definition) -> Result<(), String> {
    let reg = at.0;
    let slot = definitions.get_mut(reg.index()).ok_or_else(|| format!("{reg:?} has too high a number"))?;
    match slot.replace(at) {
        None => Ok(()),
        Some(_) => Err(format!("{reg:?} is defined twice")),
    }
}

/// Calls `f` with each virtual register. Parameters of a block are definitions without an instruction, and its
/// arguments are uses after its last instruction.
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
        let kinds = |regs: &[Reg]| regs.iter().map(|reg| (reg.class(), reg.is_traced(), SlotWidth::of(*reg))).collect::<Vec<_>>();
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

/// Making loops contiguous may have changed the order of blocks, so reverse postorder is computed again.
fn dominators<I: Inst>(code: &MachineCode<I>) -> Dominators<u32> {
    let order = Order::of(code.blocks.len(), |block: u32| code.blocks[block as usize].succs.iter().copied());
    Dominators::of(&order, |block| code.blocks[block as usize].preds.iter().copied())
}
