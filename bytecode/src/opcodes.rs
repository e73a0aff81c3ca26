//! TABLE 1: every instruction that Weir supports, one row each. The enum, the decoder's map, the mnemonics, the
//! immediates' shapes, the effects on the operand stack and the operations on lanes all derive from it.
//!
//! A row is `Name, code, "mnemonic", Immediates, effect, lanes`; no column has a default.
//!
//! The one-byte opcodes keep their byte as `code`; those after prefix 0xFC are `0x100 + n`, those after 0xFD `0x200 + n`
//! (0x400 + n is kept for 0xFE).
//!
//! The effect is one of
//!
//! * `(operands => results)`: types that the opcode alone decides;
//! * `[operands => results]`: types of which some are a [`StackType`], which the immediates, the module, or the operands decide;
//! * a [`Control`]: an instruction that opens, ends or leaves a block, or calls.
//!
//! The last column is `scalar`, `access` (of a vector in memory), or `lanes(operands' shape -> shape, Family::Operation)`:
//! the shapes and the [`LaneOp`] of an instruction on vectors.

/// Calls the macro `$m` with every row of TABLE 1.
#[macro_export]
macro_rules! for_each_opcode {
    ($m:ident) => {
        $m! {
            // Control
            Unreachable, 0x00, "unreachable", None, Unreachable, scalar;
            Nop, 0x01, "nop", None, Nop, scalar;
            Block, 0x02, "block", Block, Block, scalar;
            Loop, 0x03, "loop", Block, Loop, scalar;
            If, 0x04, "if", Block, If, scalar;
            Else, 0x05, "else", None, Else, scalar;
            Try, 0x06, "try", Block, Try, scalar;
            Catch, 0x07, "catch", Tag, Catch, scalar;
            Throw, 0x08, "throw", Tag, Throw, scalar;
            Rethrow, 0x09, "rethrow", Label, Rethrow, scalar;
            ThrowRef, 0x0A, "throw_ref", None, ThrowRef, scalar;
            End, 0x0B, "end", None, End, scalar;
            Br, 0x0C, "br", Label, Br, scalar;
            BrIf, 0x0D, "br_if", Label, BrIf, scalar;
            BrTable, 0x0E, "br_table", Labels, BrTable, scalar;
            Return, 0x0F, "return", None, Return, scalar;
            Call, 0x10, "call", Func, Call(Direct), scalar;
            CallIndirect, 0x11, "call_indirect", CallIndirect, Call(Indirect), scalar;
            ReturnCall, 0x12, "return_call", Func, ReturnCall(Direct), scalar;
            ReturnCallIndirect, 0x13, "return_call_indirect", CallIndirect, ReturnCall(Indirect), scalar;
            CallRef, 0x14, "call_ref", Type, Call(Reference), scalar;
            ReturnCallRef, 0x15, "return_call_ref", Type, ReturnCall(Reference), scalar;
            Delegate, 0x18, "delegate", Label, Delegate, scalar;
            CatchAll, 0x19, "catch_all", None, CatchAll, scalar;
            Drop, 0x1A, "drop", None, [Any =>], scalar;
            Select, 0x1B, "select", None, [Any Any I32 => Any], scalar;
            SelectT, 0x1C, "select t", Types, [Named Named I32 => Named], scalar;
            TryTable, 0x1F, "try_table", TryTable, TryTable, scalar;
            // Variables and tables
            LocalGet, 0x20, "local.get", Local, [=> Local], scalar;
            LocalSet, 0x21, "local.set", Local, [Local =>], scalar;
            LocalTee, 0x22, "local.tee", Local, [Local => Local], scalar;
            GlobalGet, 0x23, "global.get", Global, [=> Global], scalar;
            GlobalSet, 0x24, "global.set", Global, [Global =>], scalar;
            TableGet, 0x25, "table.get", Table, [Index => Element], scalar;
            TableSet, 0x26, "table.set", Table, [Index Element =>], scalar;
            // Loads and stores
            I32Load, 0x28, "i32.load", MemArg, [Address => I32], scalar;
            I64Load, 0x29, "i64.load", MemArg, [Address => I64], scalar;
            F32Load, 0x2A, "f32.load", MemArg, [Address => F32], scalar;
            F64Load, 0x2B, "f64.load", MemArg, [Address => F64], scalar;
            I32Load8S, 0x2C, "i32.load8_s", MemArg, [Address => I32], scalar;
            I32Load8U, 0x2D, "i32.load8_u", MemArg, [Address => I32], scalar;
            I32Load16S, 0x2E, "i32.load16_s", MemArg, [Address => I32], scalar;
            I32Load16U, 0x2F, "i32.load16_u", MemArg, [Address => I32], scalar;
            I64Load8S, 0x30, "i64.load8_s", MemArg, [Address => I64], scalar;
            I64Load8U, 0x31, "i64.load8_u", MemArg, [Address => I64], scalar;
            I64Load16S, 0x32, "i64.load16_s", MemArg, [Address => I64], scalar;
            I64Load16U, 0x33, "i64.load16_u", MemArg, [Address => I64], scalar;
            I64Load32S, 0x34, "i64.load32_s", MemArg, [Address => I64], scalar;
            I64Load32U, 0x35, "i64.load32_u", MemArg, [Address => I64], scalar;
            I32Store, 0x36, "i32.store", MemArg, [Address I32 =>], scalar;
            I64Store, 0x37, "i64.store", MemArg, [Address I64 =>], scalar;
            F32Store, 0x38, "f32.store", MemArg, [Address F32 =>], scalar;
            F64Store, 0x39, "f64.store", MemArg, [Address F64 =>], scalar;
            I32Store8, 0x3A, "i32.store8", MemArg, [Address I32 =>], scalar;
            I32Store16, 0x3B, "i32.store16", MemArg, [Address I32 =>], scalar;
            I64Store8, 0x3C, "i64.store8", MemArg, [Address I64 =>], scalar;
            I64Store16, 0x3D, "i64.store16", MemArg, [Address I64 =>], scalar;
            I64Store32, 0x3E, "i64.store32", MemArg, [Address I64 =>], scalar;
            MemorySize, 0x3F, "memory.size", Memory, [=> Address], scalar;
            MemoryGrow, 0x40, "memory.grow", Memory, [Address => Address], scalar;
            // Constants
            I32Const, 0x41, "i32.const", I32, (=> I32), scalar;
            I64Const, 0x42, "i64.const", I64, (=> I64), scalar;
            F32Const, 0x43, "f32.const", F32, (=> F32), scalar;
            F64Const, 0x44, "f64.const", F64, (=> F64), scalar;
            // Comparisons
            I32Eqz, 0x45, "i32.eqz", None, (I32 => I32), scalar;
            I32Eq, 0x46, "i32.eq", None, (I32 I32 => I32), scalar;
            I32Ne, 0x47, "i32.ne", None, (I32 I32 => I32), scalar;
            I32LtS, 0x48, "i32.lt_s", None, (I32 I32 => I32), scalar;
            I32LtU, 0x49, "i32.lt_u", None, (I32 I32 => I32), scalar;
            I32GtS, 0x4A, "i32.gt_s", None, (I32 I32 => I32), scalar;
            I32GtU, 0x4B, "i32.gt_u", None, (I32 I32 => I32), scalar;
            I32LeS, 0x4C, "i32.le_s", None, (I32 I32 => I32), scalar;
            I32LeU, 0x4D, "i32.le_u", None, (I32 I32 => I32), scalar;
            I32GeS, 0x4E, "i32.ge_s", None, (I32 I32 => I32), scalar;
            I32GeU, 0x4F, "i32.ge_u", None, (I32 I32 => I32), scalar;
            I64Eqz, 0x50, "i64.eqz", None, (I64 => I32), scalar;
            I64Eq, 0x51, "i64.eq", None, (I64 I64 => I32), scalar;
            I64Ne, 0x52, "i64.ne", None, (I64 I64 => I32), scalar;
            I64LtS, 0x53, "i64.lt_s", None, (I64 I64 => I32), scalar;
            I64LtU, 0x54, "i64.lt_u", None, (I64 I64 => I32), scalar;
            I64GtS, 0x55, "i64.gt_s", None, (I64 I64 => I32), scalar;
            I64GtU, 0x56, "i64.gt_u", None, (I64 I64 => I32), scalar;
            I64LeS, 0x57, "i64.le_s", None, (I64 I64 => I32), scalar;
            I64LeU, 0x58, "i64.le_u", None, (I64 I64 => I32), scalar;
            I64GeS, 0x59, "i64.ge_s", None, (I64 I64 => I32), scalar;
            I64GeU, 0x5A, "i64.ge_u", None, (I64 I64 => I32), scalar;
            F32Eq, 0x5B, "f32.eq", None, (F32 F32 => I32), scalar;
            F32Ne, 0x5C, "f32.ne", None, (F32 F32 => I32), scalar;
            F32Lt, 0x5D, "f32.lt", None, (F32 F32 => I32), scalar;
            F32Gt, 0x5E, "f32.gt", None, (F32 F32 => I32), scalar;
            F32Le, 0x5F, "f32.le", None, (F32 F32 => I32), scalar;
            F32Ge, 0x60, "f32.ge", None, (F32 F32 => I32), scalar;
            F64Eq, 0x61, "f64.eq", None, (F64 F64 => I32), scalar;
            F64Ne, 0x62, "f64.ne", None, (F64 F64 => I32), scalar;
            F64Lt, 0x63, "f64.lt", None, (F64 F64 => I32), scalar;
            F64Gt, 0x64, "f64.gt", None, (F64 F64 => I32), scalar;
            F64Le, 0x65, "f64.le", None, (F64 F64 => I32), scalar;
            F64Ge, 0x66, "f64.ge", None, (F64 F64 => I32), scalar;
            // Integer arithmetic
            I32Clz, 0x67, "i32.clz", None, (I32 => I32), scalar;
            I32Ctz, 0x68, "i32.ctz", None, (I32 => I32), scalar;
            I32Popcnt, 0x69, "i32.popcnt", None, (I32 => I32), scalar;
            I32Add, 0x6A, "i32.add", None, (I32 I32 => I32), scalar;
            I32Sub, 0x6B, "i32.sub", None, (I32 I32 => I32), scalar;
            I32Mul, 0x6C, "i32.mul", None, (I32 I32 => I32), scalar;
            I32DivS, 0x6D, "i32.div_s", None, (I32 I32 => I32), scalar;
            I32DivU, 0x6E, "i32.div_u", None, (I32 I32 => I32), scalar;
            I32RemS, 0x6F, "i32.rem_s", None, (I32 I32 => I32), scalar;
            I32RemU, 0x70, "i32.rem_u", None, (I32 I32 => I32), scalar;
            I32And, 0x71, "i32.and", None, (I32 I32 => I32), scalar;
            I32Or, 0x72, "i32.or", None, (I32 I32 => I32), scalar;
            I32Xor, 0x73, "i32.xor", None, (I32 I32 => I32), scalar;
            I32Shl, 0x74, "i32.shl", None, (I32 I32 => I32), scalar;
            I32ShrS, 0x75, "i32.shr_s", None, (I32 I32 => I32), scalar;
            I32ShrU, 0x76, "i32.shr_u", None, (I32 I32 => I32), scalar;
            I32Rotl, 0x77, "i32.rotl", None, (I32 I32 => I32), scalar;
            I32Rotr, 0x78, "i32.rotr", None, (I32 I32 => I32), scalar;
            I64Clz, 0x79, "i64.clz", None, (I64 => I64), scalar;
            I64Ctz, 0x7A, "i64.ctz", None, (I64 => I64), scalar;
            I64Popcnt, 0x7B, "i64.popcnt", None, (I64 => I64), scalar;
            I64Add, 0x7C, "i64.add", None, (I64 I64 => I64), scalar;
            I64Sub, 0x7D, "i64.sub", None, (I64 I64 => I64), scalar;
            I64Mul, 0x7E, "i64.mul", None, (I64 I64 => I64), scalar;
            I64DivS, 0x7F, "i64.div_s", None, (I64 I64 => I64), scalar;
            I64DivU, 0x80, "i64.div_u", None, (I64 I64 => I64), scalar;
            I64RemS, 0x81, "i64.rem_s", None, (I64 I64 => I64), scalar;
            I64RemU, 0x82, "i64.rem_u", None, (I64 I64 => I64), scalar;
            I64And, 0x83, "i64.and", None, (I64 I64 => I64), scalar;
            I64Or, 0x84, "i64.or", None, (I64 I64 => I64), scalar;
            I64Xor, 0x85, "i64.xor", None, (I64 I64 => I64), scalar;
            I64Shl, 0x86, "i64.shl", None, (I64 I64 => I64), scalar;
            I64ShrS, 0x87, "i64.shr_s", None, (I64 I64 => I64), scalar;
            I64ShrU, 0x88, "i64.shr_u", None, (I64 I64 => I64), scalar;
            I64Rotl, 0x89, "i64.rotl", None, (I64 I64 => I64), scalar;
            I64Rotr, 0x8A, "i64.rotr", None, (I64 I64 => I64), scalar;
            // Float arithmetic
            F32Abs, 0x8B, "f32.abs", None, (F32 => F32), scalar;
            F32Neg, 0x8C, "f32.neg", None, (F32 => F32), scalar;
            F32Ceil, 0x8D, "f32.ceil", None, (F32 => F32), scalar;
            F32Floor, 0x8E, "f32.floor", None, (F32 => F32), scalar;
            F32Trunc, 0x8F, "f32.trunc", None, (F32 => F32), scalar;
            F32Nearest, 0x90, "f32.nearest", None, (F32 => F32), scalar;
            F32Sqrt, 0x91, "f32.sqrt", None, (F32 => F32), scalar;
            F32Add, 0x92, "f32.add", None, (F32 F32 => F32), scalar;
            F32Sub, 0x93, "f32.sub", None, (F32 F32 => F32), scalar;
            F32Mul, 0x94, "f32.mul", None, (F32 F32 => F32), scalar;
            F32Div, 0x95, "f32.div", None, (F32 F32 => F32), scalar;
            F32Min, 0x96, "f32.min", None, (F32 F32 => F32), scalar;
            F32Max, 0x97, "f32.max", None, (F32 F32 => F32), scalar;
            F32Copysign, 0x98, "f32.copysign", None, (F32 F32 => F32), scalar;
            F64Abs, 0x99, "f64.abs", None, (F64 => F64), scalar;
            F64Neg, 0x9A, "f64.neg", None, (F64 => F64), scalar;
            F64Ceil, 0x9B, "f64.ceil", None, (F64 => F64), scalar;
            F64Floor, 0x9C, "f64.floor", None, (F64 => F64), scalar;
            F64Trunc, 0x9D, "f64.trunc", None, (F64 => F64), scalar;
            F64Nearest, 0x9E, "f64.nearest", None, (F64 => F64), scalar;
            F64Sqrt, 0x9F, "f64.sqrt", None, (F64 => F64), scalar;
            F64Add, 0xA0, "f64.add", None, (F64 F64 => F64), scalar;
            F64Sub, 0xA1, "f64.sub", None, (F64 F64 => F64), scalar;
            F64Mul, 0xA2, "f64.mul", None, (F64 F64 => F64), scalar;
            F64Div, 0xA3, "f64.div", None, (F64 F64 => F64), scalar;
            F64Min, 0xA4, "f64.min", None, (F64 F64 => F64), scalar;
            F64Max, 0xA5, "f64.max", None, (F64 F64 => F64), scalar;
            F64Copysign, 0xA6, "f64.copysign", None, (F64 F64 => F64), scalar;
            // Conversions
            I32WrapI64, 0xA7, "i32.wrap_i64", None, (I64 => I32), scalar;
            I32TruncF32S, 0xA8, "i32.trunc_f32_s", None, (F32 => I32), scalar;
            I32TruncF32U, 0xA9, "i32.trunc_f32_u", None, (F32 => I32), scalar;
            I32TruncF64S, 0xAA, "i32.trunc_f64_s", None, (F64 => I32), scalar;
            I32TruncF64U, 0xAB, "i32.trunc_f64_u", None, (F64 => I32), scalar;
            I64ExtendI32S, 0xAC, "i64.extend_i32_s", None, (I32 => I64), scalar;
            I64ExtendI32U, 0xAD, "i64.extend_i32_u", None, (I32 => I64), scalar;
            I64TruncF32S, 0xAE, "i64.trunc_f32_s", None, (F32 => I64), scalar;
            I64TruncF32U, 0xAF, "i64.trunc_f32_u", None, (F32 => I64), scalar;
            I64TruncF64S, 0xB0, "i64.trunc_f64_s", None, (F64 => I64), scalar;
            I64TruncF64U, 0xB1, "i64.trunc_f64_u", None, (F64 => I64), scalar;
            F32ConvertI32S, 0xB2, "f32.convert_i32_s", None, (I32 => F32), scalar;
            F32ConvertI32U, 0xB3, "f32.convert_i32_u", None, (I32 => F32), scalar;
            F32ConvertI64S, 0xB4, "f32.convert_i64_s", None, (I64 => F32), scalar;
            F32ConvertI64U, 0xB5, "f32.convert_i64_u", None, (I64 => F32), scalar;
            F32DemoteF64, 0xB6, "f32.demote_f64", None, (F64 => F32), scalar;
            F64ConvertI32S, 0xB7, "f64.convert_i32_s", None, (I32 => F64), scalar;
            F64ConvertI32U, 0xB8, "f64.convert_i32_u", None, (I32 => F64), scalar;
            F64ConvertI64S, 0xB9, "f64.convert_i64_s", None, (I64 => F64), scalar;
            F64ConvertI64U, 0xBA, "f64.convert_i64_u", None, (I64 => F64), scalar;
            F64PromoteF32, 0xBB, "f64.promote_f32", None, (F32 => F64), scalar;
            I32ReinterpretF32, 0xBC, "i32.reinterpret_f32", None, (F32 => I32), scalar;
            I64ReinterpretF64, 0xBD, "i64.reinterpret_f64", None, (F64 => I64), scalar;
            F32ReinterpretI32, 0xBE, "f32.reinterpret_i32", None, (I32 => F32), scalar;
            F64ReinterpretI64, 0xBF, "f64.reinterpret_i64", None, (I64 => F64), scalar;
            I32Extend8S, 0xC0, "i32.extend8_s", None, (I32 => I32), scalar;
            I32Extend16S, 0xC1, "i32.extend16_s", None, (I32 => I32), scalar;
            I64Extend8S, 0xC2, "i64.extend8_s", None, (I64 => I64), scalar;
            I64Extend16S, 0xC3, "i64.extend16_s", None, (I64 => I64), scalar;
            I64Extend32S, 0xC4, "i64.extend32_s", None, (I64 => I64), scalar;
            // References
            RefNull, 0xD0, "ref.null", HeapType, [=> Null], scalar;
            RefIsNull, 0xD1, "ref.is_null", None, [Reference => I32], scalar;
            RefFunc, 0xD2, "ref.func", Func, [=> Function], scalar;
            RefAsNonNull, 0xD4, "ref.as_non_null", None, [Reference => NonNull], scalar;
            BrOnNull, 0xD5, "br_on_null", Label, BrOnNull, scalar;
            BrOnNonNull, 0xD6, "br_on_non_null", Label, BrOnNonNull, scalar;
            // Prefix 0xFC: saturating truncation, bulk memory and tables, wide arithmetic
            I32TruncSatF32S, 0x100, "i32.trunc_sat_f32_s", None, (F32 => I32), scalar;
            I32TruncSatF32U, 0x101, "i32.trunc_sat_f32_u", None, (F32 => I32), scalar;
            I32TruncSatF64S, 0x102, "i32.trunc_sat_f64_s", None, (F64 => I32), scalar;
            I32TruncSatF64U, 0x103, "i32.trunc_sat_f64_u", None, (F64 => I32), scalar;
            I64TruncSatF32S, 0x104, "i64.trunc_sat_f32_s", None, (F32 => I64), scalar;
            I64TruncSatF32U, 0x105, "i64.trunc_sat_f32_u", None, (F32 => I64), scalar;
            I64TruncSatF64S, 0x106, "i64.trunc_sat_f64_s", None, (F64 => I64), scalar;
            I64TruncSatF64U, 0x107, "i64.trunc_sat_f64_u", None, (F64 => I64), scalar;
            MemoryInit, 0x108, "memory.init", DataMemory, [Address I32 I32 =>], scalar;
            DataDrop, 0x109, "data.drop", Data, (=>), scalar;
            MemoryCopy, 0x10A, "memory.copy", MemoryMemory, [Address SourceAddress Length =>], scalar;
            MemoryFill, 0x10B, "memory.fill", Memory, [Address I32 Address =>], scalar;
            TableInit, 0x10C, "table.init", ElemTable, [Index I32 I32 =>], scalar;
            ElemDrop, 0x10D, "elem.drop", Elem, (=>), scalar;
            TableCopy, 0x10E, "table.copy", TableTable, [Index SourceIndex TableLength =>], scalar;
            TableGrow, 0x10F, "table.grow", Table, [Element Index => Index], scalar;
            TableSize, 0x110, "table.size", Table, [=> Index], scalar;
            TableFill, 0x111, "table.fill", Table, [Index Element Index =>], scalar;
            I64Add128, 0x113, "i64.add128", None, (I64 I64 I64 I64 => I64 I64), scalar;
            I64Sub128, 0x114, "i64.sub128", None, (I64 I64 I64 I64 => I64 I64), scalar;
            I64MulWideS, 0x115, "i64.mul_wide_s", None, (I64 I64 => I64 I64), scalar;
            I64MulWideU, 0x116, "i64.mul_wide_u", None, (I64 I64 => I64 I64), scalar;
            // Prefix 0xFD: vectors, the relaxed ones from 0x300 on
            V128Load, 0x200, "v128.load", MemArg, [Address => V128], access;
            V128Load8x8S, 0x201, "v128.load8x8_s", MemArg, [Address => V128], access;
            V128Load8x8U, 0x202, "v128.load8x8_u", MemArg, [Address => V128], access;
            V128Load16x4S, 0x203, "v128.load16x4_s", MemArg, [Address => V128], access;
            V128Load16x4U, 0x204, "v128.load16x4_u", MemArg, [Address => V128], access;
            V128Load32x2S, 0x205, "v128.load32x2_s", MemArg, [Address => V128], access;
            V128Load32x2U, 0x206, "v128.load32x2_u", MemArg, [Address => V128], access;
            V128Load8Splat, 0x207, "v128.load8_splat", MemArg, [Address => V128], access;
            V128Load16Splat, 0x208, "v128.load16_splat", MemArg, [Address => V128], access;
            V128Load32Splat, 0x209, "v128.load32_splat", MemArg, [Address => V128], access;
            V128Load64Splat, 0x20A, "v128.load64_splat", MemArg, [Address => V128], access;
            V128Store, 0x20B, "v128.store", MemArg, [Address V128 =>], access;
            V128Const, 0x20C, "v128.const", V128, (=> V128), lanes(V128 -> V128, Whole::Const);
            I8x16Shuffle, 0x20D, "i8x16.shuffle", Shuffle, (V128 V128 => V128), lanes(I8x16 -> I8x16, Permute::Shuffle);
            I8x16Swizzle, 0x20E, "i8x16.swizzle", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Permute::Swizzle);
            I8x16Splat, 0x20F, "i8x16.splat", None, (I32 => V128), lanes(I8x16 -> I8x16, Lane::Splat);
            I16x8Splat, 0x210, "i16x8.splat", None, (I32 => V128), lanes(I16x8 -> I16x8, Lane::Splat);
            I32x4Splat, 0x211, "i32x4.splat", None, (I32 => V128), lanes(I32x4 -> I32x4, Lane::Splat);
            I64x2Splat, 0x212, "i64x2.splat", None, (I64 => V128), lanes(I64x2 -> I64x2, Lane::Splat);
            F32x4Splat, 0x213, "f32x4.splat", None, (F32 => V128), lanes(F32x4 -> F32x4, Lane::Splat);
            F64x2Splat, 0x214, "f64x2.splat", None, (F64 => V128), lanes(F64x2 -> F64x2, Lane::Splat);
            I8x16ExtractLaneS, 0x215, "i8x16.extract_lane_s", Lane, (V128 => I32), lanes(I8x16 -> I8x16, Lane::ExtractLaneS);
            I8x16ExtractLaneU, 0x216, "i8x16.extract_lane_u", Lane, (V128 => I32), lanes(I8x16 -> I8x16, Lane::ExtractLaneU);
            I8x16ReplaceLane, 0x217, "i8x16.replace_lane", Lane, (V128 I32 => V128), lanes(I8x16 -> I8x16, Lane::ReplaceLane);
            I16x8ExtractLaneS, 0x218, "i16x8.extract_lane_s", Lane, (V128 => I32), lanes(I16x8 -> I16x8, Lane::ExtractLaneS);
            I16x8ExtractLaneU, 0x219, "i16x8.extract_lane_u", Lane, (V128 => I32), lanes(I16x8 -> I16x8, Lane::ExtractLaneU);
            I16x8ReplaceLane, 0x21A, "i16x8.replace_lane", Lane, (V128 I32 => V128), lanes(I16x8 -> I16x8, Lane::ReplaceLane);
            I32x4ExtractLane, 0x21B, "i32x4.extract_lane", Lane, (V128 => I32), lanes(I32x4 -> I32x4, Lane::ExtractLane);
            I32x4ReplaceLane, 0x21C, "i32x4.replace_lane", Lane, (V128 I32 => V128), lanes(I32x4 -> I32x4, Lane::ReplaceLane);
            I64x2ExtractLane, 0x21D, "i64x2.extract_lane", Lane, (V128 => I64), lanes(I64x2 -> I64x2, Lane::ExtractLane);
            I64x2ReplaceLane, 0x21E, "i64x2.replace_lane", Lane, (V128 I64 => V128), lanes(I64x2 -> I64x2, Lane::ReplaceLane);
            F32x4ExtractLane, 0x21F, "f32x4.extract_lane", Lane, (V128 => F32), lanes(F32x4 -> F32x4, Lane::ExtractLane);
            F32x4ReplaceLane, 0x220, "f32x4.replace_lane", Lane, (V128 F32 => V128), lanes(F32x4 -> F32x4, Lane::ReplaceLane);
            F64x2ExtractLane, 0x221, "f64x2.extract_lane", Lane, (V128 => F64), lanes(F64x2 -> F64x2, Lane::ExtractLane);
            F64x2ReplaceLane, 0x222, "f64x2.replace_lane", Lane, (V128 F64 => V128), lanes(F64x2 -> F64x2, Lane::ReplaceLane);
            I8x16Eq, 0x223, "i8x16.eq", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Compare::Eq);
            I8x16Ne, 0x224, "i8x16.ne", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Compare::Ne);
            I8x16LtS, 0x225, "i8x16.lt_s", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Compare::LtS);
            I8x16LtU, 0x226, "i8x16.lt_u", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Compare::LtU);
            I8x16GtS, 0x227, "i8x16.gt_s", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Compare::GtS);
            I8x16GtU, 0x228, "i8x16.gt_u", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Compare::GtU);
            I8x16LeS, 0x229, "i8x16.le_s", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Compare::LeS);
            I8x16LeU, 0x22A, "i8x16.le_u", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Compare::LeU);
            I8x16GeS, 0x22B, "i8x16.ge_s", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Compare::GeS);
            I8x16GeU, 0x22C, "i8x16.ge_u", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Compare::GeU);
            I16x8Eq, 0x22D, "i16x8.eq", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Compare::Eq);
            I16x8Ne, 0x22E, "i16x8.ne", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Compare::Ne);
            I16x8LtS, 0x22F, "i16x8.lt_s", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Compare::LtS);
            I16x8LtU, 0x230, "i16x8.lt_u", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Compare::LtU);
            I16x8GtS, 0x231, "i16x8.gt_s", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Compare::GtS);
            I16x8GtU, 0x232, "i16x8.gt_u", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Compare::GtU);
            I16x8LeS, 0x233, "i16x8.le_s", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Compare::LeS);
            I16x8LeU, 0x234, "i16x8.le_u", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Compare::LeU);
            I16x8GeS, 0x235, "i16x8.ge_s", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Compare::GeS);
            I16x8GeU, 0x236, "i16x8.ge_u", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Compare::GeU);
            I32x4Eq, 0x237, "i32x4.eq", None, (V128 V128 => V128), lanes(I32x4 -> I32x4, Compare::Eq);
            I32x4Ne, 0x238, "i32x4.ne", None, (V128 V128 => V128), lanes(I32x4 -> I32x4, Compare::Ne);
            I32x4LtS, 0x239, "i32x4.lt_s", None, (V128 V128 => V128), lanes(I32x4 -> I32x4, Compare::LtS);
            I32x4LtU, 0x23A, "i32x4.lt_u", None, (V128 V128 => V128), lanes(I32x4 -> I32x4, Compare::LtU);
            I32x4GtS, 0x23B, "i32x4.gt_s", None, (V128 V128 => V128), lanes(I32x4 -> I32x4, Compare::GtS);
            I32x4GtU, 0x23C, "i32x4.gt_u", None, (V128 V128 => V128), lanes(I32x4 -> I32x4, Compare::GtU);
            I32x4LeS, 0x23D, "i32x4.le_s", None, (V128 V128 => V128), lanes(I32x4 -> I32x4, Compare::LeS);
            I32x4LeU, 0x23E, "i32x4.le_u", None, (V128 V128 => V128), lanes(I32x4 -> I32x4, Compare::LeU);
            I32x4GeS, 0x23F, "i32x4.ge_s", None, (V128 V128 => V128), lanes(I32x4 -> I32x4, Compare::GeS);
            I32x4GeU, 0x240, "i32x4.ge_u", None, (V128 V128 => V128), lanes(I32x4 -> I32x4, Compare::GeU);
            F32x4Eq, 0x241, "f32x4.eq", None, (V128 V128 => V128), lanes(F32x4 -> F32x4, FloatCompare::Eq);
            F32x4Ne, 0x242, "f32x4.ne", None, (V128 V128 => V128), lanes(F32x4 -> F32x4, FloatCompare::Ne);
            F32x4Lt, 0x243, "f32x4.lt", None, (V128 V128 => V128), lanes(F32x4 -> F32x4, FloatCompare::Lt);
            F32x4Gt, 0x244, "f32x4.gt", None, (V128 V128 => V128), lanes(F32x4 -> F32x4, FloatCompare::Gt);
            F32x4Le, 0x245, "f32x4.le", None, (V128 V128 => V128), lanes(F32x4 -> F32x4, FloatCompare::Le);
            F32x4Ge, 0x246, "f32x4.ge", None, (V128 V128 => V128), lanes(F32x4 -> F32x4, FloatCompare::Ge);
            F64x2Eq, 0x247, "f64x2.eq", None, (V128 V128 => V128), lanes(F64x2 -> F64x2, FloatCompare::Eq);
            F64x2Ne, 0x248, "f64x2.ne", None, (V128 V128 => V128), lanes(F64x2 -> F64x2, FloatCompare::Ne);
            F64x2Lt, 0x249, "f64x2.lt", None, (V128 V128 => V128), lanes(F64x2 -> F64x2, FloatCompare::Lt);
            F64x2Gt, 0x24A, "f64x2.gt", None, (V128 V128 => V128), lanes(F64x2 -> F64x2, FloatCompare::Gt);
            F64x2Le, 0x24B, "f64x2.le", None, (V128 V128 => V128), lanes(F64x2 -> F64x2, FloatCompare::Le);
            F64x2Ge, 0x24C, "f64x2.ge", None, (V128 V128 => V128), lanes(F64x2 -> F64x2, FloatCompare::Ge);
            V128Not, 0x24D, "v128.not", None, (V128 => V128), lanes(V128 -> V128, Whole::Not);
            V128And, 0x24E, "v128.and", None, (V128 V128 => V128), lanes(V128 -> V128, Whole::And);
            V128Andnot, 0x24F, "v128.andnot", None, (V128 V128 => V128), lanes(V128 -> V128, Whole::Andnot);
            V128Or, 0x250, "v128.or", None, (V128 V128 => V128), lanes(V128 -> V128, Whole::Or);
            V128Xor, 0x251, "v128.xor", None, (V128 V128 => V128), lanes(V128 -> V128, Whole::Xor);
            V128Bitselect, 0x252, "v128.bitselect", None, (V128 V128 V128 => V128), lanes(V128 -> V128, Whole::Bitselect);
            V128AnyTrue, 0x253, "v128.any_true", None, (V128 => I32), lanes(V128 -> V128, Whole::AnyTrue);
            V128Load8Lane, 0x254, "v128.load8_lane", MemArgLane, [Address V128 => V128], access;
            V128Load16Lane, 0x255, "v128.load16_lane", MemArgLane, [Address V128 => V128], access;
            V128Load32Lane, 0x256, "v128.load32_lane", MemArgLane, [Address V128 => V128], access;
            V128Load64Lane, 0x257, "v128.load64_lane", MemArgLane, [Address V128 => V128], access;
            V128Store8Lane, 0x258, "v128.store8_lane", MemArgLane, [Address V128 =>], access;
            V128Store16Lane, 0x259, "v128.store16_lane", MemArgLane, [Address V128 =>], access;
            V128Store32Lane, 0x25A, "v128.store32_lane", MemArgLane, [Address V128 =>], access;
            V128Store64Lane, 0x25B, "v128.store64_lane", MemArgLane, [Address V128 =>], access;
            V128Load32Zero, 0x25C, "v128.load32_zero", MemArg, [Address => V128], access;
            V128Load64Zero, 0x25D, "v128.load64_zero", MemArg, [Address => V128], access;
            F32x4DemoteF64x2Zero, 0x25E, "f32x4.demote_f64x2_zero", None, (V128 => V128), lanes(F64x2 -> F32x4, Convert::DemoteZero);
            F64x2PromoteLowF32x4, 0x25F, "f64x2.promote_low_f32x4", None, (V128 => V128), lanes(F32x4 -> F64x2, Convert::PromoteLow);
            I8x16Abs, 0x260, "i8x16.abs", None, (V128 => V128), lanes(I8x16 -> I8x16, IntegerUnary::Abs);
            I8x16Neg, 0x261, "i8x16.neg", None, (V128 => V128), lanes(I8x16 -> I8x16, IntegerUnary::Neg);
            I8x16Popcnt, 0x262, "i8x16.popcnt", None, (V128 => V128), lanes(I8x16 -> I8x16, IntegerUnary::Popcnt);
            I8x16AllTrue, 0x263, "i8x16.all_true", None, (V128 => I32), lanes(I8x16 -> I8x16, Test::AllTrue);
            I8x16Bitmask, 0x264, "i8x16.bitmask", None, (V128 => I32), lanes(I8x16 -> I8x16, Test::Bitmask);
            I8x16NarrowI16x8S, 0x265, "i8x16.narrow_i16x8_s", None, (V128 V128 => V128), lanes(I16x8 -> I8x16, Integer::NarrowS);
            I8x16NarrowI16x8U, 0x266, "i8x16.narrow_i16x8_u", None, (V128 V128 => V128), lanes(I16x8 -> I8x16, Integer::NarrowU);
            F32x4Ceil, 0x267, "f32x4.ceil", None, (V128 => V128), lanes(F32x4 -> F32x4, FloatUnary::Ceil);
            F32x4Floor, 0x268, "f32x4.floor", None, (V128 => V128), lanes(F32x4 -> F32x4, FloatUnary::Floor);
            F32x4Trunc, 0x269, "f32x4.trunc", None, (V128 => V128), lanes(F32x4 -> F32x4, FloatUnary::Trunc);
            F32x4Nearest, 0x26A, "f32x4.nearest", None, (V128 => V128), lanes(F32x4 -> F32x4, FloatUnary::Nearest);
            I8x16Shl, 0x26B, "i8x16.shl", None, (V128 I32 => V128), lanes(I8x16 -> I8x16, Shift::Shl);
            I8x16ShrS, 0x26C, "i8x16.shr_s", None, (V128 I32 => V128), lanes(I8x16 -> I8x16, Shift::ShrS);
            I8x16ShrU, 0x26D, "i8x16.shr_u", None, (V128 I32 => V128), lanes(I8x16 -> I8x16, Shift::ShrU);
            I8x16Add, 0x26E, "i8x16.add", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Integer::Add);
            I8x16AddSatS, 0x26F, "i8x16.add_sat_s", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Integer::AddSatS);
            I8x16AddSatU, 0x270, "i8x16.add_sat_u", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Integer::AddSatU);
            I8x16Sub, 0x271, "i8x16.sub", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Integer::Sub);
            I8x16SubSatS, 0x272, "i8x16.sub_sat_s", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Integer::SubSatS);
            I8x16SubSatU, 0x273, "i8x16.sub_sat_u", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Integer::SubSatU);
            F64x2Ceil, 0x274, "f64x2.ceil", None, (V128 => V128), lanes(F64x2 -> F64x2, FloatUnary::Ceil);
            F64x2Floor, 0x275, "f64x2.floor", None, (V128 => V128), lanes(F64x2 -> F64x2, FloatUnary::Floor);
            I8x16MinS, 0x276, "i8x16.min_s", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Integer::MinS);
            I8x16MinU, 0x277, "i8x16.min_u", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Integer::MinU);
            I8x16MaxS, 0x278, "i8x16.max_s", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Integer::MaxS);
            I8x16MaxU, 0x279, "i8x16.max_u", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Integer::MaxU);
            F64x2Trunc, 0x27A, "f64x2.trunc", None, (V128 => V128), lanes(F64x2 -> F64x2, FloatUnary::Trunc);
            I8x16AvgrU, 0x27B, "i8x16.avgr_u", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Integer::AvgrU);
            I16x8ExtaddPairwiseI8x16S, 0x27C, "i16x8.extadd_pairwise_i8x16_s", None, (V128 => V128), lanes(I8x16 -> I16x8, Widen::ExtaddPairwiseS);
            I16x8ExtaddPairwiseI8x16U, 0x27D, "i16x8.extadd_pairwise_i8x16_u", None, (V128 => V128), lanes(I8x16 -> I16x8, Widen::ExtaddPairwiseU);
            I32x4ExtaddPairwiseI16x8S, 0x27E, "i32x4.extadd_pairwise_i16x8_s", None, (V128 => V128), lanes(I16x8 -> I32x4, Widen::ExtaddPairwiseS);
            I32x4ExtaddPairwiseI16x8U, 0x27F, "i32x4.extadd_pairwise_i16x8_u", None, (V128 => V128), lanes(I16x8 -> I32x4, Widen::ExtaddPairwiseU);
            I16x8Abs, 0x280, "i16x8.abs", None, (V128 => V128), lanes(I16x8 -> I16x8, IntegerUnary::Abs);
            I16x8Neg, 0x281, "i16x8.neg", None, (V128 => V128), lanes(I16x8 -> I16x8, IntegerUnary::Neg);
            I16x8Q15mulrSatS, 0x282, "i16x8.q15mulr_sat_s", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Integer::Q15mulrSatS);
            I16x8AllTrue, 0x283, "i16x8.all_true", None, (V128 => I32), lanes(I16x8 -> I16x8, Test::AllTrue);
            I16x8Bitmask, 0x284, "i16x8.bitmask", None, (V128 => I32), lanes(I16x8 -> I16x8, Test::Bitmask);
            I16x8NarrowI32x4S, 0x285, "i16x8.narrow_i32x4_s", None, (V128 V128 => V128), lanes(I32x4 -> I16x8, Integer::NarrowS);
            I16x8NarrowI32x4U, 0x286, "i16x8.narrow_i32x4_u", None, (V128 V128 => V128), lanes(I32x4 -> I16x8, Integer::NarrowU);
            I16x8ExtendLowI8x16S, 0x287, "i16x8.extend_low_i8x16_s", None, (V128 => V128), lanes(I8x16 -> I16x8, Widen::ExtendLowS);
            I16x8ExtendHighI8x16S, 0x288, "i16x8.extend_high_i8x16_s", None, (V128 => V128), lanes(I8x16 -> I16x8, Widen::ExtendHighS);
            I16x8ExtendLowI8x16U, 0x289, "i16x8.extend_low_i8x16_u", None, (V128 => V128), lanes(I8x16 -> I16x8, Widen::ExtendLowU);
            I16x8ExtendHighI8x16U, 0x28A, "i16x8.extend_high_i8x16_u", None, (V128 => V128), lanes(I8x16 -> I16x8, Widen::ExtendHighU);
            I16x8Shl, 0x28B, "i16x8.shl", None, (V128 I32 => V128), lanes(I16x8 -> I16x8, Shift::Shl);
            I16x8ShrS, 0x28C, "i16x8.shr_s", None, (V128 I32 => V128), lanes(I16x8 -> I16x8, Shift::ShrS);
            I16x8ShrU, 0x28D, "i16x8.shr_u", None, (V128 I32 => V128), lanes(I16x8 -> I16x8, Shift::ShrU);
            I16x8Add, 0x28E, "i16x8.add", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Integer::Add);
            I16x8AddSatS, 0x28F, "i16x8.add_sat_s", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Integer::AddSatS);
            I16x8AddSatU, 0x290, "i16x8.add_sat_u", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Integer::AddSatU);
            I16x8Sub, 0x291, "i16x8.sub", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Integer::Sub);
            I16x8SubSatS, 0x292, "i16x8.sub_sat_s", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Integer::SubSatS);
            I16x8SubSatU, 0x293, "i16x8.sub_sat_u", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Integer::SubSatU);
            F64x2Nearest, 0x294, "f64x2.nearest", None, (V128 => V128), lanes(F64x2 -> F64x2, FloatUnary::Nearest);
            I16x8Mul, 0x295, "i16x8.mul", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Integer::Mul);
            I16x8MinS, 0x296, "i16x8.min_s", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Integer::MinS);
            I16x8MinU, 0x297, "i16x8.min_u", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Integer::MinU);
            I16x8MaxS, 0x298, "i16x8.max_s", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Integer::MaxS);
            I16x8MaxU, 0x299, "i16x8.max_u", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Integer::MaxU);
            I16x8AvgrU, 0x29B, "i16x8.avgr_u", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Integer::AvgrU);
            I16x8ExtmulLowI8x16S, 0x29C, "i16x8.extmul_low_i8x16_s", None, (V128 V128 => V128), lanes(I8x16 -> I16x8, Product::ExtmulLowS);
            I16x8ExtmulHighI8x16S, 0x29D, "i16x8.extmul_high_i8x16_s", None, (V128 V128 => V128), lanes(I8x16 -> I16x8, Product::ExtmulHighS);
            I16x8ExtmulLowI8x16U, 0x29E, "i16x8.extmul_low_i8x16_u", None, (V128 V128 => V128), lanes(I8x16 -> I16x8, Product::ExtmulLowU);
            I16x8ExtmulHighI8x16U, 0x29F, "i16x8.extmul_high_i8x16_u", None, (V128 V128 => V128), lanes(I8x16 -> I16x8, Product::ExtmulHighU);
            I32x4Abs, 0x2A0, "i32x4.abs", None, (V128 => V128), lanes(I32x4 -> I32x4, IntegerUnary::Abs);
            I32x4Neg, 0x2A1, "i32x4.neg", None, (V128 => V128), lanes(I32x4 -> I32x4, IntegerUnary::Neg);
            I32x4AllTrue, 0x2A3, "i32x4.all_true", None, (V128 => I32), lanes(I32x4 -> I32x4, Test::AllTrue);
            I32x4Bitmask, 0x2A4, "i32x4.bitmask", None, (V128 => I32), lanes(I32x4 -> I32x4, Test::Bitmask);
            I32x4ExtendLowI16x8S, 0x2A7, "i32x4.extend_low_i16x8_s", None, (V128 => V128), lanes(I16x8 -> I32x4, Widen::ExtendLowS);
            I32x4ExtendHighI16x8S, 0x2A8, "i32x4.extend_high_i16x8_s", None, (V128 => V128), lanes(I16x8 -> I32x4, Widen::ExtendHighS);
            I32x4ExtendLowI16x8U, 0x2A9, "i32x4.extend_low_i16x8_u", None, (V128 => V128), lanes(I16x8 -> I32x4, Widen::ExtendLowU);
            I32x4ExtendHighI16x8U, 0x2AA, "i32x4.extend_high_i16x8_u", None, (V128 => V128), lanes(I16x8 -> I32x4, Widen::ExtendHighU);
            I32x4Shl, 0x2AB, "i32x4.shl", None, (V128 I32 => V128), lanes(I32x4 -> I32x4, Shift::Shl);
            I32x4ShrS, 0x2AC, "i32x4.shr_s", None, (V128 I32 => V128), lanes(I32x4 -> I32x4, Shift::ShrS);
            I32x4ShrU, 0x2AD, "i32x4.shr_u", None, (V128 I32 => V128), lanes(I32x4 -> I32x4, Shift::ShrU);
            I32x4Add, 0x2AE, "i32x4.add", None, (V128 V128 => V128), lanes(I32x4 -> I32x4, Integer::Add);
            I32x4Sub, 0x2B1, "i32x4.sub", None, (V128 V128 => V128), lanes(I32x4 -> I32x4, Integer::Sub);
            I32x4Mul, 0x2B5, "i32x4.mul", None, (V128 V128 => V128), lanes(I32x4 -> I32x4, Integer::Mul);
            I32x4MinS, 0x2B6, "i32x4.min_s", None, (V128 V128 => V128), lanes(I32x4 -> I32x4, Integer::MinS);
            I32x4MinU, 0x2B7, "i32x4.min_u", None, (V128 V128 => V128), lanes(I32x4 -> I32x4, Integer::MinU);
            I32x4MaxS, 0x2B8, "i32x4.max_s", None, (V128 V128 => V128), lanes(I32x4 -> I32x4, Integer::MaxS);
            I32x4MaxU, 0x2B9, "i32x4.max_u", None, (V128 V128 => V128), lanes(I32x4 -> I32x4, Integer::MaxU);
            I32x4DotI16x8S, 0x2BA, "i32x4.dot_i16x8_s", None, (V128 V128 => V128), lanes(I16x8 -> I32x4, Integer::DotS);
            I32x4ExtmulLowI16x8S, 0x2BC, "i32x4.extmul_low_i16x8_s", None, (V128 V128 => V128), lanes(I16x8 -> I32x4, Product::ExtmulLowS);
            I32x4ExtmulHighI16x8S, 0x2BD, "i32x4.extmul_high_i16x8_s", None, (V128 V128 => V128), lanes(I16x8 -> I32x4, Product::ExtmulHighS);
            I32x4ExtmulLowI16x8U, 0x2BE, "i32x4.extmul_low_i16x8_u", None, (V128 V128 => V128), lanes(I16x8 -> I32x4, Product::ExtmulLowU);
            I32x4ExtmulHighI16x8U, 0x2BF, "i32x4.extmul_high_i16x8_u", None, (V128 V128 => V128), lanes(I16x8 -> I32x4, Product::ExtmulHighU);
            I64x2Abs, 0x2C0, "i64x2.abs", None, (V128 => V128), lanes(I64x2 -> I64x2, IntegerUnary::Abs);
            I64x2Neg, 0x2C1, "i64x2.neg", None, (V128 => V128), lanes(I64x2 -> I64x2, IntegerUnary::Neg);
            I64x2AllTrue, 0x2C3, "i64x2.all_true", None, (V128 => I32), lanes(I64x2 -> I64x2, Test::AllTrue);
            I64x2Bitmask, 0x2C4, "i64x2.bitmask", None, (V128 => I32), lanes(I64x2 -> I64x2, Test::Bitmask);
            I64x2ExtendLowI32x4S, 0x2C7, "i64x2.extend_low_i32x4_s", None, (V128 => V128), lanes(I32x4 -> I64x2, Widen::ExtendLowS);
            I64x2ExtendHighI32x4S, 0x2C8, "i64x2.extend_high_i32x4_s", None, (V128 => V128), lanes(I32x4 -> I64x2, Widen::ExtendHighS);
            I64x2ExtendLowI32x4U, 0x2C9, "i64x2.extend_low_i32x4_u", None, (V128 => V128), lanes(I32x4 -> I64x2, Widen::ExtendLowU);
            I64x2ExtendHighI32x4U, 0x2CA, "i64x2.extend_high_i32x4_u", None, (V128 => V128), lanes(I32x4 -> I64x2, Widen::ExtendHighU);
            I64x2Shl, 0x2CB, "i64x2.shl", None, (V128 I32 => V128), lanes(I64x2 -> I64x2, Shift::Shl);
            I64x2ShrS, 0x2CC, "i64x2.shr_s", None, (V128 I32 => V128), lanes(I64x2 -> I64x2, Shift::ShrS);
            I64x2ShrU, 0x2CD, "i64x2.shr_u", None, (V128 I32 => V128), lanes(I64x2 -> I64x2, Shift::ShrU);
            I64x2Add, 0x2CE, "i64x2.add", None, (V128 V128 => V128), lanes(I64x2 -> I64x2, Integer::Add);
            I64x2Sub, 0x2D1, "i64x2.sub", None, (V128 V128 => V128), lanes(I64x2 -> I64x2, Integer::Sub);
            I64x2Mul, 0x2D5, "i64x2.mul", None, (V128 V128 => V128), lanes(I64x2 -> I64x2, Integer::Mul);
            I64x2Eq, 0x2D6, "i64x2.eq", None, (V128 V128 => V128), lanes(I64x2 -> I64x2, Compare::Eq);
            I64x2Ne, 0x2D7, "i64x2.ne", None, (V128 V128 => V128), lanes(I64x2 -> I64x2, Compare::Ne);
            I64x2LtS, 0x2D8, "i64x2.lt_s", None, (V128 V128 => V128), lanes(I64x2 -> I64x2, Compare::LtS);
            I64x2GtS, 0x2D9, "i64x2.gt_s", None, (V128 V128 => V128), lanes(I64x2 -> I64x2, Compare::GtS);
            I64x2LeS, 0x2DA, "i64x2.le_s", None, (V128 V128 => V128), lanes(I64x2 -> I64x2, Compare::LeS);
            I64x2GeS, 0x2DB, "i64x2.ge_s", None, (V128 V128 => V128), lanes(I64x2 -> I64x2, Compare::GeS);
            I64x2ExtmulLowI32x4S, 0x2DC, "i64x2.extmul_low_i32x4_s", None, (V128 V128 => V128), lanes(I32x4 -> I64x2, Product::ExtmulLowS);
            I64x2ExtmulHighI32x4S, 0x2DD, "i64x2.extmul_high_i32x4_s", None, (V128 V128 => V128), lanes(I32x4 -> I64x2, Product::ExtmulHighS);
            I64x2ExtmulLowI32x4U, 0x2DE, "i64x2.extmul_low_i32x4_u", None, (V128 V128 => V128), lanes(I32x4 -> I64x2, Product::ExtmulLowU);
            I64x2ExtmulHighI32x4U, 0x2DF, "i64x2.extmul_high_i32x4_u", None, (V128 V128 => V128), lanes(I32x4 -> I64x2, Product::ExtmulHighU);
            F32x4Abs, 0x2E0, "f32x4.abs", None, (V128 => V128), lanes(F32x4 -> F32x4, FloatUnary::Abs);
            F32x4Neg, 0x2E1, "f32x4.neg", None, (V128 => V128), lanes(F32x4 -> F32x4, FloatUnary::Neg);
            F32x4Sqrt, 0x2E3, "f32x4.sqrt", None, (V128 => V128), lanes(F32x4 -> F32x4, FloatUnary::Sqrt);
            F32x4Add, 0x2E4, "f32x4.add", None, (V128 V128 => V128), lanes(F32x4 -> F32x4, Float::Add);
            F32x4Sub, 0x2E5, "f32x4.sub", None, (V128 V128 => V128), lanes(F32x4 -> F32x4, Float::Sub);
            F32x4Mul, 0x2E6, "f32x4.mul", None, (V128 V128 => V128), lanes(F32x4 -> F32x4, Float::Mul);
            F32x4Div, 0x2E7, "f32x4.div", None, (V128 V128 => V128), lanes(F32x4 -> F32x4, Float::Div);
            F32x4Min, 0x2E8, "f32x4.min", None, (V128 V128 => V128), lanes(F32x4 -> F32x4, Float::Min);
            F32x4Max, 0x2E9, "f32x4.max", None, (V128 V128 => V128), lanes(F32x4 -> F32x4, Float::Max);
            F32x4Pmin, 0x2EA, "f32x4.pmin", None, (V128 V128 => V128), lanes(F32x4 -> F32x4, Float::Pmin);
            F32x4Pmax, 0x2EB, "f32x4.pmax", None, (V128 V128 => V128), lanes(F32x4 -> F32x4, Float::Pmax);
            F64x2Abs, 0x2EC, "f64x2.abs", None, (V128 => V128), lanes(F64x2 -> F64x2, FloatUnary::Abs);
            F64x2Neg, 0x2ED, "f64x2.neg", None, (V128 => V128), lanes(F64x2 -> F64x2, FloatUnary::Neg);
            F64x2Sqrt, 0x2EF, "f64x2.sqrt", None, (V128 => V128), lanes(F64x2 -> F64x2, FloatUnary::Sqrt);
            F64x2Add, 0x2F0, "f64x2.add", None, (V128 V128 => V128), lanes(F64x2 -> F64x2, Float::Add);
            F64x2Sub, 0x2F1, "f64x2.sub", None, (V128 V128 => V128), lanes(F64x2 -> F64x2, Float::Sub);
            F64x2Mul, 0x2F2, "f64x2.mul", None, (V128 V128 => V128), lanes(F64x2 -> F64x2, Float::Mul);
            F64x2Div, 0x2F3, "f64x2.div", None, (V128 V128 => V128), lanes(F64x2 -> F64x2, Float::Div);
            F64x2Min, 0x2F4, "f64x2.min", None, (V128 V128 => V128), lanes(F64x2 -> F64x2, Float::Min);
            F64x2Max, 0x2F5, "f64x2.max", None, (V128 V128 => V128), lanes(F64x2 -> F64x2, Float::Max);
            F64x2Pmin, 0x2F6, "f64x2.pmin", None, (V128 V128 => V128), lanes(F64x2 -> F64x2, Float::Pmin);
            F64x2Pmax, 0x2F7, "f64x2.pmax", None, (V128 V128 => V128), lanes(F64x2 -> F64x2, Float::Pmax);
            I32x4TruncSatF32x4S, 0x2F8, "i32x4.trunc_sat_f32x4_s", None, (V128 => V128), lanes(F32x4 -> I32x4, Convert::TruncSatS);
            I32x4TruncSatF32x4U, 0x2F9, "i32x4.trunc_sat_f32x4_u", None, (V128 => V128), lanes(F32x4 -> I32x4, Convert::TruncSatU);
            F32x4ConvertI32x4S, 0x2FA, "f32x4.convert_i32x4_s", None, (V128 => V128), lanes(I32x4 -> F32x4, Convert::ConvertS);
            F32x4ConvertI32x4U, 0x2FB, "f32x4.convert_i32x4_u", None, (V128 => V128), lanes(I32x4 -> F32x4, Convert::ConvertU);
            I32x4TruncSatF64x2SZero, 0x2FC, "i32x4.trunc_sat_f64x2_s_zero", None, (V128 => V128), lanes(F64x2 -> I32x4, Convert::TruncSatSZero);
            I32x4TruncSatF64x2UZero, 0x2FD, "i32x4.trunc_sat_f64x2_u_zero", None, (V128 => V128), lanes(F64x2 -> I32x4, Convert::TruncSatUZero);
            F64x2ConvertLowI32x4S, 0x2FE, "f64x2.convert_low_i32x4_s", None, (V128 => V128), lanes(I32x4 -> F64x2, Convert::ConvertLowS);
            F64x2ConvertLowI32x4U, 0x2FF, "f64x2.convert_low_i32x4_u", None, (V128 => V128), lanes(I32x4 -> F64x2, Convert::ConvertLowU);
            I8x16RelaxedSwizzle, 0x300, "i8x16.relaxed_swizzle", None, (V128 V128 => V128), lanes(I8x16 -> I8x16, Permute::RelaxedSwizzle);
            I32x4RelaxedTruncF32x4S, 0x301, "i32x4.relaxed_trunc_f32x4_s", None, (V128 => V128), lanes(F32x4 -> I32x4, Convert::RelaxedTruncS);
            I32x4RelaxedTruncF32x4U, 0x302, "i32x4.relaxed_trunc_f32x4_u", None, (V128 => V128), lanes(F32x4 -> I32x4, Convert::RelaxedTruncU);
            I32x4RelaxedTruncF64x2SZero, 0x303, "i32x4.relaxed_trunc_f64x2_s_zero", None, (V128 => V128), lanes(F64x2 -> I32x4, Convert::RelaxedTruncSZero);
            I32x4RelaxedTruncF64x2UZero, 0x304, "i32x4.relaxed_trunc_f64x2_u_zero", None, (V128 => V128), lanes(F64x2 -> I32x4, Convert::RelaxedTruncUZero);
            F32x4RelaxedMadd, 0x305, "f32x4.relaxed_madd", None, (V128 V128 V128 => V128), lanes(F32x4 -> F32x4, Ternary::RelaxedMadd);
            F32x4RelaxedNmadd, 0x306, "f32x4.relaxed_nmadd", None, (V128 V128 V128 => V128), lanes(F32x4 -> F32x4, Ternary::RelaxedNmadd);
            F64x2RelaxedMadd, 0x307, "f64x2.relaxed_madd", None, (V128 V128 V128 => V128), lanes(F64x2 -> F64x2, Ternary::RelaxedMadd);
            F64x2RelaxedNmadd, 0x308, "f64x2.relaxed_nmadd", None, (V128 V128 V128 => V128), lanes(F64x2 -> F64x2, Ternary::RelaxedNmadd);
            I8x16RelaxedLaneselect, 0x309, "i8x16.relaxed_laneselect", None, (V128 V128 V128 => V128), lanes(I8x16 -> I8x16, Ternary::RelaxedLaneselect);
            I16x8RelaxedLaneselect, 0x30A, "i16x8.relaxed_laneselect", None, (V128 V128 V128 => V128), lanes(I16x8 -> I16x8, Ternary::RelaxedLaneselect);
            I32x4RelaxedLaneselect, 0x30B, "i32x4.relaxed_laneselect", None, (V128 V128 V128 => V128), lanes(I32x4 -> I32x4, Ternary::RelaxedLaneselect);
            I64x2RelaxedLaneselect, 0x30C, "i64x2.relaxed_laneselect", None, (V128 V128 V128 => V128), lanes(I64x2 -> I64x2, Ternary::RelaxedLaneselect);
            F32x4RelaxedMin, 0x30D, "f32x4.relaxed_min", None, (V128 V128 => V128), lanes(F32x4 -> F32x4, Float::RelaxedMin);
            F32x4RelaxedMax, 0x30E, "f32x4.relaxed_max", None, (V128 V128 => V128), lanes(F32x4 -> F32x4, Float::RelaxedMax);
            F64x2RelaxedMin, 0x30F, "f64x2.relaxed_min", None, (V128 V128 => V128), lanes(F64x2 -> F64x2, Float::RelaxedMin);
            F64x2RelaxedMax, 0x310, "f64x2.relaxed_max", None, (V128 V128 => V128), lanes(F64x2 -> F64x2, Float::RelaxedMax);
            I16x8RelaxedQ15mulrS, 0x311, "i16x8.relaxed_q15mulr_s", None, (V128 V128 => V128), lanes(I16x8 -> I16x8, Integer::RelaxedQ15mulrS);
            I16x8RelaxedDotI8x16I7x16S, 0x312, "i16x8.relaxed_dot_i8x16_i7x16_s", None, (V128 V128 => V128), lanes(I8x16 -> I16x8, Integer::RelaxedDotS);
            I32x4RelaxedDotI8x16I7x16AddS, 0x313, "i32x4.relaxed_dot_i8x16_i7x16_add_s", None, (V128 V128 V128 => V128), lanes(I8x16 -> I32x4, Ternary::RelaxedDotAddS);
        }
    };
}

