//! Asynchronous calls and instantiations: the guest runs on a stack of its own, and can be suspended.

use crate::api::calls::Entry;
use crate::api::linker::{InstancePre, Linker};
use crate::api::store::{AsContext, AsContextMut};
use crate::api::typed::{FOREIGN_ARGUMENT, StoreAddress, TypedFunc, WasmParams, WasmResults};
use crate::exec::entry::invoke_on_fiber;
use crate::exec::fiber::Run;
use crate::exec::instantiate::{Import, instantiate};
use crate::records::error::Context;
use crate::records::store::StoreRecord;
use crate::{Extern, Func, Instance, Module, Result, Val};

impl Func {
    /// Calls the function as [`Func::call`] does, on a stack of its own. The future is pending while an asynchronous host function, an
    /// asynchronous limiter, or a deadline or an amount of fuel at which guests yield has suspended the guest. It may be polled on
    /// any thread.
    ///
    /// Dropping the future ends the guest: it leaves its frames as after a trap that nothing catches.
    ///
    /// ```
    /// use weir::{Engine, Linker, Module, Store, Val};
    /// # fn block_on<F: Future>(future: F) -> F::Output {
    /// #     let mut future = std::pin::pin!(future);
    /// #     loop {
    /// #         let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    /// #         if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut cx) { return output }
    /// #     }
    /// # }
    ///
    /// # async fn run() -> weir::Result<()> {
    /// let engine = Engine::default();
    /// let module = Module::new(&engine, r#"
    ///     (module
    ///         (import "host" "double" (func $double (param i32) (result i32)))
    ///         (func (export "run") (result i32) (i32.add (call $double (i32.const 20)) (i32.const 2))))
    /// "#)?;
    /// let mut linker = Linker::new(&engine);
    /// linker.func_wrap_async("host", "double", |_, (n,): (i32,)| {
    ///     Box::new(async move {
    ///         // Another future could be awaited here.
    ///         std::future::ready(2 * n).await
    ///     })
    /// })?;
    /// let mut store = Store::new(&engine, ());
    /// let instance = linker.instantiate_async(&mut store, &module).await?;
    /// let mut results = [Val::I32(0)];
    /// let run = instance.get_func(&mut store, "run").expect("it exports `run`");
    /// run.call_async(&mut store, &[], &mut results).await?;
    /// assert_eq!(results[0].i32(), Some(42));
    /// # Ok(())
    /// # }
    /// # block_on(run()).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Func::call`]; or there is no memory for a stack.
    ///
    /// # Panics
    /// As [`Func::call`]. The panic of a host function's future is resumed in the code that polls this future.
    pub async fn call_async(&self, mut store: impl AsContextMut<Data: Send>, params: &[Val], results: &mut [Val]) -> Result<()> {
        let store = store.as_context_mut();
        let ty = self.checked_type(&store.as_context(), params, results)?;
        let func = *self;
        // SAFETY: this future borrows the store, to which the function belongs, and a body that calls a guest ends with it.
        let run = unsafe {
            Run::new(store.record(), move |record: *mut StoreRecord| func.call_with(record, &ty, params, results, Entry::Fiber))
        };
        run.await
    }
}

impl<P: WasmParams, R: WasmResults> TypedFunc<P, R> {
    /// Calls the function as [`Func::call_async`] does.
    ///
    /// # Errors
    /// # Panics
    /// As there.
    pub async fn call_async(&self, mut store: impl AsContextMut<Data: Send>, params: P) -> Result<R>
    where
        P: Sync,
        R: Sync,
    {
        let store = store.as_context_mut();
        let func = *self.func();
        // SAFETY: this future borrows the store, and a body that calls a guest ends with it. The function belongs to the store; its type
        // was checked when this handle was made.
        let run = unsafe {
            Run::new(store.record(), move |record: *mut StoreRecord| {
                let address = StoreAddress(record);
                params.check(address, FOREIGN_ARGUMENT)?;
                let func = func.in_store((*record).id);
                invoke_on_fiber(record, func, Self::WORDS, |args| params.write(args, address), |args| R::read(args, address))
            })
        };
        run.await
    }
}

