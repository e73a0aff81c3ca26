//! Predicates: the conditions that decision trees test. Equivalent conditions have the same number, wherever and in
//! whatever form they are computed.
//!
//! A predicate is an equality or an order of two expressions; a value that is not a comparison is the predicate "is not
//! 0". Canonical form: `eqz` and comparisons of a truth value with 0 are removed, and `ne ge gt le` become an inverted
//! or mirrored `eq` or `lt`. Expressions are numbered by structure, to a small depth; the values at which this ends
//! (parameters, phis, loads, calls) are their *leaves*. All leaves of one expression lie on one path of the dominator
//! tree, and the deepest of their blocks is the predicate's *defining block*: only when control passes through it can
//! the predicate change.

use super::lists::{List, Lists};
use super::numbers::Numbers;
use super::tree::Var;
use crate::analysis::{Cfg, DefBlocks, Dominators};
use crate::ir::family::{Compare, Family};
use crate::ir::{Block, Effect, Func, Op, Type, Value};
use crate::meter::Meter;
use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use std::hash::{Hash, Hasher};

/// The depth to which expressions are compared. Deeper ones count as leaves.
const DEPTH: u32 = 4;
/// The number of arms of a `br_table` for which its default arm keeps facts.
const MAX_TABLE: usize = 8;
/// The number of facts kept about one predicate.
const MAX_FACTS: usize = 32;

/// The meaning of an expression number. `a` and `b` are numbers of expressions, or the bits of a constant, or a leaf.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    op: Op,
    ty: Type,
    a: u32,
    b: u32,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.a) << 32 | u64::from(self.b));
        state.write_u32((self.op as u32) << 8 | self.ty as u32);
    }
}

struct Expr {
    def_block: Block,
    /// Known truths after certain edges: a list in [`Predicates::facts`].
    facts: List,
    /// Values that compute this predicate or its inverse: a list in [`Predicates::computers`].
    computers: List,
}

/// The numbers of one function's expressions and predicates.
pub struct Predicates<'s> {
    keys: Numbers<'s, Key>,
    exprs: BumpVec<'s, Expr>,
    /// `(target of the edge, truth)`.
    facts: Lists<'s, (Block, bool)>,
    /// Values, each with whether it computes the inverse.
    computers: Lists<'s, (Value, bool)>,
    /// By value, the number of its expression plus 1, or 0 if not known yet.
    number: &'s mut [u32],
    /// By value, the predicate's number and inversion, plus 1, or 0 if not known yet.
    truth: &'s mut [u32],
}

impl<'s> Predicates<'s> {
    /// For a function with this many blocks and values.
    pub fn new(scratch: &'s Bump, num_blocks: usize, num_values: usize) -> Predicates<'s> {
        Predicates {
            // About every second block has a branch, whose condition has two operands.
            keys: Numbers::new(scratch, 2 * num_blocks),
            exprs: BumpVec::with_capacity_in(2 * num_blocks, scratch),
            facts: Lists::new(scratch, num_blocks),
            computers: Lists::new(scratch, num_blocks),
            number: scratch.alloc_slice_fill_copy(num_values, 0),
            truth: scratch.alloc_slice_fill_copy(num_values, 0),
        }
    }

    /// The block in which the truth of `var` is decided.
    pub fn def_block(&self, var: Var) -> Block {
        self.exprs[var as usize].def_block
    }

    /// Values that compute `var`, each with whether it computes the inverse.
    pub fn computed_by(&self, var: Var) -> impl Iterator<Item = (Value, bool)> + '_ {
        self.computers.iter(self.exprs[var as usize].computers)
    }

    /// The truth of `var` in `block`, if the edges that lead there imply it.
    pub fn known(&self, dom: &Dominators, var: Var, block: Block) -> Option<bool> {
        let mut facts = self.facts.iter(self.exprs[var as usize].facts);
        facts.find(|(target, _)| dom.dominates(*target, block)).map(|(_, holds)| holds)
    }

    fn note(&mut self, var: Var, target: Block, holds: bool) {
        let facts = &mut self.exprs[var as usize].facts;
        if self.facts.iter(*facts).count() < MAX_FACTS {
            self.facts.push(facts, (target, holds));
        }
    }

    fn intern(&mut self, key: Key, def_block: Block) -> u32 {
        let number = self.keys.of(key);
        if number as usize == self.exprs.len() {
            self.exprs.push(Expr { def_block, facts: List::EMPTY, computers: List::EMPTY });
        }
        number
    }

