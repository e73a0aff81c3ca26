//! The texts of errors, as the suites compare and check them.

use weir::{Error, InvalidModule, WasmBacktrace};

/// Returns the reasons for an error in one line: the message for an invalid module, otherwise the chain without the backtrace and
/// with the details that its texts lack.
pub fn reasons(error: &Error) -> String {
    if let Some(invalid) = error.downcast_ref::<InvalidModule>() {
        return invalid.message.clone();
    }
    let links = error.chain().filter(|link| !link.is::<WasmBacktrace>()).map(ToString::to_string);
    links.chain(error.details().map(str::to_owned)).collect::<Vec<_>>().join(": ")
}
