//! Threads and their stacks.

use super::calls::Call;
use std::io;
use std::ops::Range;
use std::sync::OnceLock;
use std::thread::{Builder, JoinHandle};

/// Starts a thread that calls `run`.
///
/// # Errors
/// The system's error.
pub(crate) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Call::Spawn.enter()?;
    Builder::new().name(name.into()).spawn(run)
}

/// Runs a closure on a new thread with `stack` bytes of stack and waits for it. A panic is resumed in the caller.
///
/// # Errors
/// The system's error if the thread cannot be started.
pub(crate) fn run_on_stack<R: Send>(stack: usize, run: impl FnOnce() -> R + Send) -> io::Result<R> {
    Call::SpawnScoped.enter()?;
    std::thread::scope(|scope| {
        let thread = Builder::new().stack_size(stack).spawn_scoped(scope, run)?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Calls `run` on this thread and on up to `threads - 1` others, and waits for them. A panic is resumed in the caller.
pub(crate) fn run_on_all(threads: usize, run: &(impl Fn() + Sync)) {
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // Fewer threads take longer, and do the same.
            if Call::SpawnScoped.enter().is_ok() {
                let _ = Builder::new().spawn_scoped(scope, run);
            }
        }
        run();
    });
}

/// Calls `run` on this thread while another one calls `other`, and waits for that; without another thread, this one calls both. A panic of
/// `other` becomes one of this function.
pub(crate) fn run_beside<R>(other: &(dyn Fn() + Sync), run: impl FnOnce() -> R) -> R {
    std::thread::scope(|scope| {
        if Call::SpawnScoped.enter().and_then(|()| Builder::new().spawn_scoped(scope, other)).is_err() {
            other();
        }
        run()
    })
}

/// Returns whether this thread is unwinding.
#[cfg(feature = "async")]
pub(crate) fn is_panicking() -> bool {
    std::thread::panicking()
}

/// Returns the number of threads that can run at the same time. It is found once, because that takes some twenty system calls.
///
/// # Errors
/// The system does not report it.
pub(crate) fn parallelism() -> io::Result<usize> {
    static FOUND: OnceLock<usize> = OnceLock::new();
    Call::Parallelism.enter()?;
    if let Some(found) = FOUND.get() {
        return Ok(*found);
    }
    let found = std::thread::available_parallelism()?.get();
    Ok(*FOUND.get_or_init(|| found))
}

/// Returns the system's identifier of this thread.
#[cfg(target_os = "linux")]
pub(crate) fn id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// Identifiers of other systems are not used.
#[cfg(not(target_os = "linux"))]
pub(crate) fn id() -> u32 {
    0
}

/// Returns the usable addresses of the calling thread's own stack. Takes a few microseconds.
///
/// # Errors
/// The system does not report them.
#[cfg(target_os = "linux")]
pub(crate) fn stack_bounds() -> io::Result<Range<usize>> {
    Call::StackBounds.enter()?;
    let local = 0u8;
    if let Some(first) = first_stack().filter(|first| first.contains(&(&raw const local).addr())) {
        return Ok(first);
    }
    let check = |error| if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) };
    let (mut lowest, mut size, mut guard) = (std::ptr::null_mut(), 0, 0);
    // SAFETY: the calls initialise the objects whose addresses they get, if they return 0; initialised attributes are
    // destroyed once.
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
    // The C library decides whether the size includes the guard: assume that it does.
    Ok(lowest.addr() + guard..lowest.addr() + size)
}

/// Returns the addresses of the stack of the process's first thread, as far as its limit lets it grow. The C library would read the
/// list of all mappings, which takes 50 µs.
///
/// `None` if that limit is so high that another mapping may come first: the system keeps at least 128 MiB free below the stack.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn first_stack() -> Option<Range<usize>> {
    const MAX: u64 = 128 << 20;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Stack).current.filter(|&limit| limit <= MAX)?;
    // The last thing on that stack is the program's file name. A word of zeros follows.
    let name = rustix::param::linux_execfn();
    let end = (name.as_ptr().addr() + name.count_bytes()).next_multiple_of(rustix::param::page_size());
    Some(end.checked_sub(limit as usize)?..end)
}

#[cfg(all(target_os = "linux", not(target_pointer_width = "64")))]
fn first_stack() -> Option<Range<usize>> {
    None
}

/// Not implemented for other systems.
#[cfg(not(target_os = "linux"))]
pub(crate) fn stack_bounds() -> io::Result<Range<usize>> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
mod tests {
    use super::*;

    #[test]
    fn the_first_stack_ends_where_the_system_says() {
        let Some(first) = first_stack() else { return };
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.ends_with("[stack]")).unwrap();
        let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        let address = |digits| usize::from_str_radix(digits, 16).unwrap();
        assert_eq!(first.end, address(end));
        assert!(first.start <= address(start));
    }
}
