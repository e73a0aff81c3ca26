//! C programs in `tests/wasi` that use WASI through their library, on every tier. Their expected output is their output
//! under wasmtime.

use std::fs;
use std::path::Path;
use weir::{Config, FunctionStats, Linker, Module, Store, Tier};
use weir_tests::engines::engine;
use weir_wasi::p2::pipe::{MemoryInputPipe, MemoryOutputPipe};
use weir_wasi::{FsPerms, I32Exit, WasiCtx};

/// Runs `files.wasm` with an empty folder, two arguments and a line of input. Returns its output, its exit status and
/// which tiers ran.
fn files(config: &Config, test: &str) -> weir::Result<(String, i32, FunctionStats)> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let output = MemoryOutputPipe::new(1 << 16);
    let ctx = WasiCtx::builder()
        .args(&["files", "x", "last"])
        .stdin(MemoryInputPipe::new("abc\n"))
        .stdout(output.clone())
        .preopened_dir(folder, "/d", FsPerms::ReadWrite)?
        .build();

    let engine = engine(config)?;
    let module = Module::from_file(&engine, Path::new(env!("CARGO_MANIFEST_DIR")).join("wasi/files.wasm"))?;
    let mut store = Store::new(&engine, ctx);
    let mut linker = Linker::new(&engine);
    weir_wasi::p1::add_to_linker_sync(&mut linker, |ctx| ctx)?;
    let instance = linker.instantiate(&mut store, &module)?;
    let error = instance.get_typed_func::<(), ()>(&mut store, "_start")?.call(&mut store, ());
    let status = error.map_or_else(|error| error.downcast::<I32Exit>().map(|exit| exit.0), |()| Ok(0))?;
    Ok((String::from_utf8_lossy(&output.contents()).into_owned(), status, module.stats().functions))
}

#[test]
fn files_through_the_c_library_on_every_tier() {
    let expected = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("wasi/files.txt")).expect("files.txt");
    for tier in [Tier::Interpreter, Tier::Native, Tier::Cranelift, Tier::Baseline, Tier::Ssa, Tier::Auto] {
        let (printed, status, functions) =
            files(Config::new().tier(tier), "wasi-files").unwrap_or_else(|error| panic!("{tier:?}: {error:?}"));
        assert_eq!(printed, expected, "{tier:?}");
        assert_eq!(status, 7, "{tier:?}");
        let compiled = match tier {
            Tier::Interpreter => functions.interpreted,
            Tier::Native => functions.native,
            Tier::Cranelift => functions.cranelift,
            Tier::Baseline => functions.baseline,
            Tier::Ssa => functions.evaluated,
            // Background compilation, which may not have happened.
            _ => continue,
        };
        assert!(compiled == functions.called && functions.fallbacks.is_empty(), "{tier:?}: {functions:?}");
    }
}
