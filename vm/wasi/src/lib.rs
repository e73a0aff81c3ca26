//! WASI preview 1 for Weir: all of its functions, as a thin layer on cap-std, which confines a program to its preopened
//! directories, and on the host's system calls. What a host needs for preview 1 has the names and signatures of wasmtime-wasi 48.
//!
//! ```
//! use weir::{Engine, Linker, Module, Store};
//! use weir_wasi::p1::{self, WasiP1Ctx};
//! use weir_wasi::p2::pipe::MemoryOutputPipe;
//! use weir_wasi::{I32Exit, WasiCtxBuilder};
//!
//! let engine = Engine::default();
//! let module = Module::new(&engine, r#"(module
//!     (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
//!     (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
//!     (memory (export "memory") 1)
//!     (data (i32.const 0) "\08\00\00\00\03\00\00\00hi\n")
//!     (func (export "_start")
//!         (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))
//!         (call $proc_exit (i32.const 7))))"#)?;
//!
//! let output = MemoryOutputPipe::new(1024);
//! let mut store = Store::new(&engine, WasiCtxBuilder::new().stdout(output.clone()).build_p1());
//! let mut linker: Linker<WasiP1Ctx> = Linker::new(&engine);
//! p1::add_to_linker_sync(&mut linker, |ctx| ctx)?;
//! let instance = linker.instantiate(&mut store, &module)?;
//! let error = instance.get_typed_func::<(), ()>(&mut store, "_start")?.call(&mut store, ()).unwrap_err();
//! assert_eq!(error.downcast_ref(), Some(&I32Exit(7)));
//! assert_eq!(output.contents(), "hi\n");
//! # Ok::<(), weir::Error>(())
//! ```

mod args;
mod builder;
pub mod cli;
mod clock;
pub mod clocks;
mod ctx;
mod descriptor;
mod dir;
mod directory;
mod entropy;
mod errno;
mod fd;
mod file;
pub mod filesystem;
mod guard;
mod guest;
mod handle;
mod host_stream;
mod offload;
mod outcome;
pub mod p1;
pub mod p2;
mod path;
mod poll;
mod process;
pub mod random;
mod random_get;
mod rights;
mod sock;
pub mod sockets;
mod stat;
mod stream;
mod sys;
mod time;

#[cfg(feature = "fault-injection")]
pub use sys::fault_injection;

#[doc(no_inline)]
pub use async_trait::async_trait;
pub use builder::{NulError, WasiCtxBuilder};
pub use clocks::{HostMonotonicClock, HostWallClock};
pub use ctx::WasiCtx;
pub use filesystem::FsPerms;
pub use outcome::{BrokenPipe, I32Exit, Nondeterminism};
#[doc(no_inline)]
pub use rand_core::Rng;
pub use random::{Deterministic, thread_rng};

/// The module from which a program imports these functions.
pub const MODULE: &str = "wasi_snapshot_preview1";
