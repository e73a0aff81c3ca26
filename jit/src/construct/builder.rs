//! The state of construction: the abstract stack, the current block, and the operations on them that all instructions
//! need.

use super::assignments::Assignments;
use super::braun::Braun;
use super::frames::{Edge, Edges, Frame, HandlerEdges};
use super::osr::state::Peeling;
use super::stats::BuildStats;
use super::variables::{Constants, Variables, first_saved};
use crate::ir::{Block, Entry, Func, Op, Type, Value};
use crate::meter::{Meter, used};
use crate::request::Options;
use bumpalo::Bump;
use weir_bytecode::{FuncBody, FuncType, Module, ValType};

/// The number of steps that construction may take for any function, and for each byte of its code. Compilers' output
/// takes one or two steps per byte, and at most five in small functions. Only crafted quadratic code comes near the
/// limit: many variables that are live across many blocks, or labels and calls with hundreds of results. This bounds
/// memory too, which `tests/memory.rs` checks.
const WORK_LIMIT: u64 = 2_000_000;
const WORK_PER_BYTE: u64 = 4;
/// Approximate bytes of code per value: compilers' output has 0.25 to 0.3 values per byte. Memory is reserved at once.
const BYTES_PER_VALUE: usize = 4;

/// Estimates the number of blocks from the number of branches. If there are more branches than one in three bytes, the
/// rest are labels of tables, which make no blocks.
fn expected_blocks(body: &FuncBody) -> usize {
    let (branches, bytes) = (body.branches.len(), body.len() as usize);
    if 3 * branches < bytes { branches } else { bytes / 16 }
}

pub(super) fn work_limit(body: &FuncBody) -> u64 {
    WORK_LIMIT + WORK_PER_BYTE * u64::from(body.len())
}

/// The size of the table of recent pure values: enough for recent blocks, small enough to stay in the L1 cache.
pub(super) const RECENT: usize = 512;

/// One operand on the abstract stack.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operand {
    /// This value.
    Value(Value),
    /// The variable of this operand slot: see [`osr`](super::osr).
    Slot(Type),
}

/// The state of the walk.
pub(super) struct Builder<'a, 'm> {
    pub(super) module: &'m Module,
    pub(super) body: &'m FuncBody,
    pub(super) ty: &'m FuncType,
    pub(super) options: &'m Options,
    pub(super) meter: &'m Meter<'m>,
    /// The steps of the algorithm that are counted.
    pub(super) counted: u64,
    /// The bytes of the arena that other functions use.
    pub(super) before: usize,
    pub(super) func: Func<'a>,
    pub(super) ssa: Braun<'m>,
    pub(super) vars: Variables<'m>,
    pub(super) stack: Vec<Operand>,
    pub(super) frames: Vec<Frame>,
    /// Edges into their labels.
    pub(super) edges: Edges,
    /// By handler of the body, edges to its landing block, and edges from throws to what comes after it: see `exceptions`.
    pub(super) handlers: Vec<HandlerEdges>,
    /// Unused lists of edges and operands, kept for reuse.
    pub(super) spare_edges: Vec<Edge>,
    pub(super) spare_operands: Vec<Value>,
    /// Operands that edges carry to labels: [`Edge`] refers to them.
    pub(super) label_args: Vec<Value>,
    /// The current block; `None` in dead code.
    pub(super) block: Option<Block>,
    /// The instructions of the current block so far. They are moved to the block together with its terminator.
    pub(super) insts: Vec<Value>,
    /// Number of open blocks inside dead code.
    pub(super) skipped: u32,
    /// Offset of the current instruction.
    pub(super) pc: u32,
    /// Index of the next fuel segment.
    pub(super) segment: usize,
    /// The `loop` opcodes at which the OSR body can be left, ascending.
    pub(super) exits: Vec<u32>,
    /// State of the loops around an OSR entry.
    pub(super) peeling: Peeling,
    /// Recent pure values, direct-mapped by hash, with their block.
    pub(super) recent: Box<[(Block, Value)]>,
    /// Counters of the walk itself.
    pub(super) stats: BuildStats,
}

