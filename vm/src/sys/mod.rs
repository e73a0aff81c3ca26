//! The operating system: processes, memory mappings, files, signals, threads, locks, barriers and clocks.
//!
//! No other module of the library names libc, rustix, `std::fs` or the parts of `std::thread` that start or query
//! threads. This module has no policy and depends on no other part of the library: it makes system calls, returns their
//! failures as [`std::io::Error`], and owns system resources. Each function that may fail begins with
//! [`calls::Call::enter`], so that a test can make it fail.

#[cfg(feature = "jit")]
pub(crate) mod affinity;
pub(crate) mod barrier;
pub(crate) mod buffer;
mod call_table;
mod calls;
pub(crate) mod clock;
#[cfg(feature = "async")]
pub(crate) mod coroutine;
#[cfg(feature = "fault-injection")]
pub mod fault_injection;
#[cfg(feature = "fault-injection")]
mod faults;
pub(crate) mod file;
pub(crate) mod fork;
pub(crate) mod lock;
pub(crate) mod mapping;
pub(crate) mod memory_file;
pub(crate) mod private_dir;
pub(crate) mod segment;
#[cfg(all(feature = "jit", target_os = "linux", target_arch = "x86_64"))]
pub(crate) mod signals;
#[cfg(all(any(test, feature = "fault-injection"), feature = "jit", target_os = "linux", target_arch = "x86_64"))]
pub(crate) mod testing;
pub(crate) mod thread;
