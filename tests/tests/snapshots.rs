//! A snapshot continues where its instance was: whole programs before their start, and random programs between two calls.

use std::fs;
use std::path::{Path, PathBuf};
use weir::{Config, Linker, Module, Snapshot, Store, Tier};
use weir_tests::engines::engine;
use weir_tests::smith;
use weir_tests::snapshots::{Calls, Tally, compare};
use weir_wasi::WasiCtx;
use weir_wasi::p2::pipe::MemoryOutputPipe;

/// The folders of `programs/` that have a module of their name.
fn programs() -> Vec<(String, PathBuf)> {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs");
    let folders = fs::read_dir(programs).expect("the folder programs").map(|entry| entry.expect("an entry").path());
    let of = |folder: PathBuf| Some((folder.file_name()?.to_str()?.to_owned(), folder));
    let mut programs: Vec<(String, PathBuf)> = folders.filter_map(of).collect();
    programs.retain(|(name, folder)| folder.join(format!("{name}.wasm")).exists());
    programs.sort();
    programs
}

#[test]
fn programs_print_the_same_after_a_snapshot() {
    let engine = engine(Config::new().wasm_legacy_exceptions(true)).unwrap();
    let mut linker = Linker::new(&engine);
    weir_wasi::p1::add_to_linker_sync(&mut linker, |ctx| ctx).unwrap();
    let programs = programs();
    assert!(programs.len() > 30);
    for (name, folder) in programs {
        let module = Module::from_file(&engine, folder.join(format!("{name}.wasm"))).unwrap();
        let mut store = Store::new(&engine, WasiCtx::builder().build());
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let bytes = Snapshot::new().take(&store, instance).unwrap_or_else(|error| panic!("{name}: {error:?}"));

        let arguments = fs::read_to_string(folder.join("args.txt")).unwrap();
        let small = arguments.lines().find_map(|line| line.strip_prefix("small")).expect("a line `small`");
        let output = MemoryOutputPipe::new(1 << 20);
        let small: Vec<&str> = small.split_whitespace().collect();
        let ctx = WasiCtx::builder().arg(&*name).args(&small).stdout(output.clone()).build();
        let mut store = Store::new(&engine, ctx);
        let instance = linker.instantiate(&mut store, &Module::new(&engine, bytes).unwrap()).unwrap();
        instance.get_typed_func::<(), ()>(&mut store, "_start").unwrap().call(&mut store, ()).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.contents()),
            fs::read_to_string(folder.join("expected.txt")).unwrap(),
            "{name}"
        );
    }
}

/// Few of the programs of `weir-fuzz snapshot`.
#[test]
fn random_programs_continue_in_a_snapshot() {
    let mut configs = [Config::new(), Config::new(), Config::new()];
    configs[0].tier(Tier::Interpreter);
    configs[1].tier(Tier::Baseline);
    configs[2].tier(Tier::Native);
    let mut tally = Tally::default();
    smith::with_stack(|| {
        for seed in 0..480 {
            let Some(program) = Calls::random(seed) else { continue };
            let [first, second] = [seed, seed / 4].map(|seed| &configs[seed as usize % configs.len()]);
            tally += compare(&program, [first, second], seed % 8 < 4).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
    });
    println!("{tally}");
    assert!(tally.taken > 300 && tally.changed > 200 && tally.calls > 1000 && tally.returned * 2 > tally.calls, "{tally}");
}
