//! Makes the blocks of a vector loop: check, set-up, loop and exit.

mod ending;
mod memory;

use super::pack;
use super::plan::Plan;
use super::precheck::{self, Extent, Numbers};
use super::work::{Combine, Count, Group, Node, Ramp, Reduction, VECTOR};
use crate::analysis::counted::{Linear, Test};
use crate::ir::fold::fold;
use crate::ir::{Block, Effect, Func, Op, Probability, Type, Value};
use rustc_hash::FxHashMap;
use weir_bytecode::lanes::{Integer, Lane, LaneOp, Lanes, Shape, Widen};
use weir_bytecode::{Module, Opcode};

/// The base-2 logarithm of the size of a page, if there is no module.
const PAGE_LOG2: u8 = 16;
/// The loop must have more than this many times the rounds of one round of the vector loop, if it makes the last round itself.
const LEAST: u64 = 2;
/// If the vector loop may make all rounds, the loop must have the rounds of one round of the vector loop. If the producer has unrolled it, each
/// of its rounds makes several copies of the body; it must make this many copies in all.
const LEAST_COPIES: u64 = 16;

/// Makes the vector loop of `plan` in front of the loop with this head, which is entered by the predecessor with the index `entry`. The
/// head's phis are those of the plan's block, in the same order.
pub fn emit(func: &mut Func<'_>, module: Option<&Module>, plan: &Plan, head: Block, entry: usize) {
    let pc = func.terminator(plan.block).map_or(0, |branch| func.inst(branch).pc);
    let starts: FxHashMap<Value, Value> = func.phis(plan.block).map(|phi| (phi, func.args(phi)[plan.entry])).collect();
    let own: Vec<Value> = func.block(plan.block).insts.to_vec();
    let mut e = Emit {
        func,
        module,
        plan,
        head,
        entry,
        pc,
        starts,
        own,
        copies: FxHashMap::default(),
        rows: FxHashMap::default(),
        controls: None,
        out: Vec::new(),
    };
    e.run();
}

struct Emit<'e, 'a> {
    func: &'e mut Func<'a>,
    module: Option<&'e Module>,
    plan: &'e Plan,
    /// The head of the loop.
    head: Block,
    /// The index of its entry among the head's predecessors.
    entry: usize,
    pc: u32,
    /// The first value of each phi.
    starts: FxHashMap<Value, Value>,
    /// The instructions of the loop.
    own: Vec<Value>,
    /// Copies of invariant values of the loop.
    copies: FxHashMap<Value, Value>,
    /// Loads of a round of the vector loop, by group, distance and bytes.
    rows: FxHashMap<(usize, u64, u64), Value>,
    /// The tested value in round 0 and its bound.
    controls: Option<[Value; 2]>,
    /// The instructions of the current block so far.
    out: Vec<Value>,
}

/// The values that the vector loop passes from round to round.
struct Carried {
    /// The remaining rounds of the vector loop.
    left: Value,
    /// By group, its address.
    addresses: Vec<Option<Value>>,
    /// By reduction and vector, the result so far.
    sums: Vec<Vec<Value>>,
    /// By recurrence, the last vector of the round before.
    before: Vec<Value>,
    /// By ramp, the first vector of the round.
    ramps: Vec<Value>,
}

impl Numbers for Emit<'_, '_> {
    type Number = Value;

    fn constant(&mut self, value: u64) -> Value {
        self.inst(Op::Const, Type::I64, value, &[])
    }

    fn add(&mut self, a: Value, b: Value) -> Value {
        self.inst(Op::Add, Type::I64, 0, &[a, b])
    }

    fn sub(&mut self, a: Value, b: Value) -> Value {
        self.inst(Op::Sub, Type::I64, 0, &[a, b])
    }

    fn times(&mut self, a: Value, by: u64) -> Value {
        if by == 1 {
            return a;
        }
        let by = self.constant(by);
        self.inst(Op::Mul, Type::I64, 0, &[a, by])
    }

    fn divide(&mut self, a: Value, by: u64) -> Value {
        if let Some(a) = self.func.as_const(a) {
            return self.constant(a / by);
        }
        match by {
            1 => a,
            by if by.is_power_of_two() => {
                let count = self.constant(by.trailing_zeros().into());
                self.inst(Op::ShrU, Type::I64, 0, &[a, count])
            }
            by => {
                let by = self.constant(by);
                self.inst(Op::DivU, Type::I64, 0, &[a, by])
            }
        }
    }

