//! Stores and borrows of them.

use crate::types::{Engine, Store, StoreContext, StoreContextMut};
use ref_cast::RefCast;
use std::fmt;
use wasm_runtime_layer::backend::{AsContext, AsContextMut, WasmStore, WasmStoreContext, WasmStoreContextMut};
use weir::{AsContext as _, AsContextMut as _};

impl<T: 'static> Store<T> {
    /// Returns Weir's store, to set limits on it.
    pub fn inner_mut(&mut self) -> &mut weir::Store<T> {
        &mut self.0
    }
}

impl<T: 'static> WasmStore<T, Engine> for Store<T> {
    fn new(engine: &Engine, data: T) -> Store<T> {
        Store(weir::Store::new(engine.inner(), data))
    }

    fn engine(&self) -> &Engine {
        Engine::ref_cast(self.0.engine())
    }

    fn data(&self) -> &T {
        self.0.data()
    }

    fn data_mut(&mut self) -> &mut T {
        self.0.data_mut()
    }

    fn into_data(self) -> T {
        self.0.into_data()
    }
}

impl<T: 'static> AsContext<Engine> for Store<T> {
    type UserState = T;

    fn as_context(&self) -> StoreContext<'_, T> {
        StoreContext(self.0.as_context())
    }
}

impl<T: 'static> AsContextMut<Engine> for Store<T> {
    fn as_context_mut(&mut self) -> StoreContextMut<'_, T> {
        StoreContextMut(self.0.as_context_mut())
    }
}

impl<'a, T: 'static> WasmStoreContext<'a, T, Engine> for StoreContext<'a, T> {
    fn engine(&self) -> &Engine {
        Engine::ref_cast(self.0.engine())
    }

    fn data(&self) -> &T {
        self.0.data()
    }
}

impl<T: 'static> AsContext<Engine> for StoreContext<'_, T> {
    type UserState = T;

    fn as_context(&self) -> StoreContext<'_, T> {
        StoreContext(self.0.as_context())
    }
}

impl<'a, T: 'static> WasmStoreContext<'a, T, Engine> for StoreContextMut<'a, T> {
    fn engine(&self) -> &Engine {
        Engine::ref_cast(self.0.engine())
    }

    fn data(&self) -> &T {
        self.0.data()
    }
}

impl<'a, T: 'static> WasmStoreContextMut<'a, T, Engine> for StoreContextMut<'a, T> {
    fn data_mut(&mut self) -> &mut T {
        self.0.data_mut()
    }
}

impl<T: 'static> AsContext<Engine> for StoreContextMut<'_, T> {
    type UserState = T;

    fn as_context(&self) -> StoreContext<'_, T> {
        StoreContext(self.0.as_context())
    }
}

impl<T: 'static> AsContextMut<Engine> for StoreContextMut<'_, T> {
    fn as_context_mut(&mut self) -> StoreContextMut<'_, T> {
        StoreContextMut(self.0.as_context_mut())
    }
}

impl<T: 'static + fmt::Debug> fmt::Debug for Store<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: 'static> fmt::Debug for StoreContext<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreContext").finish_non_exhaustive()
    }
}

impl<T: 'static> fmt::Debug for StoreContextMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreContextMut").finish_non_exhaustive()
    }
}
