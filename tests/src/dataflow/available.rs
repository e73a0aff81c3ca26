//! Available expressions: those computed on every path to a block's start or end, whose value is still the same there.
//!
//! An expression is an operation with its fields and arguments; equal ones are the same expression wherever they are.
//! An expression is killed where an argument is defined, because in a loop that is a new value with the same name, and
//! a read is killed by a write that may change its result. An expression that may trap is available after an execution
//! that did not trap. An instance of [`super::solver`]: forward, sets of expressions, meet by intersection. Cost: a bit
//! per block and expression.

use super::solver::{BitSet, Direction, GenKill, Problem, Solution, solve};
use super::uses::Uses;
use std::collections::HashMap;
use weir_jit::analysis::Cfg;
use weir_jit::ir::family::{Accounting, Family, Global};
use weir_jit::ir::{Block, Effect, Func, Op, Type, Value};

/// The expressions that are available at each block's start and end.
#[derive(Clone, Debug)]
pub struct Available {
    /// By value, the number of its expression, if it computes one.
    numbers: Vec<Option<u32>>,
    solution: Solution<BitSet>,
}

impl Available {
    /// Solves for `func`.
    pub fn compute(func: &Func<'_>, cfg: &Cfg, uses: &Uses) -> Available {
        let (numbers, examples) = number(func);
        let mut transfer = GenKill::new(func.num_blocks(), examples.len());
        let reads = |write| {
            let mut killed = BitSet::empty(examples.len());
            let reads = examples.iter().enumerate().filter(|&(_, &example)| may_change(write, func.op(example)));
            reads.for_each(|(number, _)| killed.insert(number));
            killed
        };
        let mut killed_by: HashMap<Op, BitSet> = HashMap::new();
        for block in func.blocks() {
            for &value in &func.block(block).insts {
                if func.op(value).effect() == Effect::Write {
                    let op = func.op(value);
                    transfer.kill_all(block, killed_by.entry(op).or_insert_with(|| reads(op)));
                }
                if let Some(number) = numbers[value.index()] {
                    transfer.generate(block, number as usize);
                }
                let users = uses.of(value).iter().filter_map(|used| numbers[used.user.index()]);
                users.for_each(|number| transfer.kill(block, number as usize));
            }
        }
        let solution = solve(&Expressions { transfer, count: examples.len() }, func, cfg);
        Available { numbers, solution }
    }

    /// Whether the expression that `value` computes is available at the start of `block`, before its phis.
    pub fn at_start(&self, block: Block, value: Value) -> bool {
        self.numbers[value.index()].is_some_and(|number| self.solution.at_start(block).contains(number as usize))
    }

    /// Whether the expression that `value` computes is available at the end of `block`.
    pub fn at_end(&self, block: Block, value: Value) -> bool {
        self.numbers[value.index()].is_some_and(|number| self.solution.at_end(block).contains(number as usize))
    }

    /// The number of the expression that `value` computes, or `None` if it computes none: a leaf, a phi, a write.
    pub fn number(&self, value: Value) -> Option<u32> {
        self.numbers[value.index()]
    }
}

/// Whether an instruction may change the result of `read`.
pub fn may_change(write: Op, read: Op) -> bool {
    let reads = matches!(read.effect(), Effect::Read | Effect::ReadTrap);
    reads
        && match write.family() {
            Family::Call(_) | Family::Exception(_) => true,
            // Two imported globals may be the same.
            Family::Global(op) => op == Global::GlobalSet && read == Op::GlobalGet,
            Family::Store(_) | Family::Memory(_) | Family::Table(_) => {
                !matches!(read, Op::GlobalGet | Op::FuelLeft | Op::Epoch | Op::Deadline)
            }
            // The host that a poll calls has the store.
            Family::Accounting(Accounting::Poll) => true,
            Family::Accounting(op) => op == Accounting::Fuel && read == Op::FuelLeft,
            Family::Terminator(_) => false,
            Family::Leaf(_) | Family::Load(_) | Family::Reference(_) => false,
            Family::Integer(_) | Family::Compare(_) | Family::Bits(_) | Family::Convert(_) => false,
            Family::Float(_) | Family::FloatUnary(_) | Family::FloatCompare(_) | Family::Simd(_) => false,
        }
}

/// By value, the number of its expression; and by expression, a value that computes it.
fn number(func: &Func<'_>) -> (Vec<Option<u32>>, Vec<Value>) {
    type Key<'f> = (Op, Type, Type, u32, u64, &'f [Value]);
    let mut found: HashMap<Key<'_>, u32> = HashMap::new();
    let (mut numbers, mut examples) = (vec![None; func.num_values()], Vec::new());
    for &value in func.blocks().flat_map(|block| &func.block(block).insts) {
        let inst = func.inst(value);
        if matches!(inst.op.effect(), Effect::Write | Effect::Terminator)
            || matches!(inst.op, Op::Phi | Op::Const | Op::Param | Op::OsrSlot | Op::Result)
        {
            continue;
        }
        let key = (inst.op, inst.ty, func.operand_type(value), inst.aux, inst.imm, &*inst.args);
        let number = *found.entry(key).or_insert_with(|| {
            examples.push(value);
            examples.len() as u32 - 1
        });
        numbers[value.index()] = Some(number);
    }
    (numbers, examples)
}

struct Expressions {
    transfer: GenKill,
    count: usize,
}

impl Problem for Expressions {
    type Fact = BitSet;
    const DIRECTION: Direction = Direction::Forward;

    fn top(&self) -> BitSet {
        BitSet::full(self.count)
    }

    fn boundary(&self) -> BitSet {
        BitSet::empty(self.count)
    }

    fn meet(&self, fact: &mut BitSet, other: &BitSet) {
        fact.intersect(other);
    }

    fn transfer(&self, block: Block, fact: &mut BitSet) {
        self.transfer.apply(block, fact);
    }
}
