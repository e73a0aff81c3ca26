//! Validates bodies of common instructions in one pass over their bytes, several times as fast as wasmparser.
//!
//! It accepts and never refuses. A body with another instruction or type, an immediate of an unusual encoding, or an
//! error is left to wasmparser, which alone refuses, with its message. So every check here may be stricter than the
//! specification, and none may be weaker.
//!
//! The algorithm is that of the specification's appendix: a stack of operand types and a stack of open blocks. A type is
//! one byte ([`signatures`](super::signatures)). Below the operands of each open block lies a [`BASE`], which is no type:
//! one comparison checks both the type of the top operand and that the block has an operand.
//!
//! [`Builder`] writes the side table, as it does after wasmparser.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new kind or immediate must be named by the compiler")]

mod exceptions;

use super::builder::{Builder, Class, Step};
use super::code::Code;
use super::signatures::{CONTROLS, I32, Kind, NONE, REFERENCES, ROWS, Row, Signature, Signatures, V128, value_type};
use crate::opcodes::{CallKind, Control, Immediates};
use crate::types::ValType;
use std::ops::Range;

/// Below the operands of an open block.
const BASE: u8 = NONE;

/// Length of the operand stack, a power of two, so that an index is bounded by a mask.
const CAPACITY: usize = 1 << 14;

/// Maximum number of operands, and of open blocks. A branch table may have thousands of labels, each of which is an open block. No
/// instruction pushes more operands than the other half of the stack has room for.
const LIMIT: usize = CAPACITY / 4;

/// Maximum number of locals; real functions have fewer.
const MAX_LOCALS: usize = 10_000;

/// The stacks of one body after the other, in the same memory.
pub(super) struct Acceptor {
    /// Types of the operands of the open blocks, those of each above a [`BASE`].
    operands: Box<[u8; CAPACITY]>,
    /// Number of entries in `operands`.
    len: usize,
    blocks: Vec<Block>,
    /// Types of the locals.
    locals: Vec<u8>,
    /// The values that may still be popped all at once, for types with many.
    values_left: usize,
}

/// The number of values that the instructions of any body may pop for their types, and for each of its bytes: ordinary code pops less than one
/// for each byte. Beyond that the body is left to wasmparser, for which such steps are [counted](super::bodies) beforehand.
const MAX_VALUES: usize = 10_000;
const VALUES_PER_BYTE: usize = 4;

/// An open block.
struct Block {
    kind: BlockKind,
    /// The index after its [`BASE`].
    start: usize,
    /// Whether the code is dead: the operands below those that it has pushed have any type.
    dead: bool,
    ty: Signature,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    /// A block, a `try_table`, the second arm of an `if`, or the function's body.
    Block,
    /// The first arm of an `if`.
    If,
    Loop,
    /// The part of a `try` before its first `catch`.
    Try,
    Catch,
    CatchAll,
}

impl Default for Acceptor {
    fn default() -> Acceptor {
        Acceptor { operands: Box::new([BASE; CAPACITY]), len: 0, blocks: Vec::new(), locals: Vec::new(), values_left: 0 }
    }
}

impl Acceptor {
    /// Validates the body of a function with the type of this index, in this range of the module's bytes. Returns the offset of
    /// its first instruction, or `None` if wasmparser is to validate it. The types of its locals go into `locals`, the side
    /// table into `builder`.
    pub fn accept(
        &mut self,
        code: &Code<'_>,
        ty: u32,
        range: &Range<u32>,
        locals: &mut Vec<ValType>,
        builder: &mut Builder,
    ) -> Option<u32> {
        let signatures = code.unvalidated.signatures()?;
        let signature = signatures.types[ty as usize]?;
        let mut at = Cursor { bytes: &code.bytes[..code.place(range.end)], at: code.place(range.start) };
        let ty = &code.types[ty as usize];
        locals.clear();
        locals.extend_from_slice(&ty.params);
        self.locals.clear();
        self.locals.extend_from_slice(&signatures.bytes[signature.params()]);
        self.declarations(&mut at, locals)?;
        let entry = code.start + at.at as u32;
        builder.begin(code, ty, locals, entry, range.end - entry);
        self.len = 0;
        self.values_left = MAX_VALUES + VALUES_PER_BYTE * (range.end - range.start) as usize;
        self.blocks.clear();
        self.open(signatures, BlockKind::Block, signature.without_params());
        match &code.unvalidated.options.costs {
            None => self.instructions::<false>(code, signatures, at, builder, &[0; 0x100])?,
            Some(costs) => self.instructions::<true>(code, signatures, at, builder, costs.of_bytes())?,
        }
        Some(entry)
    }

