//! Tables: growable arrays of references. Each element also holds the fields that `call_indirect` reads.

use crate::records::limiter::Asked;
use crate::records::masks::unless_above;
use crate::{Error, Result};
use std::ptr;
use weir_bytecode::Trap;
use weir_bytecode::types::{HeapType, Limits, TableType};
use weir_contract::{FuncRef, NULL_SIG, TableCtx, TableEntry};

/// Maximum number of elements of a table (320 MB of entries), the same as in other engines.
pub(crate) const MAX_TABLE_ELEMENTS: u64 = 10_000_000;

/// A table.
#[repr(C)]
pub(crate) struct TableRecord {
    /// Points into `entries`.
    pub ctx: TableCtx,
    pub ty: TableType,
    /// Used to grow only; all other accesses go through `ctx`.
    entries: Vec<TableEntry>,
    /// The maximum number of elements that the engine allows, whatever the type says.
    max: u64,
}

impl TableRecord {
    /// Creates a table of the type's minimum size, filled with a reference, that never has more than `max` elements.
    ///
    /// # Errors
    /// The size exceeds `max`, [`MAX_TABLE_ELEMENTS`] or the store's limits.
    pub fn new(ty: TableType, reference: u64, max: u64, limiter: Option<Asked<'_>>) -> Result<TableRecord> {
        let ctx = TableCtx { entries: ptr::dangling_mut(), len: 0 };
        let mut table = TableRecord { ctx, ty, entries: Vec::new(), max: max.min(MAX_TABLE_ELEMENTS) };
        let min = ty.limits.min;
        if let Some(mut limiter) = limiter
            && !limiter.table_growing(0, min as usize, Some(maximum(&ty)))?
        {
            return Err(too_large(min));
        }
        match table.resize(min, reference) {
            Some(()) => Ok(table),
            None => Err(too_large(min)),
        }
    }

    /// Returns the type, with the current size as the minimum.
    pub fn current_type(&self) -> TableType {
        TableType { limits: Limits { min: self.ctx.len, ..self.ty.limits }, ..self.ty }
    }

    /// Returns the element at `index`.
    ///
    /// # Errors
    /// The index is out of bounds.
    pub fn get(&self, index: u64) -> Result<u64, Trap> {
        let entry = self.range(index, 1)?;
        // SAFETY: `range` has checked that the element exists.
        Ok(unsafe { (*entry).reference })
    }

    /// Writes one element.
    ///
    /// # Errors
    /// The index is out of bounds.
    pub fn set(&mut self, index: u64, reference: u64) -> Result<(), Trap> {
        self.fill(index, reference, 1)
    }

    /// Writes `len` elements.
    ///
    /// # Errors
    /// The range is out of bounds; nothing is written.
    pub fn fill(&mut self, index: u64, reference: u64, len: u64) -> Result<(), Trap> {
        self.put(index, std::iter::repeat_n(self.entry(reference), len as usize))
    }

    /// Writes these elements.
    ///
    /// # Errors
    /// The range is out of bounds; nothing is written.
    pub fn write(&mut self, index: u64, references: impl ExactSizeIterator<Item = u64>) -> Result<(), Trap> {
        self.put(index, references.map(|reference| self.entry(reference)))
    }

    /// Writes references to these functions, which belong to the table's store. The table's elements are functions.
    ///
    /// # Errors
    /// The range is out of bounds; nothing is written.
    pub fn write_funcs(&mut self, index: u64, funcs: impl ExactSizeIterator<Item = *const FuncRef>) -> Result<(), Trap> {
        // SAFETY: they exist.
        self.put(index, funcs.map(|func| unsafe { func_entry(func) }))
    }

    /// Writes these entries. Inlined into each caller, so that the loop is specialised for its iterator.
    #[inline]
    fn put(&self, index: u64, entries: impl ExactSizeIterator<Item = TableEntry>) -> Result<(), Trap> {
        let first = self.range(index, entries.len() as u64)?;
        for (i, entry) in entries.enumerate() {
            // SAFETY: `range` has checked that the elements exist.
            unsafe { first.add(i).write(entry) };
        }
        Ok(())
    }

    /// Calls `visit` with the references of all elements.
    pub fn references(&mut self, mut visit: impl FnMut(*mut u64)) {
        self.entries.iter_mut().for_each(|entry| visit(&raw mut entry.reference));
    }

    /// Adds `delta` elements and returns the previous number; `None` without any change if that exceeds a limit.
    ///
    /// # Errors
    /// The error of the limiter.
    pub fn grow(&mut self, delta: u64, reference: u64, limiter: Option<Asked<'_>>) -> Result<Option<u64>> {
        let old = self.ctx.len;
        let max = self.ty.limits.max.unwrap_or(u64::MAX).min(self.max);
        let len = old.checked_add(delta);
        let fits = len.filter(|&len| len <= max);
        if delta == 0 && !limiter.as_ref().is_some_and(Asked::must_wait) {
            return Ok(Some(old));
        }
        let Some(mut limiter) = limiter else { return Ok(fits.and_then(|len| self.resize(len, reference)).map(|()| old)) };
        // The limiter hears of every size that the guest wants.
        let Some(len) = len else {
            let error = Error::msg("overflow calculating new table size");
            return limiter.table_grow_failed(error).map(|()| None);
        };
        if !limiter.table_growing(old as usize, len as usize, Some(maximum(&self.ty)))? {
            return Ok(None);
        }
        match fits.and_then(|len| self.resize(len, reference)) {
            Some(()) => Ok(Some(old)),
            None => limiter.table_grow_failed(Error::msg("Table maximum size exceeded")).map(|()| None),
        }
    }

