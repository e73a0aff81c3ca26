//! Snapshots: modules that begin where an initialiser has ended.

use crate::Module;
use crate::api::instance::Instance;
use crate::api::linker::Linker;
use crate::api::store::{AsContext, AsContextMut};
use crate::api::types::ExternType;
use crate::records::error::{Context, Error, Result};
use crate::records::snapshot::encode::{Exports, encode};
use crate::records::snapshot::error::SnapshotError;
use crate::records::snapshot::state::check_imports;
use weir_bytecode::Trap;

/// The function that initialises a reactor of WASI.
const INITIALIZE: &str = "_initialize";

/// The names of the initialiser if none is given: those of Wizer, its present one first.
const INITIALISERS: [&str; 2] = ["wizer-initialize", "wizer.initialize"];

/// Runs the initialiser of a module, and writes memories, tables and globals back as a module that begins with them.
///
/// The new module is a plain one that every engine with the same proposals runs. Memories and tables have the sizes to which they have
/// grown. Data and element segments keep their indices; those that were dropped are empty. Types, imports, functions, code and custom
/// sections are the module's own, byte for byte. Without the start section, `_initialize` and the initialiser, nothing runs twice.
///
/// What a snapshot cannot hold is refused with a [`SnapshotError`]: memories, tables and mutable globals that are imported; references to
/// host values, exceptions and functions of other instances in globals and tables; a pending exception. Files that the initialiser has
/// left open are the embedder's to refuse, for example with `WasiCtx::open_descriptors` of `weir-wasi`. Immutable globals and tags stay
/// imported: what imports them later must give the same values, because the state may depend on them.
///
/// A module that [`Module::from_file`] has read has no debugging sections, and neither has its snapshot.
///
/// ```
/// use weir::{Engine, Linker, Module, Snapshot, Store};
///
/// let engine = Engine::default();
/// let module = Module::new(&engine, r#"
///     (module
///         (global $answer (mut i32) (i32.const 0))
///         (func (export "init") (global.set $answer (i32.const 42)))
///         (func (export "answer") (result i32) (global.get $answer)))
/// "#)?;
/// let mut store = Store::new(&engine, ());
/// let bytes = Snapshot::new().init("init").run(&mut store, &Linker::new(&engine), &module)?;
///
/// let module = Module::new(&engine, bytes)?;
/// assert!(module.get_export("init").is_none());
/// let instance = Linker::new(&engine).instantiate(&mut store, &module)?;
/// assert_eq!(instance.get_typed_func::<(), i32>(&mut store, "answer")?.call(&mut store, ())?, 42);
/// # Ok::<(), weir::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    init: Option<String>,
    keep_init: bool,
    /// New names, each with the old one.
    renamed: Vec<(String, String)>,
}

impl Snapshot {
    /// Creates a snapshot with the initialiser `wizer-initialize` or, if the module does not export it, `wizer.initialize`.
    pub fn new() -> Snapshot {
        Snapshot::default()
    }

    /// Sets the exported function that initialises the module. It has neither parameters nor results.
    pub fn init(&mut self, name: impl Into<String>) -> &mut Snapshot {
        self.init = Some(name.into());
        self
    }

    /// Sets whether the new module exports the initialiser. Default: off.
    pub fn keep_init(&mut self, keep: bool) -> &mut Snapshot {
        self.keep_init = keep;
        self
    }

    /// Makes the new module export under the name `new` what the module exports as `old`, and no longer as `old`. An export that has the
    /// new name is left out. May be called several times.
    pub fn rename(&mut self, new: impl Into<String>, old: impl Into<String>) -> &mut Snapshot {
        self.renamed.push((new.into(), old.into()));
        self
    }

