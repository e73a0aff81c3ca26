//! WASI for guests that are called asynchronously: calls that wait suspend the guest.

use crate::ctx::WasiCtx;
use crate::guest::Guest;
use crate::outcome::{Failure, Outcome};
use crate::poll::{Polling, until_readable};
use crate::sys::waiter::Wait;
use crate::{MODULE, define_others, file, result, rights, sock, split};
use std::task::Poll;
use weir::{Caller, Linker};

/// Defines all functions of WASI preview 1 as [`add_to_linker`](crate::add_to_linker) does. The guest is suspended, and its executor's
/// thread does other work, while `poll_oneoff` waits for a time or a descriptor, while `fd_read`, `sock_recv` and `sock_accept`
/// wait for a pipe, a terminal or a connection, and at `sched_yield`. Files, and writing, block the thread, as they do there.
///
/// One thread of the process waits for all guests. It starts at the first wait.
///
/// ```
/// use weir::{Engine, Linker, Module, Store};
/// use weir_wasi::WasiCtx;
///
/// # async fn run() -> weir::Result<()> {
/// let engine = Engine::default();
/// let mut linker = Linker::new(&engine);
/// weir_wasi::add_to_linker_async(&mut linker, |ctx: &mut WasiCtx| ctx)?;
/// let module = Module::new(&engine, r#"(module (memory (export "memory") 1) (func (export "_start")))"#)?;
/// let mut store = Store::new(&engine, WasiCtx::builder().build());
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
pub fn add_to_linker_async<T: Send + 'static>(
    linker: &mut Linker<T>,
    get: impl Fn(&mut T) -> &mut WasiCtx + Copy + Send + Sync + 'static,
) -> weir::Result<()> {
    define_others(linker, get)?;
    linker.func_wrap_async(
        MODULE,
        "poll_oneoff",
        move |mut caller, (subscriptions, events, count, ready): (u32, u32, u32, u32)| {
            Box::new(async move {
                let begun = with(&mut caller, get, |ctx, guest| Polling::begin(ctx, guest, subscriptions, events, count, ready));
                let polling = match begun {
                    Ok(polling) => polling,
                    Err(failure) => return result(Err(failure)),
                };
                loop {
                    let looked = with(&mut caller, get, |ctx, guest| match polling.look(ctx, guest)? {
                        Some(time) => polling.wait(ctx, time).map(Some),
                        None => Ok(None),
                    });
                    match looked {
                        Ok(None) => return Ok(0),
                        Ok(Some(wait)) => wait_for(wait).await,
                        Err(failure) => return result(Err(failure)),
                    }
                }
            })
        },
    )?;
    linker.func_wrap_async(MODULE, "fd_read", move |mut caller, (fd, buffers, count, read): (u32, u32, u32, u32)| {
        Box::new(async move {
            if let Err(failure) = readable(&mut caller, get, (fd, rights::FD_READ), Some((buffers, count))).await {
                return result(Err(failure));
            }
            result(with(&mut caller, get, |ctx, guest| file::fd_read(ctx, guest, fd, buffers, count, read)))
        })
    })?;
    linker.func_wrap_async(
        MODULE,
        "sock_recv",
        move |mut caller, (fd, buffers, count, flags, received, out): (u32, u32, u32, u32, u32, u32)| {
            Box::new(async move {
                if let Err(failure) = readable(&mut caller, get, (fd, rights::FD_READ), Some((buffers, count))).await {
                    return result(Err(failure));
                }
                result(with(&mut caller, get, |ctx, guest| sock::sock_recv(ctx, guest, fd, buffers, count, flags, received, out)))
            })
        },
    )?;
    linker.func_wrap_async(MODULE, "sock_accept", move |mut caller, (fd, flags, accepted): (u32, u32, u32)| {
        Box::new(async move {
            if let Err(failure) = readable(&mut caller, get, (fd, rights::SOCK_ACCEPT), None).await {
                return result(Err(failure));
            }
            result(with(&mut caller, get, |ctx, guest| sock::sock_accept(ctx, guest, fd, flags, accepted)))
        })
    })?;
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

/// Calls `run` with the caller's context and memory.
fn with<T: 'static, R>(
    caller: &mut Caller<'_, T>,
    get: impl Fn(&mut T) -> &mut WasiCtx,
    run: impl FnOnce(&mut WasiCtx, &mut Guest<'_>) -> R,
) -> R {
    let (mut guest, ctx) = split(caller, get);
    run(ctx, &mut guest)
}

/// Waits, if the descriptor is one for which a read that needs this right would block. A read into no bytes does not.
async fn readable<T: 'static>(
    caller: &mut Caller<'_, T>,
    get: impl Fn(&mut T) -> &mut WasiCtx + Copy,
    (fd, right): (u32, u64),
    into: Option<(u32, u32)>,
) -> Outcome {
    loop {
        let wait = with(caller, get, |ctx, guest| -> Result<Option<Wait>, Failure> {
            let has_room =
                |(buffers, count)| guest.buffers(buffers, count).is_ok_and(|all| all.iter().any(|buffer| buffer.len > 0));
            if into.is_some_and(|into| !has_room(into)) { Ok(None) } else { until_readable(ctx, fd, right) }
        });
        match wait? {
            Some(wait) => wait.await,
            None => return Ok(()),
        }
    }
}

async fn wait_for(wait: Option<Wait>) {
    if let Some(wait) = wait {
        wait.await;
    }
}
