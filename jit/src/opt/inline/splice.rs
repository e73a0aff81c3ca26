//! The copy of a function's SSA in place of a call.

use crate::hash_table::NumberHash;
use crate::ir::inlined::Copy;
use crate::ir::{Block, Func, Op, Probability, Type, Value};
use rustc_hash::FxHashSet;
use std::collections::HashMap;

/// A call that is inlined.
pub(super) struct Site {
    pub block: Block,
    pub call: Value,
}

/// What the copy has added.
pub(super) struct Spliced {
    /// The block of the instructions that followed the call.
    pub rest: Block,
    /// The copied calls.
    pub calls: Vec<CopiedCall>,
}

/// A copy of a call in the callee.
#[derive(Clone, Copy)]
pub(super) struct CopiedCall {
    pub call: Value,
    pub block: Block,
    /// The callee's block that contains the call.
    pub from: Block,
    /// The offset of the call in the callee. That of the copy is another one if it was a tail call.
    pub pc: u32,
}

/// The constants of a function, which are shared and in its entry block.
pub(super) struct Constants {
    values: HashMap<(Type, u64), Value, NumberHash>,
    new: Vec<Value>,
}

impl Constants {
    pub fn of(func: &Func<'_>) -> Constants {
        let entry = func.block(Block::ENTRY).insts.iter();
        let constants = entry.filter_map(|&value| Some(((func.ty(value), func.as_const(value)?), value)));
        Constants { values: constants.collect(), new: Vec::new() }
    }

    fn get(&mut self, func: &mut Func<'_>, ty: Type, bits: u64) -> Value {
        *self.values.entry((ty, bits)).or_insert_with(|| {
            let value = func.create(Op::Const, ty, 0, 0, bits, &[]);
            self.new.push(value);
            value
        })
    }

    /// Puts the new constants into the entry block, after the parameters.
    pub fn insert(self, func: &mut Func<'_>) {
        let params = func.block(Block::ENTRY).insts.iter().take_while(|&&value| func.op(value) == Op::Param).count();
        let new: Vec<(usize, Value)> = self.new.into_iter().map(|value| (params, value)).collect();
        func.insert(Block::ENTRY, &new);
    }
}

/// Puts a copy of `callee` in the place of a call of it. The copy has the pcs of `copy`. Uses of the call's results are replaced, which
/// [`Func::settle`] completes. If the callee does not return, the rest of the block is unreachable.
pub(super) fn splice(func: &mut Func<'_>, constants: &mut Constants, site: Site, callee: &Func<'_>, copy: Copy) -> Spliced {
    let rest = split(func, &site);
    let args: Vec<Value> = func.args(site.call).iter().map(|&arg| func.root(arg)).collect();
    let mut splicer =
        Splicer { func, callee, copy, blocks: Vec::new(), values: Vec::new(), returns: Vec::new(), calls: Vec::new() };
    splicer.create(constants, &site, &args);
    splicer.fill();
    splicer.connect();
    let Splicer { returns, mut calls, .. } = splicer;
    join(func, &site, rest, &returns);
    let first = func.block(rest).insts.iter().find(|&&value| func.op(value) != Op::Phi);
    if first.is_some_and(|&first| func.op(first) == Op::Try) {
        protect(func, rest, &mut calls);
    }
    Spliced { rest, calls }
}

