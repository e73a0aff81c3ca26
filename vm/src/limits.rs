//! What a store may use.

use crate::Result;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Default of [`Config::max_wasm_stack`](crate::Config::max_wasm_stack).
pub(crate) const DEFAULT_MAX_WASM_STACK: usize = 512 << 10;
/// Default of [`Config::value_stack_size`](crate::Config::value_stack_size): room for the depth of recursion that the
/// default native stack gives compiled code.
pub(crate) const DEFAULT_VALUE_STACK: usize = 4 << 20;

/// Decides what a store may use; see [`Store::limiter`](crate::Store::limiter). [`StoreLimits`] serves most needs.
pub trait ResourceLimiter {
    /// Asked when a memory is made (`current` is then 0) or is to grow, in bytes. On `Ok(false)`, `memory.grow`
    /// returns -1.
    ///
    /// # Errors
    /// Making the memory fails with the error. `memory.grow` treats it, and a panic, like `Ok(false)`.
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool>;

    /// The same for a table, in elements.
    ///
    /// # Errors
    /// As for memories.
    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool>;

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

/// Fixed limits.
///
/// ```
/// use weir::{Engine, Store, StoreLimits, StoreLimitsBuilder};
///
/// let limits = StoreLimitsBuilder::new().memory_size(1 << 20).instances(2).build();
/// let mut store = Store::new(&Engine::default(), limits);
/// store.limiter(|limits: &mut StoreLimits| limits);
/// ```
#[derive(Clone, Debug)]
pub struct StoreLimits {
    memory_size: Option<usize>,
    table_elements: Option<usize>,
    instances: usize,
    tables: usize,
    memories: usize,
}

impl Default for StoreLimits {
    fn default() -> StoreLimits {
        StoreLimits { memory_size: None, table_elements: None, instances: 10_000, tables: 10_000, memories: 10_000 }
    }
}

impl ResourceLimiter for StoreLimits {
    fn memory_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> Result<bool> {
        Ok(self.memory_size.is_none_or(|limit| desired <= limit))
    }

    fn table_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> Result<bool> {
        Ok(self.table_elements.is_none_or(|limit| desired <= limit))
    }

    fn instances(&self) -> usize {
        self.instances
    }

    fn tables(&self) -> usize {
        self.tables
    }

    fn memories(&self) -> usize {
        self.memories
    }
}

/// Makes [`StoreLimits`].
#[derive(Clone, Debug, Default)]
pub struct StoreLimitsBuilder(StoreLimits);

impl StoreLimitsBuilder {
    /// No limits beyond the default numbers of items.
    pub fn new() -> StoreLimitsBuilder {
        StoreLimitsBuilder::default()
    }

    /// The most bytes that each memory may have.
    #[must_use]
    pub fn memory_size(mut self, bytes: usize) -> StoreLimitsBuilder {
        self.0.memory_size = Some(bytes);
        self
    }

    /// The most elements that each table may have.
    #[must_use]
    pub fn table_elements(mut self, elements: usize) -> StoreLimitsBuilder {
        self.0.table_elements = Some(elements);
        self
    }

    /// The most instances.
    #[must_use]
    pub fn instances(mut self, count: usize) -> StoreLimitsBuilder {
        self.0.instances = count;
        self
    }

    /// The most tables.
    #[must_use]
    pub fn tables(mut self, count: usize) -> StoreLimitsBuilder {
        self.0.tables = count;
        self
    }

    /// The most memories.
    #[must_use]
    pub fn memories(mut self, count: usize) -> StoreLimitsBuilder {
        self.0.memories = count;
        self
    }

    /// The limits.
    pub fn build(self) -> StoreLimits {
        self.0
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

    /// The most instances, memories and tables.
    pub fn counts(&mut self, data: *mut ()) -> Result<(usize, usize, usize)> {
        self.ask(data, |limiter| Ok((limiter.instances(), limiter.memories(), limiter.tables())))
    }

    /// Asks, with compiled code possibly below on the stack, through which no panic may pass.
    fn ask<R>(&mut self, data: *mut (), question: impl Fn(&mut dyn ResourceLimiter) -> Result<R>) -> Result<R> {
        let mut answer = None;
        let asked = catch_unwind(AssertUnwindSafe(|| (self.0)(data, &mut |limiter| answer = Some(question(limiter)))));
        match (asked, answer) {
            (Ok(()), Some(answer)) => answer,
            _ => Err(crate::Error::msg("the resource limiter panicked")),
        }
    }
}