    /// Instantiates a module, initialises it, and returns the bytes of the new module.
    ///
    /// # Errors
    /// As [`Snapshot::instantiate`] and [`Snapshot::take`].
    ///
    /// # Panics
    /// As [`Linker::instantiate`].
    pub fn run<T: 'static>(
        &self,
        mut store: impl AsContextMut<Data = T>,
        linker: &Linker<T>,
        module: &Module,
    ) -> Result<Vec<u8>> {
        let instance = self.instantiate(&mut store, linker, module)?;
        self.take(store, instance)
    }

    /// Instantiates a module with the imports that a linker defines, and calls `_initialize`, if it is exported, and the initialiser. A
    /// function that is imported and not defined may be called by neither.
    ///
    /// # Errors
    /// [`SnapshotError::Export`] for an initialiser or a renamed export that the module does not have, [`SnapshotError::Import`]; the errors
    /// of [`Linker::instantiate`] for a global or a tag that is not defined, among others; the error of a function that traps, or that
    /// calls an import that is not defined ([`SnapshotError::Call`]).
    ///
    /// # Panics
    /// As [`Linker::instantiate`].
    pub fn instantiate<T: 'static>(
        &self,
        mut store: impl AsContextMut<Data = T>,
        linker: &Linker<T>,
        module: &Module,
    ) -> Result<Instance> {
        let init = self.initialiser(module)?;
        self.exports(module)?;
        check_imports(module.bytecode()).map_err(Error::new)?;
        let mut linker = linker.clone();
        for unknown in linker.unknown_imports(module)? {
            if let ExternType::Func(ty) = unknown.ty() {
                let error = SnapshotError::Call { module: unknown.module().into(), name: unknown.name().into() };
                linker.func_new(unknown.module(), unknown.name(), ty, move |_, _, _| Err(Error::new(error.clone())))?;
            }
        }
        let instance = linker.instantiate(&mut store, module)?;
        // The initialiser may be `_initialize` itself.
        for name in [INITIALIZE].into_iter().chain((init != INITIALIZE).then_some(init)) {
            if let Some(func) = instance.get_func(&mut store, name) {
                func.typed::<(), ()>(&store)?.call(&mut store, ())?;
            }
        }
        Ok(instance)
    }

    /// Returns the bytes of a module that begins with the state of an instance, whatever has run in it. Nothing is called.
    ///
    /// # Errors
    /// [`SnapshotError`] for everything that a snapshot cannot hold, and for a renamed export that the module does not have; the new module is
    /// larger than modules may be.
    ///
    /// # Panics
    /// The instance belongs to another store.
    pub fn take(&self, store: impl AsContext, instance: Instance) -> Result<Vec<u8>> {
        let store = store.as_context();
        let module = instance.module(store);
        let exports = self.exports(module)?;
        check_imports(module.bytecode()).map_err(Error::new)?;
        if store.has_pending_exception() {
            return Err(Error::new(SnapshotError::Exception));
        }
        module.bytecode().bytes.all().map_err(Trap::from)?;
        let bytes = encode(module.bytecode(), &instance.state(store)?, &exports)?;
        Module::validate(module.engine(), &bytes).context("the snapshot is no valid module")?;
        Ok(bytes)
    }

    /// Returns the name of the initialiser.
    ///
    /// # Errors
    /// It, or `_initialize`, is no such function.
    fn initialiser<'a>(&'a self, module: &Module) -> Result<&'a str> {
        let init = match &self.init {
            Some(init) => init,
            None => INITIALISERS.into_iter().find(|name| module.get_export(name).is_some()).ok_or_else(|| {
                let [present, earlier] = INITIALISERS;
                export(format!("the module exports no initialiser: neither `{present}` nor `{earlier}`"))
            })?,
        };
        for name in [INITIALIZE, init] {
            match module.get_export(name) {
                None if name == INITIALIZE => {}
                Some(ExternType::Func(ty)) if ty.params().len() + ty.results().len() == 0 => {}
                None => return Err(export(format!("the module exports no function `{name}`"))),
                Some(ty) => {
                    let message =
                        format!("`{name}` is no initialiser: expected a function without parameters and results, found {ty}");
                    return Err(export(message));
                }
            }
        }
        Ok(init)
    }

    /// Returns the changes of the exports.
    ///
    /// # Errors
    /// An export that is to be renamed is missing, or two get the same name.
    fn exports(&self, module: &Module) -> Result<Exports> {
        for (i, (new, old)) in self.renamed.iter().enumerate() {
            if module.get_export(old).is_none() {
                return Err(export(format!("the module exports no `{old}`, which `{new}` is to be")));
            }
            if self.renamed[..i].iter().any(|(other, _)| other == new) {
                return Err(export(format!("two exports are to be `{new}`")));
            }
        }
        let mut exports = Exports { renamed: self.renamed.clone(), ..Exports::default() };
        exports.removed.insert(INITIALIZE.into());
        if !self.keep_init {
            match &self.init {
                Some(init) => _ = exports.removed.insert(init.clone()),
                None => exports.removed.extend(INITIALISERS.map(String::from)),
            }
        }
        if self.keep_init && self.init.as_deref() == Some(INITIALIZE) {
            exports.removed.clear();
        }
        Ok(exports)
    }
}

fn export(message: String) -> Error {
    Error::new(SnapshotError::Export(message))
}
