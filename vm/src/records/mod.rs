//! The records that public handles refer to. They do not move while their store lives. Engines reach them by raw
//! pointers from the contexts of [`weir_contract`]; the public API reaches them through the store.
//!
//! Records are data: no file here depends on an engine, a tier or code memory.

pub(crate) mod attending;
pub(crate) mod attention;
pub(crate) mod backtrace;
pub(crate) mod body;
pub(crate) mod bulk;
pub(crate) mod call_hook;
pub(crate) mod catches;
pub(crate) mod census;
pub(crate) mod collect;
pub(crate) mod config;
pub(crate) mod credit;
pub(crate) mod deadline;
#[cfg(feature = "addr2line")]
mod dwarf_cost;
pub(crate) mod engine;
pub(crate) mod engines;
pub(crate) mod error;
pub(crate) mod events;
pub(crate) mod exceptions;
pub(crate) mod failure;
pub(crate) mod fault;
pub(crate) mod fiber;
pub(crate) mod frame_tier;
pub(crate) mod func_code;
pub(crate) mod header;
pub(crate) mod heap;
pub(crate) mod hints;
pub(crate) mod host;
pub(crate) mod host_memory;
pub(crate) mod image;
pub(crate) mod instance;
pub(crate) mod kept_profile;
pub(crate) mod limiter;
pub(crate) mod loading;
pub(crate) mod masks;
pub(crate) mod memory;
pub(crate) mod mismatch;
pub(crate) mod module;
pub(crate) mod native_search;
pub(crate) mod object;
pub(crate) mod pc;
mod pool;
pub(crate) mod pooling;
pub(crate) mod precompiled;
pub(crate) mod profile;
pub(crate) mod quiescence;
pub(crate) mod root_maps;
pub(crate) mod roots;
pub(crate) mod scope;
pub(crate) mod signatures;
#[cfg(feature = "snapshot")]
pub(crate) mod snapshot;
pub(crate) mod stack;
pub(crate) mod statistic;
pub(crate) mod stats;
pub(crate) mod store;
pub(crate) mod stripes;
pub(crate) mod symbols;
pub(crate) mod sync;
pub(crate) mod table;
pub(crate) mod thrown;
pub(crate) mod unwind;
pub(crate) mod walk;
pub(crate) mod wording;
