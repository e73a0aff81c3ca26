//! Reads opcodes and immediates from validated code.

use crate::opcodes::{Immediates, Opcode};
use crate::types::{FuncType, HeapType, RefType, ValType};

impl Opcode {
    /// Appends the opcode as in the binary format, without immediates.
    pub fn encode(self, bytes: &mut Vec<u8>) {
        let code = self as u16;
        let (prefix, mut rest) = match code {
            0..=0xFF => return bytes.push(code as u8),
            0x100..=0x1FF => (0xFC, code - 0x100),
            0x200.. => (0xFD, code - 0x200),
        };
        bytes.push(prefix);
        while rest > 0x7F {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
    }
}

/// Decoded immediates: see [`crate::opcodes::Immediates`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Imm<'a> {
    /// Nothing.
    None,
    /// A block type.
    Block(BlockType),
    /// A block type with catch clauses.
    TryTable(BlockType, Clauses<'a>),
    /// A label depth.
    Label(u32),
    /// `br_table`'s labels, default last.
    Labels(Labels<'a>),
    /// An index: function, function type, local, global, table, memory, tag, data or element segment.
    Index(u32),
    /// Two indices in the order of the binary format.
    Index2(u32, u32),
    /// `call_indirect`: type, then table.
    CallIndirect {
        /// Type index.
        ty: u32,
        /// Table index.
        table: u32,
    },
    /// The result type of the typed select.
    Type(ValType),
    /// A memory access.
    Mem(MemArg),
    /// A heap type.
    Heap(HeapType),
    /// `i32.const`
    I32(i32),
    /// `i64.const`
    I64(i64),
    /// `f32.const`, as bits.
    F32(u32),
    /// `f64.const`, as bits.
    F64(u64),
    /// `v128.const`
    V128(u128),
    /// A lane.
    Lane(u8),
    /// `i8x16.shuffle`: a lane of the first vector, or from 16 on of the second.
    Shuffle([u8; 16]),
    /// A memory access of a lane.
    MemLane(MemArg, u8),
}

/// The type of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockType {
    /// No parameters, no results.
    Empty,
    /// No parameters, one result.
    Value(ValType),
    /// The module's function type with this index.
    Func(u32),
}

impl BlockType {
    /// Returns the numbers of parameters and results in a module with these types.
    pub fn arity_in(self, types: &[FuncType]) -> (usize, usize) {
        match self {
            BlockType::Empty => (0, 0),
            BlockType::Value(_) => (0, 1),
            BlockType::Func(ty) => {
                let ty = &types[ty as usize];
                (ty.params.len(), ty.results.len())
            }
        }
    }
}

/// Memory and offset of an access; alignment is a hint that Weir ignores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemArg {
    /// Memory index.
    pub memory: u32,
    /// Constant added to the address, without wrap-around.
    pub offset: u64,
}

/// `br_table`'s labels, still encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Labels<'a> {
    bytes: &'a [u8],
    len: u32,
}

impl<'a> Labels<'a> {
    /// Returns the number of labels, including the default.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Never: there is always a default.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The label depths, the default last.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        let mut reader = Reader { bytes: self.bytes, at: 0 };
        (0..self.len).map(move |_| reader.u32())
    }
}

/// The catch clauses of a `try_table`, still encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clauses<'a> {
    bytes: &'a [u8],
    len: u32,
}

/// A catch clause of a `try_table`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clause {
    /// The tag of the exceptions that it catches; `None` for all.
    pub tag: Option<u32>,
    /// Whether it passes on a reference to the exception, above the payload.
    pub reference: bool,
    /// The depth of the label that it branches to, counted from outside the `try_table`.
    pub label: u32,
}

impl<'a> Clauses<'a> {
    /// Returns the number of clauses.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns whether there are no clauses.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The clauses, in the order in which they are tested.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Clause> + use<'a> {
        let mut reader = Reader { bytes: self.bytes, at: 0 };
        (0..self.len).map(move |_| reader.clause())
    }
}

