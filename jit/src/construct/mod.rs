//! Bytecode to SSA in one pass, without a prior CFG analysis.
//!
//! [`build`] walks the instructions once with an abstract operand stack. Locals are variables of [`braun`]; operands
//! are plain values, merged by phis only where a label takes operands. All instructions are folded, simplified and, if
//! pure, shared within their block when they are emitted (`numeric`), and a branch on a constant drops its other edge,
//! so that the graph does not become larger than necessary. Dead code is skipped: a block is made only when an edge
//! reaches it, and blocks are numbered in the order of the code.
//!
//! `osr` is the form that the interpreter enters at a loop. The sub-files have the same names as those of the
//! interpreter.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new operation must be named by the compiler")]

mod assignments;
pub mod braun;
mod builder;
mod calls;
mod control;
mod definitions;
mod exceptions;
mod frames;
mod locals;
mod memory;
mod numeric;
mod osr;
mod stats;
mod tables;
#[cfg(test)]
mod tests;
mod variables;
mod vector;

use crate::ir::{Block, Entry, Func, Op, Type};
use crate::meter::{Ended, Meter};
use crate::request::{Options, Refusal};
use assignments::Assignments;
use builder::{Builder, work_limit};
use bumpalo::Bump;
use frames::{Edges, Frame};
pub use osr::weigh_ticks;
pub use stats::BuildStats;
pub(crate) use vector::{Access as VectorAccess, access_of as vector_access_of};
use weir_bytecode::instrs::Reader;
use weir_bytecode::{Imm, Instrs, Module, Opcode, Trap};

/// Maximum number of locals and operands of an OSR body.
const SLOT_LIMIT: usize = 1 << 20;

/// Builds the SSA of function `func` of `module`. No replacement is pending in it, unreachable blocks are empty, and
/// constants are shared and in the entry block. (A back end does not keep such long-lived constants in registers, but
/// rematerialises them.)
///
/// # Errors
/// [`Refusal::Untranslated`] for code that has no SSA; [`Refusal::Budget`] for a function whose SSA would be quadratic.
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
    build_metered(arena, module, (func, entry), options, &Meter::default(), stats)
}

/// [`build`], with a limit of its steps.
///
/// # Errors
/// # Panics
/// As [`build`]; and [`Refusal::Ended`].
pub fn build_metered<'a>(
    arena: &'a Bump,
    module: &Module,
    (func, entry): (u32, Entry),
    options: &Options,
    meter: &Meter<'_>,
    stats: &mut BuildStats,
) -> Result<Func<'a>, Refusal> {
    let body = module.body(func).expect("an imported function has no body");
    if entry != Entry::Call && body.locals.len() + body.max_operands as usize > SLOT_LIMIT {
        return Err(Refusal::Budget { backend: None, what: "an OSR body's frame", limit: SLOT_LIMIT });
    }
    let mut builder = Builder::new(arena, module, (func, entry), options, meter);
    let mut code = match entry {
        Entry::Call => {
            builder.enter_call();
            Instrs::new(module, body.entry, body.end)
        }
        Entry::Osr(pc) => builder.enter_osr(pc)?,
    };
    while let Some((pc, op)) = code.opcode() {
        builder.pc = pc;
        builder.count(1)?;
        match builder.block {
            Some(_) => builder.step(op, &mut code.reader)?,
            None => {
                code.reader.immediates(op);
                builder.skip(op);
            }
        }
        if op == Opcode::End
            && let Some(pc) = builder.peeling.next_loop.take()
        {
            code = Instrs::new(module, pc, body.end);
        }
        if builder.ssa.exhausted() {
            meter.check()?;
            return Err(Refusal::Budget { backend: None, what: "SSA construction", limit: work_limit(body) as usize });
        }
    }
    builder.finish(stats)
}

impl<'a, 'm> Builder<'a, 'm> {
    /// Emits the parameters, and the poll at function entry.
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

    /// Counts these steps, and those that the algorithm has taken since it was called last.
    #[inline]
    pub(super) fn count(&mut self, steps: usize) -> Result<(), Ended> {
        let work = self.ssa.work();
        let steps = steps + (work - self.counted) as usize;
        self.counted = work;
        self.meter.spend_holding(steps, || self.func.size() - self.before + self.ssa.size())
    }

