//! TABLE 2: every SSA operation, one row each.
//!
//! A row is `Name, "name", arity, Effect, [operand result Opcode, …]`. Numeric operations are generic in their width:
//! each bracket entry names the Wasm instruction that gives the operation's meaning for one operand type (that of
//! argument 0) and one result type, so that `bytecode::semantics` stays the only place where meaning is written.
//! `*` as arity means a list. Loads and stores name the Wasm instruction in the same way, with the type of the value
//! that is loaded or stored in both columns.

use weir_bytecode::{Opcode, ValType};

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
    /// A reference: 8 bytes, null is 0.
    Ref,
}

impl Type {
    /// Its name in the textual form.
    pub const fn name(self) -> &'static str {
        match self {
            Type::Void => "void",
            Type::I32 => "i32",
            Type::I64 => "i64",
            Type::F32 => "f32",
            Type::F64 => "f64",
            Type::V128 => "v128",
            Type::Ref => "ref",
        }
    }

    /// The type with this name.
    pub fn from_name(name: &str) -> Option<Type> {
        [Type::Void, Type::I32, Type::I64, Type::F32, Type::F64, Type::V128, Type::Ref].into_iter().find(|ty| ty.name() == name)
    }

    /// Whether it lives in a vector register.
    pub const fn is_float(self) -> bool {
        matches!(self, Type::F32 | Type::F64 | Type::V128)
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
            ValType::Ref(_) => Type::Ref,
        }
    }
}

