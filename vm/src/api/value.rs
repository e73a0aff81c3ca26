//! Values passed between Rust and the guest.

use crate::api::rooted::{GcHeapOutOfMemory, GcRef, RootOf, Rooted, Sealed, raw_reference};
use crate::api::store::{AsContext, AsContextMut, StoreContext, StoreContextMut};
use crate::records::attending::drop_dead;
use crate::records::collect::make_room;
use crate::records::heap::{EXTERN_WORDS, HostValue};
use crate::records::roots::Root;
use crate::records::store::StoreRecord;
use crate::records::wording::{self, Long};
use crate::{Error, Func, HeapType, RefType, Result, ValType};
use std::any::Any;
use std::ptr::NonNull;
use weir_contract::FuncRef;

/// A WebAssembly value. Floats are stored as bits, which preserves NaNs.
#[derive(Clone, Copy, Debug)]
pub enum Val {
    /// An i32.
    I32(i32),
    /// An i64.
    I64(i64),
    /// An f32, as bits.
    F32(u32),
    /// An f64, as bits.
    F64(u64),
    /// A v128.
    V128(V128),
    /// A reference to a function, or null.
    FuncRef(Option<Func>),
    /// A reference to a host value, or null.
    ExternRef(Option<Rooted<ExternRef>>),
    /// A reference to an exception, or null.
    ExnRef(Option<Rooted<ExnRef>>),
}

macro_rules! numbers {
    ($($variant:ident $get:ident $unwrap:ident $ty:ty, $bits:ident => $value:expr;)*) => {
        impl Val {
            $(
                #[doc = concat!("The value, if it is [`Val::", stringify!($variant), "`].")]
                pub fn $get(&self) -> Option<$ty> {
                    match *self {
                        Val::$variant($bits) => Some($value),
                        _ => None,
                    }
                }

                #[doc = concat!("The value of a [`Val::", stringify!($variant), "`].")]
                ///
                /// # Panics
                /// If it is something else.
                pub fn $unwrap(&self) -> $ty {
                    self.$get().unwrap_or_else(|| panic!(concat!("expected ", stringify!($variant), ", found {:?}"), self))
                }
            )*
        }
    };
}

numbers! {
    I32 i32 unwrap_i32 i32, value => value;
    I64 i64 unwrap_i64 i64, value => value;
    F32 f32 unwrap_f32 f32, bits => f32::from_bits(bits);
    F64 f64 unwrap_f64 f64, bits => f64::from_bits(bits);
    V128 v128 unwrap_v128 V128, value => value;
}

macro_rules! references {
    ($($variant:ident $get:ident $unwrap:ident $ty:ty;)*) => {
        impl Val {
            $(
                #[doc = concat!("The reference, `None` for null, if the value is [`Val::", stringify!($variant), "`].")]
                pub fn $get(&self) -> Option<Option<&$ty>> {
                    match self {
                        Val::$variant(reference) => Some(reference.as_ref()),
                        _ => None,
                    }
                }

                #[doc = concat!("The reference, `None` for null, of a [`Val::", stringify!($variant), "`].")]
                ///
                /// # Panics
                /// If it is something else.
                pub fn $unwrap(&self) -> Option<&$ty> {
                    self.$get().unwrap_or_else(|| panic!(concat!("expected ", stringify!($variant), ", found {:?}"), self))
                }
            )*
        }
    };
}

references! {
    FuncRef funcref unwrap_funcref Func;
    ExternRef externref unwrap_externref Rooted<ExternRef>;
    ExnRef exnref unwrap_exnref Rooted<ExnRef>;
}

impl Val {
    /// Returns the null reference of a heap type.
    pub fn null_ref(heap: &HeapType) -> Val {
        Ref::null(heap).into()
    }

    /// Returns the null function reference.
    pub const fn null_func_ref() -> Val {
        Val::FuncRef(None)
    }

