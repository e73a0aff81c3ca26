//! TABLE 2: every SSA operation, one row each.
//!
//! A row is `Name, "name", arity, Effect, mirror, inverse, gives, calls, access, fields, [operand result Opcode, …]`,
//! in the operation's family. No column has a default:
//!
//! * `mirror`: the operation that computes the same with its two arguments exchanged; for a commutative operation,
//!   itself.
//! * `inverse`: the comparison that is true exactly where this one is false. Orders of floats have none, because every
//!   order with a NaN is false.
//! * `gives`: `bit` if its value is always 0 or 1, else `any`.
//! * `calls`: [`Calls`]. `access`: the number of bytes that it accesses in a memory, `all` for those of the value.
//!   `fields`: [`Fields`].
//!
//! The test `rows_say_what_the_instructions_do` compares the columns with what the Wasm instructions compute.
//!
//! Each family is an enum, so that a `match` on an operation is exhaustive by family, and then within the family.
//!
//! Numeric operations are generic in their width. Each entry in brackets names the Wasm instruction that defines the
//! operation for one operand type (that of argument 0) and one result type, so that the meaning is written only in
//! `bytecode::semantics`. An arity of `*` is a list. Loads and stores name their Wasm instruction in the same way, with
//! the type of the loaded or stored value in both columns.

use weir_bytecode::types::HeapType;
use weir_bytecode::{Opcode, ValType};
use weir_contract::Helper;

/// The type of a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Type {
    /// No value.
    Void,
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
    /// binary32
    F32,
    /// binary64
    F64,
    /// 128-bit vector.
    V128,
    /// 256-bit vector: two of 128 bits. It exists only where the pass `vectorise` has made it: never in a signature, in an
    /// argument, or across a call or poll.
    V256,
    /// A reference to a function: the address of its `FuncRef`, null is 0. Functions do not move.
    Ref,
    /// A reference into the collected heap: 32 bits, extended with zeros, null is 0. It may change at a call and at a throw, and what
    /// it refers to lives while the reference is in a place that the collector knows.
    Gc,
}

impl Type {
    const ALL: [Type; 9] = [Type::Void, Type::I32, Type::I64, Type::F32, Type::F64, Type::V128, Type::V256, Type::Ref, Type::Gc];

    /// The type's name in the textual form.
    pub const fn name(self) -> &'static str {
        match self {
            Type::Void => "void",
            Type::I32 => "i32",
            Type::I64 => "i64",
            Type::F32 => "f32",
            Type::F64 => "f64",
            Type::V128 => "v128",
            Type::V256 => "v256",
            Type::Ref => "ref",
            Type::Gc => "gc",
        }
    }

    /// The type with this name.
    pub fn from_name(name: &str) -> Option<Type> {
        Type::ALL.into_iter().find(|ty| ty.name() == name)
    }

    /// Whether values of the type are in vector registers.
    pub const fn is_float(self) -> bool {
        matches!(self, Type::F32 | Type::F64 | Type::V128 | Type::V256)
    }

    /// The type of which [`Type::V256`] has two; any other type is its own.
    pub const fn half(self) -> Type {
        match self {
            Type::V256 => Type::V128,
            Type::Void | Type::I32 | Type::I64 | Type::F32 | Type::F64 | Type::V128 | Type::Ref | Type::Gc => self,
        }
    }

    /// Whether the type is one of numbers, which are represented by at most 64 bits.
    pub const fn is_number(self) -> bool {
        matches!(self, Type::I32 | Type::I64 | Type::F32 | Type::F64)
    }
}

impl From<ValType> for Type {
    fn from(ty: ValType) -> Type {
        match ty {
            ValType::I32 => Type::I32,
            ValType::I64 => Type::I64,
            ValType::F32 => Type::F32,
            ValType::F64 => Type::F64,
            ValType::V128 => Type::V128,
            ValType::Ref(ty) => ty.heap.into(),
        }
    }
}

impl From<HeapType> for Type {
    fn from(heap: HeapType) -> Type {
        if heap.is_collected() { Type::Gc } else { Type::Ref }
    }
}

/// The effect that an operation may have besides computing its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Nothing. Equal operands always give an equal value; for phis, this holds only within a block.
    Pure,
    /// It may trap, but does nothing else.
    Trap,
    /// It reads state that a `Write` may change.
    Read,
    /// It reads state and may trap.
    ReadTrap,
    /// It changes state, may read it and may trap.
    Write,
    /// It ends its block.
    Terminator,
}

