//! TABLE 1: every instruction that Weir knows, one row each. The enum, the decoder's map, the mnemonics, the
//! immediates' shapes and the fixed signatures all derive from it.
//!
//! A row is `Name, code, "mnemonic", Immediates, (operands => results)`, or `special` in place of the signature
//! where it depends on the immediates, the module or the operand stack. The one-byte opcodes keep their byte as
//! `code`; those behind prefix 0xFC are `0x100 + n` (0x200 + n is kept for prefix 0xFD, 0x400 + n for 0xFE).

/// Calls the macro `$m` with every row of TABLE 1.
#[macro_export]
macro_rules! for_each_opcode {
    ($m:ident) => {
        $m! {
            // Control
            Unreachable, 0x00, "unreachable", None, special;
            Nop, 0x01, "nop", None, special;
            Block, 0x02, "block", Block, special;
            Loop, 0x03, "loop", Block, special;
            If, 0x04, "if", Block, special;
            Else, 0x05, "else", None, special;
            End, 0x0B, "end", None, special;
            Br, 0x0C, "br", Label, special;
            BrIf, 0x0D, "br_if", Label, special;
            BrTable, 0x0E, "br_table", Labels, special;
            Return, 0x0F, "return", None, special;
            Call, 0x10, "call", Func, special;
            CallIndirect, 0x11, "call_indirect", CallIndirect, special;
            ReturnCall, 0x12, "return_call", Func, special;
            ReturnCallIndirect, 0x13, "return_call_indirect", CallIndirect, special;
            Drop, 0x1A, "drop", None, special;
            Select, 0x1B, "select", None, special;
            SelectT, 0x1C, "select t", Types, special;
            // Variables and tables
            LocalGet, 0x20, "local.get", Local, special;
            LocalSet, 0x21, "local.set", Local, special;
            LocalTee, 0x22, "local.tee", Local, special;
            GlobalGet, 0x23, "global.get", Global, special;
            GlobalSet, 0x24, "global.set", Global, special;
            TableGet, 0x25, "table.get", Table, special;
            TableSet, 0x26, "table.set", Table, special;
            // Loads and stores: the address is i32 or i64 as the memory says, so the signature is the memory's
            I32Load, 0x28, "i32.load", MemArg, special;
            I64Load, 0x29, "i64.load", MemArg, special;
            F32Load, 0x2A, "f32.load", MemArg, special;
            F64Load, 0x2B, "f64.load", MemArg, special;
            I32Load8S, 0x2C, "i32.load8_s", MemArg, special;
            I32Load8U, 0x2D, "i32.load8_u", MemArg, special;
            I32Load16S, 0x2E, "i32.load16_s", MemArg, special;
            I32Load16U, 0x2F, "i32.load16_u", MemArg, special;
            I64Load8S, 0x30, "i64.load8_s", MemArg, special;
            I64Load8U, 0x31, "i64.load8_u", MemArg, special;
            I64Load16S, 0x32, "i64.load16_s", MemArg, special;
            I64Load16U, 0x33, "i64.load16_u", MemArg, special;
            I64Load32S, 0x34, "i64.load32_s", MemArg, special;
            I64Load32U, 0x35, "i64.load32_u", MemArg, special;
            I32Store, 0x36, "i32.store", MemArg, special;
            I64Store, 0x37, "i64.store", MemArg, special;
            F32Store, 0x38, "f32.store", MemArg, special;
            F64Store, 0x39, "f64.store", MemArg, special;
            I32Store8, 0x3A, "i32.store8", MemArg, special;
            I32Store16, 0x3B, "i32.store16", MemArg, special;
            I64Store8, 0x3C, "i64.store8", MemArg, special;
            I64Store16, 0x3D, "i64.store16", MemArg, special;
            I64Store32, 0x3E, "i64.store32", MemArg, special;
            MemorySize, 0x3F, "memory.size", Memory, special;
            MemoryGrow, 0x40, "memory.grow", Memory, special;
            // Constants
            I32Const, 0x41, "i32.const", I32, (=> I32);
            I64Const, 0x42, "i64.const", I64, (=> I64);
            F32Const, 0x43, "f32.const", F32, (=> F32);
            F64Const, 0x44, "f64.const", F64, (=> F64);
            // Comparisons
            I32Eqz, 0x45, "i32.eqz", None, (I32 => I32);
            I32Eq, 0x46, "i32.eq", None, (I32 I32 => I32);
            I32Ne, 0x47, "i32.ne", None, (I32 I32 => I32);
            I32LtS, 0x48, "i32.lt_s", None, (I32 I32 => I32);
            I32LtU, 0x49, "i32.lt_u", None, (I32 I32 => I32);
            I32GtS, 0x4A, "i32.gt_s", None, (I32 I32 => I32);
            I32GtU, 0x4B, "i32.gt_u", None, (I32 I32 => I32);
            I32LeS, 0x4C, "i32.le_s", None, (I32 I32 => I32);
            I32LeU, 0x4D, "i32.le_u", None, (I32 I32 => I32);
            I32GeS, 0x4E, "i32.ge_s", None, (I32 I32 => I32);
            I32GeU, 0x4F, "i32.ge_u", None, (I32 I32 => I32);
            I64Eqz, 0x50, "i64.eqz", None, (I64 => I32);
            I64Eq, 0x51, "i64.eq", None, (I64 I64 => I32);
            I64Ne, 0x52, "i64.ne", None, (I64 I64 => I32);
            I64LtS, 0x53, "i64.lt_s", None, (I64 I64 => I32);
            I64LtU, 0x54, "i64.lt_u", None, (I64 I64 => I32);
            I64GtS, 0x55, "i64.gt_s", None, (I64 I64 => I32);
            I64GtU, 0x56, "i64.gt_u", None, (I64 I64 => I32);
            I64LeS, 0x57, "i64.le_s", None, (I64 I64 => I32);
            I64LeU, 0x58, "i64.le_u", None, (I64 I64 => I32);
            I64GeS, 0x59, "i64.ge_s", None, (I64 I64 => I32);
            I64GeU, 0x5A, "i64.ge_u", None, (I64 I64 => I32);
            F32Eq, 0x5B, "f32.eq", None, (F32 F32 => I32);
            F32Ne, 0x5C, "f32.ne", None, (F32 F32 => I32);
            F32Lt, 0x5D, "f32.lt", None, (F32 F32 => I32);
            F32Gt, 0x5E, "f32.gt", None, (F32 F32 => I32);
            F32Le, 0x5F, "f32.le", None, (F32 F32 => I32);
            F32Ge, 0x60, "f32.ge", None, (F32 F32 => I32);
            F64Eq, 0x61, "f64.eq", None, (F64 F64 => I32);
            F64Ne, 0x62, "f64.ne", None, (F64 F64 => I32);
            F64Lt, 0x63, "f64.lt", None, (F64 F64 => I32);
            F64Gt, 0x64, "f64.gt", None, (F64 F64 => I32);
            F64Le, 0x65, "f64.le", None, (F64 F64 => I32);
            F64Ge, 0x66, "f64.ge", None, (F64 F64 => I32);
            // Integer arithmetic
            I32Clz, 0x67, "i32.clz", None, (I32 => I32);
            I32Ctz, 0x68, "i32.ctz", None, (I32 => I32);
            I32Popcnt, 0x69, "i32.popcnt", None, (I32 => I32);
            I32Add, 0x6A, "i32.add", None, (I32 I32 => I32);
            I32Sub, 0x6B, "i32.sub", None, (I32 I32 => I32);
            I32Mul, 0x6C, "i32.mul", None, (I32 I32 => I32);
            I32DivS, 0x6D, "i32.div_s", None, (I32 I32 => I32);
            I32DivU, 0x6E, "i32.div_u", None, (I32 I32 => I32);
            I32RemS, 0x6F, "i32.rem_s", None, (I32 I32 => I32);
            I32RemU, 0x70, "i32.rem_u", None, (I32 I32 => I32);
            I32And, 0x71, "i32.and", None, (I32 I32 => I32);
            I32Or, 0x72, "i32.or", None, (I32 I32 => I32);
            I32Xor, 0x73, "i32.xor", None, (I32 I32 => I32);
            I32Shl, 0x74, "i32.shl", None, (I32 I32 => I32);
            I32ShrS, 0x75, "i32.shr_s", None, (I32 I32 => I32);
            I32ShrU, 0x76, "i32.shr_u", None, (I32 I32 => I32);
            I32Rotl, 0x77, "i32.rotl", None, (I32 I32 => I32);
            I32Rotr, 0x78, "i32.rotr", None, (I32 I32 => I32);
            I64Clz, 0x79, "i64.clz", None, (I64 => I64);
            I64Ctz, 0x7A, "i64.ctz", None, (I64 => I64);
            I64Popcnt, 0x7B, "i64.popcnt", None, (I64 => I64);
            I64Add, 0x7C, "i64.add", None, (I64 I64 => I64);
            I64Sub, 0x7D, "i64.sub", None, (I64 I64 => I64);
            I64Mul, 0x7E, "i64.mul", None, (I64 I64 => I64);
            I64DivS, 0x7F, "i64.div_s", None, (I64 I64 => I64);
            I64DivU, 0x80, "i64.div_u", None, (I64 I64 => I64);
            I64RemS, 0x81, "i64.rem_s", None, (I64 I64 => I64);
            I64RemU, 0x82, "i64.rem_u", None, (I64 I64 => I64);
            I64And, 0x83, "i64.and", None, (I64 I64 => I64);
            I64Or, 0x84, "i64.or", None, (I64 I64 => I64);
            I64Xor, 0x85, "i64.xor", None, (I64 I64 => I64);
            I64Shl, 0x86, "i64.shl", None, (I64 I64 => I64);
            I64ShrS, 0x87, "i64.shr_s", None, (I64 I64 => I64);
            I64ShrU, 0x88, "i64.shr_u", None, (I64 I64 => I64);
            I64Rotl, 0x89, "i64.rotl", None, (I64 I64 => I64);
            I64Rotr, 0x8A, "i64.rotr", None, (I64 I64 => I64);
            // Float arithmetic
            F32Abs, 0x8B, "f32.abs", None, (F32 => F32);
            F32Neg, 0x8C, "f32.neg", None, (F32 => F32);
            F32Ceil, 0x8D, "f32.ceil", None, (F32 => F32);
            F32Floor, 0x8E, "f32.floor", None, (F32 => F32);
            F32Trunc, 0x8F, "f32.trunc", None, (F32 => F32);
            F32Nearest, 0x90, "f32.nearest", None, (F32 => F32);
            F32Sqrt, 0x91, "f32.sqrt", None, (F32 => F32);
            F32Add, 0x92, "f32.add", None, (F32 F32 => F32);
            F32Sub, 0x93, "f32.sub", None, (F32 F32 => F32);
            F32Mul, 0x94, "f32.mul", None, (F32 F32 => F32);
            F32Div, 0x95, "f32.div", None, (F32 F32 => F32);
            F32Min, 0x96, "f32.min", None, (F32 F32 => F32);
            F32Max, 0x97, "f32.max", None, (F32 F32 => F32);
            F32Copysign, 0x98, "f32.copysign", None, (F32 F32 => F32);
            F64Abs, 0x99, "f64.abs", None, (F64 => F64);
            F64Neg, 0x9A, "f64.neg", None, (F64 => F64);
            F64Ceil, 0x9B, "f64.ceil", None, (F64 => F64);
            F64Floor, 0x9C, "f64.floor", None, (F64 => F64);
            F64Trunc, 0x9D, "f64.trunc", None, (F64 => F64);
            F64Nearest, 0x9E, "f64.nearest", None, (F64 => F64);
            F64Sqrt, 0x9F, "f64.sqrt", None, (F64 => F64);
            F64Add, 0xA0, "f64.add", None, (F64 F64 => F64);
            F64Sub, 0xA1, "f64.sub", None, (F64 F64 => F64);
            F64Mul, 0xA2, "f64.mul", None, (F64 F64 => F64);
            F64Div, 0xA3, "f64.div", None, (F64 F64 => F64);
            F64Min, 0xA4, "f64.min", None, (F64 F64 => F64);
            F64Max, 0xA5, "f64.max", None, (F64 F64 => F64);
            F64Copysign, 0xA6, "f64.copysign", None, (F64 F64 => F64);
            // Conversions
            I32WrapI64, 0xA7, "i32.wrap_i64", None, (I64 => I32);
            I32TruncF32S, 0xA8, "i32.trunc_f32_s", None, (F32 => I32);
            I32TruncF32U, 0xA9, "i32.trunc_f32_u", None, (F32 => I32);
            I32TruncF64S, 0xAA, "i32.trunc_f64_s", None, (F64 => I32);
            I32TruncF64U, 0xAB, "i32.trunc_f64_u", None, (F64 => I32);
            I64ExtendI32S, 0xAC, "i64.extend_i32_s", None, (I32 => I64);
            I64ExtendI32U, 0xAD, "i64.extend_i32_u", None, (I32 => I64);
            I64TruncF32S, 0xAE, "i64.trunc_f32_s", None, (F32 => I64);
            I64TruncF32U, 0xAF, "i64.trunc_f32_u", None, (F32 => I64);
            I64TruncF64S, 0xB0, "i64.trunc_f64_s", None, (F64 => I64);
            I64TruncF64U, 0xB1, "i64.trunc_f64_u", None, (F64 => I64);
            F32ConvertI32S, 0xB2, "f32.convert_i32_s", None, (I32 => F32);
            F32ConvertI32U, 0xB3, "f32.convert_i32_u", None, (I32 => F32);
            F32ConvertI64S, 0xB4, "f32.convert_i64_s", None, (I64 => F32);
            F32ConvertI64U, 0xB5, "f32.convert_i64_u", None, (I64 => F32);
            F32DemoteF64, 0xB6, "f32.demote_f64", None, (F64 => F32);
            F64ConvertI32S, 0xB7, "f64.convert_i32_s", None, (I32 => F64);
            F64ConvertI32U, 0xB8, "f64.convert_i32_u", None, (I32 => F64);
            F64ConvertI64S, 0xB9, "f64.convert_i64_s", None, (I64 => F64);
            F64ConvertI64U, 0xBA, "f64.convert_i64_u", None, (I64 => F64);
            F64PromoteF32, 0xBB, "f64.promote_f32", None, (F32 => F64);
            I32ReinterpretF32, 0xBC, "i32.reinterpret_f32", None, (F32 => I32);
            I64ReinterpretF64, 0xBD, "i64.reinterpret_f64", None, (F64 => I64);
            F32ReinterpretI32, 0xBE, "f32.reinterpret_i32", None, (I32 => F32);
            F64ReinterpretI64, 0xBF, "f64.reinterpret_i64", None, (I64 => F64);
            I32Extend8S, 0xC0, "i32.extend8_s", None, (I32 => I32);
            I32Extend16S, 0xC1, "i32.extend16_s", None, (I32 => I32);
            I64Extend8S, 0xC2, "i64.extend8_s", None, (I64 => I64);
            I64Extend16S, 0xC3, "i64.extend16_s", None, (I64 => I64);
            I64Extend32S, 0xC4, "i64.extend32_s", None, (I64 => I64);
            // References
            RefNull, 0xD0, "ref.null", HeapType, special;
            RefIsNull, 0xD1, "ref.is_null", None, special;
            RefFunc, 0xD2, "ref.func", Func, special;
            // Prefix 0xFC: saturating truncation, bulk memory and tables
            I32TruncSatF32S, 0x100, "i32.trunc_sat_f32_s", None, (F32 => I32);
            I32TruncSatF32U, 0x101, "i32.trunc_sat_f32_u", None, (F32 => I32);
            I32TruncSatF64S, 0x102, "i32.trunc_sat_f64_s", None, (F64 => I32);
            I32TruncSatF64U, 0x103, "i32.trunc_sat_f64_u", None, (F64 => I32);
            I64TruncSatF32S, 0x104, "i64.trunc_sat_f32_s", None, (F32 => I64);
            I64TruncSatF32U, 0x105, "i64.trunc_sat_f32_u", None, (F32 => I64);
            I64TruncSatF64S, 0x106, "i64.trunc_sat_f64_s", None, (F64 => I64);
            I64TruncSatF64U, 0x107, "i64.trunc_sat_f64_u", None, (F64 => I64);
            MemoryInit, 0x108, "memory.init", DataMemory, special;
            DataDrop, 0x109, "data.drop", Data, special;
            MemoryCopy, 0x10A, "memory.copy", MemoryMemory, special;
            MemoryFill, 0x10B, "memory.fill", Memory, special;
            TableInit, 0x10C, "table.init", ElemTable, special;
            ElemDrop, 0x10D, "elem.drop", Elem, special;
            TableCopy, 0x10E, "table.copy", TableTable, special;
            TableGrow, 0x10F, "table.grow", Table, special;
            TableSize, 0x110, "table.size", Table, special;
            TableFill, 0x111, "table.fill", Table, special;
        }
    };
}

