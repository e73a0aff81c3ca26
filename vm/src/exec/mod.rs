//! Calls between Rust and the guest. This layer knows both engines; the layers below know neither.

pub(crate) mod entry;
#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
pub(crate) mod helpers;
pub(crate) mod host;
pub(crate) mod instantiate;
