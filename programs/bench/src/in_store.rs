//! Runs a program within this process, where its module keeps its code from run to run.

use crate::programs::{Program, Work};
use crate::run::milliseconds;
use std::sync::Barrier;
use std::time::Instant;
use weir::{Linker, Module, Store};
use weir_wasi::p2::pipe::MemoryOutputPipe;
use weir_wasi::{I32Exit, WasiCtx};

/// Bytes of output that are kept.
const OUTPUT: usize = 64 << 20;

/// Runs the program in a new store; starts when the other thread is ready, if there is one. Returns the time of the call in
/// milliseconds, and the output.
///
/// # Errors
/// The module is not a command of WASI, or the program fails.
pub fn run(program: &Program, module: &Module, work: &Work, barrier: Option<&Barrier>) -> Result<(f64, Vec<u8>), String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", program.name);
    let output = MemoryOutputPipe::new(OUTPUT);
    let context = WasiCtx::builder().arg(&program.name).args(&work.args).stdout(output.clone()).build();
    let prepared = || {
        let mut store = Store::new(module.engine(), context);
        let mut linker = Linker::new(module.engine());
        weir_wasi::p1::add_to_linker_sync(&mut linker, |context| context)?;
        let instance = linker.instantiate(&mut store, module)?;
        let start = instance.get_typed_func::<(), ()>(&mut store, "_start")?;
        Ok::<_, weir::Error>((store, start))
    };
    let prepared = prepared().map_err(|error| failed(&error));
    // The other thread waits for this one even if it fails.
    if let Some(barrier) = barrier {
        barrier.wait();
    }
    let (mut store, start) = prepared?;
    let begun = Instant::now();
    let result = start.call(&mut store, ());
    let ms = milliseconds(begun.elapsed());
    match result {
        Ok(()) => {}
        Err(error) if error.downcast_ref() == Some(&I32Exit(0)) => {}
        Err(error) => return Err(failed(&error)),
    }
    Ok((ms, output.contents().to_vec()))
}
