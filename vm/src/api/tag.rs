//! Handles of tags.

use crate::api::store::{AsContext, AsContextMut};
use crate::api::types::{FuncType, TagType};
use crate::records::exceptions::TagRecord;
use crate::{Error, Result};
use std::ptr::NonNull;

/// A tag of a store, which tells kinds of exceptions apart. The handle is valid as long as the store.
///
/// ```
/// use weir::{Engine, FuncType, Store, Tag, TagType, ValType};
///
/// let engine = Engine::default();
/// let mut store = Store::new(&engine, ());
/// let ty = TagType::new(FuncType::new(&engine, [ValType::I32], []));
/// let [a, b] = [Tag::new(&mut store, &ty)?, Tag::new(&mut store, &ty)?];
/// assert!(Tag::eq(&a, &a, &store) && !Tag::eq(&a, &b, &store));
/// # Ok::<(), weir::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Tag {
    store: u64,
    record: NonNull<TagRecord>,
}

// SAFETY: the record is only reached through a borrow of its store, and is never changed.
unsafe impl Send for Tag {}
// SAFETY: as above.
unsafe impl Sync for Tag {}

impl Tag {
    /// Creates a tag.
    ///
    /// # Errors
    /// The type has results.
    pub fn new(mut store: impl AsContextMut, ty: &TagType) -> Result<Tag> {
        let store = store.as_context_mut();
        store.engine().record().check_process()?;
        if ty.ty().results().next().is_some() {
            return Err(Error::msg("the type of a tag has no results"));
        }
        let signatures = &store.engine().record().signatures;
        let sig = signatures.intern(&ty.ty().0);
        let ty = signatures.get(sig);
        // SAFETY: the store is borrowed, and no reference into it is held.
        unsafe {
            let record = (*store.record()).add_tag(TagRecord::new(sig, ty));
            Ok(Tag::from_raw(store.id(), record))
        }
    }

    /// Returns the type of the tag.
    pub fn ty(&self, store: impl AsContext) -> TagType {
        let record = self.in_store(store.as_context().id());
        // SAFETY: the store is borrowed, and a record is never changed.
        TagType::new(FuncType(unsafe { (*(*record).ty).clone() }))
    }

    /// Returns whether both handles refer to the same tag.
    ///
    /// # Panics
    /// One of them belongs to another store.
    pub fn eq(a: &Tag, b: &Tag, store: impl AsContext) -> bool {
        let id = store.as_context().id();
        a.in_store(id) == b.in_store(id)
    }

    /// Returns the engine-wide identity of its type, in the store with this identity.
    pub(crate) fn sig(&self, id: u64) -> u32 {
        // SAFETY: the store exists, and a record is never changed.
        unsafe { (*self.in_store(id)).sig }
    }

    /// # Safety
    /// The tag belongs to the store with identity `store`.
    pub(crate) unsafe fn from_raw(store: u64, record: *const TagRecord) -> Tag {
        Tag { store, record: NonNull::new(record.cast_mut()).expect("imports are linked") }
    }

    /// Returns whether the tag is one of the store with this identity.
    pub(crate) fn belongs_to(&self, id: u64) -> bool {
        self.store == id
    }

    /// Returns the record, which is valid because the store with this identity exists.
    pub(crate) fn in_store(&self, id: u64) -> *const TagRecord {
        assert_eq!(self.store, id, "a tag was used with a store that is not its own");
        self.record.as_ptr()
    }
}
