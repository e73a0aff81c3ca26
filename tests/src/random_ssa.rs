//! Random well-formed functions, with any control flow, reducible or not, and any operation, on few values so that they
//! interact.

use crate::rng::Rng;
use bumpalo::Bump;
use weir_bytecode::opcodes::Immediates;
use weir_bytecode::{Opcode, Trap};
use weir_jit::analysis::{Cfg, Dominators};
use weir_jit::ir::sandbox::Sandbox;
use weir_jit::ir::{Block, Entry, EvalError, Fields, Func, Op, Outcome, Type, Value, eval};

/// The types of values.
pub const TYPES: [Type; 6] = [Type::I32, Type::I64, Type::F32, Type::F64, Type::V128, Type::Ref];

/// A function with one parameter of each of [`TYPES`] and up to three results. Blocks that may be in a loop poll, so
/// that every run can be ended.
pub fn function<'a>(arena: &'a Bump, rng: &mut Rng) -> Func<'a> {
    filled(arena, rng, (any_degree, any_target), Filler::fill)
}

/// A function as [`function`] returns, but with few instructions besides phis and branches. The branches are on a few
/// conditions and on phis of constants, so that one decision often implies others. Some blocks make a call, which shows
/// the path that was taken.
pub fn branches<'a>(arena: &'a Bump, rng: &mut Rng) -> Func<'a> {
    filled(arena, rng, (any_degree, near_target), Filler::fill_sparsely)
}

/// A function as [`function`] returns, but where most blocks jump to one that only dispatches, often with a constant as index.
pub fn dispatches<'a>(arena: &'a Bump, rng: &mut Rng) -> Func<'a> {
    filled(arena, rng, (dispatched_degree, dispatched_target), Filler::fill_dispatching)
}

/// A function with edges chosen by `edges`, whose blocks are filled by `fill`.
fn filled<'a, 'r>(
    arena: &'a Bump,
    rng: &'r mut Rng,
    edges: (Degree, Target),
    fill: fn(&mut Filler<'r>, &mut Func<'_>, Block, bool),
) -> Func<'a> {
    let results: Vec<Type> = (0..rng.below(4)).map(|_| *rng.pick(&TYPES)).collect();
    let mut func = Func::new(arena, 0, Entry::Call, TYPES, results);
    control_flow(&mut func, rng, edges);
    let cfg = Cfg::compute(&func);
    let dom = Dominators::compute(&func, &cfg);
    let none = vec![Vec::new(); func.num_blocks()];
    let mut filler = Filler { rng, pc: 0, available: none.clone(), tested: none, accessed: None };
    for &block in dom.preorder() {
        if let Some(idom) = dom.idom(block) {
            filler.available[block.index()] = filler.available[idom.index()].clone();
            filler.tested[block.index()] = filler.tested[idom.index()].clone();
        }
        let loops = func.block(block).preds.iter().any(|&pred| cfg.position(pred) >= cfg.position(block));
        fill(&mut filler, &mut func, block, loops);
    }
    for &block in cfg.order() {
        let phis: Vec<Value> = func.phis(block).collect();
        for phi in phis {
            let preds = func.block(block).preds.to_vec();
            let args: Vec<Value> = preds.iter().map(|pred| filler.phi_arg(&func, *pred, func.ty(phi))).collect();
            func.set_args(phi, &args);
        }
    }
    func
}

/// The wide slot of a constant of type `ty`, which may be an edge case or random.
pub fn constant(rng: &mut Rng, ty: Type) -> u128 {
    let bits = rng.bits();
    let small = i64::from(rng.below(5)) - 2;
    let slot = match (ty, rng.below(4)) {
        (Type::V128, 0) => return u128::from(bits) << 64 | u128::from(rng.bits()),
        (Type::V128, 1) => return u128::from(small as u32) * (u128::MAX / u128::from(u32::MAX)),
        (Type::V128, 2) => return u128::from((small as f64).to_bits()) << 64,
        (Type::I32, 0) => bits & 0xFFFF_FFFF,
        (Type::I32, 1) => 1 << rng.below(32),
        (Type::I32, _) => u64::from(small as u32),
        (Type::I64, 0) => bits,
        (Type::I64, 1) => 1 << rng.below(64),
        (Type::I64 | Type::V128, _) => small as u64,
        (Type::F32, 0) => bits & 0xFFFF_FFFF,
        (Type::F32, _) => (small as f32).to_bits().into(),
        // Null is the only constant reference.
        (Type::Ref, _) => 0,
        (_, 0) => bits,
        _ => (small as f64).to_bits(),
    };
    slot.into()
}

