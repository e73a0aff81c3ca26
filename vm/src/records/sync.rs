//! The atomics, locks and fences of [`super::quiescence`] and `tier::reclaim`. Their model, `vm/tests/reclamation.rs`,
//! compiles these two files with a module of the same name that provides loom's.

pub(crate) use crate::sys::lock::{Guard, Lock, Rank};
pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

/// The light side of the asymmetric fence. It orders the compiler only; the heavy side orders the processor.
#[inline(always)]
pub(crate) fn light_fence() {
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
}
