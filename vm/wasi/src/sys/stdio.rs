//! The process's standard streams.

use std::os::fd::BorrowedFd;

/// Standard input.
pub(crate) fn stdin() -> BorrowedFd<'static> {
    rustix::stdio::stdin()
}

/// Standard output.
pub(crate) fn stdout() -> BorrowedFd<'static> {
    rustix::stdio::stdout()
}

/// Standard error.
pub(crate) fn stderr() -> BorrowedFd<'static> {
    rustix::stdio::stderr()
}
