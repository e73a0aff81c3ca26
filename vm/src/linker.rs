//! Finding imports by name.

use crate::externs::Extern;
use crate::func::dynamic;
use crate::instance::Instance;
use crate::runtime::instantiate::Import;
use crate::runtime::records::HostFunc;
use crate::runtime::signatures::{canonical_table, canonical_value};
use crate::store::{AsContext, AsContextMut};
use crate::typed::IntoFunc;
use crate::types::ExternType;
use crate::{Caller, Engine, Error, FuncType, GlobalType, HeapType, LinkError, Module, RefType, Result, Val, ValType};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;
use weir_bytecode::module::{ExternType as IndexedType, Import as ModuleImport};
use weir_bytecode::types::Limits;

/// Names, and what modules get that import them.
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
pub struct Linker<T: 'static> {
    engine: Engine,
    definitions: HashMap<Box<str>, HashMap<Box<str>, Definition>>,
    allow_shadowing: bool,
    marker: PhantomData<fn(T)>,
}

/// What a name stands for.
#[derive(Clone)]
pub(crate) enum Definition {
    /// An item of a store.
    Extern(Extern),
    /// A host function of no store, usable in all.
    Host(Arc<HostFunc>),
}

impl<T: 'static> Clone for Linker<T> {
    fn clone(&self) -> Self {
        let Linker { engine, definitions, allow_shadowing, marker } = self;
        Linker { engine: engine.clone(), definitions: definitions.clone(), allow_shadowing: *allow_shadowing, marker: *marker }
    }
}

impl<T: 'static> Linker<T> {
    /// A linker that knows no names.
    pub fn new(engine: &Engine) -> Linker<T> {
        Linker { engine: engine.clone(), definitions: HashMap::new(), allow_shadowing: false, marker: PhantomData }
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Whether a name may be defined again, which replaces what it stood for. Off at first.
    pub fn allow_shadowing(&mut self, allow: bool) -> &mut Linker<T> {
        self.allow_shadowing = allow;
        self
    }

    /// Defines a name as an item of a store; only for instances in that store.
    ///
    /// # Errors
    /// The name is already defined.
    pub fn define(
        &mut self,
        _store: impl AsContext<Data = T>,
        module: &str,
        name: &str,
        item: impl Into<Extern>,
    ) -> Result<&mut Linker<T>> {
        self.insert(module, name, Definition::Extern(item.into()))
    }

    /// Defines a name as a host function out of a closure over Rust types: see [`IntoFunc`].
    ///
    /// # Errors
    /// The name is already defined.
    pub fn func_wrap<P, R>(&mut self, module: &str, name: &str, func: impl IntoFunc<T, P, R>) -> Result<&mut Linker<T>> {
        self.insert(module, name, Definition::Host(func.into_func().0))
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
    ) -> Result<&mut Linker<T>> {
        self.insert(module, name, Definition::Host(dynamic(ty, func)))
    }

    /// Defines the exports of an instance under a module name.
    ///
    /// # Errors
    /// One of the names is already defined.
    pub fn instance(&mut self, store: impl AsContext<Data = T>, module: &str, instance: Instance) -> Result<&mut Linker<T>> {
        for (name, item) in instance.exports(&store) {
            self.insert(module, name, Definition::Extern(item))?;
        }
        Ok(self)
    }

    /// Defines a name as what another stands for.
    ///
    /// # Errors
    /// The name is already defined, or the other is not.
    pub fn alias(&mut self, module: &str, name: &str, as_module: &str, as_name: &str) -> Result<&mut Linker<T>> {
        let undefined = || Error::msg(format!("`{module}::{name}` is not defined"));
        let definition = self.definition(module, name).ok_or_else(undefined)?.clone();
        self.insert(as_module, as_name, definition)
    }

    /// Defines every function that a module imports and that is not defined as one that fails when it is called.
    ///
    /// # Errors
    /// None at present.
    pub fn define_unknown_imports_as_traps(&mut self, module: &Module) -> Result<()> {
        for import in module.imports() {
            if let ExternType::Func(ty) = import.ty()
                && self.definition(import.module(), import.name()).is_none()
            {
                let message = format!("unknown import `{}::{}` was called", import.module(), import.name());
                let fail = move |_: Caller<'_, T>, _: &[Val], _: &mut [Val]| Err(Error::msg(&message));
                self.func_new(import.module(), import.name(), ty.clone(), fail)?;
            }
        }
        Ok(())
    }

    /// What a name stands for. A host function is given to the store first.
    pub fn get(&self, mut store: impl AsContextMut<Data = T>, module: &str, name: &str) -> Option<Extern> {
        let definition = self.definition(module, name)?;
        Some(match definition {
            Definition::Extern(item) => *item,
            Definition::Host(func) => crate::Func::from_host(store.as_context_mut(), func.clone()).into(),
        })
    }

    /// Instantiates a module with what its imports' names stand for, and runs its start function.
    ///
    /// # Errors
    /// As [`Instance::new`]; a [`LinkError`] that names the import if it is not defined.
    ///
    /// # Panics
    /// As [`Instance::new`].
    pub fn instantiate(&self, store: impl AsContextMut<Data = T>, module: &Module) -> Result<Instance> {
        self.instantiate_pre(module)?.instantiate(store)
    }

    /// Looks a module's imports up, to instantiate it many times.
    ///
    /// # Errors
    /// A [`LinkError`] if a name is not defined.
    pub fn instantiate_pre(&self, module: &Module) -> Result<InstancePre<T>> {
        let imports = (module.bytecode().imports.iter())
            .map(|import| {
                self.definition(&import.module, &import.name).cloned().ok_or_else(|| LinkError::Unknown {
                    module: import.module.to_string(),
                    name: import.name.to_string(),
                    expected: expected_type(module, import).to_string(),
                })
            })
            .collect::<Result<_, LinkError>>()?;
        Ok(InstancePre { module: module.clone(), imports, marker: PhantomData })
    }

    fn definition(&self, module: &str, name: &str) -> Option<&Definition> {
        self.definitions.get(module)?.get(name)
    }

    fn insert(&mut self, module: &str, name: &str, definition: Definition) -> Result<&mut Linker<T>> {
        if !self.allow_shadowing && self.definition(module, name).is_some() {
            return Err(Error::msg(format!("`{module}::{name}` is already defined")));
        }
        self.definitions.entry(module.into()).or_default().insert(name.into(), definition);
        Ok(self)
    }
}