    /// Reads the declarations of locals.
    fn declarations(&mut self, at: &mut Cursor<'_>, locals: &mut Vec<ValType>) -> Option<()> {
        for _ in 0..at.u32()? {
            let (count, byte) = (at.u32()? as usize, at.byte()?);
            let ty = value_type(byte)?;
            if count > MAX_LOCALS - self.locals.len().min(MAX_LOCALS) {
                return None;
            }
            locals.extend(std::iter::repeat_n(ty, count));
            self.locals.extend(std::iter::repeat_n(byte, count));
        }
        Some(())
    }

    /// Validates the instructions from `at` up to the end of its bytes. If they are `PRICED`, `costs` has the costs of those without a
    /// prefix; otherwise each in a straight line costs 1.
    fn instructions<const PRICED: bool>(
        &mut self,
        code: &Code<'_>,
        signatures: &Signatures,
        at: Cursor<'_>,
        builder: &mut Builder,
        costs: &[u8; 0x100],
    ) -> Option<()> {
        let mut run = Straight::enter(self, builder, at);
        loop {
            let pc = code.start + run.at.at as u32;
            let opcode = run.at.byte()?;
            let row = &ROWS[opcode as usize];
            let cost = if PRICED { u64::from(costs[opcode as usize]) } else { 1 };
            run.cost += cost;
            match row.kind {
                Kind::Unary => {
                    run.pop(self, row.operands[0])?;
                    run.push(self, row.result);
                }
                Kind::Binary => {
                    run.pop(self, row.operands[1])?;
                    run.pop(self, row.operands[0])?;
                    run.push(self, row.result);
                }
                Kind::LocalGet => {
                    let ty = *self.locals.get(run.at.u32()? as usize)?;
                    run.push_one(self, ty, builder)?;
                }
                Kind::LocalSet => {
                    let local = run.at.u32()?;
                    run.pop(self, *self.locals.get(local as usize)?)?;
                    builder.local_write(local);
                }
                Kind::LocalTee => {
                    let local = run.at.u32()?;
                    let ty = *self.locals.get(local as usize)?;
                    run.pop(self, ty)?;
                    run.push(self, ty);
                    builder.local_write(local);
                }
                Kind::I32Const => {
                    run.at.signed(5, 0x7)?;
                    run.push_one(self, row.result, builder)?;
                }
                Kind::I64Const => {
                    run.at.signed(10, 0x0)?;
                    run.push_one(self, row.result, builder)?;
                }
                Kind::F32Const => {
                    run.at.skip(4);
                    run.push_one(self, row.result, builder)?;
                }
                Kind::F64Const => {
                    run.at.skip(8);
                    run.push_one(self, row.result, builder)?;
                }
                Kind::Load => {
                    run.at.mem_arg(signatures, row.alignment)?;
                    run.pop(self, I32)?;
                    run.push(self, row.result);
                }
                Kind::Store => {
                    run.at.mem_arg(signatures, row.alignment)?;
                    run.pop(self, row.operands[1])?;
                    run.pop(self, I32)?;
                }
                Kind::GlobalGet => {
                    let (ty, _) = *signatures.globals.get(run.at.u32()? as usize)?;
                    if ty == NONE {
                        return None;
                    }
                    run.push_one(self, ty, builder)?;
                    builder.global(ty == V128);
                }
                Kind::GlobalSet => {
                    let (ty, mutable) = *signatures.globals.get(run.at.u32()? as usize)?;
                    if !mutable || ty == NONE {
                        return None;
                    }
                    run.pop(self, ty)?;
                    builder.global(ty == V128);
                }
                Kind::Drop => run.pop_any(self)?,
                Kind::Select => {
                    run.pop(self, I32)?;
                    let ty = run.top(self);
                    if !(V128..=I32).contains(&ty) {
                        return None;
                    }
                    run.pop(self, ty)?;
                    run.pop(self, ty)?;
                    run.push(self, ty);
                }
                Kind::SelectTyped => {
                    let (count, ty) = (run.at.byte()?, run.at.byte()?);
                    if count != 1 || value_type(ty).is_none() {
                        return None;
                    }
                    run.pop(self, I32)?;
                    run.pop(self, ty)?;
                    run.pop(self, ty)?;
                    run.push(self, ty);
                }
                Kind::MemorySize => {
                    run.at.memory(signatures)?;
                    run.push_one(self, I32, builder)?;
                }
                Kind::MemoryGrow => {
                    run.at.memory(signatures)?;
                    run.pop(self, I32)?;
                    run.push(self, I32);
                }
                Kind::RefNull => {
                    let ty = run.at.byte()?;
                    if !REFERENCES.contains(&ty) {
                        return None;
                    }
                    run.push_one(self, ty, builder)?;
                }
                Kind::RefIsNull => {
                    let ty = run.top(self);
                    if !REFERENCES.contains(&ty) {
                        return None;
                    }
                    run.pop(self, ty)?;
                    run.push(self, I32);
                }
                Kind::Prefix => {
                    let (class, rows) = if opcode == 0xFC { (Class::Plain, 0x100..0x200) } else { (Class::Vector, 0x200..0x400) };
                    let row = ROWS[rows].get(run.at.u32()? as usize)?;
                    let mut at = run.leave(self, builder, cost);
                    let before = self.height();
                    self.prefixed(signatures, &mut at, row)?;
                    builder.instruction(code, Step { class, pc, next: code.start + at.at as u32, before });
                    self.grown(builder)?;
                    run = Straight::enter(self, builder, at);
                }
                Kind::Control => {
                    let mut at = run.leave(self, builder, cost);
                    let before = self.height();
                    let class = self.control(code, signatures, &mut at, CONTROLS[opcode as usize])?;
                    builder.instruction(code, Step { class, pc, next: code.start + at.at as u32, before });
                    self.grown(builder)?;
                    if self.blocks.is_empty() {
                        // The `end` of the function is the last instruction.
                        return (at.at == at.bytes.len()).then_some(());
                    }
                    if self.blocks.len() > LIMIT {
                        return None;
                    }
                    run = Straight::enter(self, builder, at);
                }
                Kind::Unknown | Kind::Prefixed => return None,
            }
        }
    }

