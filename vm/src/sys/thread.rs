//! Threads and their stacks.

use super::calls::Call;
use std::io;
use std::ops::Range;
use std::thread::{Builder, JoinHandle};

/// Starts a thread that `run`s.
///
/// # Errors
/// The system's.
pub(crate) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Call::Spawn.enter()?;
    Builder::new().name(name.into()).spawn(run)
}

/// Runs something on a thread with a stack of `stack` bytes and waits for it. A panic goes on in the caller.
///
/// # Errors
/// The system's, for which there is no such thread.
pub(crate) fn run_on_stack<R: Send>(stack: usize, run: impl FnOnce() -> R + Send) -> io::Result<R> {
    Call::SpawnScoped.enter()?;
    std::thread::scope(|scope| {
        let thread = Builder::new().stack_size(stack).spawn_scoped(scope, run)?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// How many threads can run at the same time.
///
/// # Errors
/// The system does not tell.
pub(crate) fn parallelism() -> io::Result<usize> {
    Call::Parallelism.enter()?;
    Ok(std::thread::available_parallelism()?.get())
}

/// The system's number for this thread.
#[cfg(target_os = "linux")]
pub(crate) fn id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// Other systems' numbers are of no use to us.
#[cfg(not(target_os = "linux"))]
pub(crate) fn id() -> u32 {
    0
}

/// The usable addresses of the calling thread's own stack. Costs some microseconds, of the main thread some tens.
///
/// # Errors
/// The system does not tell.
#[cfg(target_os = "linux")]
pub(crate) fn stack_bounds() -> io::Result<Range<usize>> {
    Call::StackBounds.enter()?;
    let check = |error| if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) };
    let (mut lowest, mut size, mut guard) = (std::ptr::null_mut(), 0, 0);
    // SAFETY: the calls fill in what they are given the addresses of, if they return 0; attributes that were filled
    // in are destroyed once.
    unsafe {
        let mut attributes = std::mem::zeroed::<libc::pthread_attr_t>();
        check(libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes))?;
        let failed = [
            libc::pthread_attr_getstack(&raw const attributes, &raw mut lowest, &raw mut size),
            libc::pthread_attr_getguardsize(&raw const attributes, &raw mut guard),
        ];
        libc::pthread_attr_destroy(&raw mut attributes);
        failed.into_iter().try_for_each(check)?;
    }
    // Whether the guard is part of the size depends on the C library: assume that it is.
    Ok(lowest.addr() + guard..lowest.addr() + size)
}

/// Other systems are not asked.
#[cfg(not(target_os = "linux"))]
pub(crate) fn stack_bounds() -> io::Result<Range<usize>> {
    Err(io::ErrorKind::Unsupported.into())
}
