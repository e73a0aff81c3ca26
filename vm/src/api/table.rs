//! Handles of tables.

use crate::api::store::{AsContext, AsContextMut};
use crate::api::value::Ref;
use crate::records::error::Context;
use crate::records::fiber::Fiber;
use crate::records::store::StoreRecord;
use crate::records::table::TableRecord;
use crate::records::wording::{Long, mismatch};
use crate::{Error, Result, TableType, ValType};
use std::ptr::{self, NonNull};

/// A table of a store. The handle is valid as long as the store.
///
/// ```
/// use weir::{Engine, Ref, RefType, Store, Table, TableType};
///
/// let mut store = Store::new(&Engine::default(), ());
/// let table = Table::new(&mut store, TableType::new(RefType::FUNCREF, 2, None), Ref::Func(None))?;
/// assert!(table.get(&mut store, 1).unwrap().is_null());
/// assert!(table.get(&mut store, 2).is_none());
/// # Ok::<(), weir::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Table {
    store: u64,
    record: NonNull<TableRecord>,
}

// SAFETY: the record is only reached through a borrow of its store.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

/// The message for a reference whose type is not the table's.
const OTHER_ELEMENT: &str = "type mismatch: value does not match table element type";

impl Table {
    /// Creates a table of the type's minimum size, filled with a reference.
    ///
    /// # Errors
    /// The table is too large, the store's limits forbid it, or `init` is not of its element type.
    pub fn new(mut store: impl AsContextMut, ty: TableType, init: Ref) -> Result<Table> {
        let store = store.as_context_mut();
        store.engine().record().check_process()?;
        // SAFETY: the store is borrowed, and no reference into it is held.
        let record = unsafe {
            let init = init.to_slot(store.record(), ty.element).context(OTHER_ELEMENT)?;
            StoreRecord::add_table(store.record(), ty, init, u64::MAX, ptr::null_mut())?
        };
        // SAFETY: the table has just been made there.
        Ok(unsafe { Table::from_raw(store.id(), record) })
    }

    /// Returns the type with which the table was made. [`Table::size`] returns the current size.
    pub fn ty(&self, store: impl AsContext) -> TableType {
        // SAFETY: `in_store` proves that it exists, and the store is borrowed.
        unsafe { (*self.in_store(store.as_context().id())).ty }
    }

    /// Returns the type for linking, with the current size as the minimum.
    pub(crate) fn current_type(&self, store: impl AsContext) -> TableType {
        // SAFETY: as for `ty`.
        unsafe { (*self.in_store(store.as_context().id())).current_type() }
    }

    /// Returns the number of elements.
    pub fn size(&self, store: impl AsContext) -> u64 {
        // SAFETY: `in_store` proves that it exists, and the store is borrowed.
        unsafe { (*self.in_store(store.as_context().id())).ctx.len }
    }

    /// Returns the element at `index`, or `None` if it is out of bounds.
    pub fn get(&self, mut store: impl AsContextMut, index: u64) -> Option<Ref> {
        let store = store.as_context_mut();
        // SAFETY: `in_store` proves that it exists, and the store is borrowed. Its elements are of its element type.
        unsafe {
            let table = &*self.in_store(store.id());
            Some(Ref::from_slot(table.get(index).ok()?, store.record(), table.ty.element))
        }
    }

    /// Sets the element at `index`.
    ///
    /// # Errors
    /// `index` is out of bounds, or the reference is not of the table's element type.
    pub fn set(&self, store: impl AsContextMut, index: u64, value: Ref) -> Result<()> {
        self.fill(store, index, value, 1)
    }

    /// Copies `len` elements from index `src` of one table to index `dst` of another or the same table.
    ///
    /// # Errors
    /// A range is out of bounds, or the element types differ; nothing is copied.
    pub fn copy(mut store: impl AsContextMut, to: &Table, dst: u64, from: &Table, src: u64, len: u64) -> Result<()> {
        let id = store.as_context_mut().id();
        let (to, from) = (to.in_store(id), from.in_store(id));
        // SAFETY: `in_store` proves that they exist, and the store is borrowed; both ranges are checked, and may overlap.
        unsafe {
            let (target, source) = ((*to).ty.element, (*from).ty.element);
            if !source.matches(&target) {
                let [target, source] = [target, source].map(|ty| Long(ValType::Ref(ty)));
                return Err(mismatch(target, source)
                    .context("type mismatch: source table's element type does not match destination table's element type"));
            }
            let to = (*to).range(dst, len)?;
            let from = (*from).range(src, len)?;
            ptr::copy(from, to, len as usize);
        }
        Ok(())
    }

    /// Sets `len` elements, beginning at `index`.
    ///
    /// # Errors
    /// The range is out of bounds, or the reference is not of the table's element type; nothing is written.
    pub fn fill(&self, mut store: impl AsContextMut, index: u64, value: Ref, len: u64) -> Result<()> {
        let store = store.as_context_mut();
        // SAFETY: `in_store` proves that it exists, and the store is borrowed.
        unsafe {
            let table = &mut *self.in_store(store.id());
            let value = value.to_slot(store.record(), table.ty.element).context(OTHER_ELEMENT)?;
            Ok(table.fill(index, value, len)?)
        }
    }

    /// Adds `delta` elements and returns the previous size.
    ///
    /// # Errors
    /// The table's maximum or the store's limits forbid it, or the reference is not of the table's element type; the
    /// table is unchanged.
    pub fn grow(&self, mut store: impl AsContextMut, delta: u64, init: Ref) -> Result<u64> {
        let store = store.as_context_mut();
        // SAFETY: the store is borrowed.
        unsafe { self.grow_on(store.record(), delta, init, ptr::null_mut()) }
    }

    /// Grows the table as [`Table::grow`] does, by code on this fiber, or on none.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// The store is live, and nothing else uses it. If there is a fiber, the current code is on it.
    pub(super) unsafe fn grow_on(&self, record: *mut StoreRecord, delta: u64, init: Ref, fiber: *mut Fiber) -> Result<u64> {
        // SAFETY: the caller's promise; `in_store` proves that the table exists.
        let grown = unsafe {
            (*record).engine.record().check_process()?;
            let table = &mut *self.in_store((*record).id);
            let init = init.to_slot(record, table.ty.element).context(OTHER_ELEMENT)?;
            table.grow(delta, init, StoreRecord::asked(record, fiber))?
        };
        grown.ok_or_else(|| Error::msg(format!("failed to grow table by `{delta}`")))
    }

    /// # Safety
    /// The table belongs to the store with identity `store`.
    pub(crate) unsafe fn from_raw(store: u64, record: *mut TableRecord) -> Table {
        Table { store, record: NonNull::new(record).expect("a record is not at address 0") }
    }

    /// Returns whether the table is one of the store with this identity.
    pub(crate) fn belongs_to(&self, id: u64) -> bool {
        self.store == id
    }

    /// Returns the record, which is valid because the store with this identity exists.
    pub(crate) fn in_store(&self, id: u64) -> *mut TableRecord {
        assert_eq!(self.store, id, "a table was used with a store that is not its own");
        self.record.as_ptr()
    }
}
