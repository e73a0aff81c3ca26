//! Limits on what the stores of an engine hold together. wasmtime's pooling allocator has them because its pools have a fixed size;
//! here they are limits only, since address space and stacks of dropped stores are reused anyway.

use crate::records::error::{Context, Error, Result};
use std::sync::atomic::{AtomicU32, Ordering};
use weir_bytecode::Module as Bytecode;

/// How instances are allocated: see [`Config::allocation_strategy`](crate::Config::allocation_strategy).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum InstanceAllocationStrategy {
    /// When they are made, without limits for the engine.
    #[default]
    OnDemand,
    /// Within these limits.
    Pooling(PoolingAllocationConfig),
}

impl InstanceAllocationStrategy {
    /// Returns the strategy with the default limits.
    pub fn pooling() -> InstanceAllocationStrategy {
        InstanceAllocationStrategy::Pooling(PoolingAllocationConfig::default())
    }
}

impl From<PoolingAllocationConfig> for InstanceAllocationStrategy {
    fn from(config: PoolingAllocationConfig) -> InstanceAllocationStrategy {
        InstanceAllocationStrategy::Pooling(config)
    }
}

/// The limits of [`InstanceAllocationStrategy::Pooling`]. Totals are those of all stores of an engine at a time; what exceeds one
/// fails with [`PoolConcurrencyLimitError`]. The limits of a module and of its instances are checked when it is loaded.
#[derive(Clone, Debug)]
pub struct PoolingAllocationConfig {
    total_core_instances: u32,
    total_memories: u32,
    total_tables: u32,
    total_stacks: u32,
    total_gc_heaps: u32,
    max_core_instance_size: usize,
    max_memories_per_module: u32,
    max_tables_per_module: u32,
    max_memory_size: usize,
    table_elements: usize,
}

impl Default for PoolingAllocationConfig {
    fn default() -> PoolingAllocationConfig {
        PoolingAllocationConfig {
            total_core_instances: 1000,
            total_memories: 1000,
            total_tables: 1000,
            total_stacks: 1000,
            total_gc_heaps: 1000,
            max_core_instance_size: 1 << 20,
            max_memories_per_module: 1,
            max_tables_per_module: 1,
            max_memory_size: 1 << 32,
            table_elements: 20_000,
        }
    }
}