/// Replaces an indirect call by a direct call of `callee`, if the guard holds, or else the indirect call, with this probability of the
/// first. The second counts a miss, if the profile is that of a function `counted`. If the callee has an `index` in a private table, and no other, the
/// guard compares this. Returns the direct call, its block, and the block of what followed.
pub(super) fn guard(
    func: &mut Func<'_>,
    site: &Site,
    (callee, index): (u32, Option<u64>),
    probability: Probability,
    counted: Option<u32>,
) -> (Site, Block) {
    let Site { block, call } = *site;
    let rest = split_at(func, block, position(func, block, call) + 1);
    let results = take_results(func, rest);
    func.block_mut(block).insts.pop();
    let (cold, hot) = (func.create_block(), func.create_block());

    let inst = func.inst(call);
    let (op, ty, pc, aux, table) = (inst.op, inst.ty, inst.pc, inst.aux, inst.imm);
    let args: Vec<Value> = inst.args.to_vec();
    let (&chooser, passed) = args.split_last().expect("an index or a reference is the last argument");
    let is_callee = if let Some(index) = index {
        let index = func.append(block, Op::Const, func.ty(chooser), pc, 0, index, &[]);
        func.append(block, Op::Eq, Type::I32, pc, 0, 0, &[chooser, index])
    } else {
        let (guard, imm) = if op == Op::CallIndirect { (Op::ElementDiffers, table) } else { (Op::FuncDiffers, 0) };
        let differs = func.append(block, guard, Type::I64, pc, callee, imm, &[chooser]);
        func.append(block, Op::Eqz, Type::I32, pc, 0, 0, &[differs])
    };
    let branch = func.append(block, Op::Branch, Type::Void, pc, 0, 0, &[is_callee]);
    func.set_probability(branch, Some(probability));
    func.add_edge(block, hot);
    func.add_edge(block, cold);

    if let Some(counted) = counted {
        func.append(cold, Op::Miss, Type::Void, pc, counted, 0, &[]);
    }
    // Only those that are used may be there.
    let numbers: Vec<(u64, Type)> = results.iter().map(|&result| (func.inst(result).imm, func.ty(result))).collect();
    let mut calls = |from: Block, op: Op, aux: u32, imm: u64, args: &[Value]| {
        let call = func.append(from, op, ty, pc, aux, imm, args);
        let others = numbers.iter().map(|&(i, ty)| func.append(from, Op::Result, ty, pc, 0, i, &[call]));
        let values: Vec<Value> = std::iter::once(call).chain(others).collect();
        func.append(from, Op::Jump, Type::Void, pc, 0, 0, &[]);
        func.add_edge(from, rest);
        values
    };
    let direct = calls(hot, Op::Call, callee, 0, passed);
    let indirect = calls(cold, op, aux, table, &args);
    let mut phis = Vec::new();
    for (i, value) in std::iter::once(call).chain(results).enumerate().filter(|_| ty != Type::Void) {
        let phi = func.create(Op::Phi, func.ty(value), 0, 0, 0, &[direct[i], indirect[i]]);
        phis.push(phi);
        func.replace(value, phi);
    }
    func.prepend(rest, &phis);
    (Site { block: hot, call: direct[0] }, rest)
}

/// Replaces a tail call through a private table by a direct one of `callee`, if the index is the only one that `callee` has in the table, or else the
/// tail call as it was, with this probability of the first.
pub(super) fn guard_tail_call(func: &mut Func<'_>, site: &Site, (callee, index): (u32, u64), probability: Probability) {
    let Site { block, call } = *site;
    func.block_mut(block).insts.pop();
    let (cold, hot) = (func.create_block(), func.create_block());
    let (pc, args) = (func.inst(call).pc, func.args(call).to_vec());
    let (&chooser, passed) = args.split_last().expect("an index is the last argument");
    let index = func.append(block, Op::Const, func.ty(chooser), pc, 0, index, &[]);
    let is_callee = func.append(block, Op::Eq, Type::I32, pc, 0, 0, &[chooser, index]);
    let branch = func.append(block, Op::Branch, Type::Void, pc, 0, 0, &[is_callee]);
    func.set_probability(branch, Some(probability));
    func.add_edge(block, hot);
    func.add_edge(block, cold);
    func.append(hot, Op::ReturnCall, Type::Void, pc, callee, 0, passed);
    func.push(cold, call);
}

/// Moves the instructions of `block` from the one at `at` on to a new block, which gets the successors of `block`.
fn split_at(func: &mut Func<'_>, block: Block, at: usize) -> Block {
    let rest = func.create_block();
    let insts = std::mem::take(&mut func.block_mut(block).insts);
    func.extend(block, &insts[..at]);
    func.extend(rest, &insts[at..]);
    for succ in successors(func, block) {
        for pred in &mut func.block_mut(succ).preds {
            if *pred == block {
                *pred = rest;
            }
        }
    }
    func.block_mut(rest).succs = std::mem::take(&mut func.block_mut(block).succs);
    rest
}

/// The successors of a block, each once: many edges of a `br_table` may lead to one.
fn successors(func: &Func<'_>, block: Block) -> Vec<Block> {
    let mut seen = FxHashSet::default();
    func.block(block).succs.iter().copied().filter(|&succ| seen.insert(succ)).collect()
}