    /// Returns the null host reference.
    pub const fn null_extern_ref() -> Val {
        Val::ExternRef(None)
    }

    /// Returns the null exception reference.
    pub const fn null_exn_ref() -> Val {
        Val::ExnRef(None)
    }

    /// Returns zero or null, or `None` for a type that has neither.
    pub fn default_for_ty(ty: &ValType) -> Option<Val> {
        Some(match ty {
            ValType::I32 => Val::I32(0),
            ValType::I64 => Val::I64(0),
            ValType::F32 => Val::F32(0),
            ValType::F64 => Val::F64(0),
            ValType::V128 => Val::V128(V128(0)),
            ValType::Ref(RefType { nullable: false, .. }) => return None,
            ValType::Ref(RefType { heap, .. }) => Val::null_ref(heap),
        })
    }

    /// Returns the type of the value; for a reference that is the general one: `funcref`, `externref` or `exnref`.
    ///
    /// # Errors
    /// None at present.
    pub fn ty(&self, _store: impl AsContext) -> Result<ValType> {
        Ok(self.general_type())
    }

    pub(crate) fn general_type(&self) -> ValType {
        match self {
            Val::I32(_) => ValType::I32,
            Val::I64(_) => ValType::I64,
            Val::F32(_) => ValType::F32,
            Val::F64(_) => ValType::F64,
            Val::V128(_) => ValType::V128,
            Val::FuncRef(_) => ValType::FUNCREF,
            Val::ExternRef(_) => ValType::EXTERNREF,
            Val::ExnRef(_) => ValType::EXNREF,
        }
    }

    /// Returns the reference if it is one to a function: another name of [`Val::funcref`].
    pub fn func_ref(&self) -> Option<Option<&Func>> {
        self.funcref()
    }

    /// The reference to a function: another name of [`Val::unwrap_funcref`].
    ///
    /// # Panics
    /// If it is something else.
    pub fn unwrap_func_ref(&self) -> Option<&Func> {
        self.unwrap_funcref()
    }

    /// Returns the reference if it is one to a host value: another name of [`Val::externref`].
    pub fn extern_ref(&self) -> Option<Option<&Rooted<ExternRef>>> {
        self.externref()
    }

    /// The reference to a host value: another name of [`Val::unwrap_externref`].
    ///
    /// # Panics
    /// If it is something else.
    pub fn unwrap_extern_ref(&self) -> Option<&Rooted<ExternRef>> {
        self.unwrap_externref()
    }

    /// Returns the reference, if the value is one.
    pub fn ref_(self) -> Option<Ref> {
        match self {
            Val::FuncRef(func) => Some(Ref::Func(func)),
            Val::ExternRef(value) => Some(Ref::Extern(value)),
            Val::ExnRef(exception) => Some(Ref::Exn(exception)),
            _ => None,
        }
    }

    /// Returns the representation in a store, as a value of type `ty`: the 16 bytes of a slot. A collection ends its validity.
    ///
    /// # Errors
    /// The value is not of that type, or the scope of a reference has ended.
    ///
    /// # Safety
    /// The store is live, and nothing else uses it.
    pub(crate) unsafe fn to_bits(self, store: *const StoreRecord, ty: ValType) -> Result<u128> {
        let mismatch = || match self.ref_() {
            Some(reference) => wording::mismatch(Long(ty), reference.found()),
            None => wording::mismatch(Long(ty), Long(self.general_type())),
        };
        match (self, ty) {
            (Val::I32(value), ValType::I32) => Ok(u128::from(value as u32)),
            (Val::I64(value), ValType::I64) => Ok(u128::from(value as u64)),
            (Val::F32(bits), ValType::F32) => Ok(u128::from(bits)),
            (Val::F64(bits), ValType::F64) => Ok(u128::from(bits)),
            (Val::V128(value), ValType::V128) => Ok(value.0),
            (Val::FuncRef(_) | Val::ExternRef(_) | Val::ExnRef(_), ValType::Ref(ty)) => {
                let reference = self.ref_().ok_or_else(mismatch)?;
                // SAFETY: the caller's promise.
                unsafe {
                    if !reference.belongs_to((*store).id) {
                        return Err(Error::msg("value used with wrong store"));
                    }
                    Ok(u128::from(reference.to_slot(store, ty)?))
                }
            }
            _ => Err(mismatch()),
        }
    }

