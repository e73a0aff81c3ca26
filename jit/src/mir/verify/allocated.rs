//! Checks of code with physical registers and spill slots.

use crate::mir::code::{Allocation, MachineCode};
use crate::mir::isa::Inst;
use crate::regalloc::{Class, Constraint, Move, Operand, Place, Position, Reg, RegSet, Role, SlotWidth};

/// Checks allocated code: see [`super`].
pub(super) fn check<I: Inst>(code: &MachineCode<I>, allocation: &Allocation) -> Result<(), String> {
    if code.num_regs != 0 || code.blocks.iter().any(|block| !block.params.is_empty() || !block.args.is_empty()) {
        return Err("virtual registers or parameters are left".into());
    }
    check_moves(code, allocation)?;
    check_constraints(code, allocation)?;
    check_saved(code, allocation)?;
    check_first_defs(code, allocation)?;
    check_definitions(code, allocation)
}

fn check_moves<I: Inst>(code: &MachineCode<I>, allocation: &Allocation) -> Result<(), String> {
    if !allocation.moves.is_sorted_by_key(|m| m.before) {
        return Err("copies are not sorted".into());
    }
    for m in &allocation.moves {
        let allowed = match (m.from, m.to) {
            (Place::Reg(from), Place::Reg(to)) => from.is_physical() && to.is_physical() && from.class() == to.class(),
            (Place::Reg(reg), Place::Slot(slot)) | (Place::Slot(slot), Place::Reg(reg)) => {
                let width = allocation.slots.get(slot as usize);
                reg.is_physical() && width.is_some_and(|&width| width == SlotWidth::Word || reg.class() == Class::Float)
            }
            (Place::Slot(_), Place::Slot(_)) => false,
        };
        if !allowed || m.before as usize >= code.insts.len() {
            return Err(format!("the copy {m:?}"));
        }
    }
    Ok(())
}

/// Calls `f` with the operands of each instruction of `block`, and the copies before it.
fn each_inst<I: Inst>(
    code: &MachineCode<I>,
    allocation: &Allocation,
    block: usize,
    mut f: impl FnMut(&I, &[Move], &[(Operand, Place)]) -> Result<(), String>,
) -> Result<(), String> {
    let mut operands = Vec::new();
    let mut lists = Vec::new();
    let range = code.blocks[block].insts.clone();
    let mut moves = &allocation.moves[allocation.moves.partition_point(|m| m.before < range.start)..];
    for i in range {
        let mut inst = code.insts[i as usize];
        operands.clear();
        if let Some(index) = inst.list() {
            // Only the instruction's own list is copied.
            lists.clear();
            lists.push(code.lists[index as usize].clone());
            inst.set_index(0);
        }
        inst.places(&mut lists, |operand, place| operands.push((operand, place)));
        let (before, rest) = moves.split_at(moves.partition_point(|m| m.before <= i));
        moves = rest;
        f(&code.insts[i as usize], before, &operands)?;
    }
    Ok(())
}

fn check_constraints<I: Inst>(code: &MachineCode<I>, allocation: &Allocation) -> Result<(), String> {
    (0..code.blocks.len()).try_for_each(|block| {
        each_inst(code, allocation, block, |inst, _, operands| {
            for &(operand, place) in operands {
                let fits = match (operand.constraint, place) {
                    (_, Place::Reg(reg)) if !reg.is_physical() => false,
                    (Constraint::Any, Place::Slot(slot)) => (slot as usize) < allocation.slots.len(),
                    (Constraint::Any | Constraint::Reg, Place::Reg(_)) => true,
                    (Constraint::Fixed(fixed), place) => place == Place::Reg(fixed),
                    (Constraint::Reuse(other), place) => operands.get(usize::from(other)).is_some_and(|other| other.1 == place),
                    (Constraint::Reg, Place::Slot(_)) => false,
                };
                if !fits {
                    return Err(format!("{inst:?} has {place:?} where {:?} is asked for", operand.constraint));
                }
            }
            Ok(())
        })
    })
}

fn check_saved<I: Inst>(code: &MachineCode<I>, allocation: &Allocation) -> Result<(), String> {
    if allocation.moves.iter().any(|m| code.pinned_base.is_some_and(|base| m.to == Place::Reg(base))) {
        return Err("a copy writes the pinned base".into());
    }
    let saved = |place: Place| match place {
        Place::Reg(reg) if I::CALLEE_SAVED.contains(reg) && !allocation.saved.contains(reg) => {
            Err(format!("{} is written and not saved", I::register_name(reg)))
        }
        Place::Reg(_) | Place::Slot(_) => Ok(()),
    };
    (0..code.blocks.len()).try_for_each(|block| {
        each_inst(code, allocation, block, |_, moves, operands| {
            let defs = operands.iter().filter(|(operand, _)| operand.role == Role::Def).map(|&(_, place)| place);
            defs.chain(moves.iter().map(|m| m.to)).try_for_each(saved)
        })
    })
}