/// Everything that can be observed of a few runs, with arguments of this seed.
pub fn observe(func: &Func<'_>, seed: u64) -> Vec<(Result<Outcome, EvalError>, Sandbox)> {
    /// The maximum number of instructions of a run.
    const STEPS: u64 = 100_000;
    let mut rng = Rng::new(seed ^ 0xA5A5);
    (0..4)
        .map(|_| {
            let args: Vec<u128> = func.params.iter().map(|&ty| constant(&mut rng, ty)).collect();
            let mut world = Sandbox { polls: Some(30), fuel: Some(60), ..Sandbox::default() };
            let end = eval(func, &mut world, &args, STEPS);
            (end, world)
        })
        .collect()
}

/// Chooses the number of successors of a block.
type Degree = fn(&mut Rng, usize) -> u32;

fn any_degree(rng: &mut Rng, _: usize) -> u32 {
    *rng.pick(&[0, 1, 1, 1, 2, 2, 2, 2, 2, 4])
}

/// The second block dispatches, and most others have one successor.
fn dispatched_degree(rng: &mut Rng, block: usize) -> u32 {
    if block == 1 { 3 + rng.below(3) } else { *rng.pick(&[0, 1, 1, 1, 1, 1, 2, 2, 2, 4]) }
}

/// Chooses a random successor for a block.
type Target = fn(&mut Rng, usize, usize) -> usize;

/// Mostly forward, so that most functions make progress.
fn any_target(rng: &mut Rng, block: usize, count: usize) -> usize {
    let from = if rng.one_in(4) { 1 } else { (block + 1).min(count - 1) };
    from + rng.below((count - from) as u32) as usize
}

/// One of the next three blocks, so that there are many joins; rarely any block.
fn near_target(rng: &mut Rng, block: usize, count: usize) -> usize {
    if rng.one_in(16) { any_target(rng, block, count) } else { (block + 1 + rng.below(3) as usize).min(count - 1) }
}

/// Mostly the second block.
fn dispatched_target(rng: &mut Rng, block: usize, count: usize) -> usize {
    if block != 1 && rng.percent(60) { 1 } else { any_target(rng, block, count) }
}

/// Generates blocks and edges; unreachable blocks get no edges.
fn control_flow(func: &mut Func<'_>, rng: &mut Rng, (degree, target): (Degree, Target)) {
    let count = 1 + rng.below(10) as usize;
    let succs: Vec<Vec<usize>> = (0..count)
        .map(|block| {
            let degree = if count == 1 { 0 } else { degree(rng, block) };
            (0..degree).map(|_| target(rng, block, count)).collect()
        })
        .collect();
    let mut reachable = vec![false; count];
    let mut work = vec![0];
    while let Some(block) = work.pop() {
        if !std::mem::replace(&mut reachable[block], true) {
            work.extend(&succs[block]);
        }
    }
    for _ in 0..count {
        func.create_block();
    }
    for (block, succs) in succs.iter().enumerate().filter(|&(block, _)| reachable[block]) {
        for &succ in succs {
            func.add_edge(Block(block as u32), Block(succ as u32));
        }
    }
}

struct Filler<'r> {
    rng: &'r mut Rng,
    pc: u32,
    /// The values that dominate the end of each block.
    available: Vec<Vec<Value>>,
    /// The conditions of branches that dominate the end of each block, including its own.
    tested: Vec<Vec<Value>>,
    /// The last access: its block, address and offset.
    accessed: Option<(Block, Value, u64)>,
}