use crate::lanes::{
    Compare, Convert, Float, FloatCompare, FloatUnary, Integer, IntegerUnary, Lane, LaneOp, Lanes, Permute, Product, Shape,
    Shift, Ternary, Test, Whole, Widen,
};
use crate::types::ValType;

/// The effect of an instruction on the operand stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Pops and pushes values of these types, bottom of the stack first.
    Fixed {
        /// Popped.
        operands: &'static [ValType],
        /// Pushed.
        results: &'static [ValType],
    },
    /// As `Fixed`, with types that depend on more than the opcode.
    Typed {
        /// Popped.
        operands: &'static [StackType],
        /// Pushed.
        results: &'static [StackType],
    },
    /// It opens, ends or leaves a block, or calls.
    Control(Control),
}

impl Effect {
    /// The number of operands and that of results, or `None` if they depend on more than the opcode.
    pub const fn arity(self) -> Option<(usize, usize)> {
        match self {
            Effect::Fixed { operands, results } => Some((operands.len(), results.len())),
            Effect::Typed { operands, results } => Some((operands.len(), results.len())),
            Effect::Control(_) => None,
        }
    }
}

/// A type in an [`Effect`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StackType {
    /// This one.
    Val(ValType),
    /// That of addresses in the memory of the instruction (in `memory.copy`, the destination).
    Address,
    /// That of addresses in the source memory of `memory.copy`.
    SourceAddress,
    /// The smaller one of both memories of `memory.copy`.
    Length,
    /// That of indices of the instruction's table (in `table.copy`, the destination).
    Index,
    /// That of indices of the source table of `table.copy`.
    SourceIndex,
    /// The smaller one of both tables of `table.copy`.
    TableLength,
    /// That of the table's elements.
    Element,
    /// That of the instruction's local.
    Local,
    /// That of the instruction's global.
    Global,
    /// Any; as a result, that of the first operand.
    Any,
    /// The one in the instruction's immediates.
    Named,
    /// Any reference.
    Reference,
    /// The operand's, without null.
    NonNull,
    /// That of null references to the heap type in the immediates.
    Null,
    /// That of references to the function in the immediates, none of them null.
    Function,
}