/// What executing an operation may do besides computing its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Nothing: equal operands give an equal value, at any time.
    Pure,
    /// It may trap, and nothing else.
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
            // Leaves. `const`: imm is the bits. `param`: imm is its number; entry block only, first. `osr_slot`: imm is
            // the frame slot (in 8-byte slots from fp); entry block of an OSR body only.
            Const, "const", 0, Pure, [];
            Param, "param", 0, Pure, [];
            OsrSlot, "osr_slot", 0, Pure, [];
            // One argument per predecessor, in the order of `preds`; at the head of its block.
            Phi, "phi", *, Pure, [];
            // Result `imm` (1 or more) of the call that is its argument, directly behind that call.
            Result, "result", 1, Pure, [];
            // condition, value if non-zero, value if zero.
            Select, "select", 3, Pure, [];

            // Integers.
            Add, "add", 2, Pure, [I32 I32 I32Add, I64 I64 I64Add];
            Sub, "sub", 2, Pure, [I32 I32 I32Sub, I64 I64 I64Sub];
            Mul, "mul", 2, Pure, [I32 I32 I32Mul, I64 I64 I64Mul];
            // The high half of what the instruction gives: the low half is `mul`.
            MulHigh, "mul_high", 2, Pure, [I64 I64 I64MulWideU];
            DivS, "div_s", 2, Trap, [I32 I32 I32DivS, I64 I64 I64DivS];
            DivU, "div_u", 2, Trap, [I32 I32 I32DivU, I64 I64 I64DivU];
            RemS, "rem_s", 2, Trap, [I32 I32 I32RemS, I64 I64 I64RemS];
            RemU, "rem_u", 2, Trap, [I32 I32 I32RemU, I64 I64 I64RemU];
            And, "and", 2, Pure, [I32 I32 I32And, I64 I64 I64And];
            Or, "or", 2, Pure, [I32 I32 I32Or, I64 I64 I64Or];
            Xor, "xor", 2, Pure, [I32 I32 I32Xor, I64 I64 I64Xor];
            Shl, "shl", 2, Pure, [I32 I32 I32Shl, I64 I64 I64Shl];
            ShrS, "shr_s", 2, Pure, [I32 I32 I32ShrS, I64 I64 I64ShrS];
            ShrU, "shr_u", 2, Pure, [I32 I32 I32ShrU, I64 I64 I64ShrU];
            Rotl, "rotl", 2, Pure, [I32 I32 I32Rotl, I64 I64 I64Rotl];
            Rotr, "rotr", 2, Pure, [I32 I32 I32Rotr, I64 I64 I64Rotr];
            Clz, "clz", 1, Pure, [I32 I32 I32Clz, I64 I64 I64Clz];
            Ctz, "ctz", 1, Pure, [I32 I32 I32Ctz, I64 I64 I64Ctz];
            Popcnt, "popcnt", 1, Pure, [I32 I32 I32Popcnt, I64 I64 I64Popcnt];
            Eqz, "eqz", 1, Pure, [I32 I32 I32Eqz, I64 I32 I64Eqz];
            Eq, "eq", 2, Pure, [I32 I32 I32Eq, I64 I32 I64Eq];
            Ne, "ne", 2, Pure, [I32 I32 I32Ne, I64 I32 I64Ne];
            LtS, "lt_s", 2, Pure, [I32 I32 I32LtS, I64 I32 I64LtS];
            LtU, "lt_u", 2, Pure, [I32 I32 I32LtU, I64 I32 I64LtU];
            GtS, "gt_s", 2, Pure, [I32 I32 I32GtS, I64 I32 I64GtS];
            GtU, "gt_u", 2, Pure, [I32 I32 I32GtU, I64 I32 I64GtU];
            LeS, "le_s", 2, Pure, [I32 I32 I32LeS, I64 I32 I64LeS];
            LeU, "le_u", 2, Pure, [I32 I32 I32LeU, I64 I32 I64LeU];
            GeS, "ge_s", 2, Pure, [I32 I32 I32GeS, I64 I32 I64GeS];
            GeU, "ge_u", 2, Pure, [I32 I32 I32GeU, I64 I32 I64GeU];

            // Floats.
            Fadd, "fadd", 2, Pure, [F32 F32 F32Add, F64 F64 F64Add];
            Fsub, "fsub", 2, Pure, [F32 F32 F32Sub, F64 F64 F64Sub];
            Fmul, "fmul", 2, Pure, [F32 F32 F32Mul, F64 F64 F64Mul];
            Fdiv, "fdiv", 2, Pure, [F32 F32 F32Div, F64 F64 F64Div];
            Fmin, "fmin", 2, Pure, [F32 F32 F32Min, F64 F64 F64Min];
            Fmax, "fmax", 2, Pure, [F32 F32 F32Max, F64 F64 F64Max];
            Fcopysign, "fcopysign", 2, Pure, [F32 F32 F32Copysign, F64 F64 F64Copysign];
            Fabs, "fabs", 1, Pure, [F32 F32 F32Abs, F64 F64 F64Abs];
            Fneg, "fneg", 1, Pure, [F32 F32 F32Neg, F64 F64 F64Neg];
            Fceil, "fceil", 1, Pure, [F32 F32 F32Ceil, F64 F64 F64Ceil];
            Ffloor, "ffloor", 1, Pure, [F32 F32 F32Floor, F64 F64 F64Floor];
            Ftrunc, "ftrunc", 1, Pure, [F32 F32 F32Trunc, F64 F64 F64Trunc];
            Fnearest, "fnearest", 1, Pure, [F32 F32 F32Nearest, F64 F64 F64Nearest];
            Fsqrt, "fsqrt", 1, Pure, [F32 F32 F32Sqrt, F64 F64 F64Sqrt];
            Feq, "feq", 2, Pure, [F32 I32 F32Eq, F64 I32 F64Eq];
            Fne, "fne", 2, Pure, [F32 I32 F32Ne, F64 I32 F64Ne];
            Flt, "flt", 2, Pure, [F32 I32 F32Lt, F64 I32 F64Lt];
            Fgt, "fgt", 2, Pure, [F32 I32 F32Gt, F64 I32 F64Gt];
            Fle, "fle", 2, Pure, [F32 I32 F32Le, F64 I32 F64Le];
            Fge, "fge", 2, Pure, [F32 I32 F32Ge, F64 I32 F64Ge];

            // Conversions.
            Wrap, "wrap", 1, Pure, [I64 I32 I32WrapI64];
            ExtendS, "extend_s", 1, Pure, [I32 I64 I64ExtendI32S];
            ExtendU, "extend_u", 1, Pure, [I32 I64 I64ExtendI32U];
            Sext8, "sext8", 1, Pure, [I32 I32 I32Extend8S, I64 I64 I64Extend8S];
            Sext16, "sext16", 1, Pure, [I32 I32 I32Extend16S, I64 I64 I64Extend16S];
            Sext32, "sext32", 1, Pure, [I64 I64 I64Extend32S];
            TruncS, "trunc_s", 1, Trap, [F32 I32 I32TruncF32S, F64 I32 I32TruncF64S, F32 I64 I64TruncF32S, F64 I64 I64TruncF64S];
            TruncU, "trunc_u", 1, Trap, [F32 I32 I32TruncF32U, F64 I32 I32TruncF64U, F32 I64 I64TruncF32U, F64 I64 I64TruncF64U];
            TruncSatS, "trunc_sat_s", 1, Pure, [F32 I32 I32TruncSatF32S, F64 I32 I32TruncSatF64S, F32 I64 I64TruncSatF32S, F64 I64 I64TruncSatF64S];
            TruncSatU, "trunc_sat_u", 1, Pure, [F32 I32 I32TruncSatF32U, F64 I32 I32TruncSatF64U, F32 I64 I64TruncSatF32U, F64 I64 I64TruncSatF64U];
            ConvertS, "convert_s", 1, Pure, [I32 F32 F32ConvertI32S, I64 F32 F32ConvertI64S, I32 F64 F64ConvertI32S, I64 F64 F64ConvertI64S];
            ConvertU, "convert_u", 1, Pure, [I32 F32 F32ConvertI32U, I64 F32 F32ConvertI64U, I32 F64 F64ConvertI32U, I64 F64 F64ConvertI64U];
            Demote, "demote", 1, Pure, [F64 F32 F32DemoteF64];
            Promote, "promote", 1, Pure, [F32 F64 F64PromoteF32];
            Reinterpret, "reinterpret", 1, Pure, [F32 I32 I32ReinterpretF32, F64 I64 I64ReinterpretF64, I32 F32 F32ReinterpretI32, I64 F64 F64ReinterpretI64];

            // References. Its argument, which is not null.
            NonNull, "non_null", 1, Trap, [];

            // Vectors: aux is the code of the Wasm instruction, imm its lane. Instead of immediates, `v128.const` has
            // its two halves for arguments, the lower first, and `i8x16.shuffle` has the lanes for its third, all constants.
            // Accesses to memory other than of all 16 bytes are a load or a store with one of these.
            Vector, "vector", *, Pure, [];

            // Memory. Loads: [address]; stores: [address, value]. imm is the offset, aux the memory.
            Load, "load", 1, ReadTrap, [I32 I32 I32Load, I64 I64 I64Load, F32 F32 F32Load, F64 F64 F64Load, V128 V128 V128Load];
            Load8S, "load8_s", 1, ReadTrap, [I32 I32 I32Load8S, I64 I64 I64Load8S];
            Load8U, "load8_u", 1, ReadTrap, [I32 I32 I32Load8U, I64 I64 I64Load8U];
            Load16S, "load16_s", 1, ReadTrap, [I32 I32 I32Load16S, I64 I64 I64Load16S];
            Load16U, "load16_u", 1, ReadTrap, [I32 I32 I32Load16U, I64 I64 I64Load16U];
            Load32S, "load32_s", 1, ReadTrap, [I64 I64 I64Load32S];
            Load32U, "load32_u", 1, ReadTrap, [I64 I64 I64Load32U, V128 V128 V128Load32Zero];
            Load64U, "load64_u", 1, ReadTrap, [V128 V128 V128Load64Zero];
            Store, "store", 2, Write, [I32 I32 I32Store, I64 I64 I64Store, F32 F32 F32Store, F64 F64 F64Store, V128 V128 V128Store];
            Store8, "store8", 2, Write, [I32 I32 I32Store8, I64 I64 I64Store8];
            Store16, "store16", 2, Write, [I32 I32 I32Store16, I64 I64 I64Store16];
            Store32, "store32", 2, Write, [I64 I64 I64Store32];
            // aux is the memory; for copy, imm is the source memory; for init and data_drop, imm is the segment.
            // Addresses, sizes and lengths have the memory's index type (memory.copy: the length has the smaller one).
            MemorySize, "memory_size", 0, Read, [];
            MemoryGrow, "memory_grow", 1, Write, [];
            MemoryFill, "memory_fill", 3, Write, [];
            MemoryCopy, "memory_copy", 3, Write, [];
            MemoryInit, "memory_init", 3, Write, [];
            DataDrop, "data_drop", 0, Write, [];

            // Globals: aux is the global.
            GlobalGet, "global_get", 0, Read, [];
            GlobalSet, "global_set", 1, Write, [];

            // References. A reference is a pointer or 0 for null; `ref_func`: aux is the function.
            RefIsNull, "ref_is_null", 1, Pure, [];
            RefFunc, "ref_func", 0, Pure, [];

            // Tables: aux is the table; for copy, imm is the source table; for init and elem_drop, imm is the segment.
            // Indices, sizes and lengths have the table's index type (table.copy: the length has the smaller one). Operands
            // stand in the order of the operand stack: get [index], set [index, reference], grow [reference, delta],
            // fill [index, reference, length].
            TableGet, "table_get", 1, ReadTrap, [];
            TableSet, "table_set", 2, Write, [];
            TableSize, "table_size", 0, Read, [];
            TableGrow, "table_grow", 2, Write, [];
            TableFill, "table_fill", 3, Write, [];
            TableCopy, "table_copy", 3, Write, [];
            TableInit, "table_init", 3, Write, [];
            ElemDrop, "elem_drop", 0, Write, [];

            // Calls: the value is the first result (void if none), `result` reads the others. aux is the function, or
            // the type index with imm the table; the table index is the *last* argument, as on the operand stack, and so is
            // the reference, proved not to be null, of `call_ref`.
            Call, "call", *, Write, [];
            CallIndirect, "call_indirect", *, Write, [];
            CallRef, "call_ref", *, Write, [];

            // Accounting: see the contract. `fuel`: imm is the cost.
            Fuel, "fuel", 0, Write, [];
            Poll, "poll", 0, Write, [];

            // Terminators. Successors stand in the block. `branch`: [condition], successors [if non-zero, if zero], with the probability of the first.
            // `br_table`: [index], last successor is the default. `trap`: aux is the trap's code.
            Jump, "jump", 0, Terminator, [];
            Branch, "branch", 1, Terminator, [];
            BrTable, "br_table", 1, Terminator, [];
            Return, "return", *, Terminator, [];
            ReturnCall, "return_call", *, Terminator, [];
            ReturnCallIndirect, "return_call_indirect", *, Terminator, [];
            ReturnCallRef, "return_call_ref", *, Terminator, [];
            Trap, "trap", 0, Terminator, [];
        }
    };
}

