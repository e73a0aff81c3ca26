//! Asynchronous host functions, which return futures: the guest is suspended until the future has completed.

use crate::api::caller::Caller;
use crate::api::calls::dynamic_closure;
use crate::api::linker::Linker;
use crate::api::store::AsContextMut;
use crate::api::typed::{FOREIGN_RESULT, StoreAddress, WasmRet, WasmTyList};
use crate::exec::host::{async_func, wait};
use crate::records::host::HostFunc;
use crate::records::store::StoreRecord;
use crate::{Func, FuncType, Result, Val};
use std::sync::Arc;
use weir_bytecode::FuncType as PlainType;
use weir_contract::InstanceCtx;

/// Creates an asynchronous host function that reads its parameters from the slots and writes its results there.
fn typed<T: Send + 'static, P: WasmTyList, R: WasmRet>(
    func: impl for<'a> Fn(Caller<'a, T>, P) -> Box<dyn Future<Output = R> + Send + 'a> + Send + Sync + 'static,
) -> Arc<HostFunc> {
    let ty = PlainType { params: P::types().into(), results: <R::Results as crate::WasmParams>::types().into() };
    let call = move |store: *mut StoreRecord, importer: *mut InstanceCtx, slots: *mut u64| -> Result<()> {
        // SAFETY: `exec::host` passes a live store whose data is a `T`, the parameters in the slots, and room for the results.
        // The future has the caller, through which alone the store is used until it completes.
        unsafe {
            let address = StoreAddress(store);
            let params = P::read(slots, address);
            let results = wait(store, func(Caller::new(store, importer), params))?.into_result()?;
            crate::WasmParams::check(&results, address, FOREIGN_RESULT)?;
            crate::WasmParams::write(results, slots, address);
        }
        Ok(())
    };
    Arc::new(async_func(ty, call))
}

/// Creates an asynchronous host function whose type is only known at run time.
fn dynamic<T: Send + 'static>(
    ty: PlainType,
    func: impl for<'a> Fn(Caller<'a, T>, &'a [Val], &'a mut [Val]) -> Box<dyn Future<Output = Result<()>> + Send + 'a>
    + Send
    + Sync
    + 'static,
) -> Arc<HostFunc> {
    let closure = dynamic_closure(&ty, move |caller: Caller<'_, T>, params, results| {
        let store = caller.record();
        // SAFETY: this is the closure of the host function that the guest has called. The future has the caller, through which alone
        // the store is used until it completes.
        unsafe { wait(store, func(caller, params, results)) }?
    });
    Arc::new(async_func(ty, closure))
}

impl Func {
    /// Creates an asynchronous host function of any type, as [`Func::new`] does. The store then needs the methods whose names end in
    /// `_async`.
    ///
    /// The closure is called on the guest's stack. The future that it returns is polled on the stack of the code that polls the
    /// future of the guest's call. It may call the guest, by [`Func::call_async`] with the [`Caller`].
    pub fn new_async<T, F>(mut store: impl AsContextMut<Data = T>, ty: FuncType, func: F) -> Func
    where
        F: for<'a> Fn(Caller<'a, T>, &'a [Val], &'a mut [Val]) -> Box<dyn Future<Output = Result<()>> + Send + 'a>
            + Send
            + Sync
            + 'static,
        T: Send + 'static,
    {
        Func::from_host(store.as_context_mut(), dynamic(ty.0, func))
    }

    /// Creates an asynchronous host function from a closure over Rust types, the parameters in a tuple: see [`Func::new_async`].
    pub fn wrap_async<T, F, P, R>(mut store: impl AsContextMut<Data = T>, func: F) -> Func
    where
        F: for<'a> Fn(Caller<'a, T>, P) -> Box<dyn Future<Output = R> + Send + 'a> + Send + Sync + 'static,
        P: WasmTyList,
        R: WasmRet,
        T: Send + 'static,
    {
        Func::from_host(store.as_context_mut(), typed(func))
    }
}

impl<T: 'static> Linker<T> {
    /// Defines a name as an asynchronous host function of any type: see [`Func::new_async`].
    ///
    /// # Errors
    /// The name is already defined.
    pub fn func_new_async<F>(&mut self, module: &str, name: &str, ty: FuncType, func: F) -> Result<&mut Self>
    where
        F: for<'a> Fn(Caller<'a, T>, &'a [Val], &'a mut [Val]) -> Box<dyn Future<Output = Result<()>> + Send + 'a>
            + Send
            + Sync
            + 'static,
        T: Send + 'static,
    {
        self.define_host(module, name, dynamic(ty.0, func))
    }

    /// Defines a name as an asynchronous host function from a closure over Rust types: see [`Func::wrap_async`].
    ///
    /// # Errors
    /// The name is already defined.
    pub fn func_wrap_async<F, Params: WasmTyList, Args: WasmRet>(
        &mut self,
        module: &str,
        name: &str,
        func: F,
    ) -> Result<&mut Self>
    where
        F: for<'a> Fn(Caller<'a, T>, Params) -> Box<dyn Future<Output = Args> + Send + 'a> + Send + Sync + 'static,
        T: Send + 'static,
    {
        self.define_host(module, name, typed(func))
    }
}
