//! The host program of Weir's own tests, on the crate that it is written for. The assertions in it therefore say what wasmtime
//! does, and `tests/tests/host_program` checks that Weir does the same.

extern crate wasmtime;

#[path = "../../../../tests/tests/host_program/program.rs"]
mod program;

#[test]
fn on_wasmtime() -> wasmtime::Result<()> {
    program::run(&|_| ())
}