macro_rules! arity {
    (*) => {
        None
    };
    ($n:literal) => {
        Some($n)
    };
}

macro_rules! define_ops {
    ($($name:ident, $text:literal, $arity:tt, $effect:ident, [$($operand:ident $result:ident $opcode:ident),*];)*) => {
        /// An SSA operation.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Op {
            $(#[doc = concat!("`", $text, "`")] $name,)*
        }

        impl Op {
            /// Every operation, in the order of TABLE 2.
            pub const ALL: &'static [Op] = &[$(Op::$name,)*];

            /// Its name in the textual form.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Op::$name => $text,)*
                }
            }

            /// How many arguments it has; `None` for a list.
            pub const fn arity(self) -> Option<usize> {
                match self {
                    $(Op::$name => arity!($arity),)*
                }
            }

            /// What else it does.
            #[inline]
            pub const fn effect(self) -> Effect {
                match self {
                    $(Op::$name => Effect::$effect,)*
                }
            }

            /// The Wasm instruction that gives its meaning at these types, if it is numeric or an access.
            pub const fn opcode(self, operand: Type, result: Type) -> Option<Opcode> {
                match (self, operand, result) {
                    $($((Op::$name, Type::$operand, Type::$result) => Some(Opcode::$opcode),)*)*
                    _ => None,
                }
            }

            /// The operation and the operand and result types that stand for a numeric instruction, load or store.
            pub const fn from_opcode(opcode: Opcode) -> Option<(Op, Type, Type)> {
                match opcode {
                    $($(Opcode::$opcode => Some((Op::$name, Type::$operand, Type::$result)),)*)*
                    _ => None,
                }
            }

            /// The operation with this name.
            pub fn from_name(name: &str) -> Option<Op> {
                match name {
                    $($text => Some(Op::$name),)*
                    _ => None,
                }
            }
        }
    };
}

