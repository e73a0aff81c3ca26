//! Code to allocate for, written by hand or at random.

use super::random::Random;
use crate::graph::loops::Loops;
use crate::graph::order::Order;
use crate::regalloc::client::{Assignment, Class, Client, Constraint, Operand, Place, Position, Reg, RegSet, Role, SlotWidth};
use std::ops::Range;

/// Code whose instructions have operands but no meaning.
#[derive(Debug, Default)]
pub struct Problem {
    insts: Vec<Vec<Operand>>,
    clobbers: Vec<RegSet>,
    safepoints: Vec<bool>,
    blocks: Vec<Block>,
    loops: Vec<Range<u32>>,
    num_regs: usize,
    preferred: RegSet,
    others: RegSet,
}

#[derive(Debug, Default)]
struct Block {
    insts: Range<u32>,
    succs: Vec<u32>,
    preds: Vec<u32>,
    params: Vec<Reg>,
    args: Vec<Reg>,
    frequency: f32,
}

impl Problem {
    /// Code for a machine with this many registers: some of the general ones are preferred and some not; all vector registers
    /// are preferred.
    pub fn new(preferred: u8, others: u8, floats: u8) -> Problem {
        Problem {
            preferred: (0..preferred).map(Reg::int).chain((0..floats).map(Reg::float)).collect(),
            others: (preferred..preferred + others).map(Reg::int).collect(),
            ..Problem::default()
        }
    }

    /// Appends a block.
    pub fn block(&mut self, succs: &[u32], params: &[Reg], args: &[Reg], insts: Vec<Vec<Operand>>) {
        let start = self.insts.len() as u32;
        self.clobbers.extend(insts.iter().map(|_| RegSet::EMPTY));
        self.safepoints.extend(insts.iter().map(|_| false));
        self.insts.extend(insts);
        self.blocks.push(Block {
            insts: start..self.insts.len() as u32,
            succs: succs.to_vec(),
            preds: Vec::new(),
            params: params.to_vec(),
            args: args.to_vec(),
            frequency: 1.0,
        });
    }

    pub fn clobber(&mut self, inst: usize, clobbers: RegSet) {
        self.clobbers[inst] = clobbers;
    }

    pub fn safepoint(&mut self, inst: usize) {
        self.safepoints[inst] = true;
    }

    pub fn frequencies(&mut self, frequencies: &[f32]) {
        self.blocks.iter_mut().zip(frequencies).for_each(|(block, &frequency)| block.frequency = frequency);
    }

    /// Whether a virtual register is traced.
    pub fn has_traced(&self) -> bool {
        let params = self.blocks.iter().flat_map(|block| block.params.iter().copied());
        self.insts.iter().flatten().map(|operand| operand.reg).chain(params).any(Reg::is_traced)
    }

    /// Computes the fields that follow from the others. Loops must be contiguous.
    pub fn finish(mut self) -> Problem {
        self.find_preds();
        let preds: Vec<Vec<u32>> = self.blocks.iter().map(|block| block.preds.clone()).collect();
        let (order, loops) = contiguous_loops(&preds);
        assert!(order.is_sorted(), "loops are not contiguous: {order:?}");
        self.finish_with(loops)
    }

    fn find_preds(&mut self) {
        let succs: Vec<Vec<u32>> = self.blocks.iter().map(|block| block.succs.clone()).collect();
        self.blocks.iter_mut().zip(predecessors(&succs)).for_each(|(block, preds)| block.preds = preds);
    }

    fn finish_with(mut self, loops: Vec<Range<u32>>) -> Problem {
        self.find_preds();
        self.loops = loops;
        let mentioned = self.insts.iter().flatten().map(|operand| operand.reg);
        let params = self.blocks.iter().flat_map(|block| block.params.iter().copied());
        self.num_regs = mentioned.chain(params).map(|reg| reg.index() + 1).max().unwrap_or(0);
        self
    }
}

impl Client for Problem {
    fn num_regs(&self) -> usize {
        self.num_regs
    }

    fn num_insts(&self) -> usize {
        self.insts.len()
    }

