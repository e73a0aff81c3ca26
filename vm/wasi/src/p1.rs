//! WASI preview 1: the functions that a program imports from [`MODULE`].
//!
//! ```
//! use weir::{Engine, Linker, Module, Store};
//! use weir_wasi::p1::{self, WasiP1Ctx};
//! use weir_wasi::{I32Exit, WasiCtxBuilder};
//!
//! struct State {
//!     wasi: WasiP1Ctx,
//! }
//!
//! let engine = Engine::default();
//! let mut linker: Linker<State> = Linker::new(&engine);
//! p1::add_to_linker_sync(&mut linker, |state| &mut state.wasi)?;
//!
//! let module = Module::new(&engine, r#"(module
//!     (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
//!     (memory (export "memory") 1)
//!     (func (export "_start") (call $exit (i32.const 3))))"#)?;
//! let wasi = WasiCtxBuilder::new().inherit_stdio().arg("program").build_p1();
//! let mut store = Store::new(&engine, State { wasi });
//! let start = linker.instantiate(&mut store, &module)?.get_typed_func::<(), ()>(&mut store, "_start")?;
//! assert_eq!(start.call(&mut store, ()).unwrap_err().downcast_ref(), Some(&I32Exit(3)));
//! # Ok::<(), weir::Error>(())
//! ```

use crate::ctx::WasiCtx;
use crate::errno::Errno;
use crate::guest::Guest;
use crate::offload::Blocking;
use crate::outcome::{Failure, Outcome};
use crate::sys::thread::block_on;
use crate::{MODULE, args, clock, dir, fd, file, path, poll, process, random_get, sock};
#[cfg(feature = "async")]
use std::task::Poll;
use weir::{AsContextMut, Caller, Instance, Linker, Memory};

/// The state of a program of preview 1. Made by [`WasiCtxBuilder::build_p1`](crate::WasiCtxBuilder::build_p1).
pub type WasiP1Ctx = WasiCtx;

/// Converts the result of a call for the guest.
fn result(outcome: Outcome) -> weir::Result<u32> {
    match outcome {
        Ok(()) => Ok(0),
        Err(Failure::Errno(errno)) => Ok(errno as u32),
        Err(Failure::Memory(_)) => Ok(Errno::Nomem as u32),
        Err(Failure::End(error)) => Err(error),
    }
}

/// Returns whether the call is to be repeated, because the store's limiter grants it the memory that it lacked.
fn is_granted<T: 'static>(
    outcome: &Outcome,
    caller: &mut Caller<'_, T>,
    get: impl Fn(&mut T) -> &mut WasiCtx,
) -> weir::Result<bool> {
    let Err(Failure::Memory(wanted)) = *outcome else { return Ok(false) };
    let granted = get(caller.data_mut()).granted;
    let allowed = caller.as_context_mut().host_memory_growing(granted, wanted)?;
    if allowed {
        get(caller.data_mut()).granted = wanted;
    }
    Ok(allowed)
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

/// Defines functions that do not wait.
macro_rules! immediate {
    ($linker:ident, $get:ident; $($name:ident($($arg:ident: $ty:ty),*) = $function:path;)*) => {
        $($linker.func_wrap(MODULE, stringify!($name), move |mut caller: Caller<'_, T>, $($arg: $ty),*| {
            let (mut guest, ctx) = split(&mut caller, $get);
            result($function(ctx, &mut guest, $($arg),*))
        })?;)*
    };
}

/// Defines functions that may wait, which block the thread then.
macro_rules! blocking {
    ($linker:ident, $get:ident; $($name:ident($($arg:ident: $ty:ty),*) = $function:path;)*) => {
        $($linker.func_wrap(MODULE, stringify!($name), move |mut caller: Caller<'_, T>, $($arg: $ty),*| {
            loop {
                let (mut guest, ctx) = split(&mut caller, $get);
                ctx.blocking = Blocking::Here;
                let outcome = block_on($function(ctx, &mut guest, $($arg),*));
                if !is_granted(&outcome, &mut caller, $get)? {
                    return result(outcome);
                }
            }
        })?;)*
    };
}

