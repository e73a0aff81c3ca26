//! Types as the public API shows them.

use crate::{FuncType, GlobalType, MemoryType, TableType};
use std::fmt;

/// The type of something that is imported or exported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ExternType {
    /// A function.
    Func(FuncType),
    /// A table.
    Table(TableType),
    /// A memory.
    Memory(MemoryType),
    /// A global.
    Global(GlobalType),
}

impl fmt::Display for ExternType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExternType::Func(ty) => write!(f, "function {ty}"),
            ExternType::Table(ty) => {
                let index = if ty.table64 { "i64 " } else { "" };
                let element = weir_bytecode::ValType::Ref(ty.element);
                write!(f, "table {index}{} {element}", Limits(ty.limits))
            }
            ExternType::Memory(ty) => {
                let index = if ty.memory64 { "i64 " } else { "" };
                write!(f, "memory {index}{}", Limits(ty.limits))?;
                if ty.page_size_log2 != 16 {
                    write!(f, " (pagesize {})", 1u64 << ty.page_size_log2)?;
                }
                if ty.shared { f.write_str(" shared") } else { Ok(()) }
            }
            ExternType::Global(GlobalType { value, mutable: true }) => write!(f, "global (mut {value})"),
            ExternType::Global(GlobalType { value, mutable: false }) => write!(f, "global {value}"),
        }
    }
}

struct Limits(weir_bytecode::types::Limits);

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.min)?;
        self.0.max.map_or(Ok(()), |max| write!(f, " {max}"))
    }
}

/// An import of a module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportType<'a> {
    module: &'a str,
    name: &'a str,
    ty: ExternType,
}

impl<'a> ImportType<'a> {
    pub(crate) fn new(module: &'a str, name: &'a str, ty: ExternType) -> ImportType<'a> {
        ImportType { module, name, ty }
    }

    /// The module name.
    pub fn module(&self) -> &'a str {
        self.module
    }

    /// The field name.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// What it must be.
    pub fn ty(&self) -> &ExternType {
        &self.ty
    }
}

/// An export of a module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExportType<'a> {
    name: &'a str,
    ty: ExternType,
}

impl<'a> ExportType<'a> {
    pub(crate) fn new(name: &'a str, ty: ExternType) -> ExportType<'a> {
        ExportType { name, ty }
    }

    /// Its name.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// What it is.
    pub fn ty(&self) -> &ExternType {
        &self.ty
    }
}
