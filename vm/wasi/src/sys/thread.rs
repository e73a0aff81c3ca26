//! Threads.

/// Lets other threads run.
pub(crate) fn yield_now() {
    std::thread::yield_now();
}
