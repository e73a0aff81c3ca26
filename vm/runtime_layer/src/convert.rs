//! The layer's values, types and items as Weir's, and the reverse. What the layer lacks is `None`.

use crate::types::{Engine, ExternRef, Func, Global, Memory, Table};
use wasm_runtime_layer::backend::{Extern, Ref, Val};
use wasm_runtime_layer::{ExternType, FuncType, GlobalType, MemoryType, RefType, TableType, ValType};
use weir::{AsContextMut, HeapType, Limits, Mutability};

/// Returns Weir's value, which adds a scoped root for a host value.
pub(crate) fn val_to(value: &Val<Engine>, store: impl AsContextMut) -> weir::Val {
    match value {
        Val::I32(value) => weir::Val::I32(*value),
        Val::I64(value) => weir::Val::I64(*value),
        Val::F32(value) => weir::Val::F32(value.to_bits()),
        Val::F64(value) => weir::Val::F64(value.to_bits()),
        Val::V128(value) => weir::Val::V128((*value).into()),
        Val::FuncRef(func) => weir::Val::FuncRef(func.as_ref().map(|func| func.0)),
        Val::ExternRef(value) => weir::Val::ExternRef(value.as_ref().map(|value| value.0.to_rooted(store))),
    }
}

/// Returns the layer's value.
///
/// # Errors
/// The value has a type that the layer lacks; or the root of a host value has been removed.
pub(crate) fn val_from(value: weir::Val, store: impl AsContextMut) -> anyhow::Result<Val<Engine>> {
    Ok(match value {
        weir::Val::I32(value) => Val::I32(value),
        weir::Val::I64(value) => Val::I64(value),
        weir::Val::F32(bits) => Val::F32(f32::from_bits(bits)),
        weir::Val::F64(bits) => Val::F64(f64::from_bits(bits)),
        weir::Val::V128(value) => Val::V128(value.as_u128()),
        weir::Val::FuncRef(func) => Val::FuncRef(func.map(Func)),
        weir::Val::ExternRef(value) => {
            Val::ExternRef(value.map(|value| value.to_owned_rooted(store)).transpose()?.map(ExternRef))
        }
        weir::Val::ExnRef(_) => anyhow::bail!("wasm_runtime_layer has no references to exceptions"),
    })
}

pub(crate) fn ref_to(reference: &Ref<Engine>, store: impl AsContextMut) -> weir::Ref {
    match reference {
        Ref::FuncRef(func) => weir::Ref::Func(func.as_ref().map(|func| func.0)),
        Ref::ExternRef(value) => weir::Ref::Extern(value.as_ref().map(|value| value.0.to_rooted(store))),
    }
}

pub(crate) fn ref_from(reference: weir::Ref, store: impl AsContextMut) -> Option<Ref<Engine>> {
    match reference {
        weir::Ref::Func(func) => Some(Ref::FuncRef(func.map(Func))),
        weir::Ref::Extern(value) => {
            let owned = value.map(|value| value.to_owned_rooted(store)).transpose().ok()?;
            Some(Ref::ExternRef(owned.map(ExternRef)))
        }
        weir::Ref::Exn(_) => None,
    }
}

pub(crate) fn val_type_to(ty: ValType) -> weir::ValType {
    match ty {
        ValType::I32 => weir::ValType::I32,
        ValType::I64 => weir::ValType::I64,
        ValType::F32 => weir::ValType::F32,
        ValType::F64 => weir::ValType::F64,
        ValType::V128 => weir::ValType::V128,
        ValType::FuncRef => weir::ValType::FUNCREF,
        ValType::ExternRef => weir::ValType::EXTERNREF,
    }
}

pub(crate) fn val_type_from(ty: weir::ValType) -> Option<ValType> {
    Some(match ty {
        weir::ValType::I32 => ValType::I32,
        weir::ValType::I64 => ValType::I64,
        weir::ValType::F32 => ValType::F32,
        weir::ValType::F64 => ValType::F64,
        weir::ValType::V128 => ValType::V128,
        weir::ValType::Ref(ty) => ref_type_from(ty)?.into(),
    })
}

