//! Per-function execution counters and code pointers, shared by all instances of a module.

use std::sync::atomic::{AtomicI32, AtomicPtr};

/// Execution state of one function of a module.
#[derive(Debug)]
pub(crate) struct FuncCode {
    /// Ticks left until the tier policy is asked. The interpreter subtracts one at every call and every `loop` opcode,
    /// not atomically (a lost tick is harmless), and asks when the result is negative.
    pub ticks: AtomicI32,
    /// Native code to call, or null to interpret.
    pub native: AtomicPtr<u8>,
}

impl Default for FuncCode {
    /// Interpreted, and not soon asked about.
    fn default() -> FuncCode {
        FuncCode { ticks: AtomicI32::new(i32::MAX), native: AtomicPtr::default() }
    }
}