/// A module and what its imports' names stand for: [`Linker::instantiate_pre`]. Usable from any thread.
pub struct InstancePre<T: 'static> {
    module: Module,
    imports: Box<[Definition]>,
    marker: PhantomData<fn(T)>,
}

impl<T: 'static> Clone for InstancePre<T> {
    fn clone(&self) -> Self {
        InstancePre { module: self.module.clone(), imports: self.imports.clone(), marker: PhantomData }
    }
}

impl<T: 'static> InstancePre<T> {
    /// The module.
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
    pub fn instantiate(&self, mut store: impl AsContextMut<Data = T>) -> Result<Instance> {
        let store = store.as_context_mut();
        check_engine(&store, &self.module)?;
        let imports = (self.module.bytecode().imports.iter().zip(&self.imports))
            .map(|(import, definition)| check_import(&store, &self.module, import, definition))
            .collect::<Result<Vec<Import>>>()?;
        Instance::link(store, &self.module, imports)
    }
}

/// The type of an import, types that it refers to by their engine-wide identities.
fn expected_type(module: &Module, import: &ModuleImport) -> ExternType {
    let sig_ids = &module.record().sig_ids;
    match &import.ty {
        IndexedType::Func(index) => {
            let sig = sig_ids[*index as usize];
            ExternType::Func((*module.engine().record().signatures.get(sig)).clone())
        }
        IndexedType::Table(ty) => ExternType::Table(canonical_table(*ty, sig_ids)),
        IndexedType::Memory(ty) => ExternType::Memory(*ty),
        IndexedType::Global(ty) => ExternType::Global(GlobalType { value: canonical_value(ty.value, sig_ids), ..*ty }),
    }
}