    /// Returns the value of type `ty` that these bytes represent.
    ///
    /// # Safety
    /// The bytes represent such a value, in this live store, which nothing else uses.
    pub(crate) unsafe fn from_bits(bits: u128, store: *mut StoreRecord, ty: ValType) -> Val {
        match ty {
            ValType::I32 => Val::I32(bits as i32),
            ValType::I64 => Val::I64(bits as i64),
            ValType::F32 => Val::F32(bits as u32),
            ValType::F64 => Val::F64(bits as u64),
            ValType::V128 => Val::V128(V128(bits)),
            // SAFETY: the caller's promise.
            ValType::Ref(ty) => unsafe { Ref::from_slot(bits as u64, store, ty) }.into(),
        }
    }
}

impl From<i32> for Val {
    fn from(value: i32) -> Val {
        Val::I32(value)
    }
}

impl From<u32> for Val {
    fn from(value: u32) -> Val {
        Val::I32(value as i32)
    }
}

impl From<i64> for Val {
    fn from(value: i64) -> Val {
        Val::I64(value)
    }
}

impl From<u64> for Val {
    fn from(value: u64) -> Val {
        Val::I64(value as i64)
    }
}

impl From<f32> for Val {
    fn from(value: f32) -> Val {
        Val::F32(value.to_bits())
    }
}

impl From<f64> for Val {
    fn from(value: f64) -> Val {
        Val::F64(value.to_bits())
    }
}

impl From<V128> for Val {
    fn from(value: V128) -> Val {
        Val::V128(value)
    }
}

impl From<u128> for Val {
    fn from(value: u128) -> Val {
        Val::V128(value.into())
    }
}

impl From<Option<Func>> for Val {
    fn from(func: Option<Func>) -> Val {
        Val::FuncRef(func)
    }
}

impl From<Option<Rooted<ExternRef>>> for Val {
    fn from(value: Option<Rooted<ExternRef>>) -> Val {
        Val::ExternRef(value)
    }
}

impl From<Func> for Val {
    fn from(func: Func) -> Val {
        Val::FuncRef(Some(func))
    }
}

impl From<Rooted<ExternRef>> for Val {
    fn from(value: Rooted<ExternRef>) -> Val {
        Val::ExternRef(Some(value))
    }
}

impl From<Option<Rooted<ExnRef>>> for Val {
    fn from(exception: Option<Rooted<ExnRef>>) -> Val {
        Val::ExnRef(exception)
    }
}

impl From<Rooted<ExnRef>> for Val {
    fn from(exception: Rooted<ExnRef>) -> Val {
        Val::ExnRef(Some(exception))
    }
}

impl From<Ref> for Val {
    fn from(reference: Ref) -> Val {
        match reference {
            Ref::Func(func) => Val::FuncRef(func),
            Ref::Extern(value) => Val::ExternRef(value),
            Ref::Exn(exception) => Val::ExnRef(exception),
        }
    }
}

/// A vector of 128 bits. Lane 0 is the lowest.
///
/// ```
/// use weir::{Engine, Func, Store, V128};
///
/// let mut store = Store::new(&Engine::default(), ());
/// let swap = Func::wrap(&mut store, |v: V128| V128::from(v.as_u128().rotate_right(64)));
/// let swap = swap.typed::<V128, V128>(&store)?;
/// assert_eq!(swap.call(&mut store, V128::from(1 << 64))?.as_u128(), 1);
/// # Ok::<(), weir::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(transparent)]
pub struct V128(u128);