/// Calls `$m` with every row of TABLE 2.
#[macro_export]
macro_rules! for_each_op {
    ($m:ident) => {
        $m! {
            /// Values without arguments, and selections among values.
            Leaf {
                // `const`: imm has the bits. `param`: imm is its number; first in the entry block. `osr_slot`: imm is the frame
                // slot (in 8-byte slots from fp); only in the entry block of an OSR body.
                Const, "const", 0, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: Bits, [];
                Param, "param", 0, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: Number, [];
                OsrSlot, "osr_slot", 0, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: Number, [];
                // One argument per predecessor, in the order of `preds`; at the head of its block.
                Phi, "phi", *, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [];
                // Result number `imm` (1 or more) of the call or `catch` that is its argument, directly after that.
                Result, "result", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: Number, [];
                // Arguments: the condition, the value if it is non-zero, the value if it is zero.
                Select, "select", 3, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [];
            }
            /// Operations on two integers.
            Integer {
                Add, "add", 2, Pure, mirror: Add, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 I32 I32Add, I64 I64 I64Add];
                Sub, "sub", 2, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 I32 I32Sub, I64 I64 I64Sub];
                Mul, "mul", 2, Pure, mirror: Mul, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 I32 I32Mul, I64 I64 I64Mul];
                // The high half of the instruction's result; `mul` gives the low half.
                MulHigh, "mul_high", 2, Pure, mirror: MulHigh, inverse: none, gives: any, calls: none, access: none, fields: None, [I64 I64 I64MulWideU];
                DivS, "div_s", 2, Trap, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 I32 I32DivS, I64 I64 I64DivS];
                DivU, "div_u", 2, Trap, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 I32 I32DivU, I64 I64 I64DivU];
                RemS, "rem_s", 2, Trap, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 I32 I32RemS, I64 I64 I64RemS];
                RemU, "rem_u", 2, Trap, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 I32 I32RemU, I64 I64 I64RemU];
                And, "and", 2, Pure, mirror: And, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 I32 I32And, I64 I64 I64And];
                Or, "or", 2, Pure, mirror: Or, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 I32 I32Or, I64 I64 I64Or];
                Xor, "xor", 2, Pure, mirror: Xor, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 I32 I32Xor, I64 I64 I64Xor];
                Shl, "shl", 2, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 I32 I32Shl, I64 I64 I64Shl];
                ShrS, "shr_s", 2, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 I32 I32ShrS, I64 I64 I64ShrS];
                ShrU, "shr_u", 2, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 I32 I32ShrU, I64 I64 I64ShrU];
                Rotl, "rotl", 2, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 I32 I32Rotl, I64 I64 I64Rotl];
                Rotr, "rotr", 2, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 I32 I32Rotr, I64 I64 I64Rotr];
            }
            /// Comparisons of integers.
            Compare {
                Eqz, "eqz", 1, Pure, mirror: none, inverse: none, gives: bit, calls: none, access: none, fields: None, [I32 I32 I32Eqz, I64 I32 I64Eqz];
                Eq, "eq", 2, Pure, mirror: Eq, inverse: Ne, gives: bit, calls: none, access: none, fields: None, [I32 I32 I32Eq, I64 I32 I64Eq];
                Ne, "ne", 2, Pure, mirror: Ne, inverse: Eq, gives: bit, calls: none, access: none, fields: None, [I32 I32 I32Ne, I64 I32 I64Ne];
                LtS, "lt_s", 2, Pure, mirror: GtS, inverse: GeS, gives: bit, calls: none, access: none, fields: None, [I32 I32 I32LtS, I64 I32 I64LtS];
                LtU, "lt_u", 2, Pure, mirror: GtU, inverse: GeU, gives: bit, calls: none, access: none, fields: None, [I32 I32 I32LtU, I64 I32 I64LtU];
                GtS, "gt_s", 2, Pure, mirror: LtS, inverse: LeS, gives: bit, calls: none, access: none, fields: None, [I32 I32 I32GtS, I64 I32 I64GtS];
                GtU, "gt_u", 2, Pure, mirror: LtU, inverse: LeU, gives: bit, calls: none, access: none, fields: None, [I32 I32 I32GtU, I64 I32 I64GtU];
                LeS, "le_s", 2, Pure, mirror: GeS, inverse: GtS, gives: bit, calls: none, access: none, fields: None, [I32 I32 I32LeS, I64 I32 I64LeS];
                LeU, "le_u", 2, Pure, mirror: GeU, inverse: GtU, gives: bit, calls: none, access: none, fields: None, [I32 I32 I32LeU, I64 I32 I64LeU];
                GeS, "ge_s", 2, Pure, mirror: LeS, inverse: LtS, gives: bit, calls: none, access: none, fields: None, [I32 I32 I32GeS, I64 I32 I64GeS];
                GeU, "ge_u", 2, Pure, mirror: LeU, inverse: LtU, gives: bit, calls: none, access: none, fields: None, [I32 I32 I32GeU, I64 I32 I64GeU];
            }
            /// Bit counts, and extensions of an integer's lower bits.
            Bits {
                Clz, "clz", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 I32 I32Clz, I64 I64 I64Clz];
                Ctz, "ctz", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 I32 I32Ctz, I64 I64 I64Ctz];
                Popcnt, "popcnt", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 I32 I32Popcnt, I64 I64 I64Popcnt];
                Sext8, "sext8", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 I32 I32Extend8S, I64 I64 I64Extend8S];
                Sext16, "sext16", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 I32 I32Extend16S, I64 I64 I64Extend16S];
                Sext32, "sext32", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [I64 I64 I64Extend32S];
            }
            /// Operations on two floats.
            Float {
                Fadd, "fadd", 2, Pure, mirror: Fadd, inverse: none, gives: any, calls: none, access: none, fields: None, [F32 F32 F32Add, F64 F64 F64Add];
                Fsub, "fsub", 2, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [F32 F32 F32Sub, F64 F64 F64Sub];
                Fmul, "fmul", 2, Pure, mirror: Fmul, inverse: none, gives: any, calls: none, access: none, fields: None, [F32 F32 F32Mul, F64 F64 F64Mul];
                Fdiv, "fdiv", 2, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [F32 F32 F32Div, F64 F64 F64Div];
                Fmin, "fmin", 2, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [F32 F32 F32Min, F64 F64 F64Min];
                Fmax, "fmax", 2, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [F32 F32 F32Max, F64 F64 F64Max];
                Fcopysign, "fcopysign", 2, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [F32 F32 F32Copysign, F64 F64 F64Copysign];
            }
            /// Operations on one float.
            FloatUnary {
                Fabs, "fabs", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [F32 F32 F32Abs, F64 F64 F64Abs];
                Fneg, "fneg", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [F32 F32 F32Neg, F64 F64 F64Neg];
                Fceil, "fceil", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [F32 F32 F32Ceil, F64 F64 F64Ceil];
                Ffloor, "ffloor", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [F32 F32 F32Floor, F64 F64 F64Floor];
                Ftrunc, "ftrunc", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [F32 F32 F32Trunc, F64 F64 F64Trunc];
                Fnearest, "fnearest", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [F32 F32 F32Nearest, F64 F64 F64Nearest];
                Fsqrt, "fsqrt", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [F32 F32 F32Sqrt, F64 F64 F64Sqrt];
            }
            /// Comparisons of floats.
            FloatCompare {
                Feq, "feq", 2, Pure, mirror: Feq, inverse: Fne, gives: bit, calls: none, access: none, fields: None, [F32 I32 F32Eq, F64 I32 F64Eq];
                Fne, "fne", 2, Pure, mirror: Fne, inverse: Feq, gives: bit, calls: none, access: none, fields: None, [F32 I32 F32Ne, F64 I32 F64Ne];
                Flt, "flt", 2, Pure, mirror: Fgt, inverse: none, gives: bit, calls: none, access: none, fields: None, [F32 I32 F32Lt, F64 I32 F64Lt];
                Fgt, "fgt", 2, Pure, mirror: Flt, inverse: none, gives: bit, calls: none, access: none, fields: None, [F32 I32 F32Gt, F64 I32 F64Gt];
                Fle, "fle", 2, Pure, mirror: Fge, inverse: none, gives: bit, calls: none, access: none, fields: None, [F32 I32 F32Le, F64 I32 F64Le];
                Fge, "fge", 2, Pure, mirror: Fle, inverse: none, gives: bit, calls: none, access: none, fields: None, [F32 I32 F32Ge, F64 I32 F64Ge];
            }
            /// Conversions.
            Convert {
                Wrap, "wrap", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [I64 I32 I32WrapI64];
                ExtendS, "extend_s", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 I64 I64ExtendI32S];
                ExtendU, "extend_u", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 I64 I64ExtendI32U];
                TruncS, "trunc_s", 1, Trap, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [F32 I32 I32TruncF32S, F64 I32 I32TruncF64S, F32 I64 I64TruncF32S, F64 I64 I64TruncF64S];
                TruncU, "trunc_u", 1, Trap, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [F32 I32 I32TruncF32U, F64 I32 I32TruncF64U, F32 I64 I64TruncF32U, F64 I64 I64TruncF64U];
                TruncSatS, "trunc_sat_s", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [F32 I32 I32TruncSatF32S, F64 I32 I32TruncSatF64S, F32 I64 I64TruncSatF32S, F64 I64 I64TruncSatF64S];
                TruncSatU, "trunc_sat_u", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [F32 I32 I32TruncSatF32U, F64 I32 I32TruncSatF64U, F32 I64 I64TruncSatF32U, F64 I64 I64TruncSatF64U];
                ConvertS, "convert_s", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 F32 F32ConvertI32S, I64 F32 F32ConvertI64S, I32 F64 F64ConvertI32S, I64 F64 F64ConvertI64S];
                ConvertU, "convert_u", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [I32 F32 F32ConvertI32U, I64 F32 F32ConvertI64U, I32 F64 F64ConvertI32U, I64 F64 F64ConvertI64U];
                Demote, "demote", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [F64 F32 F32DemoteF64];
                Promote, "promote", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [F32 F64 F64PromoteF32];
                Reinterpret, "reinterpret", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [F32 I32 I32ReinterpretF32, F64 I64 I64ReinterpretF64, I32 F32 F32ReinterpretI32, I64 F64 F64ReinterpretI64];
            }
            /// References: a pointer, or 0 for null.
            Reference {
                // Its argument; traps if that is null.
                NonNull, "non_null", 1, Trap, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [];
                RefIsNull, "ref_is_null", 1, Pure, mirror: none, inverse: none, gives: bit, calls: none, access: none, fields: None, [];
                // Guards of inlined calls: 0 if the element of a table, or the function that a reference refers to, is function aux of
                // this instance; otherwise any other number. imm is the table; the argument is the index, or a reference that has been
                // proved not to be null.
                ElementDiffers, "element_differs", 1, ReadTrap, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: Element, [];
                FuncDiffers, "func_differs", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: Func, [];
                // aux is the function.
                RefFunc, "ref_func", 0, Pure, mirror: none, inverse: none, gives: any, calls: RefFunc, access: none, fields: Func, [];
            }
            /// Vectors.
            Simd {
                // aux is the code of the Wasm instruction, imm its lane. `v128.const` has its two halves as arguments instead
                // of an immediate, the lower first, and `i8x16.shuffle` has its lanes as the third argument; all these are
                // constants. A memory access of fewer than 16 bytes is a load or a store and one of these. If the value is a
                // v256, the instruction applies to each half of its vectors. One that widens the lower half of a v128 gives a v256
                // if it widens both.
                Vector, "vector", *, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: Vector, [];
                // The lower (imm 0) or upper (imm 1) half of a v256.
                Half, "half", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: Number, [];
                // The v256 with these two v128 as its halves, the lower first.
                Join, "join", 2, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [];
                // The last imm bytes of one v256 before the first bytes of another one; a lane of one and all others of the other.
                Splice, "splice", 2, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: Number, [];
            }
            /// Loads: `[address]`; imm is the offset, aux the memory.
            Load {
                Load, "load", 1, ReadTrap, mirror: none, inverse: none, gives: any, calls: none, access: all, fields: Access, [I32 I32 I32Load, I64 I64 I64Load, F32 F32 F32Load, F64 F64 F64Load, V128 V128 V128Load];
                Load8S, "load8_s", 1, ReadTrap, mirror: none, inverse: none, gives: any, calls: none, access: 1, fields: Access, [I32 I32 I32Load8S, I64 I64 I64Load8S];
                Load8U, "load8_u", 1, ReadTrap, mirror: none, inverse: none, gives: any, calls: none, access: 1, fields: Access, [I32 I32 I32Load8U, I64 I64 I64Load8U];
                Load16S, "load16_s", 1, ReadTrap, mirror: none, inverse: none, gives: any, calls: none, access: 2, fields: Access, [I32 I32 I32Load16S, I64 I64 I64Load16S];
                Load16U, "load16_u", 1, ReadTrap, mirror: none, inverse: none, gives: any, calls: none, access: 2, fields: Access, [I32 I32 I32Load16U, I64 I64 I64Load16U];
                Load32S, "load32_s", 1, ReadTrap, mirror: none, inverse: none, gives: any, calls: none, access: 4, fields: Access, [I64 I64 I64Load32S];
                Load32U, "load32_u", 1, ReadTrap, mirror: none, inverse: none, gives: any, calls: none, access: 4, fields: Access, [I64 I64 I64Load32U, V128 V128 V128Load32Zero];
                Load64U, "load64_u", 1, ReadTrap, mirror: none, inverse: none, gives: any, calls: none, access: 8, fields: Access, [V128 V128 V128Load64Zero];
            }
            /// Stores: [address, value]; imm is the offset, aux the memory.
            Store {
                Store, "store", 2, Write, mirror: none, inverse: none, gives: any, calls: none, access: all, fields: Access, [I32 I32 I32Store, I64 I64 I64Store, F32 F32 F32Store, F64 F64 F64Store, V128 V128 V128Store];
                Store8, "store8", 2, Write, mirror: none, inverse: none, gives: any, calls: none, access: 1, fields: Access, [I32 I32 I32Store8, I64 I64 I64Store8];
                Store16, "store16", 2, Write, mirror: none, inverse: none, gives: any, calls: none, access: 2, fields: Access, [I32 I32 I32Store16, I64 I64 I64Store16];
                Store32, "store32", 2, Write, mirror: none, inverse: none, gives: any, calls: none, access: 4, fields: Access, [I64 I64 I64Store32];
            }
            /// Memories: aux is the memory; for copy, imm is the source memory; for init and data_drop, imm is the segment.
            /// Addresses, sizes and lengths have the memory's index type (memory.copy: the length has the smaller of the two).
            Memory {
                MemorySize, "memory_size", 0, Read, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: Memory, [];
                MemoryGrow, "memory_grow", 1, Write, mirror: none, inverse: none, gives: any, calls: MemoryGrow, access: none, fields: Memory, [];
                MemoryFill, "memory_fill", 3, Write, mirror: none, inverse: none, gives: any, calls: MemoryFill, access: none, fields: Memory, [];
                MemoryCopy, "memory_copy", 3, Write, mirror: none, inverse: none, gives: any, calls: MemoryCopy, access: none, fields: Memories, [];
                MemoryInit, "memory_init", 3, Write, mirror: none, inverse: none, gives: any, calls: MemoryInit, access: none, fields: MemorySegment, [];
                DataDrop, "data_drop", 0, Write, mirror: none, inverse: none, gives: any, calls: DataDrop, access: none, fields: Segment, [];
            }
            /// Globals: aux is the global.
            Global {
                GlobalGet, "global_get", 0, Read, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: Global, [];
                GlobalSet, "global_set", 1, Write, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: Global, [];
            }
            /// Tables: aux is the table; for copy, imm is the source table; for init and elem_drop, imm is the segment.
            /// Indices, sizes and lengths have the table's index type (table.copy: the length has the smaller of the two).
            /// Operands are in the order of the operand stack: get `[index]`, set [index, reference], grow [reference, delta],
            /// fill [index, reference, length].
            Table {
                TableGet, "table_get", 1, ReadTrap, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: Table, [];
                TableSet, "table_set", 2, Write, mirror: none, inverse: none, gives: any, calls: TableSet, access: none, fields: Table, [];
                TableSize, "table_size", 0, Read, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: Table, [];
                TableGrow, "table_grow", 2, Write, mirror: none, inverse: none, gives: any, calls: TableGrow, access: none, fields: Table, [];
                TableFill, "table_fill", 3, Write, mirror: none, inverse: none, gives: any, calls: TableFill, access: none, fields: Table, [];
                TableCopy, "table_copy", 3, Write, mirror: none, inverse: none, gives: any, calls: TableCopy, access: none, fields: Tables, [];
                TableInit, "table_init", 3, Write, mirror: none, inverse: none, gives: any, calls: TableInit, access: none, fields: TableSegment, [];
                ElemDrop, "elem_drop", 0, Write, mirror: none, inverse: none, gives: any, calls: ElemDrop, access: none, fields: ElemSegment, [];
            }
            /// Calls that return here. The value is the first result (void if there is none); `result` reads the others. aux is
            /// the function, or the type index with the table in imm; the table index is the *last* argument, as on the operand
            /// stack. The reference of `call_ref`, which has been proved not to be null, is also the last argument.
            Call {
                Call, "call", *, Write, mirror: none, inverse: none, gives: any, calls: function, access: none, fields: Func, [];
                CallIndirect, "call_indirect", *, Write, mirror: none, inverse: none, gives: any, calls: function, access: none, fields: Indirect, [];
                CallRef, "call_ref", *, Write, mirror: none, inverse: none, gives: any, calls: function, access: none, fields: Type, [];
            }
            /// The head of a *landing block*, to which exceptions lead, after its phis. imm is the index of the handler's branch
            /// entry, aux its tag or `NO_TAG`. The value is the first of the payload and the reference that the handler passes on (void if there are none);
            /// `result` reads the others.
            Exception {
                Catch, "catch", 0, Write, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: Handler, [];
            }
            /// Accounting, as the contract defines it. `fuel`: imm is the cost. `osr_tick`: imm is the work, the value is the number of
            /// ticks that are left. `osr_target`: imm is the index of a loop, the value is the address at which the frame continues, or
            /// 0. `osr_store`: imm is the frame slot, as of `osr_slot`; only before an `osr_exit`. `fuel_left`: the fuel. `epoch` and
            /// `deadline`: a poll calls the host if the first is not below the second. `miss`: a guard has failed that
            /// should hold, by the profile of function aux.
            Accounting {
                Fuel, "fuel", 0, Write, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: Number, [];
                Poll, "poll", 0, Write, mirror: none, inverse: none, gives: any, calls: poll, access: none, fields: None, [];
                OsrTick, "osr_tick", 0, Write, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: Number, [];
                OsrTarget, "osr_target", 0, Write, mirror: none, inverse: none, gives: any, calls: OsrTarget, access: none, fields: Number, [];
                FuelLeft, "fuel_left", 0, Read, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [];
                Epoch, "epoch", 0, Read, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [];
                Deadline, "deadline", 0, Read, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [];
                Miss, "miss", 0, Write, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: Func, [];
                OsrStore, "osr_store", 1, Write, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: Number, [];
            }
            /// The ends of blocks; the successors belong to the block. `branch`: `[condition]`, successors [if non-zero, if
            /// zero]. `br_table`: `[index]`; the last successor is the default. `trap`: aux is the trap's code. Calls have the
            /// fields given above. `osr_exit`: `[address]`, where the frame continues; imm is the index of the loop.
            ///
            /// `throw`: the payload; aux is the tag. `throw_ref`: `[reference]`, which has been proved not to be null. `try`: directly
            /// follows a call and its results. Its last successor is the *normal* one. All other successors of these three are landing
            /// blocks, in the order in which the exception's handlers are tried; no other edge leads to a landing block. An edge to a
            /// landing block leaves from the call, whose results it does not have.
            Terminator {
                Jump, "jump", 0, Terminator, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [];
                Branch, "branch", 1, Terminator, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: Probability, [];
                BrTable, "br_table", 1, Terminator, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [];
                Return, "return", *, Terminator, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [];
                ReturnCall, "return_call", *, Terminator, mirror: none, inverse: none, gives: any, calls: tail, access: none, fields: Func, [];
                ReturnCallIndirect, "return_call_indirect", *, Terminator, mirror: none, inverse: none, gives: any, calls: tail, access: none, fields: Indirect, [];
                ReturnCallRef, "return_call_ref", *, Terminator, mirror: none, inverse: none, gives: any, calls: tail, access: none, fields: Type, [];
                OsrExit, "osr_exit", 1, Terminator, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: Number, [];
                Throw, "throw", *, Terminator, mirror: none, inverse: none, gives: any, calls: Throw, access: none, fields: Tag, [];
                ThrowRef, "throw_ref", 1, Terminator, mirror: none, inverse: none, gives: any, calls: ThrowRef, access: none, fields: None, [];
                Try, "try", 0, Terminator, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: None, [];
                Trap, "trap", 0, Terminator, mirror: none, inverse: none, gives: any, calls: none, access: none, fields: Trap, [];
            }
        }
    };
}

