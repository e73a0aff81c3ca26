//! Who decides what a store may use.

use crate::records::error::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Decides what a store may use; see [`Store::limiter`](crate::Store::limiter). [`StoreLimits`](crate::StoreLimits) serves most needs.
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
    /// Asked when a memory is made (`current` is then 0) or is to grow, in bytes. On `Ok(false)`, `memory.grow`
    /// returns -1.
    ///
    /// # Errors
    /// Making the memory fails with the error; at `memory.grow` it ends the guest's execution. A panic is such an error.
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool>;

    /// The same for a table, in elements.
    ///
    /// # Errors
    /// As for memories.
    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool>;

    /// Told that a memory cannot grow for another reason: its maximum, or what the host has.
    ///
    /// # Errors
    /// To end the guest's execution. By default `memory.grow` returns -1.
    fn memory_grow_failed(&mut self, _error: Error) -> Result<()> {
        Ok(())
    }

    /// The same for a table.
    ///
    /// # Errors
    /// As for memories.
    fn table_grow_failed(&mut self, _error: Error) -> Result<()> {
        Ok(())
    }

    /// How many instances the store may have.
    fn instances(&self) -> usize {
        10_000
    }

    /// How many tables the store may have.
    fn tables(&self) -> usize {
        10_000
    }

    /// How many memories the store may have.
    fn memories(&self) -> usize {
        10_000
    }
}

/// A [`ResourceLimiter`] somewhere in the embedder's data, found anew at each question.
pub(crate) struct Limiter(Box<Find>);

/// Given the embedder's data, calls back with the limiter in it.
type Find = dyn FnMut(*mut (), &mut dyn FnMut(&mut dyn ResourceLimiter)) + Send + Sync;

impl Limiter {
    /// Finds the limiter by `find`.
    ///
    /// # Safety
    /// The pointers given to the methods point to a live `T` to which nobody holds a reference.
    pub unsafe fn new<T>(mut find: impl (FnMut(&mut T) -> &mut dyn ResourceLimiter) + Send + Sync + 'static) -> Limiter {
        Limiter(Box::new(move |data, ask| {
            // SAFETY: the promise to this function.
            ask(find(unsafe { &mut *data.cast::<T>() }));
        }))
    }

    /// [`ResourceLimiter::memory_growing`]
    pub fn memory_growing(&mut self, data: *mut (), current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        self.ask(data, |limiter| limiter.memory_growing(current, desired, maximum))
    }

    /// [`ResourceLimiter::table_growing`]
    pub fn table_growing(&mut self, data: *mut (), current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        self.ask(data, |limiter| limiter.table_growing(current, desired, maximum))
    }

    /// [`ResourceLimiter::memory_grow_failed`]
    pub fn memory_grow_failed(&mut self, data: *mut (), error: Error) -> Result<()> {
        let mut error = Some(error);
        self.ask(data, |limiter| error.take().map_or(Ok(()), |error| limiter.memory_grow_failed(error)))
    }

    /// [`ResourceLimiter::table_grow_failed`]
    pub fn table_grow_failed(&mut self, data: *mut (), error: Error) -> Result<()> {
        let mut error = Some(error);
        self.ask(data, |limiter| error.take().map_or(Ok(()), |error| limiter.table_grow_failed(error)))
    }

    /// The most instances, memories and tables.
    pub fn counts(&mut self, data: *mut ()) -> Result<(usize, usize, usize)> {
        self.ask(data, |limiter| Ok((limiter.instances(), limiter.memories(), limiter.tables())))
    }

    /// Asks, with compiled code possibly below on the stack, through which no panic may pass.
    fn ask<R>(&mut self, data: *mut (), mut question: impl FnMut(&mut dyn ResourceLimiter) -> Result<R>) -> Result<R> {
        let mut answer = None;
        let asked = catch_unwind(AssertUnwindSafe(|| (self.0)(data, &mut |limiter| answer = Some(question(limiter)))));
        match (asked, answer) {
            (Ok(()), Some(answer)) => answer,
            _ => Err(Error::msg("the resource limiter panicked")),
        }
    }
}
