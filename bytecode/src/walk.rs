//! The types on the operand stack at an instruction of validated code, found by walking the body from its start for
//! types only. OSR entries use them, and root maps of frames of the interpreter and of baseline code.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new operation must be named by the compiler")]

use crate::body::FuncBody;
use crate::instrs::{Instr, Instrs, Nesting};
use crate::module::Module;
use crate::opcodes::{CallKind, Control, Effect, Immediates, Opcode, StackType};
use crate::reader::{BlockType, Imm};
use crate::types::{HeapType, RefType, ValType};

/// A block that is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenBlock {
    /// The instruction that opened it.
    pub kind: BlockKind,
    /// Its type.
    pub ty: BlockType,
    /// Operands below its parameters.
    pub height: usize,
}

/// The instructions that open a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockKind {
    /// The function.
    Function,
    /// A `block`, or an `else`.
    Block,
    /// The `loop` at this offset.
    Loop {
        /// Offset of its opcode.
        pc: u32,
    },
    /// An `if`, in its first arm.
    If,
    /// The `try_table` at this offset, or the `try`, before its first `catch` or `catch_all`.
    Try {
        /// Offset of its opcode.
        pc: u32,
    },
    /// The `try` at this offset, after a `catch` or `catch_all`.
    Catch {
        /// Offset of its opcode.
        pc: u32,
        /// The number of its `catch` and `catch_all` so far.
        handlers: u32,
    },
}

/// The walk's state before an instruction.
#[derive(Clone, Debug)]
pub struct Walk<'m> {
    module: &'m Module,
    body: &'m FuncBody,
    /// The blocks that are open, the function's own first.
    pub blocks: Vec<OpenBlock>,
    /// The types of the operands, bottom of the stack first. Meaningless in dead code.
    pub operands: Vec<ValType>,
    /// Number of open blocks of dead code; `None` in live code.
    dead: Option<u32>,
}

