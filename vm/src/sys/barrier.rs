//! A barrier for all threads of the process (membarrier(2)).

use super::calls::Call;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Makes every thread of the process execute a memory barrier and a serialising instruction. After it, each thread has
/// seen the earlier writes of this thread, has made its own writes visible, and fetches instructions anew. Returns
/// whether this happened; on a system without such a barrier it always returns false. Takes a few microseconds, but ten
/// milliseconds or more the first time, because the kernel then waits until all threads are registered; see [`prepare`].
pub(crate) fn all_threads() -> bool {
    let passed = is_registered() && barrier();
    FAILED.store(!passed, Ordering::Relaxed);
    passed
}

/// Returns whether the system has the barrier and its last use did not fail, without using it: on a virtual machine that interrupts another
/// processor for 20 microseconds.
pub(crate) fn works() -> bool {
    is_registered() && !FAILED.load(Ordering::Relaxed)
}

/// Whether the last barrier failed.
static FAILED: AtomicBool = AtomicBool::new(false);

/// Whether the process is registered for the barrier: registers it at the first call. Two threads may do that at the same time. A lock would be
/// held for ever in a child that is forked meanwhile.
fn is_registered() -> bool {
    const UNKNOWN: u8 = 0;
    const REFUSED: u8 = 1;
    const REGISTERED: u8 = 2;
    static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
    match STATE.load(Ordering::Relaxed) {
        UNKNOWN => {
            let registered = register();
            STATE.store(if registered { REGISTERED } else { REFUSED }, Ordering::Relaxed);
            registered
        }
        state => state == REGISTERED,
    }
}

/// Registers the process for the barrier if it has only one thread, because that takes no time then. Registered later, the
/// first barrier would wait, and so would the end of the process if it came meanwhile.
#[cfg(target_os = "linux")]
pub(crate) fn prepare() {
    use std::os::unix::fs::MetadataExt;
    /// Links of a directory without subdirectories.
    const LINKS: u64 = 2;
    let threads = Call::BarrierPrepare.enter().and_then(|()| std::fs::metadata("/proc/self/task"));
    if threads.is_ok_and(|threads| threads.nlink() == LINKS + 1) {
        is_registered();
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn prepare() {}

#[cfg(target_os = "linux")]
fn register() -> bool {
    Call::BarrierRegister.enter().is_ok() && membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE)
}

#[cfg(target_os = "linux")]
fn barrier() -> bool {
    Call::Barrier.enter().is_ok() && membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE)
}

#[cfg(target_os = "linux")]
fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: it accesses none of the process's memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn register() -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn barrier() -> bool {
    false
}
