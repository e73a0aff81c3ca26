//! Types as the [acceptor](super::acceptor) compares them, one byte each: the byte of the binary format.
//!
//! [`ROWS`] has the operands and results of the instructions that it knows, from TABLE 1; [`Signatures`] has those of a
//! module's functions, globals and tables.

use crate::account::flat;
use crate::opcodes::{CallKind, Control, Effect, Immediates, Opcode, StackType};
use crate::types::{FuncType, GlobalType, HeapType, MemoryType, RefType, TableType, ValType};
use std::ops::Range;

/// `i32`
pub(super) const I32: u8 = 0x7F;
/// `v128`, the last one of the types of numbers and vectors, which are those from here to [`I32`].
pub(super) const V128: u8 = 0x7B;
/// `funcref`
const FUNCREF: u8 = 0x70;
/// `externref`
const EXTERNREF: u8 = 0x6F;
/// `exnref`
pub(super) const EXNREF: u8 = 0x69;
/// The types of references that have a byte. It is that of the heap type, too.
pub(super) const REFERENCES: [u8; 3] = [FUNCREF, EXTERNREF, EXNREF];
/// No type.
pub(super) const NONE: u8 = 0;

/// The types that have a byte, by that byte.
const KNOWN: [(u8, ValType); 8] = [
    (I32, ValType::I32),
    (0x7E, ValType::I64),
    (0x7D, ValType::F32),
    (0x7C, ValType::F64),
    (V128, ValType::V128),
    (FUNCREF, ValType::FUNCREF),
    (EXTERNREF, ValType::EXTERNREF),
    (EXNREF, ValType::EXNREF),
];

/// Returns the byte of a type, or [`NONE`] if it has several.
pub(super) const fn byte(ty: ValType) -> u8 {
    match ty {
        ValType::I32 => I32,
        ValType::I64 => 0x7E,
        ValType::F32 => 0x7D,
        ValType::F64 => 0x7C,
        ValType::V128 => V128,
        ValType::Ref(RefType { nullable: true, heap: HeapType::Func }) => FUNCREF,
        ValType::Ref(RefType { nullable: true, heap: HeapType::Extern }) => EXTERNREF,
        ValType::Ref(RefType { nullable: true, heap: HeapType::Exn }) => EXNREF,
        ValType::Ref(_) => NONE,
    }
}

/// Returns the type with this byte, if one has it.
pub(super) fn value_type(byte: u8) -> Option<ValType> {
    KNOWN.iter().find(|(known, _)| *known == byte).map(|(_, ty)| *ty)
}

/// The instructions that the acceptor tells apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Those that it does not know.
    Unknown,
    /// One operand, one result, no immediates.
    Unary,
    /// Two operands, one result, no immediates.
    Binary,
    I32Const,
    I64Const,
    F32Const,
    F64Const,
    Load,
    Store,
    LocalGet,
    LocalSet,
    LocalTee,
    GlobalGet,
    GlobalSet,
    Drop,
    Select,
    SelectTyped,
    MemorySize,
    MemoryGrow,
    RefNull,
    RefIsNull,
    /// The first byte of an instruction that has a prefix.
    Prefix,
    /// An instruction after a prefix. Operands, result and immediates are in its row.
    Prefixed,
    /// One of [`CONTROLS`].
    Control,
}

/// The kind of an instruction, and the types of its operands and result if they do not depend on the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub kind: Kind,
    /// Bottom of the stack first; [`NONE`] after the last.
    pub operands: [u8; 3],
    /// [`NONE`] if there is none.
    pub result: u8,
    /// Maximum alignment of an access to memory, as a power of two.
    pub alignment: u8,
    /// Number of lanes to choose from.
    pub lanes: u8,
    /// After a prefix; elsewhere the kind decides.
    pub immediates: Immediates,
}

const UNKNOWN: Row =
    Row { kind: Kind::Unknown, operands: [NONE; 3], result: NONE, alignment: 0, lanes: 0, immediates: Immediates::None };