impl<'m> Walk<'m> {
    /// Before the first instruction of `body`.
    pub fn new(module: &'m Module, body: &'m FuncBody) -> Walk<'m> {
        let function = OpenBlock { kind: BlockKind::Function, ty: BlockType::Empty, height: 0 };
        Walk { module, body, blocks: vec![function], operands: Vec::new(), dead: None }
    }

    /// Before the instruction of `body` at `pc`; `None` if it is in dead code.
    pub fn to(module: &'m Module, body: &'m FuncBody, pc: u32) -> Option<Walk<'m>> {
        let mut walk = Walk::new(module, body);
        Instrs::new(module, body.entry, pc).for_each(|instr| walk.step(instr));
        walk.is_live().then_some(walk)
    }

    /// The locals and, after them, the operands of `body` that are references into the collected heap while the call or throw that
    /// ends at `end` is executed, ascending. Its arguments are not among them. An `end` within the instruction will do, too.
    pub fn roots(module: &'m Module, body: &'m FuncBody, end: u32) -> Vec<u32> {
        let (mut walk, mut last) = (Walk::new(module, body), None);
        for instr in Instrs::new(module, body.entry, body.end).take_while(|instr| instr.pc < end) {
            if let Some(before) = last.replace(instr) {
                walk.step(before);
            }
        }
        debug_assert!(walk.is_live(), "dead code is not executed");
        let args = last.map_or(0, |instr| walk.arguments(instr));
        let below = walk.operands.len().saturating_sub(args);
        let types = body.locals.iter().chain(&walk.operands[..below]);
        (0..).zip(types).filter(|(_, ty)| ty.is_collected()).map(|(index, _)| index).collect()
    }

    /// The number of operands that a call or throw takes.
    fn arguments(&self, instr: Instr<'_>) -> usize {
        let params = |ty: u32| self.module.types[ty as usize].params.len();
        let Effect::Control(control) = instr.op.effect() else { return 0 };
        match (control, instr.imm) {
            (Control::Call(CallKind::Direct) | Control::ReturnCall(CallKind::Direct), Imm::Index(func)) => {
                params(self.module.funcs[func as usize])
            }
            (Control::Call(_) | Control::ReturnCall(_), Imm::Index(ty) | Imm::CallIndirect { ty, .. }) => params(ty) + 1,
            (Control::Throw, Imm::Index(tag)) => self.module.tag_type(tag).params.len(),
            (Control::ThrowRef, _) => 1,
            _ => 0,
        }
    }

    /// Whether the next instruction is not dead: see [`sidetable`](crate::sidetable).
    pub fn is_live(&self) -> bool {
        self.dead.is_none()
    }

    /// Whether the innermost open block is not dead.
    pub fn is_block_live(&self) -> bool {
        matches!(self.dead, None | Some(0))
    }

    /// Steps over the next instruction of the body.
    ///
    /// # Panics
    /// It is not the next instruction of validated code.
    pub fn step(&mut self, instr: Instr<'_>) {
        match self.dead {
            None => self.step_live(instr),
            Some(depth) => self.skip(instr, depth),
        }
    }

    fn step_live(&mut self, instr: Instr<'_>) {
        match instr.op.effect() {
            Effect::Fixed { operands, results } => {
                let first = self.operands.len() - operands.len();
                debug_assert_eq!(self.operands[first..], *operands, "{}", instr.op.mnemonic());
                self.operands.truncate(first);
                self.operands.extend_from_slice(results);
            }
            Effect::Typed { operands, results } => {
                let first = self.operands.len() - operands.len();
                let types = Types { module: self.module, body: self.body, instr, first: self.operands.get(first).copied() };
                debug_assert!(types.accept(operands, &self.operands[first..]), "{}: {:?}", instr.op.mnemonic(), self.operands);
                self.operands.truncate(first);
                self.operands.extend(results.iter().map(|&ty| types.resolve(ty)));
            }
            Effect::Control(control) => self.control(control, instr),
        }
    }

    fn control(&mut self, control: Control, instr: Instr<'_>) {
        match (control, instr.imm) {
            (Control::Nop, _) => {}
            (Control::Block, Imm::Block(ty)) => self.open(BlockKind::Block, ty),
            (Control::Loop, Imm::Block(ty)) => self.open(BlockKind::Loop { pc: instr.pc }, ty),
            (Control::If, Imm::Block(ty)) => {
                self.drop(1);
                self.open(BlockKind::If, ty);
            }
            (Control::TryTable, Imm::TryTable(ty, _)) | (Control::Try, Imm::Block(ty)) => {
                self.open(BlockKind::Try { pc: instr.pc }, ty)
            }
            (Control::Else, _) => self.open_else(),
            (Control::Catch, Imm::Index(tag)) => self.open_catch(Some(tag)),
            (Control::CatchAll, _) => self.open_catch(None),
            (Control::End | Control::Delegate, _) => self.end(),
            (Control::BrIf | Control::BrOnNonNull, _) => self.drop(1),
            (Control::BrOnNull, _) => {
                let reference = self.operands.pop().expect("validated code has operands");
                self.operands.push(non_null(reference));
            }
            (Control::Call(CallKind::Direct), Imm::Index(func)) => self.call(self.module.funcs[func as usize], 0),
            (Control::Call(CallKind::Indirect), Imm::CallIndirect { ty, .. }) => self.call(ty, 1),
            (Control::Call(CallKind::Reference), Imm::Index(ty)) => self.call(ty, 1),
            (Control::Unreachable | Control::Br | Control::BrTable | Control::Return | Control::ReturnCall(_), _)
            | (Control::Throw | Control::ThrowRef | Control::Rethrow, _) => {
                self.dead = Some(0);
            }
            (Control::Block | Control::Loop | Control::If | Control::Call(_), imm)
            | (Control::TryTable | Control::Try | Control::Catch, imm) => {
                panic!("{} has no immediates {imm:?}", instr.op.mnemonic())
            }
        }
    }

    fn skip(&mut self, Instr { op, imm, .. }: Instr<'_>, depth: u32) {
        match op.nesting() {
            Nesting::Open => self.dead = Some(depth + 1),
            Nesting::End if depth > 0 => self.dead = Some(depth - 1),
            Nesting::End => self.end(),
            Nesting::Else if depth == 0 => match (op, imm) {
                (Opcode::Catch, Imm::Index(tag)) => self.open_catch(Some(tag)),
                (Opcode::CatchAll, _) => self.open_catch(None),
                (_, _) => self.open_else(),
            },
            Nesting::Else | Nesting::Same => {}
        }
    }

    /// Opens a block. The types of its parameters are those that it declares: a back edge may bring less precise ones than those before it.
    fn open(&mut self, kind: BlockKind, ty: BlockType) {
        let height = self.operands.len() - ty.arity(self.module).0;
        self.blocks.push(OpenBlock { kind, ty, height });
        if let BlockType::Func(ty) = ty {
            self.operands.truncate(height);
            self.operands.extend_from_slice(&self.module.types[ty as usize].params);
        }
    }

    fn open_else(&mut self) {
        let block = self.blocks.last_mut().expect("validated code nests");
        block.kind = BlockKind::Block;
        self.operands.truncate(block.height);
        if let BlockType::Func(ty) = block.ty {
            self.operands.extend_from_slice(&self.module.types[ty as usize].params);
        }
        self.dead = None;
    }

    /// A handler, whose operands are the payload of the exceptions with this tag.
    fn open_catch(&mut self, tag: Option<u32>) {
        let block = self.blocks.last_mut().expect("validated code nests");
        block.kind = match block.kind {
            BlockKind::Try { pc } => BlockKind::Catch { pc, handlers: 1 },
            BlockKind::Catch { pc, handlers } => BlockKind::Catch { pc, handlers: handlers + 1 },
            BlockKind::Function | BlockKind::Block | BlockKind::Loop { .. } | BlockKind::If => {
                unreachable!("validated code has `catch` only in a `try`")
            }
        };
        self.operands.truncate(block.height);
        if let Some(tag) = tag {
            self.operands.extend_from_slice(&self.module.tag_type(tag).params);
        }
        self.dead = None;
    }

    fn end(&mut self) {
        let block = self.blocks.pop().expect("validated code nests");
        self.operands.truncate(block.height);
        match block.ty {
            BlockType::Empty => {}
            BlockType::Value(ty) => self.operands.push(ty),
            BlockType::Func(ty) => self.operands.extend_from_slice(&self.module.types[ty as usize].results),
        }
        self.dead = None;
    }

    /// A call of a function of type `ty`, with `extra` operands above the arguments.
    fn call(&mut self, ty: u32, extra: usize) {
        let ty = &self.module.types[ty as usize];
        self.drop(ty.params.len() + extra);
        self.operands.extend_from_slice(&ty.results);
    }

    fn drop(&mut self, count: usize) {
        self.operands.truncate(self.operands.len() - count);
    }
}

