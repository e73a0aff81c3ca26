//! The texts of errors, as the suites compare and check them.

use weir::{Error, InvalidModule, WasmBacktrace};

/// Returns the reasons for an error in one line: its chain without the backtrace, with what Weir knows beyond wasmtime's texts.
pub fn reasons(error: &Error) -> String {
    if let Some(invalid) = error.downcast_ref::<InvalidModule>() {
        return invalid.message.clone();
    }
    let links = error.chain().filter(|link| !link.is::<WasmBacktrace>()).map(ToString::to_string);
    links.chain(error.details().map(str::to_owned)).collect::<Vec<_>>().join(": ")
}