    fn wrapped(&mut self, a: Value) -> Value {
        let low = self.inst(Op::Wrap, Type::I32, 0, &[a]);
        self.inst(Op::ExtendU, Type::I64, 0, &[low])
    }

    fn less(&mut self, a: Value, b: Value) -> Value {
        self.inst(Op::LtS, Type::I32, 0, &[a, b])
    }

    fn at_most(&mut self, a: Value, b: Value) -> Value {
        self.inst(Op::LeS, Type::I32, 0, &[a, b])
    }

    fn both(&mut self, a: Value, b: Value) -> Value {
        self.inst(Op::And, Type::I32, 0, &[a, b])
    }

    fn either(&mut self, a: Value, b: Value) -> Value {
        self.inst(Op::Or, Type::I32, 0, &[a, b])
    }

    fn select(&mut self, condition: Value, a: Value, b: Value) -> Value {
        self.inst(Op::Select, Type::I64, 0, &[condition, a, b])
    }
}

impl Emit<'_, '_> {
    fn run(&mut self) {
        let plan = self.plan;
        let head_of_loop = self.head;
        let [trip, fits, setup, head, exit] = [(); 5].map(|()| self.func.create_block());
        let work = if plan.poll.is_some() { self.func.create_block() } else { head };
        let done = if plan.ending.is_some() { self.func.create_block() } else { exit };
        self.enter_at(trip);

        let rounds = self.trip();
        let enough = self.enough(rounds);
        self.branch_if(trip, enough, fits);
        let (rounds, fit) = self.fitting(rounds);
        self.branch_if(fits, fit, setup);
        self.func.add_edge(fits, head_of_loop);

        let total = self.vector_rounds(rounds);
        let first = self.set_up(total);
        let splats = self.splats();
        let steps = self.ramp_steps();
        for &value in plan.work.reductions.iter().flat_map(|reduction| &reduction.invariants) {
            self.invariant(value);
        }
        self.prepare(plan.ending.as_deref().unwrap_or_default());
        self.end(setup, Op::Jump, &[]);
        self.func.add_edge(setup, head);

        let at_head = self.phis_of(&first);
        let due = plan.poll.map(|_| self.poll());
        if let Some(due) = due {
            let branch = self.end(head, Op::Branch, &[due]);
            self.func.set_probability(branch, Some(Probability::of_counts(0, 255)));
            self.func.add_edge(head, exit);
            self.func.add_edge(head, work);
        }
        self.charge();
        let next = self.body(&at_head, &splats, &steps);
        let zero = self.number(Type::I64, 0);
        let goes_on = match self.func.as_const(total) {
            Some(1) => self.number(Type::I32, 0),
            _ => self.inst(Op::Ne, Type::I32, 0, &[next.left, zero]),
        };
        let branch = self.end(work, Op::Branch, &[goes_on]);
        self.func.set_probability(branch, Some(Probability::of_counts(63, 1)));
        self.func.add_edge(work, head);
        self.func.add_edge(work, done);
        self.close(&at_head, &first, &next);

        let finished = plan.ending.as_ref().map(|ending| (ending, self.finish([done, exit], ending, total, &next)));
        let last = if due.is_some() { self.joined(&at_head, &next) } else { next };
        self.leave(exit, total, &last);
        if let Some((ending, results)) = finished {
            self.land(ending, results);
        }
    }

    /// Creates an instruction in the current block, unless it has a value that is known: numbers of rounds often are constants.
    fn inst(&mut self, op: Op, ty: Type, imm: u64, args: &[Value]) -> Value {
        if let Some(known) = self.known(op, ty, args) {
            return known;
        }
        let value = self.func.create(op, ty, self.pc, 0, imm, args);
        self.out.push(value);
        value
    }