use crate::types::ValType;

macro_rules! signature {
    (special) => {
        None
    };
    (($($operand:ident)* => $result:ident)) => {
        Some(Signature { operands: &[$(ValType::$operand),*], result: ValType::$result })
    };
}

macro_rules! define_opcodes {
    ($($name:ident, $code:literal, $mnemonic:literal, $imm:ident, $signature:tt;)*) => {
        /// An instruction's identity. The discriminant is the code of TABLE 1.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u16)]
        pub enum Opcode {
            $(#[doc = concat!("`", $mnemonic, "`")] $name = $code,)*
        }

        impl Opcode {
            /// Every opcode, in the order of TABLE 1.
            pub const ALL: &'static [Opcode] = &[$(Opcode::$name,)*];

            /// The opcode with this code (see the head of this file), or `None` if Weir has none.
            pub const fn from_code(code: u16) -> Option<Opcode> {
                Some(match code {
                    $($code => Opcode::$name,)*
                    _ => return None,
                })
            }

            /// The name in the text format; `select t` for the typed select.
            pub const fn mnemonic(self) -> &'static str {
                match self {
                    $(Opcode::$name => $mnemonic,)*
                }
            }

            /// The shape of the immediates.
            pub const fn immediates(self) -> Immediates {
                match self {
                    $(Opcode::$name => Immediates::$imm,)*
                }
            }

            /// Operand and result types, where the opcode alone decides them.
            pub const fn signature(self) -> Option<Signature> {
                match self {
                    $(Opcode::$name => signature!($signature),)*
                }
            }
        }
    };
}

