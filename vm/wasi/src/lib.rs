//! WASI preview 1.
