//! The form of a function that the interpreter enters at a loop, with its frame.
//!
//! The entry block loads what is live from the frame, a slot when it is first asked for, and jumps to the loop's
//! header. Structured code can come back only to the loops around it: so translation starts at the outermost loop
//! around the entry, and what stands before that is walked for the types on the operand stack only. The headers of the
//! loops around the entry have no edge from outside, or only one from inside the outermost of them, and yet they are
//! reached, from behind the entry. What nothing comes back to is taken out in the end.
//!
//! Two things differ from the ordinary form until the entry has been passed:
//! - A local is unchanged at the header of such a loop only if *none* of them assigns it, since the code before the
//!   entry runs after it, on the next round of an outer loop. Then its value is the one in the frame.
//! - An operand below a block that may hold the entry is there in two ways, computed on the path through the code and
//!   found in the frame. It becomes a variable, [`Operand::Slot`], read where it is popped.

use super::control::{Frame, Kind, Otherwise, param_type};
use super::{Builder, Operand};
use crate::contract::FRAME_HEADER;
use crate::ir::{Block, Op, Type};
use crate::request::Refusal;
use weir_bytecode::instrs::BlockType;
use weir_bytecode::sidetable::{LocalSet, LoopInfo};
use weir_bytecode::{FuncBody, Imm, Instr, Instrs, Module, Opcode, ValType};

/// The region of the loops around the entry, and of the loop of the entry itself.
pub(super) const ENCLOSING: u32 = u32::MAX;

/// What an OSR body knows of its entry.
pub(super) struct Osr<'m> {
    /// The `loop` opcode.
    pc: u32,
    /// The `loop` opcodes around it and itself, ascending.
    enclosing: Vec<u32>,
    /// Whether it has been reached.
    pub(super) entered: bool,
    /// Words of a slot of the frame.
    words: u64,
    /// Number of locals.
    locals: u32,
    /// What the outermost loop around the entry assigns, and so any of them.
    assigned_locals: &'m LocalSet,
    /// Operands below that loop. Nothing ever assigns them.
    base: u32,
}

impl Osr<'_> {
    /// The slot, in words of 8 bytes, of the interpreter's frame that holds `variable` at the entry.
    pub(super) fn frame_slot(&self, variable: u32) -> u64 {
        let header = if variable < self.locals { 0 } else { FRAME_HEADER };
        self.words * u64::from(variable) + u64::from(header)
    }

    /// Whether the entry is from `open` to `end`.
    pub(super) fn within(&self, open: u32, end: u32) -> bool {
        (open..end).contains(&self.pc)
    }

    /// Whether a loop around the entry may write `variable`.
    pub(super) fn assigned(&self, variable: u32) -> bool {
        match variable.checked_sub(self.locals) {
            Some(operand) => operand >= self.base,
            None => self.assigned_locals.contains(variable),
        }
    }
}

