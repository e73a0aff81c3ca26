//! A barrier for all threads of the process (membarrier(2)): each has then seen what this one wrote before, has made what it wrote
//! itself visible, and fetches instructions anew.
//!
//! The last is what memory needs in which other code stood, written through another mapping than it is run in: a processor may
//! still hold instructions of old (Intel's manual, volume 3, 10.1.3, "Handling Self- and Cross-Modifying Code").

/// Whether the system has it. To be asked before the first [`all_threads`].
pub(super) fn register() -> bool {
    // SAFETY: changes nothing but how later calls are answered.
    unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0 }
}

/// Lets all threads pass the barrier. Returns whether they have.
pub(super) fn all_threads() -> bool {
    // SAFETY: a barrier.
    unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0 }
}
