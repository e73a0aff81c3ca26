//! WASI preview 1 for Weir: all of its functions, as a thin layer on cap-std, which confines a program to its preopened
//! directories, and on the host's system calls.
//!
//! ```
//! use weir::{Engine, Linker, Module, Store};
//! use weir_wasi::{I32Exit, OutputBuffer, WasiCtx};
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
//! let output = OutputBuffer::new(1024);
//! let mut store = Store::new(&engine, WasiCtx::builder().stdout(output.clone()).build());
//! let mut linker = Linker::new(&engine);
//! weir_wasi::add_to_linker(&mut linker, |ctx| ctx)?;
//! let instance = linker.instantiate(&mut store, &module)?;
//! let error = instance.get_typed_func::<(), ()>(&mut store, "_start")?.call(&mut store, ()).unwrap_err();
//! assert_eq!(error.downcast_ref(), Some(&I32Exit(7)));
//! assert_eq!(output.contents(), b"hi\n");
//! # Ok::<(), weir::Error>(())
//! ```

mod args;
#[cfg(feature = "async")]
mod asynchronous;
mod clock;
mod clocks;
mod ctx;
mod descriptor;
mod dir;
mod directory;
mod entropy;
mod errno;
mod fd;
mod file;
mod guard;
mod guest;
mod outcome;
mod path;
mod poll;
mod process;
mod random;
mod rights;
mod sock;
mod stat;
mod stream;
mod sys;

#[cfg(feature = "fault-injection")]
pub use sys::fault_injection;

#[cfg(feature = "async")]
pub use asynchronous::add_to_linker_async;
pub use ctx::{Access, NulError, WasiCtx, WasiCtxBuilder};
pub use outcome::{BrokenPipe, I32Exit, Nondeterminism};
pub use stream::OutputBuffer;

use guest::Guest;
use outcome::{Failure, Outcome};
use weir::{Caller, Instance, Linker, Memory};

/// The module from which a program imports these functions.
pub const MODULE: &str = "wasi_snapshot_preview1";

/// Converts the result of a call for the guest.
fn result(outcome: Outcome) -> weir::Result<u32> {
    match outcome {
        Ok(()) => Ok(0),
        Err(Failure::Errno(errno)) => Ok(errno as u32),
        Err(Failure::End(error)) => Err(error),
    }
}

/// Returns the caller's memory and its context. The memory of a caller that exports none is empty, so calls without
/// pointers succeed.
#[inline]
fn split<'a, T: 'static>(caller: &'a mut Caller<'_, T>, get: impl Fn(&mut T) -> &mut WasiCtx) -> (Guest<'a>, &'a mut WasiCtx) {
    let cached = get(caller.data_mut()).memory;
    let memory = match (cached, caller.instance()) {
        (Some((of, memory)), Some(instance)) if Instance::same(of, instance) => Some(memory),
        _ => find_memory(caller, &get),
    };
    match memory {
        Some(memory) => {
            let (bytes, data) = memory.data_and_store_mut(caller);
            (Guest::new(bytes), get(data))
        }
        None => (Guest::new(&mut []), get(caller.data_mut())),
    }
}

/// Looks up the memory that the calling instance exports. The context keeps it for the next call by the same instance,
/// because the look-up by name took most of the time of a short call.
#[cold]
fn find_memory<T: 'static>(caller: &mut Caller<'_, T>, get: impl Fn(&mut T) -> &mut WasiCtx) -> Option<Memory> {
    let instance = caller.instance()?;
    let memory = caller.get_export("memory")?.into_memory()?;
    get(caller.data_mut()).memory = Some((instance, memory));
    Some(memory)
}

macro_rules! define {
    ($linker:ident, $get:ident; $($name:ident($($arg:ident: $ty:ty),*) = $function:path;)*) => {
        $($linker.func_wrap(MODULE, stringify!($name), move |mut caller: Caller<'_, T>, $($arg: $ty),*| {
            let (mut guest, ctx) = split(&mut caller, $get);
            result($function(ctx, &mut guest, $($arg),*))
        })?;)*
    };
}

/// Defines all functions of WASI preview 1 in a linker. `get` finds the [`WasiCtx`] in a store's data.
///
/// # Errors
/// The linker already has a function with one of the names.
pub fn add_to_linker<T: 'static>(
    linker: &mut Linker<T>,
    get: impl Fn(&mut T) -> &mut WasiCtx + Copy + Send + Sync + 'static,
) -> weir::Result<()> {
    define_others(linker, get)?;
    define! { linker, get;
        fd_read(fd: u32, buffers: u32, count: u32, read: u32) = file::fd_read;
        poll_oneoff(subscriptions: u32, events: u32, count: u32, ready: u32) = poll::poll_oneoff;
        sched_yield() = process::sched_yield;
        sock_accept(fd: u32, flags: u32, accepted: u32) = sock::sock_accept;
        sock_recv(fd: u32, buffers: u32, count: u32, flags: u32, received: u32, out_flags: u32) = sock::sock_recv;
    }
    Ok(())
}

