//! The records behind the public handles. They never move while their store lives, and engines reach them by raw
//! pointers from the contexts of [`weir_jit::contract`]; the public API reaches them through the store.

pub(crate) mod bulk;
pub(crate) mod entry;
#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
pub(crate) mod helpers;
pub(crate) mod host;
pub(crate) mod image;
pub(crate) mod instantiate;
pub(crate) mod memory;
pub(crate) mod mismatch;
pub(crate) mod presence;
pub(crate) mod records;
pub(crate) mod signatures;
mod spare;
pub(crate) mod stack;
pub(crate) mod table;
