//! Real programs of third parties: interpreters, a database, a bundler and a compiler, with arguments, standard input and files in
//! a folder that is opened for them. Their expected output was compared with their output under wasmtime.
//!
//! They are fetched and compiled by `programs/fetch.py`, and run by `cargo test -p weir-tests --test real -- --ignored`. No other
//! test runs such a program, and CI does not fetch them. `WEIR_BLESS=1` rewrites the expected output.
//!
//! Those that throw are compiled to both forms of exceptions, and run under stress too. Node gave the same output.

use std::fs;
use std::path::{Path, PathBuf};
use weir::{Config, Instance, Linker, Module, Snapshot, Store, Tier};
use weir_tests::engines::engine;
use weir_wasi::p2::pipe::{MemoryInputPipe, MemoryOutputPipe};
use weir_wasi::{FsPerms, I32Exit, WasiCtx};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// An empty folder with copies of these files of `tests/real`.
fn folder(test: &str, files: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a writable folder");
    for file in files {
        let from = root().join("tests/real").join(file);
        fs::copy(from, folder.join(Path::new(file).file_name().expect("a name"))).expect("a file of the test");
    }
    folder
}

/// As much native stack as the command gives a program, and additional stack for the host.
const GUEST_STACK: usize = 8 << 20;
const HOST_STACK: usize = 4 << 20;

/// The outcome of a program: standard output, standard error and exit status.
type Outcome = (String, String, i32);

/// The tiers on which each program runs.
const TIERS: [Tier; 4] = [Tier::Interpreter, Tier::Native, Tier::Baseline, Tier::Auto];

/// The engine that executes in this tier.
fn on(tier: Tier) -> Config {
    let mut config = Config::new();
    config.tier(tier);
    config
}

