//! The guest's share of the container's memory.
//!
//! The container's limit holds for the whole process. The guest gets the limit less two amounts: the memory of the engine, the module
//! and its tables, which is measured, and an allowance for code that may still be compiled. Growth beyond that is refused, so that the
//! program can handle it; otherwise the kernel would kill the process.

use crate::cgroup::{MemoryLimit, MemoryUse};
use weir::ResourceLimiter;

/// What the process needs beside what it has when the module is loaded, in bytes: stacks, buffers, statistics, the kernel's memory for
/// it, and what the compiler needs for a function at a time.
const BASE: u64 = 6 << 20;
/// Bytes for each byte of the module's functions: compiled code, and the data with which it was compiled. After 25 s of varied work in
/// CPython it was 2.1, and in QuickJS less than 1 beside [`BASE`].
const PER_CODE_BYTE: u64 = 4;
/// The bytes of an element of a table.
const ELEMENT: usize = 16;

/// Limits the memories and tables of a store by the container's limit.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: Option<MemoryLimit>,
    used: Option<MemoryUse>,
    /// The limit of the specification, which holds if no limit of a control group can be read.
    specified: Option<u64>,
    /// What the process may need for code, at most.
    code: u64,
    /// What the process needed when it had loaded the module.
    loaded: u64,
    /// The total size of memories, and of tables, in bytes.
    guest: usize,
    /// The last request that was refused.
    pub refused: Option<Refused>,
}

/// A request for memory that is above the limit; all sizes are in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refused {
    /// What the guest would have had.
    pub wanted: u64,
    /// The container's limit, less what others use of one that they share.
    pub limit: u64,
    /// What of it is not for the guest.
    pub reserved: u64,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Refused { wanted, limit, reserved } = self;
        write!(out, "{wanted} bytes of memory are needed, but the container may have {limit}, of which Weir needs {reserved}")
    }
}

impl Budget {
    /// Creates the budget of a container without a module.
    pub fn new(limit: Option<MemoryLimit>, used: Option<MemoryUse>, specified: Option<u64>) -> Budget {
        Budget { limit, used, specified, code: 0, loaded: 0, guest: 0, refused: None }
    }

    /// Measures the memory of the process after it has loaded a module whose functions have `code_bytes` bytes.
    pub fn module_is_loaded(&mut self, code_bytes: u64) {
        self.code = code_bytes.saturating_mul(PER_CODE_BYTE);
        self.loaded = self.used();
    }

    /// Checks that the guest may have `wanted` bytes.
    ///
    /// # Errors
    /// The limit is lower.
    pub fn check(&self, wanted: u64) -> Result<(), Refused> {
        // The specification's limit becomes the group's, which may change later.
        let Some(limit) = self.limit.as_ref().and_then(MemoryLimit::read).or(self.specified) else { return Ok(()) };
        // What is in use and cannot be the guest's was needed for something else, which may be more than expected.
        let expected = self.loaded.saturating_add(self.code).saturating_add(BASE);
        let reserved = expected.max(self.used().saturating_sub(self.guest as u64).saturating_add(BASE));
        if limit.checked_sub(reserved).is_some_and(|left| wanted <= left) {
            Ok(())
        } else {
            Err(Refused { wanted, limit, reserved })
        }
    }

    fn used(&self) -> u64 {
        self.used.as_ref().and_then(MemoryUse::read).unwrap_or_default()
    }

    /// Returns whether the guest may have `bytes` bytes more, and counts them if so.
    fn grows(&mut self, bytes: usize) -> bool {
        let Some(guest) = self.guest.checked_add(bytes) else { return false };
        match self.check(guest as u64) {
            Ok(()) => self.guest = guest,
            Err(refused) => self.refused = Some(refused),
        }
        self.guest == guest
    }
}

impl ResourceLimiter for Budget {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> weir::Result<bool> {
        Ok(maximum.is_none_or(|maximum| desired <= maximum) && self.grows(desired.saturating_sub(current)))
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> weir::Result<bool> {
        let bytes = desired.saturating_sub(current).saturating_mul(ELEMENT);
        Ok(maximum.is_none_or(|maximum| desired <= maximum) && self.grows(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth() {
        let mut budget = Budget::new(None, None, Some(20 << 20));
        budget.module_is_loaded(1 << 20);
        // 20 MiB without 6 and 4.
        assert!(budget.memory_growing(0, 8 << 20, None).unwrap());
        assert!(!budget.memory_growing(8 << 20, 9 << 20, Some(8 << 20)).unwrap(), "above the maximum of its type");
        assert_eq!(budget.refused, None);
        assert!(budget.table_growing(0, 1 << 16, None).unwrap());
        assert!(!budget.memory_growing(8 << 20, 10 << 20, None).unwrap());
        assert_eq!(budget.refused, Some(Refused { wanted: 11 << 20, limit: 20 << 20, reserved: 10 << 20 }));
        assert!(budget.memory_growing(8 << 20, 9 << 20, None).unwrap());
    }

    #[test]
    fn no_limit() {
        let mut budget = Budget::new(None, None, None);
        assert!(budget.memory_growing(0, 1 << 40, None).unwrap());
        assert!(!budget.memory_growing(0, usize::MAX, None).unwrap());
    }
}
