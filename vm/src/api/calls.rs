//! Calls to functions, and host functions, whose types are only known at run time.

use crate::api::caller::Caller;
use crate::api::store::{AsContext, AsContextMut, StoreContext};
use crate::api::typed::{IntoFunc, TypedFunc, WasmParams, WasmResults};
use crate::exec::entry;
use crate::exec::host::{Full, HostClosure, host_func};
use crate::records::error::Context;
use crate::records::host::HostFunc;
use crate::records::stack::{read_slot, write_slot};
use crate::records::store::StoreRecord;
use crate::records::wording::{Long, mismatch};
use crate::{Error, Func, FuncType, Instance, Result, Val, ValType};
use smallvec::SmallVec;
use std::sync::Arc;
use weir_bytecode::FuncType as PlainType;
use weir_contract::{InstanceCtx, call_words, slot_words};

impl Func {
    /// Creates a host function of any type. It receives its arguments and returns its results as [`Val`]s. Each result
    /// is a null reference to a function before it is set.
    ///
    /// ```
    /// use weir::{Engine, Func, FuncType, Store, Val, ValType};
    ///
    /// let engine = Engine::default();
    /// let mut store = Store::new(&engine, ());
    /// let ty = FuncType::new(&engine, [ValType::I32, ValType::I32], [ValType::I64]);
    /// let product = Func::new(&mut store, ty, |_, params, results| {
    ///     results[0] = Val::I64(i64::from(params[0].unwrap_i32()) * i64::from(params[1].unwrap_i32()));
    ///     Ok(())
    /// });
    /// let mut results = [Val::I64(0)];
    /// product.call(&mut store, &[Val::I32(1 << 20), Val::I32(1 << 20)], &mut results)?;
    /// assert_eq!(results[0].i64(), Some(1 << 40));
    /// # Ok::<(), weir::Error>(())
    /// ```
    ///
    /// # Panics
    /// In a forked child of the engine's process: see [`ForkedEngine`](crate::ForkedEngine).
    pub fn new<T: 'static>(
        mut store: impl AsContextMut<Data = T>,
        ty: FuncType,
        func: impl Fn(Caller<'_, T>, &[Val], &mut [Val]) -> Result<()> + Send + Sync + 'static,
    ) -> Func {
        Func::from_host(store.as_context_mut(), dynamic(ty.0, func))
    }

    /// Creates a host function from a closure over Rust types: see [`IntoFunc`].
    ///
    /// # Panics
    /// As [`Func::new`].
    pub fn wrap<T: 'static, P, R>(mut store: impl AsContextMut<Data = T>, func: impl IntoFunc<T, P, R>) -> Func {
        Func::from_host(store.as_context_mut(), func.into_func().0)
    }

    /// Calls the function with arguments of any types.
    ///
    /// # Errors
    /// The arguments do not match the function's type, or `results` its number of results; a [`Trap`](crate::Trap),
    /// with a backtrace; the error of a host function that was called on the way.
    ///
    /// # Panics
    /// With the panic of a host function; or if it, or an argument, belongs to another store.
    pub fn call(&self, mut store: impl AsContextMut, params: &[Val], results: &mut [Val]) -> Result<()> {
        let store = store.as_context_mut();
        let ty = self.checked_type(&store.as_context(), params, results)?;
        // SAFETY: the store is borrowed and the function belongs to it.
        unsafe { self.call_with(store.record(), &ty, params, results, Entry::Sync) }
    }

    /// Returns the function's type, which has as many parameters and results as there are values.
    ///
    /// # Errors
    /// It does not.
    pub(super) fn checked_type<T>(&self, store: &StoreContext<'_, T>, params: &[Val], results: &[Val]) -> Result<Arc<PlainType>> {
        let ty = self.plain_type(store)?;
        check_count("arguments", ty.params.len(), params.len())?;
        check_count("results", ty.results.len(), results.len())?;
        Ok(ty)
    }

    /// Calls the function, which is of this type.
    ///
    /// # Errors
    /// # Panics
    /// As [`Func::call`].
    ///
    /// # Safety
    /// The function belongs to this live store, which nothing else uses. With [`Entry::Fiber`] the store's fiber runs.
    #[inline(always)]
    pub(super) unsafe fn call_with(
        &self,
        record: *mut StoreRecord,
        ty: &PlainType,
        params: &[Val],
        results: &mut [Val],
        entry: Entry,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        let bits = |(param, &ty): (&Val, &ValType)| unsafe { param.to_bits(record, ty) };
        let checked = params.iter().zip(&ty.params).try_for_each(|param| bits(param).map(drop));
        checked.map_err(|error| error.context("argument type mismatch"))?;
        let (param_words, result_words) = (slot_words(&ty.params), slot_words(&ty.results));
        let write = |args: *mut u64| {
            for (i, param) in params.iter().zip(&ty.params).enumerate() {
                let param = bits(param).expect("it was converted above");
                // SAFETY: there are as many slots as parameters.
                unsafe { write_slot(args.add(i * param_words), param_words, param) };
            }
        };
        let read = |args: *mut u64| {
            for (i, (result, &ty)) in results.iter_mut().zip(&ty.results).enumerate() {
                // SAFETY: the function has left a result of this type in each of the first slots.
                *result = unsafe { Val::from_bits(read_slot(args.add(i * result_words), result_words), record, ty) };
            }
        };
        // SAFETY: the caller's promise.
        unsafe {
            let func = self.in_store((*record).id);
            match entry {
                Entry::Sync => entry::invoke(record, func, call_words(ty), write, read),
                #[cfg(feature = "async")]
                Entry::Fiber => entry::invoke_on_fiber(record, func, call_words(ty), write, read),
            }
        }
    }

    /// Returns a handle for the function with its type known to Rust, which makes calls cheap. References may have a more general type in
    /// the function's parameters, and in `R`.
    ///
    /// # Errors
    /// The function has another type.
    pub fn typed<P: WasmParams, R: WasmResults>(&self, store: impl AsContext) -> Result<TypedFunc<P, R>> {
        let ty = self.plain_type(&store.as_context())?;
        check_types(&P::types(), &ty.params, |asked, actual| (asked, actual)).context("type mismatch with parameters")?;
        check_types(&R::types(), &ty.results, |asked, actual| (actual, asked)).context("type mismatch with results")?;
        Ok(TypedFunc::new(*self))
    }
}

