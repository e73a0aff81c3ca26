//! A barrier for all threads of the process (membarrier(2)): each has then seen what this one wrote before, has made what it wrote
//! itself visible, and fetches instructions anew.
//!
//! The last is what memory needs in which other code stood, written through another mapping than it is run in: a processor may
//! still hold instructions of old (Intel's manual, volume 3, 10.1.3, "Handling Self- and Cross-Modifying Code").

use std::sync::LazyLock;

/// Lets all threads pass the barrier. Returns whether they have: not every system has it. Costs some microseconds, but ten
/// milliseconds and more when it is first asked for: the system then waits until all threads have heard of it.
pub(super) fn all_threads() -> bool {
    static REGISTERED: LazyLock<bool> = LazyLock::new(|| membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE));
    *REGISTERED && membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE)
}

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: it is a barrier, or changes how later ones are answered.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}
