//! Handles of instances.

use crate::api::externs::{Export, Extern};
use crate::api::imports::{check_engine, check_import};
use crate::api::store::{AsContext, AsContextMut, StoreContext};
use crate::exec::instantiate::{Import, instantiate};
use crate::records::instance::{InstanceRecord, instance_of};
#[cfg(feature = "snapshot")]
use crate::records::snapshot::state::{State, state};
use crate::{Error, Func, Global, Memory, Module, ModuleExport, Result, Table, Tag};
use std::ptr::{self, NonNull};
use weir_contract::InstanceCtx;

/// An instance of a module. The handle is valid as long as the store.
///
/// ```
/// use weir::{Engine, Instance, Module, Store};
///
/// let engine = Engine::default();
/// let module = Module::new(&engine, r#"
///     (module
///         (func (export "add") (param i32 i32) (result i32)
///             (i32.add (local.get 0) (local.get 1))))
/// "#)?;
/// let mut store = Store::new(&engine, ());
/// let instance = Instance::new(&mut store, &module, &[])?;
/// let add = instance.get_typed_func::<(i32, i32), i32>(&mut store, "add")?;
/// assert_eq!(add.call(&mut store, (40, 2))?, 42);
/// # Ok::<(), weir::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instance {
    store: u64,
    ctx: NonNull<InstanceCtx>,
}

// SAFETY: the context is only reached through a borrow of its store.
unsafe impl Send for Instance {}
// SAFETY: as above.
unsafe impl Sync for Instance {}

impl Instance {
    /// Instantiates a module with the given imports, in the module's order, and runs its start function.
    /// [`crate::Linker`] finds imports by name.
    ///
    /// # Errors
    /// A [`LinkError`](crate::LinkError) if the imports do not match those of the module, or the module belongs to another engine; the
    /// error of a memory or table that cannot be made or exceeds the store's limits; a [`Trap`](crate::Trap) if an
    /// active segment is out of bounds or the start function traps; any error of a host function that the start
    /// function calls. Writes to imported memories and tables made before the error remain. The instance also remains
    /// in the store and counts against its limits.
    ///
    /// # Panics
    /// An import belongs to another store; or with the panic of a host function.
    pub fn new(mut store: impl AsContextMut, module: &Module, imports: &[Extern]) -> Result<Instance> {
        let store = store.as_context_mut();
        let imports = Instance::check_imports(&store, module, imports)?;
        Instance::link(store, module, imports)
    }

    /// Checks the imports of a module for a store.
    ///
    /// # Errors
    /// They do not match, or the module belongs to another engine.
    ///
    /// # Panics
    /// An import belongs to another store.
    pub(super) fn check_imports(store: &impl AsContext, module: &Module, imports: &[Extern]) -> Result<Vec<Import>> {
        check_engine(store.as_context().engine(), module)?;
        let expected = module.bytecode().imports.len();
        if imports.len() != expected {
            return Err(Error::msg(format!("expected {expected} imports, found {}", imports.len())));
        }
        (module.bytecode().imports.iter().zip(imports)).map(|(import, &item)| check_import(store, module, import, item)).collect()
    }

    /// Instantiates a module of the store's engine with imports that have been checked.
    pub(crate) fn link(mut store: impl AsContextMut, module: &Module, imports: Vec<Import>) -> Result<Instance> {
        let store = store.as_context_mut();
        // SAFETY: the store is borrowed, and the imports were checked against it and the module.
        let ctx = unsafe { instantiate(store.record(), module, imports, ptr::null_mut())? };
        Ok(Instance { store: store.id(), ctx })
    }