impl V128 {
    /// Returns the bits.
    pub fn as_u128(&self) -> u128 {
        self.0
    }
}

impl From<u128> for V128 {
    fn from(bits: u128) -> V128 {
        V128(bits)
    }
}

impl From<V128> for u128 {
    fn from(vector: V128) -> u128 {
        vector.0
    }
}

impl std::fmt::Display for V128 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#034x}", self.0)
    }
}

macro_rules! collected {
    ($($ty:ident;)*) => {
        $(
            impl Sealed for $ty {
                fn of(root: RootOf) -> $ty {
                    $ty { root: root.0 }
                }

                fn root(&self) -> RootOf {
                    RootOf(self.root)
                }
            }

            impl GcRef for $ty {}
        )*
    };
}

collected! {
    ExternRef;
    ExnRef;
}

/// A reference, as tables hold them.
#[derive(Clone, Copy, Debug)]
pub enum Ref {
    /// A function, or null.
    Func(Option<Func>),
    /// A host value, or null.
    Extern(Option<Rooted<ExternRef>>),
    /// An exception, or null.
    Exn(Option<Rooted<ExnRef>>),
}

impl Ref {
    /// Returns the null reference of a heap type.
    pub fn null(heap: &HeapType) -> Ref {
        match heap {
            HeapType::Extern => Ref::Extern(None),
            HeapType::Exn | HeapType::NoExn => Ref::Exn(None),
            HeapType::Func | HeapType::Concrete(_) => Ref::Func(None),
        }
    }

    /// Returns the general type of the reference: `funcref`, `externref` or `exnref`.
    ///
    /// # Errors
    /// None at present.
    pub fn ty(&self, _store: impl AsContext) -> Result<RefType> {
        Ok(match self {
            Ref::Func(_) => RefType::FUNCREF,
            Ref::Extern(_) => RefType::EXTERNREF,
            Ref::Exn(_) => RefType::EXNREF,
        })
    }

    /// Returns whether the reference is not null.
    pub fn is_non_null(&self) -> bool {
        !self.is_null()
    }

    /// Returns whether this is a function reference, null or not.
    pub fn is_func(&self) -> bool {
        self.as_func().is_some()
    }

    /// Returns whether this is a host reference, null or not.
    pub fn is_extern(&self) -> bool {
        self.as_extern().is_some()
    }

    /// Returns the function if this is [`Ref::Func`]; the inner `None` is null.
    pub fn as_func(&self) -> Option<Option<&Func>> {
        match self {
            Ref::Func(func) => Some(func.as_ref()),
            Ref::Extern(_) | Ref::Exn(_) => None,
        }
    }

    /// Returns the function of a [`Ref::Func`], or `None` if it is null.
    ///
    /// # Panics
    /// If this is not a [`Ref::Func`].
    pub fn unwrap_func(&self) -> Option<&Func> {
        self.as_func().unwrap_or_else(|| panic!("expected a function, found {self:?}"))
    }

    /// Returns the host value if this is [`Ref::Extern`]; the inner `None` is null.
    pub fn as_extern(&self) -> Option<Option<&Rooted<ExternRef>>> {
        match self {
            Ref::Extern(value) => Some(value.as_ref()),
            Ref::Func(_) | Ref::Exn(_) => None,
        }
    }

    /// Returns the host value of a [`Ref::Extern`], or `None` if it is null.
    ///
    /// # Panics
    /// If this is not a [`Ref::Extern`].
    pub fn unwrap_extern(&self) -> Option<&Rooted<ExternRef>> {
        self.as_extern().unwrap_or_else(|| panic!("expected a host value, found {self:?}"))
    }

    /// Returns whether this is a reference to an exception, null or not.
    pub fn is_exn(&self) -> bool {
        self.as_exn().is_some()
    }