/// The steps of moving the end of a block to a new one. Several edges are moved in the time of a step.
pub(super) fn steps_of_split(func: &Func<'_>, block: Block) -> usize {
    let edges: usize = successors(func, block).iter().map(|&succ| func.block(succ).preds.len()).sum();
    (edges + func.block(block).succs.len()) / 16 + func.block(block).insts.len()
}

/// Moves what follows the call to a new block, and removes the call.
fn split(func: &mut Func<'_>, site: &Site) -> Block {
    let at = position(func, site.block, site.call);
    let rest = split_at(func, site.block, at + 1);
    func.block_mut(site.block).insts.pop();
    rest
}

/// Removes the results of a call from the beginning of `block`, and returns them.
fn take_results(func: &mut Func<'_>, block: Block) -> Vec<Value> {
    let results: Vec<Value> = func.block(block).insts.iter().copied().take_while(|&value| func.op(value) == Op::Result).collect();
    let mut numbers = 0..;
    func.block_mut(block).insts.retain(|_| numbers.next() >= Some(results.len()));
    results
}

fn position(func: &Func<'_>, block: Block, value: Value) -> usize {
    func.block(block).insts.iter().position(|&other| other == value).expect("the value is in its block")
}

/// Makes `rest` follow the copy: `returns` are the blocks that return, with what they return.
fn join(func: &mut Func<'_>, site: &Site, rest: Block, returns: &[(Block, Vec<Value>)]) {
    let results = take_results(func, rest);
    for &(from, _) in returns {
        func.add_edge(from, rest);
    }
    let first = (func.ty(site.call) != Type::Void).then_some(site.call);
    let mut phis = Vec::new();
    for value in first.into_iter().chain(results) {
        let i = if value == site.call { 0 } else { func.inst(value).imm as usize };
        match returns {
            [] => {}
            [(_, values)] => func.replace(value, values[i]),
            [(_, first), others @ ..] if others.iter().all(|(_, values)| values[i] == first[i]) => func.replace(value, first[i]),
            _ => {
                let args: Vec<Value> = returns.iter().map(|(_, values)| values[i]).collect();
                let phi = func.create(Op::Phi, func.ty(value), 0, 0, 0, &args);
                phis.push(phi);
                func.replace(value, phi);
            }
        }
    }
    func.prepend(rest, &phis);
}

/// Gives the copied calls the handlers of the call that was inlined, to which the `try` that is all of `rest` leads.
fn protect(func: &mut Func<'_>, rest: Block, calls: &mut [CopiedCall]) {
    let handlers = func.exceptional_edges(rest);
    for i in 0..calls.len() {
        let CopiedCall { call, block, .. } = calls[i];
        let after = position(func, block, call) + 1;
        let results = func.block(block).insts[after..].iter().take_while(|&&value| func.op(value) == Op::Result).count();
        let normal = split_at(func, block, after + results);
        for later in calls[i + 1..].iter_mut().filter(|later| later.block == block) {
            later.block = normal;
        }
        func.append(block, Op::Try, Type::Void, 0, 0, 0, &[]);
        for k in 0..handlers {
            let (landing, index) = func.edge(rest, k);
            func.add_edge(block, landing);
            let phis: Vec<Value> = func.phis(landing).collect();
            for phi in phis {
                let mut args = func.args(phi).to_vec();
                args.push(args[index]);
                func.set_args(phi, &args);
            }
        }
        func.add_edge(block, normal);
    }
    for k in 0..handlers {
        let (landing, index) = func.edge(rest, k);
        let mut edges = 0..;
        func.retain_preds(landing, |_| edges.next() != Some(index));
    }
    let normal = *func.block(rest).succs.last().expect("a call returns");
    let last = func.terminator(rest).expect("it is a `try`");
    func.become_op(last, Op::Jump, 0, &[]);
    func.block_mut(rest).succs.clear();
    func.push_succ(rest, normal);
}

struct Splicer<'s, 'a, 'c> {
    func: &'s mut Func<'a>,
    callee: &'s Func<'c>,
    copy: Copy,
    /// By block of the callee, its copy.
    blocks: Vec<Block>,
    /// By value of the callee, its copy.
    values: Vec<Value>,
    /// The blocks that return, with what they return.
    returns: Vec<(Block, Vec<Value>)>,
    calls: Vec<CopiedCall>,
}

