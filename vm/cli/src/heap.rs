//! The allocator of the process.

/// Allocations of at least this many bytes are mappings of their own, which go back to the system when they are freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED: i32 = 1 << 20;
/// Free memory at the end of a heap goes back if it is more.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const TRIMMED: i32 = 2 << 20;

/// Makes the GNU C library keep less of freed memory. By default it takes ever larger allocations from its heaps, up to 32 MiB, once one of
/// that size was freed, and compiling a function of a megabyte left the process with up to twice the memory.
pub fn keep_little() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it has no preconditions. Where it is refused, the default is kept.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED);
        libc::mallopt(libc::M_TRIM_THRESHOLD, TRIMMED);
    }
}
