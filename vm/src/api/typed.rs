//! Functions whose types are known to Rust: calls without checks, and closures as host functions.

use crate::api::caller::Caller;
use crate::api::store::AsContextMut;
use crate::api::value::{Ref, V128};
use crate::exec::entry;
use crate::exec::host::{Access, host_func};
use crate::records::host::HostFunc;
use crate::records::stack::{read_slot, write_slot};
use crate::records::store::StoreRecord;
use crate::{Error, ExnRef, ExternRef, Func, OwnedRooted, RefType, Result, Rooted, ValType};
use std::marker::PhantomData;
use std::sync::Arc;
use weir_bytecode::FuncType;
use weir_contract::InstanceCtx;

/// A Rust type that represents one WebAssembly value: `i32`, `u32`, `i64`, `u64`, `f32`, `f64`, [`V128`],
/// `Option<Func>` for `funcref`, `Option<Rooted<ExternRef>>` for `externref` and `Option<Rooted<ExnRef>>` for `exnref`, with [`OwnedRooted`]
/// instead of [`Rooted`], and each without `Option` for the type of references that are not null.
pub trait WasmTy: Send + Sealed {
    /// Number of 8-byte words of a slot.
    #[doc(hidden)]
    const WORDS: usize = 1;

    /// Whether reading a value adds a scoped root.
    #[doc(hidden)]
    const IS_SCOPED: bool = false;

    /// The value type.
    #[doc(hidden)]
    fn ty() -> ValType;

    /// Checks that a reference can be used.
    ///
    /// # Errors
    /// Its scope has ended; or it belongs to another store, which `foreign` says.
    ///
    /// # Safety
    /// The store is live, and nothing else uses it.
    #[doc(hidden)]
    unsafe fn check(&self, _store: StoreAddress, _foreign: &'static str) -> Result<()> {
        Ok(())
    }

    /// Returns its representation in a slot of the store.
    ///
    /// # Safety
    /// As for [`WasmTy::check`], which has been called.
    #[doc(hidden)]
    unsafe fn into_bits(self, store: StoreAddress) -> u128;

    /// Returns the value that a slot represents.
    ///
    /// # Safety
    /// The slot holds a value of this type, of this live store, which nothing else uses.
    #[doc(hidden)]
    unsafe fn from_bits(bits: u128, store: StoreAddress) -> Self;
}

/// The error of an argument of another store.
pub(super) const FOREIGN_ARGUMENT: &str = "attempt to pass cross-`Store` value to Wasm as function argument";
/// The error of a result of another store.
pub(super) const FOREIGN_RESULT: &str = "host function attempted to return cross-`Store` value to Wasm";

/// Returns an error with this text unless something belongs to the store at hand.
fn check_own(is_own: bool, foreign: &'static str) -> Result<()> {
    if is_own { Ok(()) } else { Err(Error::msg(foreign)) }
}

/// The address of a store's record.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct StoreAddress(pub(crate) *mut StoreRecord);

/// Keeps other crates from implementing these traits, on which the safety of this module depends.
pub trait Sealed {}

macro_rules! numbers {
    ($($ty:ty, $val:ident, $value:ident => $to:expr, $bits:ident => $from:expr;)*) => {
        $(
            impl Sealed for $ty {}

            impl WasmTy for $ty {
                fn ty() -> ValType {
                    ValType::$val
                }

                unsafe fn into_bits(self, _store: StoreAddress) -> u128 {
                    let $value = self;
                    u128::from($to)
                }

                unsafe fn from_bits($bits: u128, _store: StoreAddress) -> $ty {
                    $from
                }
            }
        )*
    };
}

numbers! {
    i32, I32, value => value as u32, bits => bits as i32;
    u32, I32, value => value, bits => bits as u32;
    i64, I64, value => value as u64, bits => bits as i64;
    u64, I64, value => value, bits => bits as u64;
    f32, F32, value => value.to_bits(), bits => f32::from_bits(bits as u32);
    f64, F64, value => value.to_bits(), bits => f64::from_bits(bits as u64);
}

impl Sealed for V128 {}

impl WasmTy for V128 {
    const WORDS: usize = 2;

    fn ty() -> ValType {
        ValType::V128
    }

    unsafe fn into_bits(self, _store: StoreAddress) -> u128 {
        self.into()
    }

    unsafe fn from_bits(bits: u128, _store: StoreAddress) -> V128 {
        bits.into()
    }
}

impl Sealed for Option<Func> {}