/// Defines functions that may wait, while the guest is suspended.
#[cfg(feature = "async")]
macro_rules! suspending {
    ($linker:ident, $get:ident; $($name:ident($($arg:ident: $ty:ty),*) = $function:path;)*) => {
        $($linker.func_wrap_async(MODULE, stringify!($name), move |mut caller: Caller<'_, T>, ($($arg,)*): ($($ty,)*)| {
            Box::new(async move {
                loop {
                    let (mut guest, ctx) = split(&mut caller, $get);
                    ctx.blocking = if ctx.may_block { Blocking::Here } else { Blocking::Elsewhere };
                    let outcome = $function(ctx, &mut guest, $($arg),*).await;
                    if !is_granted(&outcome, &mut caller, $get)? {
                        return result(outcome);
                    }
                }
            })
        })?;)*
    };
}

/// Defines the functions that may wait, by one of the macros above.
macro_rules! waiting {
    ($define:ident, $linker:ident, $get:ident) => {
        $define! { $linker, $get;
            fd_advise(fd: u32, at: u64, len: u64, advice: u32) = file::fd_advise;
            fd_allocate(fd: u32, at: u64, len: u64) = file::fd_allocate;
            fd_close(fd: u32) = fd::fd_close;
            fd_datasync(fd: u32) = fd::fd_datasync;
            fd_filestat_get(fd: u32, stat: u32) = fd::fd_filestat_get;
            fd_filestat_set_size(fd: u32, size: u64) = file::fd_filestat_set_size;
            fd_filestat_set_times(fd: u32, access: u64, modification: u64, flags: u32) = fd::fd_filestat_set_times;
            fd_pread(fd: u32, buffers: u32, count: u32, at: u64, read: u32) = file::fd_pread;
            fd_pwrite(fd: u32, buffers: u32, count: u32, at: u64, written: u32) = file::fd_pwrite;
            fd_read(fd: u32, buffers: u32, count: u32, read: u32) = file::fd_read;
            fd_readdir(fd: u32, into: u32, len: u32, cookie: u64, used: u32) = dir::fd_readdir;
            fd_renumber(from: u32, to: u32) = fd::fd_renumber;
            fd_sync(fd: u32) = fd::fd_sync;
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
            poll_oneoff(subscriptions: u32, events: u32, count: u32, ready: u32) = poll::poll_oneoff;
            sock_accept(fd: u32, flags: u32, accepted: u32) = sock::sock_accept;
            sock_recv(fd: u32, buffers: u32, count: u32, flags: u32, received: u32, out_flags: u32) = sock::sock_recv;
            sock_send(fd: u32, buffers: u32, count: u32, flags: u32, sent: u32) = sock::sock_send;
        }
    };
}

/// Defines all functions of WASI preview 1 in a linker, for guests that are called synchronously. `f` finds the [`WasiP1Ctx`] in a store's
/// data. Functions that wait block the thread.
///
/// # Errors
/// The linker already has a function with one of the names.
pub fn add_to_linker_sync<T: Send + 'static>(
    linker: &mut Linker<T>,
    f: impl Fn(&mut T) -> &mut WasiP1Ctx + Copy + Send + Sync + 'static,
) -> weir::Result<()> {
    define_immediate(linker, f)?;
    waiting!(blocking, linker, f);
    immediate! { linker, f; sched_yield() = process::sched_yield; }
    Ok(())
}

