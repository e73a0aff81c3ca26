//! Allocation by the crate `regalloc2`: its backtracking allocator with live-range splitting, and its checker.

use super::client::{Assignment, Class, Client, Constraint, Move, Operand, Place, Position, Reg, RegSet, Role, SlotWidth};
use super::error::AllocationError;
use regalloc2 as ra;

/// Allocates registers. With `verify`, proves the result by symbolic execution and panics if it is wrong.
///
/// # Errors
/// [`AllocationError`] if an instruction's constraints contradict each other, or if the code is not SSA.
pub fn allocate(client: &impl Client, verify: bool) -> Result<Assignment, AllocationError> {
    let operands = (0..client.num_insts()).flat_map(|inst| client.operands(inst)).map(|operand| operand.reg);
    if operands.chain((0..client.num_blocks()).flat_map(|block| client.params(block)).copied()).any(Reg::is_traced) {
        return Err(AllocationError("the crate regalloc2 knows no roots".into()));
    }
    let code = Translated::new(client);
    let env = environment(client);
    let options = ra::RegallocOptions { validate_ssa: verify, ..Default::default() };
    let output = ra::run(&code, &env, &options).map_err(|error| AllocationError(error.to_string()))?;
    if verify {
        let mut checker = ra::checker::Checker::new(&code, &env);
        checker.prepare(&output);
        if let Err(errors) = checker.run() {
            panic!("the allocation is wrong: {errors:?}");
        }
    }
    let mut assignment = Assignment {
        places: output.allocs.iter().map(|&allocation| place(allocation)).collect(),
        starts: output.inst_alloc_offsets,
        moves: output.edits.iter().map(|(point, edit)| translate_move(*point, edit)).filter(|m| m.from != m.to).collect(),
        slots: vec![SlotWidth::Word; output.num_spillslots],
        roots: Vec::new(),
    };
    widen_slots(client, &mut assignment);
    Ok(assignment)
}

/// If there are vectors, widens every slot that is read or written through a vector register to the longest of them.
/// The crate shares no slot between classes, and it does not distinguish widths.
fn widen_slots(client: &impl Client, assignment: &mut Assignment) {
    let operands = || (0..client.num_insts()).flat_map(|inst| client.operands(inst));
    let params = (0..client.num_blocks()).flat_map(|block| client.params(block));
    let widths = operands().map(|operand| operand.reg).chain(params.copied()).map(SlotWidth::of);
    let widest = widths.max().unwrap_or(SlotWidth::Word);
    if widest == SlotWidth::Word {
        return;
    }
    let placed = operands().zip(&assignment.places).filter(|(operand, _)| operand.reg.class() == Class::Float);
    let moved = assignment.moves.iter().flat_map(|m| [(m.from, m.to), (m.to, m.from)]);
    let moved = moved.filter(|(_, other)| matches!(other, Place::Reg(reg) if reg.class() == Class::Float));
    for place in placed.map(|(_, place)| *place).chain(moved.map(|(place, _)| place)) {
        if let Place::Slot(slot) = place {
            assignment.slots[slot as usize] = widest;
        }
    }
}

fn environment(client: &impl Client) -> ra::MachineEnv {
    let by_class = |set: RegSet| {
        let of = |class| {
            let regs = set.iter().filter(|reg| reg.class() == class).map(preg);
            regs.fold(ra::PRegSet::empty(), ra::PRegSet::with)
        };
        [of(Class::Int), of(Class::Float), ra::PRegSet::empty()]
    };
    ra::MachineEnv {
        preferred_regs_by_class: by_class(client.preferred()),
        non_preferred_regs_by_class: by_class(client.others()),
        scratch_by_class: [None; 3],
        fixed_stack_slots: Vec::new(),
    }
}

fn class(class: Class) -> ra::RegClass {
    match class {
        Class::Int => ra::RegClass::Int,
        Class::Float => ra::RegClass::Float,
    }
}

fn preg(reg: Reg) -> ra::PReg {
    ra::PReg::new(reg.encoding() as usize, class(reg.class()))
}

fn vreg(reg: Reg) -> ra::VReg {
    ra::VReg::new(reg.index(), class(reg.class()))
}

fn operand(operand: &Operand) -> ra::Operand {
    let constraint = match operand.constraint {
        Constraint::Any => ra::OperandConstraint::Any,
        Constraint::Reg => ra::OperandConstraint::Reg,
        Constraint::Fixed(reg) => ra::OperandConstraint::FixedReg(preg(reg)),
        Constraint::Reuse(index) => ra::OperandConstraint::Reuse(index as usize),
    };
    let kind = match operand.role {
        Role::Use => ra::OperandKind::Use,
        Role::Def => ra::OperandKind::Def,
    };
    let position = match operand.position {
        Position::Early => ra::OperandPos::Early,
        Position::Late => ra::OperandPos::Late,
    };
    ra::Operand::new(vreg(operand.reg), constraint, kind, position)
}

