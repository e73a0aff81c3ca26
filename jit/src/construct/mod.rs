//! Bytecode to SSA in one pass, without a prior CFG analysis.
//!
//! [`build`] walks the instructions once with an abstract operand stack. Locals are variables of [`braun`]; operands
//! are plain values, merged by phis only where a label takes operands. Everything emitted is folded, simplified and, if
//! pure, shared within its block on the way (`numeric`), and a branch on a constant drops its other edge, so that the
//! graph is never bigger than it must be. Dead code is skipped: a block is made only once an edge reaches it, and
//! blocks are numbered in the order of the code.
//!
//! `osr` is the form that the interpreter enters at a loop. The sub-files have the names that the interpreter's have.

pub mod braun;
mod calls;
mod control;
mod definitions;
mod joins;
mod memory;
mod numeric;
mod osr;
mod refinements;
mod tables;
#[cfg(test)]
mod tests;
mod vector;

use crate::ir::{Block, Entry, Func, Op, Type, Value};
use crate::request::{Options, Refusal};
use braun::Braun;
use bumpalo::Bump;
use control::{Edge, Edges, Frame};
use definitions::NumberHash;
use joins::Joins;
use osr::{Merged, Rounds};
pub use refinements::{Refinements, Search};
use weir_bytecode::instrs::Reader;
use weir_bytecode::{FuncBody, FuncType, Imm, Instrs, Module, Opcode, Trap, ValType};

/// What construction counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BuildStats {
    /// Phis placed that stayed.
    pub phis: u32,
    /// Phis placed and found trivial.
    pub trivial_phis: u32,
    /// How often a phi was examined for triviality.
    pub checks: u64,
    /// Operands that were compared for that.
    pub operands_checked: u64,
    /// Operations on constants that became constants.
    pub folded: u32,
    /// Operations that an identity made a value or another operation.
    pub simplified: u32,
    /// Operations by a power of two that became cheaper ones.
    pub reduced: u32,
    /// Operations that an equal one stands for.
    pub shared: u32,
    /// Branches on constants that lost their other edges.
    pub pruned: u32,
    /// Values, constants and phis included.
    pub values: u32,
    /// Steps taken: instructions, their operands, and [`Braun::work`].
    pub work: u64,
}

/// Steps allowed to any function, and those allowed for each byte of its code. Compilers' output takes one or two steps
/// per byte, and five at the most in small functions; only what was made to be quadratic comes near: many variables
/// live across many blocks, or labels and calls with hundreds of results. The memory that this bounds: `tests/memory.rs`.
const WORK_LIMIT: u64 = 2_000_000;
const WORK_PER_BYTE: u64 = 4;
/// Locals and operands that an OSR body may have.
const SLOT_LIMIT: usize = 1 << 20;

/// Bytes of code for each value, about: compilers' output has 0.25 to 0.3 values per byte. Room is made at once.
const BYTES_PER_VALUE: usize = 4;

/// About as many as the branches; but more branches than one in three bytes are labels of tables, which make none.
fn expected_blocks(body: &FuncBody) -> usize {
    let (branches, bytes) = (body.branches.len(), body.len() as usize);
    if 3 * branches < bytes { branches } else { bytes / 16 }
}

/// Builds the SSA of function `func` of `module`: no replacement is pending in it, blocks that cannot be reached are
/// empty, and constants are shared and stand in the entry block. (They live long there; a back end does not keep them
/// in registers but makes them anew at each use.)
///
/// # Errors
/// [`Refusal::Untranslated`] for what has no SSA; [`Refusal::Budget`] for a function whose SSA would be quadratic.
///
/// # Panics
/// If `func` is imported.
pub fn build<'a>(
    arena: &'a Bump,
    module: &Module,
    func: u32,
    entry: Entry,
    options: &Options,
    stats: &mut BuildStats,
) -> Result<Func<'a>, Refusal> {
    let body = module.body(func).expect("an imported function has no body");
    if entry != Entry::Call && body.locals.len() + body.max_operands as usize > SLOT_LIMIT {
        return Err(Refusal::Budget { what: "an OSR body's frame", limit: SLOT_LIMIT });
    }
    let mut builder = Builder::new(arena, module, func, entry, options);
    let mut code = match entry {
        Entry::Call => {
            builder.enter_call();
            Instrs::new(module, body.entry, body.end)
        }
        Entry::Osr(pc) => builder.enter_osr(pc)?,
    };
    while let Some((pc, op)) = code.opcode() {
        builder.pc = pc;
        match builder.block {
            Some(_) => builder.step(op, &mut code.reader)?,
            None => {
                code.reader.immediates(op);
                builder.skip(op);
            }
        }
        if op == Opcode::End
            && let Some(pc) = builder.rounds.again.take()
        {
            code = Instrs::new(module, pc, body.end);
        }
        if builder.ssa.exhausted() {
            return Err(Refusal::Budget { what: "SSA construction", limit: work_limit(body) as usize });
        }
    }
    builder.finish(stats)
}