/// Where the instructions end that have one opcode, of one byte. The last byte of an instruction is found without a branch on the kind
/// of instruction or the length of its number: such branches are mispredicted, and cost more than half of the time of skipping.
#[derive(Clone, Copy)]
struct Extent {
    /// Of the eight bytes after the opcode, the first lowest: bits of which the lowest that is not set is in the last byte of the
    /// instruction.
    ends: u64,
    /// One bit in the last byte of an instruction without a number, or the lowest bit of all if it is the opcode; else 0.
    end: u64,
    /// Bits of the byte after the opcode that other forms of the instruction have.
    other: u8,
}

/// By first byte.
const EXTENTS: [Extent; 256] = {
    let mut extents = [Extent::UNKNOWN; 256];
    let mut byte = 0;
    while byte < 256 {
        if let Some(op) = Opcode::from_code(byte as u16) {
            extents[byte] = Extent::of(op.immediates());
        }
        byte += 1;
    }
    extents
};

impl Extent {
    const UNKNOWN: Extent = Extent { ends: 0, end: 0, other: 0 };
    /// A LEB128 number: bit 7 of its last byte is not set.
    const NUMBER: Extent = Extent { ends: 0x8080_8080_8080_8080, ..Extent::UNKNOWN };

    /// This many bytes after the opcode.
    const fn bytes(bytes: u32) -> Extent {
        let end = if bytes == 0 { 1 } else { 1 << (8 * bytes - 1) };
        Extent { end, ..Extent::UNKNOWN }
    }

    const fn of(immediates: Immediates) -> Extent {
        match immediates {
            Immediates::None => Extent::bytes(0),
            Immediates::F32 => Extent::bytes(4),
            Immediates::F64 => Extent::bytes(8),
            Immediates::Label | Immediates::Func | Immediates::Type | Immediates::Local | Immediates::Global => Extent::NUMBER,
            Immediates::Table | Immediates::Memory | Immediates::Data | Immediates::Elem => Extent::NUMBER,
            Immediates::Tag => Extent::NUMBER,
            Immediates::TryTable => Extent::UNKNOWN,
            Immediates::I32 | Immediates::I64 => Extent::NUMBER,
            // All value types have bit 5, among them the references that a heap type follows.
            Immediates::Block => Extent { other: 0x20, ..Extent::NUMBER },
            // The number is after the alignment, whose bit 6 says that a memory index follows.
            Immediates::MemArg => Extent { ends: Extent::NUMBER.ends << 8, other: 0xC0, ..Extent::UNKNOWN },
            Immediates::Labels | Immediates::CallIndirect | Immediates::Types | Immediates::HeapType => Extent::UNKNOWN,
            Immediates::MemArgLane | Immediates::DataMemory | Immediates::MemoryMemory | Immediates::ElemTable => Extent::UNKNOWN,
            Immediates::TableTable | Immediates::V128 | Immediates::Lane | Immediates::Shuffle => Extent::UNKNOWN,
        }
    }

    /// Returns the length of an instruction whose opcode precedes these bytes, the first lowest; `None` if they do not tell.
    #[inline(always)]
    fn length(self, following: u64) -> Option<usize> {
        let last = !following & self.ends | self.end;
        (last != 0 && following as u8 & self.other == 0).then(|| 1 + (last.trailing_zeros() as usize + 1) / 8)
    }
}

/// Returns the offset after the instruction at `at`.
#[inline(always)]
pub(crate) fn next_instruction(bytes: &[u8], at: usize) -> usize {
    if let Some(&[byte, ref following @ ..]) = bytes.get(at..).and_then(<[u8]>::first_chunk::<9>)
        && let Some(length) = EXTENTS[usize::from(byte)].length(u64::from_le_bytes(*following))
    {
        return at + length;
    }
    decoded_end(bytes, at)
}

/// Returns the offset after the instruction at `at`, which it decodes.
#[cold]
fn decoded_end(bytes: &[u8], at: usize) -> usize {
    let mut reader = Reader { bytes, at };
    let op = reader.opcode();
    reader.skip(op);
    reader.at
}

/// Reads the binary format where validation has already proved it well formed.
///
/// # Panics
/// Its methods panic on bytes that validation would have refused.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    /// Bytes of a module.
    pub bytes: &'a [u8],
    /// Offset of the next byte in them.
    pub at: usize,
}