impl WasmTy for Option<Func> {
    fn ty() -> ValType {
        ValType::FUNCREF
    }

    unsafe fn check(&self, store: StoreAddress, foreign: &'static str) -> Result<()> {
        // SAFETY: the caller's promise.
        check_own(self.is_none_or(|func| func.belongs_to(unsafe { (*store.0).id })), foreign)
    }

    unsafe fn into_bits(self, store: StoreAddress) -> u128 {
        // SAFETY: the caller's promise.
        self.map_or(0, |func| func.in_store(unsafe { (*store.0).id }) as u128)
    }

    unsafe fn from_bits(bits: u128, store: StoreAddress) -> Option<Func> {
        // SAFETY: the caller's promise.
        match unsafe { Ref::from_slot(bits as u64, store.0, RefType::FUNCREF) } {
            Ref::Func(func) => func,
            Ref::Extern(_) | Ref::Exn(_) => None,
        }
    }
}

impl Sealed for Func {}

impl WasmTy for Func {
    fn ty() -> ValType {
        ValType::Ref(RefType { nullable: false, ..RefType::FUNCREF })
    }

    unsafe fn check(&self, store: StoreAddress, foreign: &'static str) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { WasmTy::check(&Some(*self), store, foreign) }
    }

    unsafe fn into_bits(self, store: StoreAddress) -> u128 {
        // SAFETY: the caller's promise.
        unsafe { Some(self).into_bits(store) }
    }

    unsafe fn from_bits(bits: u128, store: StoreAddress) -> Func {
        // SAFETY: the caller's promise.
        unsafe { Option::from_bits(bits, store) }.expect("a value of this type is not null")
    }
}

macro_rules! references {
    ($($ty:ty, $name:ident;)*) => {
        $(
            impl Sealed for Rooted<$ty> {}

            impl WasmTy for Rooted<$ty> {
                const IS_SCOPED: bool = true;

                fn ty() -> ValType {
                    ValType::Ref(RefType { nullable: false, ..RefType::$name })
                }

                unsafe fn check(&self, store: StoreAddress, foreign: &'static str) -> Result<()> {
                    // SAFETY: the caller's promise.
                    unsafe {
                        check_own(self.belongs_to((*store.0).id), foreign)?;
                        self.slot(store.0).map(drop)
                    }
                }

                unsafe fn into_bits(self, store: StoreAddress) -> u128 {
                    // SAFETY: the caller's promise.
                    unsafe { self.slot(store.0) }.expect("it has been checked").into()
                }

                unsafe fn from_bits(bits: u128, store: StoreAddress) -> Rooted<$ty> {
                    // SAFETY: the caller's promise: a value of this type is not null.
                    unsafe { Rooted::push(store.0, bits as u32) }
                }
            }

            impl Sealed for OwnedRooted<$ty> {}

            impl WasmTy for OwnedRooted<$ty> {
                fn ty() -> ValType {
                    <Rooted<$ty>>::ty()
                }

                unsafe fn check(&self, store: StoreAddress, foreign: &'static str) -> Result<()> {
                    // SAFETY: the caller's promise.
                    check_own(self.belongs_to(unsafe { (*store.0).id }), foreign)
                }

                unsafe fn into_bits(self, store: StoreAddress) -> u128 {
                    // SAFETY: the caller's promise.
                    unsafe { self.slot(store.0) }.into()
                }

                unsafe fn from_bits(bits: u128, store: StoreAddress) -> OwnedRooted<$ty> {
                    // SAFETY: the caller's promise: a value of this type is not null.
                    unsafe { OwnedRooted::own(store.0, bits as u32) }
                }
            }

            impl Sealed for Option<OwnedRooted<$ty>> {}

            impl WasmTy for Option<OwnedRooted<$ty>> {
                fn ty() -> ValType {
                    ValType::$name
                }

                unsafe fn check(&self, store: StoreAddress, foreign: &'static str) -> Result<()> {
                    // SAFETY: the caller's promise.
                    self.as_ref().map_or(Ok(()), |reference| unsafe { WasmTy::check(reference, store, foreign) })
                }

                unsafe fn into_bits(self, store: StoreAddress) -> u128 {
                    // SAFETY: the caller's promise.
                    self.map_or(0, |reference| unsafe { reference.slot(store.0) }.into())
                }

                unsafe fn from_bits(bits: u128, store: StoreAddress) -> Option<OwnedRooted<$ty>> {
                    // SAFETY: the caller's promise.
                    (bits as u32 != 0).then(|| unsafe { OwnedRooted::own(store.0, bits as u32) })
                }
            }

            impl Sealed for Option<Rooted<$ty>> {}

            impl WasmTy for Option<Rooted<$ty>> {
                const IS_SCOPED: bool = true;

                fn ty() -> ValType {
                    ValType::$name
                }

                unsafe fn check(&self, store: StoreAddress, foreign: &'static str) -> Result<()> {
                    // SAFETY: the caller's promise.
                    self.map_or(Ok(()), |reference| unsafe { WasmTy::check(&reference, store, foreign) })
                }

                unsafe fn into_bits(self, store: StoreAddress) -> u128 {
                    // SAFETY: the caller's promise.
                    let slot = self.map_or(Ok(0), |reference| unsafe { reference.slot(store.0) });
                    slot.expect("it has been checked").into()
                }

                unsafe fn from_bits(bits: u128, store: StoreAddress) -> Option<Rooted<$ty>> {
                    // SAFETY: the caller's promise.
                    (bits as u32 != 0).then(|| unsafe { Rooted::push(store.0, bits as u32) })
                }
            }
        )*
    };
}