/// Defines all functions of WASI preview 1 in a linker, for guests that are called asynchronously. `f` finds the [`WasiP1Ctx`] in a
/// store's data.
///
/// No function blocks the executor's thread; any executor will do. The guest is suspended while a function waits for a time, a
/// pipe, a terminal, a connection or a stream of the embedder, and at `sched_yield`: one thread of the process waits for all guests. It is
/// also suspended while another thread does what may block, such as opening and reading files. There are at most 512 of these threads.
/// They start when they are needed. A guest that opens a pipe occupies one until the other end of the pipe is opened, also if the
/// guest's call is dropped.
/// See [`WasiCtxBuilder::allow_blocking_current_thread`](crate::WasiCtxBuilder::allow_blocking_current_thread).
///
/// ```
/// use weir::{Engine, Linker, Module, Store};
/// use weir_wasi::p1::{self, WasiP1Ctx};
/// use weir_wasi::WasiCtxBuilder;
///
/// # async fn run() -> weir::Result<()> {
/// let engine = Engine::default();
/// let mut linker: Linker<WasiP1Ctx> = Linker::new(&engine);
/// p1::add_to_linker_async(&mut linker, |ctx| ctx)?;
/// let module = Module::new(&engine, r#"(module (memory (export "memory") 1) (func (export "_start")))"#)?;
/// let mut store = Store::new(&engine, WasiCtxBuilder::new().build_p1());
/// let instance = linker.instantiate_async(&mut store, &module).await?;
/// instance.get_typed_func::<(), ()>(&mut store, "_start")?.call_async(&mut store, ()).await?;
/// # Ok(())
/// # }
/// # let mut run = std::pin::pin!(run());
/// # assert!(run.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_ready());
/// ```
///
/// # Errors
/// The linker already has a function with one of the names.
#[cfg(feature = "async")]
pub fn add_to_linker_async<T: Send + 'static>(
    linker: &mut Linker<T>,
    f: impl Fn(&mut T) -> &mut WasiP1Ctx + Copy + Send + Sync + 'static,
) -> weir::Result<()> {
    define_immediate(linker, f)?;
    waiting!(suspending, linker, f);
    linker.func_wrap_async(MODULE, "sched_yield", |_: Caller<'_, T>, (): ()| {
        let mut yielded = false;
        Box::new(std::future::poll_fn(move |cx| {
            if std::mem::replace(&mut yielded, true) {
                return Poll::Ready(0u32);
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        }))
    })?;
    Ok(())
}

/// Defines the functions that do not wait.
fn define_immediate<T: 'static>(
    linker: &mut Linker<T>,
    get: impl Fn(&mut T) -> &mut WasiCtx + Copy + Send + Sync + 'static,
) -> weir::Result<()> {
    immediate! { linker, get;
        args_get(pointers: u32, bytes: u32) = args::args_get;
        args_sizes_get(count: u32, size: u32) = args::args_sizes_get;
        environ_get(pointers: u32, bytes: u32) = args::environ_get;
        environ_sizes_get(count: u32, size: u32) = args::environ_sizes_get;
        clock_res_get(clock: u32, resolution: u32) = clock::clock_res_get;
        clock_time_get(clock: u32, precision: u64, time: u32) = clock::clock_time_get;
        fd_fdstat_get(fd: u32, stat: u32) = fd::fd_fdstat_get;
        fd_fdstat_set_flags(fd: u32, flags: u32) = fd::fd_fdstat_set_flags;
        fd_fdstat_set_rights(fd: u32, base: u64, inheriting: u64) = fd::fd_fdstat_set_rights;
        fd_prestat_dir_name(fd: u32, name: u32, len: u32) = dir::fd_prestat_dir_name;
        fd_prestat_get(fd: u32, prestat: u32) = dir::fd_prestat_get;
        fd_seek(fd: u32, by: i64, whence: u32, at: u32) = file::fd_seek;
        fd_tell(fd: u32, at: u32) = file::fd_tell;
        proc_raise(signal: u32) = process::proc_raise;
        random_get(at: u32, len: u32) = random_get::random_get;
        sock_shutdown(fd: u32, how: u32) = sock::sock_shutdown;
    }
    // The one function without a result.
    linker.func_wrap(MODULE, "proc_exit", move |_: Caller<'_, T>, status: u32| -> weir::Result<()> {
        Err(process::exit(status))
    })?;
    Ok(())
}
