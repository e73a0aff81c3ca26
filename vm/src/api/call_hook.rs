//! Hooks of a store's embedder where execution passes between it and the guest.

use crate::exec::host::set_hook;
#[cfg(feature = "async")]
use crate::exec::host::wait;
use crate::{AsContextMut, CallHook, Result, Store, StoreContextMut};
#[cfg(feature = "async")]
use std::pin::Pin;

impl<T: 'static> Store<T> {
    /// Calls `hook` each time the embedder calls the guest, the guest a host function, and one of them returns. An error at a call is that
    /// of the call, which does not take place. An error at a return replaces the result. While the hook runs, what it calls
    /// is not reported.
    ///
    /// As for any call, a host function that the embedder calls directly is reported with both passages. Instructions that the library
    /// executes, such as `memory.grow`, are not reported; wasmtime reports those that may fail.
    ///
    /// ```
    /// use weir::{CallHook, Engine, Instance, Module, Store};
    ///
    /// let engine = Engine::default();
    /// let module = Module::new(&engine, r#"(module (func (export "f")))"#)?;
    /// let mut store = Store::new(&engine, Vec::new());
    /// store.call_hook(|mut store, passage| {
    ///     store.data_mut().push(passage.exiting_host());
    ///     Ok(())
    /// });
    /// let instance = Instance::new(&mut store, &module, &[])?;
    /// instance.get_typed_func::<(), ()>(&mut store, "f")?.call(&mut store, ())?;
    /// assert_eq!(*store.data(), [true, false]);
    /// # Ok::<(), weir::Error>(())
    /// ```
    pub fn call_hook(&mut self, mut hook: impl FnMut(StoreContextMut<'_, T>, CallHook) -> Result<()> + Send + Sync + 'static) {
        // SAFETY: the callers of the hook pass the record of this store, whose data is a `T`, and hold no reference into it.
        let hook = move |record, passage| hook(unsafe { StoreContextMut::from_raw(record) }, passage);
        // SAFETY: the store is borrowed, whose host functions have no access to it but by a context.
        unsafe { set_hook(self.as_context_mut().record(), Box::new(hook)) };
    }

    /// As [`Store::call_hook`], with a hook that the guest waits for. The store then needs the methods whose names end in `_async`.
    #[cfg(feature = "async")]
    #[allow(clippy::implied_bounds_in_impls, reason = "the bounds are wasmtime's")]
    pub fn call_hook_async(&mut self, hook: impl CallHookHandler<T> + Send + Sync + 'static) {
        let record = self.as_context_mut().record();
        let hook = move |record, passage| {
            // SAFETY: as in `call_hook`. Where the hook is called, only frames of the guest and of this library are on its fiber. The
            // future has the store until it completes.
            unsafe {
                let event = hook.handle_call_event(StoreContextMut::from_raw(record), passage);
                wait(record, Box::new(event))?
            }
        };
        // SAFETY: the store is borrowed.
        unsafe {
            set_hook(record, Box::new(hook));
            (*record).require_async();
        }
    }
}

/// A hook for [`Store::call_hook_async`]. It can be implemented with the crate `async_trait`.
#[cfg(feature = "async")]
pub trait CallHookHandler<T>: Send {
    /// Returns the future for which the passage waits.
    ///
    /// # Errors
    /// See [`Store::call_hook`].
    fn handle_call_event<'life0, 'life1, 'async_trait>(
        &'life0 self,
        store: StoreContextMut<'life1, T>,
        passage: CallHook,
    ) -> Pin<Box<dyn Future<Output = Result<()>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait;
}
