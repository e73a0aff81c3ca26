//! Value, function, memory, table and global types, as plain data.

/// The type of a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ValType {
    /// 32-bit integer, of no sign.
    I32,
    /// 64-bit integer, of no sign.
    I64,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// 128-bit vector.
    V128,
    /// A reference.
    Ref(RefType),
}

/// A reference type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RefType {
    /// Whether null is a value of it.
    pub nullable: bool,
    /// What it refers to.
    pub heap: HeapType,
}

/// What a reference refers to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HeapType {
    /// Any function.
    Func,
    /// Any host value.
    Extern,
    /// The module's type with this index.
    Concrete(u32),
}

impl ValType {
    /// `funcref`
    pub const FUNCREF: ValType = ValType::Ref(RefType::FUNCREF);
    /// `externref`
    pub const EXTERNREF: ValType = ValType::Ref(RefType::EXTERNREF);
}

impl RefType {
    /// `(ref null func)`
    pub const FUNCREF: RefType = RefType { nullable: true, heap: HeapType::Func };
    /// `(ref null extern)`
    pub const EXTERNREF: RefType = RefType { nullable: true, heap: HeapType::Extern };
}

/// Whether one of the types is v128.
pub fn has_vector(types: &[ValType]) -> bool {
    types.contains(&ValType::V128)
}

impl std::fmt::Display for ValType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ValType::I32 => f.write_str("i32"),
            ValType::I64 => f.write_str("i64"),
            ValType::F32 => f.write_str("f32"),
            ValType::F64 => f.write_str("f64"),
            ValType::V128 => f.write_str("v128"),
            ValType::Ref(RefType::FUNCREF) => f.write_str("funcref"),
            ValType::Ref(RefType::EXTERNREF) => f.write_str("externref"),
            ValType::Ref(RefType { nullable, heap }) => {
                let null = if *nullable { "null " } else { "" };
                write!(f, "(ref {null}{heap})")
            }
        }
    }
}

impl std::fmt::Display for HeapType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HeapType::Func => f.write_str("func"),
            HeapType::Extern => f.write_str("extern"),
            HeapType::Concrete(index) => write!(f, "{index}"),
        }
    }
}

/// Parameters and results of a function.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct FuncType {
    /// Parameter types, first first.
    pub params: Box<[ValType]>,
    /// Result types, first first.
    pub results: Box<[ValType]>,
}

impl FuncType {
    /// The type with these parameters and results.
    pub fn new(params: impl IntoIterator<Item = ValType>, results: impl IntoIterator<Item = ValType>) -> FuncType {
        FuncType { params: params.into_iter().collect(), results: results.into_iter().collect() }
    }

    /// Whether a parameter or a result is a v128.
    pub fn has_vector(&self) -> bool {
        has_vector(&self.params) || has_vector(&self.results)
    }
}

impl std::fmt::Display for FuncType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |types: &[ValType]| types.iter().map(ValType::to_string).collect::<Vec<_>>().join(" ");
        write!(f, "[{}] -> [{}]", list(&self.params), list(&self.results))
    }
}

/// Size limits of a memory, in its pages, or of a table, in elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Limits {
    /// Initial size.
    pub min: u64,
    /// Largest size that growing may reach; `None` where only the index type bounds it.
    pub max: Option<u64>,
}

/// The type of a linear memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MemoryType {
    /// Size limits in pages.
    pub limits: Limits,
    /// Whether addresses are i64.
    pub memory64: bool,
    /// Whether several threads may hold it.
    pub shared: bool,
    /// log2 of the page size in bytes: 16 unless custom page sizes say otherwise.
    pub page_size_log2: u8,
}

impl MemoryType {
    /// A memory with 32-bit addresses and pages of 64 KiB.
    pub fn new(min: u32, max: Option<u32>) -> MemoryType {
        let limits = Limits { min: min.into(), max: max.map(u64::from) };
        MemoryType { limits, memory64: false, shared: false, page_size_log2: 16 }
    }
}

/// The type of a table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TableType {
    /// Size limits in elements.
    pub limits: Limits,
    /// Whether indices are i64.
    pub table64: bool,
    /// Element type.
    pub element: RefType,
}

impl TableType {
    /// A table with 32-bit indices.
    pub fn new(element: RefType, min: u32, max: Option<u32>) -> TableType {
        TableType { limits: Limits { min: min.into(), max: max.map(u64::from) }, table64: false, element }
    }
}

/// The type of a global.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct GlobalType {
    /// Type of the value.
    pub value: ValType,
    /// Whether `global.set` is allowed.
    pub mutable: bool,
}

impl GlobalType {
    /// The type of a global that holds a `value`.
    pub fn new(value: ValType, mutable: bool) -> GlobalType {
        GlobalType { value, mutable }
    }
}