impl Instance {
    /// Instantiates a module as [`Instance::new`] does; the start function runs as in [`Func::call_async`].
    ///
    /// # Errors
    /// # Panics
    /// As [`Instance::new`].
    pub async fn new_async(mut store: impl AsContextMut, module: &Module, imports: &[Extern]) -> Result<Instance> {
        let store = store.as_context_mut();
        let imports = Instance::check_imports(&store, module, imports)?;
        Instance::link_async(store, module, imports).await
    }

    /// Instantiates a module of the store's engine with imports that have been checked.
    async fn link_async(mut store: impl AsContextMut, module: &Module, imports: Vec<Import>) -> Result<Instance> {
        let store = store.as_context_mut();
        // SAFETY: this future borrows the store, and the imports were checked against it and the module. Making an instance ends if
        // nothing can be waited for.
        let run = unsafe {
            Run::new(store.record(), move |record: *mut StoreRecord| {
                let ctx = instantiate(record, module, imports, (*record).fiber)?;
                Ok(Instance::from_raw((*record).id, ctx))
            })
        };
        run.await
    }
}

impl<T: 'static> InstancePre<T> {
    /// Instantiates the module as [`InstancePre::instantiate`] does; the start function runs as in [`Func::call_async`].
    ///
    /// # Errors
    /// # Panics
    /// As [`Instance::new`].
    pub async fn instantiate_async(&self, mut store: impl AsContextMut<Data = T>) -> Result<Instance> {
        let store = store.as_context_mut();
        let imports = self.check_imports(&store)?;
        Instance::link_async(store, self.module(), imports).await
    }
}

impl<T: 'static> Linker<T> {
    /// Instantiates a module as [`Linker::instantiate`] does; the start function runs as in [`Func::call_async`].
    ///
    /// # Errors
    /// # Panics
    /// As [`Linker::instantiate`].
    pub async fn instantiate_async(&self, store: impl AsContextMut<Data = T>, module: &Module) -> Result<Instance>
    where
        T: Send + 'static,
    {
        self.instantiate_pre(module)?.instantiate_async(store).await
    }

    /// Defines the exports of a module as [`Linker::module`] does; the module's code runs as in [`Func::call_async`].
    ///
    /// # Errors
    /// As [`Linker::module`].
    pub async fn module_async(
        &mut self,
        mut store: impl AsContextMut<Data = T>,
        module_name: &str,
        module: &Module,
    ) -> Result<&mut Self>
    where
        T: Send + 'static,
    {
        if Linker::<T>::is_command(module)? {
            return self.command_async(module_name, module);
        }
        let instance = self.instantiate_async(&mut store, module).await?;
        if let Some(initialize) = instance.get_func(&mut store, "_initialize") {
            let initialize = initialize.typed::<(), ()>(&store)?;
            initialize.call_async(&mut store, ()).await.context("calling the Reactor initialization function")?;
        }
        self.instance(store, module_name, instance)
    }

    fn command_async(&mut self, name: &str, module: &Module) -> Result<&mut Linker<T>>
    where
        T: Send + 'static,
    {
        let pre = self.instantiate_pre(module)?;
        for export in module.exports() {
            let (pre, function, ty) = (pre.clone(), export.name().to_owned(), export.ty());
            let Some(ty) = ty.func() else { continue };
            self.func_new_async(name, export.name(), ty.clone(), move |mut caller, params, results| {
                let (pre, function) = (pre.clone(), function.clone());
                Box::new(async move {
                    let instance = pre.instantiate_async(&mut caller).await?;
                    let func = instance.get_func(&mut caller, &function).context("a command lost its export")?;
                    func.call_async(&mut caller, params, results).await
                })
            })?;
        }
        Ok(self)
    }
}