    /// The value of an operation on constants, or on one that changes nothing.
    fn known(&mut self, op: Op, ty: Type, args: &[Value]) -> Option<Value> {
        let constant = |value: &Value| self.func.as_const(*value);
        match (op, args) {
            (Op::Select, [condition, a, b]) => constant(condition).map(|bits| if bits as u32 == 0 { *b } else { *a }),
            (Op::Add, [zero, other]) | (Op::Add, [other, zero]) | (Op::Sub, [other, zero]) if constant(zero) == Some(0) => {
                Some(*other)
            }
            (_, [a, others @ ..]) if others.len() < 2 && op.effect() == Effect::Pure => {
                let bits: Option<Vec<u64>> = args.iter().map(constant).collect();
                let bits = fold(op, self.func.ty(*a), ty, &bits?)?;
                Some(self.number(ty, bits))
            }
            _ => None,
        }
    }

    fn number(&mut self, ty: Type, bits: u64) -> Value {
        self.inst(Op::Const, ty, bits, &[])
    }

    fn vector(&mut self, opcode: Opcode, ty: Type, imm: u64, args: &[Value]) -> Value {
        let value = self.func.create(Op::Vector, ty, self.pc, opcode as u32, imm, args);
        self.out.push(value);
        value
    }

    /// Ends the current block.
    fn end(&mut self, block: Block, op: Op, args: &[Value]) -> Value {
        let last = self.inst(op, Type::Void, 0, args);
        let out = std::mem::take(&mut self.out);
        self.func.extend(block, &out);
        last
    }

    /// Makes the loop's entry edge lead to `block`.
    fn enter_at(&mut self, block: Block) {
        let (body, entry) = (self.head, self.entry);
        let pred = self.func.block(body).preds[entry];
        let succs = &mut self.func.block_mut(pred).succs;
        let succ = succs.iter().position(|&succ| succ == body).expect("an edge is listed at both its ends");
        succs[succ] = block;
        self.func.push_pred(block, pred);
        self.func.block_mut(body).preds[entry] = block;
    }

    /// Whether there are enough rounds for the vector loop.
    fn enough(&mut self, rounds: Value) -> Value {
        let Plan { ending, rounds: at_once, layout, .. } = self.plan;
        let least = self.constant(match ending {
            Some(_) => (layout.copies(LEAST_COPIES) / layout.unrolled as u64).max(*at_once) - 1,
            None => LEAST * at_once,
        });
        self.less(least, rounds)
    }

    /// Ends a block of the check: goes on if a condition is true, else to the loop. If that edge is new, the caller adds its
    /// predecessor.
    fn branch_if(&mut self, block: Block, condition: Value, then: Block) {
        self.end(block, Op::Branch, &[condition]);
        self.func.add_edge(block, then);
        if self.func.block(self.head).preds[self.entry] == block {
            self.func.push_succ(block, self.head);
        }
    }

    /// The value in round 0 of a term: the start of an induction, or an invariant value, computed outside of the loop.
    fn invariant(&mut self, value: Value) -> Value {
        if let Some(&start) = self.starts.get(&value) {
            return start;
        }
        if let Some(&copy) = self.copies.get(&value) {
            return copy;
        }
        if !self.own.contains(&value) {
            return value;
        }
        // Operands stand before their users, so this depth is at most the length of the block.
        let args: Vec<Value> = self.func.args(value).to_vec();
        let args: Vec<Value> = args.into_iter().map(|arg| self.invariant(arg)).collect();
        let inst = self.func.inst(value);
        let (op, ty, pc, aux, imm) = (inst.op, inst.ty, inst.pc, inst.aux, inst.imm);
        let copy = self.func.create(op, ty, pc, aux, imm, &args);
        self.out.push(copy);
        self.copies.insert(value, copy);
        copy
    }

    /// A linear form in round 0.
    fn linear(&mut self, form: &Linear) -> Value {
        let mut sum = None;
        for &(value, factor) in &form.terms {
            let mut term = self.invariant(value);
            if factor != 1 {
                let factor = self.number(Type::I32, factor.into());
                term = self.inst(Op::Mul, Type::I32, 0, &[term, factor]);
            }
            sum = Some(match sum {
                None => term,
                Some(sum) => self.inst(Op::Add, Type::I32, 0, &[sum, term]),
            });
        }
        match sum {
            Some(sum) if form.constant == 0 => sum,
            Some(sum) => {
                let constant = self.number(Type::I32, form.constant.into());
                self.inst(Op::Add, Type::I32, 0, &[sum, constant])
            }
            None => self.number(Type::I32, form.constant.into()),
        }
    }

