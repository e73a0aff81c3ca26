//! Types in the public API.

use crate::{Engine, Error, GlobalType, MemoryType, Result, TableType, ValType};
use std::fmt;
use std::ops::Deref;
use std::slice;
use weir_bytecode::FuncType as PlainType;

/// The type of a function: its parameters and results.
///
/// ```
/// use weir::{Engine, FuncType, ValType};
///
/// let ty = FuncType::new(&Engine::default(), [ValType::I32, ValType::F64], [ValType::I64]);
/// assert_eq!(ty.params().len(), 2);
/// assert_eq!(ty.result(0), Some(ValType::I64));
/// assert_eq!(ty.to_string(), "[i32 f64] -> [i64]");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FuncType(pub(crate) PlainType);

impl FuncType {
    /// Creates the type with these parameters and results, for use with this engine.
    pub fn new(
        _engine: &Engine,
        params: impl IntoIterator<Item = ValType>,
        results: impl IntoIterator<Item = ValType>,
    ) -> FuncType {
        FuncType(PlainType::new(params, results))
    }

    /// Returns the parameter types, in order.
    pub fn params(&self) -> ValTypes<'_> {
        ValTypes(self.0.params.iter())
    }

    /// Returns the result types, in order.
    pub fn results(&self) -> ValTypes<'_> {
        ValTypes(self.0.results.iter())
    }

    /// Returns the type of parameter `i`.
    pub fn param(&self, i: usize) -> Option<ValType> {
        self.0.params.get(i).copied()
    }

    /// Returns the type of result `i`.
    pub fn result(&self, i: usize) -> Option<ValType> {
        self.0.results.get(i).copied()
    }
}

/// The types of a function's parameters or results: an iterator, as in wasmtime, that is also a slice of what is left, as in wasmi.
///
/// ```
/// use weir::{Engine, FuncType, ValType};
///
/// let ty = FuncType::new(&Engine::default(), [ValType::I32, ValType::F64], []);
/// assert!(ty.params() == [ValType::I32, ValType::F64] && ty.results().is_empty());
/// assert_eq!(ty.params()[1], ValType::F64);
/// assert_eq!(ty.params().filter(ValType::is_f64).count(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct ValTypes<'a>(slice::Iter<'a, ValType>);

impl Iterator for ValTypes<'_> {
    type Item = ValType;

    fn next(&mut self) -> Option<ValType> {
        self.0.next().copied()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for ValTypes<'_> {
    fn next_back(&mut self) -> Option<ValType> {
        self.0.next_back().copied()
    }
}

impl ExactSizeIterator for ValTypes<'_> {}

impl Deref for ValTypes<'_> {
    type Target = [ValType];

    fn deref(&self) -> &[ValType] {
        self.0.as_slice()
    }
}

impl<T: AsRef<[ValType]>> PartialEq<T> for ValTypes<'_> {
    fn eq(&self, other: &T) -> bool {
        self.0.as_slice() == other.as_ref()
    }
}

impl fmt::Display for FuncType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The type of an item that can be imported and exported.
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
    /// A tag.
    Tag(TagType),
}

/// The type of a tag: that of a function without results, whose parameters are the payload of exceptions.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TagType {
    ty: FuncType,
}

impl TagType {
    /// Creates the type of tags whose exceptions have the parameters of `ty` for their payload.
    pub fn new(ty: FuncType) -> TagType {
        TagType { ty }
    }

    /// Returns the function type.
    pub fn ty(&self) -> &FuncType {
        &self.ty
    }
}

/// The type of an exception object: the types of its fields, which are the parameters of its tag.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ExnType {
    ty: FuncType,
}

impl ExnType {
    /// Creates the type with these fields, for use with this engine.
    ///
    /// # Errors
    /// None at present.
    pub fn new(engine: &Engine, fields: impl IntoIterator<Item = ValType>) -> Result<ExnType> {
        Ok(ExnType { ty: FuncType::new(engine, fields, []) })
    }

    /// Creates the type of the exceptions with tags of this type.
    ///
    /// # Errors
    /// The tag's type has results.
    pub fn from_tag_type(tag: &TagType) -> Result<ExnType> {
        match tag.ty.results().len() {
            0 => Ok(ExnType { ty: tag.ty.clone() }),
            _ => Err(Error::msg("the type of a tag has no results")),
        }
    }

    /// Returns the type of the tags of such exceptions.
    pub fn tag_type(&self) -> TagType {
        TagType { ty: self.ty.clone() }
    }

    /// Returns the types of the fields, in order.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = ValType> + '_ {
        self.ty.params()
    }
}

macro_rules! kinds {
    ($($variant:ident $ty:ident $get:ident $unwrap:ident;)*) => {
        impl ExternType {
            $(
                #[doc = concat!("The [`", stringify!($ty), "`], if it is one.")]
                pub fn $get(&self) -> Option<&$ty> {
                    match self {
                        ExternType::$variant(ty) => Some(ty),
                        _ => None,
                    }
                }

                #[doc = concat!("The [`", stringify!($ty), "`].")]
                ///
                /// # Panics
                /// If it is something else.
                pub fn $unwrap(&self) -> &$ty {
                    self.$get().unwrap_or_else(|| panic!(concat!("expected a ", stringify!($get), ", found {}"), self))
                }
            )*
        }

        $(
            impl From<$ty> for ExternType {
                fn from(ty: $ty) -> ExternType {
                    ExternType::$variant(ty)
                }
            }
        )*
    };
}

kinds! {
    Func FuncType func unwrap_func;
    Table TableType table unwrap_table;
    Memory MemoryType memory unwrap_memory;
    Global GlobalType global unwrap_global;
    Tag TagType tag unwrap_tag;
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
            ExternType::Tag(TagType { ty }) => write!(f, "tag {ty}"),
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
///
/// ```
/// use weir::{Engine, Module};
///
/// let engine = Engine::default();
/// let module = Module::new(&engine, r#"(module (import "env" "now" (func (result i64))))"#)?;
/// let import = module.imports().next().expect("there is one");
/// assert_eq!((import.module(), import.name()), ("env", "now"));
/// assert_eq!(import.ty().unwrap_func().result(0), Some(weir::ValType::I64));
/// # Ok::<(), weir::Error>(())
/// ```
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

    /// Returns the module name.
    pub fn module(&self) -> &'a str {
        self.module
    }

    /// Returns the field name.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Returns the type that the imported item must have.
    pub fn ty(&self) -> ExternType {
        self.ty.clone()
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

    /// Returns the name of the export.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Returns the type of the export.
    pub fn ty(&self) -> ExternType {
        self.ty.clone()
    }
}