impl<'m> Builder<'_, 'm> {
    /// Sets up the state at the outermost loop around the loop at `pc`, and opens it. Returns what follows.
    pub(super) fn enter_osr(&mut self, pc: u32) -> Result<Instrs<'m>, Refusal> {
        let (enclosing, outermost) = enclosing_loops(self.body, pc).ok_or(Refusal::Untranslated { what: "entry at no loop" })?;
        let prefix = Prefix::walk(self.module, self.body, outermost.pc)?;
        self.frames = prefix.frames;
        self.stack = prefix.operands.into_iter().map(Operand::Slot).collect();
        let mut instrs = Instrs::new(self.module, outermost.pc, self.body.end);
        let Some(Instr { imm: Imm::Block(ty), .. }) = instrs.next() else { unreachable!("there is a `loop`") };
        self.vars.osr = Some(Osr {
            pc,
            enclosing,
            entered: false,
            words: 1 + u64::from(self.body.wide),
            locals: self.body.locals.len() as u32,
            assigned_locals: &outermost.assigned,
            base: (self.stack.len() - ty.arity(self.module).0) as u32,
        });
        self.block = None;
        self.pc = outermost.pc;
        self.open_loop(ty);
        Ok(instrs)
    }

    /// If the loop at hand is the one of the entry, adds the edge from the entry block to its header. Returns the
    /// edge's arguments.
    pub(super) fn osr_edge(&mut self, header: Block, ty: BlockType) -> Option<u32> {
        let osr = self.vars.osr.as_mut().filter(|osr| osr.pc == self.pc)?;
        osr.entered = true;
        self.func.append(Block::ENTRY, Op::Jump, Type::Void, self.pc, 0, 0, &[]);
        self.func.add_edge(Block::ENTRY, header);
        let start = self.label_args.len() as u32;
        for i in 0..ty.arity(self.module).0 {
            let (variable, ty) = (self.slot_variable(self.stack.len() + i), param_type(self.module, ty, i));
            let value = self.ssa.read_variable(&mut self.func, &mut self.vars, variable, Block::ENTRY, ty);
            self.label_args.push(value);
        }
        Some(start)
    }

    /// The region of the loop at hand, and the block whose variables pass through it. `from` leads to the loop.
    pub(super) fn region(&self, from: Option<Block>) -> (Block, u32) {
        if self.vars.osr.as_ref().is_some_and(|osr| osr.enclosing.binary_search(&self.pc).is_ok()) {
            return (Block::ENTRY, ENCLOSING);
        }
        let index = self.body.loops.partition_point(|info| info.pc < self.pc);
        (from.expect("a loop is opened in live code"), index as u32)
    }

    /// Before a block is opened that may hold the entry: makes variables of the operands below it.
    pub(super) fn operands_to_slots(&mut self) {
        if self.vars.osr.as_ref().is_none_or(|osr| self.pc > osr.pc) {
            return;
        }
        // Those below the innermost block became variables when that was opened.
        let height = self.frames.last().map_or(0, Frame::height);
        for i in height..self.stack.len() {
            if let Operand::Value(value) = self.stack[i] {
                self.ssa.write_variable(self.slot_variable(i), self.here(), value);
                self.stack[i] = Operand::Slot(self.func.ty(value));
            }
        }
    }
}

/// The opcodes of the loop at `pc` and of those that hold it, ascending, and the outermost of them.
fn enclosing_loops(body: &FuncBody, pc: u32) -> Option<(Vec<u32>, &LoopInfo)> {
    let mut info = body.loop_at(pc)?;
    let mut pcs = vec![pc];
    while let Some(parent) = info.parent {
        info = &body.loops[parent as usize];
        pcs.push(info.pc);
    }
    pcs.reverse();
    Some((pcs, info))
}

/// Open blocks and types of the operands somewhere outside all loops.
struct Prefix<'m> {
    module: &'m Module,
    body: &'m FuncBody,
    frames: Vec<Frame>,
    operands: Vec<Type>,
    /// How many blocks of dead code are open; `None` in live code.
    dead: Option<u32>,
}

