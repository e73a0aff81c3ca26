//! What the bodies of a program may refer to.

use wasm_encoder as enc;
use weir_bytecode::types::{FuncType, ValType};

/// The module around the bodies: what they may refer to.
pub(super) struct Shape {
    /// Function types: those of functions first, then those of blocks as they come up.
    pub types: Vec<FuncType>,
    /// Type index of each function, `reset` excluded.
    pub funcs: Vec<u32>,
    /// Type and mutability of `g0`, …; in the module, global 0 is the fuel and `g0` is global 1.
    pub globals: Vec<(ValType, bool)>,
    /// Elements of table 0; table 1 has [`SMALL_TABLE`].
    pub table: u32,
    /// Functions that table 0 holds, at these indices at first.
    pub elements: Vec<u32>,
    /// The most iterations that all loops around one place may make together.
    pub max_trips: u32,
    /// Whether there are vectors.
    pub vectors: bool,
    /// See [`Program::beyond_wasmi`](super::Program::beyond_wasmi).
    pub beyond_wasmi: bool,
}

pub(super) const FUEL_GLOBAL: u32 = 0;
pub(super) const SMALL_TABLE: u32 = 4;
/// Bytes of the passive data segment.
pub(super) const PASSIVE_DATA: u32 = 64;
/// Elements of the passive element segment.
pub(super) const PASSIVE_ELEMS: u32 = 4;

/// What values there are. Vectors come last: most functions have none.
pub(super) const TYPES: [ValType; 5] = [ValType::I32, ValType::I64, ValType::F32, ValType::F64, ValType::V128];

/// The types, with or without vectors.
pub(super) fn types(vectors: bool) -> &'static [ValType] {
    if vectors { &TYPES } else { &TYPES[..4] }
}

impl Shape {
    /// Index of a type, which is added if it is new.
    pub fn intern(&mut self, ty: FuncType) -> u32 {
        let index = self.types.iter().position(|known| *known == ty).unwrap_or_else(|| {
            self.types.push(ty);
            self.types.len() - 1
        });
        index as u32
    }

    pub fn func_type(&self, func: u32) -> &FuncType {
        &self.types[self.funcs[func as usize] as usize]
    }

    /// How many calls `reset` allows: the longer the loops, the fewer.
    pub fn fuel(&self) -> i32 {
        if self.max_trips > 30 { 4 } else { 60 }
    }
}

pub(super) fn encoder_type(ty: ValType) -> enc::ValType {
    match ty {
        ValType::I32 => enc::ValType::I32,
        ValType::I64 => enc::ValType::I64,
        ValType::F32 => enc::ValType::F32,
        ValType::F64 => enc::ValType::F64,
        ValType::V128 => enc::ValType::V128,
        _ => unreachable!("generated programs hold numbers and vectors only"),
    }
}
