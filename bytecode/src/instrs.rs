//! Walks the instructions of validated code.

pub use crate::reader::{BlockType, Clause, Clauses, Imm, Labels, MemArg, Reader};

use crate::module::Module;
use crate::opcodes::{Control, Effect, Opcode};

/// One instruction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Instr<'a> {
    /// Offset of its opcode in the module.
    pub pc: u32,
    /// The instruction.
    pub op: Opcode,
    /// Its immediates, in the shape that `op.immediates()` names.
    pub imm: Imm<'a>,
}

impl BlockType {
    /// Returns the numbers of its parameters and results.
    pub fn arity(self, module: &Module) -> (usize, usize) {
        self.arity_in(&module.types)
    }
}

/// The change of an instruction to the blocks that are open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nesting {
    /// None.
    Same,
    /// It opens a block.
    Open,
    /// It ends a part of the innermost block, and begins the next: the second arm, or a handler.
    Else,
    /// It ends the innermost block.
    End,
}

impl Opcode {
    /// Returns the change to the blocks that are open.
    #[inline]
    pub const fn nesting(self) -> Nesting {
        let Effect::Control(control) = self.effect() else { return Nesting::Same };
        match control {
            Control::Block | Control::Loop | Control::If | Control::TryTable | Control::Try => Nesting::Open,
            Control::Else | Control::Catch | Control::CatchAll => Nesting::Else,
            Control::End | Control::Delegate => Nesting::End,
            Control::Throw | Control::ThrowRef | Control::Rethrow => Nesting::Same,
            Control::Unreachable | Control::Nop | Control::Br | Control::BrIf | Control::BrTable => Nesting::Same,
            Control::BrOnNull | Control::BrOnNonNull => Nesting::Same,
            Control::Return | Control::Call(_) | Control::ReturnCall(_) => Nesting::Same,
        }
    }
}

impl Instr<'_> {
    /// Returns the number of [branch entries](crate::sidetable) that it owns.
    pub fn branch_entries(&self) -> usize {
        let Effect::Control(control) = self.op.effect() else { return 0 };
        match control {
            Control::Br | Control::BrIf | Control::BrOnNull | Control::BrOnNonNull => 1,
            Control::If | Control::Else | Control::Loop => 1,
            Control::Catch | Control::CatchAll => 2,
            Control::Delegate | Control::Rethrow => 1,
            Control::TryTable => {
                let Imm::TryTable(_, clauses) = self.imm else { panic!("try_table has no immediates {:?}", self.imm) };
                1 + clauses.len()
            }
            Control::BrTable => {
                let Imm::Labels(labels) = self.imm else { panic!("br_table has no immediates {:?}", self.imm) };
                labels.len()
            }
            Control::Unreachable | Control::Nop | Control::Block | Control::End => 0,
            Control::Try | Control::Throw | Control::ThrowRef => 0,
            Control::Return | Control::Call(_) | Control::ReturnCall(_) => 0,
        }
    }
}

/// An iterator over validated code.
#[derive(Clone, Debug)]
pub struct Instrs<'a> {
    /// Reads the instructions, from bytes of the module that begin at `start`.
    pub reader: Reader<'a>,
    start: u32,
}