    /// The number of rounds of the loop.
    fn trip(&mut self) -> Value {
        let control = &self.plan.control;
        let extend = match control.test {
            Test::Less { signed: true, .. } | Test::Greater { signed: true, .. } => Op::ExtendS,
            Test::Less { signed: false, .. } | Test::Greater { signed: false, .. } | Test::Differs => Op::ExtendU,
        };
        let controls = [&control.tested, &control.bound].map(|form| self.linear(form));
        self.controls = Some(controls);
        let [tested, bound] = controls.map(|value| self.inst(extend, Type::I64, 0, &[value]));
        precheck::rounds(self, control.test, tested, bound, control.step)
    }

    /// The rounds for which there is fuel, of those that the loop makes, and whether the vector loop may make them.
    fn fitting(&mut self, rounds: Value) -> (Value, Value) {
        let plan = self.plan;
        let memory64 = self.module.is_some_and(|module| module.memories[plan.memory as usize].memory64);
        debug_assert!(!memory64);
        let mut rounds = rounds;
        let mut conditions = Vec::new();
        if let Some((_, cost)) = plan.fuel {
            let (left, zero) = (self.inst(Op::FuelLeft, Type::I64, 0, &[]), self.constant(0));
            let overdrawn = self.less(left, zero);
            let left = self.select(overdrawn, zero, left);
            let paid = self.divide(left, cost);
            rounds = self.least(paid, rounds);
            conditions.push(self.enough(rounds));
        }
        let log2 = self.module.map_or(PAGE_LOG2, |module| module.memories[plan.memory as usize].page_size_log2);
        let pages = self.func.create(Op::MemorySize, Type::I32, self.pc, plan.memory, 0, &[]);
        self.out.push(pages);
        let pages = self.inst(Op::ExtendU, Type::I64, 0, &[pages]);
        let log2 = self.constant(log2.into());
        let len = self.inst(Op::Shl, Type::I64, 0, &[pages, log2]);
        let mut extents = Vec::new();
        for group in &plan.groups {
            let start = self.linear(&group.base);
            let start = self.inst(Op::ExtendU, Type::I64, 0, &[start]);
            let extent = Extent { start, from: group.from, to: group.to, stride: group.stride, descends: plan.layout.descends };
            conditions.push(precheck::fit(self, extent, len, rounds));
            extents.push(extent);
        }
        let span = (plan.rounds - 1) * plan.groups.iter().map(|group| u64::from(group.stride)).max().unwrap_or(0);
        for check in &plan.checks {
            let (a, b) = (extents[check.stores], extents[check.other]);
            conditions.push(match check.together {
                Some(ahead) => precheck::are_apart_together(self, a, b, span, ahead),
                None => precheck::are_apart(self, a, b, rounds),
            });
        }
        let all = conditions.into_iter().reduce(|all, condition| self.both(all, condition));
        (rounds, all.expect("the loop has accesses"))
    }

    /// The number of rounds of the vector loop. At least one round of the loop is left to itself, unless [`Emit::finish`] can end it.
    fn vector_rounds(&mut self, rounds: Value) -> Value {
        let one = self.constant(1);
        let rounds = if self.plan.ending.is_some() { rounds } else { self.sub(rounds, one) };
        self.divide(rounds, self.plan.rounds)
    }

    /// What the vector loop begins with.
    fn set_up(&mut self, left: Value) -> Carried {
        let plan = self.plan;
        let mut addresses = Vec::new();
        for group in &plan.groups {
            addresses.push((group.stride != 0).then(|| self.first_address(group)));
        }
        let mut sums = Vec::new();
        for reduction in &plan.work.reductions {
            let neutral = match reduction.combine {
                Combine::Op(Op::And) => self.pattern(Type::V256, u64::MAX),
                Combine::Op(_) | Combine::Vector { idempotent: false } => self.pattern(Type::V256, 0),
                Combine::Extreme(_) | Combine::Vector { idempotent: true } => self.splat(self.starts[&reduction.phi]),
            };
            sums.push(vec![neutral; plan.vectors as usize]);
        }
        let before = plan.work.recurrences.iter().map(|recurrence| self.splat(self.starts[&recurrence.phi])).collect();
        let ramps = plan.work.ramps.iter().map(|ramp| self.ramp(ramp)).collect();
        Carried { left, addresses, sums, before, ramps }
    }

