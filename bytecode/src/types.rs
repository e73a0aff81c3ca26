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
    /// The type of the value that it refers to.
    pub heap: HeapType,
}

/// The type of the value that a reference refers to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HeapType {
    /// Any function.
    Func,
    /// Any host value.
    Extern,
    /// Any exception.
    Exn,
    /// No exception: only null is a value of such a reference type.
    NoExn,
    /// The module's type with this index.
    Concrete(u32),
}

impl HeapType {
    /// Whether such values are in the store's collected heap. Functions are not: they live as long as their store.
    pub const fn is_collected(self) -> bool {
        match self {
            HeapType::Extern | HeapType::Exn | HeapType::NoExn => true,
            HeapType::Func | HeapType::Concrete(_) => false,
        }
    }

    /// Whether it is that of any function.
    pub fn is_func(&self) -> bool {
        *self == HeapType::Func
    }

    /// Whether it is that of any host value.
    pub fn is_extern(&self) -> bool {
        *self == HeapType::Extern
    }

    /// Whether it is that of any exception.
    pub fn is_exn(&self) -> bool {
        *self == HeapType::Exn
    }

    /// Whether it is that of no exception.
    pub fn is_no_exn(&self) -> bool {
        *self == HeapType::NoExn
    }

    /// Whether it is not defined in a module.
    pub fn is_abstract(&self) -> bool {
        !self.is_concrete()
    }

    /// Whether it is a function type that is defined in a module.
    pub fn is_concrete(&self) -> bool {
        self.is_concrete_func()
    }

    /// Whether it is a function type that is defined in a module.
    pub fn is_concrete_func(&self) -> bool {
        matches!(self, HeapType::Concrete(_))
    }

    /// The type of which all that match this one are subtypes.
    pub fn top(&self) -> HeapType {
        match self {
            HeapType::Func | HeapType::Concrete(_) => HeapType::Func,
            HeapType::Extern => HeapType::Extern,
            HeapType::Exn | HeapType::NoExn => HeapType::Exn,
        }
    }

    /// Whether no other type has all of its values.
    pub fn is_top(&self) -> bool {
        *self == self.top()
    }

    /// Whether every value of this type is one of type `other`. Concrete types are compared by index.
    pub fn matches(&self, other: &HeapType) -> bool {
        let is_sub = matches!((self, other), (HeapType::Concrete(_), HeapType::Func) | (HeapType::NoExn, HeapType::Exn));
        self == other || is_sub
    }
}

impl ValType {
    /// `funcref`
    pub const FUNCREF: ValType = ValType::Ref(RefType::FUNCREF);
    /// `externref`
    pub const EXTERNREF: ValType = ValType::Ref(RefType::EXTERNREF);
    /// `exnref`
    pub const EXNREF: ValType = ValType::Ref(RefType::EXNREF);
    /// `nullexnref`, of which only null is a value
    pub const NULLEXNREF: ValType = ValType::Ref(RefType::NULLEXNREF);

    /// Whether it is a number: neither vector nor reference.
    pub fn is_num(&self) -> bool {
        matches!(self, ValType::I32 | ValType::I64 | ValType::F32 | ValType::F64)
    }

    /// Whether it is [`ValType::I32`].
    pub fn is_i32(&self) -> bool {
        *self == ValType::I32
    }

    /// Whether it is [`ValType::I64`].
    pub fn is_i64(&self) -> bool {
        *self == ValType::I64
    }

    /// Whether it is [`ValType::F32`].
    pub fn is_f32(&self) -> bool {
        *self == ValType::F32
    }

    /// Whether it is [`ValType::F64`].
    pub fn is_f64(&self) -> bool {
        *self == ValType::F64
    }

    /// Whether it is [`ValType::V128`].
    pub fn is_v128(&self) -> bool {
        *self == ValType::V128
    }

    /// Whether it is `exnref`.
    pub fn is_exnref(&self) -> bool {
        *self == ValType::EXNREF
    }

    /// Whether it is a reference type.
    pub fn is_ref(&self) -> bool {
        self.as_ref().is_some()
    }

    /// Whether it is `funcref`.
    pub fn is_funcref(&self) -> bool {
        *self == ValType::FUNCREF
    }

