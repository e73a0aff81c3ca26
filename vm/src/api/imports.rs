//! Checks that items match the imports of a module.

use crate::api::error::{LinkError, UnknownImportError};
use crate::api::externs::Extern;
use crate::api::store::AsContext;
use crate::api::types::{ExternType, FuncType, TagType};
use crate::exec::host::EngineFunc;
use crate::exec::instantiate::Import;
use crate::records::host::HostFunc;
use crate::records::signatures::{canonical_table, canonical_value};
use crate::records::wording::Text;
use crate::{Engine, Error, GlobalType, Module, Result, ValType};
use std::fmt::Display;
use std::sync::Arc;
use weir_bytecode::module::{ExternType as IndexedType, Import as ModuleImport};
use weir_bytecode::types::Limits;

pub(crate) fn unknown_import(module: &Module, import: &ModuleImport) -> UnknownImportError {
    UnknownImportError::new(&import.module, &import.name, expected_type(module, import))
}

/// The type of an import, with the types that it refers to given by their engine-wide identities.
fn expected_type(module: &Module, import: &ModuleImport) -> ExternType {
    let sig_ids = &module.record().sig_ids;
    match &import.ty {
        IndexedType::Func(index) => {
            let sig = sig_ids[*index as usize];
            ExternType::Func(FuncType((*module.engine().record().signatures.get(sig)).clone()))
        }
        IndexedType::Tag(index) => {
            let ty = module.engine().record().signatures.get(sig_ids[*index as usize]);
            ExternType::Tag(TagType::new(FuncType((*ty).clone())))
        }
        IndexedType::Table(ty) => ExternType::Table(canonical_table(*ty, sig_ids)),
        IndexedType::Memory(ty) => ExternType::Memory(*ty),
        IndexedType::Global(ty) => ExternType::Global(GlobalType { value: canonical_value(ty.value, sig_ids), ..*ty }),
    }
}

/// Checks that a module, and a store or a linker, belong to one engine.
///
/// # Errors
/// They belong to different engines; or to one that was made before this process was forked.
pub(crate) fn check_engine(engine: &Engine, module: &Module) -> Result<()> {
    engine.record().check_process()?;
    match Engine::same(engine, module.engine()) {
        true => Ok(()),
        false => Err(Error::msg("cross-`Engine` instantiation is not currently supported")),
    }
}

/// Returns `item` as the import of a module of the store's engine, if their types match.
///
/// # Errors
/// [`LinkError::Incompatible`]; or the item belongs to another store.
pub(crate) fn check_import(store: &impl AsContext, module: &Module, import: &ModuleImport, item: Extern) -> Result<Import> {
    let id = store.as_context().id();
    if !item.belongs_to(id) {
        return Err(Error::msg("cross-`Store` instantiation is not currently supported"));
    }
    let fits = match (&import.ty, item) {
        (IndexedType::Func(index), Extern::Func(func)) => module.record().sig_ids[*index as usize] == func.sig(id),
        (IndexedType::Tag(index), Extern::Tag(tag)) => module.record().sig_ids[*index as usize] == tag.sig(id),
        _ => matches(&expected_type(module, import), &item.current_type(store)),
    };
    if !fits {
        return Err(incompatible(module, import, &item.current_type(store)));
    }
    Ok(match item {
        Extern::Func(func) => match func.host(id) {
            Some(host) => Import::Host(host),
            None => Import::Func(func.in_store(id)),
        },
        Extern::Table(table) => Import::Table(table.in_store(id)),
        Extern::Memory(memory) => Import::Memory(memory.in_store(id)),
        Extern::Global(global) => Import::Global(global.in_store(id)),
        Extern::Tag(tag) => Import::Tag(tag.in_store(id)),
    })
}

/// Returns a host function as the import of a module, for stores of the module's engine.
///
/// # Errors
/// [`LinkError::Incompatible`]
pub(crate) fn check_host(module: &Module, import: &ModuleImport, func: &Arc<HostFunc>) -> Result<EngineFunc> {
    if let IndexedType::Func(index) = import.ty {
        let sig = module.record().sig_ids[index as usize];
        let func = EngineFunc::new(module.engine(), func.clone());
        if func.sig() == sig {
            return Ok(func);
        }
    }
    Err(incompatible(module, import, &ExternType::Func(FuncType(func.ty.clone()))))
}

fn incompatible(module: &Module, import: &ModuleImport, found: &ExternType) -> Error {
    let expected = expected_type(module, import);
    let reason = Error::msg(difference(&expected, found));
    let (expected, found) = (expected.to_string(), found.to_string());
    let (module, name) = (import.module.to_string(), import.name.to_string());
    reason.context(LinkError::Incompatible { module, name, expected, found })
}

