//! Streams, in the modules in which wasmtime-wasi has them. WASI 0.2 itself, whose programs are components, is not here.

mod adapters;
pub mod pipe;
mod streams;

pub(crate) use streams::CHUNK;
pub use streams::{DynInputStream, DynOutputStream, InputStream, IoError, OutputStream, Pollable, StreamError, StreamResult};
