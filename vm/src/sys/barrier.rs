//! A barrier for all threads of the process (membarrier(2)).

use super::calls::Call;
use std::sync::LazyLock;

/// Makes every thread of the process execute a memory barrier and a serialising instruction: each has then seen what this thread wrote
/// before, has made its own writes visible, and fetches instructions anew. Returns whether this happened: not every system can
/// do it, and on those that can't it never happens. Costs some microseconds, but ten milliseconds and more the first time, because the
/// system waits then until all threads know of it.
pub(crate) fn all_threads() -> bool {
    static REGISTERED: LazyLock<bool> = LazyLock::new(register);
    *REGISTERED && barrier()
}

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
    // SAFETY: it touches no memory of ours.
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