fn ref_type_to(ty: RefType) -> weir::RefType {
    match ty {
        RefType::FuncRef => weir::RefType::FUNCREF,
        RefType::ExternRef => weir::RefType::EXTERNREF,
    }
}

fn ref_type_from(ty: weir::RefType) -> Option<RefType> {
    match (ty.nullable, ty.heap) {
        (true, HeapType::Func) => Some(RefType::FuncRef),
        (true, HeapType::Extern) => Some(RefType::ExternRef),
        _ => None,
    }
}

pub(crate) fn func_type_to(engine: &weir::Engine, ty: &FuncType) -> weir::FuncType {
    let types = |types: &[ValType]| types.iter().copied().map(val_type_to).collect::<Vec<_>>();
    weir::FuncType::new(engine, types(ty.params()), types(ty.results()))
}

pub(crate) fn func_type_from(ty: &weir::FuncType) -> Option<FuncType> {
    let types = |types: &[weir::ValType]| types.iter().copied().map(val_type_from).collect::<Option<Vec<_>>>();
    Some(FuncType::new(types(&ty.params())?, types(&ty.results())?))
}

pub(crate) fn global_type_from(ty: weir::GlobalType) -> Option<GlobalType> {
    Some(GlobalType::new(val_type_from(ty.value)?, ty.mutable))
}

pub(crate) fn global_type_to(value: ValType, mutable: bool) -> weir::GlobalType {
    weir::GlobalType::new(val_type_to(value), if mutable { Mutability::Var } else { Mutability::Const })
}

/// Returns limits that fit into 32 bits.
fn limits_from(limits: Limits) -> Option<(u32, Option<u32>)> {
    let max = limits.max.map(u32::try_from).transpose().ok()?;
    Some((u32::try_from(limits.min).ok()?, max))
}

pub(crate) fn memory_type_from(ty: weir::MemoryType) -> Option<MemoryType> {
    let (min, max) = limits_from(ty.limits)?;
    (!ty.memory64 && !ty.shared).then(|| MemoryType::new(min, max))
}

pub(crate) fn memory_type_to(ty: MemoryType) -> weir::MemoryType {
    weir::MemoryType::new(ty.initial_pages(), ty.maximum_pages())
}

pub(crate) fn table_type_from(ty: weir::TableType) -> Option<TableType> {
    let (min, max) = limits_from(ty.limits)?;
    let element = ref_type_from(ty.element)?;
    (!ty.table64).then(|| TableType::new(element, min, max))
}

pub(crate) fn table_type_to(ty: TableType) -> weir::TableType {
    weir::TableType::new(ref_type_to(ty.element()), ty.minimum(), ty.maximum())
}

pub(crate) fn extern_type_from(ty: &weir::ExternType) -> Option<ExternType> {
    match ty {
        weir::ExternType::Func(ty) => func_type_from(ty).map(ExternType::Func),
        weir::ExternType::Global(ty) => global_type_from(*ty).map(ExternType::Global),
        weir::ExternType::Memory(ty) => memory_type_from(*ty).map(ExternType::Memory),
        weir::ExternType::Table(ty) => table_type_from(*ty).map(ExternType::Table),
        weir::ExternType::Tag(_) => None,
    }
}

/// Returns the layer's item, if it has items of this type.
pub(crate) fn extern_from(item: weir::Extern, store: impl weir::AsContext) -> Option<Extern<Engine>> {
    extern_type_from(&item.ty(store))?;
    match item {
        weir::Extern::Func(func) => Some(Extern::Func(Func(func))),
        weir::Extern::Global(global) => Some(Extern::Global(Global(global))),
        weir::Extern::Memory(memory) => Some(Extern::Memory(Memory(memory))),
        weir::Extern::Table(table) => Some(Extern::Table(Table(table))),
        weir::Extern::Tag(_) => None,
    }
}

pub(crate) fn extern_to(item: Extern<Engine>) -> weir::Extern {
    match item {
        Extern::Func(Func(func)) => func.into(),
        Extern::Global(Global(global)) => global.into(),
        Extern::Memory(Memory(memory)) => memory.into(),
        Extern::Table(Table(table)) => table.into(),
    }
}
