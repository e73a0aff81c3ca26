//! The public API: handles over the records, and the wiring of the layers below.

#[cfg(feature = "async")]
mod async_calls;
#[cfg(feature = "async")]
mod async_host;
#[cfg(feature = "async")]
mod async_store;
mod backtrace;
pub(crate) mod cache;
pub(crate) mod cache_config;
pub(crate) mod call_hook;
pub(crate) mod caller;
mod calls;
pub(crate) mod config;
#[cfg(feature = "coredump")]
pub(crate) mod coredump;
pub(crate) mod engine;
pub mod error;
pub(crate) mod events;
pub(crate) mod exception;
#[cfg(feature = "jit")]
mod explore;
pub(crate) mod externs;
pub(crate) mod func;
pub(crate) mod global;
#[cfg(feature = "profiling")]
pub(crate) mod guest_profiler;
mod imports;
pub(crate) mod instance;
pub(crate) mod limits;
pub(crate) mod linker;
mod matching;
pub(crate) mod memory;
pub(crate) mod module;
pub(crate) mod precompiled;
mod profile;
#[cfg(feature = "async")]
pub(crate) mod resumable;
pub(crate) mod rooted;
#[cfg(feature = "snapshot")]
pub(crate) mod snapshot;
pub(crate) mod store;
pub(crate) mod table;
pub(crate) mod tag;
pub(crate) mod typed;
pub(crate) mod types;
pub(crate) mod unchecked;
pub(crate) mod value;