    /// The lowest address of a group in the first round of the vector loop.
    fn first_address(&mut self, group: &Group) -> Value {
        let first = self.linear(&group.base);
        if !self.plan.layout.descends {
            return first;
        }
        let below = self.number(Type::I32, u64::from(group.stride) * (self.plan.rounds - 1));
        self.inst(Op::Sub, Type::I32, 0, &[first, below])
    }

    /// A constant vector of these 64 bits.
    fn pattern(&mut self, ty: Type, bits: u64) -> Value {
        let half = self.number(Type::I64, bits);
        self.vector(Opcode::V128Const, ty, 0, &[half, half])
    }

    /// The low bits of a constant in all lanes.
    fn lanes_of(&mut self, number: u64) -> Value {
        let bits = 8 * self.plan.layout.lane;
        let low = if bits == 64 { number } else { number & ((1 << bits) - 1) };
        self.pattern(Type::V256, (0..64).step_by(bits as usize).fold(0, |all, at| all | low << at))
    }

    /// A number in all lanes.
    fn splat(&mut self, number: Value) -> Value {
        let ty = self.func.ty(number);
        if let (Type::V128, Some(bits)) = (ty, self.func.as_vector(number)) {
            let halves = [bits, bits >> 64].map(|half| self.number(Type::I64, half as u64));
            return self.vector(Opcode::V128Const, Type::V256, 0, &halves);
        }
        if ty == Type::V128 {
            return self.inst(Op::Join, Type::V256, 0, &[number, number]);
        }
        let mut number = number;
        if ty == Type::I64 && self.plan.layout.lane < 8 {
            number = self.inst(Op::Wrap, Type::I32, 0, &[number]);
        }
        let shape = self.shape(self.plan.layout.lane, ty.is_float());
        let splat = instruction(Lanes { from: shape, shape, op: LaneOp::Lane(Lane::Splat) });
        self.vector(splat, Type::V256, 0, &[number])
    }

    fn shape(&self, bytes: u64, float: bool) -> Shape {
        pack::shape(bytes, float).expect("a lane has 1, 2, 4 or 8 bytes, and 4 or 8 if it is a float")
    }

    /// `a + b` in each lane.
    fn sum_of_lanes(&mut self, a: Value, b: Value) -> Value {
        let shape = self.shape(self.plan.layout.lane, false);
        let add = instruction(Lanes { from: shape, shape, op: LaneOp::Integer(Integer::Add) });
        self.vector(add, Type::V256, 0, &[a, b])
    }

    /// The first vector of a ramp. A constant of 256 bits would have two equal halves: the distances have half the width.
    fn ramp(&mut self, ramp: &Ramp) -> Value {
        let first = self.linear(&ramp.form);
        let first = self.splat(first);
        let (lane, bits) = (self.plan.layout.lane, 4 * self.plan.layout.lane);
        let mask = (1u128 << bits) - 1;
        let packed = ramp.offsets.iter().rev().fold(0, |all, &offset| all << bits | (offset as u128 & mask));
        let halves = [0, 64].map(|at| self.number(Type::I64, (packed >> at) as u64));
        let packed = self.vector(Opcode::V128Const, Type::V128, 0, &halves);
        let (from, shape) = (self.shape(lane / 2, false), self.shape(lane, false));
        let widen = instruction(Lanes { from, shape, op: LaneOp::Widen(Widen::ExtendLowS) });
        let offsets = self.vector(widen, Type::V256, 0, &[packed]);
        self.sum_of_lanes(first, offsets)
    }

    /// By node, the vector that does not change.
    fn splats(&mut self) -> Vec<Option<Value>> {
        let nodes = &self.plan.work.nodes;
        nodes
            .iter()
            .map(|node| match node {
                Node::Splat(value) => {
                    let value = self.invariant(*value);
                    Some(self.splat(value))
                }
                Node::Uniform(load) => {
                    let inst = self.func.inst(*load);
                    let (op, ty, pc, aux, imm, address) = (inst.op, inst.ty, inst.pc, inst.aux, inst.imm, inst.args[0]);
                    let address = self.invariant(address);
                    let value = self.func.create(op, ty, pc, aux, imm, &[address]);
                    self.out.push(value);
                    Some(self.splat(value))
                }
                Node::Number(number) => Some(self.lanes_of(*number)),
                Node::Shift(_, _, Count::Value(invariant)) | Node::Shuffle(_, invariant) => {
                    // So that it is not computed in the loop.
                    self.invariant(*invariant);
                    None
                }
                Node::Shift(_, _, Count::Number(_)) | Node::Load(_) | Node::Op(..) | Node::Splice(_) | Node::Ramp(_) => None,
            })
            .collect()
    }