    /// Returns the exception if this is [`Ref::Exn`]; the inner `None` is null.
    pub fn as_exn(&self) -> Option<Option<&Rooted<ExnRef>>> {
        match self {
            Ref::Exn(exception) => Some(exception.as_ref()),
            Ref::Func(_) | Ref::Extern(_) => None,
        }
    }

    /// Returns the exception of a [`Ref::Exn`], or `None` if it is null.
    ///
    /// # Panics
    /// If this is not a [`Ref::Exn`].
    pub fn unwrap_exn(&self) -> Option<&Rooted<ExnRef>> {
        self.as_exn().unwrap_or_else(|| panic!("expected an exception, found {self:?}"))
    }

    /// Returns whether the reference is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Ref::Func(None) | Ref::Extern(None) | Ref::Exn(None))
    }

    /// Its type, as errors write it.
    fn found(self) -> String {
        match (self.is_null(), Val::from(self).general_type()) {
            (true, ValType::Ref(RefType { heap, .. })) => wording::null(heap).into(),
            (false, ValType::Ref(ty)) => Long(ValType::Ref(RefType { nullable: false, ..ty })).to_string(),
            (_, ty) => Long(ty).to_string(),
        }
    }

    /// Returns whether it is null, or one of the store with this identity.
    fn belongs_to(&self, id: u64) -> bool {
        match self {
            Ref::Func(func) => func.is_none_or(|func| func.belongs_to(id)),
            Ref::Extern(value) => value.is_none_or(|value| value.belongs_to(id)),
            Ref::Exn(exception) => exception.is_none_or(|exception| exception.belongs_to(id)),
        }
    }

    /// Returns the representation in a slot of a store, as a reference of type `ty`. A collection ends its validity.
    ///
    /// # Errors
    /// The reference is not of that type, it belongs to another store, or its scope has ended.
    ///
    /// # Safety
    /// The store is live, and nothing else uses it.
    pub(crate) unsafe fn to_slot(self, store: *const StoreRecord, ty: RefType) -> Result<u64> {
        // SAFETY: the caller's promise.
        let id = unsafe { (*store).id };
        if !self.belongs_to(id) {
            return Err(Error::msg("reference used with wrong store"));
        }
        if self.is_null() && !ty.nullable {
            return Err(wording::mismatch(Long(ValType::Ref(ty)), self.found()));
        }
        match (self, ty.heap) {
            (Ref::Func(None), HeapType::Func | HeapType::Concrete(_)) | (Ref::Extern(None), HeapType::Extern) => Ok(0),
            (Ref::Exn(None), HeapType::Exn | HeapType::NoExn) => Ok(0),
            // SAFETY: the caller's promise.
            (Ref::Exn(Some(exception)), HeapType::Exn) => unsafe { exception.slot(store) },
            (Ref::Func(Some(func)), HeapType::Func) => Ok(func.in_store(id) as u64),
            (Ref::Func(Some(func)), HeapType::Concrete(sig)) if func.sig(id) == sig => Ok(func.in_store(id) as u64),
            // SAFETY: the caller's promise.
            (Ref::Extern(Some(value)), HeapType::Extern) => unsafe { value.slot(store) },
            _ => Err(wording::mismatch(Long(ValType::Ref(ty)), self.found())),
        }
    }

    /// Returns the reference in a slot, in the innermost scope of the store.
    ///
    /// # Safety
    /// The slot holds a reference of type `ty` of this live store, which nothing else uses.
    pub(crate) unsafe fn from_slot(slot: u64, store: *mut StoreRecord, ty: RefType) -> Ref {
        // SAFETY: the caller's promise.
        unsafe {
            match ty.heap {
                HeapType::Extern => Ref::Extern((slot != 0).then(|| Rooted::push(store, slot as u32))),
                HeapType::Exn | HeapType::NoExn => Ref::Exn((slot != 0).then(|| Rooted::push(store, slot as u32))),
                HeapType::Func | HeapType::Concrete(_) => {
                    Ref::Func(NonNull::new(slot as *mut FuncRef).map(|func| Func::from_ref((*store).id, func)))
                }
            }
        }
    }
}

