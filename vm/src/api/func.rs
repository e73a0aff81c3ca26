//! Handles of guest and host functions. [`super::calls`] makes and calls them.

use crate::api::store::{AsContext, StoreContext, StoreContextMut};
use crate::exec::host::{self, EngineFunc};
use crate::records::host::HostFunc;
use crate::records::instance::{Owner, owner_of};
use crate::{FuncType, Result};
use std::ptr::NonNull;
use std::sync::Arc;
use weir_bytecode::FuncType as PlainType;
use weir_contract::FuncRef;

/// A function of a store, exported by an instance or provided by the host. The handle is valid as long as the store.
///
/// ```
/// use weir::{Engine, Func, Store};
///
/// let mut store = Store::new(&Engine::default(), ());
/// let add = Func::wrap(&mut store, |a: i32, b: i32| a + b);
/// let add = add.typed::<(i32, i32), i32>(&store)?;
/// assert_eq!(add.call(&mut store, (2, 3))?, 5);
/// # Ok::<(), weir::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Func {
    store: u64,
    func: NonNull<FuncRef>,
}

// SAFETY: the reference is only dereferenced through a borrow of its store.
unsafe impl Send for Func {}
// SAFETY: as above.
unsafe impl Sync for Func {}

impl Func {
    /// Adds a host function to a store.
    ///
    /// # Panics
    /// If the engine was made before this process was forked.
    pub(crate) fn from_host<T>(store: StoreContextMut<'_, T>, func: Arc<HostFunc>) -> Func {
        store.engine().record().check_process().expect("a function is made in the engine's process");
        let func = EngineFunc::new(store.engine(), func);
        // SAFETY: the store is borrowed, and no reference into it is held.
        let func = unsafe { host::add(store.record(), func, std::ptr::null_mut()) };
        Func { store: store.id(), func }
    }

    /// Returns the type of the function.
    ///
    /// # Panics
    /// If the engine was made before this process was forked.
    pub fn ty(&self, store: impl AsContext) -> FuncType {
        let ty = self.plain_type(&store.as_context()).expect("a function's type is in its engine's process");
        FuncType(ty.as_ref().clone())
    }

    /// Returns the type of the function.
    ///
    /// # Errors
    /// [`ForkedEngine`](crate::ForkedEngine)
    pub(super) fn plain_type<T>(&self, store: &StoreContext<'_, T>) -> Result<Arc<PlainType>> {
        let engine = store.engine().record();
        engine.check_process()?;
        Ok(engine.signatures.get(self.sig(store.id())))
    }

    /// Returns whether both handles refer to the same function.
    pub fn same(a: Func, b: Func) -> bool {
        a.store == b.store && a.func == b.func
    }

    /// # Safety
    /// `func` belongs to the store with identity `store`.
    pub(crate) unsafe fn from_ref(store: u64, func: NonNull<FuncRef>) -> Func {
        Func { store, func }
    }

    /// Returns whether the function is one of the store with this identity.
    pub(crate) fn belongs_to(&self, id: u64) -> bool {
        self.store == id
    }

    /// Returns the reference, which is valid because the store with this identity exists.
    #[inline]
    pub(crate) fn in_store(&self, id: u64) -> *mut FuncRef {
        assert_eq!(self.store, id, "a function was used with a store that is not its own");
        self.func.as_ptr()
    }

    /// Returns the engine-wide identity of the function's type.
    pub(crate) fn sig(&self, id: u64) -> u32 {
        // SAFETY: the store exists, and a reference's fields never change.
        unsafe { (*self.in_store(id)).sig }
    }

    /// Returns the host function, if it is one.
    pub(crate) fn host(&self, id: u64) -> Option<EngineFunc> {
        // SAFETY: the store exists.
        match unsafe { owner_of((*self.in_store(id)).instance) } {
            Owner::Host(host) => Some(EngineFunc::of(host)),
            Owner::Instance(_) => None,
        }
    }
}
