//! The records behind the public handles. They never move while their store lives, and engines reach them by raw
//! pointers from the contexts of [`weir_contract`]; the public API reaches them through the store.

pub(crate) mod bulk;
pub(crate) mod host;
pub(crate) mod image;
pub(crate) mod memory;
pub(crate) mod mismatch;
pub(crate) mod presence;
pub(crate) mod signatures;
mod spare;
pub(crate) mod stack;
pub(crate) mod store;
pub(crate) mod table;
