//! The tests of single calls again, in guests that are called asynchronously.

#![allow(clippy::duplicate_mod, reason = "each has the module `common`")]

#[path = "conformance/main.rs"]
mod conformance;
#[path = "files.rs"]
mod files;
#[path = "guard.rs"]
mod guard;
#[path = "preview1.rs"]
mod preview1;
#[path = "sockets.rs"]
mod sockets;