/// Defines the functions that do not wait.
fn define_others<T: 'static>(
    linker: &mut Linker<T>,
    get: impl Fn(&mut T) -> &mut WasiCtx + Copy + Send + Sync + 'static,
) -> weir::Result<()> {
    define! { linker, get;
        args_get(pointers: u32, bytes: u32) = args::args_get;
        args_sizes_get(count: u32, size: u32) = args::args_sizes_get;
        environ_get(pointers: u32, bytes: u32) = args::environ_get;
        environ_sizes_get(count: u32, size: u32) = args::environ_sizes_get;
        clock_res_get(clock: u32, resolution: u32) = clock::clock_res_get;
        clock_time_get(clock: u32, precision: u64, time: u32) = clock::clock_time_get;
        fd_advise(fd: u32, at: u64, len: u64, advice: u32) = file::fd_advise;
        fd_allocate(fd: u32, at: u64, len: u64) = file::fd_allocate;
        fd_close(fd: u32) = fd::fd_close;
        fd_datasync(fd: u32) = fd::fd_datasync;
        fd_fdstat_get(fd: u32, stat: u32) = fd::fd_fdstat_get;
        fd_fdstat_set_flags(fd: u32, flags: u32) = fd::fd_fdstat_set_flags;
        fd_fdstat_set_rights(fd: u32, base: u64, inheriting: u64) = fd::fd_fdstat_set_rights;
        fd_filestat_get(fd: u32, stat: u32) = fd::fd_filestat_get;
        fd_filestat_set_size(fd: u32, size: u64) = file::fd_filestat_set_size;
        fd_filestat_set_times(fd: u32, access: u64, modification: u64, flags: u32) = fd::fd_filestat_set_times;
        fd_pread(fd: u32, buffers: u32, count: u32, at: u64, read: u32) = file::fd_pread;
        fd_prestat_dir_name(fd: u32, name: u32, len: u32) = dir::fd_prestat_dir_name;
        fd_prestat_get(fd: u32, prestat: u32) = dir::fd_prestat_get;
        fd_pwrite(fd: u32, buffers: u32, count: u32, at: u64, written: u32) = file::fd_pwrite;
        fd_readdir(fd: u32, into: u32, len: u32, cookie: u64, used: u32) = dir::fd_readdir;
        fd_renumber(from: u32, to: u32) = fd::fd_renumber;
        fd_seek(fd: u32, by: i64, whence: u32, at: u32) = file::fd_seek;
        fd_sync(fd: u32) = fd::fd_sync;
        fd_tell(fd: u32, at: u32) = file::fd_tell;
        fd_write(fd: u32, buffers: u32, count: u32, written: u32) = file::fd_write;
        path_create_directory(fd: u32, path: u32, len: u32) = path::path_create_directory;
        path_filestat_get(fd: u32, lookup: u32, path: u32, len: u32, stat: u32) = path::path_filestat_get;
        path_filestat_set_times(
            fd: u32, lookup: u32, path: u32, len: u32, access: u64, modification: u64, flags: u32
        ) = path::path_filestat_set_times;
        path_link(
            fd: u32, lookup: u32, path: u32, len: u32, new_fd: u32, new_path: u32, new_len: u32
        ) = path::path_link;
        path_open(
            fd: u32, lookup: u32, path: u32, len: u32, how: u32, base: u64, inheriting: u64, flags: u32, opened: u32
        ) = path::path_open;
        path_readlink(fd: u32, path: u32, len: u32, into: u32, into_len: u32, used: u32) = path::path_readlink;
        path_remove_directory(fd: u32, path: u32, len: u32) = path::path_remove_directory;
        path_rename(fd: u32, path: u32, len: u32, new_fd: u32, new_path: u32, new_len: u32) = path::path_rename;
        path_symlink(target: u32, target_len: u32, fd: u32, path: u32, len: u32) = path::path_symlink;
        path_unlink_file(fd: u32, path: u32, len: u32) = path::path_unlink_file;
        proc_raise(signal: u32) = process::proc_raise;
        random_get(at: u32, len: u32) = random::random_get;
        sock_send(fd: u32, buffers: u32, count: u32, flags: u32, sent: u32) = sock::sock_send;
        sock_shutdown(fd: u32, how: u32) = sock::sock_shutdown;
    }
    // The one function without a result.
    linker.func_wrap(MODULE, "proc_exit", move |_: Caller<'_, T>, status: u32| -> weir::Result<()> {
        Err(process::exit(status))
    })?;
    Ok(())
}