    /// By ramp, what to add for each vector of a round, and for the next round.
    fn ramp_steps(&mut self) -> Vec<Vec<Value>> {
        let plan = self.plan;
        let steps = |ramp: &Ramp| (0..=plan.vectors).map(|which| self.lanes_of(u64::from(ramp.step) * which)).collect();
        plan.work.ramps.iter().map(steps).collect()
    }

    fn phi(&mut self, ty: Type) -> Value {
        self.inst(Op::Phi, ty, 0, &[])
    }

    /// Phis for what the vector loop passes on; their arguments follow.
    fn phis_of(&mut self, first: &Carried) -> Carried {
        let left = self.phi(Type::I64);
        let addresses = first.addresses.iter().map(|address| address.map(|_| self.phi(Type::I32))).collect();
        let sums = first.sums.iter().map(|sums| sums.iter().map(|_| self.phi(Type::V256)).collect()).collect();
        let before = first.before.iter().map(|_| self.phi(Type::V256)).collect();
        let ramps = first.ramps.iter().map(|_| self.phi(Type::V256)).collect();
        Carried { left, addresses, sums, before, ramps }
    }

    /// Sets the arguments of the phis at the head.
    fn close(&mut self, phis: &Carried, first: &Carried, next: &Carried) {
        for ((phi, first), next) in phis.all().zip(first.all()).zip(next.all()) {
            self.func.set_args(phi, &[first, next]);
        }
    }

    /// Phis at the exit, which the head and the end of the vector loop reach.
    fn joined(&mut self, at_head: &Carried, next: &Carried) -> Carried {
        let phis = self.phis_of(next);
        for ((phi, head), next) in phis.all().zip(at_head.all()).zip(next.all()) {
            self.func.set_args(phi, &[head, next]);
        }
        phis
    }

    /// Whether a poll would call the host.
    fn poll(&mut self) -> Value {
        let now = self.inst(Op::Epoch, Type::I64, 0, &[]);
        let deadline = self.inst(Op::Deadline, Type::I64, 0, &[]);
        self.inst(Op::GeU, Type::I32, 0, &[now, deadline])
    }

    /// Charges the fuel of a round.
    fn charge(&mut self) {
        if let Some((first, cost)) = self.plan.fuel {
            let pc = std::mem::replace(&mut self.pc, self.func.inst(first).pc);
            self.inst(Op::Fuel, Type::Void, cost * self.plan.rounds, &[]);
            self.pc = pc;
        }
    }

    /// The work of a round, and what it passes on.
    fn body(&mut self, at: &Carried, splats: &[Option<Value>], steps: &[Vec<Value>]) -> Carried {
        let plan = self.plan;
        // In the order of the rounds.
        let mut all: Vec<Vec<Value>> = Vec::new();
        for round in 0..plan.vectors {
            let which = if plan.layout.descends { plan.vectors - 1 - round } else { round };
            let vectors = self.nodes(at, splats, steps, &all, which);
            all.push(vectors);
        }
        for store in &plan.work.stores {
            for which in 0..plan.vectors {
                let round = if plan.layout.descends { plan.vectors - 1 - which } else { which };
                self.store(at, store, &all[round as usize], which);
            }
        }
        let mut sums = Vec::new();
        for (reduction, so_far) in plan.work.reductions.iter().zip(&at.sums) {
            let vectors = all.iter().map(|vectors| vectors[reduction.node]);
            let added =
                so_far.iter().zip(vectors).map(|(&sum, vector)| self.vector(reduction.lanes, Type::V256, 0, &[sum, vector]));
            sums.push(added.collect());
        }
        let addresses = plan.groups.iter().zip(&at.addresses).map(|(group, address)| {
            address.map(|address| {
                let step = self.number(Type::I32, u64::from(group.stride) * plan.rounds);
                self.inst(if plan.layout.descends { Op::Sub } else { Op::Add }, Type::I32, 0, &[address, step])
            })
        });
        let addresses = addresses.collect();
        let last = all.last().expect("there is a vector");
        let before = plan.work.recurrences.iter().map(|recurrence| last[recurrence.node]).collect();
        let grown = at.ramps.iter().zip(steps);
        let ramps = grown.map(|(&ramp, steps)| self.sum_of_lanes(ramp, steps[plan.vectors as usize])).collect();
        let one = self.constant(1);
        Carried { left: self.sub(at.left, one), addresses, sums, before, ramps }
    }

