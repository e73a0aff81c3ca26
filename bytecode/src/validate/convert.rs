//! wasmparser's types as plain types.

use super::invalid::InvalidModule;
use crate::types::{FuncType, GlobalType, HeapType, Limits, MemoryType, RefType, TableType, ValType};
use wasmparser::{AbstractHeapType, UnpackedIndex};

type Result<T> = std::result::Result<T, InvalidModule>;

/// The plain form of a function type.
pub(super) fn func_type(ty: &wasmparser::FuncType) -> Result<FuncType> {
    let list = |types: &[wasmparser::ValType]| types.iter().map(|&ty| val_type(ty)).collect::<Result<_>>();
    Ok(FuncType { params: list(ty.params())?, results: list(ty.results())? })
}

/// The plain form of a value type.
pub(super) fn val_type(ty: wasmparser::ValType) -> Result<ValType> {
    Ok(match ty {
        wasmparser::ValType::I32 => ValType::I32,
        wasmparser::ValType::I64 => ValType::I64,
        wasmparser::ValType::F32 => ValType::F32,
        wasmparser::ValType::F64 => ValType::F64,
        wasmparser::ValType::V128 => ValType::V128,
        wasmparser::ValType::Ref(ty) => ValType::Ref(ref_type(ty)?),
    })
}

/// The plain form of a reference type.
#[expect(clippy::wildcard_enum_match_arm, reason = "these are the parser's types, and an unknown one is an error")]
pub(super) fn ref_type(ty: wasmparser::RefType) -> Result<RefType> {
    let heap = match ty.heap_type() {
        wasmparser::HeapType::Abstract { shared: false, ty: AbstractHeapType::Func } => HeapType::Func,
        wasmparser::HeapType::Abstract { shared: false, ty: AbstractHeapType::Extern } => HeapType::Extern,
        wasmparser::HeapType::Abstract { shared: false, ty: AbstractHeapType::Exn } => HeapType::Exn,
        wasmparser::HeapType::Abstract { shared: false, ty: AbstractHeapType::NoExn } => HeapType::NoExn,
        wasmparser::HeapType::Concrete(UnpackedIndex::Module(index)) => HeapType::Concrete(index),
        // The validator has refused every other one, as its proposals are off; offsets are lost by now.
        _ => return Err(InvalidModule::new(format!("reference type {ty} is not supported"), 0)),
    };
    Ok(RefType { nullable: ty.is_nullable(), heap })
}

/// The plain form of a table type.
pub(super) fn table_type(ty: wasmparser::TableType) -> Result<TableType> {
    let limits = Limits { min: ty.initial, max: ty.maximum };
    Ok(TableType { limits, table64: ty.table64, element: ref_type(ty.element_type)? })
}

/// The plain form of a memory type.
pub(super) fn memory_type(ty: wasmparser::MemoryType) -> MemoryType {
    MemoryType {
        limits: Limits { min: ty.initial, max: ty.maximum },
        memory64: ty.memory64,
        shared: ty.shared,
        page_size_log2: ty.page_size_log2.map_or(16, |log2| log2 as u8),
    }
}

/// The plain form of a global type.
pub(super) fn global_type(ty: wasmparser::GlobalType) -> Result<GlobalType> {
    Ok(GlobalType { value: val_type(ty.content_type)?, mutable: ty.mutable })
}