references! {
    ExternRef, EXTERNREF;
    ExnRef, EXNREF;
}

/// Arguments of a call: a [`WasmTy`] or a tuple of up to seventeen.
pub trait WasmParams: Send {
    /// Number of arguments.
    #[doc(hidden)]
    const COUNT: usize;

    /// Words of each argument's slot: see [`slot_words`](weir_contract::slot_words).
    #[doc(hidden)]
    const WORDS: usize;

    /// Whether reading the arguments adds scoped roots.
    #[doc(hidden)]
    const ARE_SCOPED: bool;

    /// Types of the arguments.
    #[doc(hidden)]
    fn types() -> Vec<ValType>;

    /// Checks that references can be used.
    ///
    /// # Errors
    /// As for [`WasmTy::check`].
    ///
    /// # Safety
    /// The store is live, and nothing else uses it.
    #[doc(hidden)]
    unsafe fn check(&self, store: StoreAddress, foreign: &'static str) -> Result<()>;

    /// Writes the arguments to the first slots.
    ///
    /// # Safety
    /// As for [`WasmParams::check`], which has been called; there are as many slots as types.
    #[doc(hidden)]
    unsafe fn write(self, slots: *mut u64, store: StoreAddress);
}

/// Results of a call: a [`WasmTy`] or a tuple of up to seventeen.
pub trait WasmResults: WasmParams {
    /// Reads the results from the first slots.
    ///
    /// # Safety
    /// Values of those types are in the slots, of this live store, which nothing else uses.
    #[doc(hidden)]
    unsafe fn read(slots: *const u64, store: StoreAddress) -> Self;
}

/// The parameters of an asynchronous host function, as a tuple of up to seventeen [`WasmTy`]s: see
/// [`Linker::func_wrap_async`](crate::Linker::func_wrap_async).
pub trait WasmTyList: WasmResults {}

/// The return types of host functions: [`WasmResults`], or a `Result` of them, whose error ends the guest's execution
/// and is returned by the call into the guest.
pub trait WasmRet {
    /// The type of the results.
    #[doc(hidden)]
    type Results: WasmResults;

    /// Returns the results or the error.
    #[doc(hidden)]
    fn into_result(self) -> Result<Self::Results>;
}

impl<R: WasmResults> WasmRet for R {
    type Results = R;

    fn into_result(self) -> Result<R> {
        Ok(self)
    }
}

impl<R: WasmResults> WasmRet for Result<R, Error> {
    type Results = R;

    fn into_result(self) -> Result<R> {
        self
    }
}

impl<V: WasmTy> WasmParams for V {
    const COUNT: usize = 1;
    const WORDS: usize = V::WORDS;
    const ARE_SCOPED: bool = V::IS_SCOPED;

    fn types() -> Vec<ValType> {
        vec![V::ty()]
    }

    unsafe fn check(&self, store: StoreAddress, foreign: &'static str) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { WasmTy::check(self, store, foreign) }
    }