    /// An instruction after a prefix, whose immediates are at `at`.
    fn prefixed(&mut self, signatures: &Signatures, at: &mut Cursor<'_>, row: &Row) -> Option<()> {
        if row.kind != Kind::Prefixed {
            return None;
        }
        match row.immediates {
            Immediates::None => {}
            Immediates::MemArg => at.mem_arg(signatures, row.alignment)?,
            Immediates::MemArgLane => {
                at.mem_arg(signatures, row.alignment)?;
                at.lane(row.lanes)?;
            }
            Immediates::Lane => at.lane(row.lanes)?,
            Immediates::Shuffle => {
                for _ in 0..16 {
                    at.lane(32)?;
                }
            }
            Immediates::V128 => at.skip(16),
            Immediates::Memory => at.memory(signatures)?,
            Immediates::MemoryMemory => {
                at.memory(signatures)?;
                at.memory(signatures)?;
            }
            Immediates::Block | Immediates::Label | Immediates::Labels | Immediates::Func | Immediates::Type => return None,
            Immediates::CallIndirect | Immediates::Types | Immediates::Local | Immediates::Global => return None,
            Immediates::Table | Immediates::DataMemory | Immediates::Data | Immediates::ElemTable => return None,
            Immediates::TryTable | Immediates::Tag => return None,
            Immediates::Elem | Immediates::TableTable | Immediates::HeapType | Immediates::I32 => return None,
            Immediates::I64 | Immediates::F32 | Immediates::F64 => return None,
        }
        for &ty in row.operands.iter().rev().filter(|ty| **ty != NONE) {
            self.pop(ty)?;
        }
        if row.result != NONE {
            self.push(row.result);
        }
        Some(())
    }

