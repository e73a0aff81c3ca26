//! Fixed limits on the resources of a store.

use crate::records::error::{Error, Result};
use crate::records::limiter::{DEFAULT_INSTANCE_LIMIT, DEFAULT_MEMORY_LIMIT, DEFAULT_TABLE_LIMIT, ResourceLimiter};

/// Fixed limits of a store.
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
    trap_on_grow_failure: bool,
}

impl Default for StoreLimits {
    fn default() -> StoreLimits {
        let (instances, tables, memories) = (DEFAULT_INSTANCE_LIMIT, DEFAULT_TABLE_LIMIT, DEFAULT_MEMORY_LIMIT);
        StoreLimits { memory_size: None, table_elements: None, instances, tables, memories, trap_on_grow_failure: false }
    }
}

impl StoreLimits {
    fn allow(&self, limit: Option<usize>, desired: usize, what: [&str; 2]) -> Result<bool> {
        let [what, unit] = what;
        match limit {
            Some(limit) if desired > limit && self.trap_on_grow_failure => {
                Err(Error::msg(format!("forcing trap when growing {what} to {desired} {unit}")))
            }
            Some(limit) => Ok(desired <= limit),
            None => Ok(true),
        }
    }
}

impl ResourceLimiter for StoreLimits {
    fn memory_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> Result<bool> {
        self.allow(self.memory_size, desired, ["memory", "bytes"])
    }

    fn table_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> Result<bool> {
        self.allow(self.table_elements, desired, ["table", "elements"])
    }

    fn memory_grow_failed(&mut self, error: Error) -> Result<()> {
        if self.trap_on_grow_failure { Err(error.context("forcing a memory growth failure to be a trap")) } else { Ok(()) }
    }

    fn table_grow_failed(&mut self, error: Error) -> Result<()> {
        if self.trap_on_grow_failure { Err(error.context("forcing a table growth failure to be a trap")) } else { Ok(()) }
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
    /// Creates a builder without limits beyond the default numbers of items.
    pub fn new() -> StoreLimitsBuilder {
        StoreLimitsBuilder::default()
    }

    /// Sets the maximum size of each memory in bytes.
    #[must_use]
    pub fn memory_size(mut self, bytes: usize) -> StoreLimitsBuilder {
        self.0.memory_size = Some(bytes);
        self
    }

    /// Sets the maximum number of elements of each table.
    #[must_use]
    pub fn table_elements(mut self, elements: usize) -> StoreLimitsBuilder {
        self.0.table_elements = Some(elements);
        self
    }

    /// Sets the maximum number of instances.
    #[must_use]
    pub fn instances(mut self, count: usize) -> StoreLimitsBuilder {
        self.0.instances = count;
        self
    }

    /// Sets the maximum number of tables.
    #[must_use]
    pub fn tables(mut self, count: usize) -> StoreLimitsBuilder {
        self.0.tables = count;
        self
    }

    /// Sets the maximum number of memories.
    #[must_use]
    pub fn memories(mut self, count: usize) -> StoreLimitsBuilder {
        self.0.memories = count;
        self
    }

    /// Sets whether `memory.grow` and `table.grow` end the guest's execution with an error instead of returning -1.
    #[must_use]
    pub fn trap_on_grow_failure(mut self, trap: bool) -> StoreLimitsBuilder {
        self.0.trap_on_grow_failure = trap;
        self
    }

    /// Returns the limits.
    pub fn build(self) -> StoreLimits {
        self.0
    }
}
