//! What [`super::quiescence`] and `tier::reclaim` use of atomics, locks and fences. Their model, `vm/tests/reclamation.rs`, compiles
//! the same two files with a module of the same name in which all of it is loom's.

pub(crate) use crate::sys::lock::{Guard, Lock, Rank};
pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

/// The light side of the asymmetric fence. It keeps the compiler from reordering; the heavy side makes up for the processor.
#[inline(always)]
pub(crate) fn light_fence() {
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
}
