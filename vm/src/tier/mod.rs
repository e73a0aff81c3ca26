//! When functions become native code, and how the interpreter gets there.
//!
//! The interpreter knows this interface and nothing of code memory or back ends. Without feature `jit` the answers are
//! always "interpret".

pub(crate) mod counters;

use crate::runtime::records::InstanceRecord;
use weir_jit::contract::{InstanceCtx, Status};

/// What the interpreter does next, after the policy was asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// Go on.
    Interpret,
    /// Leave for this code: a function's entry when asked at a call, an OSR body when asked at a loop.
    Enter(*const u8),
}

/// Asks the policy, because the ticks of function `func` ran out: at a call of it (`at` is `None`), or at the `loop` opcode of
/// its loop `at`. Resets the ticks. May compile, synchronously or by queueing.
#[cold]
pub(crate) fn ask(_instance: &InstanceRecord, _func: u32, _at: Option<u32>) -> Next {
    Next::Interpret
}

/// Calls native code of function `func` of `instance` through an `enter` stub; arguments and results are slots at `args`,
/// above which `value_sp` must lie.
///
/// # Safety
/// `code` is the entry of code for that function, and `args` has room for its arguments and its results.
pub(crate) unsafe fn call(_instance: *mut InstanceCtx, _func: u32, _code: *const u8, _args: *mut u64) -> Status {
    unreachable!("there is no native code")
}

/// Continues an interpreter frame at a loop in its OSR body; the function's results are left at `fp`.
///
/// # Safety
/// `code` is an OSR body for function `func` and the loop at which the frame at `fp` stands.
pub(crate) unsafe fn call_osr(_instance: *mut InstanceCtx, _func: u32, _code: *const u8, _fp: *mut u64) -> Status {
    unreachable!("there is no native code")
}
