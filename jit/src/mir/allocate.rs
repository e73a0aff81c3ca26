//! The phase `regalloc`: presents the code to the register allocator, and applies the result to the code.

use super::code::{Allocation, MachineCode};
use super::isa::{Control, Inst};
use crate::meter::Meter;
use crate::regalloc::{self, AllocationError, Assignment, Operand, Place, Reg, RegSet, checker};
use crate::request::Allocator;
use std::ops::Range;

/// Replaces virtual registers by physical ones and spill slots, and sets [`MachineCode::allocation`]. With `verify`,
/// proves the allocation correct.
///
/// # Errors
/// [`AllocationError`] if the constraints of an instruction contradict each other, if the code is not in SSA form, or if a spill slot
/// was chosen where an instruction needs a register, or if there are no steps left.
///
/// # Panics
/// With `verify`, if the allocation is wrong.
pub fn allocate<I: Inst>(
    code: &mut MachineCode<I>,
    allocator: Allocator,
    verify: bool,
    meter: &Meter<'_>,
) -> Result<(), AllocationError> {
    let operands = Operands::of(code);
    meter.keep(code.size() + size_of_val(&*operands.all) + size_of_val(&*operands.starts))?;
    let client = Client { code, operands };
    let assignment = match allocator {
        Allocator::LinearScan => regalloc::allocate(&client, meter)?,
        #[cfg(any(test, feature = "regalloc2"))]
        Allocator::Regalloc2 => regalloc::regalloc2::allocate(&client, verify)?,
        #[cfg(not(any(test, feature = "regalloc2")))]
        Allocator::Regalloc2 => return Err(AllocationError("this build does not have the crate regalloc2".into())),
    };
    if verify && let Err(wrong) = checker::check(&client, &assignment) {
        panic!("the allocation is wrong: {wrong}");
    }
    let saved = saved_registers(code, &assignment);
    meter.ask()?;
    for roots in assignment.roots.chunk_by(|a, b| a.0 == b.0) {
        let list = code.insts[roots[0].0 as usize].list().expect("a safepoint is a call");
        code.lists[list as usize].roots = roots.iter().map(|root| root.1).collect();
    }
    for (i, inst) in code.insts.iter_mut().enumerate() {
        let mut places = assignment.places(i).iter();
        inst.assign(&mut code.lists, || *places.next().expect("one place for each operand"))?;
    }
    for block in &mut code.blocks {
        // The inserted copies replace the parameters.
        block.params.clear();
        block.args.clear();
    }
    code.num_regs = 0;
    code.allocation = Some(Allocation { moves: assignment.moves, slots: assignment.slots, saved });
    Ok(())
}

/// Callee-saved registers that the function writes.
fn saved_registers<I: Inst>(code: &MachineCode<I>, assignment: &Assignment) -> RegSet {
    let places = assignment.places.iter().copied().chain(assignment.moves.iter().map(|m| m.to));
    let used = places.fold(RegSet::EMPTY, |used, place| match place {
        Place::Reg(reg) => used.with(reg),
        Place::Slot(_) => used,
    });
    code.pinned_base.map_or(used, |base| used.with(base)).intersection(I::CALLEE_SAVED)
}

/// The operands of all instructions.
struct Operands {
    all: Vec<Operand>,
    /// By instruction, the index of its first operand; and finally the number of operands.
    starts: Vec<u32>,
}

impl Operands {
    fn of<I: Inst>(code: &mut MachineCode<I>) -> Operands {
        // Most instructions have two or three operands.
        let mut all = Vec::with_capacity(3 * code.insts.len());
        let mut starts = Vec::with_capacity(code.insts.len() + 1);
        starts.push(0);
        for inst in &mut code.insts {
            inst.operands(&mut code.lists, |operand| all.push(operand));
            starts.push(all.len() as u32);
        }
        Operands { all, starts }
    }
}

/// The code as the allocator sees it: see [`regalloc::Client`].
struct Client<'c, I> {
    code: &'c MachineCode<I>,
    operands: Operands,
}

impl<I: Inst> Client<'_, I> {
    fn allocatable(&self, set: RegSet) -> RegSet {
        self.code.pinned_base.map_or(set, |base| set.without(base))
    }
}

impl<I: Inst> regalloc::Client for Client<'_, I> {
    fn num_regs(&self) -> usize {
        self.code.num_regs as usize
    }

    fn num_insts(&self) -> usize {
        self.code.insts.len()
    }

    fn num_blocks(&self) -> usize {
        self.code.blocks.len()
    }

    fn insts(&self, block: usize) -> Range<u32> {
        self.code.blocks[block].insts.clone()
    }

    fn succs(&self, block: usize) -> &[u32] {
        &self.code.blocks[block].succs
    }

    fn preds(&self, block: usize) -> &[u32] {
        &self.code.blocks[block].preds
    }

    fn params(&self, block: usize) -> &[Reg] {
        &self.code.blocks[block].params
    }

    fn args(&self, block: usize) -> &[Reg] {
        &self.code.blocks[block].args
    }

    fn is_return(&self, inst: usize) -> bool {
        match self.code.insts[inst].control() {
            Control::Leave => true,
            Control::Throw => self.code.lists[self.code.insts[inst].list().unwrap_or(0) as usize].handlers.is_empty(),
            Control::Next | Control::Jump | Control::Branch | Control::Table(_) | Control::Try => false,
        }
    }

    fn operands(&self, inst: usize) -> &[Operand] {
        &self.operands.all[self.operands.starts[inst] as usize..self.operands.starts[inst + 1] as usize]
    }

    fn clobbers(&self, inst: usize) -> RegSet {
        self.code.insts[inst].clobbers(&self.code.lists)
    }

    fn is_safepoint(&self, inst: usize) -> bool {
        let inst = &self.code.insts[inst];
        let target = |list: u32| self.code.lists[list as usize].target;
        !inst.is_tail_call() && inst.list().is_some_and(|list| target(list).may_collect())
    }

    fn loops(&self) -> &[Range<u32>] {
        &self.code.loops
    }

    fn frequency(&self, block: usize) -> f32 {
        self.code.blocks[block].weight
    }

    fn first_rare(&self) -> usize {
        self.code.first_rare() as usize
    }

    fn preferred(&self) -> RegSet {
        self.allocatable(I::CALLER_SAVED)
    }

    fn others(&self) -> RegSet {
        self.allocatable(I::CALLEE_SAVED)
    }
}
