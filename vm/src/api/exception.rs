//! Exception objects, and throwing from the host.

use crate::api::store::{AsContext, AsContextMut, Store, StoreContext, StoreContextMut};
use crate::api::types::{ExnType, FuncType, TagType};
use crate::records::exceptions::{ExnRecord, Site};
use crate::records::stack::{read_slot, write_slot};
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
    /// The types of the tag and the fields do not match that of `pre`; or the store's limiter refuses the memory.
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
            for (i, (field, ty)) in fields.iter().zip(&ty.params).enumerate() {
                write_slot(payload[i * words..].as_mut_ptr(), words, field.to_bits(id, *ty)?);
            }
            let exception = ExnRecord::new(record, Site::HOST, payload.as_ptr());
            Ok(ExnRef::from_raw(id, (*store.record()).add_exception(exception)?))
        }
    }

    /// Returns the exception's type.
    ///
    /// # Errors
    /// None at present.
    pub fn ty(&self, store: impl AsContext) -> Result<ExnType> {
        let record = self.in_store(store.as_context().id());
        // SAFETY: the store is borrowed; records are never changed.
        let ty = unsafe { (*(*(*record).tag()).ty).clone() };
        ExnType::from_tag_type(&TagType::new(FuncType(ty)))
    }

    /// Returns its tag.
    ///
    /// # Errors
    /// None at present.
    pub fn tag(&self, mut store: impl AsContextMut) -> Result<Tag> {
        let id = store.as_context_mut().id();
        // SAFETY: the store is borrowed; records are never changed.
        Ok(unsafe { Tag::from_raw(id, (*self.in_store(id)).tag()) })
    }

    /// Returns a field.
    ///
    /// # Errors
    /// There is no such field.
    pub fn field(&self, mut store: impl AsContextMut, index: usize) -> Result<Val> {
        let id = store.as_context_mut().id();
        // SAFETY: the store is borrowed; records are never changed, and the payload has the types of the tag.
        unsafe {
            let record = &*self.in_store(id);
            let (ty, words) = (&(*record.tag()).ty, (*record.tag()).words());
            let Some(&ty) = ty.params.get(index) else {
                return Err(Error::msg(format!("there is no field {index}: the exception has {}", ty.params.len())));
            };
            Ok(Val::from_bits(read_slot(record.payload()[index * words..].as_ptr(), words), id, ty))
        }
    }

    /// Returns the fields, in order.
    ///
    /// # Errors
    /// None at present.
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

    /// Takes the pending exception: the one that the latest call of the guest has thrown and nothing has caught, or that
    /// [`Store::throw`] was given.
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
        unsafe { (*self.record()).pending = exception.in_store(self.id()) };
        Err(ThrownException.into())
    }

    /// See [`Store::take_pending_exception`].
    pub fn take_pending_exception(&mut self) -> Option<Rooted<ExnRef>> {
        // SAFETY: the store is borrowed, and what is pending is an object of its own.
        unsafe {
            let pending = ptr::replace(&raw mut (*self.record()).pending, ptr::null_mut());
            (!pending.is_null()).then(|| ExnRef::from_raw(self.id(), pending))
        }
    }

    /// See [`Store::has_pending_exception`].
    pub fn has_pending_exception(&self) -> bool {
        self.as_context().has_pending_exception()
    }
}
