//! Calls that signals interrupt.

use std::io;

/// Calls again as long as a signal interrupts the call.
pub(super) fn retry<R>(mut call: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
