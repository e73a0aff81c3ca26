//! The operating system, where cap-std has no function for it: open files, directory entries, sockets, polling, clocks,
//! random bytes.
//!
//! No other module of the package uses rustix or `std::thread`. This module has no knowledge of WASI. Each function
//! that may fail begins with [`calls::Call::enter`], so that a test can make it fail. A function that is interrupted by
//! a signal is repeated, unless it says otherwise. Calls of cap-std (opening, removing, renaming and so on below a
//! directory) are made where they are needed, and cannot be made to fail.

mod calls;
pub(crate) mod clock;
pub(crate) mod dir;
pub(crate) mod errno;
#[cfg(feature = "fault-injection")]
pub mod fault_injection;
pub(crate) mod file;
pub(crate) mod poll;
pub(crate) mod pool;
pub(crate) mod random;
mod retry;
pub(crate) mod socket;
pub(crate) mod stdio;
pub(crate) mod thread;
pub(crate) mod waiter;