/// Defines the method that sets each limit.
macro_rules! limits {
    ($($(#[doc = $doc:literal])* $name:ident: $ty:ty;)*) => {
        impl PoolingAllocationConfig {
            /// Creates the default limits.
            pub fn new() -> PoolingAllocationConfig {
                PoolingAllocationConfig::default()
            }

            $(
                $(#[doc = $doc])*
                pub fn $name(&mut self, limit: $ty) -> &mut PoolingAllocationConfig {
                    self.$name = limit;
                    self
                }
            )*
        }
    };
}

limits! {
    /// Sets the maximum number of instances. Default: 1000.
    total_core_instances: u32;
    /// Sets the maximum number of memories. Default: 1000.
    total_memories: u32;
    /// Sets the maximum number of tables. Default: 1000.
    total_tables: u32;
    /// Sets the maximum number of stacks for asynchronous and resumable calls, of guests that run or are suspended. Default: 1000.
    total_stacks: u32;
    /// Sets the maximum number of stores that have collected references: host values or exceptions. Default: 1000.
    total_gc_heaps: u32;
    /// Sets the maximum size in bytes of an instance's records, without memories and tables: the context, and a reference to each
    /// function. Default: 1 MiB.
    max_core_instance_size: usize;
    /// Sets the maximum number of memories that a module defines. Default: 1.
    max_memories_per_module: u32;
    /// Sets the maximum number of tables that a module defines. Default: 1.
    max_tables_per_module: u32;
    /// Sets the maximum size in bytes of each memory. Default: 4 GiB.
    max_memory_size: usize;
    /// Sets the maximum number of elements of each table. Default: 20,000.
    table_elements: usize;
}

/// Defines methods of wasmtime's type that change nothing.
macro_rules! without_function {
    ($($(#[doc = $doc:literal])* $name:ident: $ty:ty;)*) => {
        /// Settings of wasmtime's pools that change nothing: an engine keeps the address space of its last dropped memories, and
        /// gives back their pages.
        impl PoolingAllocationConfig {
            $(
                $(#[doc = $doc])*
                pub fn $name(&mut self, _: $ty) -> &mut PoolingAllocationConfig {
                    self
                }
            )*
        }
    };
}

without_function! {
    /// Has no effect.
    max_unused_warm_slots: u32;
    /// Has no effect.
    decommit_batch_size: usize;
    /// Has no effect.
    async_stack_keep_resident: usize;
    /// Has no effect.
    linear_memory_keep_resident: usize;
    /// Has no effect.
    table_keep_resident: usize;
}

/// An instance, a memory, a table, a stack or a heap of references could not be made because the engine's stores have as many as
/// [`PoolingAllocationConfig`] allows.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("maximum concurrent limit of {limit} for {kind} reached")]
pub struct PoolConcurrencyLimitError {
    limit: u32,
    kind: &'static str,
}

/// A part of what the stores of an engine hold.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Share {
    pub instances: u32,
    pub memories: u32,
    pub tables: u32,
    pub stacks: u32,
    pub heaps: u32,
}

impl Share {
    /// Nothing.
    pub const NONE: Share = Share { instances: 0, memories: 0, tables: 0, stacks: 0, heaps: 0 };
    /// The stack of a fiber.
    #[cfg(feature = "async")]
    pub const STACK: Share = Share { stacks: 1, ..Share::NONE };
    /// The heap of a store.
    pub const HEAP: Share = Share { heaps: 1, ..Share::NONE };

    /// Returns both together.
    pub fn plus(self, other: Share) -> Share {
        Share {
            instances: self.instances.saturating_add(other.instances),
            memories: self.memories.saturating_add(other.memories),
            tables: self.tables.saturating_add(other.tables),
            stacks: self.stacks.saturating_add(other.stacks),
            heaps: self.heaps.saturating_add(other.heaps),
        }
    }
}

/// What the stores of an engine hold together, if that is limited.
#[derive(Debug)]
pub(crate) struct Quota {
    limits: Option<PoolingAllocationConfig>,
    instances: AtomicU32,
    memories: AtomicU32,
    tables: AtomicU32,
    stacks: AtomicU32,
    heaps: AtomicU32,
}

impl Quota {
    /// Creates the count of nothing. Memories reserve `reservation` bytes at first.
    ///
    /// # Errors
    /// Memories may be larger than the reservation.
    pub fn new(strategy: &InstanceAllocationStrategy, reservation: u64) -> Result<Quota> {
        let limits = match strategy {
            InstanceAllocationStrategy::OnDemand => None,
            InstanceAllocationStrategy::Pooling(limits) => Some(limits.clone()),
        };
        if let Some(max) = limits.as_ref().map(|limits| limits.max_memory_size).filter(|&max| max as u64 > reservation) {
            return Err(Error::msg(format!(
                "maximum memory size of {max:#x} bytes exceeds the configured memory reservation of {reservation:#x} bytes"
            )));
        }
        let [instances, memories, tables, stacks, heaps] = [const { AtomicU32::new(0) }; 5];
        Ok(Quota { limits, instances, memories, tables, stacks, heaps })
    }

    /// Returns the maximum size in bytes of a memory.
    pub fn memory_size(&self) -> usize {
        self.limits.as_ref().map_or(usize::MAX, |limits| limits.max_memory_size)
    }

    /// Returns the maximum number of elements of a table.
    pub fn table_elements(&self) -> u64 {
        self.limits.as_ref().map_or(u64::MAX, |limits| limits.table_elements as u64)
    }

    /// Adds what a store is to hold, all or nothing.
    ///
    /// # Errors
    /// [`PoolConcurrencyLimitError`]
    pub fn add(&self, share: Share) -> Result<()> {
        let Some(limits) = &self.limits else { return Ok(()) };
        let kinds = [
            (&self.instances, share.instances, limits.total_core_instances, "core instances"),
            (&self.memories, share.memories, limits.total_memories, "memory stripe 0"),
            (&self.tables, share.tables, limits.total_tables, "tables"),
            (&self.stacks, share.stacks, limits.total_stacks, "fibers"),
            (&self.heaps, share.heaps, limits.total_gc_heaps, "GC heaps"),
        ];
        for (i, &(count, number, limit, kind)) in kinds.iter().enumerate() {
            let more = |count: u32| count.checked_add(number).filter(|&sum| sum <= limit);
            if count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
                kinds[..i].iter().for_each(|(count, number, ..)| _ = count.fetch_sub(*number, Ordering::Relaxed));
                return Err(Error::new(PoolConcurrencyLimitError { limit, kind }));
            }
        }
        Ok(())
    }

    /// Subtracts what has been added and is gone.
    pub fn subtract(&self, share: Share) {
        if self.limits.is_some() {
            self.instances.fetch_sub(share.instances, Ordering::Relaxed);
            self.memories.fetch_sub(share.memories, Ordering::Relaxed);
            self.tables.fetch_sub(share.tables, Ordering::Relaxed);
            self.stacks.fetch_sub(share.stacks, Ordering::Relaxed);
            self.heaps.fetch_sub(share.heaps, Ordering::Relaxed);
        }
    }

    /// Checks the limits of a module and its instances, whose records have `size` bytes.
    ///
    /// # Errors
    /// The module exceeds one of them.
    pub fn check(&self, module: &Bytecode, size: usize) -> Result<()> {
        let Some(limits) = &self.limits else { return Ok(()) };
        let memories = &module.memories[module.imported_memories as usize..];
        let tables = &module.tables[module.imported_tables as usize..];
        let refuse = |message: String| Err(Error::msg(message));
        let check = |what: &str, count: usize, limit: u32, total: u32| {
            if count > limit as usize {
                return refuse(format!("defined {what} count of {count} exceeds the per-instance limit of {limit}"));
            }
            if count > total as usize {
                return refuse(format!("defined {what} count of {count} exceeds the total {what} limit of {total}"));
            }
            Ok(())
        };
        let memory_does_not_fit = "module memory does not fit in pooling allocator requirements";
        check("memories", memories.len(), limits.max_memories_per_module, limits.total_memories).context(memory_does_not_fit)?;
        for (i, memory) in memories.iter().enumerate() {
            let min = u128::from(memory.limits.min) << memory.page_size_log2;
            if min > limits.max_memory_size as u128 {
                let (index, limit) = (i + module.imported_memories as usize, limits.max_memory_size);
                return refuse(format!("memory has a minimum byte size of {min} which exceeds the limit of {limit:#x} bytes"))
                    .with_context(|| format!("memory index {index} is unsupported in this pooling allocator configuration"))
                    .context(memory_does_not_fit);
            }
        }
        let table_does_not_fit = "module table does not fit in pooling allocator requirements";
        check("tables", tables.len(), limits.max_tables_per_module, limits.total_tables).context(table_does_not_fit)?;
        for (i, table) in tables.iter().enumerate() {
            if table.ty.limits.min > limits.table_elements as u64 {
                let (index, limit, min) = (i + module.imported_tables as usize, limits.table_elements, table.ty.limits.min);
                return refuse(format!(
                    "table index {index} has a minimum element size of {min} which exceeds the limit of {limit}"
                ))
                .context(table_does_not_fit);
            }
        }
        if size > limits.max_core_instance_size {
            let limit = limits.max_core_instance_size;
            return refuse(format!(
                "instance allocation for this module requires {size} bytes which exceeds the configured maximum of {limit} bytes"
            ))
            .context("module instance size does not fit in pooling allocator requirements");
        }
        Ok(())
    }
}
