//! References into the collected heap, as the embedder holds them.

use crate::api::store::{AsContext, AsContextMut, Store, StoreContext, StoreContextMut};
use crate::records::attending::drop_dead;
use crate::records::collect::collect;
use crate::records::error::Result;
use crate::records::heap::Heap;
use crate::records::roots::Root;
use crate::records::store::StoreRecord;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// Types in the collected heap: [`ExternRef`](crate::ExternRef) and [`ExnRef`](crate::ExnRef). They are used through [`Rooted`] and [`OwnedRooted`].
pub trait GcRef: Sealed + Copy + fmt::Debug {}

/// Keeps other crates from implementing these traits.
pub trait Sealed {
    /// Creates the reference with this root.
    #[doc(hidden)]
    fn of(root: RootOf) -> Self;

    /// Returns the root.
    #[doc(hidden)]
    fn root(&self) -> RootOf;
}

/// A root, which only this crate can look into.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RootOf(pub(crate) Root);

/// A reference to a `T` that lives until the end of a scope: the call of the host function in which it was made, or a [`RootScope`]; outside
/// any, that of the store. Its use after that is an error. [`Rooted::to_owned_rooted`] makes one that lives longer.
///
/// ```
/// use weir::{Engine, ExternRef, RootScope, Store};
///
/// let mut store = Store::new(&Engine::default(), ());
/// let outer = {
///     let mut scope = RootScope::new(&mut store);
///     ExternRef::new(&mut scope, 7)?
/// };
/// assert!(outer.data(&store).is_err());
/// # Ok::<(), weir::Error>(())
/// ```
pub struct Rooted<T: GcRef>(T);

impl<T: GcRef> Clone for Rooted<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: GcRef> Copy for Rooted<T> {}

/// A reference to a `T` that lives until it and its clones are dropped. They may outlive the store.
///
/// The collector does not look into host values. One that owns an `OwnedRooted` through which it is reached itself is a cycle, and lives
/// as long as the store.
///
/// ```
/// use weir::{Engine, ExternRef, OwnedRooted, RootScope, Store};
///
/// let mut store = Store::new(&Engine::default(), ());
/// let owned: OwnedRooted<ExternRef> = {
///     let mut scope = RootScope::new(&mut store);
///     ExternRef::new(&mut scope, 7)?.to_owned_rooted(&mut scope)?
/// };
/// store.gc(None)?;
/// assert_eq!(owned.data(&store)?.and_then(|data| data.downcast_ref::<i32>()), Some(&7));
/// # Ok::<(), weir::Error>(())
/// ```
pub struct OwnedRooted<T: GcRef> {
    reference: T,
    /// The owned root lives as long as clones of this.
    token: Arc<()>,
}

impl<T: GcRef> Clone for OwnedRooted<T> {
    fn clone(&self) -> Self {
        OwnedRooted { reference: self.reference, token: self.token.clone() }
    }
}

/// [`Rooted`] and [`OwnedRooted`].
pub trait RootedGcRef<T: GcRef>: Deref<Target = T> {
    /// Returns the reference.
    #[doc(hidden)]
    fn reference(&self) -> T;
}

impl<T: GcRef> RootedGcRef<T> for Rooted<T> {
    fn reference(&self) -> T {
        self.0
    }
}

impl<T: GcRef> RootedGcRef<T> for OwnedRooted<T> {
    fn reference(&self) -> T {
        self.reference
    }
}

/// Returns whether two references refer to the same object.
///
/// # Errors
/// The scope of one has ended.
fn same<T: GcRef>(store: impl AsContext, a: &impl RootedGcRef<T>, b: &impl RootedGcRef<T>) -> Result<bool> {
    let record = store.as_context().record();
    // SAFETY: the store is borrowed.
    unsafe { Ok((*record).reference(a.reference().root().0)? == (*record).reference(b.reference().root().0)?) }
}

/// Hashes the object to which a reference refers: see [`Rooted::ref_hash`].
///
/// # Errors
/// The scope of the reference has ended.
fn hash_object<T: GcRef, H: Hasher>(store: impl AsContext, reference: T, state: &mut H) -> Result<()> {
    let record = store.as_context().record();
    // SAFETY: the store is borrowed.
    unsafe { (*record).reference(reference.root().0)?.hash(state) };
    Ok(())
}

/// Returns the raw form of a root's reference.
///
/// # Errors
/// The scope of the root has ended.
///
/// # Panics
/// It is one of another store.
pub(crate) fn raw_reference(mut store: impl AsContextMut, root: Root) -> Result<u32> {
    let record = store.as_context_mut().record();
    // SAFETY: the store is borrowed.
    unsafe { (*record).reference(root) }
}

impl<T: GcRef> Rooted<T> {
    /// Returns whether it is one of the store with this identity.
    pub(crate) fn belongs_to(&self, id: u64) -> bool {
        self.0.root().0.store == id
    }

