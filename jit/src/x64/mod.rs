//! Weir's own back end: SSA to x86-64.
