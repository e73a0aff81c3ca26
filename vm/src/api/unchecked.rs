//! Calls and host functions without checks: arguments and results are raw values, whose types the embedder vouches for.

use crate::api::caller::Caller;
use crate::api::calls::check_count;
use crate::api::linker::Linker;
use crate::api::store::{AsContext, AsContextMut};
use crate::api::typed::{TypedFunc, WasmParams, WasmResults};
use crate::exec::entry;
use crate::exec::host::{Full, host_func};
use crate::records::host::HostFunc;
use crate::records::stack::{read_slot, write_slot};
use crate::records::store::StoreRecord;
use crate::{Func, FuncType, Result, Val, ValType};
use smallvec::SmallVec;
use std::ffi::c_void;
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use weir_bytecode::FuncType as PlainType;
use weir_contract::{InstanceCtx, call_words, slot_words};

/// A value without its type, of 16 bytes. Numbers are in its lowest bytes. A reference is that of the store, and means nothing in
/// another one; one of type `externref` or `exnref` means nothing after the next collection.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct ValRaw(u128);

/// Defines the constructor and the accessor of each type.
macro_rules! raw {
    ($($(#[doc = $doc:literal])* $ty:ty, $new:ident, $get:ident, $value:ident => $to:expr, $bits:ident => $from:expr;)*) => {
        impl ValRaw {
            $(
                $(#[doc = $doc])*
                pub fn $new($value: $ty) -> ValRaw {
                    ValRaw($to)
                }

                #[doc = concat!("Returns the value of which [`ValRaw::", stringify!($new), "`] is the raw form.")]
                pub fn $get(&self) -> $ty {
                    let $bits = self.0;
                    $from
                }
            )*
        }
    };
}

raw! {
    /// Creates the raw form of an `i32`, the same as that of the `i64` with the same value.
    i32, i32, get_i32, value => u128::from(i64::from(value) as u64), bits => bits as i32;
    /// Creates the raw form of an `i32`, the same as that of the `i64` with the same value.
    u32, u32, get_u32, value => u128::from(value), bits => bits as u32;
    /// Creates the raw form of an `i64`.
    i64, i64, get_i64, value => u128::from(value as u64), bits => bits as i64;
    /// Creates the raw form of an `i64`.
    u64, u64, get_u64, value => u128::from(value), bits => bits as u64;
    /// Creates the raw form of the `f32` with these bits.
    u32, f32, get_f32, bits => u128::from(bits), raw => raw as u32;
    /// Creates the raw form of the `f64` with these bits.
    u64, f64, get_f64, bits => u128::from(bits), raw => raw as u64;
    /// Creates the raw form of a vector.
    u128, v128, get_v128, bits => bits, raw => raw;
    /// Creates the raw form of an `externref`: see [`ExternRef::to_raw`](crate::ExternRef::to_raw). 0 is a null reference.
    u32, externref, get_externref, reference => u128::from(reference), bits => bits as u32;
    /// Creates the raw form of an `exnref`: see [`ExnRef::to_raw`](crate::ExnRef::to_raw). 0 is a null reference.
    u32, exnref, get_exnref, reference => u128::from(reference), bits => bits as u32;
    /// Creates the raw form of a `funcref`: see [`Func::to_raw`]. Null is a null reference.
    *mut c_void, funcref, get_funcref, func => func.expose_provenance() as u128, bits => std::ptr::with_exposed_provenance_mut(bits as usize);
}

impl ValRaw {
    /// Creates the raw form of a null reference.
    pub fn null() -> ValRaw {
        ValRaw(0)
    }
}

impl fmt::Debug for ValRaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValRaw({:#x})", self.0)
    }
}

/// Reads the first raw values from slots.
///
/// # Safety
/// Values of these types are in the slots.
unsafe fn read(types: &[ValType], slots: *const u64, raw: &mut [MaybeUninit<ValRaw>]) {
    let words = slot_words(types);
    for (i, (raw, ty)) in raw.iter_mut().zip(types).enumerate() {
        // SAFETY: the caller's promise.
        let bits = unsafe { read_slot(slots.add(i * words), words) };
        // The upper bits of a slot are unspecified.
        raw.write(ValRaw(match ty {
            ValType::I32 | ValType::F32 => u128::from(bits as u32),
            ValType::I64 | ValType::F64 | ValType::Ref(_) => u128::from(bits as u64),
            ValType::V128 => bits,
        }));
    }
}

/// Writes the first raw values to slots.
///
/// # Safety
/// There are as many slots as types, and as many raw values, all initialised.
unsafe fn write(types: &[ValType], slots: *mut u64, raw: &[MaybeUninit<ValRaw>]) {
    let words = slot_words(types);
    for (i, raw) in raw[..types.len()].iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { write_slot(slots.add(i * words), words, raw.assume_init().0) };
    }
}

/// Creates a host function that receives its arguments and returns its results in the same raw values, of which there are as many as
/// the greater of the two numbers.
fn unchecked<T: 'static>(
    ty: PlainType,
    func: impl Fn(Caller<'_, T>, &mut [MaybeUninit<ValRaw>]) -> Result<()> + Send + Sync + 'static,
) -> Arc<HostFunc> {
    let signature = ty.clone();
    let count = ty.params.len().max(ty.results.len());
    let call = move |store: *mut StoreRecord, importer: *mut InstanceCtx, slots: *mut u64| -> Result<()> {
        let mut values: SmallVec<[MaybeUninit<ValRaw>; 8]> = SmallVec::from_elem(MaybeUninit::uninit(), count);
        // SAFETY: `entry::host_call` passes a live store whose data is a `T`, and slots that hold the parameters and have room for
        // the results, which the embedder promises to be initialised, and of their types.
        unsafe {
            read(&signature.params, slots, &mut values);
            func(Caller::new(store, importer), &mut values)?;
            write(&signature.results, slots, &values);
        }
        Ok(())
    };
    Arc::new(host_func::<_, Full>(ty, call))
}

impl Func {
    /// Creates a host function of any type that receives its arguments as raw values and returns its results in their place.
    ///
    /// ```
    /// use weir::{Engine, Func, FuncType, Store, ValRaw, ValType};
    ///
    /// let engine = Engine::default();
    /// let mut store = Store::new(&engine, ());
    /// let ty = FuncType::new(&engine, [ValType::I32, ValType::I32], [ValType::I64]);
    /// // SAFETY: the values are read and written as the type says.
    /// let product = unsafe {
    ///     Func::new_unchecked(&mut store, ty, |_, values| {
    ///         let [a, b] = [values[0].assume_init().get_i32(), values[1].assume_init().get_i32()];
    ///         values[0].write(ValRaw::i64(i64::from(a) * i64::from(b)));
    ///         Ok(())
    ///     })
    /// };
    /// assert_eq!(product.typed::<(i32, i32), i64>(&store)?.call(&mut store, (1 << 20, 1 << 20))?, 1 << 40);
    /// # Ok::<(), weir::Error>(())
    /// ```
    ///
    /// # Safety
    /// The closure leaves a raw value of each result's type; a reference among them belongs to the store.
    pub unsafe fn new_unchecked<T: 'static>(
        mut store: impl AsContextMut<Data = T>,
        ty: FuncType,
        func: impl Fn(Caller<'_, T>, &mut [MaybeUninit<ValRaw>]) -> Result<()> + Send + Sync + 'static,
    ) -> Func {
        Func::from_host(store.as_context_mut(), unchecked(ty.0, func))
    }

    /// Calls the function with raw arguments, and leaves its results in their place.
    ///
    /// # Errors
    /// As [`Func::call`]; or there are fewer raw values than arguments or results.
    ///
    /// # Safety
    /// The first raw values are of the types of the parameters; a reference among them belongs to the store.
    pub unsafe fn call_unchecked(&self, mut store: impl AsContextMut, values: *mut [ValRaw]) -> Result<()> {
        let store = store.as_context_mut();
        let ty = self.plain_type(&store.as_context())?;
        let needed = ty.params.len().max(ty.results.len());
        check_count("raw values", needed, needed.min(values.len()))?;
        // SAFETY: the caller's promise: they are valid, and initialised values of another type are values, too.
        let values = unsafe { std::slice::from_raw_parts_mut(values.cast::<MaybeUninit<ValRaw>>(), needed) };
        let values = std::cell::RefCell::new(values);
        // SAFETY: the store is borrowed and the function belongs to it; the caller has promised the rest.
        unsafe {
            let arguments = |args: *mut u64| write(&ty.params, args, &values.borrow());
            let results = |args: *mut u64| read(&ty.results, args, &mut values.borrow_mut());
            entry::invoke(store.record(), self.in_store(store.id()), call_words(&ty), arguments, results)
        }
    }

    /// Returns the raw form of a reference to the function, for [`ValRaw::funcref`].
    pub fn to_raw(&self, mut store: impl AsContextMut) -> *mut c_void {
        self.in_store(store.as_context_mut().id()).cast()
    }

    /// Returns the function to which a raw value refers; `None` for a null reference.
    ///
    /// # Safety
    /// The raw value came from [`Func::to_raw`] or [`ValRaw::get_funcref`] with the same store.
    pub unsafe fn from_raw(mut store: impl AsContextMut, raw: *mut c_void) -> Option<Func> {
        let func = NonNull::new(raw.cast())?;
        // SAFETY: the caller's promise.
        Some(unsafe { Func::from_ref(store.as_context_mut().id(), func) })
    }
}

impl Val {
    /// Returns the raw form of the value.
    ///
    /// # Errors
    /// None: references of all types have a raw form.
    ///
    /// # Panics
    /// The value belongs to another store.
    pub fn to_raw(&self, mut store: impl AsContextMut) -> Result<ValRaw> {
        // SAFETY: the store is borrowed.
        Ok(ValRaw(unsafe { self.to_bits(store.as_context_mut().record(), self.general_type())? }))
    }

    /// Returns the value of which this is the raw form.
    ///
    /// # Safety
    /// The raw value is of this type, and a reference belongs to the store.
    pub unsafe fn from_raw(mut store: impl AsContextMut, raw: ValRaw, ty: ValType) -> Val {
        // SAFETY: the caller's promise.
        unsafe { Val::from_bits(raw.0, store.as_context_mut().record(), ty) }
    }
}

impl<P: WasmParams, R: WasmResults> TypedFunc<P, R> {
    /// Creates a handle whose type is not checked.
    ///
    /// # Safety
    /// The function has this type.
    pub unsafe fn new_unchecked(_store: impl AsContext, func: Func) -> TypedFunc<P, R> {
        TypedFunc::new(func)
    }
}

impl<T: 'static> Linker<T> {
    /// Defines a name as a host function with raw arguments and results: see [`Func::new_unchecked`].
    ///
    /// # Errors
    /// The name is already defined.
    ///
    /// # Safety
    /// As for [`Func::new_unchecked`].
    pub unsafe fn func_new_unchecked(
        &mut self,
        module: &str,
        name: &str,
        ty: FuncType,
        func: impl Fn(Caller<'_, T>, &mut [MaybeUninit<ValRaw>]) -> Result<()> + Send + Sync + 'static,
    ) -> Result<&mut Linker<T>> {
        self.define_host(module, name, unchecked(ty.0, func))
    }
}