    fn num_blocks(&self) -> usize {
        self.blocks.len()
    }

    fn insts(&self, block: usize) -> Range<u32> {
        self.blocks[block].insts.clone()
    }

    fn succs(&self, block: usize) -> &[u32] {
        &self.blocks[block].succs
    }

    fn preds(&self, block: usize) -> &[u32] {
        &self.blocks[block].preds
    }

    fn params(&self, block: usize) -> &[Reg] {
        &self.blocks[block].params
    }

    fn args(&self, block: usize) -> &[Reg] {
        &self.blocks[block].args
    }

    fn is_return(&self, inst: usize) -> bool {
        self.blocks.iter().any(|block| block.insts.end as usize == inst + 1 && block.succs.is_empty())
    }

    fn operands(&self, inst: usize) -> &[Operand] {
        &self.insts[inst]
    }

    fn clobbers(&self, inst: usize) -> RegSet {
        self.clobbers[inst]
    }

    fn is_safepoint(&self, inst: usize) -> bool {
        self.safepoints[inst]
    }

    fn loops(&self) -> &[Range<u32>] {
        &self.loops
    }

    fn frequency(&self, block: usize) -> f32 {
        self.blocks[block].frequency
    }

    fn preferred(&self) -> RegSet {
        self.preferred
    }

    fn others(&self) -> RegSet {
        self.others
    }
}

/// A control-flow graph of any shape, with critical edges split, in reverse postorder but with contiguous loops; and
/// its immediate dominators.
struct Graph {
    succs: Vec<Vec<u32>>,
    preds: Vec<Vec<u32>>,
    loops: Vec<Range<u32>>,
    idoms: Vec<usize>,
}

impl Graph {
    fn at_random(random: &mut Random) -> Graph {
        let nodes = 1 + random.below(12);
        let mut succs: Vec<Vec<u32>> = Vec::new();
        for node in 0..nodes {
            let edges = if nodes > 1 { random.below(4) } else { 0 };
            let mut out: Vec<u32> = (0..edges).map(|_| 1 + random.below(nodes - 1) as u32).collect();
            if node + 1 < nodes && random.chance(70) {
                out.push(node as u32 + 1);
            }
            out.sort_unstable();
            out.dedup();
            succs.push(out);
        }
        split_critical_edges(&mut succs);
        let order = Order::of(succs.len(), |node: u32| succs[node as usize].iter().copied()).blocks;
        let succs = renumbered(&succs, &order);
        let (order, loops) = contiguous_loops(&predecessors(&succs));
        let succs = renumbered(&succs, &order);
        let preds = predecessors(&succs);
        let idoms = immediate_dominators(&preds);
        Graph { succs, preds, loops, idoms }
    }
}

fn split_critical_edges(succs: &mut Vec<Vec<u32>>) {
    let mut incoming = vec![0; succs.len()];
    succs.iter().flatten().for_each(|&succ| incoming[succ as usize] += 1);
    for node in 0..succs.len() {
        for k in 0..succs[node].len() {
            let succ = succs[node][k];
            if succs[node].len() > 1 && incoming[succ as usize] > 1 {
                succs[node][k] = succs.len() as u32;
                succs.push(vec![succ]);
            }
        }
    }
}

/// The graph with nodes renumbered: node `order[i]` gets the number i.
fn renumbered(succs: &[Vec<u32>], order: &[u32]) -> Vec<Vec<u32>> {
    let mut number = vec![u32::MAX; succs.len()];
    (0..).zip(order).for_each(|(i, &node)| number[node as usize] = i);
    order.iter().map(|&node| succs[node as usize].iter().map(|&succ| number[succ as usize]).collect()).collect()
}

fn predecessors(succs: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut preds = vec![Vec::new(); succs.len()];
    for (node, succs) in (0..).zip(succs) {
        succs.iter().for_each(|&succ| preds[succ as usize].push(node));
    }
    preds
}

/// An order that makes loops contiguous, and the loops in it.
fn contiguous_loops(preds: &[Vec<u32>]) -> (Vec<u32>, Vec<Range<u32>>) {
    Loops::of(preds.len(), |block| preds[block as usize].iter().copied()).make_contiguous()
}

