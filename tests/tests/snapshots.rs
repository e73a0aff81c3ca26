//! A snapshot continues where its instance was: whole programs before their start, and random programs between two calls.

use std::fs;
use std::path::{Path, PathBuf};
use weir::{Config, Engine, Instance, Linker, Module, Snapshot, Store, Tier, V128, Val};
use weir_tests::engines::engine;
use weir_tests::generate::{Program, Value, generate, switching};
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

#[test]
fn random_programs_continue_in_a_snapshot() {
    let mut configs = [Config::new(), Config::new()];
    configs[0].tier(Tier::Interpreter);
    configs[1].tier(Tier::Baseline);
    let engines = configs.map(|config| engine(&config).unwrap());
    let (mut changed, mut calls) = (0, 0);
    for seed in 0..120 {
        for program in [generate(seed), switching(seed)] {
            let engine = &engines[seed as usize % engines.len()];
            let (mut store, instance) = start(engine, &program.wasm);
            let half = program.calls.len() / 2;
            run(&program, 0..half, &mut store, instance);
            let bytes = Snapshot::new().take(&store, instance).unwrap_or_else(|error| panic!("seed {seed}: {error:?}"));
            changed += u32::from(bytes != program.wasm);
            if !program.beyond_wasmi {
                // Another engine accepts it.
                let mut config = wasmi::Config::default();
                let engine = wasmi::Engine::new(config.wasm_wide_arithmetic(true));
                wasmi::Module::new(&engine, &bytes).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            }
            let (mut copy, copied) = start(engine, &bytes);
            assert!(
                state(&program, &mut store, instance) == state(&program, &mut copy, copied),
                "seed {seed}, before the other calls"
            );
            let rest = half..program.calls.len();
            calls += rest.len();
            let (ended, again) = (run(&program, rest.clone(), &mut store, instance), run(&program, rest, &mut copy, copied));
            assert_eq!(ended, again, "seed {seed}");
            assert!(state(&program, &mut store, instance) == state(&program, &mut copy, copied), "seed {seed}, at the end");
        }
    }
    assert!(changed > 200 && calls > 1000, "{changed} programs have state, and {calls} calls were made");
}

fn start(engine: &Engine, wasm: &[u8]) -> (Store<()>, Instance) {
    let module = Module::new(engine, wasm).unwrap();
    let mut store = Store::new(engine, ());
    let instance = Linker::new(engine).instantiate(&mut store, &module).unwrap();
    (store, instance)
}

/// The results of some of a program's calls, as text.
fn run(program: &Program, calls: std::ops::Range<usize>, store: &mut Store<()>, instance: Instance) -> Vec<String> {
    let call = |call: &weir_tests::generate::Call| {
        instance.get_typed_func::<(), ()>(&mut *store, "reset").unwrap().call(&mut *store, ()).unwrap();
        let func = instance.get_func(&mut *store, &format!("f{}", call.func)).unwrap();
        let args: Vec<Val> = call.args.iter().map(|arg| value(*arg)).collect();
        let mut results = vec![Val::I32(0); program.funcs[call.func as usize].results.len()];
        match func.call(&mut *store, &args, &mut results) {
            Ok(()) => format!("{results:?}"),
            Err(error) => error.root_cause().to_string(),
        }
    };
    program.calls[calls].iter().map(call).collect()
}

fn value(value: Value) -> Val {
    match value {
        Value::I32(x) => Val::I32(x),
        Value::I64(x) => Val::I64(x),
        Value::F32(bits) => Val::F32(bits),
        Value::F64(bits) => Val::F64(bits),
        Value::V128(bits) => Val::V128(V128::from(bits)),
    }
}

/// The exported globals, as text, and the memory.
fn state(program: &Program, store: &mut Store<()>, instance: Instance) -> (Vec<String>, Vec<u8>) {
    let global = |i: usize| instance.get_global(&mut *store, &format!("g{i}")).unwrap();
    let globals: Vec<_> = (0..program.globals.len()).map(global).collect();
    let globals = globals.iter().map(|global| format!("{:?}", global.get(&mut *store))).collect();
    (globals, instance.get_memory(&mut *store, "mem").unwrap().data(&*store).to_vec())
}
