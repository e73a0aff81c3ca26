//! When functions become native code, and how.

pub(crate) mod counters;