/// What an instruction defines early, in given registers, is there at the beginning of its block: no copy before it writes one of them.
fn check_first_defs<I: Inst>(code: &MachineCode<I>, allocation: &Allocation) -> Result<(), String> {
    (0..code.blocks.len()).try_for_each(|block| {
        each_inst(code, allocation, block, |inst, moves, operands| {
            let given = |operand: &Operand| {
                operand.role == Role::Def
                    && operand.position == Position::Early
                    && matches!(operand.constraint, Constraint::Fixed(_))
            };
            let mut defs = operands.iter().filter(|(operand, _)| given(operand)).map(|&(_, place)| place);
            match defs.any(|place| moves.iter().any(|m| m.to == place)) {
                true => Err(format!("a copy before {inst:?} overwrites what it defines")),
                false => Ok(()),
            }
        })
    })
}

/// The registers and slots that have been written.
#[derive(Clone, PartialEq)]
struct Written {
    regs: RegSet,
    slots: Vec<u64>,
}

impl Written {
    fn contains(&self, place: Place) -> bool {
        match place {
            Place::Reg(reg) => self.regs.contains(reg),
            Place::Slot(slot) => self.slots[slot as usize / 64] >> (slot % 64) & 1 != 0,
        }
    }

    fn set(&mut self, place: Place, is_written: bool) {
        match (place, is_written) {
            (Place::Reg(reg), true) => self.regs = self.regs.with(reg),
            (Place::Reg(reg), false) => self.regs = self.regs.without(reg),
            (Place::Slot(slot), true) => self.slots[slot as usize / 64] |= 1 << (slot % 64),
            (Place::Slot(slot), false) => self.slots[slot as usize / 64] &= !(1 << (slot % 64)),
        }
    }

    fn intersect(&mut self, other: &Written) {
        self.regs = self.regs.intersection(other.regs);
        self.slots.iter_mut().zip(&other.slots).for_each(|(slots, other)| *slots &= other);
    }
}

/// Solves a forward data-flow problem: which places are written on every path.
fn check_definitions<I: Inst>(code: &MachineCode<I>, allocation: &Allocation) -> Result<(), String> {
    let all = I::CALLER_SAVED.union(I::CALLEE_SAVED);
    // The other registers always hold their values.
    let others = (0..32).map(|n| if n < 16 { Reg::int(n) } else { Reg::float(n - 16) }).filter(|&reg| !all.contains(reg));
    let entry = Written { regs: others.collect(), slots: vec![0; allocation.slots.len().div_ceil(64)] };
    let mut at_head: Vec<Option<Written>> = vec![None; code.blocks.len()];
    at_head[0] = Some(entry);
    let mut work = vec![0u32];
    while let Some(block) = work.pop() {
        let mut written = at_head[block as usize].clone().expect("control reaches it");
        each_inst(code, allocation, block as usize, |inst, moves, operands| {
            // A sequence of copies may save and restore a register that holds no value.
            moves.iter().for_each(|m| written.set(m.to, written.contains(m.from)));
            for &(_, place) in operands.iter().filter(|(operand, _)| operand.role == Role::Use) {
                read(&written, place).map_err(|what| format!("b{block}: {what} by {inst:?}"))?;
            }
            let roots = inst.list().map_or(&[][..], |list| &code.lists[list as usize].roots);
            for &root in roots {
                if allocation.slots.get(root as usize) != Some(&SlotWidth::Word) {
                    return Err(format!("b{block}: {inst:?} has a root in slot {root}"));
                }
                read(&written, Place::Slot(root)).map_err(|what| format!("b{block}: {what} by the collector at {inst:?}"))?;
            }
            written.regs = inst.clobbers(&code.lists).iter().fold(written.regs, RegSet::without);
            let defs = operands.iter().filter(|(operand, _)| operand.role == Role::Def);
            defs.for_each(|&(_, place)| written.set(place, true));
            Ok(())
        })?;
        for &succ in &code.blocks[block as usize].succs {
            let head = &mut at_head[succ as usize];
            let joined = match head {
                None => written.clone(),
                Some(head) => {
                    let mut joined = head.clone();
                    joined.intersect(&written);
                    joined
                }
            };
            if head.as_ref() != Some(&joined) {
                *head = Some(joined);
                work.push(succ);
            }
        }
    }
    Ok(())
}

fn read(written: &Written, place: Place) -> Result<(), String> {
    if written.contains(place) { Ok(()) } else { Err(format!("{place:?} is read and may not be written before")) }
}