impl From<Option<Func>> for Ref {
    fn from(func: Option<Func>) -> Ref {
        Ref::Func(func)
    }
}

impl From<Option<Rooted<ExternRef>>> for Ref {
    fn from(value: Option<Rooted<ExternRef>>) -> Ref {
        Ref::Extern(value)
    }
}

impl From<Func> for Ref {
    fn from(func: Func) -> Ref {
        Ref::Func(Some(func))
    }
}

impl From<Rooted<ExternRef>> for Ref {
    fn from(value: Rooted<ExternRef>) -> Ref {
        Ref::Extern(Some(value))
    }
}

impl From<Option<Rooted<ExnRef>>> for Ref {
    fn from(exception: Option<Rooted<ExnRef>>) -> Ref {
        Ref::Exn(exception)
    }
}

impl From<Rooted<ExnRef>> for Ref {
    fn from(exception: Rooted<ExnRef>) -> Ref {
        Ref::Exn(Some(exception))
    }
}

/// A host value that the guest can hold, pass on and return, but not inspect. It lives as long as the guest or the embedder refers to it: see
/// [`Rooted`] and [`Store::gc`](crate::Store::gc).
///
/// ```
/// use weir::{Engine, ExternRef, Store};
///
/// let mut store = Store::new(&Engine::default(), ());
/// let value = ExternRef::new(&mut store, "opaque")?;
/// let data = value.data(&store)?.expect("a host value has data");
/// assert_eq!(data.downcast_ref::<&str>(), Some(&"opaque"));
/// # Ok::<(), weir::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ExternRef {
    pub(crate) root: Root,
}

impl ExternRef {
    /// Adds a value to a store. May collect before.
    ///
    /// # Errors
    /// [`GcHeapOutOfMemory`], with the value: the store's limiter refuses the memory, or there is none.
    ///
    /// # Panics
    /// With the panic of the destructor of a value that is collected, as [`Store::gc`](crate::Store::gc).
    pub fn new<T: 'static + Any + Send + Sync>(mut store: impl AsContextMut, value: T) -> Result<Rooted<ExternRef>> {
        let store: *mut StoreRecord = store.as_context_mut().record();
        // SAFETY: the store is borrowed by the embedder's code, and no reference into it is held.
        unsafe {
            make_room(store, EXTERN_WORDS);
            if (*store).heap.has_dead() {
                drop_dead(store);
            }
            let made = match (*store).ask_for_objects(EXTERN_WORDS) {
                Ok(()) => (*store).heap.add_value(Box::new(value)),
                Err(error) => Err((error, Box::new(value) as HostValue)),
            };
            match made {
                Ok(reference) => Ok(Rooted::push(store, reference)),
                Err((error, value)) => {
                    let value = *value.downcast::<T>().expect("it was made above");
                    Err(error.context(GcHeapOutOfMemory::new(value, 8 * EXTERN_WORDS as u64)))
                }
            }
        }
    }

    /// Returns the value; every host value has one.
    ///
    /// # Errors
    /// The scope of the reference has ended.
    ///
    /// # Panics
    /// If the value belongs to another store.
    pub fn data<'a, T: 'static>(&self, store: impl Into<StoreContext<'a, T>>) -> Result<Option<&'a (dyn Any + Send + Sync)>> {
        let record = store.into().record();
        // SAFETY: the store is borrowed for `'a`, in which it collects nothing.
        unsafe {
            let reference = (*record).reference(self.root)?;
            Ok(Some(&**(*record).heap.value(reference)))
        }
    }

    /// Returns the value, mutably; every host value has one.
    ///
    /// # Errors
    /// The scope of the reference has ended.
    ///
    /// # Panics
    /// If the value belongs to another store.
    pub fn data_mut<'a, T: 'static>(
        &self,
        store: impl Into<StoreContextMut<'a, T>>,
    ) -> Result<Option<&'a mut (dyn Any + Send + Sync)>> {
        let record = store.into().record();
        // SAFETY: the store is exclusively borrowed for `'a`, in which it collects nothing.
        unsafe {
            let reference = (*record).reference(self.root)?;
            Ok(Some(&mut **(*record).heap.value_mut(reference)))
        }
    }

    /// Returns the reference in the form of [`ValRaw::externref`](crate::ValRaw::externref). It is valid until the next collection, and no
    /// root: nothing may be made in the store before it is used.
    ///
    /// # Errors
    /// The scope of the reference has ended.
    ///
    /// # Panics
    /// If the value belongs to another store.
    pub fn to_raw(&self, store: impl AsContextMut) -> Result<u32> {
        raw_reference(store, self.root)
    }

    /// Returns the reference of which this is the raw form; `None` for null.
    ///
    /// # Panics
    /// It is no reference to a host value of the store.
    pub fn from_raw(store: impl AsContextMut, raw: u32) -> Option<Rooted<ExternRef>> {
        Rooted::from_raw(store, raw, |heap| _ = heap.value(raw))
    }
}