/// The instructions that open, end or leave a block, or call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// The code after it is dead.
    Unreachable,
    /// Does nothing, and costs no fuel.
    Nop,
    /// Takes the parameters of its type into the block.
    Block,
    /// Takes the parameters of its type into the loop. Its label is its head.
    Loop,
    /// Pops a condition, then takes the parameters of its type into the first arm.
    If,
    /// Ends the first arm, and begins the second with the parameters.
    Else,
    /// Ends a block, with its results.
    End,
    /// A block that catches exceptions, with the parameters of its type. Each of its clauses is a branch that pops nothing.
    TryTable,
    /// A block that catches exceptions, with the parameters of its type: the legacy form.
    Try,
    /// Ends the body of a `try` or a `catch`, and begins a handler with the parameters of the tag.
    Catch,
    /// Ends the body of a `try` or a `catch`, and begins a handler without operands.
    CatchAll,
    /// Ends a `try`, with its results. The handlers of an outer block catch its exceptions.
    Delegate,
    /// Pops the parameters of a tag; the code after it is dead.
    Throw,
    /// Pops a reference to an exception; the code after it is dead.
    ThrowRef,
    /// Throws the exception of an enclosing `catch` or `catch_all`; the code after it is dead.
    Rethrow,
    /// Pops the operands of the label; the code after it is dead.
    Br,
    /// Pops a condition. The operands of the label stay if the branch is not taken.
    BrIf,
    /// Pops an index and the operands of the labels; the code after it is dead.
    BrTable,
    /// Pops a reference above the operands of the label; if the branch is not taken, pushes it as non-null.
    BrOnNull,
    /// Pops the operands of the label, the last of which is a reference; that is dropped if the branch is not taken.
    BrOnNonNull,
    /// Pops the function's results; the code after it is dead.
    Return,
    /// Pops the parameters and pushes the results of the callee's type.
    Call(CallKind),
    /// Pops the parameters; the code after it is dead.
    ReturnCall(CallKind),
}