    fn constant(&mut self, ty: Type, bits: u64) -> u32 {
        self.intern(Key { op: Op::Const, ty, a: bits as u32, b: (bits >> 32) as u32 }, Block::ENTRY)
    }

    /// The number of an operation on numbered expressions.
    fn compound(&mut self, dom: &Dominators, op: Op, ty: Type, a: u32, b: u32) -> u32 {
        let (x, y) = (self.exprs[a as usize].def_block, self.exprs[b as usize].def_block);
        self.intern(Key { op, ty, a, b }, if dom.dominates(x, y) { y } else { x })
    }

    /// The number of the expression that `value` computes; `def_blocks` has the blocks of values.
    fn expression(&mut self, func: &Func<'_>, dom: &Dominators, def_blocks: &DefBlocks, value: Value, depth: u32) -> u32 {
        if let Some(known) = self.number[value.index()].checked_sub(1) {
            return known;
        }
        let inst = func.inst(value);
        let numeric = inst.op.effect() == Effect::Pure && inst.op.opcode(func.operand_type(value), inst.ty).is_some();
        if !numeric || depth == 0 {
            let number = if inst.op == Op::Const {
                self.constant(inst.ty, inst.imm)
            } else {
                self.intern(Key { op: Op::Param, ty: inst.ty, a: value.0, b: 0 }, def_blocks.of(value))
            };
            // An expression that is a leaf only because of its depth may be needed again nearer to the root.
            if !numeric {
                self.number[value.index()] = number + 1;
            }
            return number;
        }
        let a = self.expression(func, dom, def_blocks, inst.args[0], depth - 1);
        let b = inst.args.get(1).map_or(a, |&arg| self.expression(func, dom, def_blocks, arg, depth - 1));
        let in_order = !inst.op.is_commutative() || func.operand_type(value).is_float() || a <= b;
        let number = self.compound(dom, inst.op, inst.ty, if in_order { a } else { b }, if in_order { b } else { a });
        self.number[value.index()] = number + 1;
        number
    }

    /// The predicate that `value`, an i32, is not 0, and whether its number denotes the inverse.
    pub fn truth_of(&mut self, func: &Func<'_>, dom: &Dominators, def_blocks: &DefBlocks, value: Value) -> (Var, bool) {
        if let Some(known) = self.truth[value.index()].checked_sub(1) {
            return (known >> 1, known & 1 != 0);
        }
        let (var, inverted) = self.find_truth(func, dom, def_blocks, value);
        self.truth[value.index()] = (var << 1 | u32::from(inverted)) + 1;
        self.computers.push(&mut self.exprs[var as usize].computers, (value, inverted));
        (var, inverted)
    }

    fn find_truth(&mut self, func: &Func<'_>, dom: &Dominators, def_blocks: &DefBlocks, value: Value) -> (Var, bool) {
        let (mut value, mut inverted) = (value, false);
        loop {
            let inst = func.inst(value);
            let (op, mirrored, flipped) = canonical(inst.op);
            let (a, b) = match *inst.args {
                [a] if inst.op == Op::Eqz => (a, None),
                [a, b] if op.is_some() => (a, Some(b)),
                // Not a comparison: x is not 0.
                _ => return (self.is_zero(func, dom, def_blocks, value), !inverted),
            };
            inverted ^= flipped;
            let against_zero = b.is_none_or(|b| func.as_const(b) == Some(0)) && matches!(op, Some(Op::Eq));
            if against_zero && func.op(a).is_boolean() {
                // A truth value compared with 0 is its inverse.
                (value, inverted) = (a, !inverted);
                continue;
            }
            let Some(b) = b else { return (self.is_zero(func, dom, def_blocks, a), inverted) };
            let [a, b] = if mirrored { [b, a] } else { [a, b] };
            let mut a = self.expression(func, dom, def_blocks, a, DEPTH);
            let mut b = self.expression(func, dom, def_blocks, b, DEPTH);
            let op = op.expect("a comparison has a canonical form");
            if op == Op::Eq && a > b {
                (a, b) = (b, a);
            }
            return (self.compound(dom, op, Type::I32, a, b), inverted);
        }
    }

    fn is_zero(&mut self, func: &Func<'_>, dom: &Dominators, def_blocks: &DefBlocks, value: Value) -> Var {
        let a = self.expression(func, dom, def_blocks, value, DEPTH);
        let b = self.constant(func.ty(value), 0);
        self.compound(dom, Op::Eq, Type::I32, a.min(b), a.max(b))
    }