fn place(allocation: ra::Allocation) -> Place {
    match (allocation.as_reg(), allocation.as_stack()) {
        (Some(reg), _) => {
            let class = if reg.class() == ra::RegClass::Int { Class::Int } else { Class::Float };
            Place::Reg(Reg::physical(class, reg.hw_enc() as u8))
        }
        (_, Some(slot)) => Place::Slot(slot.index() as u32),
        _ => unreachable!("every operand is placed"),
    }
}

/// A copy after an instruction becomes one before the next; no block ends with a copy.
fn translate_move(point: ra::ProgPoint, edit: &ra::Edit) -> Move {
    let ra::Edit::Move { from, to } = edit;
    let after = u32::from(point.pos() == ra::InstPosition::After);
    Move { before: point.inst().index() as u32 + after, from: place(*from), to: place(*to) }
}

/// A list of lists in one allocation.
struct Lists<T> {
    items: Vec<T>,
    starts: Vec<u32>,
}

impl<T> Lists<T> {
    fn new(lists: impl Iterator<Item = impl Iterator<Item = T>>) -> Lists<T> {
        let mut all = Lists { items: Vec::new(), starts: vec![0] };
        for list in lists {
            all.items.extend(list);
            all.starts.push(all.items.len() as u32);
        }
        all
    }

    fn get(&self, i: usize) -> &[T] {
        &self.items[self.starts[i] as usize..self.starts[i + 1] as usize]
    }
}

/// The client's code in `regalloc2`'s types, which it takes as slices.
struct Translated<'a, C> {
    client: &'a C,
    operands: Lists<ra::Operand>,
    succs: Lists<ra::Block>,
    preds: Lists<ra::Block>,
    params: Lists<ra::VReg>,
    args: Lists<ra::VReg>,
    /// By instruction, whether it is the last of its block.
    ends_block: Vec<bool>,
}

impl<'a, C: Client> Translated<'a, C> {
    fn new(client: &'a C) -> Self {
        let blocks = 0..client.num_blocks();
        let block = |&block: &u32| ra::Block::new(block as usize);
        let mut ends_block = vec![false; client.num_insts()];
        for block in blocks.clone() {
            ends_block[client.insts(block).end as usize - 1] = true;
        }
        Translated {
            client,
            operands: Lists::new((0..client.num_insts()).map(|inst| client.operands(inst).iter().map(operand))),
            succs: Lists::new(blocks.clone().map(|b| client.succs(b).iter().map(block))),
            preds: Lists::new(blocks.clone().map(|b| client.preds(b).iter().map(block))),
            params: Lists::new(blocks.clone().map(|b| client.params(b).iter().map(|&reg| vreg(reg)))),
            args: Lists::new(blocks.map(|b| client.args(b).iter().map(|&reg| vreg(reg)))),
            ends_block,
        }
    }
}

impl<C: Client> ra::Function for Translated<'_, C> {
    fn num_insts(&self) -> usize {
        self.client.num_insts()
    }

    fn num_blocks(&self) -> usize {
        self.client.num_blocks()
    }

    fn entry_block(&self) -> ra::Block {
        ra::Block::new(0)
    }

    fn block_insns(&self, block: ra::Block) -> ra::InstRange {
        let range = self.client.insts(block.index());
        ra::InstRange::new(ra::Inst::new(range.start as usize), ra::Inst::new(range.end as usize))
    }

    fn block_succs(&self, block: ra::Block) -> &[ra::Block] {
        self.succs.get(block.index())
    }

    fn block_preds(&self, block: ra::Block) -> &[ra::Block] {
        self.preds.get(block.index())
    }

    fn block_params(&self, block: ra::Block) -> &[ra::VReg] {
        self.params.get(block.index())
    }

    fn is_ret(&self, inst: ra::Inst) -> bool {
        self.client.is_return(inst.index())
    }

    fn is_branch(&self, inst: ra::Inst) -> bool {
        self.ends_block[inst.index()] && !self.client.is_return(inst.index())
    }

    fn branch_blockparams(&self, block: ra::Block, _: ra::Inst, _: usize) -> &[ra::VReg] {
        self.args.get(block.index())
    }

    fn inst_operands(&self, inst: ra::Inst) -> &[ra::Operand] {
        self.operands.get(inst.index())
    }

    fn inst_clobbers(&self, inst: ra::Inst) -> ra::PRegSet {
        self.client.clobbers(inst.index()).iter().map(preg).fold(ra::PRegSet::empty(), ra::PRegSet::with)
    }

    fn num_vregs(&self) -> usize {
        self.client.num_regs()
    }

    /// All slots have the same size here; `widen_slots` finds the widths afterwards.
    fn spillslot_size(&self, _: ra::RegClass) -> usize {
        1
    }
}