fn work_limit(body: &FuncBody) -> u64 {
    WORK_LIMIT + WORK_PER_BYTE * u64::from(body.len())
}

/// One operand on the abstract stack.
#[derive(Clone, Copy, Debug)]
enum Operand {
    /// This value.
    Value(Value),
    /// The variable of this operand slot: see [`osr`].
    Slot(Type),
}

/// The state of the walk.
struct Builder<'a, 'm> {
    module: &'m Module,
    body: &'m FuncBody,
    ty: &'m FuncType,
    options: &'m Options,
    func: Func<'a>,
    ssa: Braun,
    vars: Variables<'m>,
    stack: Vec<Operand>,
    frames: Vec<Frame>,
    /// Edges into their labels.
    edges: Edges,
    /// Lists of edges and operands that are not in use.
    spare_edges: Vec<Edge>,
    spare_operands: Vec<Value>,
    /// Operands that edges carry to labels: [`control::Edge`] refers to them.
    label_args: Vec<Value>,
    /// The block at hand; `None` in dead code.
    block: Option<Block>,
    /// Its instructions so far: they become the block's when its terminator is among them.
    insts: Vec<Value>,
    /// How many blocks inside dead code are open.
    skipped: u32,
    /// Of the instruction at hand.
    pc: u32,
    /// Index of the next fuel segment.
    segment: usize,
    /// Of the loops around an OSR entry.
    rounds: Rounds,
    /// Recent pure values, direct-mapped by hash, with their block.
    recent: Box<[(Block, Value)]>,
    /// What the walk itself counts.
    stats: BuildStats,
}

/// What the variables are: locals first, then, in an OSR body, operand slots.
struct Variables<'m> {
    body: &'m FuncBody,
    /// If the form is that of an OSR body that holds everything once.
    merged: Option<Merged<'m>>,
    joins: Joins,
    /// What is to stand at the head of the entry block.
    leaders: Vec<Value>,
    constants: Constants,
}

impl Variables<'_> {
    /// The constant `bits`, which stands in the entry block.
    fn constant(&mut self, func: &mut Func<'_>, ty: Type, bits: u64) -> Value {
        let slot = self.constants.find(func, ty, bits);
        if self.constants.slots[slot] != Constants::FREE {
            return self.constants.slots[slot];
        }
        let value = func.create(Op::Const, ty, 0, 0, bits, &[]);
        self.leaders.push(value);
        self.constants.set(func, slot, value);
        value
    }
}

/// The constants of a function by type and bits: open addressing with linear probing, at most half full.
struct Constants {
    /// A power of two of them.
    slots: Vec<Value>,
    taken: usize,
    hash: NumberHash,
}

impl Constants {
    const FREE: Value = Value(u32::MAX);

    fn new() -> Constants {
        Constants { slots: vec![Constants::FREE; 32], taken: 0, hash: NumberHash::default() }
    }

