//! Signals and signal stacks, for tests of other modules and of the whole library.

#[cfg(test)]
pub(crate) use libc::{SIGFPE, SIGILL, SIGSEGV};

use std::io;
#[cfg(test)]
use std::ptr::null;
use std::ptr::null_mut;

/// Removes this thread's alternate signal stack, as if a C program had made the thread.
///
/// # Panics
/// If the system refuses, as it does in a handler on that stack.
pub fn remove_signal_stack() {
    let none = libc::stack_t { ss_sp: null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    // SAFETY: the system refuses while a handler runs on that stack; std only reads the old stack's address when the thread ends.
    let result = unsafe { libc::sigaltstack(&none, null_mut()) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
}

/// Returns the bytes of this thread's alternate signal stack, or `None` if it has none.
#[cfg(test)]
pub(crate) fn signal_stack() -> Option<usize> {
    let mut stack = libc::stack_t { ss_sp: null_mut(), ss_flags: 0, ss_size: 0 };
    // SAFETY: it only fills in `stack`.
    let result = unsafe { libc::sigaltstack(null(), &mut stack) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
    (stack.ss_flags & libc::SS_DISABLE == 0).then_some(stack.ss_size)
}

/// Sends a signal to this thread.
#[cfg(test)]
pub(crate) fn raise(signal: i32) {
    // SAFETY: the signal's action is a handler of this process or that of the system.
    let result = unsafe { libc::raise(signal) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
}