fn immediate_dominators(preds: &[Vec<u32>]) -> Vec<usize> {
    let mut idoms = vec![usize::MAX; preds.len()];
    idoms[0] = 0;
    loop {
        let before = idoms.clone();
        for node in 1..preds.len() {
            let known = preds[node].iter().map(|&pred| pred as usize).filter(|&pred| idoms[pred] != usize::MAX);
            let common = known.reduce(|mut a, mut b| {
                while a != b {
                    if a > b { a = idoms[a] } else { b = idoms[b] }
                }
                a
            });
            idoms[node] = common.unwrap_or(usize::MAX);
        }
        if idoms == before {
            return idoms;
        }
    }
}

/// An instruction.
struct Inst {
    operands: Vec<Operand>,
    clobbers: RegSet,
    safepoint: bool,
}

impl From<Vec<Operand>> for Inst {
    fn from(operands: Vec<Operand>) -> Inst {
        Inst { operands, clobbers: RegSet::EMPTY, safepoint: false }
    }
}

/// A random problem that has a solution.
pub fn at_random(random: &mut Random) -> Problem {
    let (preferred, others, floats) = (3 + random.below(4), 1 + random.below(3), 3 + random.below(3));
    let graph = Graph::at_random(random);
    let mut generator = Generator {
        problem: Problem::new(preferred as u8, others as u8, floats as u8),
        random,
        next: 0,
        visible: Vec::new(),
        ints: (preferred + others) as u8,
    };
    generator.make(&graph);
    generator.problem.finish_with(graph.loops)
}

struct Generator<'r> {
    problem: Problem,
    random: &'r mut Random,
    next: u32,
    /// Values that the current block may use.
    visible: Vec<Reg>,
    ints: u8,
}