    /// The slot of this constant, or a free one for it.
    fn find(&self, func: &Func<'_>, ty: Type, bits: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = self.hash.of(bits ^ (ty as u64) << 56) as usize & mask;
        loop {
            let value = self.slots[at];
            if value == Constants::FREE || (func.ty(value), func.inst(value).imm) == (ty, bits) {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    fn set(&mut self, func: &Func<'_>, slot: usize, value: Value) {
        self.slots[slot] = value;
        self.taken += 1;
        if 2 * self.taken > self.slots.len() {
            let grown = vec![Constants::FREE; 2 * self.slots.len()];
            for value in std::mem::replace(&mut self.slots, grown).into_iter().filter(|&value| value != Constants::FREE) {
                let slot = self.find(func, func.ty(value), func.inst(value).imm);
                self.slots[slot] = value;
            }
        }
    }
}

impl braun::Variables for Variables<'_> {
    fn initial(&mut self, func: &mut Func<'_>, variable: u32, ty: Type) -> Value {
        match func.entry {
            Entry::Osr(_) => {
                let value = func.create(Op::OsrSlot, ty, 0, 0, osr::frame_slot(self.body, variable), &[]);
                self.leaders.push(value);
                value
            }
            Entry::Call => self.constant(func, ty, 0),
        }
    }

    fn assigned(&self, region: u32, variable: u32) -> bool {
        match &self.merged {
            Some(merged) if region == osr::ENCLOSING => merged.assigned(self.body, variable),
            _ => match region.checked_sub(self.body.loops.len() as u32) {
                Some(join) => self.joins.assigned(join, variable),
                None => self.body.loops[region as usize].assigned.contains(variable),
            },
        }
    }
}

impl<'a, 'm> Builder<'a, 'm> {
    fn new(arena: &'a Bump, module: &'m Module, index: u32, entry: Entry, options: &'m Options) -> Builder<'a, 'm> {
        let body = module.body(index).expect("the caller has checked");
        let ty = module.func_type(index);
        let types = |types: &'m [ValType]| types.iter().map(|&ty| Type::from(ty));
        let mut func = Func::new(arena, index, entry, types(&ty.params), types(&ty.results));
        let (values, blocks) = (body.len() as usize / BYTES_PER_VALUE + 8, expected_blocks(body) + 8);
        func.reserve(values, blocks);
        let operands = if entry == Entry::Call { 0 } else { body.max_operands as usize };
        let refinements = &options.refinements;
        let mut ssa = Braun::with(body.locals.len() + operands, work_limit(body), refinements.search, refinements.witnesses);
        ssa.reserve(blocks);
        let joins = Joins::new(body.locals.len());
        let mut vars = Variables { body, merged: None, joins, leaders: Vec::new(), constants: Constants::new() };
        let block = func.create_block();
        ssa.seal_block(&mut func, &mut vars, block);
        Builder {
            module,
            body,
            ty,
            options,
            func,
            ssa,
            vars,
            stack: Vec::with_capacity(16),
            frames: Vec::with_capacity(16),
            edges: Edges::new(blocks / 4),
            spare_edges: Vec::new(),
            spare_operands: Vec::new(),
            label_args: Vec::with_capacity(32),
            block: Some(block),
            insts: Vec::with_capacity(32),
            skipped: 0,
            pc: body.entry,
            segment: 0,
            rounds: Rounds::default(),
            recent: vec![(Block(u32::MAX), Value(0)); numeric::RECENT].into(),
            stats: BuildStats::default(),
        }
    }

    /// Parameters, and the poll that every call does.
    fn enter_call(&mut self) {
        for (i, &ty) in self.ty.params.iter().enumerate() {
            let param = self.func.create(Op::Param, ty.into(), 0, 0, i as u64, &[]);
            self.vars.leaders.push(param);
            self.ssa.write_variable(i as u32, Block::ENTRY, param);
        }
        self.frames.push(Frame::function());
        if self.options.poll {
            self.emit(Op::Poll, Type::Void, 0, 0, &[]);
        }
    }

    fn finish(mut self, stats: &mut BuildStats) -> Result<Func<'a>, Refusal> {
        if let Some(merged) = &self.vars.merged {
            if !merged.entered {
                return Err(Refusal::Untranslated { what: "entry into dead code" });
            }
            self.ssa.remove_unreachable(&mut self.func);
        }
        // What follows needs the room of what is done with.
        (self.edges, self.frames, self.vars.joins) = (Edges::new(0), Vec::new(), Joins::new(0));
        self.ssa.finish(&mut self.func);
        self.func.prepend(Block::ENTRY, &self.vars.leaders);
        self.func.settle();
        *stats = self.stats;
        (stats.phis, stats.trivial_phis) = self.ssa.counts();
        (stats.checks, stats.operands_checked) = self.ssa.checks();
        stats.values = self.func.num_values() as u32;
        stats.work = self.ssa.work();
        Ok(self.func)
    }

    /// One instruction of live code, whose immediates are next in `code`. Those that make up most of it are decoded here.
    #[inline(always)]
    fn step(&mut self, op: Opcode, code: &mut Reader<'_>) -> Result<(), Refusal> {
        if self.options.fuel && op != Opcode::Loop {
            self.charge();
        }
        match op {
            Opcode::Block => self.open_block(code.block_type()),
            Opcode::Loop => self.open_loop(code.block_type()),
            Opcode::If => self.open_if(code.block_type()),
            Opcode::Else => self.open_else(),
            Opcode::End => self.end(),
            Opcode::Br => self.br(code.u32()),
            Opcode::BrIf => self.br_if(code.u32()),
            Opcode::BrTable => self.br_table(code.labels()),
            Opcode::Return => self.return_(),
            Opcode::Call => self.call(code.u32()),
            Opcode::Drop => {
                self.stack.pop();
            }
            Opcode::Select => self.select(),
            Opcode::LocalGet => self.local_get(code.u32()),
            Opcode::LocalSet => self.local_set(code.u32()),
            Opcode::LocalTee => self.local_tee(code.u32()),
            Opcode::GlobalGet => self.global_get(code.u32()),
            Opcode::GlobalSet => self.global_set(code.u32()),
            Opcode::I32Const => self.push_constant(Type::I32, u64::from(code.i64() as u32)),
            Opcode::I64Const => self.push_constant(Type::I64, code.i64() as u64),
            // The only ones with a row in the table of operations that mean more than it.
            Opcode::I64MulWideS => self.mul_wide(true),
            Opcode::I64MulWideU => self.mul_wide(false),
            _ => match Op::from_opcode(op) {
                Some((op, ty, _)) if op.access_width(ty).is_some() && ty != Type::V128 => self.access(op, ty, code.mem_arg()),
                Some((op, operand, result)) if operand != Type::V128 => self.numeric(op, operand, result),
                _ => return self.other(op, code.immediates(op)),
            },
        }
        Ok(())
    }

    /// One of the other instructions.
    fn other(&mut self, op: Opcode, imm: Imm<'_>) -> Result<(), Refusal> {
        match (op, imm) {
            (Opcode::Nop, _) => {}
            (Opcode::Unreachable, _) => self.trap(Trap::UnreachableCodeReached),
            (Opcode::BrOnNull, Imm::Label(depth)) => self.br_on_null(depth),
            (Opcode::BrOnNonNull, Imm::Label(depth)) => self.br_on_non_null(depth),
            (Opcode::SelectT, _) => self.select(),

            (Opcode::CallIndirect, Imm::CallIndirect { ty, table }) => self.call_indirect(ty, table),
            (Opcode::CallRef, Imm::Index(ty)) => self.call_ref(ty),
            (Opcode::ReturnCall, Imm::Index(func)) => self.return_call(func),
            (Opcode::ReturnCallIndirect, Imm::CallIndirect { ty, table }) => self.return_call_indirect(ty, table),
            (Opcode::ReturnCallRef, Imm::Index(ty)) => self.return_call_ref(ty),

            (Opcode::F32Const, Imm::F32(bits)) => self.push_constant(Type::F32, u64::from(bits)),
            (Opcode::F64Const, Imm::F64(bits)) => self.push_constant(Type::F64, bits),

            (Opcode::RefNull, _) => self.push_constant(Type::Ref, 0),
            (Opcode::RefIsNull, _) => self.ref_is_null(),
            (Opcode::RefFunc, Imm::Index(func)) => self.ref_func(func),
            (Opcode::TableGet, Imm::Index(table)) => self.table_get(table),
            (Opcode::TableSet, Imm::Index(table)) => self.table_set(table),
            (Opcode::TableSize, Imm::Index(table)) => self.table_size(table),
            (Opcode::TableGrow, Imm::Index(table)) => self.table_grow(table),
            (Opcode::TableFill, Imm::Index(table)) => self.bulk(Op::TableFill, table, 0),
            (Opcode::TableCopy, Imm::Index2(to, from)) => self.bulk(Op::TableCopy, to, from),
            (Opcode::TableInit, Imm::Index2(segment, table)) => self.bulk(Op::TableInit, table, segment),
            (Opcode::ElemDrop, Imm::Index(segment)) => self.drop_segment(Op::ElemDrop, segment),
            (Opcode::RefAsNonNull, _) => {
                let reference = self.pop();
                let reference = self.non_null(reference);
                self.push(reference);
            }
            (Opcode::I64Add128, _) => self.add128(),
            (Opcode::I64Sub128, _) => self.sub128(),

            (op, imm) if op.is_vector() => self.vector(op, imm),
            (Opcode::MemorySize, Imm::Index(memory)) => self.memory_size(memory),
            (Opcode::MemoryGrow, Imm::Index(memory)) => self.memory_grow(memory),
            (Opcode::MemoryFill, Imm::Index(memory)) => self.bulk(Op::MemoryFill, memory, 0),
            (Opcode::MemoryCopy, Imm::Index2(to, from)) => self.bulk(Op::MemoryCopy, to, from),
            (Opcode::MemoryInit, Imm::Index2(segment, memory)) => self.bulk(Op::MemoryInit, memory, segment),
            (Opcode::DataDrop, Imm::Index(segment)) => self.drop_segment(Op::DataDrop, segment),

            (op, _) => return Err(Refusal::Untranslated { what: op.mnemonic() }),
        }
        Ok(())
    }

    /// The block at hand, in live code.
    fn here(&self) -> Block {
        self.block.expect("only live code emits")
    }

    fn push(&mut self, value: Value) {
        self.stack.push(Operand::Value(value));
    }

    fn push_constant(&mut self, ty: Type, bits: u64) {
        let value = self.constant(ty, bits);
        self.push(value);
    }

    /// The bits of what a branch depends on, if the branch is to be decided here.
    fn known(&mut self, condition: Value) -> Option<u64> {
        let bits = self.func.as_const(condition).filter(|_| self.options.refinements.prune)?;
        self.stats.pruned += 1;
        Some(bits)
    }

    fn constant(&mut self, ty: Type, bits: u64) -> Value {
        self.vars.constant(&mut self.func, ty, bits)
    }

    fn pop(&mut self) -> Value {
        let value = self.operand(self.stack.len() - 1);
        self.stack.pop();
        value
    }

    /// Pops `N` operands; the last is the topmost.
    fn pop_array<const N: usize>(&mut self) -> [Value; N] {
        let mut values = [Value(0); N];
        values.iter_mut().rev().for_each(|value| *value = self.pop());
        values
    }

    /// Pops `count` operands; the last is the topmost. The list is `spare_operands`: worth giving back.
    fn pop_list(&mut self, count: usize) -> Vec<Value> {
        let mut values = std::mem::take(&mut self.spare_operands);
        values.clear();
        let height = self.stack.len() - count;
        values.extend((height..height + count).map(|i| self.operand(i)));
        self.stack.truncate(height);
        values
    }

    /// The `count` topmost operands; the last is the topmost.
    fn top(&mut self, count: usize) -> Vec<Value> {
        (self.stack.len() - count..self.stack.len()).map(|i| self.operand(i)).collect()
    }

    /// The operand in slot `index` of the stack, as of now.
    fn operand(&mut self, index: usize) -> Value {
        match self.stack[index] {
            Operand::Value(value) => self.func.find(value),
            Operand::Slot(ty) => {
                // In the peeled form nothing assigns it.
                let block = if self.vars.merged.is_some() { self.here() } else { Block::ENTRY };
                let variable = self.slot_variable(index);
                self.ssa.read_variable(&mut self.func, &mut self.vars, variable, block, ty)
            }
        }
    }

    /// The variable of operand slot `index`.
    fn slot_variable(&self, index: usize) -> u32 {
        (self.body.locals.len() + index) as u32
    }

    /// Appends an instruction to the block at hand.
    fn emit(&mut self, op: Op, ty: Type, aux: u32, imm: u64, args: &[Value]) -> Value {
        self.ssa.spend(1 + args.len());
        assert!(self.block.is_some(), "only live code emits");
        let value = self.func.create(op, ty, self.pc, aux, imm, args);
        self.insts.push(value);
        value
    }

    /// Charges the fuel segment that starts with the instruction at hand, if one does.
    fn charge(&mut self) {
        if !self.options.fuel {
            return;
        }
        let rest = &self.body.segments[self.segment..];
        self.segment += rest.iter().take_while(|segment| segment.pc < self.pc).count();
        if let Some(segment) = self.body.segments.get(self.segment)
            && segment.pc == self.pc
        {
            self.emit(Op::Fuel, Type::Void, 0, u64::from(segment.cost), &[]);
        }
    }

    fn local_get(&mut self, local: u32) {
        let (ty, block) = (self.body.locals[local as usize].into(), self.here());
        let value = self.ssa.read_variable(&mut self.func, &mut self.vars, local, block, ty);
        self.push(value);
    }

    fn local_set(&mut self, local: u32) {
        let value = self.pop();
        self.write_local(local, value);
    }

    fn local_tee(&mut self, local: u32) {
        let value = self.pop();
        self.write_local(local, value);
        self.push(value);
    }

    fn write_local(&mut self, local: u32, value: Value) {
        self.vars.joins.assign(local, self.position());
        self.ssa.write_variable(local, self.here(), value);
    }

    fn global_get(&mut self, global: u32) {
        let ty = self.module.globals[global as usize].value.into();
        let value = self.emit(Op::GlobalGet, ty, global, 0, &[]);
        self.push(value);
    }

    fn global_set(&mut self, global: u32) {
        let value = self.pop();
        self.emit(Op::GlobalSet, Type::Void, global, 0, &[value]);
    }
}