/// The way in which a call refers to its callee.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallKind {
    /// By index.
    Direct,
    /// By an index into a table, which is the last operand.
    Indirect,
    /// By a reference, which is the last operand.
    Reference,
}

macro_rules! signature {
    (($($operand:ident)* => $result:ident)) => {
        Some(Signature { operands: &[$(ValType::$operand),*], result: ValType::$result })
    };
    ($other:tt) => {
        None
    };
    ($control:ident($how:ident)) => {
        None
    };
}

macro_rules! stack_type {
    (I32) => {
        StackType::Val(ValType::I32)
    };
    (I64) => {
        StackType::Val(ValType::I64)
    };
    (F32) => {
        StackType::Val(ValType::F32)
    };
    (F64) => {
        StackType::Val(ValType::F64)
    };
    (V128) => {
        StackType::Val(ValType::V128)
    };
    ($ty:ident) => {
        StackType::$ty
    };
}

macro_rules! effect {
    (($($operand:ident)* => $($result:ident)*)) => {
        Effect::Fixed { operands: &[$(ValType::$operand),*], results: &[$(ValType::$result),*] }
    };
    ([$($operand:ident)* => $($result:ident)*]) => {
        Effect::Typed { operands: &[$(stack_type!($operand)),*], results: &[$(stack_type!($result)),*] }
    };
    ($control:ident($how:ident)) => {
        Effect::Control(Control::$control(CallKind::$how))
    };
    ($control:ident) => {
        Effect::Control(Control::$control)
    };
}

