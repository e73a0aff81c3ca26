//! The records behind the public handles. They never move while their store lives, and engines reach them by raw
//! pointers from the contexts of [`weir_jit::contract`]; the public API reaches them through the store.

pub(crate) mod records;
