//! What an entry finds open: the walk over the code before it, for types only.

use super::super::control::{Frame, Kind, Otherwise};
use crate::ir::{Op, Type};
use crate::request::Refusal;
use weir_bytecode::instrs::BlockType;
use weir_bytecode::{FuncBody, Imm, Instr, Instrs, Module, Opcode, ValType};

/// Open blocks, and types of the operands.
pub(super) struct Prefix<'m> {
    module: &'m Module,
    body: &'m FuncBody,
    pub frames: Vec<Frame>,
    pub operands: Vec<Type>,
    /// How many blocks of dead code are open; `None` in live code.
    dead: Option<u32>,
}

impl<'m> Prefix<'m> {
    /// Walks `body` from its start to `pc`.
    ///
    /// # Errors
    /// Nothing arrives there.
    pub fn walk(module: &'m Module, body: &'m FuncBody, pc: u32) -> Result<Prefix<'m>, Refusal> {
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
            (Block, Imm::Block(ty)) => return self.open(Kind::Block, ty),
            (Loop, Imm::Block(ty)) => return self.open(Kind::Again { pc: instr.pc }, ty),
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