for_each_op!(define_ops);

impl Op {
    /// Whether it ends a block.
    #[inline]
    pub const fn is_terminator(self) -> bool {
        matches!(self.effect(), Effect::Terminator)
    }

    /// Whether it calls a function that returns here.
    pub const fn calls_function(self) -> bool {
        matches!(self, Op::Call | Op::CallIndirect | Op::CallRef)
    }

    /// Whether it calls a function in place of the one it stands in.
    pub const fn is_tail_call(self) -> bool {
        matches!(self, Op::ReturnCall | Op::ReturnCallIndirect | Op::ReturnCallRef)
    }

    /// Whether it may be deleted when nothing uses its value.
    pub const fn is_removable(self) -> bool {
        matches!(self.effect(), Effect::Pure | Effect::Read)
    }

    /// Whether the order of its two arguments does not matter.
    pub const fn is_commutative(self) -> bool {
        matches!(self, Op::Add | Op::Mul | Op::MulHigh | Op::And | Op::Or | Op::Xor)
            || matches!(self, Op::Eq | Op::Ne | Op::Fadd | Op::Fmul | Op::Feq | Op::Fne)
    }

    /// The operation that computes the same from its two arguments exchanged.
    pub const fn swapped(self) -> Option<Op> {
        Some(match self {
            Op::LtS => Op::GtS,
            Op::LtU => Op::GtU,
            Op::GtS => Op::LtS,
            Op::GtU => Op::LtU,
            Op::LeS => Op::GeS,
            Op::LeU => Op::GeU,
            Op::GeS => Op::LeS,
            Op::GeU => Op::LeU,
            Op::Flt => Op::Fgt,
            Op::Fgt => Op::Flt,
            Op::Fle => Op::Fge,
            Op::Fge => Op::Fle,
            _ if self.is_commutative() => self,
            _ => return None,
        })
    }

