//! The function runner of the tests of weir-wasi, run on wasmtime, for which it is written: see `vm/wasi/tests/function_runner`.

extern crate wasmtime;
extern crate wasmtime_wasi;

#[path = "../../../../vm/wasi/tests/function_runner/program.rs"]
mod program;

#[test]
fn on_wasmtime() -> wasmtime::Result<()> {
    program::run(wasmtime::Engine::default(), env!("CARGO_TARGET_TMPDIR").as_ref())
}

#[test]
fn on_wasmtime_asynchronously() -> wasmtime::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let _entered = runtime.enter();
    program::run_asynchronously(wasmtime::Engine::default())
}