/// One row for each code of TABLE 1. Addresses have 32 bits.
pub(super) const ROWS: [Row; 0x400] = {
    let mut rows = [UNKNOWN; 0x400];
    let mut i = 0;
    while i < Opcode::ALL.len() {
        let op = Opcode::ALL[i];
        rows[op as usize] = if (op as u16) < 0x100 { row(op) } else { prefixed(op) };
        i += 1;
    }
    rows[0xFC].kind = Kind::Prefix;
    rows[0xFD].kind = Kind::Prefix;
    rows
};

/// By opcode of one byte; `Nop` if the instruction is not of kind [`Kind::Control`].
pub(super) const CONTROLS: [Control; 256] = {
    let mut controls = [Control::Nop; 256];
    let mut i = 0;
    while i < Opcode::ALL.len() {
        let op = Opcode::ALL[i];
        if let (Effect::Control(control), 0..0x100) = (op.effect(), op as usize) {
            controls[op as usize] = control;
        }
        i += 1;
    }
    controls
};

/// The row of an opcode of one byte.
const fn row(op: Opcode) -> Row {
    match op.effect() {
        Effect::Control(_) => Row { kind: Kind::Control, ..UNKNOWN },
        Effect::Fixed { operands, results } => {
            let kind = match (operands, results, op.immediates()) {
                ([_], [_], Immediates::None) => Kind::Unary,
                ([_, _], [_], Immediates::None) => Kind::Binary,
                ([], [_], Immediates::I32) => Kind::I32Const,
                ([], [_], Immediates::I64) => Kind::I64Const,
                ([], [_], Immediates::F32) => Kind::F32Const,
                ([], [_], Immediates::F64) => Kind::F64Const,
                // wasmparser validates it.
                _ => Kind::Unknown,
            };
            Row { kind, ..fixed(operands, results) }
        }
        Effect::Typed { operands, results } => {
            use StackType::{Address, Any, Global, Local, Named, Null, Reference, Val};
            let kind = match (operands, results, op.immediates()) {
                ([Address], [Val(_)], Immediates::MemArg) => Kind::Load,
                ([Address, Val(_)], [], Immediates::MemArg) => Kind::Store,
                ([], [Local], Immediates::Local) => Kind::LocalGet,
                ([Local], [], Immediates::Local) => Kind::LocalSet,
                ([Local], [Local], Immediates::Local) => Kind::LocalTee,
                ([], [Global], Immediates::Global) => Kind::GlobalGet,
                ([Global], [], Immediates::Global) => Kind::GlobalSet,
                ([Any], [], Immediates::None) => Kind::Drop,
                ([Any, Any, Val(_)], [Any], Immediates::None) => Kind::Select,
                ([Named, Named, Val(_)], [Named], Immediates::Types) => Kind::SelectTyped,
                ([], [Address], Immediates::Memory) => Kind::MemorySize,
                ([Address], [Address], Immediates::Memory) => Kind::MemoryGrow,
                ([], [Null], Immediates::HeapType) => Kind::RefNull,
                ([Reference], [Val(_)], Immediates::None) => Kind::RefIsNull,
                // wasmparser validates it.
                _ => Kind::Unknown,
            };
            let alignment = if matches!(op.immediates(), Immediates::MemArg) { op.access_log2() } else { 0 };
            match typed(operands, results) {
                Some(row) => Row { kind, alignment, ..row },
                None => Row { kind, ..UNKNOWN },
            }
        }
    }
}

