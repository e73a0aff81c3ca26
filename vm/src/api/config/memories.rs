//! The settings of memories and of the limits on instances.

use crate::records::config::Config;
use crate::records::host_memory::MemoryCreator;
use crate::records::pooling::InstanceAllocationStrategy;
use std::sync::Arc;

/// Settings of memories, and limits on what an engine's stores hold together.
impl Config {
    /// Surrounds 32-bit memories with inaccessible address space (6 GiB each), so that compiled code needs no bounds
    /// checks. If off, every access is checked. Default: on.
    pub fn guard_regions(&mut self, enable: bool) -> &mut Config {
        self.guard_regions = enable;
        self
    }

    /// Sets the number of bytes of address space that a memory reserves. Less than 4 GiB turns
    /// [`guard_regions`](Config::guard_regions) off. A memory then reserves its maximum, but no more than this,
    /// [`memory_reservation_for_growth`](Config::memory_reservation_for_growth) and its minimum. It cannot grow beyond its
    /// reservation, because memories do not move; wasmtime moves them, unless that is turned off. Default: 4 GiB.
    pub fn memory_reservation(&mut self, bytes: u64) -> &mut Config {
        self.memory_reservation = Some(bytes);
        self
    }

    /// Sets the number of bytes that a memory without guard regions reserves beyond
    /// [`memory_reservation`](Config::memory_reservation). Default: 2 GiB.
    pub fn memory_reservation_for_growth(&mut self, bytes: u64) -> &mut Config {
        self.memory_reservation_for_growth = Some(bytes);
        self
    }

    /// Sets the size in bytes of the inaccessible address space after a memory. 0 turns [`guard_regions`](Config::guard_regions)
    /// off; any other size is the same as the default.
    pub fn memory_guard_size(&mut self, bytes: u64) -> &mut Config {
        self.has_guards = bytes > 0;
        self
    }

    /// Has memories made by the host. An error of [`Engine::new`](crate::Engine::new): Weir maps, reuses and takes images of memories itself.
    pub fn with_host_memory(&mut self, _creator: Arc<dyn MemoryCreator>) -> &mut Config {
        self.demand("Weir makes memories itself, and none of the host's (`Config::with_host_memory`)", true)
    }

    /// Limits what the stores of an engine hold together, and the size of instances. Default:
    /// [`InstanceAllocationStrategy::OnDemand`], no limits.
    ///
    /// ```
    /// use weir::{Config, Engine, Memory, MemoryType, PoolConcurrencyLimitError, PoolingAllocationConfig, Store};
    ///
    /// let mut limits = PoolingAllocationConfig::new();
    /// limits.total_memories(1).max_memory_size(1 << 20);
    /// let engine = Engine::new(Config::new().allocation_strategy(limits))?;
    /// let mut store = Store::new(&engine, ());
    /// let memory = Memory::new(&mut store, MemoryType::new(1, None))?;
    /// assert!(memory.grow(&mut store, 16).is_err());
    /// let error = Memory::new(&mut store, MemoryType::new(1, None)).unwrap_err();
    /// assert!(error.is::<PoolConcurrencyLimitError>());
    /// # Ok::<(), weir::Error>(())
    /// ```
    pub fn allocation_strategy(&mut self, strategy: impl Into<InstanceAllocationStrategy>) -> &mut Config {
        self.allocation_strategy = strategy.into();
        self
    }
}
