//! At every host call of every program, the stack walker returns in every tier the frames that it returns in the
//! interpreter: the same functions at the same instructions.

use std::cell::{Cell, RefCell};
use std::fs;
use std::path::{Path, PathBuf};
use std::ptr;
use weir::{Config, Linker, Module, Store, Tier, WasmBacktrace};
use weir_tests::engines::engine;
use weir_wasi::WasiCtx;
use weir_wasi::p2::pipe::MemoryOutputPipe;

/// The frames at one host call: functions and instructions, innermost first, and the number of omitted frames.
type Frames = (Vec<(u32, Option<usize>)>, u64);

thread_local! {
    /// The store whose guest is running.
    static STORE: Cell<*const Store<WasiCtx>> = const { Cell::new(ptr::null()) };
    static SEEN: RefCell<Vec<Frames>> = const { RefCell::new(Vec::new()) };
}

/// Records the frames. Every WASI function first requests its context, which calls this.
fn note(ctx: &mut WasiCtx) -> &mut WasiCtx {
    // SAFETY: set by `run`, whose store is there. The walk does not touch the embedder's data.
    let trace = WasmBacktrace::capture(unsafe { &*STORE.get() });
    let frames = trace.frames().iter().map(|frame| (frame.func_index(), frame.module_offset())).collect();
    SEEN.with_borrow_mut(|seen| seen.push((frames, trace.omitted())));
    ctx
}

/// Runs the program in a folder with its small arguments. Returns its output and the frames at its host calls.
fn run(folder: &Path, config: &Config) -> (Vec<u8>, Vec<Frames>) {
    let name = folder.file_name().and_then(|name| name.to_str()).expect("a name");
    let arguments = fs::read_to_string(folder.join("args.txt")).expect("args.txt");
    let small = arguments.lines().find_map(|line| line.strip_prefix("small")).expect("a line `small`");
    let output = MemoryOutputPipe::new(1 << 20);
    let small: Vec<&str> = small.split_whitespace().collect();
    let ctx = WasiCtx::builder().arg(name).args(&small).stdout(output.clone()).build();
    let engine = engine(config.clone().wasm_legacy_exceptions(true)).unwrap();
    let module = Module::from_file(&engine, folder.join(format!("{name}.wasm"))).unwrap();
    let mut store = Store::new(&engine, ctx);
    let mut linker = Linker::new(&engine);
    weir_wasi::p1::add_to_linker_sync(&mut linker, note).unwrap();
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let start = instance.get_typed_func::<(), ()>(&mut store, "_start").unwrap();
    STORE.set(&raw const store);
    let result = start.call(&mut store, ());
    STORE.set(ptr::null());
    result.unwrap_or_else(|error| panic!("{name}: {error:?}"));
    (output.contents().to_vec(), SEEN.take())
}

/// The folders of programs.
fn folders() -> Vec<PathBuf> {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs");
    let entries = fs::read_dir(programs).expect("the folder programs").map(|entry| entry.expect("an entry").path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.join("args.txt").is_file()).collect();
    folders.sort();
    folders
}

#[test]
fn the_walker_gives_the_same_frames_in_every_tier() {
    let mut configs = Vec::new();
    for tier in [Tier::Native, Tier::Cranelift, Tier::Baseline, Tier::Ssa] {
        let mut config = Config::new();
        config.tier(tier);
        configs.push(config);
    }
    for stress in [None, Some(1), Some(2)] {
        let mut config = Config::new();
        config.synchronous_compilation(true).tier_up_threshold(Some(50)).stress(stress);
        configs.push(config);
    }
    let (mut calls, mut depth) = (0, 0);
    for folder in &folders() {
        let (output, expected) = run(folder, Config::new().tier(Tier::Interpreter));
        calls += expected.len();
        depth = depth.max(expected.iter().map(|(frames, more)| frames.len() as u64 + more).max().unwrap_or(0));
        for config in &configs {
            let (other, seen) = run(folder, config);
            assert_eq!(output, other, "{}, {config:?}", folder.display());
            assert_eq!(seen.len(), expected.len(), "host calls of {}, {config:?}", folder.display());
            for (i, (seen, expected)) in seen.iter().zip(&expected).enumerate() {
                assert_eq!(seen, expected, "host call {i} of {}, {config:?}", folder.display());
            }
        }
    }
    assert!(calls > 100 && depth > 3, "{calls} host calls, {depth} frames at the most");
}
