//! The types of the backend, each of which has one of Weir's.

use ref_cast::RefCast;
use wasm_runtime_layer::backend::WasmEngine;

/// An engine of Weir.
#[derive(Clone, Default, Debug, RefCast)]
#[repr(transparent)]
pub struct Engine(weir::Engine);

impl Engine {
    /// Returns Weir's engine.
    pub fn inner(&self) -> &weir::Engine {
        &self.0
    }
}

impl From<weir::Engine> for Engine {
    fn from(engine: weir::Engine) -> Engine {
        Engine(engine)
    }
}

impl WasmEngine for Engine {
    type ExternRef = ExternRef;
    type Func = Func;
    type Global = Global;
    type Instance = Instance;
    type Memory = Memory;
    type Module = Module;
    type Store<T: 'static> = Store<T>;
    type StoreContext<'a, T: 'static> = StoreContext<'a, T>;
    type StoreContextMut<'a, T: 'static> = StoreContextMut<'a, T>;
    type Table = Table;
}

/// A store of Weir.
pub struct Store<T: 'static>(pub(crate) weir::Store<T>);

/// A shared borrow of a store.
pub struct StoreContext<'a, T: 'static>(pub(crate) weir::StoreContext<'a, T>);

/// An exclusive borrow of a store.
pub struct StoreContextMut<'a, T: 'static>(pub(crate) weir::StoreContextMut<'a, T>);

/// A host value that the guest can hold.
#[derive(Clone, Debug)]
pub struct ExternRef(pub(crate) weir::OwnedRooted<weir::ExternRef>);

/// A function of a guest or the host.
#[derive(Clone, Debug)]
pub struct Func(pub(crate) weir::Func);

/// A global.
#[derive(Clone, Debug)]
pub struct Global(pub(crate) weir::Global);

/// A memory.
#[derive(Clone, Debug)]
pub struct Memory(pub(crate) weir::Memory);

/// A table.
#[derive(Clone, Debug)]
pub struct Table(pub(crate) weir::Table);

/// An instance of a module.
#[derive(Clone, Debug)]
pub struct Instance(pub(crate) weir::Instance);

/// A validated module, all of whose imports the layer has.
#[derive(Clone, Debug)]
pub struct Module(pub(crate) weir::Module);