    /// Returns the module of this instance.
    pub fn module<'a, T: 'static>(&self, store: impl Into<StoreContext<'a, T>>) -> &'a Module {
        // SAFETY: the store is borrowed for `'a`.
        unsafe { &self.record(store.into().id()).module }
    }

    /// Returns the export `name`.
    pub fn get_export(&self, store: impl AsContext, name: &str) -> Option<Extern> {
        let id = store.as_context().id();
        // SAFETY: the store is borrowed.
        unsafe {
            let instance = self.record(id);
            Some(Extern::of_instance(instance, instance.module.record().export(name)?, id))
        }
    }

    /// Returns the export that was looked up in the instance's module, or `None` if it belongs to another module.
    ///
    /// ```
    /// use weir::{Engine, Instance, Module, Store};
    ///
    /// let engine = Engine::default();
    /// let module = Module::new(&engine, r#"(module (func (export "f") (result i32) (i32.const 7)))"#)?;
    /// let export = module.get_export_index("f").expect("it exports `f`");
    /// let mut store = Store::new(&engine, ());
    /// for _ in 0..3 {
    ///     let instance = Instance::new(&mut store, &module, &[])?;
    ///     let f = instance.get_module_export(&mut store, &export).and_then(|item| item.into_func()).expect("a function");
    ///     assert_eq!(f.typed::<(), i32>(&store)?.call(&mut store, ())?, 7);
    /// }
    /// # Ok::<(), weir::Error>(())
    /// ```
    pub fn get_module_export(&self, store: impl AsContext, export: &ModuleExport) -> Option<Extern> {
        let id = store.as_context().id();
        // SAFETY: the store is borrowed.
        unsafe {
            let instance = self.record(id);
            Some(Extern::of_instance(instance, export.of(&instance.module)?, id))
        }
    }

    /// Returns all exports, in order.
    pub fn exports<'a, T: 'static>(&self, store: impl Into<StoreContext<'a, T>>) -> impl ExactSizeIterator<Item = Export<'a>> {
        let id = store.into().id();
        // SAFETY: the store is borrowed for `'a`.
        let instance: &'a InstanceRecord = unsafe { self.record(id) };
        instance.module.bytecode().exports.iter().map(move |export| {
            // SAFETY: as above.
            Export::new(&export.name, unsafe { Extern::of_instance(instance, export.item, id) })
        })
    }

    /// Returns the function exported as `name`.
    pub fn get_func(&self, store: impl AsContext, name: &str) -> Option<Func> {
        self.get_export(store, name)?.into_func()
    }

    /// Returns the memory exported as `name`.
    pub fn get_memory(&self, store: impl AsContext, name: &str) -> Option<Memory> {
        self.get_export(store, name)?.into_memory()
    }

    /// Returns the table exported as `name`.
    pub fn get_table(&self, store: impl AsContext, name: &str) -> Option<Table> {
        self.get_export(store, name)?.into_table()
    }

    /// Returns the global exported as `name`.
    pub fn get_global(&self, store: impl AsContext, name: &str) -> Option<Global> {
        self.get_export(store, name)?.into_global()
    }

    /// Returns the tag exported as `name`.
    pub fn get_tag(&self, store: impl AsContext, name: &str) -> Option<Tag> {
        self.get_export(store, name)?.into_tag()
    }

    /// Returns whether both handles refer to the same instance.
    ///
    /// ```
    /// use weir::{Engine, Instance, Module, Store};
    ///
    /// let engine = Engine::default();
    /// let module = Module::new(&engine, "(module)")?;
    /// let mut store = Store::new(&engine, ());
    /// let [a, b] = [Instance::new(&mut store, &module, &[])?, Instance::new(&mut store, &module, &[])?];
    /// assert!(Instance::same(a, a) && !Instance::same(a, b));
    /// # Ok::<(), weir::Error>(())
    /// ```
    pub fn same(a: Instance, b: Instance) -> bool {
        a.store == b.store && a.ctx == b.ctx
    }

    /// # Safety
    /// `ctx` is that of an instance of the store with identity `store`.
    #[inline]
    pub(crate) unsafe fn from_raw(store: u64, ctx: NonNull<InstanceCtx>) -> Instance {
        Instance { store, ctx }
    }

    /// Reads the state of the instance.
    ///
    /// # Errors
    /// Some of it is none that a module can have.
    ///
    /// # Panics
    /// The instance belongs to another store.
    #[cfg(feature = "snapshot")]
    pub(crate) fn state<'a, T: 'static>(&self, store: impl Into<StoreContext<'a, T>>) -> Result<State<'a>> {
        // SAFETY: the store is borrowed for `'a`.
        Ok(unsafe { state(self.record(store.into().id())) }?)
    }

    /// Returns the record.
    ///
    /// # Panics
    /// The instance belongs to another store.
    ///
    /// # Safety
    /// The store with this identity lives for `'a`.
    pub(crate) unsafe fn record<'a>(&self, id: u64) -> &'a InstanceRecord {
        assert_eq!(self.store, id, "an instance was used with a store that is not its own");
        // SAFETY: the caller's promise.
        unsafe { instance_of(self.ctx.as_ptr()) }
    }
}