    /// The vectors with the number `which` of all nodes; `earlier` are those of earlier rounds.
    fn nodes(
        &mut self,
        at: &Carried,
        splats: &[Option<Value>],
        steps: &[Vec<Value>],
        earlier: &[Vec<Value>],
        which: u64,
    ) -> Vec<Value> {
        let work = &self.plan.work;
        let mut vectors: Vec<Value> = Vec::new();
        for (node, &splat) in work.nodes.iter().zip(splats) {
            let vector = match node {
                Node::Splat(..) | Node::Number(_) | Node::Uniform(..) => splat.expect("it was made before the loop"),
                Node::Load(load) => self.load(at, load, which),
                Node::Op(opcode, args) => {
                    let args: Vec<Value> = args.iter().map(|&arg| vectors[arg]).collect();
                    self.vector(*opcode, Type::V256, 0, &args)
                }
                Node::Shift(opcode, arg, count) => {
                    let count = match count {
                        Count::Number(bits) => self.number(Type::I32, *bits),
                        Count::Value(value) => self.invariant(*value),
                    };
                    self.vector(*opcode, Type::V256, 0, &[vectors[*arg], count])
                }
                Node::Shuffle([a, b], lanes) => {
                    let lanes = self.invariant(*lanes);
                    self.vector(Opcode::I8x16Shuffle, Type::V256, 0, &[vectors[*a], vectors[*b], lanes])
                }
                Node::Splice(recurrence) => {
                    let node = work.recurrences[*recurrence].node;
                    let before = earlier.last().map_or(at.before[*recurrence], |vectors| vectors[node]);
                    let lane = self.plan.layout.lane;
                    match self.plan.layout.descends {
                        true => self.inst(Op::Splice, Type::V256, VECTOR - lane, &[vectors[node], before]),
                        false => self.inst(Op::Splice, Type::V256, lane, &[before, vectors[node]]),
                    }
                }
                Node::Ramp(ramp) if which == 0 => at.ramps[*ramp],
                Node::Ramp(ramp) => self.sum_of_lanes(at.ramps[*ramp], steps[*ramp][which as usize]),
            };
            vectors.push(vector);
        }
        vectors
    }

    /// The exit: the phis of the loop as they are after the rounds of the vector loop.
    fn leave(&mut self, exit: Block, total: Value, last: &Carried) {
        let plan = self.plan;
        let vector_rounds = self.sub(total, last.left);
        let done = self.inst(Op::Wrap, Type::I32, 0, &[vector_rounds]);
        let mut values: FxHashMap<Value, Value> = FxHashMap::default();
        for induction in &plan.inductions {
            let step = self.number(Type::I32, u64::from(induction.step.wrapping_mul(plan.rounds as u32)));
            let added = self.inst(Op::Mul, Type::I32, 0, &[done, step]);
            values.insert(induction.phi, self.inst(Op::Add, Type::I32, 0, &[induction.start, added]));
        }
        for phi in plan.work.carried() {
            values.insert(phi, self.carried(phi, vector_rounds, last));
        }
        self.end(exit, Op::Jump, &[]);
        self.func.add_edge(exit, self.head);
        let phis: Vec<(Value, Value)> = self.func.phis(self.head).zip(self.func.phis(plan.block)).collect();
        for (phi, planned) in phis {
            // The new edges come from the check and from the exit.
            let mut args = self.func.args(phi).to_vec();
            args.extend([self.starts[&planned], values[&planned]]);
            self.func.set_args(phi, &args);
        }
    }

    /// The phi of a reduction or a recurrence after this many rounds of the vector loop.
    fn carried(&mut self, phi: Value, vector_rounds: Value, last: &Carried) -> Value {
        let work = &self.plan.work;
        if let Some((_, &before)) = work.recurrences.iter().zip(&last.before).find(|(it, _)| it.phi == phi) {
            return self.last_lane(before, self.func.ty(phi));
        }
        let (reduction, sums) = work.reductions.iter().zip(&last.sums).find(|(it, _)| it.phi == phi).expect("it is one of them");
        let sum = self.reduced(reduction, sums);
        self.with_invariants(reduction, sum, vector_rounds)
    }