impl Generator<'_> {
    fn make(&mut self, graph: &Graph) {
        let blocks = graph.succs.len();
        let mut params: Vec<Vec<Reg>> = Vec::new();
        for block in 0..blocks {
            let passed = graph.preds[block].iter().all(|&pred| graph.succs[pred as usize].len() == 1);
            let count = if block > 0 && passed { self.random.below(5) } else { 0 };
            params.push((0..count).map(|_| self.fresh()).collect());
        }
        // The values visible at the end of each block, for the blocks that it dominates.
        let mut visible: Vec<Vec<Reg>> = Vec::new();
        for block in 0..blocks {
            self.visible = if block == 0 { Vec::new() } else { visible[graph.idoms[block]].clone() };
            self.visible.extend(&params[block]);
            let mut insts: Vec<Inst> = (0..self.random.below(10)).map(|_| self.inst()).collect();
            let mut args = Vec::new();
            if let [succ] = graph.succs[block][..] {
                for &param in &params[succ as usize] {
                    let arg = self.value(param, &mut insts);
                    args.push(arg);
                }
            }
            insts.push(self.terminator(graph.succs[block].len()).into());
            let first = self.problem.insts.len();
            let operands = insts.iter().map(|inst| inst.operands.clone()).collect();
            self.problem.block(&graph.succs[block], &params[block], &args, operands);
            for (i, inst) in insts.into_iter().enumerate() {
                self.problem.clobber(first + i, inst.clobbers);
                self.problem.safepoints[first + i] = inst.safepoint;
            }
            visible.push(std::mem::take(&mut self.visible));
        }
        let depths: Vec<f32> = (0..blocks).map(|_| [1.0, 1.0, 8.0, 64.0, 0.01][self.random.below(5)]).collect();
        self.problem.frequencies(&depths);
    }

    fn fresh(&mut self) -> Reg {
        match self.random.below(8) {
            0 => self.fresh_of(Class::Float),
            1 => self.fresh_wide(),
            2 | 3 => self.fresh_traced(),
            _ => self.fresh_of(Class::Int),
        }
    }

    fn fresh_traced(&mut self) -> Reg {
        self.next += 1;
        Reg::new_traced(self.next - 1)
    }

    fn fresh_like(&mut self, like: Reg) -> Reg {
        match (like.is_wide(), like.is_traced()) {
            (true, _) => self.fresh_wide(),
            (_, true) => self.fresh_traced(),
            (false, false) => self.fresh_of(like.class()),
        }
    }

    fn fresh_wide(&mut self) -> Reg {
        self.next += 1;
        Reg::new_wide(self.next - 1)
    }

    fn fresh_of(&mut self, class: Class) -> Reg {
        self.next += 1;
        Reg::new_virtual(class, self.next - 1)
    }

    /// A visible value of the class and width of `like`; old values are as likely as new ones.
    fn value(&mut self, like: Reg, insts: &mut Vec<Inst>) -> Reg {
        let kind = |reg: Reg| (reg.class(), reg.is_wide(), reg.is_traced());
        let visible: Vec<Reg> = self.visible.iter().copied().filter(|&reg| kind(reg) == kind(like)).collect();
        let recent = &visible[visible.len().saturating_sub(4)..];
        let found = if self.random.chance(50) { self.random.pick(recent) } else { self.random.pick(&visible) };
        found.unwrap_or_else(|| {
            let reg = self.fresh_like(like);
            insts.push(vec![super::written(reg)].into());
            self.visible.push(reg);
            reg
        })
    }

    fn pick(&mut self) -> Option<Reg> {
        let recent = self.visible[self.visible.len().saturating_sub(5)..].to_vec();
        if self.random.chance(50) { self.random.pick(&recent) } else { self.random.pick(&self.visible.clone()) }
    }

    fn inst(&mut self) -> Inst {
        let inst = match self.random.below(8) {
            0 => self.call(),
            1 => self.quotient(),
            2 | 3 => self.two_address().into(),
            4 => self.with_scratch().into(),
            _ => self.plain().into(),
        };
        let defs = inst.operands.iter().filter(|operand| operand.role == Role::Def && operand.position == Position::Late);
        self.visible.extend(defs.map(|operand| operand.reg));
        inst
    }

    fn uses(&mut self, most: usize) -> Vec<Operand> {
        let mut operands = Vec::new();
        for _ in 0..self.random.below(most + 1) {
            let constraint = if self.random.chance(35) { Constraint::Any } else { Constraint::Reg };
            operands.extend(self.pick().map(|reg| super::operand(reg, constraint, Role::Use, Position::Early)));
        }
        operands
    }

    fn plain(&mut self) -> Vec<Operand> {
        let mut operands = self.uses(2);
        if self.random.chance(80) {
            let def = self.fresh();
            operands.push(super::written(def));
        }
        operands
    }

    fn two_address(&mut self) -> Vec<Operand> {
        let Some(source) = self.pick() else { return self.plain() };
        let def = self.fresh_like(source);
        let mut operands = vec![super::used(source), super::operand(def, Constraint::Reuse(0), Role::Def, Position::Late)];
        operands.extend(self.uses(1));
        operands
    }

    fn with_scratch(&mut self) -> Vec<Operand> {
        let mut operands = self.uses(1);
        let scratch = self.fresh_of(Class::Int);
        operands.push(super::operand(scratch, Constraint::Reg, Role::Def, Position::Early));
        if self.random.chance(60) {
            let def = self.fresh();
            operands.push(super::written(def));
        }
        operands
    }

    /// An instruction with a fixed operand that is also its result, a late operand, and one clobbered register.
    fn quotient(&mut self) -> Inst {
        let ints: Vec<Reg> = self.visible.iter().copied().filter(|reg| reg.class() == Class::Int).collect();
        let Some(dividend) = self.random.pick(&ints) else { return self.plain().into() };
        let mut operands = vec![super::operand(dividend, Constraint::Fixed(Reg::int(0)), Role::Use, Position::Early)];
        let divisor = self.random.pick(&ints).unwrap_or(dividend);
        operands.push(super::operand(divisor, Constraint::Reg, Role::Use, Position::Late));
        let result = self.fresh_of(Class::Int);
        operands.push(super::operand(result, Constraint::Fixed(Reg::int(0)), Role::Def, Position::Late));
        Inst { operands, clobbers: RegSet::EMPTY.with(Reg::int(1)), safepoint: false }
    }

    /// An instruction with several operands and results in fixed registers, which clobbers all preferred registers. Most are safepoints.
    fn call(&mut self) -> Inst {
        let mut operands = Vec::new();
        for n in 0..self.random.below(3) as u8 {
            if let Some(reg) = self.pick() {
                let fixed = Reg::physical(reg.class(), n);
                operands.push(super::operand(reg, Constraint::Fixed(fixed), Role::Use, Position::Early));
            }
        }
        let mut clobbers: RegSet = self.problem.preferred;
        if self.random.chance(20) {
            clobbers = clobbers.union(self.problem.others);
            debug_assert!(clobbers.iter().filter(|reg| reg.class() == Class::Int).count() == self.ints as usize);
        }
        for n in 0..self.random.below(3) as u8 {
            let def = self.fresh();
            let fixed = Reg::physical(def.class(), n);
            clobbers = clobbers.without(fixed);
            operands.push(super::operand(def, Constraint::Fixed(fixed), Role::Def, Position::Late));
        }
        Inst { operands, clobbers, safepoint: self.random.chance(70) }
    }

    fn terminator(&mut self, succs: usize) -> Vec<Operand> {
        match succs {
            0 => {
                let reg = self.pick();
                let fixed = |reg: Reg| Constraint::Fixed(Reg::physical(reg.class(), 0));
                reg.into_iter().map(|reg| super::operand(reg, fixed(reg), Role::Use, Position::Early)).collect()
            }
            1 => Vec::new(),
            _ if self.random.chance(30) => {
                let scratch = self.fresh_of(Class::Int);
                let mut operands = self.uses(1);
                operands.push(super::operand(scratch, Constraint::Reg, Role::Def, Position::Early));
                operands
            }
            _ => self.uses(1),
        }
    }
}

