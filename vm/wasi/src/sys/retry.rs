//! Calls that signals interrupt.

use std::io;

/// Repeats a call while it is interrupted by signals.
pub(super) fn retry<R>(mut call: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