    fn resize(&mut self, len: u64, reference: u64) -> Option<()> {
        if len > self.max {
            return None;
        }
        let entry = self.entry(reference);
        self.entries.try_reserve(len as usize - self.entries.len()).ok()?;
        self.entries.resize(len as usize, entry);
        self.ctx = TableCtx { entries: self.entries.as_mut_ptr(), len };
        Some(())
    }

    /// Returns the address of the first of `len` elements from `index`, all of which exist.
    ///
    /// # Errors
    /// The range is out of bounds.
    pub fn range(&self, index: u64, len: u64) -> Result<*mut TableEntry, Trap> {
        match index.checked_add(len) {
            Some(end) if end <= self.ctx.len => {
                let index = unless_above(end, self.ctx.len, index, 0);
                Ok(self.ctx.entries.wrapping_add(index as usize))
            }
            _ => Err(Trap::TableOutOfBounds),
        }
    }

    /// Creates the entry for a reference of the table's element type.
    fn entry(&self, reference: u64) -> TableEntry {
        let is_func = matches!(self.ty.element.heap, HeapType::Func | HeapType::Concrete(_));
        if reference == 0 || !is_func {
            return TableEntry { cell: ptr::null(), sig: NULL_SIG, padding: 0, instance: ptr::null_mut(), reference };
        }
        // SAFETY: a reference to a function that is not null points to a `FuncRef` of this store.
        unsafe { func_entry(reference as *const FuncRef) }
    }
}

/// Creates the entry for a function.
///
/// # Safety
/// The function exists.
#[inline]
unsafe fn func_entry(func: *const FuncRef) -> TableEntry {
    // SAFETY: the caller's promise.
    let &FuncRef { cell, sig, instance, .. } = unsafe { &*func };
    TableEntry { cell, sig, padding: 0, instance, reference: func as u64 }
}

/// The error for a table of too many elements.
fn too_large(elements: u64) -> Error {
    Error::msg(format!("table minimum size of {elements} elements exceeds table limits"))
}

/// Returns the maximum number of elements of which a limiter is told: that of the type, or that of its indices.
fn maximum(ty: &TableType) -> usize {
    ty.limits.max.unwrap_or(if ty.table64 { u64::MAX } else { u32::MAX.into() }) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_bytecode::types::RefType;

    fn externs(min: u64, max: Option<u64>) -> TableType {
        TableType { limits: Limits { min, max }, table64: false, element: RefType::EXTERNREF }
    }

    #[test]
    fn bounds_are_checked_before_anything_is_written() {
        let mut table = TableRecord::new(externs(3, None), 0, u64::MAX, None).unwrap();
        assert_eq!(table.fill(1, 9, 3), Err(Trap::TableOutOfBounds));
        assert_eq!(table.write(2, [9, 9].into_iter()), Err(Trap::TableOutOfBounds));
        assert_eq!(table.fill(u64::MAX, 9, 2), Err(Trap::TableOutOfBounds));
        assert_eq!((table.get(1), table.get(2)), (Ok(0), Ok(0)));
        assert_eq!(table.get(3), Err(Trap::TableOutOfBounds));
        assert_eq!(table.fill(3, 9, 0), Ok(()));
    }

    #[test]
    fn grows_up_to_its_maximum() {
        let mut table = TableRecord::new(externs(1, Some(4)), 5, u64::MAX, None).unwrap();
        assert_eq!(table.grow(4, 6, None).unwrap(), None);
        assert_eq!(table.grow(3, 6, None).unwrap(), Some(1));
        assert_eq!((table.get(0), table.get(3), table.ctx.len), (Ok(5), Ok(6), 4));
        let mut open = TableRecord::new(externs(0, None), 0, u64::MAX, None).unwrap();
        assert_eq!(open.grow(0xFFFF_FFF0, 0, None).unwrap(), None);
        assert_eq!(open.grow(u64::MAX, 0, None).unwrap(), None);
        assert!(TableRecord::new(externs(u64::from(u32::MAX), None), 0, u64::MAX, None).is_err());
    }

    #[test]
    fn functions_are_copied_beside_their_references() {
        let func = FuncRef { cell: ptr::null(), sig: 7, index: 1, instance: ptr::dangling_mut() };
        let ty = TableType { element: RefType::FUNCREF, ..externs(2, None) };
        let mut table = TableRecord::new(ty, 0, u64::MAX, None).unwrap();
        table.set(1, &raw const func as u64).unwrap();
        let entries = table.range(0, 2).unwrap();
        // SAFETY: the table has two elements.
        let (null, set) = unsafe { (*entries, *entries.add(1)) };
        assert_eq!((null.sig, null.instance.is_null()), (NULL_SIG, true));
        assert_eq!((set.sig, set.instance, set.reference), (7, func.instance, &raw const func as u64));
    }
}
