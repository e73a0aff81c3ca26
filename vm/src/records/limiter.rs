//! Limits on the resources of a store.

use crate::records::error::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Limits the memories, tables and instances of a store; see [`Store::limiter`](crate::Store::limiter).
/// [`StoreLimits`](crate::StoreLimits) serves most needs.
///
/// ```
/// use weir::{Engine, Memory, MemoryType, ResourceLimiter, Result, Store};
///
/// /// All memories together.
/// struct Budget(usize);
///
/// impl ResourceLimiter for Budget {
///     fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> Result<bool> {
///         let Some(left) = self.0.checked_sub(desired - current) else { return Ok(false) };
///         self.0 = left;
///         Ok(true)
///     }
///
///     fn table_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> Result<bool> {
///         Ok(desired <= 1000)
///     }
/// }
///
/// let mut store = Store::new(&Engine::default(), Budget(3 << 16));
/// store.limiter(|budget| budget);
/// let first = Memory::new(&mut store, MemoryType::new(1, None))?;
/// let second = Memory::new(&mut store, MemoryType::new(1, None))?;
/// assert!(first.grow(&mut store, 2).is_err());
/// assert_eq!(second.grow(&mut store, 1)?, 1);
/// # Ok::<(), weir::Error>(())
/// ```
pub trait ResourceLimiter {
    /// Called before a memory is made (`current` is then 0) or grows. Sizes are in bytes. On `Ok(false)`, `memory.grow`
    /// returns -1.
    ///
    /// # Errors
    /// The error of making the memory; at `memory.grow` it ends the guest's execution. A panic is treated as an error.
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool>;

    /// Called before a table is made (`current` is then 0) or grows. Sizes are in elements. On `Ok(false)`,
    /// `table.grow` returns -1.
    ///
    /// # Errors
    /// As for memories.
    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool>;

    /// Called when a memory cannot grow for another reason: its maximum, or a lack of memory.
    ///
    /// # Errors
    /// Ends the guest's execution. By default `memory.grow` returns -1.
    fn memory_grow_failed(&mut self, _error: Error) -> Result<()> {
        Ok(())
    }

    /// Called when a table cannot grow for another reason: its maximum, or a lack of memory.
    ///
    /// # Errors
    /// As for memories.
    fn table_grow_failed(&mut self, _error: Error) -> Result<()> {
        Ok(())
    }

    /// Returns the maximum number of instances of the store.
    fn instances(&self) -> usize {
        10_000
    }

    /// Returns the maximum number of tables of the store.
    fn tables(&self) -> usize {
        10_000
    }

    /// Returns the maximum number of memories of the store.
    fn memories(&self) -> usize {
        10_000
    }
}

/// A [`ResourceLimiter`] in the embedder's data. It is found anew for each call.
pub(crate) struct Limiter(Box<Find>);

/// Calls a closure with the limiter in the embedder's data.
type Find = dyn FnMut(*mut (), &mut dyn FnMut(&mut dyn ResourceLimiter)) + Send + Sync;

impl Limiter {
    /// Creates a limiter that `find` finds.
    ///
    /// # Safety
    /// The pointers passed to the methods point to a live `T` to which no reference is held.
    pub unsafe fn new<T>(mut find: impl (FnMut(&mut T) -> &mut dyn ResourceLimiter) + Send + Sync + 'static) -> Limiter {
        Limiter(Box::new(move |data, call| {
            // SAFETY: the promise to this function.
            call(find(unsafe { &mut *data.cast::<T>() }));
        }))
    }

    /// [`ResourceLimiter::memory_growing`]
    pub fn memory_growing(&mut self, data: *mut (), current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        self.query(data, |limiter| limiter.memory_growing(current, desired, maximum))
    }

    /// [`ResourceLimiter::table_growing`]
    pub fn table_growing(&mut self, data: *mut (), current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        self.query(data, |limiter| limiter.table_growing(current, desired, maximum))
    }

    /// [`ResourceLimiter::memory_grow_failed`]
    pub fn memory_grow_failed(&mut self, data: *mut (), error: Error) -> Result<()> {
        let mut error = Some(error);
        self.query(data, |limiter| error.take().map_or(Ok(()), |error| limiter.memory_grow_failed(error)))
    }

    /// [`ResourceLimiter::table_grow_failed`]
    pub fn table_grow_failed(&mut self, data: *mut (), error: Error) -> Result<()> {
        let mut error = Some(error);
        self.query(data, |limiter| error.take().map_or(Ok(()), |error| limiter.table_grow_failed(error)))
    }

    /// Returns the maximum numbers of instances, memories and tables.
    pub fn counts(&mut self, data: *mut ()) -> Result<(usize, usize, usize)> {
        self.query(data, |limiter| Ok((limiter.instances(), limiter.memories(), limiter.tables())))
    }

    /// Calls `query` with the limiter. A panic is caught, because compiled code may be below on the stack.
    fn query<R>(&mut self, data: *mut (), mut query: impl FnMut(&mut dyn ResourceLimiter) -> Result<R>) -> Result<R> {
        let mut result = None;
        let called = catch_unwind(AssertUnwindSafe(|| (self.0)(data, &mut |limiter| result = Some(query(limiter)))));
        match (called, result) {
            (Ok(()), Some(result)) => result,
            _ => Err(Error::msg("the resource limiter panicked")),
        }
    }
}