/// Checks that a function's types are those asked for: of each pair the first that `order` returns is a subtype of the second.
fn check_types<'t>(
    asked: &'t [ValType],
    actual: &'t [ValType],
    order: impl Fn(&'t ValType, &'t ValType) -> (&'t ValType, &'t ValType),
) -> Result<()> {
    if asked.len() != actual.len() {
        return Err(Error::msg(format!("expected {} types, found {}", asked.len(), actual.len())));
    }
    for (sub, sup) in asked.iter().zip(actual).map(|(asked, actual)| order(asked, actual)) {
        if !sub.matches(sup) {
            return Err(mismatch(Long(*sup), Long(*sub)));
        }
    }
    Ok(())
}

/// How a guest is entered.
#[derive(Clone, Copy)]
pub(super) enum Entry {
    Sync,
    /// On a fiber, which runs.
    #[cfg(feature = "async")]
    Fiber,
}

impl Instance {
    /// Returns the function exported as `name`, with its type known to Rust.
    ///
    /// # Errors
    /// There is no such export, it is not a function, or it has another type.
    pub fn get_typed_func<P: WasmParams, R: WasmResults>(&self, store: impl AsContext, name: &str) -> Result<TypedFunc<P, R>> {
        let func = self.get_func(&store, name);
        let func = func.ok_or_else(|| Error::msg(format!("failed to find function export `{name}`")))?;
        func.typed(store).with_context(|| format!("failed to convert function `{name}` to given type"))
    }
}

pub(super) fn check_count(what: &str, expected: usize, found: usize) -> Result<()> {
    match expected == found {
        true => Ok(()),
        false => Err(Error::msg(format!("expected {expected} {what}, got {found}"))),
    }
}

/// Calls of host functions with at most this many parameters and results allocate no memory. Allocation took a third of
/// the time of such a call.
const FEW_VALUES: usize = 8;

/// Creates a host function whose type is only known at run time.
pub(crate) fn dynamic<T: 'static>(
    ty: PlainType,
    func: impl Fn(Caller<'_, T>, &[Val], &mut [Val]) -> Result<()> + Send + Sync + 'static,
) -> Arc<HostFunc> {
    let closure = dynamic_closure(&ty, func);
    Arc::new(host_func::<_, Full>(ty, closure))
}

/// Creates the closure of a host function of this type.
#[inline(always)]
pub(super) fn dynamic_closure<T: 'static>(
    ty: &PlainType,
    func: impl Fn(Caller<'_, T>, &[Val], &mut [Val]) -> Result<()> + Send + Sync + 'static,
) -> impl HostClosure {
    let signature = ty.clone();
    let (param_words, result_words) = (slot_words(&ty.params), slot_words(&ty.results));
    move |store: *mut StoreRecord, importer: *mut InstanceCtx, slots: *mut u64| -> Result<()> {
        // SAFETY: `exec::host` passes a live store whose data is a `T`, and slots that hold the parameters.
        let caller = unsafe { Caller::new(store, importer) };
        let params = (signature.params.iter().enumerate())
            // SAFETY: as above.
            .map(|(i, &ty)| unsafe { Val::from_bits(read_slot(slots.add(i * param_words), param_words), store, ty) });
        // A number that the function does not set is an error.
        let unset = signature.results.iter().map(|_| Val::FuncRef(None));
        let mut values: SmallVec<[Val; FEW_VALUES]> = params.chain(unset).collect();
        let (params, results) = values.split_at_mut(signature.params.len());
        func(caller, params, results)?;
        for (i, (result, &ty)) in results.iter().zip(&signature.results).enumerate() {
            // SAFETY: as above.
            let bits = unsafe { result.to_bits(store, ty) };
            let bits = bits.map_err(|error| error.context("function attempted to return an incompatible value"))?;
            // SAFETY: as above, and there are as many slots as results.
            unsafe { write_slot(slots.add(i * result_words), result_words, bits) };
        }
        Ok(())
    }
}