    unsafe fn write(self, slots: *mut u64, store: StoreAddress) {
        // SAFETY: the caller's promise.
        unsafe { write_slot(slots, V::WORDS, self.into_bits(store)) };
    }
}

impl<V: WasmTy> WasmResults for V {
    unsafe fn read(slots: *const u64, store: StoreAddress) -> V {
        // SAFETY: the caller's promise.
        unsafe { V::from_bits(read_slot(slots, V::WORDS), store) }
    }
}

/// A closure that can be a host function: an optional [`Caller`], up to seventeen [`WasmTy`] parameters, and a
/// [`WasmRet`].
///
/// ```
/// use weir::{Caller, Engine, Error, Func, Store};
///
/// let mut store = Store::new(&Engine::default(), 0u64);
/// Func::wrap(&mut store, || 42i32);
/// Func::wrap(&mut store, |mut caller: Caller<'_, u64>, n: u64| *caller.data_mut() += n);
/// Func::wrap(&mut store, |a: f64, b: f64| -> Result<(f64, f64), Error> { Ok((b, a)) });
/// ```
pub trait IntoFunc<T, Params, Results>: Send + Sync + 'static {
    /// Converts the closure into a host function.
    #[doc(hidden)]
    fn into_func(self) -> HostFunction;
}

/// A host function that has not been added to a store yet.
#[doc(hidden)]
pub struct HostFunction(pub(crate) Arc<HostFunc>);

macro_rules! tuples {
    ($($($name:ident)*;)*) => {
        $(tuple!($($name)*);)*
    };
}

macro_rules! tuple {
    ($($name:ident)*) => {
        #[allow(non_snake_case, unused_variables, unused_mut, unused_assignments)]
        impl<$($name: WasmTy),*> WasmParams for ($($name,)*) {
            const COUNT: usize = <[&str]>::len(&[$(stringify!($name)),*]);
            const WORDS: usize = if false $(|| $name::WORDS == 2)* { 2 } else { 1 };
            const ARE_SCOPED: bool = false $(|| $name::IS_SCOPED)*;

            fn types() -> Vec<ValType> {
                vec![$($name::ty()),*]
            }

            unsafe fn check(&self, store: StoreAddress, foreign: &'static str) -> Result<()> {
                let ($($name,)*) = self;
                $(
                    // SAFETY: the caller's promise.
                    unsafe { WasmTy::check($name, store, foreign)? };
                )*
                Ok(())
            }

            unsafe fn write(self, slots: *mut u64, store: StoreAddress) {
                let ($($name,)*) = self;
                let mut slot = slots;
                $(
                    // SAFETY: the caller's promise.
                    unsafe { write_slot(slot, Self::WORDS, $name.into_bits(store)) };
                    slot = slot.wrapping_add(Self::WORDS);
                )*
            }
        }

        #[allow(unused_variables, unused_mut, unused_assignments, clippy::unused_unit)]
        impl<$($name: WasmTy),*> WasmResults for ($($name,)*) {
            unsafe fn read(slots: *const u64, store: StoreAddress) -> Self {
                let mut slot = slots;
                ($({
                    // SAFETY: the caller's promise.
                    let value = unsafe { $name::from_bits(read_slot(slot, Self::WORDS), store) };
                    slot = slot.wrapping_add(Self::WORDS);
                    value
                },)*)
            }
        }

        impl<$($name: WasmTy),*> WasmTyList for ($($name,)*) {}

        #[allow(non_snake_case)]
        impl<T: 'static, F, $($name: WasmTy,)* R: WasmRet> IntoFunc<T, ($($name,)*), R> for F
        where
            F: Fn($($name),*) -> R + Send + Sync + 'static,
        {
            fn into_func(self) -> HostFunction {
                host_function::<T, ($($name,)*), R, false>(move |_, ($($name,)*)| self($($name),*))
            }
        }

        #[allow(non_snake_case)]
        impl<T: 'static, F, $($name: WasmTy,)* R: WasmRet> IntoFunc<T, (Caller<'_, T>, $($name,)*), R> for F
        where
            F: Fn(Caller<'_, T>, $($name),*) -> R + Send + Sync + 'static,
        {
            fn into_func(self) -> HostFunction {
                host_function::<T, ($($name,)*), R, true>(move |caller, ($($name,)*)| self(caller, $($name),*))
            }
        }
    };
}

tuples! {
    ;
    A1;
    A1 A2;
    A1 A2 A3;
    A1 A2 A3 A4;
    A1 A2 A3 A4 A5;
    A1 A2 A3 A4 A5 A6;
    A1 A2 A3 A4 A5 A6 A7;
    A1 A2 A3 A4 A5 A6 A7 A8;
    A1 A2 A3 A4 A5 A6 A7 A8 A9;
    A1 A2 A3 A4 A5 A6 A7 A8 A9 A10;
    A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11;
    A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12;
    A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12 A13;
    A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12 A13 A14;
    A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12 A13 A14 A15;
    A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12 A13 A14 A15 A16;
    A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12 A13 A14 A15 A16 A17;
}