/// The row of an opcode after a prefix, unless wasmparser is to validate it.
const fn prefixed(op: Opcode) -> Row {
    let immediates = op.immediates();
    let known = match immediates {
        Immediates::None | Immediates::MemArg | Immediates::MemArgLane | Immediates::Lane | Immediates::Shuffle => true,
        Immediates::V128 | Immediates::Memory | Immediates::MemoryMemory => true,
        Immediates::Block | Immediates::Label | Immediates::Labels | Immediates::Func | Immediates::Type => false,
        Immediates::TryTable | Immediates::Tag => false,
        Immediates::CallIndirect | Immediates::Types | Immediates::Local | Immediates::Global | Immediates::Table => false,
        Immediates::DataMemory | Immediates::Data | Immediates::ElemTable | Immediates::Elem => false,
        Immediates::TableTable | Immediates::HeapType | Immediates::I32 | Immediates::I64 => false,
        Immediates::F32 | Immediates::F64 => false,
    };
    let row = match op.effect() {
        Effect::Fixed { operands, results } if known && operands.len() <= 3 && results.len() <= 1 => fixed(operands, results),
        Effect::Typed { operands, results } if known => match typed(operands, results) {
            Some(row) => row,
            None => return UNKNOWN,
        },
        Effect::Fixed { .. } | Effect::Typed { .. } | Effect::Control(_) => return UNKNOWN,
    };
    let accesses = matches!(immediates, Immediates::MemArg | Immediates::MemArgLane);
    let alignment = if accesses { op.access_log2() } else { 0 };
    let lanes = match op.lanes() {
        Some(lanes) => lanes.shape.lanes() as u8,
        // Of an access to one lane.
        None => 16 >> alignment,
    };
    Row { kind: Kind::Prefixed, alignment, lanes, immediates, ..row }
}

/// The types of at most three operands and at most one result.
const fn fixed(operands: &[ValType], results: &[ValType]) -> Row {
    let mut row = UNKNOWN;
    let mut i = 0;
    while i < operands.len() {
        row.operands[i] = byte(operands[i]);
        i += 1;
    }
    if let [result] = results {
        row.result = byte(*result);
    }
    row
}

/// The types of operands and result, or `None` if they depend on more than the opcode and the memory.
const fn typed(operands: &[StackType], results: &[StackType]) -> Option<Row> {
    let mut row = UNKNOWN;
    let mut i = 0;
    while i < operands.len() {
        row.operands[i] = match operand(operands[i]) {
            Some(ty) => ty,
            None => return None,
        };
        i += 1;
    }
    if let [result] = results {
        row.result = match operand(*result) {
            Some(ty) => ty,
            None => return None,
        };
    }
    Some(row)
}

const fn operand(ty: StackType) -> Option<u8> {
    match ty {
        StackType::Val(ty) => Some(byte(ty)),
        StackType::Address | StackType::SourceAddress | StackType::Length => Some(I32),
        StackType::Index | StackType::SourceIndex | StackType::TableLength | StackType::Element => None,
        StackType::Local | StackType::Global | StackType::Any | StackType::Named | StackType::Reference => None,
        StackType::NonNull | StackType::Null | StackType::Function => None,
    }
}

// A direct, an indirect and a reference's call are different instructions in the acceptor, too.
const _: () = {
    assert!(matches!(CONTROLS[Opcode::Call as usize], Control::Call(CallKind::Direct)));
    assert!(ROWS[Opcode::I64Load32U as usize].alignment == 2 && ROWS[Opcode::F64Store as usize].alignment == 3);
    assert!(ROWS[Opcode::V128Load8x8S as usize].alignment == 3 && ROWS[Opcode::V128Load as usize].alignment == 4);
    assert!(ROWS[Opcode::V128Load16Lane as usize].alignment == 1 && ROWS[Opcode::V128Load16Lane as usize].lanes == 8);
};

// The acceptor marks the bottom of a block by `NONE`: popping an operand of type `NONE` would be accepted where the block has
// no operand.
const _: () = {
    let mut i = 0;
    while i < Opcode::ALL.len() {
        assert!(is_complete(Opcode::ALL[i]));
        i += 1;
    }
};

