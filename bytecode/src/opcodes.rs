//! TABLE 1: every instruction that Weir knows, one row each. The enum, the decoder's map, the mnemonics, the
//! immediates' shapes and the fixed signatures all derive from it.
//!
//! A row is `Name, code, "mnemonic", Immediates, (operands => results)`, or `special` in place of the signature
//! where it depends on the immediates, the module or the operand stack. The one-byte opcodes keep their byte as
//! `code`; those behind prefix 0xFC are `0x100 + n`, those behind 0xFD `0x200 + n` (0x400 + n is kept for 0xFE).

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
            CallRef, 0x14, "call_ref", Type, special;
            ReturnCallRef, 0x15, "return_call_ref", Type, special;
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
            RefAsNonNull, 0xD4, "ref.as_non_null", None, special;
            BrOnNull, 0xD5, "br_on_null", Label, special;
            BrOnNonNull, 0xD6, "br_on_non_null", Label, special;
            // Prefix 0xFC: saturating truncation, bulk memory and tables, wide arithmetic
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
            I64Add128, 0x113, "i64.add128", None, special;
            I64Sub128, 0x114, "i64.sub128", None, special;
            I64MulWideS, 0x115, "i64.mul_wide_s", None, special;
            I64MulWideU, 0x116, "i64.mul_wide_u", None, special;
            // Prefix 0xFD: vectors, the relaxed ones from 0x300 on
            V128Load, 0x200, "v128.load", MemArg, special;
            V128Load8x8S, 0x201, "v128.load8x8_s", MemArg, special;
            V128Load8x8U, 0x202, "v128.load8x8_u", MemArg, special;
            V128Load16x4S, 0x203, "v128.load16x4_s", MemArg, special;
            V128Load16x4U, 0x204, "v128.load16x4_u", MemArg, special;
            V128Load32x2S, 0x205, "v128.load32x2_s", MemArg, special;
            V128Load32x2U, 0x206, "v128.load32x2_u", MemArg, special;
            V128Load8Splat, 0x207, "v128.load8_splat", MemArg, special;
            V128Load16Splat, 0x208, "v128.load16_splat", MemArg, special;
            V128Load32Splat, 0x209, "v128.load32_splat", MemArg, special;
            V128Load64Splat, 0x20A, "v128.load64_splat", MemArg, special;
            V128Store, 0x20B, "v128.store", MemArg, special;
            V128Const, 0x20C, "v128.const", V128, (=> V128);
            I8x16Shuffle, 0x20D, "i8x16.shuffle", Shuffle, (V128 V128 => V128);
            I8x16Swizzle, 0x20E, "i8x16.swizzle", None, (V128 V128 => V128);
            I8x16Splat, 0x20F, "i8x16.splat", None, (I32 => V128);
            I16x8Splat, 0x210, "i16x8.splat", None, (I32 => V128);
            I32x4Splat, 0x211, "i32x4.splat", None, (I32 => V128);
            I64x2Splat, 0x212, "i64x2.splat", None, (I64 => V128);
            F32x4Splat, 0x213, "f32x4.splat", None, (F32 => V128);
            F64x2Splat, 0x214, "f64x2.splat", None, (F64 => V128);
            I8x16ExtractLaneS, 0x215, "i8x16.extract_lane_s", Lane, (V128 => I32);
            I8x16ExtractLaneU, 0x216, "i8x16.extract_lane_u", Lane, (V128 => I32);
            I8x16ReplaceLane, 0x217, "i8x16.replace_lane", Lane, (V128 I32 => V128);
            I16x8ExtractLaneS, 0x218, "i16x8.extract_lane_s", Lane, (V128 => I32);
            I16x8ExtractLaneU, 0x219, "i16x8.extract_lane_u", Lane, (V128 => I32);
            I16x8ReplaceLane, 0x21A, "i16x8.replace_lane", Lane, (V128 I32 => V128);
            I32x4ExtractLane, 0x21B, "i32x4.extract_lane", Lane, (V128 => I32);
            I32x4ReplaceLane, 0x21C, "i32x4.replace_lane", Lane, (V128 I32 => V128);
            I64x2ExtractLane, 0x21D, "i64x2.extract_lane", Lane, (V128 => I64);
            I64x2ReplaceLane, 0x21E, "i64x2.replace_lane", Lane, (V128 I64 => V128);
            F32x4ExtractLane, 0x21F, "f32x4.extract_lane", Lane, (V128 => F32);
            F32x4ReplaceLane, 0x220, "f32x4.replace_lane", Lane, (V128 F32 => V128);
            F64x2ExtractLane, 0x221, "f64x2.extract_lane", Lane, (V128 => F64);
            F64x2ReplaceLane, 0x222, "f64x2.replace_lane", Lane, (V128 F64 => V128);
            I8x16Eq, 0x223, "i8x16.eq", None, (V128 V128 => V128);
            I8x16Ne, 0x224, "i8x16.ne", None, (V128 V128 => V128);
            I8x16LtS, 0x225, "i8x16.lt_s", None, (V128 V128 => V128);
            I8x16LtU, 0x226, "i8x16.lt_u", None, (V128 V128 => V128);
            I8x16GtS, 0x227, "i8x16.gt_s", None, (V128 V128 => V128);
            I8x16GtU, 0x228, "i8x16.gt_u", None, (V128 V128 => V128);
            I8x16LeS, 0x229, "i8x16.le_s", None, (V128 V128 => V128);
            I8x16LeU, 0x22A, "i8x16.le_u", None, (V128 V128 => V128);
            I8x16GeS, 0x22B, "i8x16.ge_s", None, (V128 V128 => V128);
            I8x16GeU, 0x22C, "i8x16.ge_u", None, (V128 V128 => V128);
            I16x8Eq, 0x22D, "i16x8.eq", None, (V128 V128 => V128);
            I16x8Ne, 0x22E, "i16x8.ne", None, (V128 V128 => V128);
            I16x8LtS, 0x22F, "i16x8.lt_s", None, (V128 V128 => V128);
            I16x8LtU, 0x230, "i16x8.lt_u", None, (V128 V128 => V128);
            I16x8GtS, 0x231, "i16x8.gt_s", None, (V128 V128 => V128);
            I16x8GtU, 0x232, "i16x8.gt_u", None, (V128 V128 => V128);
            I16x8LeS, 0x233, "i16x8.le_s", None, (V128 V128 => V128);
            I16x8LeU, 0x234, "i16x8.le_u", None, (V128 V128 => V128);
            I16x8GeS, 0x235, "i16x8.ge_s", None, (V128 V128 => V128);
            I16x8GeU, 0x236, "i16x8.ge_u", None, (V128 V128 => V128);
            I32x4Eq, 0x237, "i32x4.eq", None, (V128 V128 => V128);
            I32x4Ne, 0x238, "i32x4.ne", None, (V128 V128 => V128);
            I32x4LtS, 0x239, "i32x4.lt_s", None, (V128 V128 => V128);
            I32x4LtU, 0x23A, "i32x4.lt_u", None, (V128 V128 => V128);
            I32x4GtS, 0x23B, "i32x4.gt_s", None, (V128 V128 => V128);
            I32x4GtU, 0x23C, "i32x4.gt_u", None, (V128 V128 => V128);
            I32x4LeS, 0x23D, "i32x4.le_s", None, (V128 V128 => V128);
            I32x4LeU, 0x23E, "i32x4.le_u", None, (V128 V128 => V128);
            I32x4GeS, 0x23F, "i32x4.ge_s", None, (V128 V128 => V128);
            I32x4GeU, 0x240, "i32x4.ge_u", None, (V128 V128 => V128);
            F32x4Eq, 0x241, "f32x4.eq", None, (V128 V128 => V128);
            F32x4Ne, 0x242, "f32x4.ne", None, (V128 V128 => V128);
            F32x4Lt, 0x243, "f32x4.lt", None, (V128 V128 => V128);
            F32x4Gt, 0x244, "f32x4.gt", None, (V128 V128 => V128);
            F32x4Le, 0x245, "f32x4.le", None, (V128 V128 => V128);
            F32x4Ge, 0x246, "f32x4.ge", None, (V128 V128 => V128);
            F64x2Eq, 0x247, "f64x2.eq", None, (V128 V128 => V128);
            F64x2Ne, 0x248, "f64x2.ne", None, (V128 V128 => V128);
            F64x2Lt, 0x249, "f64x2.lt", None, (V128 V128 => V128);
            F64x2Gt, 0x24A, "f64x2.gt", None, (V128 V128 => V128);
            F64x2Le, 0x24B, "f64x2.le", None, (V128 V128 => V128);
            F64x2Ge, 0x24C, "f64x2.ge", None, (V128 V128 => V128);
            V128Not, 0x24D, "v128.not", None, (V128 => V128);
            V128And, 0x24E, "v128.and", None, (V128 V128 => V128);
            V128Andnot, 0x24F, "v128.andnot", None, (V128 V128 => V128);
            V128Or, 0x250, "v128.or", None, (V128 V128 => V128);
            V128Xor, 0x251, "v128.xor", None, (V128 V128 => V128);
            V128Bitselect, 0x252, "v128.bitselect", None, (V128 V128 V128 => V128);
            V128AnyTrue, 0x253, "v128.any_true", None, (V128 => I32);
            V128Load8Lane, 0x254, "v128.load8_lane", MemArgLane, special;
            V128Load16Lane, 0x255, "v128.load16_lane", MemArgLane, special;
            V128Load32Lane, 0x256, "v128.load32_lane", MemArgLane, special;
            V128Load64Lane, 0x257, "v128.load64_lane", MemArgLane, special;
            V128Store8Lane, 0x258, "v128.store8_lane", MemArgLane, special;
            V128Store16Lane, 0x259, "v128.store16_lane", MemArgLane, special;
            V128Store32Lane, 0x25A, "v128.store32_lane", MemArgLane, special;
            V128Store64Lane, 0x25B, "v128.store64_lane", MemArgLane, special;
            V128Load32Zero, 0x25C, "v128.load32_zero", MemArg, special;
            V128Load64Zero, 0x25D, "v128.load64_zero", MemArg, special;
            F32x4DemoteF64x2Zero, 0x25E, "f32x4.demote_f64x2_zero", None, (V128 => V128);
            F64x2PromoteLowF32x4, 0x25F, "f64x2.promote_low_f32x4", None, (V128 => V128);
            I8x16Abs, 0x260, "i8x16.abs", None, (V128 => V128);
            I8x16Neg, 0x261, "i8x16.neg", None, (V128 => V128);
            I8x16Popcnt, 0x262, "i8x16.popcnt", None, (V128 => V128);
            I8x16AllTrue, 0x263, "i8x16.all_true", None, (V128 => I32);
            I8x16Bitmask, 0x264, "i8x16.bitmask", None, (V128 => I32);
            I8x16NarrowI16x8S, 0x265, "i8x16.narrow_i16x8_s", None, (V128 V128 => V128);
            I8x16NarrowI16x8U, 0x266, "i8x16.narrow_i16x8_u", None, (V128 V128 => V128);
            F32x4Ceil, 0x267, "f32x4.ceil", None, (V128 => V128);
            F32x4Floor, 0x268, "f32x4.floor", None, (V128 => V128);
            F32x4Trunc, 0x269, "f32x4.trunc", None, (V128 => V128);
            F32x4Nearest, 0x26A, "f32x4.nearest", None, (V128 => V128);
            I8x16Shl, 0x26B, "i8x16.shl", None, (V128 I32 => V128);
            I8x16ShrS, 0x26C, "i8x16.shr_s", None, (V128 I32 => V128);
            I8x16ShrU, 0x26D, "i8x16.shr_u", None, (V128 I32 => V128);
            I8x16Add, 0x26E, "i8x16.add", None, (V128 V128 => V128);
            I8x16AddSatS, 0x26F, "i8x16.add_sat_s", None, (V128 V128 => V128);
            I8x16AddSatU, 0x270, "i8x16.add_sat_u", None, (V128 V128 => V128);
            I8x16Sub, 0x271, "i8x16.sub", None, (V128 V128 => V128);
            I8x16SubSatS, 0x272, "i8x16.sub_sat_s", None, (V128 V128 => V128);
            I8x16SubSatU, 0x273, "i8x16.sub_sat_u", None, (V128 V128 => V128);
            F64x2Ceil, 0x274, "f64x2.ceil", None, (V128 => V128);
            F64x2Floor, 0x275, "f64x2.floor", None, (V128 => V128);
            I8x16MinS, 0x276, "i8x16.min_s", None, (V128 V128 => V128);
            I8x16MinU, 0x277, "i8x16.min_u", None, (V128 V128 => V128);
            I8x16MaxS, 0x278, "i8x16.max_s", None, (V128 V128 => V128);
            I8x16MaxU, 0x279, "i8x16.max_u", None, (V128 V128 => V128);
            F64x2Trunc, 0x27A, "f64x2.trunc", None, (V128 => V128);
            I8x16AvgrU, 0x27B, "i8x16.avgr_u", None, (V128 V128 => V128);
            I16x8ExtaddPairwiseI8x16S, 0x27C, "i16x8.extadd_pairwise_i8x16_s", None, (V128 => V128);
            I16x8ExtaddPairwiseI8x16U, 0x27D, "i16x8.extadd_pairwise_i8x16_u", None, (V128 => V128);
            I32x4ExtaddPairwiseI16x8S, 0x27E, "i32x4.extadd_pairwise_i16x8_s", None, (V128 => V128);
            I32x4ExtaddPairwiseI16x8U, 0x27F, "i32x4.extadd_pairwise_i16x8_u", None, (V128 => V128);
            I16x8Abs, 0x280, "i16x8.abs", None, (V128 => V128);
            I16x8Neg, 0x281, "i16x8.neg", None, (V128 => V128);
            I16x8Q15mulrSatS, 0x282, "i16x8.q15mulr_sat_s", None, (V128 V128 => V128);
            I16x8AllTrue, 0x283, "i16x8.all_true", None, (V128 => I32);
            I16x8Bitmask, 0x284, "i16x8.bitmask", None, (V128 => I32);
            I16x8NarrowI32x4S, 0x285, "i16x8.narrow_i32x4_s", None, (V128 V128 => V128);
            I16x8NarrowI32x4U, 0x286, "i16x8.narrow_i32x4_u", None, (V128 V128 => V128);
            I16x8ExtendLowI8x16S, 0x287, "i16x8.extend_low_i8x16_s", None, (V128 => V128);
            I16x8ExtendHighI8x16S, 0x288, "i16x8.extend_high_i8x16_s", None, (V128 => V128);
            I16x8ExtendLowI8x16U, 0x289, "i16x8.extend_low_i8x16_u", None, (V128 => V128);
            I16x8ExtendHighI8x16U, 0x28A, "i16x8.extend_high_i8x16_u", None, (V128 => V128);
            I16x8Shl, 0x28B, "i16x8.shl", None, (V128 I32 => V128);
            I16x8ShrS, 0x28C, "i16x8.shr_s", None, (V128 I32 => V128);
            I16x8ShrU, 0x28D, "i16x8.shr_u", None, (V128 I32 => V128);
            I16x8Add, 0x28E, "i16x8.add", None, (V128 V128 => V128);
            I16x8AddSatS, 0x28F, "i16x8.add_sat_s", None, (V128 V128 => V128);
            I16x8AddSatU, 0x290, "i16x8.add_sat_u", None, (V128 V128 => V128);
            I16x8Sub, 0x291, "i16x8.sub", None, (V128 V128 => V128);
            I16x8SubSatS, 0x292, "i16x8.sub_sat_s", None, (V128 V128 => V128);
            I16x8SubSatU, 0x293, "i16x8.sub_sat_u", None, (V128 V128 => V128);
            F64x2Nearest, 0x294, "f64x2.nearest", None, (V128 => V128);
            I16x8Mul, 0x295, "i16x8.mul", None, (V128 V128 => V128);
            I16x8MinS, 0x296, "i16x8.min_s", None, (V128 V128 => V128);
            I16x8MinU, 0x297, "i16x8.min_u", None, (V128 V128 => V128);
            I16x8MaxS, 0x298, "i16x8.max_s", None, (V128 V128 => V128);
            I16x8MaxU, 0x299, "i16x8.max_u", None, (V128 V128 => V128);
            I16x8AvgrU, 0x29B, "i16x8.avgr_u", None, (V128 V128 => V128);
            I16x8ExtmulLowI8x16S, 0x29C, "i16x8.extmul_low_i8x16_s", None, (V128 V128 => V128);
            I16x8ExtmulHighI8x16S, 0x29D, "i16x8.extmul_high_i8x16_s", None, (V128 V128 => V128);
            I16x8ExtmulLowI8x16U, 0x29E, "i16x8.extmul_low_i8x16_u", None, (V128 V128 => V128);
            I16x8ExtmulHighI8x16U, 0x29F, "i16x8.extmul_high_i8x16_u", None, (V128 V128 => V128);
            I32x4Abs, 0x2A0, "i32x4.abs", None, (V128 => V128);
            I32x4Neg, 0x2A1, "i32x4.neg", None, (V128 => V128);
            I32x4AllTrue, 0x2A3, "i32x4.all_true", None, (V128 => I32);
            I32x4Bitmask, 0x2A4, "i32x4.bitmask", None, (V128 => I32);
            I32x4ExtendLowI16x8S, 0x2A7, "i32x4.extend_low_i16x8_s", None, (V128 => V128);
            I32x4ExtendHighI16x8S, 0x2A8, "i32x4.extend_high_i16x8_s", None, (V128 => V128);
            I32x4ExtendLowI16x8U, 0x2A9, "i32x4.extend_low_i16x8_u", None, (V128 => V128);
            I32x4ExtendHighI16x8U, 0x2AA, "i32x4.extend_high_i16x8_u", None, (V128 => V128);
            I32x4Shl, 0x2AB, "i32x4.shl", None, (V128 I32 => V128);
            I32x4ShrS, 0x2AC, "i32x4.shr_s", None, (V128 I32 => V128);
            I32x4ShrU, 0x2AD, "i32x4.shr_u", None, (V128 I32 => V128);
            I32x4Add, 0x2AE, "i32x4.add", None, (V128 V128 => V128);
            I32x4Sub, 0x2B1, "i32x4.sub", None, (V128 V128 => V128);
            I32x4Mul, 0x2B5, "i32x4.mul", None, (V128 V128 => V128);
            I32x4MinS, 0x2B6, "i32x4.min_s", None, (V128 V128 => V128);
            I32x4MinU, 0x2B7, "i32x4.min_u", None, (V128 V128 => V128);
            I32x4MaxS, 0x2B8, "i32x4.max_s", None, (V128 V128 => V128);
            I32x4MaxU, 0x2B9, "i32x4.max_u", None, (V128 V128 => V128);
            I32x4DotI16x8S, 0x2BA, "i32x4.dot_i16x8_s", None, (V128 V128 => V128);
            I32x4ExtmulLowI16x8S, 0x2BC, "i32x4.extmul_low_i16x8_s", None, (V128 V128 => V128);
            I32x4ExtmulHighI16x8S, 0x2BD, "i32x4.extmul_high_i16x8_s", None, (V128 V128 => V128);
            I32x4ExtmulLowI16x8U, 0x2BE, "i32x4.extmul_low_i16x8_u", None, (V128 V128 => V128);
            I32x4ExtmulHighI16x8U, 0x2BF, "i32x4.extmul_high_i16x8_u", None, (V128 V128 => V128);
            I64x2Abs, 0x2C0, "i64x2.abs", None, (V128 => V128);
            I64x2Neg, 0x2C1, "i64x2.neg", None, (V128 => V128);
            I64x2AllTrue, 0x2C3, "i64x2.all_true", None, (V128 => I32);
            I64x2Bitmask, 0x2C4, "i64x2.bitmask", None, (V128 => I32);
            I64x2ExtendLowI32x4S, 0x2C7, "i64x2.extend_low_i32x4_s", None, (V128 => V128);
            I64x2ExtendHighI32x4S, 0x2C8, "i64x2.extend_high_i32x4_s", None, (V128 => V128);
            I64x2ExtendLowI32x4U, 0x2C9, "i64x2.extend_low_i32x4_u", None, (V128 => V128);
            I64x2ExtendHighI32x4U, 0x2CA, "i64x2.extend_high_i32x4_u", None, (V128 => V128);
            I64x2Shl, 0x2CB, "i64x2.shl", None, (V128 I32 => V128);
            I64x2ShrS, 0x2CC, "i64x2.shr_s", None, (V128 I32 => V128);
            I64x2ShrU, 0x2CD, "i64x2.shr_u", None, (V128 I32 => V128);
            I64x2Add, 0x2CE, "i64x2.add", None, (V128 V128 => V128);
            I64x2Sub, 0x2D1, "i64x2.sub", None, (V128 V128 => V128);
            I64x2Mul, 0x2D5, "i64x2.mul", None, (V128 V128 => V128);
            I64x2Eq, 0x2D6, "i64x2.eq", None, (V128 V128 => V128);
            I64x2Ne, 0x2D7, "i64x2.ne", None, (V128 V128 => V128);
            I64x2LtS, 0x2D8, "i64x2.lt_s", None, (V128 V128 => V128);
            I64x2GtS, 0x2D9, "i64x2.gt_s", None, (V128 V128 => V128);
            I64x2LeS, 0x2DA, "i64x2.le_s", None, (V128 V128 => V128);
            I64x2GeS, 0x2DB, "i64x2.ge_s", None, (V128 V128 => V128);
            I64x2ExtmulLowI32x4S, 0x2DC, "i64x2.extmul_low_i32x4_s", None, (V128 V128 => V128);
            I64x2ExtmulHighI32x4S, 0x2DD, "i64x2.extmul_high_i32x4_s", None, (V128 V128 => V128);
            I64x2ExtmulLowI32x4U, 0x2DE, "i64x2.extmul_low_i32x4_u", None, (V128 V128 => V128);
            I64x2ExtmulHighI32x4U, 0x2DF, "i64x2.extmul_high_i32x4_u", None, (V128 V128 => V128);
            F32x4Abs, 0x2E0, "f32x4.abs", None, (V128 => V128);
            F32x4Neg, 0x2E1, "f32x4.neg", None, (V128 => V128);
            F32x4Sqrt, 0x2E3, "f32x4.sqrt", None, (V128 => V128);
            F32x4Add, 0x2E4, "f32x4.add", None, (V128 V128 => V128);
            F32x4Sub, 0x2E5, "f32x4.sub", None, (V128 V128 => V128);
            F32x4Mul, 0x2E6, "f32x4.mul", None, (V128 V128 => V128);
            F32x4Div, 0x2E7, "f32x4.div", None, (V128 V128 => V128);
            F32x4Min, 0x2E8, "f32x4.min", None, (V128 V128 => V128);
            F32x4Max, 0x2E9, "f32x4.max", None, (V128 V128 => V128);
            F32x4Pmin, 0x2EA, "f32x4.pmin", None, (V128 V128 => V128);
            F32x4Pmax, 0x2EB, "f32x4.pmax", None, (V128 V128 => V128);
            F64x2Abs, 0x2EC, "f64x2.abs", None, (V128 => V128);
            F64x2Neg, 0x2ED, "f64x2.neg", None, (V128 => V128);
            F64x2Sqrt, 0x2EF, "f64x2.sqrt", None, (V128 => V128);
            F64x2Add, 0x2F0, "f64x2.add", None, (V128 V128 => V128);
            F64x2Sub, 0x2F1, "f64x2.sub", None, (V128 V128 => V128);
            F64x2Mul, 0x2F2, "f64x2.mul", None, (V128 V128 => V128);
            F64x2Div, 0x2F3, "f64x2.div", None, (V128 V128 => V128);
            F64x2Min, 0x2F4, "f64x2.min", None, (V128 V128 => V128);
            F64x2Max, 0x2F5, "f64x2.max", None, (V128 V128 => V128);
            F64x2Pmin, 0x2F6, "f64x2.pmin", None, (V128 V128 => V128);
            F64x2Pmax, 0x2F7, "f64x2.pmax", None, (V128 V128 => V128);
            I32x4TruncSatF32x4S, 0x2F8, "i32x4.trunc_sat_f32x4_s", None, (V128 => V128);
            I32x4TruncSatF32x4U, 0x2F9, "i32x4.trunc_sat_f32x4_u", None, (V128 => V128);
            F32x4ConvertI32x4S, 0x2FA, "f32x4.convert_i32x4_s", None, (V128 => V128);
            F32x4ConvertI32x4U, 0x2FB, "f32x4.convert_i32x4_u", None, (V128 => V128);
            I32x4TruncSatF64x2SZero, 0x2FC, "i32x4.trunc_sat_f64x2_s_zero", None, (V128 => V128);
            I32x4TruncSatF64x2UZero, 0x2FD, "i32x4.trunc_sat_f64x2_u_zero", None, (V128 => V128);
            F64x2ConvertLowI32x4S, 0x2FE, "f64x2.convert_low_i32x4_s", None, (V128 => V128);
            F64x2ConvertLowI32x4U, 0x2FF, "f64x2.convert_low_i32x4_u", None, (V128 => V128);
            I8x16RelaxedSwizzle, 0x300, "i8x16.relaxed_swizzle", None, (V128 V128 => V128);
            I32x4RelaxedTruncF32x4S, 0x301, "i32x4.relaxed_trunc_f32x4_s", None, (V128 => V128);
            I32x4RelaxedTruncF32x4U, 0x302, "i32x4.relaxed_trunc_f32x4_u", None, (V128 => V128);
            I32x4RelaxedTruncF64x2SZero, 0x303, "i32x4.relaxed_trunc_f64x2_s_zero", None, (V128 => V128);
            I32x4RelaxedTruncF64x2UZero, 0x304, "i32x4.relaxed_trunc_f64x2_u_zero", None, (V128 => V128);
            F32x4RelaxedMadd, 0x305, "f32x4.relaxed_madd", None, (V128 V128 V128 => V128);
            F32x4RelaxedNmadd, 0x306, "f32x4.relaxed_nmadd", None, (V128 V128 V128 => V128);
            F64x2RelaxedMadd, 0x307, "f64x2.relaxed_madd", None, (V128 V128 V128 => V128);
            F64x2RelaxedNmadd, 0x308, "f64x2.relaxed_nmadd", None, (V128 V128 V128 => V128);
            I8x16RelaxedLaneselect, 0x309, "i8x16.relaxed_laneselect", None, (V128 V128 V128 => V128);
            I16x8RelaxedLaneselect, 0x30A, "i16x8.relaxed_laneselect", None, (V128 V128 V128 => V128);
            I32x4RelaxedLaneselect, 0x30B, "i32x4.relaxed_laneselect", None, (V128 V128 V128 => V128);
            I64x2RelaxedLaneselect, 0x30C, "i64x2.relaxed_laneselect", None, (V128 V128 V128 => V128);
            F32x4RelaxedMin, 0x30D, "f32x4.relaxed_min", None, (V128 V128 => V128);
            F32x4RelaxedMax, 0x30E, "f32x4.relaxed_max", None, (V128 V128 => V128);
            F64x2RelaxedMin, 0x30F, "f64x2.relaxed_min", None, (V128 V128 => V128);
            F64x2RelaxedMax, 0x310, "f64x2.relaxed_max", None, (V128 V128 => V128);
            I16x8RelaxedQ15mulrS, 0x311, "i16x8.relaxed_q15mulr_s", None, (V128 V128 => V128);
            I16x8RelaxedDotI8x16I7x16S, 0x312, "i16x8.relaxed_dot_i8x16_i7x16_s", None, (V128 V128 => V128);
            I32x4RelaxedDotI8x16I7x16AddS, 0x313, "i32x4.relaxed_dot_i8x16_i7x16_add_s", None, (V128 V128 V128 => V128);
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

impl Opcode {
    /// Whether it is one of those behind prefix 0xFD, which take or give vectors.
    pub const fn is_vector(self) -> bool {
        matches!(self as u16, 0x200..0x400)
    }
}

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
