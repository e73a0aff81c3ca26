//! The in-place interpreter.

use weir_jit::contract::InstanceCtx;

/// How an activation of the interpreter ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Exit {
    /// The results are where the arguments were.
    Return,
    /// The reason is in the store's `failure`, or in its `trap_pc` after a native trap.
    Trap,
    /// The base frame is gone, and code is to be entered in its place.
    Dispatch {
        /// The function that goes on.
        func: u32,
        /// Its instance.
        instance: *mut InstanceCtx,
        /// Its entry, or its OSR body.
        code: *const u8,
        /// Its arguments, or for an OSR body the interpreter's frame.
        args: *mut u64,
        /// Whether `code` is an OSR body.
        osr: bool,
    },
}

/// Runs a function.
pub(crate) unsafe fn run(_instance: *mut InstanceCtx, _func: u32, _fp: *mut u64) -> Exit {
    unreachable!("not landed yet")
}