    /// Whether values of it are references into the collected heap, which may move: see [`HeapType::is_collected`].
    pub fn is_collected(&self) -> bool {
        matches!(self, ValType::Ref(ty) if ty.heap.is_collected())
    }

    /// Whether it is `externref`.
    pub fn is_externref(&self) -> bool {
        *self == ValType::EXTERNREF
    }

    /// The reference type, if it is one.
    pub fn as_ref(&self) -> Option<&RefType> {
        match self {
            ValType::Ref(ty) => Some(ty),
            ValType::I32 | ValType::I64 | ValType::F32 | ValType::F64 | ValType::V128 => None,
        }
    }

    /// The reference type.
    ///
    /// # Panics
    /// It is not a reference type.
    pub fn unwrap_ref(&self) -> &RefType {
        self.as_ref().unwrap_or_else(|| panic!("expected a reference type, found {self}"))
    }

    /// Whether every value of this type is one of type `other`.
    pub fn matches(&self, other: &ValType) -> bool {
        match (self, other) {
            (ValType::Ref(sub), ValType::Ref(sup)) => sub.matches(sup),
            _ => self == other,
        }
    }
}

impl RefType {
    /// `(ref null func)`
    pub const FUNCREF: RefType = RefType { nullable: true, heap: HeapType::Func };
    /// `(ref null extern)`
    pub const EXTERNREF: RefType = RefType { nullable: true, heap: HeapType::Extern };
    /// `(ref null exn)`
    pub const EXNREF: RefType = RefType { nullable: true, heap: HeapType::Exn };
    /// `(ref null noexn)`
    pub const NULLEXNREF: RefType = RefType { nullable: true, heap: HeapType::NoExn };

    /// The type of references, or of references and null, to `heap`.
    pub fn new(nullable: bool, heap: HeapType) -> RefType {
        RefType { nullable, heap }
    }

    /// Whether null is a value of it.
    pub fn is_nullable(&self) -> bool {
        self.nullable
    }

    /// The type of the value that it refers to.
    pub fn heap_type(&self) -> &HeapType {
        &self.heap
    }

    /// Whether every reference of this type is one of type `other`. Concrete types are compared by index.
    pub fn matches(&self, other: &RefType) -> bool {
        self.heap.matches(&other.heap) && (other.nullable || !self.nullable)
    }
}

impl From<RefType> for ValType {
    fn from(ty: RefType) -> ValType {
        ValType::Ref(ty)
    }
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
            ValType::Ref(RefType::EXNREF) => f.write_str("exnref"),
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
            HeapType::Exn => f.write_str("exn"),
            HeapType::NoExn => f.write_str("noexn"),
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

    /// A memory with 64-bit addresses and pages of 64 KiB.
    pub fn new64(min: u64, max: Option<u64>) -> MemoryType {
        MemoryType { limits: Limits { min, max }, memory64: true, shared: false, page_size_log2: 16 }
    }

    /// Begins a type with no pages at first, 32-bit addresses and pages of 64 KiB.
    pub fn builder() -> MemoryTypeBuilder {
        MemoryTypeBuilder::new()
    }

    /// Whether addresses are i64.
    pub fn is_64(&self) -> bool {
        self.memory64
    }

    /// Whether several threads may hold it.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// Initial size in pages.
    pub fn minimum(&self) -> u64 {
        self.limits.min
    }

    /// Largest size in pages, if the type has one.
    pub fn maximum(&self) -> Option<u64> {
        self.limits.max
    }

    /// Bytes of a page.
    pub fn page_size(&self) -> u64 {
        1 << self.page_size_log2
    }

    /// log2 of the bytes of a page.
    pub fn page_size_log2(&self) -> u8 {
        self.page_size_log2
    }
}

/// Builds a [`MemoryType`].
#[derive(Clone, Debug)]
pub struct MemoryTypeBuilder {
    ty: MemoryType,
}