impl<'a> Instrs<'a> {
    /// The instructions in `pc..end` of `module`, which must be instruction boundaries of validated code.
    pub fn new(module: &'a Module, pc: u32, end: u32) -> Instrs<'a> {
        Instrs::of(module.bytes.part(pc as usize..end as usize), pc)
    }

    /// The instructions in bytes that begin at this offset of their module.
    fn of(bytes: &'a [u8], start: u32) -> Instrs<'a> {
        Instrs { reader: Reader { bytes, at: 0 }, start }
    }

    /// Returns the instruction at `pc` of `module`, which is valid code and no `br_table` or `try_table`. `None` if its bytes or those
    /// after it are [unreadable](crate::Unreadable): nobody may have read them, because the function has stored code.
    pub fn at(module: &'a Module, pc: u32) -> Option<Instr<'a>> {
        /// Bytes of the longest other instruction, at most.
        const LONGEST: usize = 64;
        let end = module.bytes.len().min(pc as usize + LONGEST);
        Instrs::of(module.bytes.try_part(pc as usize..end).ok()?, pc).next()
    }

    /// Offset of the next instruction.
    pub fn pc(&self) -> u32 {
        self.start + self.reader.at as u32
    }

    /// Returns the next opcode and its offset, without its immediates. The caller must read these with the reader
    /// before it reads the next instruction.
    #[inline]
    pub fn opcode(&mut self) -> Option<(u32, Opcode)> {
        let pc = self.pc();
        (self.reader.at < self.reader.bytes.len()).then(|| (pc, self.reader.opcode()))
    }

    /// Returns the next instruction whose effect is [`Effect::Control`], and skips those before it. Several times as fast as
    /// the iterator where they are few.
    pub fn next_control(&mut self) -> Option<Instr<'a>> {
        const IS_CONTROL: [bool; 256] = {
            let mut table = [false; 256];
            let mut i = 0;
            while i < Opcode::ALL.len() {
                let op = Opcode::ALL[i];
                if let Effect::Control(_) = op.effect() {
                    assert!((op as usize) < 0x100, "the first byte tells instructions of control apart");
                    table[op as usize] = true;
                }
                i += 1;
            }
            table
        };
        while self.reader.at < self.reader.bytes.len() {
            if IS_CONTROL[self.reader.bytes[self.reader.at] as usize] {
                return self.next();
            }
            self.reader.skip_instruction();
        }
        None
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opcodes::Immediates;
    use crate::types::{HeapType, ValType};

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

    #[test]
    fn skipped_instructions_end_where_decoded_ones_do() {
        let module = crate::validate::parse(wat::parse_str(SOURCE).unwrap().into()).unwrap();
        let body = &module.bodies[0];
        let instrs = Instrs::new(&module, body.entry, body.end);
        let (mut reader, mut controls) = (instrs.reader.clone(), instrs.clone());
        for instr in instrs {
            assert_eq!(body.entry as usize + reader.at, instr.pc as usize);
            reader.skip_instruction();
            if let Effect::Control(_) = instr.op.effect() {
                assert_eq!(controls.next_control(), Some(instr));
            }
        }
        assert_eq!((reader.at, controls.next_control()), (body.len() as usize, None));
    }

    #[test]
    fn an_encoded_opcode_is_read_back() {
        for &op in Opcode::ALL {
            let mut bytes = Vec::new();
            op.encode(&mut bytes);
            let mut reader = Reader { bytes: &bytes, at: 0 };
            assert_eq!((reader.opcode(), reader.at), (op, bytes.len()), "{bytes:x?}");
        }
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
                Immediates::TryTable => &[0x40, 4, 0, 0x80, 0, 1, 1, 2, 3, 2, 4, 3, 5],
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
                Immediates::Label | Immediates::Func | Immediates::Type | Immediates::Local | Immediates::Global => &[0x80, 0x00],
                Immediates::Table | Immediates::Memory | Immediates::Data | Immediates::Elem => &[0x80, 0x00],
                Immediates::Tag => &[0x80, 0x00],
                Immediates::I32 | Immediates::I64 => &[0x80, 0x00],
            });
        }
        let end = bytes.len() as u32;
        let module = Module { bytes: bytes.into(), ..Module::default() };
        let mut instrs = Instrs::new(&module, 0, end);
        let ops: Vec<Opcode> = instrs.by_ref().map(|instr| instr.op).collect();
        assert_eq!(ops, Opcode::ALL);
        assert_eq!(instrs.pc(), end);
        let mut reader = Reader { bytes: &module.bytes, at: 0 };
        for _ in Opcode::ALL {
            reader.skip_instruction();
        }
        assert_eq!(reader.at, module.bytes.len());
    }
}