macro_rules! lanes {
    (scalar) => {
        None
    };
    (access) => {
        None
    };
    (lanes($from:ident -> $shape:ident, $family:ident::$op:ident)) => {
        Some(Lanes { from: Shape::$from, shape: Shape::$shape, op: LaneOp::$family($family::$op) })
    };
}

macro_rules! is_vector {
    (scalar) => {
        false
    };
    ($other:ident $($lanes:tt)?) => {
        true
    };
}

macro_rules! define_opcodes {
    ($($name:ident, $code:literal, $mnemonic:literal, $imm:ident, $effect:tt $(($how:ident))?, $kind:ident $(($($lanes:tt)*))?;)*) => {
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
            #[inline]
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
            #[inline]
            pub const fn immediates(self) -> Immediates {
                match self {
                    $(Opcode::$name => Immediates::$imm,)*
                }
            }

            /// Returns the effect on the operand stack.
            #[inline]
            pub const fn effect(self) -> Effect {
                match self {
                    $(Opcode::$name => effect!($effect $(($how))?),)*
                }
            }

            /// Operand and result types, where the opcode alone decides them and there is one result.
            pub const fn signature(self) -> Option<Signature> {
                match self {
                    $(Opcode::$name => signature!($effect $(($how))?),)*
                }
            }

            /// Returns the operation on lanes; `None` if no operand or result is a vector, and for accesses to memory.
            pub const fn lanes(self) -> Option<Lanes> {
                match self {
                    $(Opcode::$name => lanes!($kind $(($($lanes)*))?),)*
                }
            }

            /// Returns whether it pops or pushes vectors for all immediates.
            pub const fn is_vector(self) -> bool {
                match self {
                    $(Opcode::$name => is_vector!($kind $(($($lanes)*))?),)*
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
    /// A block type, then a vector of catch clauses.
    TryTable,
    /// A tag index.
    Tag,
    /// A label depth.
    Label,
    /// `br_table`'s labels, default last.
    Labels,
    /// A function index.
    Func,
    /// The index of a function type.
    Type,
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
    /// Sixteen bytes, little-endian.
    V128,
    /// A lane.
    Lane,
    /// Sixteen lanes of two vectors.
    Shuffle,
    /// As `MemArg`, then a lane.
    MemArgLane,
}
