//! Modules and code that an earlier process has validated and compiled, in one format for files that an embedder keeps
//! and for files of the cache.
//!
//! [`mod@format`] is the container: header, index, and parts with a checksum each. [`artifact`] reads a container, part by part, when they
//! are first used. [`shelf`] is a module's compiled code: what an artifact has, and what this process adds; [`work`] what is still to be compiled. [`cache`] is a directory of such files; [`tally`] has their number and
//! bytes, and [`module_file`] the bytes of a large module.
//!
//! Nothing here knows an engine: code is bytes that [`weir_jit`](https://docs.rs/weir-jit) writes and reads.

pub(crate) mod artifact;
pub(crate) mod cache;
pub(crate) mod format;
pub(crate) mod module_file;
pub(crate) mod shelf;
mod tally;
pub(crate) mod work;