    /// The comparison that holds exactly where this one does not. Orders of floats have none: NaN fails them all.
    pub const fn inverse(self) -> Option<Op> {
        Some(match self {
            Op::Eq => Op::Ne,
            Op::Ne => Op::Eq,
            Op::LtS => Op::GeS,
            Op::LtU => Op::GeU,
            Op::GtS => Op::LeS,
            Op::GtU => Op::LeU,
            Op::LeS => Op::GtS,
            Op::LeU => Op::GtU,
            Op::GeS => Op::LtS,
            Op::GeU => Op::LtU,
            Op::Feq => Op::Fne,
            Op::Fne => Op::Feq,
            _ => return None,
        })
    }

    /// Whether it calls a function or a helper of the runtime, and comes back.
    pub const fn is_call(self) -> bool {
        self.calls_function()
            || matches!(self, Op::RefFunc)
            || matches!(self, Op::MemoryGrow | Op::MemoryFill | Op::MemoryCopy | Op::MemoryInit | Op::DataDrop)
            || matches!(self, Op::TableSet | Op::TableGrow | Op::TableFill | Op::TableCopy | Op::TableInit | Op::ElemDrop)
    }

    /// Whether its value is always 0 or 1.
    pub const fn is_boolean(self) -> bool {
        matches!(self, Op::Eqz | Op::RefIsNull | Op::Flt | Op::Fgt | Op::Fle | Op::Fge) || self.inverse().is_some()
    }

