//! Weir: a WebAssembly virtual machine.

mod interp;
mod runtime;
mod tier;
