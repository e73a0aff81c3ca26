//! If-conversion: a loop whose blocks are executed in sequence, apart from arms that are skipped, as one block.
//!
//! The block is only a description for the planner, and is never executed: its loads and stores are speculative. That is right in
//! the rounds of a vector loop, in which every access of the block is in bounds (see [`precheck`](super::precheck)). If an arm is not
//! taken, its stores write the bytes that memory has already. No other thread sees that, because the vectoriser leaves shared memories alone.
//! Its reductions add zero.
//!
//! Polls must be at the head of the loop, and fuel must be charged outside of arms, so that each round costs the same.

use super::work::MAX_BLOCK;
use crate::ir::family::{Family, Store};
use crate::ir::{Block, Effect, Func, Op, Type, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// A loop as one block.
#[derive(Debug)]
pub struct Flat {
    /// The block, whose phis are those of the head in the same order, with arguments from the entry and from the back edge.
    pub block: Block,
    /// The index of the loop's entry among the predecessors of the head.
    pub entry: usize,
}

/// The condition under which an instruction is executed, and whether it must be zero instead.
type Guard = Option<(Value, bool)>;

struct Flattener<'f, 'a> {
    func: &'f mut Func<'a>,
    head: Block,
    /// Copies in the block, by value of the loop.
    copies: FxHashMap<Value, Value>,
    out: Vec<Value>,
}

/// The loop from `head` to `latch`, which are a [sequence](is_sequence) of several blocks, as one block, if it can be written so. The caller removes that
/// block with [`cfg_edit::empty`](crate::opt::cfg_edit::empty).
pub fn flatten(func: &mut Func<'_>, head: Block, latch: Block) -> Option<Flat> {
    let back = func.block(head).preds.iter().position(|&pred| pred == latch)?;
    if func.phis(head).any(|phi| !func.ty(phi).is_number()) {
        return None;
    }
    let mut flattener = Flattener { func, head, copies: FxHashMap::default(), out: Vec::new() };
    flattener.run(latch)?;
    let Flattener { copies, out, .. } = flattener;
    let entry = 1 - back;
    for phi in func.phis(head).collect::<Vec<Value>>() {
        let [start, next] = [entry, back].map(|i| func.args(phi)[i]);
        let next = copies.get(&next).copied().unwrap_or(next);
        func.set_args(copies[&phi], &[start, next]);
    }
    let block = func.create_block();
    let live = live(func, &out);
    func.extend(block, &live);
    let pred = func.block(head).preds[entry];
    func.push_pred(block, pred);
    func.push_pred(block, block);
    for i in 0..2 {
        let succ = func.block(latch).succs[i];
        func.push_succ(block, if succ == head { block } else { succ });
    }
    Some(Flat { block, entry })
}

/// The block where the arms of a branch meet, if it has such arms.
fn join(func: &Func<'_>, block: Block) -> Option<Block> {
    let &[a, b] = &func.block(block).succs[..] else { return None };
    let arm = |arm: Block| {
        let only = func.block(arm).preds[..] == [block];
        let &[next] = &func.block(arm).succs[..] else { return None };
        only.then_some(next)
    };
    let join = match (arm(a), arm(b)) {
        (Some(next), _) if next == b => b,
        (_, Some(next)) if next == a => a,
        (Some(next), Some(other)) if next == other => next,
        _ => return None,
    };
    (a != b && func.block(join).preds.len() == 2).then_some(join)
}

/// Whether the blocks from `head` to `latch` are executed in sequence, with arms between them, and are few.
pub fn is_sequence(func: &Func<'_>, head: Block, latch: Block) -> bool {
    if func.block(head).preds.len() != 2 || func.terminator(latch).is_none_or(|last| func.op(last) != Op::Branch) {
        return false;
    }
    let (mut block, mut insts) = (head, 0);
    while block != latch {
        insts += func.block(block).insts.len() + 1;
        if insts > MAX_BLOCK {
            return false;
        }
        let next = match func.block(block).succs[..] {
            [next] if func.block(next).preds.len() == 1 => Some(next),
            [_, _] if func.terminator(block).is_some_and(|last| func.op(last) == Op::Branch) => join(func, block),
            _ => None,
        };
        let Some(next) = next.filter(|&next| next != head) else { return false };
        block = next;
    }
    true
}

impl Flattener<'_, '_> {
    fn run(&mut self, latch: Block) -> Option<()> {
        for phi in self.func.phis(self.head).collect::<Vec<Value>>() {
            let inst = self.func.inst(phi);
            let (ty, pc) = (inst.ty, inst.pc);
            let copy = self.func.create(Op::Phi, ty, pc, 0, 0, &[]);
            self.copies.insert(phi, copy);
            self.out.push(copy);
        }
        let mut block = self.head;
        loop {
            self.copy(block, None)?;
            let last = self.func.terminator(block)?;
            if block == latch {
                let condition = self.of(self.func.args(last)[0]);
                let (pc, probability) = (self.func.inst(last).pc, self.func.inst(last).probability);
                let branch = self.func.create(Op::Branch, Type::Void, pc, 0, 0, &[condition]);
                self.func.set_probability(branch, probability);
                self.out.push(branch);
                return (self.out.len() <= MAX_BLOCK).then_some(());
            }
            block = match self.func.block(block).succs[..] {
                [next] => next,
                _ => self.arms(block, last)?,
            };
        }
    }

    /// The copy of a value, or a value that the loop does not change.
    fn of(&self, value: Value) -> Value {
        self.copies.get(&value).copied().unwrap_or(value)
    }

    fn create(&mut self, op: Op, ty: Type, pc: u32, args: &[Value]) -> Value {
        let value = self.func.create(op, ty, pc, 0, 0, args);
        self.out.push(value);
        value
    }

    /// The arms of a branch, and the phis of the block where they meet, which is returned.
    fn arms(&mut self, block: Block, branch: Value) -> Option<Block> {
        let join = join(self.func, block)?;
        let condition = self.of(self.func.args(branch)[0]);
        let succs = [0, 1].map(|i| self.func.block(block).succs[i]);
        for (succ, is_zero) in [(succs[0], false), (succs[1], true)] {
            if succ != join {
                self.copy(succ, Some((condition, is_zero)))?;
            }
        }
        // The index of the edge that is taken if the condition is set.
        let from = if succs[0] == join { block } else { succs[0] };
        let set = self.func.block(join).preds.iter().position(|&pred| pred == from)?;
        for phi in self.func.phis(join).collect::<Vec<Value>>() {
            let (if_set, if_zero) = (self.of(self.func.args(phi)[set]), self.of(self.func.args(phi)[1 - set]));
            let ty = self.func.ty(phi);
            if !ty.is_number() {
                return None;
            }
            let chosen = if if_set == if_zero { if_set } else { self.choose(condition, if_set, if_zero, self.func.inst(phi).pc) };
            self.copies.insert(phi, chosen);
        }
        Some(join)
    }

    /// `if_set` or `if_zero`. The sum of one and another number is the sum with that number or zero.
    fn choose(&mut self, condition: Value, if_set: Value, if_zero: Value, pc: u32) -> Value {
        let ty = self.func.ty(if_set);
        let adds = |sum: Value, to: Value| {
            let op = self.func.op(sum);
            let &[a, b] = self.func.args(sum) else { return None };
            let added = if a == to { b } else { a };
            (matches!(op, Op::Add | Op::Or | Op::Xor) && (a == to || b == to) && a != b).then_some((op, added))
        };
        let (set, zero) = (adds(if_set, if_zero), adds(if_zero, if_set));
        let (op, to, added, is_zero) = match (set, zero) {
            (Some((op, added)), _) => (op, if_zero, added, false),
            (None, Some((op, added))) => (op, if_set, added, true),
            (None, None) => return self.create(Op::Select, ty, pc, &[condition, if_set, if_zero]),
        };
        let nothing = self.create(Op::Const, ty, pc, &[]);
        let args = if is_zero { [condition, nothing, added] } else { [condition, added, nothing] };
        let added = self.create(Op::Select, ty, pc, &args);
        self.create(op, ty, pc, &[to, added])
    }

    /// Copies of the instructions of a block.
    fn copy(&mut self, block: Block, guard: Guard) -> Option<()> {
        let insts: Vec<Value> = self.func.block(block).insts.to_vec();
        for value in insts {
            let inst = self.func.inst(value);
            let (op, ty, pc, aux, imm) = (inst.op, inst.ty, inst.pc, inst.aux, inst.imm);
            let mut args: Vec<Value> = inst.args.iter().map(|&arg| self.of(arg)).collect();
            if op.is_terminator() {
                continue;
            }
            if op == Op::Phi {
                // Those of the head, and of blocks where arms meet, have copies; others have one argument.
                self.copies.entry(value).or_insert(args[0]);
                continue;
            }
            let accounts = op == Op::Poll && block == self.head || op == Op::Fuel && guard.is_none();
            // The planner looks at the divisors of quotients.
            let pure = op.effect() == Effect::Pure || matches!(op, Op::DivS | Op::DivU);
            if let (Family::Store(store), Some((condition, is_zero))) = (op.family(), guard) {
                let load = match store {
                    Store::Store => Op::Load,
                    Store::Store8 => Op::Load8U,
                    Store::Store16 => Op::Load16U,
                    Store::Store32 => Op::Load32U,
                };
                let stored = self.func.ty(args[1]);
                if !stored.is_number() {
                    return None;
                }
                let there = self.func.create(load, stored, pc, aux, imm, &args[..1]);
                self.out.push(there);
                let choice = if is_zero { [condition, there, args[1]] } else { [condition, args[1], there] };
                args[1] = self.create(Op::Select, stored, pc, &choice);
            } else if !accounts && !pure && !matches!(op.family(), Family::Store(_) | Family::Load(_)) {
                return None;
            }
            let copy = self.func.create(op, ty, pc, aux, imm, &args);
            self.copies.insert(value, copy);
            self.out.push(copy);
        }
        Some(())
    }
}

/// The instructions that are used, or have an effect. A load that is not used has one, too: it is checked before the rounds, as all accesses
/// are, so that it traps.
fn live(func: &Func<'_>, out: &[Value]) -> Vec<Value> {
    let mut used: FxHashSet<Value> = FxHashSet::default();
    for &value in out.iter().filter(|&&value| func.op(value) == Op::Phi) {
        used.extend(func.args(value));
    }
    let mut live: Vec<Value> = Vec::new();
    for &value in out.iter().rev() {
        let op = func.op(value);
        if op != Op::Phi && op.effect() == Effect::Pure && !used.contains(&value) {
            continue;
        }
        if op != Op::Phi {
            used.extend(func.args(value));
        }
        live.push(value);
    }
    live.reverse();
    live
}
