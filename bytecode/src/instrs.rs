//! Walks the instructions of validated code.

use crate::fusion;
use crate::opcodes::Immediates;
use crate::types::{HeapType, RefType, ValType};
use crate::{Module, Opcode};

/// One instruction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Instr<'a> {
    /// Offset of its opcode in the module.
    pub pc: u32,
    /// What it is.
    pub op: Opcode,
    /// Its immediates, in the shape that `op.immediates()` names.
    pub imm: Imm<'a>,
}

/// Decoded immediates: see [`crate::opcodes::Immediates`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Imm<'a> {
    /// Nothing.
    None,
    /// A block type.
    Block(BlockType),
    /// A label depth.
    Label(u32),
    /// `br_table`'s labels, default last.
    Labels(Labels<'a>),
    /// An index: function, function type, local, global, table, memory, data or element segment.
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
    /// How many parameters and results it has.
    pub fn arity(self, module: &Module) -> (usize, usize) {
        match self {
            BlockType::Empty => (0, 0),
            BlockType::Value(_) => (0, 1),
            BlockType::Func(ty) => {
                let ty = &module.types[ty as usize];
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
    /// How many labels, the default included.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Never: there is always a default.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The label depths, the default last.
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<'a> {
        let mut reader = Reader { bytes: self.bytes, at: 0 };
        (0..self.len).map(move |_| reader.u32())
    }
}

impl Instr<'_> {
    /// How many [branch entries](crate::sidetable) it owns.
    pub fn branch_entries(&self) -> usize {
        match (self.op, self.imm) {
            (Opcode::Br | Opcode::BrIf | Opcode::BrOnNull | Opcode::BrOnNonNull, _) => 1,
            (Opcode::If | Opcode::Else | Opcode::Loop, _) => 1,
            (Opcode::BrTable, Imm::Labels(labels)) => labels.len(),
            _ => 0,
        }
    }
}

/// An iterator over validated code.
#[derive(Clone, Debug)]
pub struct Instrs<'a> {
    /// What reads them.
    pub reader: Reader<'a>,
    end: usize,
}

impl<'a> Instrs<'a> {
    /// The instructions in `pc..end` of `module`, which must be instruction boundaries of validated code.
    pub fn new(module: &'a Module, pc: u32, end: u32) -> Instrs<'a> {
        Instrs { reader: Reader { bytes: &module.bytes, at: pc as usize }, end: end as usize }
    }

    /// Offset of the next instruction.
    pub fn pc(&self) -> u32 {
        self.reader.at as u32
    }

    /// The next opcode and its offset. For whoever knows by it what to read: its immediates are next in the reader, and
    /// have to be read before the next instruction is.
    #[inline]
    pub fn opcode(&mut self) -> Option<(u32, Opcode)> {
        let pc = self.pc();
        (self.reader.at < self.end).then(|| (pc, self.reader.opcode()))
    }
}

impl<'a> Iterator for Instrs<'a> {
    type Item = Instr<'a>;

    #[inline]
    fn next(&mut self) -> Option<Instr<'a>> {
        let (pc, op) = self.opcode()?;
        let imm = self.reader.immediates(op);
        Some(Instr { pc, op, imm })
    }
}