/// The kind of call that an operation becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Calls {
    /// It is not a call.
    None,
    /// A call of a function, which returns here.
    Function,
    /// A tail call of a function.
    Tail,
    /// A call of a helper of the runtime.
    Helper(Helper),
    /// A call of [`Helper::Poll`] when the deadline is reached; it preserves all registers.
    Poll,
}

/// The bytes in memory that an operation accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Access {
    /// None: it is neither a load nor a store.
    None,
    /// As many as its value has.
    All,
    /// This many.
    Bytes(u32),
}

macro_rules! arity {
    (*) => {
        None
    };
    ($n:literal) => {
        Some($n)
    };
}

macro_rules! other_op {
    (none) => {
        None
    };
    ($name:ident) => {
        Some(Op::$name)
    };
}

macro_rules! gives_bit {
    (any) => {
        false
    };
    (bit) => {
        true
    };
}

macro_rules! calls {
    (none) => {
        Calls::None
    };
    (function) => {
        Calls::Function
    };
    (tail) => {
        Calls::Tail
    };
    (poll) => {
        Calls::Poll
    };
    ($helper:ident) => {
        Calls::Helper(Helper::$helper)
    };
}

macro_rules! access {
    (none) => {
        Access::None
    };
    (all) => {
        Access::All
    };
    ($bytes:literal) => {
        Access::Bytes($bytes)
    };
}