/// Whether the module may be instantiated in the store at all.
///
/// # Errors
/// They belong to different engines.
pub(crate) fn check_engine(store: &impl AsContext, module: &Module) -> Result<()> {
    match Engine::same(store.as_context().engine(), module.engine()) {
        true => Ok(()),
        false => Err(Error::msg("the module and the store belong to different engines")),
    }
}

/// What an import of a module of the store's engine becomes.
///
/// # Errors
/// [`LinkError::Incompatible`]
///
/// # Panics
/// The definition is an item of another store.
pub(crate) fn check_import(
    store: &impl AsContext,
    module: &Module,
    import: &ModuleImport,
    definition: &Definition,
) -> Result<Import> {
    let found = || match definition {
        Definition::Extern(item) => item.ty(store),
        Definition::Host(func) => ExternType::Func(func.ty.clone()),
    };
    let fits = match (&import.ty, definition) {
        (IndexedType::Func(index), Definition::Extern(Extern::Func(func))) => {
            module.record().sig_ids[*index as usize] == func.sig(store.as_context().id())
        }
        (IndexedType::Func(index), Definition::Host(func)) => {
            let sig = module.record().sig_ids[*index as usize];
            *module.engine().record().signatures.get(sig) == func.ty
        }
        _ => matches(&expected_type(module, import), &found()),
    };
    if !fits {
        let (expected, found) = (expected_type(module, import).to_string(), found().to_string());
        let (module, name) = (import.module.to_string(), import.name.to_string());
        return Err(LinkError::Incompatible { module, name, expected, found }.into());
    }
    let id = store.as_context().id();
    Ok(match definition {
        Definition::Host(func) => Import::Host(func.clone()),
        Definition::Extern(Extern::Func(func)) => match func.host(id) {
            Some(host) => Import::Host(host),
            None => Import::Func(func.in_store(id)),
        },
        Definition::Extern(Extern::Table(table)) => Import::Table(table.in_store(id)),
        Definition::Extern(Extern::Memory(memory)) => Import::Memory(memory.in_store(id)),
        Definition::Extern(Extern::Global(global)) => Import::Global(global.in_store(id)),
    })
}

/// Whether what was found may serve as what is expected; functions are compared elsewhere. Both have engine-wide type
/// identities; a memory's or table's minimal size is the size that it has now.
fn matches(expected: &ExternType, found: &ExternType) -> bool {
    match (expected, found) {
        (ExternType::Table(expected), ExternType::Table(found)) => {
            expected.element == found.element && expected.table64 == found.table64 && limits_match(expected.limits, found.limits)
        }
        (ExternType::Memory(expected), ExternType::Memory(found)) => {
            expected.memory64 == found.memory64
                && expected.shared == found.shared
                && expected.page_size_log2 == found.page_size_log2
                && limits_match(expected.limits, found.limits)
        }
        (ExternType::Global(expected), ExternType::Global(found)) => {
            expected.mutable == found.mutable
                && (expected.value == found.value || !expected.mutable && is_subtype(found.value, expected.value))
        }
        _ => false,
    }
}

fn limits_match(expected: Limits, found: Limits) -> bool {
    let max_matches = match (expected.max, found.max) {
        (None, _) => true,
        (Some(expected), Some(found)) => found <= expected,
        (Some(_), None) => false,
    };
    found.min >= expected.min && max_matches
}

/// Whether every value of type `sub` is one of type `sup`.
fn is_subtype(sub: ValType, sup: ValType) -> bool {
    match (sub, sup) {
        (ValType::Ref(sub), ValType::Ref(sup)) => {
            let RefType { nullable, heap } = sub;
            let heap_matches = heap == sup.heap || matches!((heap, sup.heap), (HeapType::Concrete(_), HeapType::Func));
            heap_matches && (sup.nullable || !nullable)
        }
        _ => sub == sup,
    }
}