    /// Adds a reference in the raw form to the innermost scope; `None` for null. `check` panics unless it is one to a `T`.
    pub(crate) fn from_raw(mut store: impl AsContextMut, raw: u32, check: impl FnOnce(&Heap)) -> Option<Rooted<T>> {
        let record = store.as_context_mut().record();
        if raw == 0 {
            return None;
        }
        // SAFETY: the store is borrowed. That there is such an object is checked.
        unsafe {
            check(&(*record).heap);
            Some(Rooted::push(record, raw))
        }
    }

    /// Adds a reference of a store to its innermost scope.
    ///
    /// # Safety
    /// The reference is one of this live store to a `T`, and nothing else uses the store.
    pub(crate) unsafe fn push(store: *mut StoreRecord, reference: u32) -> Rooted<T> {
        // SAFETY: the caller's promise.
        unsafe { Rooted(T::of(RootOf((*store).push_root(reference)))) }
    }

    /// Returns the reference in a slot.
    ///
    /// # Errors
    /// Its scope has ended.
    ///
    /// # Panics
    /// It is one of another store.
    ///
    /// # Safety
    /// The store is live, and nothing else uses it.
    pub(crate) unsafe fn slot(&self, store: *const StoreRecord) -> Result<u64> {
        // SAFETY: the caller's promise.
        unsafe { Ok((&*store).reference(self.0.root().0)?.into()) }
    }

    /// Makes a reference that lives until it is dropped.
    ///
    /// # Errors
    /// The scope of this one has ended.
    ///
    /// # Panics
    /// It is one of another store.
    pub fn to_owned_rooted(&self, mut store: impl AsContextMut) -> Result<OwnedRooted<T>> {
        let store = store.as_context_mut().record();
        // SAFETY: the store is borrowed.
        unsafe {
            let reference = (*store).reference(self.0.root().0)?;
            Ok(OwnedRooted::own(store, reference))
        }
    }

    /// Returns whether both are the same root. Two roots of one object differ: see [`Rooted::ref_eq`].
    pub fn rooted_eq(a: Self, b: Self) -> bool {
        a.0.root() == b.0.root()
    }

    /// Returns whether two references refer to the same object.
    ///
    /// # Errors
    /// The scope of one has ended.
    ///
    /// # Panics
    /// One is of another store.
    pub fn ref_eq(store: impl AsContext, a: &impl RootedGcRef<T>, b: &impl RootedGcRef<T>) -> Result<bool> {
        same(store, a, b)
    }

    /// Hashes the root, not the object.
    pub fn rooted_hash<H: Hasher>(&self, state: &mut H) {
        self.0.root().hash(state);
    }

    /// Hashes the object's identity, which is the same for all references to it until the next collection.
    ///
    /// # Errors
    /// The scope of the reference has ended.
    ///
    /// # Panics
    /// It is one of another store.
    pub fn ref_hash<H: Hasher>(&self, store: impl AsContext, state: &mut H) -> Result<()> {
        hash_object(store, self.0, state)
    }
}

impl<T: GcRef> OwnedRooted<T> {
    /// Returns whether it is one of the store with this identity.
    pub(crate) fn belongs_to(&self, id: u64) -> bool {
        self.reference.root().0.store == id
    }

    /// Owns a reference of a store.
    ///
    /// # Safety
    /// As for [`Rooted::push`].
    pub(crate) unsafe fn own(store: *mut StoreRecord, reference: u32) -> OwnedRooted<T> {
        // SAFETY: the caller's promise.
        let (root, token) = unsafe { (*store).roots.own((*store).id, reference) };
        OwnedRooted { reference: T::of(RootOf(root)), token }
    }

    /// Returns the reference in a slot.
    ///
    /// # Panics
    /// It is one of another store.
    ///
    /// # Safety
    /// The store is live, and nothing else uses it.
    pub(crate) unsafe fn slot(&self, store: *const StoreRecord) -> u64 {
        // SAFETY: the caller's promise.
        let reference = unsafe { (*store).reference(self.reference.root().0) };
        reference.expect("this is an owner of the root").into()
    }

    /// Makes a reference in the innermost scope of the store.
    ///
    /// # Panics
    /// It is one of another store.
    pub fn to_rooted(&self, mut store: impl AsContextMut) -> Rooted<T> {
        let store = store.as_context_mut().record();
        // SAFETY: the store is borrowed; an owned root is there as long as its token.
        unsafe {
            let reference = (*store).reference(self.reference.root().0).expect("this is an owner of the root");
            Rooted::push(store, reference)
        }
    }

    /// Returns whether two references refer to the same object.
    ///
    /// # Errors
    /// The scope of one has ended.
    ///
    /// # Panics
    /// One is of another store.
    pub fn ref_eq(store: impl AsContext, a: &impl RootedGcRef<T>, b: &impl RootedGcRef<T>) -> Result<bool> {
        same(store, a, b)
    }