impl<'a> Reader<'a> {
    /// The next byte.
    #[inline]
    pub fn byte(&mut self) -> u8 {
        let byte = self.bytes[self.at];
        self.at += 1;
        byte
    }

    /// An unsigned LEB128 of at most 32 bits.
    #[inline(always)]
    pub fn u32(&mut self) -> u32 {
        self.u64() as u32
    }

    /// An unsigned LEB128 of at most 64 bits.
    #[inline(always)]
    pub fn u64(&mut self) -> u64 {
        let byte = self.byte();
        if byte < 0x80 { byte.into() } else { self.longer_u64(byte) }
    }

    /// One of more than a byte. Most indices have one.
    fn longer_u64(&mut self, first: u8) -> u64 {
        let (mut value, mut shift) = (u64::from(first & 0x7F), 7);
        loop {
            let byte = self.byte();
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return value;
            }
            shift += 7;
        }
    }

    /// A signed LEB128 of at most 64 bits.
    #[inline(always)]
    pub fn i64(&mut self) -> i64 {
        let byte = self.byte();
        if byte < 0x80 { i64::from(byte) << 57 >> 57 } else { self.longer_i64(byte) }
    }

    fn longer_i64(&mut self, first: u8) -> i64 {
        let (mut value, mut shift) = (i64::from(first & 0x7F), 7);
        loop {
            let byte = self.byte();
            value |= i64::from(byte & 0x7F) << shift;
            shift += 7;
            if byte < 0x80 {
                return if shift < 64 { value << (64 - shift) >> (64 - shift) } else { value };
            }
        }
    }

    /// An opcode, prefixed ones included.
    #[inline(always)]
    pub fn opcode(&mut self) -> Opcode {
        let code = match self.byte() {
            0xFC => 0x100 + self.u32() as u16,
            0xFD => 0x200 + self.u32() as u16,
            byte => u16::from(byte),
        };
        Opcode::from_code(code).expect("validated code holds known opcodes")
    }

    /// The immediates of `op`.
    #[inline]
    pub fn immediates(&mut self, op: Opcode) -> Imm<'a> {
        match op.immediates() {
            Immediates::None => Imm::None,
            Immediates::Block => Imm::Block(self.block_type()),
            Immediates::TryTable => {
                let ty = self.block_type();
                Imm::TryTable(ty, self.clauses())
            }
            Immediates::Label => Imm::Label(self.u32()),
            Immediates::Labels => Imm::Labels(self.labels()),
            Immediates::Func
            | Immediates::Type
            | Immediates::Local
            | Immediates::Global
            | Immediates::Table
            | Immediates::Memory
            | Immediates::Tag
            | Immediates::Data
            | Immediates::Elem => Imm::Index(self.u32()),
            Immediates::DataMemory | Immediates::MemoryMemory | Immediates::ElemTable | Immediates::TableTable => {
                let first = self.u32();
                Imm::Index2(first, self.u32())
            }
            Immediates::CallIndirect => {
                let ty = self.u32();
                Imm::CallIndirect { ty, table: self.u32() }
            }
            Immediates::Types => {
                let count = self.u32();
                assert_eq!(count, 1, "validated selects have one result");
                Imm::Type(self.val_type())
            }
            Immediates::MemArg => Imm::Mem(self.mem_arg()),
            Immediates::HeapType => Imm::Heap(self.heap_type()),
            Immediates::I32 => Imm::I32(self.i64() as i32),
            Immediates::I64 => Imm::I64(self.i64()),
            Immediates::F32 => Imm::F32(self.f32()),
            Immediates::F64 => Imm::F64(self.f64()),
            Immediates::V128 => Imm::V128(self.v128()),
            Immediates::Lane => Imm::Lane(self.byte()),
            Immediates::Shuffle => Imm::Shuffle(self.array()),
            Immediates::MemArgLane => {
                let arg = self.mem_arg();
                Imm::MemLane(arg, self.byte())
            }
        }
    }

    /// Skips the immediates of `op`.
    #[inline]
    pub fn skip(&mut self, op: Opcode) {
        match op.immediates() {
            Immediates::None => {}
            Immediates::Label | Immediates::Func | Immediates::Type | Immediates::Local | Immediates::Global => self.number(),
            Immediates::Table | Immediates::Memory | Immediates::Tag | Immediates::Data | Immediates::Elem => self.number(),
            Immediates::I32 | Immediates::I64 => self.number(),
            Immediates::MemArg => {
                self.mem_arg();
            }
            Immediates::Block
            | Immediates::TryTable
            | Immediates::Labels
            | Immediates::CallIndirect
            | Immediates::Types
            | Immediates::HeapType
            | Immediates::MemArgLane
            | Immediates::DataMemory
            | Immediates::MemoryMemory
            | Immediates::ElemTable
            | Immediates::TableTable
            | Immediates::F32
            | Immediates::F64
            | Immediates::V128
            | Immediates::Lane
            | Immediates::Shuffle => {
                self.immediates(op);
            }
        }
    }

    /// Skips an instruction. Several times as fast as reading its opcode and skipping the immediates.
    #[inline(always)]
    pub fn skip_instruction(&mut self) {
        self.at = next_instruction(self.bytes, self.at);
    }

    /// Skips a LEB128 number.
    #[inline]
    fn number(&mut self) {
        while self.byte() >= 0x80 {}
    }

    /// A memory argument: bit 6 of the alignment says that a memory index follows.
    #[inline]
    pub fn mem_arg(&mut self) -> MemArg {
        let align = self.u32();
        let memory = if align & 0x40 != 0 { self.u32() } else { 0 };
        MemArg { memory, offset: self.u64() }
    }

    /// A block type.
    #[inline]
    pub fn block_type(&mut self) -> BlockType {
        match self.bytes[self.at] {
            0x40 => {
                self.at += 1;
                BlockType::Empty
            }
            // A single-byte negative LEB128 is a value type; everything else is a type index.
            byte if byte & 0xC0 == 0x40 => BlockType::Value(self.val_type()),
            _ => BlockType::Func(self.i64() as u32),
        }
    }

    /// A value type.
    pub fn val_type(&mut self) -> ValType {
        match self.byte() {
            0x7F => ValType::I32,
            0x7E => ValType::I64,
            0x7D => ValType::F32,
            0x7C => ValType::F64,
            0x7B => ValType::V128,
            0x70 => ValType::FUNCREF,
            0x6F => ValType::EXTERNREF,
            0x69 => ValType::EXNREF,
            0x74 => ValType::Ref(RefType { nullable: true, heap: HeapType::NoExn }),
            byte @ (0x63 | 0x64) => ValType::Ref(RefType { nullable: byte == 0x63, heap: self.heap_type() }),
            byte => panic!("validated code holds no value type {byte:#x}"),
        }
    }

    fn heap_type(&mut self) -> HeapType {
        match self.i64() {
            -0x10 => HeapType::Func,
            -0x11 => HeapType::Extern,
            -0x17 => HeapType::Exn,
            -0x0C => HeapType::NoExn,
            index => HeapType::Concrete(u32::try_from(index).expect("validated code holds known heap types")),
        }
    }

    /// The clauses of a `try_table`, skipped over.
    pub fn clauses(&mut self) -> Clauses<'a> {
        let len = self.u32();
        let start = self.at;
        for _ in 0..len {
            self.clause();
        }
        Clauses { bytes: &self.bytes[start..self.at], len }
    }

    fn clause(&mut self) -> Clause {
        let kind = self.byte();
        let tag = (kind & 2 == 0).then(|| self.u32());
        Clause { tag, reference: kind & 1 != 0, label: self.u32() }
    }

    /// `br_table`'s labels, skipped over.
    pub fn labels(&mut self) -> Labels<'a> {
        let len = self.u32() + 1;
        let start = self.at;
        for _ in 0..len {
            self.u32();
        }
        Labels { bytes: &self.bytes[start..self.at], len }
    }

    /// The bits of an f32.
    #[inline]
    pub fn f32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    /// The bits of an f64.
    #[inline]
    pub fn f64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// The bits of a v128, or the lanes of a shuffle as its bytes, the first lowest.
    #[inline]
    pub fn v128(&mut self) -> u128 {
        u128::from_le_bytes(self.array())
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let array = self.bytes[self.at..self.at + N].try_into().expect("the slice has N bytes");
        self.at += N;
        array
    }
}