    /// `sum`, and the invariant values that each round adds.
    fn with_invariants(&mut self, reduction: &Reduction, sum: Value, vector_rounds: Value) -> Value {
        let ty = self.func.ty(reduction.phi);
        let mut sum = sum;
        for &value in &reduction.invariants {
            let value = self.invariant(value);
            let made = self.times(vector_rounds, self.plan.rounds);
            let made = if ty == Type::I32 { self.inst(Op::Wrap, Type::I32, 0, &[made]) } else { made };
            let added = self.inst(Op::Mul, ty, 0, &[value, made]);
            sum = self.inst(Op::Add, ty, 0, &[sum, added]);
        }
        sum
    }

    /// The number of the last round in a vector. The bits of a number that is wider than a lane are zero above it.
    fn last_lane(&mut self, vector: Value, ty: Type) -> Value {
        let [low, high] = self.halves(vector);
        if ty == Type::V128 {
            return if self.plan.layout.descends { low } else { high };
        }
        let lane = self.plan.layout.lane;
        let (half, place) = if self.plan.layout.descends { (low, 0) } else { (high, 16 / lane - 1) };
        let shape = self.shape(lane, ty.is_float());
        let op = LaneOp::Lane(if lane < 4 { Lane::ExtractLaneU } else { Lane::ExtractLane });
        let extract = instruction(Lanes { from: shape, shape, op });
        let extracted = if ty == Type::I64 && lane < 8 { Type::I32 } else { ty };
        let number = self.vector(extract, extracted, place, &[half]);
        if extracted == ty { number } else { self.inst(Op::ExtendU, ty, 0, &[number]) }
    }

    /// The reduction of the start and all lanes.
    fn reduced(&mut self, reduction: &Reduction, sums: &[Value]) -> Value {
        let ty = self.func.ty(reduction.phi);
        let mut sum = sums[0];
        for &other in &sums[1..] {
            sum = self.vector(reduction.lanes, Type::V256, 0, &[sum, other]);
        }
        let halves = self.halves(sum);
        let mut sum = self.vector(reduction.lanes, Type::V128, 0, &halves);
        let start = self.starts[&reduction.phi];
        if let Combine::Vector { .. } = reduction.combine {
            return self.vector(reduction.lanes, ty, 0, &[start, sum]);
        }
        let extract = match ty {
            Type::I32 => {
                let swapped = self.words(sum, sum, [2, 3, 0, 1]);
                sum = self.vector(reduction.lanes, Type::V128, 0, &[sum, swapped]);
                let swapped = self.words(sum, sum, [1, 0, 3, 2]);
                sum = self.vector(reduction.lanes, Type::V128, 0, &[sum, swapped]);
                Opcode::I32x4ExtractLane
            }
            Type::I64 | Type::F32 | Type::F64 | Type::V128 | Type::V256 | Type::Ref | Type::Gc | Type::Void => {
                let swapped = self.words(sum, sum, [2, 3, 0, 1]);
                sum = self.vector(reduction.lanes, Type::V128, 0, &[sum, swapped]);
                Opcode::I64x2ExtractLane
            }
        };
        let number = self.vector(extract, ty, 0, &[sum]);
        match reduction.combine {
            Combine::Extreme(compare) => {
                let beyond = self.inst(compare, Type::I32, 0, &[number, start]);
                self.inst(Op::Select, ty, 0, &[beyond, number, start])
            }
            Combine::Op(op) => self.inst(op, ty, 0, &[start, number]),
            Combine::Vector { .. } => unreachable!("it has no number"),
        }
    }
}

fn instruction(lanes: Lanes) -> Opcode {
    pack::instruction(lanes).expect("there is an instruction for each shape")
}

impl Carried {
    /// All values, in one order.
    fn all(&self) -> impl Iterator<Item = Value> + '_ {
        let addresses = self.addresses.iter().flatten().copied();
        let vectors = self.sums.iter().flatten().chain(&self.before).chain(&self.ramps).copied();
        std::iter::once(self.left).chain(addresses).chain(vectors)
    }
}