    /// Hashes the root, not the object.
    pub fn rooted_hash<H: Hasher>(&self, state: &mut H) {
        self.reference.root().hash(state);
    }

    /// Hashes the object's identity: see [`Rooted::ref_hash`].
    ///
    /// # Panics
    /// It is one of another store.
    pub fn ref_hash<H: Hasher>(&self, store: impl AsContext, state: &mut H) {
        hash_object(store, self.reference, state).expect("this is an owner of the root");
    }
}

impl<T: GcRef> Deref for Rooted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: GcRef> Deref for OwnedRooted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.reference
    }
}

impl<T: GcRef> fmt::Debug for Rooted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rooted").field(&self.0).finish()
    }
}

impl<T: GcRef> fmt::Debug for OwnedRooted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedRooted")
            .field("reference", &self.reference)
            .field("owners", &(Arc::strong_count(&self.token) - 1))
            .finish()
    }
}

/// A scope of [`Rooted`] references: those made while it is there live until it is dropped. The store is used through it.
pub struct RootScope<C: AsContextMut> {
    store: C,
    scope: usize,
}

impl<C: AsContextMut> RootScope<C> {
    /// Opens a scope.
    pub fn new(mut store: C) -> RootScope<C> {
        let record = store.as_context_mut().record();
        // SAFETY: the store is borrowed.
        let scope = unsafe { (*record).roots.open() };
        RootScope { store, scope }
    }

    /// Makes room for this many references.
    pub fn reserve(&mut self, additional: usize) {
        let record = self.store.as_context_mut().record();
        // SAFETY: the store is borrowed.
        unsafe { (*record).roots.reserve(additional) };
    }
}

impl<C: AsContextMut> Drop for RootScope<C> {
    fn drop(&mut self) {
        let record = self.store.as_context_mut().record();
        // SAFETY: the store is borrowed.
        unsafe { (*record).end_scope(self.scope) };
    }
}

impl<C: AsContextMut> AsContext for RootScope<C> {
    type Data = C::Data;

    fn as_context(&self) -> StoreContext<'_, C::Data> {
        self.store.as_context()
    }
}

impl<C: AsContextMut> AsContextMut for RootScope<C> {
    fn as_context_mut(&mut self) -> StoreContextMut<'_, C::Data> {
        self.store.as_context_mut()
    }
}

impl<C: AsContextMut + fmt::Debug> fmt::Debug for RootScope<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RootScope").field("store", &self.store).finish_non_exhaustive()
    }
}

/// The error of making a reference for which there is no memory. It has the value for which it was to be made.
pub struct GcHeapOutOfMemory<T> {
    value: T,
    bytes: u64,
}

impl<T> GcHeapOutOfMemory<T> {
    pub(crate) fn new(value: T, bytes: u64) -> GcHeapOutOfMemory<T> {
        GcHeapOutOfMemory { value, bytes }
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Returns the value, and the error without it, which is the reason for [`Store::gc`].
    pub fn take_inner(self) -> (T, GcHeapOutOfMemory<()>) {
        (self.value, GcHeapOutOfMemory { value: (), bytes: self.bytes })
    }

    /// Returns the bytes that the object needs.
    pub fn bytes_needed(&self) -> u64 {
        self.bytes
    }
}

impl<T> fmt::Display for GcHeapOutOfMemory<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the store's limits or the system's do not allow another reference")
    }
}

impl<T> fmt::Debug for GcHeapOutOfMemory<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GcHeapOutOfMemory").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl<T> std::error::Error for GcHeapOutOfMemory<T> {}

impl<T: 'static> Store<T> {
    /// Collects: host values and exceptions that the guest and the embedder can no longer reach are dropped. This happens by itself, too, when
    /// references are made and exceptions are thrown. The reason is ignored.
    ///
    /// A host value that itself owns, in an [`OwnedRooted`], a reference through which it is reached is never dropped before the store:
    /// the collector does not see through host values.
    ///
    /// # Errors
    /// [`ForkedEngine`](crate::ForkedEngine).
    ///
    /// # Panics
    /// With the panic of a value's destructor, when all have been dropped.
    pub fn gc(&mut self, why: Option<&GcHeapOutOfMemory<()>>) -> Result<()> {
        self.as_context_mut().gc(why)
    }
}

impl<T: 'static> StoreContextMut<'_, T> {
    /// See [`Store::gc`].
    ///
    /// # Errors
    /// [`ForkedEngine`](crate::ForkedEngine).
    ///
    /// # Panics
    /// As [`Store::gc`].
    pub fn gc(&mut self, _why: Option<&GcHeapOutOfMemory<()>>) -> Result<()> {
        self.engine().record().check_process()?;
        let store = self.record();
        // SAFETY: the store is borrowed by the embedder's code.
        unsafe {
            collect(store, &[]);
            drop_dead(store);
        }
        Ok(())
    }
}
