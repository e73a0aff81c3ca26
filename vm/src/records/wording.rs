//! How errors write types. The texts are wasmtime's: see `tests/tests/messages`.

use crate::records::error::Error;
use std::fmt::{self, Display};
use weir_bytecode::types::{FuncType, HeapType, RefType, ValType};

/// The type of a value, with references in their long form: `(ref null func)`.
pub(crate) struct Long(pub ValType);

impl Display for Long {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ValType::Ref(RefType { nullable, heap }) => {
                let null = if nullable { "null " } else { "" };
                write!(f, "(ref {null}{heap})")
            }
            ty => ty.fmt(f),
        }
    }
}

/// The type of the null reference among those of this type.
pub(crate) fn null(heap: HeapType) -> &'static str {
    match heap {
        HeapType::Func | HeapType::Concrete(_) => "(ref null nofunc)",
        HeapType::Extern => "(ref null noextern)",
        HeapType::Exn | HeapType::NoExn => "(ref null noexn)",
    }
}

/// A function's type as in the text format: `(func (param i32) (result i64))`.
pub(crate) struct Text<'t>(pub &'t FuncType);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(func")?;
        for (what, types) in [("param", &self.0.params), ("result", &self.0.results)] {
            if !types.is_empty() {
                let types: Vec<String> = types.iter().map(ValType::to_string).collect();
                write!(f, " ({what} {})", types.join(" "))?;
            }
        }
        f.write_str(")")
    }
}

/// The error for something of another type.
pub(crate) fn mismatch(expected: impl Display, found: impl Display) -> Error {
    Error::msg(format!("type mismatch: expected {expected}, found {found}"))
}