impl Splicer<'_, '_, '_> {
    /// The pc of the copy of an instruction.
    fn pc(&self, pc: u32) -> u32 {
        let Copy { start, len, origin, .. } = self.copy;
        if pc == 0 {
            return 0;
        }
        debug_assert!((origin..origin + len).contains(&pc), "an instruction is in its function");
        start + (pc - origin)
    }

    /// Creates the blocks and values of the copy. The site's block takes the place of the entry.
    fn create(&mut self, constants: &mut Constants, site: &Site, args: &[Value]) {
        let callee = self.callee;
        self.values = vec![Value(u32::MAX); callee.num_values()];
        for block in callee.blocks() {
            let data = callee.block(block);
            let copied = match block {
                Block::ENTRY => site.block,
                _ if data.insts.is_empty() => Block(u32::MAX),
                _ => self.func.create_block(),
            };
            self.blocks.push(copied);
            for &value in &data.insts {
                let inst = callee.inst(value);
                let new = if inst.op == Op::Const {
                    constants.get(self.func, inst.ty, inst.imm)
                } else if inst.op == Op::Param {
                    args[inst.imm as usize]
                } else {
                    let new = self.func.create(inst.op, inst.ty, self.pc(inst.pc), inst.aux, inst.imm, &[]);
                    self.func.inst_mut(new).probability = inst.probability;
                    if inst.op == Op::BrTable
                        && let Some(counts) = callee.table_counts(block)
                    {
                        self.func.set_table_counts(new, counts);
                    }
                    new
                };
                self.values[value.index()] = new;
            }
        }
    }

    fn args(&self, value: Value) -> Vec<Value> {
        self.callee.args(value).iter().map(|arg| self.values[arg.index()]).collect()
    }

    /// Gives the values their arguments, and the blocks their contents.
    fn fill(&mut self) {
        let callee = self.callee;
        for block in callee.blocks() {
            let to = self.blocks[block.index()];
            for &value in &callee.block(block).insts {
                let (op, new) = (callee.op(value), self.values[value.index()]);
                if matches!(op, Op::Const | Op::Param) {
                    continue;
                }
                if op == Op::Return {
                    let returned = self.args(value);
                    self.leave(to, returned);
                    continue;
                }
                if op.is_tail_call() {
                    self.call_and_leave(to, value, block);
                    continue;
                }
                if op.calls_function() {
                    self.calls.push(CopiedCall { call: new, block: to, from: block, pc: callee.inst(value).pc });
                }
                let args = self.args(value);
                self.func.set_args(new, &args);
                self.func.push(to, new);
            }
        }
    }

    /// Ends a block that returns these values.
    fn leave(&mut self, block: Block, returned: Vec<Value>) {
        self.func.append(block, Op::Jump, Type::Void, 0, 0, 0, &[]);
        self.returns.push((block, returned));
    }

    /// Ends a block that tail-calls.
    fn call_and_leave(&mut self, block: Block, tail_call: Value, from: Block) {
        let inst = self.callee.inst(tail_call);
        let op = if inst.op == Op::ReturnCallIndirect {
            Op::CallIndirect
        } else if inst.op == Op::ReturnCallRef {
            Op::CallRef
        } else {
            Op::Call
        };
        let types = &self.callee.results;
        let first = types.first().copied().unwrap_or(Type::Void);
        let (args, aux, imm, pc) = (self.args(tail_call), inst.aux, inst.imm, self.copy.call);
        let call = self.func.append(block, op, first, pc, aux, imm, &args);
        self.calls.push(CopiedCall { call, block, from, pc: inst.pc });
        let others = 1..types.len();
        let mut results: Vec<Value> = types.first().map(|_| call).into_iter().collect();
        results.extend(others.map(|i| self.func.append(block, Op::Result, types[i], pc, 0, i as u64, &[call])));
        self.leave(block, results);
    }

    /// Makes the edges of the copy.
    fn connect(&mut self) {
        let callee = self.callee;
        for block in callee.blocks() {
            let (data, to) = (callee.block(block), self.blocks[block.index()]);
            data.succs.iter().for_each(|succ| self.func.push_succ(to, self.blocks[succ.index()]));
            data.preds.iter().for_each(|pred| self.func.push_pred(to, self.blocks[pred.index()]));
        }
    }
}