    fn finish(mut self, stats: &mut BuildStats) -> Result<Func<'a>, Refusal> {
        if let Some(merged) = &self.vars.merged {
            if !merged.entered {
                return Err(Refusal::Untranslated { what: "entry into dead code" });
            }
            self.ssa.remove_unreachable(&mut self.func);
            self.meter.ask()?;
        }
        // The next steps use the memory of parts that are no longer needed.
        (self.edges, self.frames, self.vars.assignments) = (Edges::new(0), Vec::new(), Assignments::new(0));
        self.meter.ask()?;
        self.ssa.finish(&mut self.func);
        self.meter.ask()?;
        self.func.prepend(Block::ENTRY, &self.vars.leaders);
        self.func.settle();
        *stats = self.stats;
        let (phis, trivial_phis) = self.ssa.counts();
        (stats.counters.phis, stats.counters.trivial_phis) = (phis.into(), trivial_phis.into());
        (stats.checks, stats.operands_checked) = self.ssa.checks();
        stats.values = self.func.num_values() as u32;
        stats.work = self.ssa.work();
        Ok(self.func)
    }

    /// Translates one instruction of live code, whose immediates are next in `code`. The most frequent ones are decoded
    /// here.
    #[inline(always)]
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "TABLE 2, `vector` and `is_other` have the others, which is checked below"
    )]
    fn step(&mut self, op: Opcode, code: &mut Reader<'_>) -> Result<(), Refusal> {
        if self.options.fuel {
            self.charge(self.pc);
        }
        match op {
            Opcode::Block => self.open_block(code.block_type()),
            Opcode::Loop => self.open_loop(code.block_type()),
            Opcode::If => self.open_if(code.block_type()),
            Opcode::Else => self.open_else(),
            Opcode::End => self.end(),
            Opcode::Br => self.br(code.u32()),
            Opcode::BrIf => self.br_if(code.u32()),
            Opcode::BrTable => self.br_table(code.labels())?,
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
            // The row in TABLE 2 does not have the whole meaning of these two.
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

    /// Translates one of the other instructions.
    fn other(&mut self, op: Opcode, imm: Imm<'_>) -> Result<(), Refusal> {
        match (op, imm) {
            (Opcode::Nop, _) => {}
            (Opcode::Unreachable, _) => self.trap(Trap::UnreachableCodeReached),
            (Opcode::BrOnNull, Imm::Label(depth)) => self.br_on_null(depth),
            (Opcode::BrOnNonNull, Imm::Label(depth)) => self.br_on_non_null(depth),
            (Opcode::SelectT, _) => self.select(),

            (Opcode::TryTable, Imm::TryTable(ty, _)) => self.open_try_table(ty),
            (Opcode::Try, Imm::Block(ty)) => self.open_try(ty),
            (Opcode::Catch | Opcode::CatchAll, _) => self.catch(),
            (Opcode::Delegate, _) => self.end(),
            (Opcode::Throw, Imm::Index(tag)) => self.throw(tag),
            (Opcode::ThrowRef, _) => self.throw_ref(),
            (Opcode::Rethrow, Imm::Label(depth)) => self.rethrow(depth),

            (Opcode::CallIndirect, Imm::CallIndirect { ty, table }) => self.call_indirect(ty, table),
            (Opcode::CallRef, Imm::Index(ty)) => self.call_ref(ty),
            (Opcode::ReturnCall, Imm::Index(func)) => self.return_call(func),
            (Opcode::ReturnCallIndirect, Imm::CallIndirect { ty, table }) => self.return_call_indirect(ty, table),
            (Opcode::ReturnCallRef, Imm::Index(ty)) => self.return_call_ref(ty),

            (Opcode::F32Const, Imm::F32(bits)) => self.push_constant(Type::F32, u64::from(bits)),
            (Opcode::F64Const, Imm::F64(bits)) => self.push_constant(Type::F64, bits),

            (Opcode::RefNull, Imm::Heap(heap)) => self.push_constant(heap.into(), 0),
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
}

/// Returns whether `step` or `other` has an arm for an instruction that has no row in TABLE 2 and is not a vector
/// instruction.
const fn is_other(op: Opcode) -> bool {
    matches!(
        op,
        Opcode::Block
            | Opcode::Loop
            | Opcode::If
            | Opcode::Else
            | Opcode::End
            | Opcode::Br
            | Opcode::BrIf
            | Opcode::BrTable
            | Opcode::Return
            | Opcode::Call
            | Opcode::Drop
            | Opcode::Select
            | Opcode::LocalGet
            | Opcode::LocalSet
            | Opcode::LocalTee
            | Opcode::GlobalGet
            | Opcode::GlobalSet
            | Opcode::I32Const
            | Opcode::I64Const
            | Opcode::I64MulWideS
            | Opcode::I64MulWideU
            | Opcode::Nop
            | Opcode::Unreachable
            | Opcode::BrOnNull
            | Opcode::BrOnNonNull
            | Opcode::SelectT
            | Opcode::TryTable
            | Opcode::Try
            | Opcode::Catch
            | Opcode::CatchAll
            | Opcode::Delegate
            | Opcode::Throw
            | Opcode::ThrowRef
            | Opcode::Rethrow
            | Opcode::CallIndirect
            | Opcode::CallRef
            | Opcode::ReturnCall
            | Opcode::ReturnCallIndirect
            | Opcode::ReturnCallRef
            | Opcode::F32Const
            | Opcode::F64Const
            | Opcode::RefNull
            | Opcode::RefIsNull
            | Opcode::RefFunc
            | Opcode::TableGet
            | Opcode::TableSet
            | Opcode::TableSize
            | Opcode::TableGrow
            | Opcode::TableFill
            | Opcode::TableCopy
            | Opcode::TableInit
            | Opcode::ElemDrop
            | Opcode::RefAsNonNull
            | Opcode::I64Add128
            | Opcode::I64Sub128
            | Opcode::MemorySize
            | Opcode::MemoryGrow
            | Opcode::MemoryFill
            | Opcode::MemoryCopy
            | Opcode::MemoryInit
            | Opcode::DataDrop
    )
}

/// Every instruction has a row in TABLE 2, is a vector instruction, or has an arm.
const _: () = {
    let mut i = 0;
    while i < Opcode::ALL.len() {
        let op = Opcode::ALL[i];
        assert!(
            Op::from_opcode(op).is_some() || op.is_vector() || is_other(op),
            "an instruction that construction does not know"
        );
        i += 1;
    }
};