/// Changes the roots of one safepoint: removes one, adds one or gives one in another slot. Returns whether it changed anything.
pub fn damage_roots(random: &mut Random, problem: &Problem, assignment: &mut Assignment) -> bool {
    let safepoints: Vec<u32> = (0..problem.insts.len() as u32).filter(|&inst| problem.safepoints[inst as usize]).collect();
    let slots = assignment.slots.len();
    let before = assignment.roots.clone();
    match random.below(3) {
        0 if !before.is_empty() => {
            assignment.roots.remove(random.below(before.len()));
        }
        1 if slots > 0 => assignment.roots.extend(random.pick(&safepoints).map(|inst| (inst, random.below(slots) as u32))),
        _ if !before.is_empty() && slots > 0 => {
            assignment.roots[random.below(before.len())].1 = random.below(slots) as u32;
        }
        _ => return false,
    }
    assignment.roots.sort_unstable();
    assignment.roots.dedup();
    assignment.roots != before
}

/// Changes one place, copy or slot; returns whether it changed anything.
pub fn damage(random: &mut Random, assignment: &mut Assignment) -> bool {
    if let Some(wide) = assignment.slots.iter().position(|&width| width == SlotWidth::Wide)
        && random.chance(30)
    {
        assignment.slots[wide] = SlotWidth::Word;
        return true;
    }
    let move_or_place = random.chance(50);
    if move_or_place && !assignment.moves.is_empty() {
        let i = random.below(assignment.moves.len());
        if random.chance(50) {
            assignment.moves.remove(i);
        } else {
            assignment.moves[i].from = assignment.moves[i].to;
        }
        return true;
    }
    let in_reg = |place: &mut Place| match place {
        Place::Reg(reg) => Some(reg.class()),
        Place::Slot(_) => None,
    };
    let places = assignment.places.len();
    if places == 0 {
        return false;
    }
    let place = &mut assignment.places[random.below(places)];
    let Some(class) = in_reg(place) else { return false };
    let other = Place::Reg(Reg::physical(class, random.below(3) as u8));
    let changed = *place != other;
    *place = other;
    changed
}