/// A [`MemoryTypeBuilder`] describes no memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidMemoryType {
    /// The largest size is less than the initial one.
    #[error("maximum page size cannot be smaller than the minimum page size")]
    Limits,
    /// Pages have one byte or 64 KiB.
    #[error(
        "page size must be 2**16 or 2**0, but was given 2**{0}; note that future Wasm extensions might allow any power of two page \
         size, but only 2**16 and 2**0 are currently valid"
    )]
    PageSize(u8),
    /// The initial size does not fit the addresses.
    #[error("minimum size is too large for this memory type's index type")]
    Minimum,
    /// The largest size does not fit the addresses.
    #[error("maximum size is too large for this memory type's index type")]
    Maximum,
    /// Shared memories have a largest size.
    #[error("shared memories must have a maximum size")]
    Shared,
}

impl Default for MemoryTypeBuilder {
    fn default() -> MemoryTypeBuilder {
        MemoryTypeBuilder { ty: MemoryType::new(0, None) }
    }
}

impl MemoryTypeBuilder {
    /// Begins as [`MemoryType::builder`].
    pub fn new() -> MemoryTypeBuilder {
        MemoryTypeBuilder::default()
    }

    /// Sets the initial size in pages.
    pub fn min(&mut self, min: u64) -> &mut Self {
        self.ty.limits.min = min;
        self
    }

    /// Sets the largest size in pages.
    pub fn max(&mut self, max: Option<u64>) -> &mut Self {
        self.ty.limits.max = max;
        self
    }

    /// Sets whether addresses are i64.
    pub fn memory64(&mut self, memory64: bool) -> &mut Self {
        self.ty.memory64 = memory64;
        self
    }

    /// Sets whether several threads may hold it.
    pub fn shared(&mut self, shared: bool) -> &mut Self {
        self.ty.shared = shared;
        self
    }

    /// Sets log2 of the bytes of a page: 0 or 16.
    pub fn page_size_log2(&mut self, page_size_log2: u8) -> &mut Self {
        self.ty.page_size_log2 = page_size_log2;
        self
    }

    /// Returns the type.
    ///
    /// # Errors
    /// There is no such memory.
    pub fn build(&self) -> Result<MemoryType, InvalidMemoryType> {
        let MemoryType { limits: Limits { min, max }, memory64, shared, page_size_log2 } = self.ty;
        if max.is_some_and(|max| max < min) {
            return Err(InvalidMemoryType::Limits);
        }
        if page_size_log2 != 0 && page_size_log2 != 16 {
            return Err(InvalidMemoryType::PageSize(page_size_log2));
        }
        if shared && max.is_none() {
            return Err(InvalidMemoryType::Shared);
        }
        // Addresses have 32 or 64 bits, and memories as many bytes; 2^64 bytes in pages of one byte are one too many for a `u64`.
        let most = match (memory64, page_size_log2) {
            (false, log2) => 1 << (32 - log2),
            (true, 0) => u64::MAX,
            (true, log2) => 1 << (64 - log2),
        };
        match max {
            _ if min > most => Err(InvalidMemoryType::Minimum),
            Some(max) if max > most => Err(InvalidMemoryType::Maximum),
            _ => Ok(self.ty),
        }
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

    /// A table with 64-bit indices.
    pub fn new64(element: RefType, min: u64, max: Option<u64>) -> TableType {
        TableType { limits: Limits { min, max }, table64: true, element }
    }

    /// Whether indices are i64.
    pub fn is_64(&self) -> bool {
        self.table64
    }

    /// Element type.
    pub fn element(&self) -> &RefType {
        &self.element
    }

    /// Initial number of elements.
    pub fn minimum(&self) -> u64 {
        self.limits.min
    }

    /// Largest number of elements, if the type has one.
    pub fn maximum(&self) -> Option<u64> {
        self.limits.max
    }
}

/// Whether a global can change.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mutability {
    /// It cannot.
    Const,
    /// It can.
    Var,
}

impl Mutability {
    /// Whether it cannot.
    pub fn is_const(&self) -> bool {
        *self == Mutability::Const
    }

    /// Whether it can.
    pub fn is_var(&self) -> bool {
        *self == Mutability::Var
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
    pub fn new(value: ValType, mutability: Mutability) -> GlobalType {
        GlobalType { value, mutable: mutability.is_var() }
    }

    /// Type of the value.
    pub fn content(&self) -> &ValType {
        &self.value
    }

    /// Whether `global.set` is allowed.
    pub fn mutability(&self) -> Mutability {
        if self.mutable { Mutability::Var } else { Mutability::Const }
    }
}