/// The access to the store of a host function with parameters `P`, which receives a [`Caller`] if `CALLER` is true. One without a caller
/// and without references of the caller's scope cannot use it.
struct Typed<P, const CALLER: bool>(PhantomData<P>);

impl<P: WasmParams, const CALLER: bool> Access for Typed<P, CALLER> {
    const STORE: bool = CALLER || P::ARE_SCOPED;
}

/// Makes a host function that reads its parameters from the slots and writes its results there. Without `CALLER` it drops the caller.
fn host_function<T: 'static, P: WasmResults, R: WasmRet, const CALLER: bool>(
    func: impl Fn(Caller<'_, T>, P) -> R + Send + Sync + 'static,
) -> HostFunction {
    let ty = FuncType { params: P::types().into(), results: R::Results::types().into() };
    let call = move |store: *mut StoreRecord, importer: *mut InstanceCtx, slots: *mut u64| -> Result<()> {
        // SAFETY: `exec::host` passes a live store whose data is a `T`, the parameters in the slots, and room for
        // the results.
        unsafe {
            let address = StoreAddress(store);
            let params = P::read(slots, address);
            let results = func(Caller::new(store, importer), params).into_result()?;
            results.check(address, FOREIGN_RESULT)?;
            results.write(slots, address);
        }
        Ok(())
    };
    HostFunction(Arc::new(host_func::<_, Typed<P, CALLER>>(ty, call)))
}

/// A [`Func`] whose type is known to Rust. The type is checked when the handle is made, not when the function is
/// called.
///
/// ```
/// use weir::{Engine, Instance, Module, Store, TypedFunc};
///
/// let engine = Engine::default();
/// let module = Module::new(&engine, r#"
///     (module (func (export "swap") (param i32 f64) (result f64 i32) (local.get 1) (local.get 0)))
/// "#)?;
/// let mut store = Store::new(&engine, ());
/// let instance = Instance::new(&mut store, &module, &[])?;
/// let swap: TypedFunc<(i32, f64), (f64, i32)> = instance.get_typed_func(&mut store, "swap")?;
/// assert_eq!(swap.call(&mut store, (1, 2.5))?, (2.5, 1));
/// assert!(instance.get_typed_func::<(f64, i32), (f64, i32)>(&mut store, "swap").is_err());
/// # Ok::<(), weir::Error>(())
/// ```
pub struct TypedFunc<P, R> {
    func: Func,
    marker: PhantomData<fn(P) -> R>,
}

impl<P, R> Clone for TypedFunc<P, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P, R> Copy for TypedFunc<P, R> {}

impl<P, R> std::fmt::Debug for TypedFunc<P, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TypedFunc").field(&self.func).finish()
    }
}

impl<P: WasmParams, R: WasmResults> TypedFunc<P, R> {
    /// The words that a call needs.
    pub(super) const WORDS: usize = {
        let (params, results) = (P::COUNT * P::WORDS, R::COUNT * R::WORDS);
        if params > results { params } else { results }
    };

    /// Makes a handle of a function whose type has been checked.
    pub(crate) fn new(func: Func) -> TypedFunc<P, R> {
        TypedFunc { func, marker: PhantomData }
    }

    /// Returns the untyped handle.
    pub fn func(&self) -> &Func {
        &self.func
    }

    /// Calls the function.
    ///
    /// # Errors
    /// A [`Trap`](crate::Trap), with a backtrace; the error of a host function that was called on the way; an argument belongs to another
    /// store.
    ///
    /// # Panics
    /// With the panic of a host function; or if the function belongs to another store.
    pub fn call(&self, mut store: impl AsContextMut, params: P) -> Result<R> {
        let store = store.as_context_mut();
        let id = store.id();
        let func = self.func.in_store(id);
        // SAFETY: the store is borrowed, the function belongs to it, and its type was checked when this handle was
        // made.
        unsafe {
            let words = Self::WORDS;
            let address = StoreAddress(store.record());
            params.check(address, FOREIGN_ARGUMENT)?;
            entry::invoke(store.record(), func, words, |args| params.write(args, address), |args| R::read(args, address))
        }
    }
}