impl<'a, 'm> Builder<'a, 'm> {
    pub(super) fn new(
        arena: &'a Bump,
        module: &'m Module,
        (index, entry): (u32, Entry),
        options: &'m Options,
        meter: &'m Meter<'m>,
    ) -> Builder<'a, 'm> {
        let body = module.body(index).expect("the caller has checked");
        let ty = module.func_type(index);
        let types = |types: &'m [ValType]| types.iter().map(|&ty| Type::from(ty));
        let mut func = Func::new(arena, index, entry, types(&ty.params), types(&ty.results));
        let (values, blocks) = (body.len() as usize / BYTES_PER_VALUE + 8, expected_blocks(body) + 8);
        func.reserve(values, blocks);
        let operands = if entry == Entry::Call { 0 } else { body.max_operands as usize };
        let refinements = &options.refinements;
        let variables = body.locals.len() + operands;
        let mut ssa = Braun::with(variables, work_limit(body), meter, refinements.search, refinements.witnesses);
        ssa.reserve(blocks);
        let assignments = Assignments::new(body.locals.len());
        let saved = first_saved(body);
        let mut vars = Variables { body, saved, merged: None, assignments, leaders: Vec::new(), constants: Constants::new() };
        let block = func.create_block();
        ssa.seal_block(&mut func, &mut vars, block);
        Builder {
            module,
            body,
            ty,
            options,
            meter,
            counted: 0,
            before: used(arena),
            func,
            ssa,
            vars,
            stack: Vec::with_capacity(16),
            frames: Vec::with_capacity(16),
            edges: Edges::new(blocks / 4),
            handlers: vec![HandlerEdges::NONE; body.handlers.len()],
            spare_edges: Vec::new(),
            spare_operands: Vec::new(),
            label_args: Vec::with_capacity(32),
            block: Some(block),
            insts: Vec::with_capacity(32),
            skipped: 0,
            pc: body.entry,
            segment: 0,
            exits: Vec::new(),
            peeling: Peeling::default(),
            recent: vec![(Block(u32::MAX), Value(0)); RECENT].into(),
            stats: BuildStats::default(),
        }
    }

    /// Returns the current block, in live code.
    pub(super) fn here(&self) -> Block {
        self.block.expect("only live code emits")
    }

    pub(super) fn push(&mut self, value: Value) {
        self.stack.push(Operand::Value(value));
    }

    pub(super) fn push_constant(&mut self, ty: Type, bits: u64) {
        let value = self.constant(ty, bits);
        self.push(value);
    }

    /// Returns the condition of a branch if construction decides the branch.
    pub(super) fn known(&mut self, condition: Value) -> Option<u64> {
        let bits = self.func.as_const(condition).filter(|_| self.options.refinements.prune)?;
        self.stats.counters.pruned += 1;
        Some(bits)
    }

    pub(super) fn constant(&mut self, ty: Type, bits: u64) -> Value {
        self.vars.constant(&mut self.func, ty, bits)
    }

    pub(super) fn pop(&mut self) -> Value {
        let value = self.operand(self.stack.len() - 1);
        self.stack.pop();
        value
    }

    /// Pops `N` operands; the last is the topmost.
    pub(super) fn pop_array<const N: usize>(&mut self) -> [Value; N] {
        let mut values = [Value(0); N];
        values.iter_mut().rev().for_each(|value| *value = self.pop());
        values
    }

    /// Pops `count` operands; the last is the topmost. The list is `spare_operands`, to which the caller should return
    /// it.
    pub(super) fn pop_list(&mut self, count: usize) -> Vec<Value> {
        let mut values = std::mem::take(&mut self.spare_operands);
        values.clear();
        let height = self.stack.len() - count;
        values.extend((height..height + count).map(|i| self.operand(i)));
        self.stack.truncate(height);
        values
    }

    /// The `count` topmost operands; the last is the topmost.
    pub(super) fn top(&mut self, count: usize) -> Vec<Value> {
        (self.stack.len() - count..self.stack.len()).map(|i| self.operand(i)).collect()
    }

    /// Returns the current operand in slot `index` of the stack.
    pub(super) fn operand(&mut self, index: usize) -> Value {
        match self.stack[index] {
            Operand::Value(value) => self.func.find(value),
            Operand::Slot(ty) => {
                // In the peeled form it is never assigned.
                let block = if self.vars.merged.is_some() { self.here() } else { Block::ENTRY };
                let variable = self.slot_variable(index);
                self.ssa.read_variable(&mut self.func, &mut self.vars, variable, block, ty)
            }
        }
    }

    /// The variable of operand slot `index`.
    pub(super) fn slot_variable(&self, index: usize) -> u32 {
        (self.body.locals.len() + index) as u32
    }

    /// Appends an instruction to the current block.
    pub(super) fn emit(&mut self, op: Op, ty: Type, aux: u32, imm: u64, args: &[Value]) -> Value {
        self.ssa.spend(1 + args.len());
        assert!(self.block.is_some(), "only live code emits");
        let value = self.func.create(op, ty, self.pc, aux, imm, args);
        self.insts.push(value);
        value
    }

    /// Charges the fuel segment that begins at `pc`, which is the current instruction, or after the current `loop` opcode; if one does.
    pub(super) fn charge(&mut self, pc: u32) {
        if !self.options.fuel {
            return;
        }
        let rest = &self.body.segments[self.segment..];
        self.segment += rest.iter().take_while(|segment| segment.pc < pc).count();
        if let Some(segment) = self.body.segments.get(self.segment)
            && segment.pc == pc
        {
            self.emit(Op::Fuel, Type::Void, 0, u64::from(segment.cost), &[]);
        }
    }
}
