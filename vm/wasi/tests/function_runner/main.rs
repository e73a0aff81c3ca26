//! A function runner written for wasmtime and wasmtime-wasi compiles and does the same with Weir instead.

use weir as wasmtime;
use weir_wasi as wasmtime_wasi;

#[path = "../../../../tests/src/engines.rs"]
#[allow(dead_code, reason = "a part of it is used")]
mod engines;
mod program;

use engines::default_engine;

#[test]
fn on_weir() -> wasmtime::Result<()> {
    program::run(default_engine(), env!("CARGO_TARGET_TMPDIR").as_ref())
}

#[test]
fn on_weir_asynchronously() -> wasmtime::Result<()> {
    program::run_asynchronously(default_engine())
}
