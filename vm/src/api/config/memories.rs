//! The settings of memories and of the limits on instances.

use crate::records::config::Config;
use crate::records::host_memory::{Creator, MemoryCreator};
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

    /// Sets whether compiled code withstands Spectre's variant 1: after an explicit check of a memory's bounds, of an index of a table, or of
    /// the operand of a `br_table`, the address or index is forced to a harmless value if the check has failed, without a branch. So what the
    /// processor executes before it knows that the check has failed reads nothing that the guest may not read. On by default; the
    /// interpreters always do this. Accesses that [`guard_regions`](Config::guard_regions) protect have no check, and need nothing. What is
    /// not covered is in SECURITY.md.
    pub fn spectre_mitigation(&mut self, enable: bool) -> &mut Config {
        self.spectre_mitigation = enable;
        self
    }

    /// Sets whether native code accesses the first memory of an instance relative to the segment register `gs`, if the memory has
    /// [`guard_regions`](Config::guard_regions), and if the processor and the system let programs set the register's base. Such
    /// code has fewer instructions. Where it does not find the base of its memory it writes the base twice, for some 30 cycles each: in calls
    /// between instances, and in calls from the host on a thread that ran another instance first. The base stays set after the guest has returned,
    /// so host code that uses `gs` itself needs this off. Default: on.
    pub fn memory_segment(&mut self, enable: bool) -> &mut Config {
        self.segment = enable;
        self
    }

    /// Sets the number of bytes of address space that a memory reserves. Less than 4 GiB turns
    /// [`guard_regions`](Config::guard_regions) off. A memory without them reserves no more than its maximum, and at least its
    /// minimum. If it [may move](Config::memory_may_move), it reserves 8 GiB or its maximum even if this is less, as far as there is
    /// address space. Default: 4 GiB.
    pub fn memory_reservation(&mut self, bytes: u64) -> &mut Config {
        self.memory_reservation = Some(bytes);
        self
    }

    /// Sets the number of bytes that a memory without guard regions reserves beyond its minimum, if that is more than
    /// [`memory_reservation`](Config::memory_reservation). Default: 2 GiB.
    pub fn memory_reservation_for_growth(&mut self, bytes: u64) -> &mut Config {
        self.memory_reservation_for_growth = Some(bytes);
        self
    }

    /// Lets memories without guard regions grow beyond [`memory_reservation`](Config::memory_reservation). wasmtime moves them to a
    /// larger reservation. Weir's never move: their first reservation is larger. If off, growth beyond the reservation fails.
    /// Default: on.
    pub fn memory_may_move(&mut self, enable: bool) -> &mut Config {
        self.memory_may_move = enable;
        self
    }

    /// Sets the size in bytes of the inaccessible address space after a memory. 0 turns [`guard_regions`](Config::guard_regions)
    /// off; any other size decides only which errors have a [`MemoryFault`](crate::MemoryFault). Default: 32 MiB.
    pub fn memory_guard_size(&mut self, bytes: u64) -> &mut Config {
        self.memory_guard_size = Some(bytes);
        self
    }

    /// Has every memory made by the host: those of instances and those of [`Memory::new`](crate::Memory::new), whatever the
    /// [`allocation_strategy`](Config::allocation_strategy). The creator is asked for a reservation of 4 GiB and the guard on which code
    /// relies, if the memory has [`guard_regions`](Config::guard_regions); otherwise for the reservation that Weir would make, and no
    /// guard. A memory does not grow beyond its [`byte_capacity`](crate::LinearMemory::byte_capacity), because memories do not move;
    /// wasmtime lets them move. Such memories are not kept for the next store, and data is copied to each. The heap of references is not
    /// made by the creator. Default: none.
    pub fn with_host_memory(&mut self, creator: Arc<dyn MemoryCreator>) -> &mut Config {
        self.host_memory = Some(Creator(creator));
        self
    }

    /// Limits the instances that the stores of an engine hold together, and their memories, tables and sizes. Memories and tables that
    /// the host makes for itself are not limited. Default: [`InstanceAllocationStrategy::OnDemand`], no limits.
    ///
    /// ```
    /// use weir::{Config, Engine, Instance, Module, PoolConcurrencyLimitError, PoolingAllocationConfig, Store};
    ///
    /// let mut limits = PoolingAllocationConfig::new();
    /// limits.total_memories(1).max_memory_size(1 << 20);
    /// let engine = Engine::new(Config::new().allocation_strategy(limits))?;
    /// let mut store = Store::new(&engine, ());
    /// let module = Module::new(&engine, r#"(module (memory (export "memory") 1))"#)?;
    /// let memory = Instance::new(&mut store, &module, &[])?.get_memory(&mut store, "memory").unwrap();
    /// assert!(memory.grow(&mut store, 16).is_err());
    /// let error = Instance::new(&mut store, &module, &[]).unwrap_err();
    /// assert!(error.is::<PoolConcurrencyLimitError>());
    /// # Ok::<(), weir::Error>(())
    /// ```
    pub fn allocation_strategy(&mut self, strategy: impl Into<InstanceAllocationStrategy>) -> &mut Config {
        self.allocation_strategy = strategy.into();
        self
    }
}