impl<'m> Prefix<'m> {
    /// Walks `body` from its start to `pc`.
    fn walk(module: &'m Module, body: &'m FuncBody, pc: u32) -> Result<Prefix<'m>, Refusal> {
        let mut prefix = Prefix { module, body, frames: vec![Frame::function()], operands: Vec::new(), dead: None };
        for instr in Instrs::new(module, body.entry, pc) {
            match prefix.dead {
                None => prefix.step(instr),
                Some(depth) => prefix.skip(instr.op, depth),
            }
        }
        match prefix.dead {
            None => Ok(prefix),
            Some(_) => Err(Refusal::Untranslated { what: "entry into dead code" }),
        }
    }

    fn step(&mut self, instr: Instr<'_>) {
        use Opcode::*;
        let (pops, push) = match (instr.op, instr.imm) {
            (Block | Loop, Imm::Block(ty)) => return self.open(Kind::Block, ty),
            (If, Imm::Block(ty)) => {
                self.operands.pop();
                return self.open(Kind::If(Otherwise::Nothing), ty);
            }
            (Else, _) => return self.open_else(),
            (End, _) => return self.end(),
            (Unreachable | Br | BrTable | Return | ReturnCall | ReturnCallIndirect | ReturnCallRef, _) => {
                self.dead = Some(0);
                return;
            }
            (Call, Imm::Index(func)) => return self.call(self.module.funcs[func as usize], 0),
            (CallIndirect, Imm::CallIndirect { ty, .. }) => return self.call(ty, 1),
            (CallRef, Imm::Index(ty)) => return self.call(ty, 1),

            (Nop | LocalTee | DataDrop | ElemDrop | BrOnNull | RefAsNonNull, _) => (0, None),
            (Drop | BrIf | BrOnNonNull | LocalSet | GlobalSet, _) => (1, None),
            // Two operands fewer than came: both results are of the operands' type.
            (I64Add128 | I64Sub128, _) => (2, None),
            (I64MulWideS | I64MulWideU, _) => (0, None),
            // One of the two alternatives stays.
            (Select | SelectT, _) => (2, None),
            (LocalGet, Imm::Index(local)) => (0, Some(self.body.locals[local as usize].into())),
            (GlobalGet, Imm::Index(global)) => (0, Some(self.module.globals[global as usize].value.into())),
            (RefNull | RefFunc, _) => (0, Some(Type::Ref)),
            (RefIsNull, _) => (1, Some(Type::I32)),
            (TableGet, _) => (1, Some(Type::Ref)),
            (TableSet, _) => (2, None),
            (TableSize, Imm::Index(table)) => (0, Some(self.table_index(table))),
            (TableGrow, Imm::Index(table)) => (2, Some(self.table_index(table))),
            (MemorySize, Imm::Index(memory)) => (0, Some(self.memory_index(memory))),
            (MemoryGrow, Imm::Index(memory)) => (1, Some(self.memory_index(memory))),
            (MemoryFill | MemoryCopy | MemoryInit | TableFill | TableCopy | TableInit, _) => (3, None),
            (V128Store, _) => (2, None),
            (op, Imm::Mem(_)) if op.is_vector() => (1, Some(Type::V128)),
            (V128Load8Lane | V128Load16Lane | V128Load32Lane | V128Load64Lane, _) => (2, Some(Type::V128)),
            (V128Store8Lane | V128Store16Lane | V128Store32Lane | V128Store64Lane, _) => (2, None),
            (op, Imm::Mem(_)) => match Op::from_opcode(op) {
                Some((access, _, ty)) if access.arity() == Some(1) => (1, Some(ty)),
                _ => (2, None),
            },
            (op, _) => {
                let signature = op.signature().expect("every other instruction has a fixed signature");
                (signature.operands.len(), Some(signature.result.into()))
            }
        };
        self.drop(pops);
        self.operands.extend(push);
    }

    fn skip(&mut self, op: Opcode, depth: u32) {
        match op {
            Opcode::Block | Opcode::Loop | Opcode::If => self.dead = Some(depth + 1),
            Opcode::End if depth > 0 => self.dead = Some(depth - 1),
            Opcode::End => self.end(),
            Opcode::Else if depth == 0 => self.open_else(),
            _ => {}
        }
    }

    fn open(&mut self, kind: Kind, ty: BlockType) {
        let height = self.operands.len() - ty.arity(self.module).0;
        self.frames.push(Frame::new(kind, ty, height));
    }

    fn open_else(&mut self) {
        let frame = self.frames.last_mut().expect("validated code nests");
        frame.kind = Kind::Block;
        self.operands.truncate(frame.height());
        if let BlockType::Func(ty) = frame.ty {
            self.operands.extend(types(&self.module.types[ty as usize].params));
        }
        self.dead = None;
    }

    fn end(&mut self) {
        let frame = self.frames.pop().expect("validated code nests");
        self.operands.truncate(frame.height());
        match frame.ty {
            BlockType::Empty => {}
            BlockType::Value(ty) => self.operands.push(ty.into()),
            BlockType::Func(ty) => self.operands.extend(types(&self.module.types[ty as usize].results)),
        }
        self.dead = None;
    }

    /// A call of a function of type `ty`, with `extra` operands above the arguments.
    fn call(&mut self, ty: u32, extra: usize) {
        let ty = &self.module.types[ty as usize];
        self.drop(ty.params.len() + extra);
        self.operands.extend(types(&ty.results));
    }

    fn drop(&mut self, count: usize) {
        self.operands.truncate(self.operands.len() - count);
    }

    fn memory_index(&self, memory: u32) -> Type {
        if self.module.memories[memory as usize].memory64 { Type::I64 } else { Type::I32 }
    }

    fn table_index(&self, table: u32) -> Type {
        if self.module.tables[table as usize].ty.table64 { Type::I64 } else { Type::I32 }
    }
}

fn types(types: &[ValType]) -> impl Iterator<Item = Type> + '_ {
    types.iter().map(|&ty| ty.into())
}
