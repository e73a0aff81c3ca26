//! Calls between Rust and the guest, instances, and the choice of engines. This layer depends on all engines; no engine depends
//! on another.

pub(crate) mod engines;
pub(crate) mod entry;
#[cfg(feature = "async")]
pub(crate) mod fiber;
mod hooks;
pub(crate) mod host;
pub(crate) mod instantiate;
mod interpreter_only;
#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
mod native;
#[cfg(not(all(feature = "jit", target_arch = "x86_64", target_os = "linux")))]
#[path = "no_native.rs"]
mod native;
#[cfg(feature = "async")]
pub(crate) mod resumable;
#[cfg(feature = "jit")]
mod ssa;
