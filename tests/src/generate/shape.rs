//! The declarations to which the bodies of a program refer. In each list the imports come first, so that an index in the list is an index in
//! the module.

use super::Value;
use wasm_encoder as enc;
use weir_bytecode::types::{FuncType, ValType};

/// The module around the bodies: the declarations to which they may refer.
pub(super) struct Shape {
    /// The types of functions, then those of blocks in the order of their first use.
    pub types: Vec<FuncType>,
    /// The functions except `reset` and the start function.
    pub funcs: Vec<Func>,
    /// `g0`, …; in the module, global 0 is the fuel and `g0` is global 1.
    pub globals: Vec<Global>,
    /// `m0`, …
    pub memories: Vec<Memory>,
    /// `t0`, …
    pub tables: Vec<Table>,
    /// Whether the module has a start function.
    pub start: bool,
    /// Whether there are few functions, which are short and have a loop: compiling them takes little time.
    pub brief: bool,
    /// Whether some loops are around a `br_table`, through which their parts jump to each other.
    pub dispatches: bool,
    /// The limit of the product of the iterations of nested loops.
    pub max_trips: u32,
    /// Whether the program has vectors.
    pub vectors: bool,
    /// See [`Program::beyond_wasmi`](super::Program::beyond_wasmi).
    pub beyond_wasmi: bool,
}

/// Where an imported item comes from. [`crate::host`] has what is imported.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Import {
    /// The host, under a name with this number.
    Host(u32),
    /// The other instance, which exports it under a name with this number: it is an item that the module defines itself.
    Other(u32),
}

/// A function.
#[derive(Clone)]
pub(super) struct Func {
    /// Index of its type.
    pub ty: u32,
    pub import: Option<Import>,
    /// Whether, imported from the host, it never fails.
    pub calm: bool,
}

/// A global.
#[derive(Clone)]
pub(super) struct Global {
    pub ty: ValType,
    pub mutable: bool,
    /// Its first value. The one of an import is that which [`Value::of_global`] gives, in every instance.
    pub value: Value,
    pub import: Option<Import>,
}

/// A memory, which grows to [`MAX_PAGES`].
#[derive(Clone)]
pub(super) struct Memory {
    pub address: ValType,
    pub pages: u32,
    pub import: Option<Import>,
    /// The immutable imported global, an index in [`Shape::globals`], that is the offset of its active segment.
    pub offset: Option<usize>,
}

/// A table of functions.
#[derive(Clone)]
pub(super) struct Table {
    pub index: ValType,
    pub len: u32,
    pub max: u32,
    pub import: Option<Import>,
    /// The first index that [`Table::elements`] has.
    pub first: u32,
    /// The functions that it holds at first. There are none in a table to which bodies write at random: nothing is called through it.
    pub elements: Vec<u32>,
    /// The immutable imported global that is `first`.
    pub offset: Option<usize>,
    /// Whether it is not exported, and nothing writes or grows it: its functions are those of the instance, each of which it has once.
    pub private: bool,
}

impl Table {
    /// Whether the start function fills it. The other instance may have done so before.
    pub fn filled_at_start(&self) -> bool {
        !self.elements.is_empty() && matches!(self.import, Some(Import::Other(_)))
    }
}

pub(super) const FUEL_GLOBAL: u32 = 0;
pub(super) const MAX_PAGES: u32 = 3;
pub(super) const SMALL_TABLE: u32 = 4;
/// The number of bytes of the passive data segment.
pub(super) const PASSIVE_DATA: u32 = 64;
/// The number of elements of the passive element segment.
pub(super) const PASSIVE_ELEMS: u32 = 4;
/// The passive element segment, which is the first.
pub(super) const PASSIVE_ELEM_SEGMENT: u32 = 0;
/// The passive data segment.
pub(super) const PASSIVE_DATA_SEGMENT: u32 = 0;

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
        &self.types[self.funcs[func as usize].ty as usize]
    }

    /// The functions whose type has this index.
    pub fn funcs_of(&self, ty: u32) -> Vec<u32> {
        (0..self.funcs.len() as u32).filter(|&func| self.funcs[func as usize].ty == ty).collect()
    }

    /// The functions that the module imports.
    pub fn imported_funcs(&self) -> u32 {
        self.funcs.iter().filter(|func| func.import.is_some()).count() as u32
    }

    /// The tables through which functions are called, and those to which bodies write at random.
    pub fn tables(&self, called: bool) -> Vec<u32> {
        (0..).zip(&self.tables).filter(|(_, table)| table.elements.is_empty() != called).map(|(i, _)| i).collect()
    }

    /// Whether the module imports from another instance of it.
    pub fn is_linked(&self) -> bool {
        let of_other = |import: Option<Import>| matches!(import, Some(Import::Other(_)));
        self.funcs.iter().any(|func| of_other(func.import))
            || self.globals.iter().any(|global| of_other(global.import))
            || self.memories.iter().any(|memory| of_other(memory.import))
            || self.tables.iter().any(|table| of_other(table.import))
    }

    /// Whether the fuel is an imported global, so that both instances share it. As the first global, it must be one if others are.
    pub fn imports_fuel(&self) -> bool {
        self.is_linked() || self.globals.iter().any(|global| global.import.is_some())
    }

    /// The global that counts the calls of functions of this instance, where there are two. It is the last one.
    pub fn calls_global(&self) -> Option<u32> {
        self.is_linked().then(|| 1 + self.globals.len() as u32)
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