/// Whether the row has a type for each operand and result in TABLE 1, and for no other. True for instructions that the acceptor
/// does not know, or whose types depend on the module.
const fn is_complete(op: Opcode) -> bool {
    let row = &ROWS[op as usize];
    match row.kind {
        Kind::Unary | Kind::Binary | Kind::I32Const | Kind::I64Const | Kind::F32Const | Kind::F64Const => {}
        Kind::Load | Kind::Store | Kind::MemorySize | Kind::MemoryGrow | Kind::Prefixed => {}
        Kind::Unknown | Kind::LocalGet | Kind::LocalSet | Kind::LocalTee | Kind::GlobalGet | Kind::GlobalSet => return true,
        Kind::Drop | Kind::Select | Kind::SelectTyped | Kind::RefNull | Kind::RefIsNull => return true,
        Kind::Prefix | Kind::Control => return true,
    }
    let Some((operands, results)) = op.effect().arity() else { return false };
    let mut i = 0;
    while i < row.operands.len() {
        if (row.operands[i] == NONE) != (i >= operands) {
            return false;
        }
        i += 1;
    }
    operands <= row.operands.len() && results <= 1 && (row.result == NONE) == (results == 0)
}

/// Parameters and results of a function or block, as ranges of [`Signatures::bytes`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Signature {
    params: u32,
    results: u32,
    end: u32,
}

impl Signature {
    pub fn params(self) -> Range<usize> {
        self.params as usize..self.results as usize
    }

    pub fn results(self) -> Range<usize> {
        self.results as usize..self.end as usize
    }

    /// The type of a block whose parameters are not on the stack: those of a function are locals, and those of a `try` were operands
    /// of its first part.
    pub fn without_params(self) -> Signature {
        Signature { params: self.results, ..self }
    }
}

/// The types of a module's items. A type without a byte is [`NONE`]; a signature that contains one is `None`.
#[derive(Debug, Default)]
pub(super) struct Signatures {
    /// Types of parameters and results, one after the other; first one of each type in [`KNOWN`].
    pub bytes: Box<[u8]>,
    /// Of each type of the module.
    pub types: Box<[Option<Signature>]>,
    /// Of each global, and whether it is mutable.
    pub globals: Box<[(u8, bool)]>,
    /// For each table, whether it has elements of type `funcref` and indices of 32 bits.
    pub tables: Box<[bool]>,
    /// Whether there is a memory 0, with addresses of 32 bits.
    pub memory: bool,
}

impl Signatures {
    pub fn new<'m>(
        types: &[FuncType],
        globals: &[GlobalType],
        tables: impl Iterator<Item = &'m TableType>,
        memories: &[MemoryType],
    ) -> Signatures {
        let mut bytes: Vec<u8> = KNOWN.iter().map(|(byte, _)| *byte).collect();
        let mut signature = |ty: &FuncType| {
            let params = bytes.len() as u32;
            bytes.extend(ty.params.iter().map(|&ty| byte(ty)));
            let results = bytes.len() as u32;
            bytes.extend(ty.results.iter().map(|&ty| byte(ty)));
            let end = bytes.len() as u32;
            let known = bytes[params as usize..].iter().all(|&ty| ty != NONE);
            known.then_some(Signature { params, results, end })
        };
        Signatures {
            types: types.iter().map(&mut signature).collect(),
            globals: globals.iter().map(|global| (byte(global.value), global.mutable)).collect(),
            tables: tables.map(|table| table.element == RefType::FUNCREF && !table.table64).collect(),
            memory: memories.first().is_some_and(|memory| !memory.memory64),
            bytes: bytes.into(),
        }
    }

    /// Returns the bytes that it holds.
    pub fn size(&self) -> usize {
        flat(&self.bytes) + flat(&self.types) + flat(&self.globals) + flat(&self.tables)
    }

    /// The signature of a block with this result and no parameters.
    pub fn of_result(ty: u8) -> Option<Signature> {
        let at = KNOWN.iter().position(|(byte, _)| *byte == ty)? as u32;
        Some(Signature { params: at, results: at, end: at + 1 })
    }
}