/// The first difference between the type of an import and that of an item, in wasmtime's words.
fn difference(expected: &ExternType, found: &ExternType) -> String {
    let kinds = |what: &str, expected: &str, found: &str| {
        format!("{what} types incompatible: expected {expected} {what}, found {found} {what}")
    };
    let types = |what: &str, expected: &dyn Display, found: &dyn Display| {
        format!("{what} types incompatible: expected {what} of type `{expected}`, found {what} of type `{found}`")
    };
    let bits = |is_64: bool| if is_64 { "64-bit" } else { "32-bit" };
    let mutability = |is_mutable: bool| if is_mutable { "mutable" } else { "immutable" };
    match (expected, found) {
        (ExternType::Func(expected), ExternType::Func(found)) => {
            format!("types incompatible: expected type `{}`, found type `{}`", Text(&expected.0), Text(&found.0))
        }
        (ExternType::Tag(_), ExternType::Tag(_)) => "incompatible tag types".into(),
        (ExternType::Table(expected), ExternType::Table(found)) => {
            if expected.element != found.element {
                types("table", &ValType::Ref(expected.element), &ValType::Ref(found.element))
            } else if expected.table64 != found.table64 {
                kinds("table", bits(expected.table64), bits(found.table64))
            } else {
                limits_differ("table", expected.limits, found.limits)
            }
        }
        (ExternType::Memory(expected), ExternType::Memory(found)) => {
            if expected.memory64 != found.memory64 {
                kinds("memory", bits(expected.memory64), bits(found.memory64))
            } else if !limits_match(expected.limits, found.limits) {
                limits_differ("memory", expected.limits, found.limits)
            } else {
                let (expected, found) = (expected.page_size(), found.page_size());
                format!(
                    "memory types incompatible: expected a memory with a page size of {expected}, but received a memory with a page \
                     size of {found}"
                )
            }
        }
        (ExternType::Global(expected), ExternType::Global(found)) => match (expected.value, found.value) {
            (ValType::Ref(wanted), ValType::Ref(given))
                if !expected.mutable && !found.mutable && (wanted.nullable || !given.nullable) && wanted.heap != given.heap =>
            {
                types("global", &wanted.heap, &given.heap)
            }
            (wanted, given) if wanted != given => types("global", &wanted, &given),
            _ => kinds("global", mutability(expected.mutable), mutability(found.mutable)),
        },
        (expected, found) => {
            let (found, is_function) = (kind(found), matches!(found, ExternType::Func(_)));
            format!("expected {}, but found {}", kind(expected), if is_function { "function" } else { found })
        }
    }
}

fn limits_differ(what: &str, expected: Limits, found: Limits) -> String {
    let text = |Limits { min, max }| {
        let max = max.map_or("none".into(), |max| max.to_string());
        format!("min: {min}, max: {max}")
    };
    let (expected, found) = (text(expected), text(found));
    format!("{what} types incompatible: expected {what} limits ({expected}) doesn't match provided {what} limits ({found})")
}

/// What an item of this type is.
fn kind(ty: &ExternType) -> &'static str {
    match ty {
        ExternType::Func(_) => "func",
        ExternType::Table(_) => "table",
        ExternType::Memory(_) => "memory",
        ExternType::Global(_) => "global",
        ExternType::Tag(_) => "tag",
    }
}

/// Whether the type `found` of an item matches the type `expected` of an import. Functions and tags are not compared here
/// but by their signature identities. Both types use engine-wide identities. The minimum of a memory or table in `found` is
/// its current size.
fn matches(expected: &ExternType, found: &ExternType) -> bool {
    match (expected, found) {
        (ExternType::Table(expected), ExternType::Table(found)) => {
            expected.element == found.element && expected.table64 == found.table64 && limits_match(expected.limits, found.limits)
        }
        (ExternType::Memory(expected), ExternType::Memory(found)) => {
            expected.memory64 == found.memory64
                && expected.shared == found.shared
                && expected.page_size_log2 == found.page_size_log2
                && limits_match(expected.limits, found.limits)
        }
        (ExternType::Global(expected), ExternType::Global(found)) => {
            expected.mutable == found.mutable
                && (expected.value == found.value || !expected.mutable && found.value.matches(&expected.value))
        }
        _ => false,
    }
}

fn limits_match(expected: Limits, found: Limits) -> bool {
    let max_matches = match (expected.max, found.max) {
        (None, _) => true,
        (Some(expected), Some(found)) => found <= expected,
        (Some(_), None) => false,
    };
    found.min >= expected.min && max_matches
}