    /// Bytes that a load or store touches, `None` for everything else. `ty` is the type of the loaded or stored value.
    pub const fn access_width(self, ty: Type) -> Option<u32> {
        match self {
            Op::Load8S | Op::Load8U | Op::Store8 => Some(1),
            Op::Load16S | Op::Load16U | Op::Store16 => Some(2),
            Op::Load32S | Op::Load32U | Op::Store32 => Some(4),
            Op::Load64U => Some(8),
            Op::Load | Op::Store => Some(match ty {
                Type::I32 | Type::F32 => 4,
                Type::V128 => 16,
                _ => 8,
            }),
            _ => None,
        }
    }
}

/// The instruction on vectors with this code, which `aux` of [`Op::Vector`] is, unless it accesses memory.
pub fn vector_opcode(code: u32) -> Option<Opcode> {
    let op = u16::try_from(code).ok().and_then(Opcode::from_code)?;
    (op.is_vector() && op.signature().is_some()).then_some(op)
}

/// What `aux` and `imm` of an operation mean. A field that has no meaning is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fields {
    /// Neither has one.
    None,
    /// `imm` holds the bits of a constant.
    Bits,
    /// `imm` is a number: of a parameter, frame slot or result, or a cost.
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
    /// `aux` is the type index, `imm` the table.
    Indirect,
    /// `aux` is the type index.
    Type,
    /// `aux` is the code of a [`weir_bytecode::Trap`].
    Trap,
    /// `aux` is the code of an instruction on vectors, `imm` its lane if it has one.
    Vector,
    /// `imm` is how often of 256 times a branch goes to its first successor, 1 to 255; or 0 if that is not known.
    Probability,
}

impl Op {
    /// What its `aux` and `imm` mean.
    pub const fn fields(self) -> Fields {
        match self {
            Op::Const => Fields::Bits,
            Op::Param | Op::OsrSlot | Op::Result | Op::Fuel => Fields::Number,
            Op::Load | Op::Load8S | Op::Load8U | Op::Load16S | Op::Load16U | Op::Load32S | Op::Load32U | Op::Load64U => {
                Fields::Access
            }
            Op::Store | Op::Store8 | Op::Store16 | Op::Store32 => Fields::Access,
            Op::MemorySize | Op::MemoryGrow | Op::MemoryFill => Fields::Memory,
            Op::MemoryCopy => Fields::Memories,
            Op::MemoryInit => Fields::MemorySegment,
            Op::DataDrop => Fields::Segment,
            Op::GlobalGet | Op::GlobalSet => Fields::Global,
            Op::TableGet | Op::TableSet | Op::TableSize | Op::TableGrow | Op::TableFill => Fields::Table,
            Op::TableCopy => Fields::Tables,
            Op::TableInit => Fields::TableSegment,
            Op::ElemDrop => Fields::ElemSegment,
            Op::Call | Op::ReturnCall | Op::RefFunc => Fields::Func,
            Op::CallIndirect | Op::ReturnCallIndirect => Fields::Indirect,
            Op::CallRef | Op::ReturnCallRef => Fields::Type,
            Op::Trap => Fields::Trap,
            Op::Vector => Fields::Vector,
            Op::Branch => Fields::Probability,
            _ => Fields::None,
        }
    }
}