/// Runs the module with the folder opened under the given name.
fn run(config: &Config, module: &str, args: &[&str], input: &str, folder: (&Path, &str)) -> weir::Result<Outcome> {
    std::thread::scope(|scope| {
        let guest = std::thread::Builder::new().stack_size(GUEST_STACK + HOST_STACK);
        let thread = guest.spawn_scoped(scope, || run_here(config, module, args, input, folder)).expect("a thread");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn run_here(
    config: &Config,
    module: &str,
    args: &[&str],
    input: &str,
    (folder, opened_as): (&Path, &str),
) -> weir::Result<Outcome> {
    let path = root().join("programs/real").join(module).with_extension("wasm");
    assert!(path.exists(), "{module} is missing: run programs/fetch.py {module}");
    let (out, err) = (MemoryOutputPipe::new(1 << 20), MemoryOutputPipe::new(1 << 20));
    let mut ctx = WasiCtx::builder();
    ctx.arg(module).args(args).stdin(MemoryInputPipe::new(input.to_owned())).stdout(out.clone()).stderr(err.clone());
    ctx.env("HOME", "/none").preopened_dir(folder, opened_as, FsPerms::ReadWrite)?;

    let mut config = config.clone();
    config.max_wasm_stack(GUEST_STACK).value_stack_size(64 << 20).wasm_legacy_exceptions(true);
    let engine = engine(&config)?;
    let module = Module::from_file(&engine, path)?;
    let mut store = Store::new(&engine, ctx.build());
    let mut linker = Linker::new(&engine);
    weir_wasi::p1::add_to_linker_sync(&mut linker, |ctx| ctx)?;
    let instance = linker.instantiate(&mut store, &module)?;
    let start = instance.get_typed_func::<(), ()>(&mut store, "_start")?;
    let status = match start.call(&mut store, ()) {
        Ok(()) => 0,
        Err(error) => error.downcast::<I32Exit>()?.0,
    };
    let text = |buffer: MemoryOutputPipe| String::from_utf8_lossy(&buffer.contents()).into_owned();
    Ok((text(out), text(err), status))
}

/// Checks that `text` equals this file of `tests/real`.
fn assert_expected(text: &str, file: &str) {
    let path = root().join("tests/real").join(file);
    if weir_tests::blessing() {
        fs::write(&path, text).expect("a writable folder");
    }
    assert_eq!(text, fs::read_to_string(path).expect("what is expected"), "{file}");
}

/// Runs the module on every tier with its script, if it has one, the folder opened as `/data`, and this input. Checks its output, its
/// standard error and its status, and that it leaves only the expected files.
fn check(
    module: &str,
    args: &[&str],
    script: Option<&str>,
    input: &str,
    expected: &str,
    (errors, status): (&str, i32),
    left: &[&str],
) {
    for tier in TIERS {
        let folder = folder(module, script.as_slice());
        let ran = run(&on(tier), module, args, input, (&folder, "/data"));
        let (out, err, exit) = ran.unwrap_or_else(|error| panic!("{module}, {tier:?}: {error:?}"));
        assert_eq!((exit, &*err), (status, errors), "{module}, {tier:?}, printed {out}");
        assert_expected(&out, expected);
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        assert_eq!(names, left, "{module}, {tier:?}");
    }
}

const INPUT: &str = "the quick fox and the lazy dog and the weir\n";

#[test]
#[ignore = "needs programs/fetch.py python-wasi"]
fn python() {
    let args = ["/data/python.py", "one", "--two"];
    check("python-wasi", &args, Some("python.py"), INPUT, "python.txt", ("", 3), &["python.py"]);
}

/// Go's jumps go through the head of a loop, and a suspended goroutine resumes in the middle of a function.
#[test]
#[ignore = "needs programs/fetch.py go-wasi"]
fn go() {
    check("go-wasi", &[], None, "", "go.txt", ("", 0), &[]);
}

#[test]
#[ignore = "needs programs/fetch.py qjs-wasi"]
fn javascript() {
    let args = ["-m", "/data/script.js", "one", "--two"];
    check("qjs-wasi", &args, Some("script.js"), INPUT, "javascript.txt", ("", 0), &["script.js"]);
}

/// The same with a snapshot of an engine that has run its preparations, as wasmtime and Node print it.
#[test]
#[ignore = "needs programs/fetch.py qjs-snapshot"]
fn javascript_continues_in_a_snapshot() {
    let path = root().join("programs/real/qjs-snapshot.wasm");
    assert!(path.exists(), "QuickJS is missing: run programs/fetch.py qjs-snapshot");
    let script = fs::read_to_string(root().join("tests/real/snapshot.js")).expect("the script");
    for tier in TIERS {
        let engine = engine(&on(tier)).unwrap();
        let mut linker = Linker::new(&engine);
        weir_wasi::p1::add_to_linker_sync(&mut linker, |ctx| ctx).unwrap();
        let module = Module::from_file(&engine, &path).unwrap();
        let store = Store::new(&engine, WasiCtx::builder().build());
        let bytes = Snapshot::new().init("init").rename("_start", "resume").run(store, &linker, &module).unwrap();

        let out = MemoryOutputPipe::new(1 << 20);
        let ctx = WasiCtx::builder().stdin(MemoryInputPipe::new(script.clone())).stdout(out.clone()).build();
        let mut store = Store::new(&engine, ctx);
        let instance = linker.instantiate(&mut store, &Module::new(&engine, bytes).unwrap()).unwrap();
        instance.get_typed_func::<(), ()>(&mut store, "_start").unwrap().call(&mut store, ()).unwrap();
        assert_expected(&String::from_utf8_lossy(&out.contents()), "snapshot.txt");
    }
}

#[test]
#[ignore = "needs programs/fetch.py lua-wasi"]
fn lua() {
    let args = ["/data/script.lua", "one", "--two"];
    let errors = ("lua: /data/script.lua:17: the end\n", 1);
    check("lua-wasi", &args, Some("script.lua"), INPUT, "lua.txt", errors, &["script.lua"]);
}

#[test]
#[ignore = "needs programs/fetch.py sqlite-wasi"]
fn sqlite() {
    let script = fs::read_to_string(root().join("tests/real/script.sql")).expect("the script");
    let left = ["copy.db", "main.db", "script.sql"];
    check("sqlite-wasi", &["/data/main.db"], Some("script.sql"), &script, "sqlite.txt", ("", 0), &left);
}

#[test]
#[ignore = "needs programs/fetch.py esbuild-wasi"]
fn esbuild() {
    for tier in TIERS {
        let folder = folder("esbuild-wasi", &["bundle/main.ts", "bundle/lib.ts"]);
        let args = ["/main.ts", "--bundle", "--minify", "--sourcemap", "--log-level=warning", "--outfile=/out.js"];
        let run = run(&on(tier), "esbuild-wasi", &args, "", (&folder, "/")).unwrap_or_else(|error| panic!("{tier:?}: {error:?}"));
        assert_eq!(run, (String::new(), String::new(), 0), "{tier:?}");
        assert_expected(&fs::read_to_string(folder.join("out.js")).expect("the bundle"), "bundle/out.js");
        assert!(folder.join("out.js.map").exists());
    }
}

/// Clang compiles a function and LLD links it. The module that they write runs on the same tier.
#[test]
#[ignore = "needs programs/fetch.py llvm"]
fn llvm() {
    let modules = TIERS.map(|tier| {
        let folder = folder("llvm", &["collatz.c"]);
        let run = |args: &[&str]| {
            let ran = run(&on(tier), "llvm", args, "", (&folder, "/data")).unwrap_or_else(|error| panic!("{tier:?}: {error:?}"));
            assert_eq!(ran, (String::new(), String::new(), 0), "{tier:?}, {args:?}");
        };
        run(&["clang", "--target=wasm32", "-O2", "-c", "/data/collatz.c", "-o", "/data/collatz.o"]);
        run(&["wasm-ld", "--no-entry", "--strip-all", "/data/collatz.o", "-o", "/data/collatz.wasm"]);
        let engine = engine(&on(tier)).unwrap();
        let module = Module::from_file(&engine, folder.join("collatz.wasm")).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let longest = instance.get_typed_func::<u32, u32>(&mut store, "longest").unwrap();
        assert_eq!(longest.call(&mut store, 10_000).unwrap(), 6171, "{tier:?}");
        fs::read(folder.join("collatz.wasm")).unwrap()
    });
    assert!(modules.iter().all(|module| *module == modules[0]), "the compiler writes the same bytes on all tiers");
}

/// The seeds of the runs under stress.
const SEEDS: std::ops::Range<u64> = 0..4;

/// Runs a program that throws, in both forms of exceptions, on every tier, under stress, and while its exceptions move at every safepoint, with the folder of `script` opened as
/// `/data`, and checks its output.
fn check_throwing(module: &str, args: &[&str], script: Option<&str>, expected: &str, (errors, status): (&str, i32)) {
    let mut configs: Vec<Config> = TIERS.into_iter().chain([Tier::Cranelift, Tier::Ssa]).map(on).collect();
    configs.extend(SEEDS.map(|seed| Config::new().stress(Some(seed)).clone()));
    configs.push(Config::new().gc_stress(true).clone());
    for form in ["", "-legacy"] {
        let module = format!("{module}{form}");
        let folder = folder(&module, script.as_slice());
        for config in &configs {
            let ran = run(config, &module, args, "", (&folder, "/data"));
            let (out, err, exit) = ran.unwrap_or_else(|error| panic!("{module}, {config:?}: {error:?}"));
            assert_eq!((exit, &*err), (status, errors), "{module}, {config:?}, printed {out}");
            assert_expected(&out, expected);
        }
    }
}

#[test]
#[ignore = "needs programs/fetch.py exceptions"]
fn what_cxx_defines() {
    check_throwing("cxx-features", &["noexcept"], None, "cxx-features.txt", ("", 3));
}

#[test]
#[ignore = "needs programs/fetch.py exceptions"]
fn damaged_json() {
    check_throwing("cxx-json", &["10"], None, "cxx-json.txt", ("", 0));
}

#[test]
#[ignore = "needs programs/fetch.py exceptions"]
fn errors_of_lua() {
    let errors = ("lua: /data/errors.lua:92: uncaught\n", 1);
    check_throwing("lua-errors", &["/data/errors.lua", "one", "two"], Some("errors.lua"), "lua-errors.txt", errors);
}