    /// An instruction that opens, ends or leaves a block, or calls.
    #[inline]
    fn control(&mut self, code: &Code<'_>, signatures: &Signatures, at: &mut Cursor<'_>, control: Control) -> Option<Class> {
        Some(match control {
            Control::Nop => Class::Nop,
            Control::Unreachable => {
                self.stop();
                Class::Stop
            }
            Control::Block => {
                let ty = at.block_type(signatures)?;
                self.enter(signatures, BlockKind::Block, ty)?;
                Class::Block
            }
            Control::Loop => {
                let ty = at.block_type(signatures)?;
                self.enter(signatures, BlockKind::Loop, ty)?;
                Class::Loop
            }
            Control::If => {
                self.pop(I32)?;
                let ty = at.block_type(signatures)?;
                self.enter(signatures, BlockKind::If, ty)?;
                Class::If
            }
            Control::Else => {
                let block = self.close(signatures)?;
                if block.kind != BlockKind::If {
                    return None;
                }
                self.open(signatures, BlockKind::Block, block.ty);
                Class::Else
            }
            Control::TryTable | Control::Try | Control::Catch | Control::CatchAll | Control::Delegate => {
                return self.exceptions(code, signatures, at, control);
            }
            Control::Throw | Control::ThrowRef | Control::Rethrow => return self.exceptions(code, signatures, at, control),
            Control::End => {
                let Block { kind, ty, .. } = self.close(signatures)?;
                let bytes = &signatures.bytes;
                if kind == BlockKind::If && bytes[ty.params()] != bytes[ty.results()] {
                    return None;
                }
                self.push_all(&bytes[ty.results()]);
                Class::End
            }
            Control::Br => {
                let types = self.label(signatures, at.u32()?)?;
                self.pop_all(types)?;
                self.stop();
                Class::Br
            }
            Control::BrIf => {
                let types = self.label(signatures, at.u32()?)?;
                self.pop(I32)?;
                self.pop_all(types)?;
                self.push_all(types);
                Class::BrIf
            }
            Control::BrTable => {
                self.pop(I32)?;
                let count = at.u32()?;
                let types = self.label(signatures, at.u32()?)?;
                for _ in 0..count {
                    // The types differ in dead code, if at all.
                    if self.label(signatures, at.u32()?)? != types {
                        return None;
                    }
                }
                self.pop_all(types)?;
                self.stop();
                Class::BrTable
            }
            Control::Return => {
                self.pop_all(self.results(signatures)?)?;
                self.stop();
                Class::Stop
            }
            Control::Call(CallKind::Direct) => {
                let ty = direct(code, signatures, at)?;
                self.pop_all(&signatures.bytes[ty.params()])?;
                self.push_all(&signatures.bytes[ty.results()]);
                Class::Call
            }
            Control::Call(CallKind::Indirect) => {
                let ty = self.indirect(signatures, at)?;
                self.pop_all(&signatures.bytes[ty.params()])?;
                self.push_all(&signatures.bytes[ty.results()]);
                Class::CallIndirect
            }
            Control::ReturnCall(CallKind::Direct) => {
                let ty = direct(code, signatures, at)?;
                self.tail_call(signatures, ty)?;
                Class::ReturnCall
            }
            Control::ReturnCall(CallKind::Indirect) => {
                let ty = self.indirect(signatures, at)?;
                self.tail_call(signatures, ty)?;
                Class::ReturnCallIndirect
            }
            Control::Call(CallKind::Reference) | Control::ReturnCall(CallKind::Reference) => return None,
            Control::BrOnNull | Control::BrOnNonNull => return None,
        })
    }

    /// Operands on the stack.
    #[inline]
    fn height(&self) -> u32 {
        (self.len - self.blocks.len()) as u32
    }

    #[inline]
    fn push(&mut self, ty: u8) {
        self.operands[self.len % CAPACITY] = ty;
        self.len += 1;
    }

    /// After an instruction that may push more operands than it pops, records their number if it is the highest so far.
    #[inline]
    fn grown(&self, builder: &mut Builder) -> Option<()> {
        let height = self.height();
        if height > builder.max_operands() { self.higher(height, builder) } else { Some(()) }
    }

    #[cold]
    fn higher(&self, height: u32, builder: &mut Builder) -> Option<()> {
        builder.operands(height);
        (height as usize <= LIMIT).then_some(())
    }

    fn push_all(&mut self, types: &[u8]) {
        for &ty in types {
            self.push(ty);
        }
    }

    #[inline]
    fn pop(&mut self, ty: u8) -> Option<()> {
        let top = self.operands[(self.len - 1) % CAPACITY];
        if top != ty {
            return self.missing(top);
        }
        self.len -= 1;
        Some(())
    }

    fn pop_all(&mut self, types: &[u8]) -> Option<()> {
        self.values_left = self.values_left.checked_sub(types.len())?;
        types.iter().rev().try_for_each(|&ty| self.pop(ty))
    }