impl Filler<'_> {
    fn emit(&mut self, func: &mut Func<'_>, block: Block, op: Op, ty: Type, (aux, imm): (u32, u64), args: &[Value]) -> Value {
        self.pc += 1;
        let value = func.append(block, op, ty, self.pc, aux, imm, args);
        if ty != Type::Void {
            self.available[block.index()].push(value);
        }
        value
    }

    fn constant(&mut self, func: &mut Func<'_>, block: Block, ty: Type) -> Value {
        let slot = constant(self.rng, ty);
        self.constant_of(func, block, ty, slot)
    }

    fn constant_of(&mut self, func: &mut Func<'_>, block: Block, ty: Type, slot: u128) -> Value {
        let (low, high) = (slot as u64, (slot >> 64) as u64);
        if high == 0 {
            return self.emit(func, block, Op::Const, ty, (0, low), &[]);
        }
        let halves = [low, high].map(|half| self.emit(func, block, Op::Const, Type::I64, (0, half), &[]));
        self.emit(func, block, Op::Vector, Type::V128, (Opcode::V128Const as u32, 0), &halves)
    }

    /// A value of type `ty` that is available at the end of `block`, preferably a recent one.
    fn value(&mut self, func: &Func<'_>, block: Block, ty: Type) -> Value {
        let all: Vec<Value> = self.available[block.index()].iter().copied().filter(|&value| func.ty(value) == ty).collect();
        let oldest = if self.rng.one_in(2) { 0 } else { all.len().saturating_sub(3) };
        *self.rng.pick(&all[oldest..])
    }

    /// A value for a phi: like `value`, but often a constant.
    fn phi_arg(&mut self, func: &Func<'_>, pred: Block, ty: Type) -> Value {
        let constant = |&value: &Value| func.op(value) == Op::Const && func.ty(value) == ty;
        let constants: Vec<Value> = self.available[pred.index()].iter().copied().filter(constant).collect();
        if !constants.is_empty() && self.rng.one_in(2) { *self.rng.pick(&constants) } else { self.value(func, pred, ty) }
    }

    /// A value for an operand: like `value`, or a new constant.
    fn operand(&mut self, func: &mut Func<'_>, block: Block, ty: Type) -> Value {
        if self.rng.one_in(4) { self.constant(func, block, ty) } else { self.value(func, block, ty) }
    }

    fn params(&mut self, func: &mut Func<'_>) {
        for (i, ty) in TYPES.into_iter().enumerate() {
            self.emit(func, Block::ENTRY, Op::Param, ty, (0, i as u64), &[]);
        }
    }

    /// Fills a block for [`branches`].
    fn fill_sparsely(&mut self, func: &mut Func<'_>, block: Block, loops: bool) {
        let mut own = None;
        if block == Block::ENTRY {
            self.params(func);
            let [number, wide] = [Type::I32, Type::I64].map(|ty| self.value(func, block, ty));
            let [_, one] = [0, 1].map(|bit| self.constant_of(func, block, Type::I32, bit));
            let wrapped = self.emit(func, block, Op::Wrap, Type::I32, (0, 0), &[wide]);
            let bits = [number, wrapped].map(|number| self.emit(func, block, Op::And, Type::I32, (0, 0), &[number, one]));
            self.tested[block.index()].extend(bits);
        } else if self.rng.one_in(2) {
            // Used only by this block's branch.
            let phi = self.emit(func, block, Op::Phi, Type::I32, (0, 0), &[]);
            self.available[block.index()].retain(|&value| value != phi);
            own = Some(phi);
        }
        if loops {
            self.emit(func, block, Op::Poll, Type::Void, (0, 0), &[]);
        }
        if self.rng.one_in(3) {
            self.emit(func, block, Op::Call, Type::Void, (block.index() as u32, 0), &[]);
        }
        if func.block(block).succs.len() == 2 {
            let condition = own.unwrap_or_else(|| *self.rng.pick(&self.tested[block.index()]));
            self.emit(func, block, Op::Branch, Type::Void, (0, 0), &[condition]);
        } else {
            self.terminator(func, block);
        }
    }

    /// Fills a block for [`dispatches`].
    fn fill_dispatching(&mut self, func: &mut Func<'_>, block: Block, loops: bool) {
        if block == Block::ENTRY || func.block(block).succs.len() < 3 {
            self.head(func, block, loops);
            let label = self.rng.below(5).into();
            self.constant_of(func, block, Type::I32, label);
            return self.rest(func, block);
        }
        let index = self.emit(func, block, Op::Phi, Type::I32, (0, 0), &[]);
        self.head(func, block, loops);
        if self.rng.one_in(2) {
            self.emit(func, block, Op::Fuel, Type::Void, (0, 3), &[]);
        }
        self.emit(func, block, Op::BrTable, Type::Void, (0, 0), &[index]);
    }

    fn fill(&mut self, func: &mut Func<'_>, block: Block, loops: bool) {
        self.head(func, block, loops);
        self.rest(func, block);
    }

    /// Parameters or phis, and a poll.
    fn head(&mut self, func: &mut Func<'_>, block: Block, loops: bool) {
        if block == Block::ENTRY {
            self.params(func);
        } else {
            for _ in 0..self.rng.below(4) {
                let ty = *self.rng.pick(&TYPES);
                self.emit(func, block, Op::Phi, ty, (0, 0), &[]);
            }
        }
        if loops {
            self.emit(func, block, Op::Poll, Type::Void, (0, 0), &[]);
        }
    }

    fn rest(&mut self, func: &mut Func<'_>, block: Block) {
        // Some blocks contain only phis and a terminator.
        let count = if self.rng.one_in(3) { 0 } else { self.rng.below(10) };
        for _ in 0..count {
            self.instruction(func, block);
        }
        if count > 0 && self.rng.one_in(2) {
            self.show(func, block);
        }
        self.terminator(func, block);
    }

    /// Calls a function with every value defined in `block`, so that the values can be observed.
    fn show(&mut self, func: &mut Func<'_>, block: Block) {
        let made: Vec<Value> = func.block(block).insts.iter().copied().filter(|&value| func.ty(value) != Type::Void).collect();
        self.emit(func, block, Op::Call, Type::Void, (9, 0), &made);
    }

    fn instruction(&mut self, func: &mut Func<'_>, block: Block) {
        let none = (0, 0);
        let ty = *self.rng.pick(&TYPES);
        match self.rng.below(32) {
            0..3 => {
                self.constant(func, block, ty);
            }
            3 => {
                let args = [self.value(func, block, Type::I32)];
                self.emit(func, block, Op::Eqz, Type::I32, none, &args);
            }
            4 => {
                let args = [self.value(func, block, Type::I32), self.value(func, block, ty), self.value(func, block, ty)];
                self.emit(func, block, Op::Select, ty, none, &args);
            }
            5 => {
                let args = [self.value(func, block, ty)];
                let global = self.rng.below(3);
                self.emit(func, block, Op::GlobalSet, Type::Void, (global, 0), &args);
            }
            6 => {
                let global = self.rng.below(3);
                self.emit(func, block, Op::GlobalGet, ty, (global, 0), &[]);
            }
            7 => self.call(func, block),
            8 => self.memory(func, block),
            9 => {
                let cost = u64::from(self.rng.below(9));
                self.emit(func, block, Op::Fuel, Type::Void, (0, cost), &[]);
            }
            10..13 => self.access(func, block),
            13 | 14 => self.table(func, block),
            15..18 => self.vector(func, block),
            _ => self.numeric(func, block),
        }
    }

    /// Emits any vector instruction that does not access memory.
    fn vector(&mut self, func: &mut Func<'_>, block: Block) {
        let (opcode, signature) = loop {
            let opcode = *self.rng.pick(Opcode::ALL);
            match opcode.signature() {
                Some(signature) if opcode.is_vector() && opcode != Opcode::V128Const => break (opcode, signature),
                _ => {}
            }
        };
        let mut args: Vec<Value> = signature.operands.iter().map(|&ty| self.operand(func, block, ty.into())).collect();
        let lane = match opcode.immediates() {
            Immediates::Lane => self.rng.below(opcode.lanes().expect("only instructions on vectors name a lane").shape.lanes()),
            _ => 0,
        };
        if opcode == Opcode::I8x16Shuffle {
            let picked = constant(self.rng, Type::V128) & u128::from_le_bytes([31; 16]);
            args.push(self.constant_of(func, block, Type::V128, picked));
        }
        self.emit(func, block, Op::Vector, signature.result.into(), (opcode as u32, lane.into()), &args);
    }

    /// Emits any operation that represents a numeric instruction, load or store.
    fn numeric(&mut self, func: &mut Func<'_>, block: Block) {
        let (op, operand, result) = self.row(|_| true);
        if op.fields() == Fields::Access {
            return self.load_or_store(func, block, (op, operand, result));
        }
        let args: Vec<Value> = (0..op.arity().unwrap_or(0)).map(|_| self.operand(func, block, operand)).collect();
        self.emit(func, block, op, result, (0, 0), &args);
    }

    /// A random row of TABLE 2 that represents an instruction of the `wanted` kind. There are no references to operate on.
    fn row(&mut self, wanted: impl Fn(Op) -> bool) -> (Op, Type, Type) {
        loop {
            let opcode = *self.rng.pick(Opcode::ALL);
            let fits = |&(op, operand, _): &(Op, Type, Type)| wanted(op) && operand != Type::Ref;
            if let Some(found) = Op::from_opcode(opcode).filter(fits) {
                break found;
            }
        }
    }

    fn access(&mut self, func: &mut Func<'_>, block: Block) {
        let row = self.row(|op| op.fields() == Fields::Access);
        self.load_or_store(func, block, row);
    }

    fn load_or_store(&mut self, func: &mut Func<'_>, block: Block, (op, operand, result): (Op, Type, Type)) {
        let (address, offset) = self.address(func, block);
        self.accessed = Some((block, address, offset));
        if op.arity() == Some(1) {
            self.emit(func, block, op, result, (0, offset), &[address]);
        } else {
            let stored = self.value(func, block, operand);
            self.emit(func, block, op, Type::Void, (0, offset), &[address, stored]);
        }
    }

    /// An address, usually in bounds, and an offset. They are often those of the previous access, or of adjacent bytes.
    fn address(&mut self, func: &mut Func<'_>, block: Block) -> (Value, u64) {
        if let Some((_, address, offset)) = self.accessed.filter(|&(last, ..)| last == block && !self.rng.one_in(3)) {
            let near = *self.rng.pick(&[0, 0, 0, 1, 2, 4, 8]);
            return (address, if self.rng.one_in(2) { offset + near } else { offset.saturating_sub(near) });
        }
        let address = self.value(func, block, Type::I32);
        if !self.rng.one_in(20) {
            let bound = self.emit(func, block, Op::Const, Type::I32, (0, 0xFF), &[]);
            self.emit(func, block, Op::And, Type::I32, (0, 0), &[address, bound]);
        }
        let address = self.available[block.index()].iter().rev().copied().find(|&value| func.ty(value) == Type::I32);
        let address = address.expect("there is an i32 parameter");
        (address, *self.rng.pick(&[0, 0, 4, 100, 65_533]))
    }

    fn call(&mut self, func: &mut Func<'_>, block: Block) {
        let mut args: Vec<Value> = (0..self.rng.below(3))
            .map(|_| {
                let ty = *self.rng.pick(&TYPES);
                self.value(func, block, ty)
            })
            .collect();
        let ty = *self.rng.pick(&[Type::Void, Type::I32, Type::F64]);
        let call = if self.rng.one_in(2) {
            args.push(self.value(func, block, Type::I32));
            self.emit(func, block, Op::CallIndirect, ty, (2, 1), &args)
        } else {
            self.emit(func, block, Op::Call, ty, (7, 0), &args)
        };
        if ty != Type::Void {
            for number in 1..1 + u64::from(self.rng.below(3)) {
                let ty = *self.rng.pick(&TYPES);
                self.emit(func, block, Op::Result, ty, (0, number), &[call]);
            }
        }
    }

    fn memory(&mut self, func: &mut Func<'_>, block: Block) {
        let index = |this: &mut Self, func: &Func<'_>| this.value(func, block, Type::I32);
        match self.rng.below(5) {
            0 => self.emit(func, block, Op::MemorySize, Type::I32, (0, 0), &[]),
            1 => {
                let args = [index(self, func)];
                self.emit(func, block, Op::MemoryGrow, Type::I32, (0, 0), &args)
            }
            2 => self.emit(func, block, Op::DataDrop, Type::Void, (0, 0), &[]),
            kind => {
                let args = [index(self, func), index(self, func), index(self, func)];
                let op = if kind == 3 { Op::MemoryFill } else { Op::MemoryCopy };
                self.emit(func, block, op, Type::Void, (0, 0), &args)
            }
        };
    }

    /// Emits an operation on references or on tables; the second table is empty.
    fn table(&mut self, func: &mut Func<'_>, block: Block) {
        let table = u32::from(self.rng.one_in(8));
        let reference = self.value(func, block, Type::Ref);
        let mut index = |this: &mut Self| {
            let bits = this.rng.below(10).into();
            this.emit(func, block, Op::Const, Type::I32, (0, bits), &[])
        };
        let [a, b, c] = [index(self), index(self), index(self)];
        match self.rng.below(9) {
            0 => self.emit(func, block, Op::RefIsNull, Type::I32, (0, 0), &[reference]),
            1 => self.emit(func, block, Op::RefFunc, Type::Ref, (5, 0), &[]),
            2 => self.emit(func, block, Op::TableGet, Type::Ref, (table, 0), &[a]),
            3 => self.emit(func, block, Op::TableSet, Type::Void, (table, 0), &[a, reference]),
            4 => self.emit(func, block, Op::TableSize, Type::I32, (table, 0), &[]),
            5 => self.emit(func, block, Op::TableGrow, Type::I32, (table, 0), &[reference, a]),
            6 => self.emit(func, block, Op::TableFill, Type::Void, (table, 0), &[a, reference, b]),
            7 => self.emit(func, block, Op::TableCopy, Type::Void, (0, table.into()), &[a, b, c]),
            _ => self.emit(func, block, Op::ElemDrop, Type::Void, (0, 0), &[]),
        };
    }

    /// A condition to branch on, often one on which an earlier branch depends.
    fn condition(&mut self, func: &Func<'_>, block: Block) -> Value {
        let tested = &self.tested[block.index()];
        if !tested.is_empty() && self.rng.one_in(2) {
            return *self.rng.pick(tested);
        }
        let condition = self.value(func, block, Type::I32);
        self.tested[block.index()].push(condition);
        condition
    }

    fn terminator(&mut self, func: &mut Func<'_>, block: Block) {
        let (op, args, aux) = match func.block(block).succs.len() {
            0 if self.rng.one_in(8) => (Op::Trap, vec![], Trap::UnreachableCodeReached as u32),
            0 if self.rng.one_in(8) => (Op::ReturnCall, vec![self.value(func, block, Type::I64)], 3),
            0 => {
                let results = func.results.to_vec();
                (Op::Return, results.into_iter().map(|ty| self.value(func, block, ty)).collect(), 0)
            }
            1 => (Op::Jump, vec![], 0),
            2 if !self.rng.one_in(8) => (Op::Branch, vec![self.condition(func, block)], 0),
            _ => (Op::BrTable, vec![self.value(func, block, Type::I32)], 0),
        };
        self.emit(func, block, op, Type::Void, (aux, 0), &args);
    }
}
