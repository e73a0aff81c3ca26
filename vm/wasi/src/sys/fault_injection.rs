//! The functions of this package that [`weir::fault_injection`] can make fail.

pub use super::calls::functions;