    /// The operand to be popped is not at the top, where this is: in dead code it has any type.
    #[cold]
    fn missing(&self, top: u8) -> Option<()> {
        (top == BASE && self.blocks.last()?.dead).then_some(())
    }

    /// Ends the live code of the innermost block.
    fn stop(&mut self) {
        if let Some(block) = self.blocks.last_mut() {
            block.dead = true;
            self.len = block.start;
        }
    }

    /// Opens a block whose parameters are on the stack.
    fn enter(&mut self, signatures: &Signatures, kind: BlockKind, ty: Signature) -> Option<()> {
        self.pop_all(&signatures.bytes[ty.params()])?;
        self.open(signatures, kind, ty);
        Some(())
    }

    /// Opens a block, and pushes its parameters.
    fn open(&mut self, signatures: &Signatures, kind: BlockKind, ty: Signature) {
        self.push(BASE);
        self.blocks.push(Block { kind, start: self.len, dead: false, ty });
        self.push_all(&signatures.bytes[ty.params()]);
    }

    /// Closes the innermost block, and pops its results, which are all that it may have on the stack.
    fn close(&mut self, signatures: &Signatures) -> Option<Block> {
        let ty = self.blocks.last()?.ty;
        self.pop_all(&signatures.bytes[ty.results()])?;
        let block = self.blocks.pop()?;
        if self.len != block.start {
            return None;
        }
        self.len -= 1;
        Some(block)
    }

    /// The open block at `depth`, counted from the innermost.
    #[inline]
    fn block(&self, depth: u32) -> Option<&Block> {
        Some(&self.blocks[self.blocks.len().checked_sub(depth as usize + 1)?])
    }

    /// The types of the operands that a branch to the label at `depth` takes.
    fn label<'s>(&self, signatures: &'s Signatures, depth: u32) -> Option<&'s [u8]> {
        let block = self.block(depth)?;
        let range = if block.kind == BlockKind::Loop { block.ty.params() } else { block.ty.results() };
        Some(&signatures.bytes[range])
    }

    /// The types of the function's results.
    fn results<'s>(&self, signatures: &'s Signatures) -> Option<&'s [u8]> {
        Some(&signatures.bytes[self.blocks.first()?.ty.results()])
    }

    /// The signature of an indirect call, whose index it pops.
    fn indirect(&mut self, signatures: &Signatures, at: &mut Cursor<'_>) -> Option<Signature> {
        let ty = (*signatures.types.get(at.u32()? as usize)?)?;
        let known = *signatures.tables.get(at.u32()? as usize)?;
        if !known {
            return None;
        }
        self.pop(I32)?;
        Some(ty)
    }

    fn tail_call(&mut self, signatures: &Signatures, ty: Signature) -> Option<()> {
        self.pop_all(&signatures.bytes[ty.params()])?;
        if &signatures.bytes[ty.results()] != self.results(signatures)? {
            return None;
        }
        self.stop();
        Some(())
    }
}

/// The state of a run of straight-line code. It is copied out of the stacks and back for each instruction that opens, ends or
/// leaves a block, or calls, because a local variable whose address is not taken has a register: in memory, each instruction would
/// wait for the stores of the one before.
struct Straight<'a> {
    at: Cursor<'a>,
    /// [`Acceptor::len`]
    len: usize,
    /// The length beyond which the stack has more operands than ever before in this body.
    highest: usize,
    /// The cost of the instructions since its beginning. 64 bits hold that of any module, so that the sum saturates as the builder's does.
    cost: u64,
}

impl<'a> Straight<'a> {
    /// Begins at `at`.
    #[inline(always)]
    fn enter(stacks: &Acceptor, builder: &Builder, at: Cursor<'a>) -> Straight<'a> {
        Straight { at, len: stacks.len, highest: builder.max_operands() as usize + stacks.blocks.len(), cost: 0 }
    }

    /// Ends before the instruction whose opcode has been read, and whose `cost` has been added; returns the place after the opcode.
    #[inline(always)]
    fn leave(self, stacks: &mut Acceptor, builder: &mut Builder, cost: u64) -> Cursor<'a> {
        stacks.len = self.len;
        builder.plain(u32::try_from(self.cost - cost).unwrap_or(u32::MAX));
        self.at
    }