/// The types that an instruction's effect refers to.
struct Types<'m, 'i> {
    module: &'m Module,
    body: &'m FuncBody,
    instr: Instr<'i>,
    /// Type of the first operand, if there is one.
    first: Option<ValType>,
}

impl Types<'_, '_> {
    /// Whether the instruction takes operands of the types `found`. Any reference is accepted for any other.
    fn accept(&self, expected: &[StackType], found: &[ValType]) -> bool {
        expected.iter().zip(found).all(|(&expected, found)| {
            if matches!(expected, StackType::Any | StackType::Reference) {
                return expected == StackType::Any || found.is_ref();
            }
            let expected = self.resolve(expected);
            expected == *found || expected.is_ref() && found.is_ref()
        })
    }

    /// Returns which of the two indices of an instruction is that of the memory or table that it writes: the first for
    /// a copy, the second for the initialisation from a segment.
    fn destination(&self, first: u32, second: u32) -> u32 {
        if matches!(self.instr.op.immediates(), Immediates::MemoryMemory | Immediates::TableTable) { first } else { second }
    }

    fn resolve(&self, ty: StackType) -> ValType {
        let index_type = |is_64: bool| if is_64 { ValType::I64 } else { ValType::I32 };
        let memory = |index: u32| self.module.memories[index as usize].memory64;
        let table = |index: u32| self.module.tables[index as usize].ty;
        match (ty, self.instr.imm) {
            (StackType::Val(ty), _) => ty,
            (StackType::Any | StackType::Reference, _) => self.first.expect("it has an operand"),
            (StackType::NonNull, _) => non_null(self.first.expect("it has an operand")),
            (StackType::Local, Imm::Index(local)) => self.body.locals[local as usize],
            (StackType::Global, Imm::Index(global)) => self.module.globals[global as usize].value,
            (StackType::Named, Imm::Type(ty)) => ty,
            (StackType::Null, Imm::Heap(heap)) => ValType::Ref(RefType { nullable: true, heap }),
            (StackType::Function, Imm::Index(func)) => {
                ValType::Ref(RefType { nullable: false, heap: HeapType::Concrete(self.module.funcs[func as usize]) })
            }
            (StackType::Address, Imm::Mem(arg) | Imm::MemLane(arg, _)) => index_type(memory(arg.memory)),
            (StackType::Address, Imm::Index(index)) => index_type(memory(index)),
            (StackType::Address, Imm::Index2(first, second)) => index_type(memory(self.destination(first, second))),
            (StackType::SourceAddress, Imm::Index2(_, index)) => index_type(memory(index)),
            (StackType::Length, Imm::Index2(to, from)) => index_type(memory(to) && memory(from)),
            (StackType::Index, Imm::Index(index)) => index_type(table(index).table64),
            (StackType::Index, Imm::Index2(first, second)) => index_type(table(self.destination(first, second)).table64),
            (StackType::SourceIndex, Imm::Index2(_, index)) => index_type(table(index).table64),
            (StackType::TableLength, Imm::Index2(to, from)) => index_type(table(to).table64 && table(from).table64),
            (StackType::Element, Imm::Index(index)) => ValType::Ref(table(index).element),
            (StackType::Local | StackType::Global | StackType::Named | StackType::Null, imm)
            | (StackType::Function | StackType::Element, imm)
            | (StackType::Address | StackType::SourceAddress | StackType::Length, imm)
            | (StackType::Index | StackType::SourceIndex | StackType::TableLength, imm) => {
                panic!("immediates {imm:?} do not decide {ty:?}")
            }
        }
    }
}

/// The type without null.
fn non_null(ty: ValType) -> ValType {
    match ty {
        ValType::Ref(ty) => ValType::Ref(RefType { nullable: false, ..ty }),
        ValType::I32 | ValType::I64 | ValType::F32 | ValType::F64 | ValType::V128 => ty,
    }
}
