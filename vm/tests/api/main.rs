//! Tests of the library through its interface. One program has them all, because each program that is linked takes five seconds to
//! build. A test has a program of its own if it measures or changes something of its whole process.

#[path = "../common/mod.rs"]
mod common;
#[cfg(feature = "async")]
#[path = "../common/executor.rs"]
mod executor;

#[cfg(all(feature = "wat", feature = "async"))]
mod async_store;
#[cfg(all(feature = "wat", feature = "async"))]
mod async_throws;
#[cfg(all(feature = "wat", feature = "async"))]
mod asynchronous;
mod bulk;
mod calls;
mod collect;
#[cfg(all(feature = "coredump", feature = "wat"))]
mod coredump;
#[cfg(feature = "wat")]
mod costs;
mod deterministic;
mod entries;
#[cfg(feature = "jit")]
mod events;
mod exceptions;
#[cfg(feature = "wat")]
mod frames;
mod fuel;
#[cfg(all(feature = "wat", feature = "profiling"))]
mod guest_profiler;
#[cfg(all(target_os = "linux", target_arch = "x86_64", feature = "jit", feature = "wat"))]
mod hints;
#[cfg(all(feature = "wat", feature = "async"))]
mod hooks;
#[cfg(all(feature = "wat", unix))]
mod host_memory;
mod lazy;
mod linking;
#[cfg(all(target_os = "linux", target_arch = "x86_64", feature = "jit", feature = "wat"))]
mod misses;
mod module_charges;
mod module_limits;
#[cfg(all(target_os = "linux", target_arch = "x86_64", feature = "jit", feature = "wat"))]
mod precompiled;
mod profile;
#[cfg(feature = "jit")]
mod refusals;
#[cfg(all(feature = "wat", feature = "async"))]
mod resumable;
#[cfg(feature = "wat")]
mod segment;
#[cfg(feature = "wat")]
mod settings;
#[cfg(feature = "wat")]
mod shape;
#[cfg(all(feature = "snapshot", feature = "wat"))]
mod snapshot;
mod traps;