    /// The type of the top operand of the innermost block, or [`BASE`] if it has none.
    #[inline(always)]
    fn top(&self, stacks: &Acceptor) -> u8 {
        stacks.operands[(self.len - 1) % CAPACITY]
    }

    #[inline(always)]
    fn push(&mut self, stacks: &mut Acceptor, ty: u8) {
        stacks.operands[self.len % CAPACITY] = ty;
        self.len += 1;
    }

    /// Processes an instruction that only pushes an operand.
    #[inline(always)]
    fn push_one(&mut self, stacks: &mut Acceptor, ty: u8, builder: &mut Builder) -> Option<()> {
        self.push(stacks, ty);
        if self.len > self.highest {
            stacks.higher((self.len - stacks.blocks.len()) as u32, builder)?;
            self.highest = builder.max_operands() as usize + stacks.blocks.len();
        }
        Some(())
    }

    #[inline(always)]
    fn pop(&mut self, stacks: &Acceptor, ty: u8) -> Option<()> {
        let top = self.top(stacks);
        if top != ty {
            return stacks.missing(top);
        }
        self.len -= 1;
        Some(())
    }

    #[inline(always)]
    fn pop_any(&mut self, stacks: &Acceptor) -> Option<()> {
        let top = self.top(stacks);
        if top == BASE {
            return stacks.missing(top);
        }
        self.len -= 1;
        Some(())
    }
}

/// The signature of a direct call.
#[inline]
fn direct(code: &Code<'_>, signatures: &Signatures, at: &mut Cursor<'_>) -> Option<Signature> {
    let ty = *code.funcs.get(at.u32()? as usize)?;
    signatures.types[ty as usize]
}

/// Reads immediates. `None` where they are malformed, and for some encodings that are well formed.
struct Cursor<'a> {
    /// Up to the end of the body.
    bytes: &'a [u8],
    /// Offset of the next byte.
    at: usize,
}

impl Cursor<'_> {
    #[inline]
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// Skips bytes, also those after the last; then the next one cannot be read.
    #[inline]
    fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// An unsigned LEB128 of 32 bits.
    #[inline]
    fn u32(&mut self) -> Option<u32> {
        let byte = self.byte()?;
        if byte < 0x80 { Some(byte.into()) } else { self.longer_u32(byte) }
    }

    fn longer_u32(&mut self, first: u8) -> Option<u32> {
        let mut value = u32::from(first & 0x7F);
        for shift in [7, 14, 21, 28] {
            let byte = self.byte()?;
            value |= u32::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return (shift < 28 || byte < 0x10).then_some(value);
            }
        }
        None
    }

    /// Skips a signed LEB128 of at most `bytes` bytes, the last of which has these bits below that of the sign.
    #[inline]
    fn signed(&mut self, bytes: u32, low: u8) -> Option<()> {
        if self.byte()? < 0x80 {
            return Some(());
        }
        for _ in 2..bytes {
            if self.byte()? < 0x80 {
                return Some(());
            }
        }
        // The bits that do not fit repeat the sign.
        let last = self.byte()?;
        (last <= low || (0x7F - low..=0x7F).contains(&last)).then_some(())
    }

    /// A memory argument of memory 0, whose alignment is at most this one.
    #[inline]
    fn mem_arg(&mut self, signatures: &Signatures, alignment: u8) -> Option<()> {
        if self.byte()? > alignment || !signatures.memory {
            return None;
        }
        self.u32().map(drop)
    }

    /// The index of memory 0.
    fn memory(&mut self, signatures: &Signatures) -> Option<()> {
        (self.byte()? == 0 && signatures.memory).then_some(())
    }

    /// One of this many lanes.
    fn lane(&mut self, lanes: u8) -> Option<()> {
        (self.byte()? < lanes).then_some(())
    }

    /// A type without parameters, or the index of a type: a signed number of 33 bits that is not negative.
    #[inline]
    fn block_type(&mut self, signatures: &Signatures) -> Option<Signature> {
        let first = self.byte()?;
        match first {
            0x40 => Some(Signature::default()),
            0x41..0x80 => Signatures::of_result(first),
            0x00..0x40 => *signatures.types.get(first as usize)?,
            0x80.. => {
                let after_first = self.at;
                let index = self.longer_u32(first)?;
                let negative = self.at - after_first < 4 && self.bytes[self.at - 1] & 0x40 != 0;
                if negative { None } else { *signatures.types.get(index as usize)? }
            }
        }
    }
}
