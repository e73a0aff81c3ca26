//! Resolution of imports by name.

use crate::api::calls::dynamic;
use crate::api::externs::Extern;
use crate::api::imports::{check_engine, check_host, check_import, unknown_import};
use crate::api::instance::Instance;
use crate::api::store::{AsContext, AsContextMut};
use crate::api::typed::IntoFunc;
use crate::api::types::{ExternType, FuncType, ImportType};
use crate::exec::host::EngineFunc;
use crate::exec::instantiate::Import;
use crate::records::error::Context;
use crate::records::host::HostFunc;
use crate::{Caller, Engine, Error, Func, Module, Result, UnknownImportError, Val};
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use weir_bytecode::module::Import as ModuleImport;
use weir_bytecode::names::Plain;

/// Definitions by name, from which the imports of modules are resolved.
///
/// ```
/// use weir::{Caller, Engine, Linker, Module, Store};
///
/// let engine = Engine::default();
/// let module = Module::new(&engine, r#"
///     (module
///         (import "host" "add" (func $add (param i32)))
///         (func (export "run") (call $add (i32.const 2)) (call $add (i32.const 3))))
/// "#)?;
/// let mut linker = Linker::new(&engine);
/// linker.func_wrap("host", "add", |mut caller: Caller<'_, i32>, n: i32| *caller.data_mut() += n)?;
/// let mut store = Store::new(&engine, 0);
/// let instance = linker.instantiate(&mut store, &module)?;
/// instance.get_typed_func::<(), ()>(&mut store, "run")?.call(&mut store, ())?;
/// assert_eq!(*store.data(), 5);
/// # Ok::<(), weir::Error>(())
/// ```
pub struct Linker<T> {
    engine: Engine,
    definitions: HashMap<Box<str>, HashMap<Box<str>, Definition>>,
    allow_shadowing: bool,
    allow_unknown_exports: bool,
    marker: PhantomData<fn(T)>,
}

/// The definition of a name.
#[derive(Clone)]
enum Definition {
    /// An item of one store.
    Extern(Extern),
    /// A host function that belongs to no store and can be used in all of them.
    Host(Arc<HostFunc>),
}

impl Definition {
    /// Returns the item for this store. A host function is added to the store first.
    fn to_extern<T: 'static>(&self, mut store: impl AsContextMut<Data = T>) -> Extern {
        match self {
            Definition::Extern(item) => *item,
            Definition::Host(func) => Func::from_host(store.as_context_mut(), func.clone()).into(),
        }
    }
}

impl<T> Default for Linker<T> {
    /// Creates an empty linker with an engine of its own.
    fn default() -> Linker<T> {
        Linker::new(&Engine::default())
    }
}

impl<T> fmt::Debug for Linker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Linker").field("allow_shadowing", &self.allow_shadowing).finish_non_exhaustive()
    }
}

impl<T> Clone for Linker<T> {
    fn clone(&self) -> Self {
        let &Linker { ref engine, ref definitions, allow_shadowing, allow_unknown_exports, marker } = self;
        Linker { engine: engine.clone(), definitions: definitions.clone(), allow_shadowing, allow_unknown_exports, marker }
    }
}

