//! The view that a host function has of its caller.

use crate::api::externs::Extern;
use crate::api::rooted::GcHeapOutOfMemory;
use crate::api::store::{AsContext, AsContextMut, StoreContext, StoreContextMut};
use crate::records::store::StoreRecord;
use crate::{Engine, Instance, ModuleExport, Result};
use std::ptr::NonNull;
use weir_contract::InstanceCtx;

/// The caller of a host function: the store, and the exports of the instance that imports the function.
///
/// ```
/// use weir::{Caller, Engine, Extern, Linker, Module, Store};
///
/// let engine = Engine::default();
/// let mut linker = Linker::new(&engine);
/// linker.func_wrap("host", "print", |mut caller: Caller<'_, String>, at: u32, len: u32| {
///     let Some(Extern::Memory(memory)) = caller.get_export("memory") else { weir::bail!("no memory") };
///     let mut text = vec![0; len as usize];
///     memory.read(&caller, at as usize, &mut text)?;
///     caller.data_mut().push_str(&String::from_utf8_lossy(&text));
///     Ok(())
/// })?;
/// let module = Module::new(&engine, r#"
///     (module
///         (import "host" "print" (func $print (param i32 i32)))
///         (memory (export "memory") 1)
///         (data (i32.const 8) "hello")
///         (func (export "run") (call $print (i32.const 8) (i32.const 5))))
/// "#)?;
/// let mut store = Store::new(&engine, String::new());
/// let instance = linker.instantiate(&mut store, &module)?;
/// instance.get_typed_func::<(), ()>(&mut store, "run")?.call(&mut store, ())?;
/// assert_eq!(store.data(), "hello");
/// # Ok::<(), weir::Error>(())
/// ```
pub struct Caller<'a, T: 'static> {
    store: StoreContextMut<'a, T>,
    /// Null if the function was not called as an import.
    importer: *mut InstanceCtx,
}

// SAFETY: the importer is an instance of the store.
unsafe impl<T: Send> Send for Caller<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Caller<'_, T> {}

impl<'a, T: 'static> Caller<'a, T> {
    /// # Safety
    /// The store's data is a `T`; the store lives for `'a` and is used only through this value in that time; `importer`
    /// is null or one of its instances.
    pub(crate) unsafe fn new(store: *mut StoreRecord, importer: *mut InstanceCtx) -> Caller<'a, T> {
        // SAFETY: the caller's promise.
        Caller { store: unsafe { StoreContextMut::from_raw(store) }, importer }
    }

    #[cfg(feature = "async")]
    pub(super) fn record(&self) -> *mut StoreRecord {
        self.store.record()
    }

    /// Returns the embedder's data.
    pub fn data(&self) -> &T {
        self.as_context().into_data()
    }

    /// Returns the embedder's data, mutably.
    pub fn data_mut(&mut self) -> &mut T {
        self.as_context_mut().into_data_mut()
    }

    /// Returns the instance that imports this function, or `None` if it was not called as an import.
    #[inline]
    pub fn instance(&self) -> Option<Instance> {
        let importer = NonNull::new(self.importer)?;
        // SAFETY: the importer is an instance of this store, which is borrowed.
        Some(unsafe { Instance::from_raw(self.store.id(), importer) })
    }

    /// Returns the export `name` of the instance that imports this function, or `None` if there is none or the function
    /// was not called as an import.
    pub fn get_export(&mut self, name: &str) -> Option<Extern> {
        self.instance()?.get_export(&self.store, name)
    }

    /// Returns the export of the instance that imports this function, without looking for its name. `None` if the export belongs to
    /// another module or the function was not called as an import.
    pub fn get_module_export(&mut self, export: &ModuleExport) -> Option<Extern> {
        self.instance()?.get_module_export(&self.store, export)
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Engine {
        self.store.engine()
    }

    /// See [`Store::gc`](crate::Store::gc).
    ///
    /// # Errors
    /// None at present.
    ///
    /// # Panics
    /// As [`Store::gc`](crate::Store::gc).
    pub fn gc(&mut self, why: Option<&GcHeapOutOfMemory<()>>) -> Result<()> {
        self.store.gc(why)
    }

    /// Returns the remaining fuel.
    ///
    /// # Errors
    /// The engine does not consume fuel.
    pub fn get_fuel(&self) -> Result<u64> {
        self.store.get_fuel()
    }

    /// Sets the remaining fuel.
    ///
    /// # Errors
    /// The engine does not consume fuel.
    pub fn set_fuel(&mut self, fuel: u64) -> Result<()> {
        self.store.set_fuel(fuel)
    }
}

impl<'a, T: 'static> From<Caller<'a, T>> for StoreContextMut<'a, T> {
    fn from(caller: Caller<'a, T>) -> StoreContextMut<'a, T> {
        caller.store
    }
}

impl<T: 'static> AsContext for Caller<'_, T> {
    type Data = T;

    fn as_context(&self) -> StoreContext<'_, T> {
        self.store.as_context()
    }
}

impl<T: 'static> AsContextMut for Caller<'_, T> {
    fn as_context_mut(&mut self) -> StoreContextMut<'_, T> {
        self.store.as_context_mut()
    }
}