    /// The predicate that `value` equals a constant of its type.
    pub fn equals(&mut self, func: &Func<'_>, dom: &Dominators, def_blocks: &DefBlocks, value: Value, bits: u64) -> Var {
        let a = self.expression(func, dom, def_blocks, value, DEPTH);
        let b = self.constant(func.ty(value), bits);
        self.compound(dom, Op::Eq, Type::I32, a.min(b), a.max(b))
    }

    /// Records the facts that branches imply in blocks that are reached only through them.
    pub fn find_facts(&mut self, func: &Func<'_>, cfg: &Cfg, dom: &Dominators, def_blocks: &DefBlocks, meter: &Meter<'_>) {
        for &block in cfg.order() {
            // If the compilation is to end, the pass does before it uses these.
            if meter.spend(1).is_err() {
                return;
            }
            let Some(terminator) = func.terminator(block) else { continue };
            let succs = &func.block(block).succs;
            let is_only_edge = |succ: Block| func.block(succ).preds.len() == 1;
            let op = func.op(terminator);
            if op == Op::Branch && succs.iter().any(|&succ| is_only_edge(succ)) {
                let (var, inverted) = self.truth_of(func, dom, def_blocks, func.args(terminator)[0]);
                for (k, &succ) in succs.iter().enumerate().filter(|&(_, &succ)| is_only_edge(succ)) {
                    self.note(var, succ, (k == 0) != inverted);
                }
            } else if op == Op::BrTable {
                let index = func.args(terminator)[0];
                let default = succs.len() - 1;
                for (k, &succ) in succs[..default].iter().enumerate() {
                    if is_only_edge(succ) {
                        let var = self.equals(func, dom, def_blocks, index, k as u64);
                        self.note(var, succ, true);
                    }
                }
                if is_only_edge(succs[default]) && default <= MAX_TABLE {
                    for k in 0..default {
                        let var = self.equals(func, dom, def_blocks, index, k as u64);
                        self.note(var, succs[default], false);
                    }
                }
            }
        }
    }
}

/// The canonical comparison, whether its arguments are exchanged, and whether its result is inverted.
fn canonical(op: Op) -> (Option<Op>, bool, bool) {
    let mirror = |op: Op| op.mirror().unwrap_or(op);
    match op.family() {
        Family::Compare(Compare::Eqz) => (Some(Op::Eq), false, false),
        // Every order with a NaN is false, so an order of floats has no inverse.
        Family::Compare(_) | Family::FloatCompare(_) => {
            let inverse = op.inverse().unwrap_or(op);
            let forms = [(op, false, false), (inverse, false, true), (mirror(op), true, false), (mirror(inverse), true, true)];
            let (first, mirrored, inverted) = forms.into_iter().min_by_key(|form| form.0 as u32).expect("there are four");
            (Some(first), mirrored, inverted)
        }
        Family::Leaf(_) | Family::Integer(_) | Family::Bits(_) | Family::Convert(_) => (None, false, false),
        Family::Float(_) | Family::FloatUnary(_) | Family::Simd(_) | Family::Reference(_) => (None, false, false),
        Family::Load(_) | Family::Store(_) | Family::Memory(_) | Family::Global(_) => (None, false, false),
        Family::Table(_) | Family::Call(_) | Family::Exception(_) => (None, false, false),
        Family::Accounting(_) | Family::Terminator(_) => (None, false, false),
    }
}

#[cfg(test)]
impl Predicates<'_> {
    /// The value of an expression for these values of its leaves.
    pub fn evaluate(&self, expr: u32, values: &[u64]) -> u64 {
        let Key { op, ty, a, b } = self.keys.key(expr);
        if op == Op::Const {
            return u64::from(b) << 32 | u64::from(a);
        }
        if op == Op::Param {
            return values[a as usize];
        }
        let operand = self.type_of(a);
        let args = [a, b].map(|expr| self.evaluate(expr, values));
        let opcode = op.opcode(operand, ty).expect("a numeric operation");
        let arity = op.arity().expect("a numeric operation");
        weir_bytecode::semantics::eval(opcode, &args[..arity]).expect("a numeric instruction").expect("no trap")
    }

    fn type_of(&self, expr: u32) -> Type {
        self.keys.key(expr).ty
    }
}
