//! The host program of Weir's tests, run on wasmtime, for which it is written. The assertions in it therefore state
//! wasmtime's behaviour, and `tests/tests/host_program` checks that Weir's is the same.

extern crate wasmtime;

#[path = "../../../../tests/tests/host_program/program.rs"]
#[allow(unsafe_code, reason = "functions with raw values")]
mod program;

#[test]
fn on_wasmtime() -> wasmtime::Result<()> {
    program::run(&|_| ())
}