/// An exception object. It lives as long as the guest or the embedder refers to it: see [`Rooted`]. Live objects count as a memory of the
/// store for its [limiter](crate::Store::limiter).
///
/// ```
/// use weir::{Caller, Engine, ExnRef, ExnRefPre, ExnType, FuncType, Instance, Linker, Module, Result, Store, Tag, TagType, Val, ValType};
///
/// let engine = Engine::default();
/// let module = Module::new(&engine, r#"
///     (module
///         (import "host" "failed" (tag $failed (param i32)))
///         (import "host" "work" (func $work))
///         (func (export "run") (result i32)
///             (block $caught (result i32)
///                 (try_table (catch $failed $caught) (call $work))
///                 (i32.const 0))))
/// "#)?;
/// let mut store = Store::new(&engine, ());
/// let ty = TagType::new(FuncType::new(&engine, [ValType::I32], []));
/// let failed = Tag::new(&mut store, &ty)?;
/// let mut linker = Linker::new(&engine);
/// linker.define(&store, "host", "failed", failed)?;
/// linker.func_wrap("host", "work", move |mut caller: Caller<'_, ()>| -> Result<()> {
///     let ty = ExnType::from_tag_type(&failed.ty(&caller))?;
///     let pre = ExnRefPre::new(&mut caller, ty);
///     let exception = ExnRef::new(&mut caller, &pre, &failed, &[Val::I32(7)])?;
///     caller.as_context_mut().throw(exception)
/// })?;
/// # use weir::AsContextMut;
/// let run = linker.instantiate(&mut store, &module)?.get_typed_func::<(), i32>(&mut store, "run")?;
/// assert_eq!(run.call(&mut store, ())?, 7);
/// # Ok::<(), weir::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ExnRef {
    pub(crate) root: Root,
}

impl ExnRef {
    /// Returns the reference in the form of [`ValRaw::exnref`](crate::ValRaw::exnref): see [`ExternRef::to_raw`].
    ///
    /// # Errors
    /// The scope of the reference has ended.
    ///
    /// # Panics
    /// If the exception belongs to another store.
    pub fn to_raw(&self, store: impl AsContextMut) -> Result<u32> {
        raw_reference(store, self.root)
    }

    /// Returns the reference of which this is the raw form; `None` for null.
    ///
    /// # Panics
    /// It is no reference to an exception of the store.
    pub fn from_raw(store: impl AsContextMut, raw: u32) -> Option<Rooted<ExnRef>> {
        Rooted::from_raw(store, raw, |heap| _ = heap.exception(raw))
    }
}