macro_rules! define_ops {
    ($($(#[$about:meta])* $family:ident {
        $($name:ident, $text:literal, $arity:tt, $effect:ident,
        mirror: $mirror:ident, inverse: $inverse:ident, gives: $gives:ident, calls: $calls:ident, access: $access:tt,
        fields: $fields:ident, [$($operand:ident $result:ident $opcode:ident),*];)*
    })*) => {
        /// An SSA operation.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Op {
            $($(#[doc = concat!("`", $text, "`")] $name,)*)*
        }

        /// The enum of each family.
        pub mod family {
            use super::Op;

            /// An operation as a variant of its family.
            #[derive(Clone, Copy, PartialEq, Eq, Debug)]
            pub enum Family {
                $($(#[$about])* $family($family),)*
            }

            $(
                $(#[$about])*
                #[derive(Clone, Copy, PartialEq, Eq, Debug)]
                pub enum $family {
                    $(#[doc = concat!("`", $text, "`")] $name,)*
                }

                impl From<$family> for Op {
                    #[inline]
                    fn from(op: $family) -> Op {
                        match op {
                            $($family::$name => Op::$name,)*
                        }
                    }
                }
            )*

            impl Op {
                /// The operation as a variant of its family.
                #[inline(always)]
                pub const fn family(self) -> Family {
                    match self {
                        $($(Op::$name => Family::$family($family::$name),)*)*
                    }
                }
            }
        }

        impl Op {
            /// Every operation, in the order of TABLE 2.
            pub const ALL: &'static [Op] = &[$($(Op::$name,)*)*];

            /// Its name in the textual form.
            pub const fn name(self) -> &'static str {
                match self {
                    $($(Op::$name => $text,)*)*
                }
            }

            /// The number of arguments, or `None` for a list.
            pub const fn arity(self) -> Option<usize> {
                match self {
                    $($(Op::$name => arity!($arity),)*)*
                }
            }

            /// Its side effects.
            #[inline(always)]
            pub const fn effect(self) -> Effect {
                match self {
                    $($(Op::$name => Effect::$effect,)*)*
                }
            }

            /// The operation that computes the same with its two arguments exchanged.
            #[inline(always)]
            pub const fn mirror(self) -> Option<Op> {
                match self {
                    $($(Op::$name => other_op!($mirror),)*)*
                }
            }

            /// The comparison that is true exactly where this one is false.
            #[inline(always)]
            pub const fn inverse(self) -> Option<Op> {
                match self {
                    $($(Op::$name => other_op!($inverse),)*)*
                }
            }

            /// Whether its value is always 0 or 1.
            #[inline(always)]
            pub const fn is_boolean(self) -> bool {
                match self {
                    $($(Op::$name => gives_bit!($gives),)*)*
                }
            }

            /// The kind of call that it becomes.
            #[inline(always)]
            pub const fn calls(self) -> Calls {
                match self {
                    $($(Op::$name => calls!($calls),)*)*
                }
            }

            #[inline(always)]
            const fn access(self) -> Access {
                match self {
                    $($(Op::$name => access!($access),)*)*
                }
            }

            /// The meaning of `aux` and `imm`.
            #[inline(always)]
            pub const fn fields(self) -> Fields {
                match self {
                    $($(Op::$name => Fields::$fields,)*)*
                }
            }

            /// The Wasm instruction that defines it at these types, if it is numeric or an access; for v256, the one that defines
            /// it for each half.
            pub const fn opcode(self, operand: Type, result: Type) -> Option<Opcode> {
                match (self, operand.half(), result.half()) {
                    $($($((Op::$name, Type::$operand, Type::$result) => Some(Opcode::$opcode),)*)*)*
                    _ => None,
                }
            }

            /// The operation, operand type and result type of a numeric instruction, load or store.
            pub const fn from_opcode(opcode: Opcode) -> Option<(Op, Type, Type)> {
                match opcode {
                    $($($(Opcode::$opcode => Some((Op::$name, Type::$operand, Type::$result)),)*)*)*
                    _ => None,
                }
            }

            /// The operation with this name.
            pub fn from_name(name: &str) -> Option<Op> {
                match name {
                    $($($text => Some(Op::$name),)*)*
                    _ => None,
                }
            }
        }
    };
}

for_each_op!(define_ops);

impl Op {
    /// Whether no code is emitted at its position: constants are materialised at their uses, and the other such values are
    /// defined by the entry, by edges or by calls.
    pub const fn is_defined_elsewhere(self) -> bool {
        match self.family() {
            family::Family::Leaf(leaf) => match leaf {
                family::Leaf::Const | family::Leaf::Param | family::Leaf::Phi | family::Leaf::Result => true,
                family::Leaf::OsrSlot | family::Leaf::Select => false,
            },
            family::Family::Integer(_) | family::Family::Bits(_) | family::Family::Compare(_) => false,
            family::Family::Float(_) | family::Family::FloatUnary(_) | family::Family::FloatCompare(_) => false,
            family::Family::Convert(_) | family::Family::Reference(_) | family::Family::Simd(_) => false,
            family::Family::Load(_) | family::Family::Store(_) | family::Family::Memory(_) => false,
            family::Family::Global(_) | family::Family::Table(_) | family::Family::Call(_) => false,
            family::Family::Exception(_) | family::Family::Accounting(_) | family::Family::Terminator(_) => false,
        }
    }

    /// The helper that it calls. Evaluated in a `const` block, where a row without a helper does not compile.
    ///
    /// # Panics
    /// If it calls none.
    pub const fn helper(self) -> Helper {
        match self.calls() {
            Calls::Helper(helper) => helper,
            Calls::None | Calls::Function | Calls::Tail | Calls::Poll => panic!("the operation calls no helper"),
        }
    }

    /// Whether it ends a block.
    #[inline]
    pub const fn is_terminator(self) -> bool {
        matches!(self.effect(), Effect::Terminator)
    }

    /// Whether it calls a function that returns here.
    #[inline]
    pub const fn calls_function(self) -> bool {
        matches!(self.calls(), Calls::Function)
    }

    /// Whether `result` reads results of it.
    #[inline]
    pub const fn has_results(self) -> bool {
        self.calls_function() || matches!(self, Op::Catch)
    }

    /// Whether it is a tail call.
    #[inline]
    pub const fn is_tail_call(self) -> bool {
        matches!(self.calls(), Calls::Tail)
    }

    /// Whether it calls a function or a helper of the runtime, which returns.
    #[inline]
    pub const fn is_call(self) -> bool {
        matches!(self.calls(), Calls::Function | Calls::Helper(_))
    }

    /// Whether it may be removed when its value is not used.
    #[inline]
    pub const fn is_removable(self) -> bool {
        matches!(self.effect(), Effect::Pure | Effect::Read)
    }

    /// Whether the order of its two arguments does not matter.
    pub fn is_commutative(self) -> bool {
        self.mirror() == Some(self)
    }

    /// The number of bytes that a load or store accesses, or `None` for other operations. `ty` is the type of the loaded or
    /// stored value.
    #[inline]
    pub const fn access_width(self, ty: Type) -> Option<u32> {
        match self.access() {
            Access::None => None,
            Access::Bytes(bytes) => Some(bytes),
            Access::All => Some(match ty {
                Type::I32 | Type::F32 => 4,
                Type::V128 => 16,
                Type::V256 => 32,
                Type::Void | Type::I64 | Type::F64 | Type::Ref | Type::Gc => 8,
            }),
        }
    }
}

/// The vector instruction with this code (the `aux` of [`Op::Vector`]), unless it accesses memory.
pub fn vector_opcode(code: u32) -> Option<Opcode> {
    let op = u16::try_from(code).ok().and_then(Opcode::from_code)?;
    op.lanes().is_some().then_some(op)
}

/// In place of the tag of a `catch`: it catches all exceptions.
pub const NO_TAG: u32 = u32::MAX;

/// The meaning of an operation's `aux` and `imm`. A field without meaning is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fields {
    /// Neither field has a meaning.
    None,
    /// `imm` holds the bits of a constant.
    Bits,
    /// `imm` is a number: the number of a parameter, frame slot, result or loop, or a cost.
    Number,
    /// `aux` is the memory, `imm` the offset.
    Access,
    /// `aux` is the memory.
    Memory,
    /// `aux` is the destination memory, `imm` the source memory.
    Memories,
    /// `aux` is the memory, `imm` the data segment.
    MemorySegment,
    /// `imm` is the data segment.
    Segment,
    /// `aux` is the global.
    Global,
    /// `aux` is the table.
    Table,
    /// `aux` is the destination table, `imm` the source table.
    Tables,
    /// `aux` is the table, `imm` the element segment.
    TableSegment,
    /// `imm` is the element segment.
    ElemSegment,
    /// `aux` is the function.
    Func,
    /// `aux` is the function, `imm` the table.
    Element,
    /// `aux` is the type index, `imm` the table.
    Indirect,
    /// `aux` is the type index.
    Type,
    /// `aux` is the tag.
    Tag,
    /// `imm` is the index of a handler's branch entry, `aux` its tag or [`NO_TAG`].
    Handler,
    /// `aux` is the code of a [`weir_bytecode::Trap`].
    Trap,
    /// `aux` is the code of a vector instruction, `imm` its lane if it has one.
    Vector,
    /// Neither field has a meaning; the instruction's `probability` is the branch's, if known.
    Probability,
}