for_each_opcode!(define_opcodes);

/// A signature that depends on nothing but the opcode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signature {
    /// Operand types, bottom of the stack first.
    pub operands: &'static [ValType],
    /// The one result.
    pub result: ValType,
}

/// The shapes that immediates come in. [`crate::instrs::Imm`] holds their values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Immediates {
    /// Nothing.
    None,
    /// A block type.
    Block,
    /// A label depth.
    Label,
    /// `br_table`'s labels, default last.
    Labels,
    /// A function index.
    Func,
    /// A type index, then a table index.
    CallIndirect,
    /// A vector of value types.
    Types,
    /// A local index.
    Local,
    /// A global index.
    Global,
    /// A table index.
    Table,
    /// Alignment, memory index and offset.
    MemArg,
    /// A memory index.
    Memory,
    /// A data segment, then a memory.
    DataMemory,
    /// A data segment.
    Data,
    /// Destination and source memory.
    MemoryMemory,
    /// An element segment, then a table.
    ElemTable,
    /// An element segment.
    Elem,
    /// Destination and source table.
    TableTable,
    /// A heap type.
    HeapType,
    /// A signed LEB128 constant.
    I32,
    /// A signed LEB128 constant.
    I64,
    /// Four bytes, little-endian.
    F32,
    /// Eight bytes, little-endian.
    F64,
}