/// Reads the binary format where validation has already proved it well formed.
///
/// # Panics
/// Its methods panic on bytes that validation would have refused.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    /// The module's bytes.
    pub bytes: &'a [u8],
    /// Offset of the next byte.
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
    #[inline]
    pub fn u32(&mut self) -> u32 {
        self.u64() as u32
    }

    /// An unsigned LEB128 of at most 64 bits.
    #[inline]
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
    #[inline]
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
        let code = match fusion::original(self.byte()) {
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
            Immediates::Label => Imm::Label(self.u32()),
            Immediates::Labels => Imm::Labels(self.labels()),
            Immediates::Func
            | Immediates::Type
            | Immediates::Local
            | Immediates::Global
            | Immediates::Table
            | Immediates::Memory
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
            Immediates::F32 => Imm::F32(u32::from_le_bytes(self.array())),
            Immediates::F64 => Imm::F64(u64::from_le_bytes(self.array())),
            Immediates::V128 => Imm::V128(u128::from_le_bytes(self.array())),
            Immediates::Lane => Imm::Lane(self.byte()),
            Immediates::Shuffle => Imm::Shuffle(self.array()),
            Immediates::MemArgLane => {
                let arg = self.mem_arg();
                Imm::MemLane(arg, self.byte())
            }
        }
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
            byte @ (0x63 | 0x64) => ValType::Ref(RefType { nullable: byte == 0x63, heap: self.heap_type() }),
            byte => panic!("validated code holds no value type {byte:#x}"),
        }
    }

    fn heap_type(&mut self) -> HeapType {
        match self.i64() {
            -0x10 => HeapType::Func,
            -0x11 => HeapType::Extern,
            index => HeapType::Concrete(u32::try_from(index).expect("validated code holds known heap types")),
        }
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

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let array = self.bytes[self.at..self.at + N].try_into().expect("the slice has N bytes");
        self.at += N;
        array
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each immediate shape at least once, with its extreme encodings.
    const SOURCE: &str = r#"(module
        (type $pair (func (param i64) (result i64 i32)))
        (memory 1) (memory i64 1)
        (table $a 1 funcref) (table $b 1 funcref)
        (global (mut i32) (i32.const 0))
        (elem $e func 0)
        (data $d "x")
        (func (export "f") (param i32) (local i64 f64)
            i32.const -2147483648 drop
            i32.const 2147483647 drop
            i32.const -1 drop
            i64.const -9223372036854775808 drop
            i64.const 9223372036854775807 drop
            i64.const -65 drop
            f32.const -nan:0x200001 drop
            f64.const 0x1.8p-1000 drop
            (block (block (result i32) i32.const 1) drop)
            i64.const 1
            (loop (type $pair) unreachable)
            drop
            drop
            (br_table 0 0 0 (i32.const 0))
            (drop (select (result externref) (ref.null extern) (ref.null extern) (local.get 0)))
            (global.set 0 (i32.const 0))
            (drop (i64.load8_u offset=4294967295 align=1 (i32.const 0)))
            (f64.store 1 offset=0xFFFFFFFFFFFFFFFF (i64.const 0) (f64.const 0))
            (drop (memory.grow 1 (i64.const 0)))
            (memory.init 1 $d (i64.const 0) (i32.const 0) (i32.const 0))
            (memory.copy 1 0 (i64.const 0) (i32.const 0) (i32.const 0))
            (data.drop $d)
            (table.init $b $e (i32.const 0) (i32.const 0) (i32.const 0))
            (table.copy $b $a (i32.const 0) (i32.const 0) (i32.const 0))
            (elem.drop $e)
            (drop (table.size $b))
            (drop (ref.func 0))
            (drop (v128.const i64x2 -2 1))
            (drop (i8x16.shuffle 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 31 (v128.const i64x2 0 0) (v128.const i64x2 0 0)))
            (drop (i16x8.extract_lane_s 7 (v128.const i64x2 0 0)))
            (v128.store16_lane 1 offset=130 7 (i64.const 0) (v128.const i64x2 0 0))
            (call_indirect $b (param i32) (i32.const 1) (i32.const 0))))"#;

    #[test]
    fn immediates_of_every_shape_decode() {
        use Opcode as Op;
        let module = crate::validate::parse(wat::parse_str(SOURCE).unwrap().into()).unwrap();
        let body = &module.bodies[0];
        let instrs: Vec<Instr<'_>> = Instrs::new(&module, body.entry, body.end).collect();
        let imms = |op| instrs.iter().filter(move |instr| instr.op == op).map(|instr| instr.imm).collect::<Vec<_>>();
        assert_eq!(imms(Op::I32Const)[..3], [Imm::I32(i32::MIN), Imm::I32(i32::MAX), Imm::I32(-1)]);
        assert_eq!(imms(Op::I64Const)[..3], [Imm::I64(i64::MIN), Imm::I64(i64::MAX), Imm::I64(-65)]);
        assert_eq!(imms(Op::F32Const), [Imm::F32(0xFFA0_0001)]);
        assert_eq!(imms(Op::F64Const)[0], Imm::F64(0x0178_0000_0000_0000));
        assert_eq!(imms(Op::Block), [Imm::Block(BlockType::Empty), Imm::Block(BlockType::Value(ValType::I32))]);
        assert_eq!(imms(Op::Loop), [Imm::Block(BlockType::Func(0))]);
        assert_eq!(BlockType::Func(0).arity(&module), (1, 2));
        let [Imm::Labels(labels)] = imms(Op::BrTable)[..] else { panic!("one br_table") };
        assert_eq!((labels.len(), labels.iter().collect::<Vec<_>>()), (3, vec![0, 0, 0]));
        assert_eq!(imms(Op::V128Const)[0], Imm::V128(0x0000_0000_0000_0001_FFFF_FFFF_FFFF_FFFE));
        assert_eq!(imms(Op::I8x16Shuffle), [Imm::Shuffle([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 31])]);
        assert_eq!(imms(Op::I16x8ExtractLaneS), [Imm::Lane(7)]);
        assert_eq!(imms(Op::V128Store16Lane), [Imm::MemLane(MemArg { memory: 1, offset: 130 }, 7)]);
        assert_eq!(imms(Op::SelectT), [Imm::Type(ValType::EXTERNREF)]);
        assert_eq!(imms(Op::RefNull), [Imm::Heap(HeapType::Extern); 2]);
        assert_eq!(imms(Op::GlobalSet), [Imm::Index(0)]);
        assert_eq!(imms(Op::I64Load8U), [Imm::Mem(MemArg { memory: 0, offset: 0xFFFF_FFFF })]);
        assert_eq!(imms(Op::F64Store), [Imm::Mem(MemArg { memory: 1, offset: u64::MAX })]);
        assert_eq!(imms(Op::MemoryGrow), [Imm::Index(1)]);
        assert_eq!(imms(Op::MemoryInit), [Imm::Index2(0, 1)]);
        assert_eq!(imms(Op::MemoryCopy), [Imm::Index2(1, 0)]);
        assert_eq!(imms(Op::TableInit), [Imm::Index2(0, 1)]);
        assert_eq!(imms(Op::TableCopy), [Imm::Index2(1, 0)]);
        assert_eq!(imms(Op::TableSize), [Imm::Index(1)]);
        assert_eq!(imms(Op::RefFunc), [Imm::Index(0)]);
        assert_eq!(imms(Op::CallIndirect), [Imm::CallIndirect { ty: 1, table: 1 }]);
    }

    /// Every instruction of TABLE 1, encoded by hand with the smallest immediates of its shape and walked as raw bytes.
    #[test]
    fn every_opcode_is_walked_to_its_end() {
        let mut bytes = Vec::new();
        for &op in Opcode::ALL {
            let code = op as u16;
            match code {
                0..=0xFF => bytes.push(code as u8),
                0x100..=0x1FF => bytes.extend([0xFC, (code - 0x100) as u8]),
                _ => bytes.extend([0xFD, (code - 0x200) as u8 | 0x80, ((code - 0x200) >> 7) as u8]),
            }
            bytes.extend_from_slice(match op.immediates() {
                Immediates::None => &[],
                Immediates::Block => &[0x40],
                Immediates::Labels => &[2, 0x80, 0, 1, 0],
                Immediates::CallIndirect
                | Immediates::DataMemory
                | Immediates::MemoryMemory
                | Immediates::ElemTable
                | Immediates::TableTable => &[0x81, 0, 2],
                Immediates::Types => &[1, 0x7F],
                Immediates::MemArg => &[0x42, 1, 0xFF, 0x7F],
                Immediates::HeapType => &[0x70],
                Immediates::F32 => &[1, 2, 3, 4],
                Immediates::F64 => &[1, 2, 3, 4, 5, 6, 7, 8],
                Immediates::V128 | Immediates::Shuffle => &[0; 16],
                Immediates::Lane => &[1],
                Immediates::MemArgLane => &[0x42, 1, 0xFF, 0x7F, 3],
                _ => &[0x80, 0x00],
            });
        }
        let end = bytes.len() as u32;
        let module = Module { bytes: bytes.into(), ..Module::default() };
        let mut instrs = Instrs::new(&module, 0, end);
        let ops: Vec<Opcode> = instrs.by_ref().map(|instr| instr.op).collect();
        assert_eq!(ops, Opcode::ALL);
        assert_eq!(instrs.pc(), end);
    }
}