impl<T> Linker<T> {
    /// Creates an empty linker.
    pub fn new(engine: &Engine) -> Linker<T> {
        Linker {
            engine: engine.clone(),
            definitions: HashMap::new(),
            allow_shadowing: false,
            allow_unknown_exports: false,
            marker: PhantomData,
        }
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Sets whether a definition may replace an earlier one of the same name. Default: off.
    pub fn allow_shadowing(&mut self, allow: bool) -> &mut Linker<T> {
        self.allow_shadowing = allow;
        self
    }

    /// Sets whether a command may export items that are no functions and that toolchains do not export either: see [`Linker::module`].
    /// Default: off.
    pub fn allow_unknown_exports(&mut self, allow: bool) -> &mut Linker<T> {
        self.allow_unknown_exports = allow;
        self
    }

    /// Defines a name as an item of a store, for instances in that store only.
    ///
    /// # Errors
    /// The name is already defined.
    pub fn define(
        &mut self,
        _store: impl AsContext<Data = T>,
        module: &str,
        name: &str,
        item: impl Into<Extern>,
    ) -> Result<&mut Linker<T>>
    where
        T: 'static,
    {
        self.insert(module, name, Definition::Extern(item.into()))
    }

    /// Defines a name as a host function from a closure over Rust types: see [`IntoFunc`].
    ///
    /// # Errors
    /// The name is already defined.
    pub fn func_wrap<P, R>(&mut self, module: &str, name: &str, func: impl IntoFunc<T, P, R>) -> Result<&mut Linker<T>>
    where
        T: 'static,
    {
        self.define_host(module, name, func.into_func().0)
    }

    /// Defines a name as a host function of any type: see [`Func::new`](crate::Func::new).
    ///
    /// # Errors
    /// The name is already defined.
    pub fn func_new(
        &mut self,
        module: &str,
        name: &str,
        ty: FuncType,
        func: impl Fn(Caller<'_, T>, &[Val], &mut [Val]) -> Result<()> + Send + Sync + 'static,
    ) -> Result<&mut Linker<T>>
    where
        T: 'static,
    {
        self.define_host(module, name, dynamic(ty.0, func))
    }

    /// Defines a name of the empty module as an item of a store.
    ///
    /// # Errors
    /// The name is already defined.
    pub fn define_name(&mut self, store: impl AsContext<Data = T>, name: &str, item: impl Into<Extern>) -> Result<&mut Linker<T>>
    where
        T: 'static,
    {
        self.define(store, "", name, item)
    }

    /// Defines the exports of an instance under a module name.
    ///
    /// # Errors
    /// One of the names is already defined.
    pub fn instance(&mut self, store: impl AsContext<Data = T>, module: &str, instance: Instance) -> Result<&mut Linker<T>>
    where
        T: 'static,
    {
        for export in instance.exports(store.as_context()) {
            self.insert(module, export.name(), Definition::Extern(export.into_extern()))?;
        }
        Ok(self)
    }

    /// Instantiates a module and defines its exports under a module name. A reactor, which is initialised by
    /// `_initialize`, is instantiated now; a command, which has a `_start`, anew at every call of one of its functions.
    ///
    /// # Errors
    /// As [`Linker::instantiate`]; the reactor's initialisation fails; a name is already defined; a command exports something else than
    /// functions, a memory `memory`, a table, and the globals of toolchains.
    pub fn module(&mut self, mut store: impl AsContextMut<Data = T>, name: &str, module: &Module) -> Result<&mut Linker<T>>
    where
        T: 'static,
    {
        if Linker::<T>::is_command(module)? {
            return self.command(name, module);
        }
        let instance = self.instantiate(&mut store, module)?;
        if let Some(initialize) = instance.get_func(&mut store, "_initialize") {
            initialize.typed::<(), ()>(&store)?.call(&mut store, ()).context("calling the Reactor initialization function")?;
        }
        self.instance(store, name, instance)
    }

    /// Returns whether a module is a command.
    ///
    /// # Errors
    /// It is a command and a reactor, or has something else of such a name than a function.
    pub(super) fn is_command(module: &Module) -> Result<bool> {
        let has = |name: &str| match module.get_export(name) {
            None => Ok(false),
            Some(ExternType::Func(_)) => Ok(true),
            Some(_) => Err(Error::msg(format!("`{name}` must be a function"))),
        };
        match (has("_start")?, has("_initialize")?) {
            (true, true) => Err(Error::msg("Program cannot be both a Command and a Reactor")),
            (is_command, _) => Ok(is_command),
        }
    }

    fn command(&mut self, name: &str, module: &Module) -> Result<&mut Linker<T>>
    where
        T: 'static,
    {
        let pre = self.instantiate_pre(module)?;
        for export in module.exports() {
            let (pre, function, ty) = (pre.clone(), export.name().to_owned(), export.ty());
            let Some(ty) = ty.func() else {
                let is_usual = match &ty {
                    ExternType::Memory(_) => export.name() == "memory",
                    ExternType::Table(_) => ["__indirect_function_table", "table"].contains(&export.name()),
                    ExternType::Global(_) => {
                        ["__data_end", "__heap_base", "__dso_handle", "__rtti_base"].contains(&export.name())
                    }
                    ExternType::Func(_) | ExternType::Tag(_) => false,
                };
                if !is_usual && !self.allow_unknown_exports {
                    return Err(Error::msg(format!("command export '{}' is not a function", Plain(export.name()))));
                }
                continue;
            };
            self.func_new(name, export.name(), ty.clone(), move |mut caller, params, results| {
                let instance = pre.instantiate(&mut caller)?;
                let func = instance.get_func(&mut caller, &function).context("a command lost its export")?;
                func.call(&mut caller, params, results)
            })?;
        }
        Ok(self)
    }

    /// Defines a name as an alias of another name.
    ///
    /// # Errors
    /// The name is already defined, or the other name is not.
    pub fn alias(&mut self, module: &str, name: &str, as_module: &str, as_name: &str) -> Result<&mut Linker<T>> {
        let definition = self.known(module, name)?.clone();
        self.insert(as_module, as_name, definition)
    }

    /// Defines every name of module `as_module` under module `module`.
    ///
    /// # Errors
    /// A name is already defined.
    pub fn alias_module(&mut self, module: &str, as_module: &str) -> Result<()> {
        for (name, definition) in self.definitions.get(module).cloned().unwrap_or_default() {
            self.insert(as_module, &name, definition)?;
        }
        Ok(())
    }

    /// Defines each undefined function import of a module as a function that fails when it is called.
    ///
    /// # Errors
    /// [`ForkedEngine`](crate::ForkedEngine).
    pub fn define_unknown_imports_as_traps(&mut self, module: &Module) -> Result<()>
    where
        T: 'static,
    {
        for unknown in self.unknown_imports(module)? {
            if let ExternType::Func(ty) = unknown.ty() {
                let error = unknown.clone();
                self.func_new(unknown.module(), unknown.name(), ty, move |_, _, _| Err(error.clone().into()))?;
            }
        }
        Ok(())
    }

    /// Defines each undefined import of a module as an item of the store that has the default value of its type: see
    /// [`ExternType::default_value`]. Functions return zeros and nulls, in all stores.
    ///
    /// # Errors
    /// The type of an undefined import has no default value, or the item cannot be made.
    pub fn define_unknown_imports_as_default_values(
        &mut self,
        mut store: impl AsContextMut<Data = T>,
        module: &Module,
    ) -> Result<()>
    where
        T: 'static,
    {
        for unknown in self.unknown_imports(module)? {
            let (module, name) = (unknown.module(), unknown.name());
            match unknown.ty() {
                ExternType::Func(ty) if let Some(zeros) = ty.default_results() => {
                    self.func_new(module, name, ty, move |_, _, results| {
                        results.copy_from_slice(&zeros);
                        Ok(())
                    })?;
                }
                ty => {
                    let item = ty
                        .default_value(&mut store)
                        .with_context(|| format!("the import `{}::{}`", Plain(module), Plain(name)))?;
                    self.define(&store, module, name, item)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the imports of a module that are not defined.
    ///
    /// # Errors
    /// [`ForkedEngine`](crate::ForkedEngine)
    pub(super) fn unknown_imports(&self, module: &Module) -> Result<Vec<UnknownImportError>> {
        module.engine().record().check_process()?;
        let imports = module.bytecode().imports.iter();
        let unknown = imports.filter(|import| self.definition(&import.module, &import.name).is_none());
        Ok(unknown.map(|import| unknown_import(module, import)).collect())
    }

    /// Returns the definition of a name. A host function is added to the store first.
    ///
    /// # Errors
    /// The name is not defined; or [`ForkedEngine`](crate::ForkedEngine).
    pub fn get(&self, store: impl AsContextMut<Data = T>, module: &str, name: &str) -> Result<Extern>
    where
        T: 'static,
    {
        store.as_context().engine().record().check_process()?;
        let definition = self.definition(module, name);
        let definition = definition.ok_or_else(|| Error::msg(format!("missing definition for `{module}::{name}`")))?;
        Ok(definition.to_extern(store))
    }

    /// Returns the definition of an import's name, whatever the type.
    ///
    /// # Panics
    /// If the engine was made before this process was forked: see [`ForkedEngine`](crate::ForkedEngine).
    pub fn get_by_import(&self, store: impl AsContextMut<Data = T>, import: &ImportType<'_>) -> Option<Extern>
    where
        T: 'static,
    {
        Some(self.definition(import.module(), import.name())?.to_extern(store))
    }

    /// As [`Linker::get_by_import`].
    ///
    /// # Errors
    /// [`ForkedEngine`](crate::ForkedEngine).
    pub fn try_get_by_import(&self, store: impl AsContextMut<Data = T>, import: &ImportType<'_>) -> Result<Option<Extern>>
    where
        T: 'static,
    {
        store.as_context().engine().record().check_process()?;
        Ok(self.get_by_import(store, import))
    }

    /// Returns the function that runs a module: its export with the empty name, or `_start`, or a function that does
    /// nothing.
    ///
    /// # Errors
    /// The name is defined as something other than a function; or [`ForkedEngine`](crate::ForkedEngine).
    pub fn get_default(&self, mut store: impl AsContextMut<Data = T>, module: &str) -> Result<Func>
    where
        T: 'static,
    {
        store.as_context().engine().record().check_process()?;
        for name in ["", "_start"] {
            if let Some(definition) = self.definition(module, name) {
                let func = definition.to_extern(&mut store).into_func();
                return func.with_context(|| match name {
                    "" => format!("default export in '{module}' is not a function"),
                    _ => format!("`_start` in '{module}' is not a function"),
                });
            }
        }
        Ok(Func::wrap(store, || {}))
    }

    /// Returns module, name and item of every definition, in unspecified order.
    ///
    /// # Panics
    /// As [`Linker::get_by_import`].
    pub fn iter<'a: 'p, 'p>(
        &'a self,
        mut store: impl AsContextMut<Data = T> + 'p,
    ) -> impl Iterator<Item = (&'a str, &'a str, Extern)> + 'p
    where
        T: 'static,
    {
        let names =
            self.definitions.iter().flat_map(|(module, names)| names.iter().map(move |(name, item)| (module, name, item)));
        names.map(move |(module, name, item)| (&**module, &**name, item.to_extern(&mut store)))
    }

    /// Instantiates a module with the definitions of its imports' names, and runs its start function.
    ///
    /// # Errors
    /// As [`Instance::new`]; an [`UnknownImportError`] if an import is not defined.
    ///
    /// # Panics
    /// As [`Instance::new`].
    pub fn instantiate(&self, store: impl AsContextMut<Data = T>, module: &Module) -> Result<Instance>
    where
        T: 'static,
    {
        self.resolve(module)?.instantiate(store)
    }

    /// Does what [`Linker::instantiate`] does, by the name that the method has in wasmi.
    ///
    /// # Errors
    /// # Panics
    /// As there.
    pub fn instantiate_and_start(&self, store: impl AsContextMut<Data = T>, module: &Module) -> Result<Instance>
    where
        T: 'static,
    {
        self.instantiate(store, module)
    }

    /// Looks up the imports of a module once, to instantiate it many times. Its data is then mapped, not copied, by the first instance, too.
    ///
    /// # Errors
    /// An [`UnknownImportError`] if a name is not defined; a [`LinkError`](crate::LinkError) if a host function does not have the
    /// imported type.
    pub fn instantiate_pre(&self, module: &Module) -> Result<InstancePre<T>>
    where
        T: 'static,
    {
        let pre = self.resolve(module)?;
        module.record().images.expect_many();
        Ok(pre)
    }

    fn resolve(&self, module: &Module) -> Result<InstancePre<T>> {
        check_engine(&self.engine, module)?;
        let item = |import: &ModuleImport| match self.definition(&import.module, &import.name) {
            None => Err(unknown_import(module, import).into()),
            Some(Definition::Extern(item)) => Ok(Item::Extern(*item)),
            Some(Definition::Host(func)) => Ok(Item::Host(check_host(module, import, func)?)),
        };
        let imports = module.bytecode().imports.iter().map(item).collect::<Result<_>>()?;
        Ok(InstancePre { module: module.clone(), imports, marker: PhantomData })
    }

    fn definition(&self, module: &str, name: &str) -> Option<&Definition> {
        self.definitions.get(module)?.get(name)
    }

    fn known(&self, module: &str, name: &str) -> Result<&Definition> {
        self.definition(module, name).ok_or_else(|| Error::msg(format!("no item named `{module}::{name}` defined")))
    }

    /// Defines a name as a host function.
    pub(super) fn define_host(&mut self, module: &str, name: &str, func: Arc<HostFunc>) -> Result<&mut Linker<T>> {
        self.insert(module, name, Definition::Host(func))
    }

    fn insert(&mut self, module: &str, name: &str, definition: Definition) -> Result<&mut Linker<T>> {
        if !self.allow_shadowing && self.definition(module, name).is_some() {
            return Err(Error::msg(format!("import of `{module}::{name}` defined twice")));
        }
        self.definitions.entry(module.into()).or_default().insert(name.into(), definition);
        Ok(self)
    }
}

/// A module with the definitions of its imports: see [`Linker::instantiate_pre`]. Usable from any thread.
///
/// ```
/// use weir::{Engine, Linker, Module, Store};
///
/// let engine = Engine::default();
/// let module = Module::new(&engine, r#"
///     (module
///         (import "host" "id" (func $id (result i32)))
///         (func (export "id") (result i32) (call $id)))
/// "#)?;
/// let mut linker = Linker::new(&engine);
/// linker.func_wrap("host", "id", |caller: weir::Caller<'_, i32>| *caller.data())?;
/// let pre = linker.instantiate_pre(&module)?;
/// std::thread::scope(|scope| {
///     for id in 0..3 {
///         let pre = &pre;
///         scope.spawn(move || {
///             let mut store = Store::new(pre.module().engine(), id);
///             let instance = pre.instantiate(&mut store).unwrap();
///             let func = instance.get_typed_func::<(), i32>(&mut store, "id").unwrap();
///             assert_eq!(func.call(&mut store, ()).unwrap(), id);
///         });
///     }
/// });
/// # Ok::<(), weir::Error>(())
/// ```
pub struct InstancePre<T> {
    module: Module,
    imports: Box<[Item]>,
    marker: PhantomData<fn(T)>,
}

/// The definition of an import.
#[derive(Clone)]
enum Item {
    /// An item of a store, whose type is checked at instantiation because memories and tables grow.
    Extern(Extern),
    /// A host function, whose type has been checked.
    Host(EngineFunc),
}

impl<T> Clone for InstancePre<T> {
    fn clone(&self) -> Self {
        InstancePre { module: self.module.clone(), imports: self.imports.clone(), marker: PhantomData }
    }
}

impl<T> InstancePre<T> {
    /// Returns the module.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Instantiates the module and runs its start function.
    ///
    /// # Errors
    /// As [`Instance::new`].
    ///
    /// # Panics
    /// As [`Instance::new`].
    pub fn instantiate(&self, mut store: impl AsContextMut<Data = T>) -> Result<Instance>
    where
        T: 'static,
    {
        let store = store.as_context_mut();
        let imports = self.check_imports(&store)?;
        Instance::link(store, &self.module, imports)
    }

    /// Checks the imports for a store.
    ///
    /// # Errors
    /// They do not match, or the module belongs to another engine.
    ///
    /// # Panics
    /// An import belongs to another store.
    pub(super) fn check_imports(&self, store: &impl AsContext) -> Result<Vec<Import>>
    where
        T: 'static,
    {
        self.module.engine().record().check_process()?;
        if !Engine::same(store.as_context().engine(), self.module.engine()) {
            return Err(Error::msg("cross-`Engine` usage is not supported"));
        }
        (self.module.bytecode().imports.iter().zip(&self.imports))
            .map(|(import, item)| match item {
                Item::Extern(item) => check_import(store, &self.module, import, *item),
                Item::Host(func) => Ok(Import::Host(func.clone())),
            })
            .collect()
    }
}
