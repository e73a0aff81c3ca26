//! Exception objects, and throwing from the host.

use crate::api::store::{AsContext, AsContextMut, Store, StoreContext, StoreContextMut};
use crate::api::types::{ExnType, FuncType, TagType};
use crate::records::attending::drop_dead;
use crate::records::collect::make_room;
use crate::records::exceptions::{ExnRecord, Site};
use crate::records::stack::{read_slot, write_slot};
use crate::records::store::StoreRecord;
use crate::records::thrown::ThrownException;
use crate::{Error, ExnRef, Result, Rooted, Tag, Val};
use std::ptr;

/// A type with which exceptions are made in a store: see [`ExnRef::new`].
#[derive(Debug)]
pub struct ExnRefPre {
    store: u64,
    ty: ExnType,
}

impl ExnRefPre {
    /// Prepares to make exceptions of this type in a store.
    pub fn new(mut store: impl AsContextMut, ty: ExnType) -> ExnRefPre {
        ExnRefPre { store: store.as_context_mut().id(), ty }
    }
}

impl ExnRef {
    /// Makes an exception with this tag and these fields.
    ///
    /// # Errors
    /// The types of the tag and the fields do not match that of `pre`; the store's limiter refuses the memory; or the scope of a field has
    /// ended.
    ///
    /// # Panics
    /// One of the arguments belongs to another store.
    pub fn new(mut store: impl AsContextMut, pre: &ExnRefPre, tag: &Tag, fields: &[Val]) -> Result<Rooted<ExnRef>> {
        let store = store.as_context_mut();
        let id = store.id();
        assert_eq!(pre.store, id, "a type was prepared for a store that is not the exception's own");
        if tag.ty(&store) != pre.ty.tag_type() {
            return Err(Error::msg("the type of the tag is not that of the exception"));
        }
        let record = tag.in_store(id);
        // SAFETY: the store is borrowed, and no reference into it is held.
        unsafe {
            let (ty, words) = (&(*record).ty, (*record).words());
            if fields.len() != ty.params.len() {
                return Err(Error::msg(format!("expected {} fields, found {}", ty.params.len(), fields.len())));
            }
            let mut payload = vec![0; fields.len() * words];
            for (field, ty) in fields.iter().zip(&ty.params) {
                field.to_bits(store.record(), *ty)?;
            }
            make_room(store.record(), ExnRecord::words(record));
            if (*store.record()).heap.has_dead() {
                drop_dead(store.record());
            }
            // From here on nothing is collected.
            for (i, (field, ty)) in fields.iter().zip(&ty.params).enumerate() {
                write_slot(payload[i * words..].as_mut_ptr(), words, field.to_bits(store.record(), *ty)?);
            }
            let exception = (*store.record()).add_exception(record, Site::HOST, payload.as_ptr())?;
            Ok(Rooted::push(store.record(), (*store.record()).heap.reference(exception)))
        }
    }

    /// Returns the object, which is valid until the next collection.
    ///
    /// # Errors
    /// The scope of the reference has ended.
    ///
    /// # Safety
    /// The store is live, and nothing else uses it.
    unsafe fn object(&self, store: *const StoreRecord) -> Result<*mut ExnRecord> {
        // SAFETY: the caller's promise.
        unsafe {
            let reference = (*store).reference(self.root)?;
            Ok((*store).heap.exception(reference))
        }
    }

    /// Returns the exception's type.
    ///
    /// # Errors
    /// The scope of the reference has ended.
    pub fn ty(&self, store: impl AsContext) -> Result<ExnType> {
        // SAFETY: the store is borrowed.
        let ty = unsafe { (*(*(*self.object(store.as_context().record())?).tag()).ty).clone() };
        ExnType::from_tag_type(&TagType::new(FuncType(ty)))
    }

    /// Returns its tag.
    ///
    /// # Errors
    /// The scope of the reference has ended.
    pub fn tag(&self, mut store: impl AsContextMut) -> Result<Tag> {
        let store = store.as_context_mut();
        // SAFETY: the store is borrowed.
        Ok(unsafe { Tag::from_raw(store.id(), (*self.object(store.record())?).tag()) })
    }

    /// Returns a field.
    ///
    /// # Errors
    /// There is no such field, or the scope of the reference has ended.
    pub fn field(&self, mut store: impl AsContextMut, index: usize) -> Result<Val> {
        let store = store.as_context_mut().record();
        // SAFETY: the store is borrowed, and the payload has the types of the tag.
        unsafe {
            let object = self.object(store)?;
            let (ty, words) = (&(*(*object).tag()).ty, (*(*object).tag()).words());
            let Some(&ty) = ty.params.get(index) else {
                return Err(Error::msg(format!("there is no field {index}: the exception has {}", ty.params.len())));
            };
            Ok(Val::from_bits(read_slot(ExnRecord::payload(object).add(index * words), words), store, ty))
        }
    }

    /// Returns the fields, in order.
    ///
    /// # Errors
    /// The scope of the reference has ended.
    pub fn fields<'a, T: 'static>(
        &'a self,
        store: impl Into<StoreContextMut<'a, T>>,
    ) -> Result<impl ExactSizeIterator<Item = Val> + 'a> {
        let mut store = store.into();
        let count = self.ty(&store)?.fields().len();
        Ok((0..count).map(move |index| self.field(&mut store, index).expect("it is below the number of fields")))
    }
}

impl<T: 'static> Store<T> {
    /// Makes an exception the pending one, and returns the error with which a host function throws it.
    ///
    /// # Errors
    /// Always a [`ThrownException`].
    pub fn throw<R>(&mut self, exception: Rooted<ExnRef>) -> Result<R> {
        self.as_context_mut().throw(exception)
    }

    /// Takes the pending exception: the latest that a call of the guest has thrown and nothing has caught, or that [`Store::throw`] was
    /// given. It stays pending until it is taken, another takes its place, or a host function throws it by returning a
    /// [`ThrownException`]. Calls that succeed leave it pending, as in wasmtime, where a guest that throws and catches another exception
    /// does not.
    pub fn take_pending_exception(&mut self) -> Option<Rooted<ExnRef>> {
        self.as_context_mut().take_pending_exception()
    }

    /// Returns whether there is a pending exception.
    pub fn has_pending_exception(&self) -> bool {
        self.as_context().has_pending_exception()
    }
}

impl<T: 'static> StoreContext<'_, T> {
    /// See [`Store::has_pending_exception`].
    pub fn has_pending_exception(&self) -> bool {
        // SAFETY: the store is borrowed.
        unsafe { !(*self.record()).pending.is_null() }
    }
}

impl<T: 'static> StoreContextMut<'_, T> {
    /// See [`Store::throw`].
    ///
    /// # Errors
    /// Always a [`ThrownException`].
    pub fn throw<R>(&mut self, exception: Rooted<ExnRef>) -> Result<R> {
        // SAFETY: the store is borrowed.
        unsafe { (*self.record()).pending = exception.object(self.record())? };
        Err(ThrownException.into())
    }

    /// See [`Store::take_pending_exception`].
    pub fn take_pending_exception(&mut self) -> Option<Rooted<ExnRef>> {
        // SAFETY: the store is borrowed, and what is pending is an object of its own.
        unsafe {
            let pending = ptr::replace(&raw mut (*self.record()).pending, ptr::null_mut());
            (!pending.is_null()).then(|| Rooted::push(self.record(), (*self.record()).heap.reference(pending)))
        }
    }

    /// See [`Store::has_pending_exception`].
    pub fn has_pending_exception(&self) -> bool {
        self.as_context().has_pending_exception()
    }
}
