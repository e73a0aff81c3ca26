//! The declarations to which the bodies of a program refer.

use wasm_encoder as enc;
use weir_bytecode::types::{FuncType, ValType};

/// The module around the bodies: the declarations to which they may refer.
pub(super) struct Shape {
    /// The types of functions, then those of blocks in the order of their first use.
    pub types: Vec<FuncType>,
    /// The type index of each function except `reset`.
    pub funcs: Vec<u32>,
    /// The type and mutability of `g0`, …; in the module, global 0 is the fuel and `g0` is global 1.
    pub globals: Vec<(ValType, bool)>,
    /// The number of elements of table 0; table 1 has [`SMALL_TABLE`].
    pub table: u32,
    /// The functions that table 0 initially holds at these indices.
    pub elements: Vec<u32>,
    /// The limit of the product of the iterations of nested loops.
    pub max_trips: u32,
    /// Whether the program has vectors.
    pub vectors: bool,
    /// See [`Program::beyond_wasmi`](super::Program::beyond_wasmi).
    pub beyond_wasmi: bool,
}

pub(super) const FUEL_GLOBAL: u32 = 0;
pub(super) const SMALL_TABLE: u32 = 4;
/// The number of bytes of the passive data segment.
pub(super) const PASSIVE_DATA: u32 = 64;
/// The number of elements of the passive element segment.
pub(super) const PASSIVE_ELEMS: u32 = 4;

/// The types of values. Vectors come last, because most functions have none.
pub(super) const TYPES: [ValType; 5] = [ValType::I32, ValType::I64, ValType::F32, ValType::F64, ValType::V128];

/// The types, with or without vectors.
pub(super) fn types(vectors: bool) -> &'static [ValType] {
    if vectors { &TYPES } else { &TYPES[..4] }
}

impl Shape {
    /// The index of a type, which is added if it is new.
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

    /// The number of calls that `reset` allows: the longer the loops, the fewer.
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
