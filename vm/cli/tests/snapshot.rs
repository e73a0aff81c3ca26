//! `weir snapshot`: what it writes, what it refuses, and with which message and status.

#![cfg(target_os = "linux")]

mod common;

use common::{assert_fails, command, file, program, start, stderr, stdout, weir};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Imports of WASI, and a memory. The first bytes are for results.
const WASI: &str = r#"
    (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "clock_time_get" (func $time (param i32 i64 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "args_sizes_get" (func $args (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (import "wasi_snapshot_preview1" "path_open"
        (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "env" "log" (func $log))
    (memory (export "memory") 1)"#;

/// A module whose initialiser has this body, and which counts its runs.
fn module(name: &str, init: &str) -> PathBuf {
    let wat = format!(
        r#"(module {WASI} (data (i32.const 100) "data.txt") (data (i32.const 200) "\d0\00\00\00\06\00\00\00hello\n")
            (global $count (mut i32) (i32.const 0))
            (func (export "init") (global.set $count (i32.add (global.get $count) (i32.const 1))) {init})
            (func (export "count") (result i32) (global.get $count))
            (func (export "word") (result i32) (i32.load (i32.const 0))))"#
    );
    file(&format!("snapshot-{name}.wat"), wat)
}

/// The output of this name, which does not exist.
fn output(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("snapshot-{name}.wasm"));
    let _ = fs::remove_file(&path);
    path
}

/// Runs `weir snapshot MODULE --init init -o OUTPUT` with more arguments.
fn snapshot(module: &Path, output: &Path, more: &[&str]) -> Output {
    let words = ["snapshot".into(), module.as_os_str().to_owned(), "--init".into(), "init".into(), "-o".into(), output.into()];
    weir(words.into_iter().chain(more.iter().map(OsString::from)))
}

/// The snapshot of a module whose initialiser has this body.
fn taken(name: &str, init: &str, more: &[&str]) -> PathBuf {
    let (module, output) = (module(name, init), output(name));
    let done = snapshot(&module, &output, more);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    assert!(stderr(&done).contains(&format!("weir: {}: ", output.display())), "{}", stderr(&done));
    output
}

/// The failure of one, which leaves no file.
fn refused(name: &str, init: &str, more: &[&str], status: i32, says: &[&str]) {
    let (module, output) = (module(name, init), output(name));
    assert_fails(&snapshot(&module, &output, more), status, says);
    assert!(!output.exists());
}

/// The result of a function of a snapshot, in which the import is a function that does nothing.
fn invoke(snapshot: &Path, name: &str) -> String {
    let stem = snapshot.file_stem().unwrap().display();
    let env = file(&format!("{stem}-imports.wat"), r#"(module (func (export "log")))"#);
    let env = format!("env={}", env.display());
    let done = weir(["--preload", &env, "--invoke", name, snapshot.to_str().unwrap()]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    stdout(&done).trim_end().to_owned()
}

#[test]
fn the_initialiser_runs_once_and_is_gone() {
    let snapshot = taken("once", "", &[]);
    assert_eq!((invoke(&snapshot, "count"), invoke(&snapshot, "count")), ("1".into(), "1".into()));
    assert_fails(
        &weir(["--invoke".as_ref(), "init".as_ref(), snapshot.as_os_str()]),
        2,
        &["exports no function `init`", "`count`"],
    );
    assert_eq!(weir(["validate".as_ref(), snapshot.as_os_str()]).status.code(), Some(0));

    let kept = taken("kept", "", &["--keep-init", "--rename", "number=count", "-r", "value=word"]);
    assert_eq!(invoke(&kept, "number"), "1");
    assert_eq!(invoke(&kept, "init"), "");
    assert_eq!(invoke(&kept, "value"), "0");
}

#[test]
fn the_names_of_wizer_are_the_default() {
    for name in ["wizer-initialize", "wizer.initialize"] {
        let wat = format!(
            r#"(module (memory 1) (func (export "{name}") (i32.store (i32.const 0) (i32.const 7)))
            (func (export "word") (result i32) (i32.load (i32.const 0))))"#
        );
        let (module, output) = (file("snapshot-default.wat", wat), output("default"));
        let done = weir(["snapshot".as_ref(), module.as_os_str(), "-o".as_ref(), output.as_os_str()]);
        assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
        assert_eq!(invoke(&output, "word"), "7");
    }
    let output = output("none");
    let done = weir(["snapshot".as_ref(), program("hello").as_os_str(), "-o".as_ref(), output.as_os_str()]);
    assert_fails(&done, 2, &["exports no initialiser", "wizer-initialize", "wizer.initialize"]);
}

#[test]
fn the_initialiser_has_what_the_flags_give() {
    let environ = "(drop (call $environ (i32.const 0) (i32.const 4)))";
    assert_eq!(invoke(&taken("no-env", environ, &[]), "word"), "0");
    assert_eq!(invoke(&taken("env", environ, &["--env", "A=b", "--env", "C=d"]), "word"), "2");
    let args = "(drop (call $args (i32.const 0) (i32.const 4)))";
    assert_eq!(invoke(&taken("no-args", args, &[]), "word"), "0");
    assert_eq!(invoke(&taken("args", args, &["--", "one", "--two"]), "word"), "3");

    let open = "(i32.store (i32.const 0) (call $open (i32.const 3) (i32.const 0) (i32.const 100) (i32.const 8) (i32.const 0)
        (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 8)))";
    const BADF: &str = "8";
    assert_eq!(invoke(&taken("no-dir", open, &[]), "word"), BADF, "no directory is open");
}

#[test]
fn what_the_initialiser_prints_is_printed() {
    let print = "(drop (call $write (i32.const 1) (i32.const 200) (i32.const 1) (i32.const 0)))";
    let (module, output) = (module("print", print), output("print"));
    let done = snapshot(&module, &output, &[]);
    assert_eq!((done.status.code(), stdout(&done).as_str()), (Some(0), "hello\n"), "{}", stderr(&done));
}

#[test]
fn open_files_are_refused_by_name() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("snapshot-dir");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("data.txt"), "x").unwrap();
    let open = "(drop (call $open (i32.const 3) (i32.const 0) (i32.const 100) (i32.const 8) (i32.const 0)
        (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 8)))";
    refused("open", open, &["--dir", folder.to_str().unwrap()], 1, &["left open", "descriptor 4 (data.txt)"]);
}

/// The initialiser reads a file of a directory and closes it. The snapshot has its contents, and neither the file nor the directory is open in it.
#[test]
fn a_snapshot_has_the_contents_of_a_file_and_no_descriptor() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("snapshot-read");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("data.txt"), "\x2a\x01\0\0 and so on").unwrap();
    let wat = r#"(module
        (import "wasi_snapshot_preview1" "path_open"
            (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_close" (func $close (param i32) (result i32)))
        (memory (export "memory") 1)
        (data (i32.const 100) "data.txt") (data (i32.const 200) "\00\01\00\00\40\00\00\00")
        (func (export "init")
            (if (call $open (i32.const 3) (i32.const 0) (i32.const 100) (i32.const 8) (i32.const 0)
                    (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 8))
                (then unreachable))
            (if (call $read (i32.load (i32.const 8)) (i32.const 200) (i32.const 1) (i32.const 12)) (then unreachable))
            (if (call $close (i32.load (i32.const 8))) (then unreachable)))
        (func (export "word") (result i32) (i32.load (i32.const 256)))
        (func (export "length") (result i32) (i32.load (i32.const 12)))
        (func (export "close") (param i32) (result i32) (call $close (local.get 0))))"#;
    let (module, output) = (file("snapshot-read.wat", wat), output("read"));
    let done = snapshot(&module, &output, &["--dir", folder.to_str().unwrap()]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    // The snapshot has what the file had.
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!((invoke(&output, "word"), invoke(&output, "length")), ("298".into(), "14".into()));
    const BADF: &str = "8\n";
    for descriptor in ["3", "4", "5"] {
        let done = weir(["--invoke", "close", output.to_str().unwrap(), descriptor]);
        assert_eq!((&*stdout(&done), done.status.code()), (BADF, Some(0)), "{descriptor}: {}", stderr(&done));
    }
}

/// Runs a WASI program in another engine, with this input: `wasmtime`, or the program that `WEIR_PEER_WASMTIME` names, or Node.
fn elsewhere(engine: &str, program: &Path, input: &Path) -> Output {
    const NODE: &str = "\
const { WASI } = require('node:wasi');
const wasi = new WASI({ version: 'preview1', args: ['program'], env: {}, returnOnExit: true });
WebAssembly.instantiate(require('node:fs').readFileSync(process.argv[1]), wasi.getImportObject())
  .then(({ instance }) => { process.exitCode = wasi.start(instance); });";
    let variable = std::env::var_os(format!("WEIR_PEER_{}", engine.to_uppercase()));
    let mut command = Command::new(variable.unwrap_or_else(|| engine.into()));
    match engine {
        "node" => command.args(["--no-warnings", "-e", NODE]),
        _ => command.args(["run", "-Ccache=n"]),
    };
    command.arg(program).stdin(fs::File::open(input).unwrap()).output().unwrap_or_else(|error| panic!("{engine}: {error}"))
}

/// Snapshots are modules for any engine: a small program, and QuickJS if `programs/fetch.py qjs-snapshot` was run.
#[test]
#[ignore = "needs wasmtime and node"]
fn other_engines_print_the_same() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let small = file(
        "snapshot-elsewhere.wat",
        r#"(module
        (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
        (memory (export "memory") 1) (table 2 funcref) (elem declare func $print)
        (type $f (func))
        (global $at (mut i32) (i32.const 0))
        (func $print (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 12))))
        (func (export "init")
            ;; The alphabet in a page that is new, its vector of output, and who prints it.
            (global.set $at (i32.mul (memory.grow (i32.const 1)) (i32.const 65536)))
            (i32.store (i32.const 0) (global.get $at))
            (i32.store (i32.const 4) (i32.const 27))
            (loop $again
                (i32.store8 (global.get $at) (i32.add (i32.and (global.get $at) (i32.const 255)) (i32.const 97)))
                (global.set $at (i32.add (global.get $at) (i32.const 1)))
                (br_if $again (i32.lt_u (i32.and (global.get $at) (i32.const 255)) (i32.const 26))))
            (i32.store8 (global.get $at) (i32.const 10))
            (table.set (i32.const 1) (ref.func $print)))
        (func (export "resume") (call_indirect (type $f) (i32.const 1))))"#,
    );
    let qjs = root.join("programs/real/qjs-snapshot.wasm");
    let (none, script) = (file("snapshot-elsewhere.txt", ""), root.join("tests/real/snapshot.js"));
    for (module, input, expected) in [
        (&small, &none, "abcdefghijklmnopqrstuvwxyz\n".into()),
        (&qjs, &script, fs::read_to_string(root.join("tests/real/snapshot.txt")).unwrap()),
    ] {
        if !module.exists() {
            println!("skipped: {} is missing", module.display());
            continue;
        }
        let output = output("elsewhere");
        let done = snapshot(module, &output, &["--rename", "_start=resume", "--allow-nondeterminism"]);
        assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
        let here = start(command().arg(&output).stdin(fs::File::open(input).unwrap())).finish();
        assert_eq!((&*stdout(&here), here.status.code()), (&*expected, Some(0)), "{}", stderr(&here));
        for engine in ["wasmtime", "node"] {
            let there = elsewhere(engine, &output, input);
            assert_eq!((&*stdout(&there), there.status.code()), (&*expected, Some(0)), "{engine}: {}", stderr(&there));
        }
    }
}

#[test]
fn clocks_and_random_numbers_are_refused_unless_they_are_allowed() {
    let random = "(drop (call $random (i32.const 0) (i32.const 4)))";
    let says = ["`random_get` is called", "--allow-nondeterminism", "wasm backtrace"];
    refused("random", random, &[], 134, &says);
    refused("random", random, &["--deterministic"], 134, &says);
    let time = "(drop (call $time (i32.const 0) (i64.const 0) (i32.const 0)))";
    refused("time", time, &[], 134, &["`clock_time_get` is called", "--allow-nondeterminism"]);
    let allowed = taken("allowed", random, &["--allow-nondeterminism"]);
    assert_eq!(invoke(&allowed, "word"), invoke(&allowed, "word"), "the copies have the same");
    let flags = ["--allow-nondeterminism", "--deterministic"];
    let same = [taken("same-1", random, &flags), taken("same-2", random, &flags)];
    assert_eq!(fs::read(&same[0]).unwrap(), fs::read(&same[1]).unwrap());
}

#[test]
fn failures_have_the_statuses_of_runs() {
    refused("log", "(call $log)", &[], 134, &["the import `env.log`", "wasm backtrace"]);
    refused("trap", "unreachable", &[], 134, &["trap: ", "wasm backtrace"]);
    refused("exit", "(call $exit (i32.const 7))", &[], 7, &["the initialiser exited with status 7"]);
    refused("exit-0", "(call $exit (i32.const 0))", &[], 1, &["the initialiser exited with status 0"]);
    let (thrown, output_of_thrown) =
        (file("snapshot-thrown.wat", r#"(module (tag $t (export "oops")) (func (export "init") (throw $t)))"#), output("thrown"));
    assert_fails(&snapshot(&thrown, &output_of_thrown, &[]), 134, &["oops"]);
    let forever = "(loop $again (br $again))";
    refused("fuel", forever, &["--fuel", "1000"], 134, &["fuel"]);
    refused("timeout", forever, &["--timeout", "0.1"], 134, &["not done within 0.1 s"]);
    let grow = "(if (i32.eq (memory.grow (i32.const 100)) (i32.const -1)) (then unreachable))";
    refused("memory", grow, &["--max-memory", "100000"], 134, &["trap: "]);
    refused("rename", "", &["--rename", "a=b"], 2, &["exports no `b`"]);
    refused("rename-twice", "", &["-r", "a=count", "-r", "a=word"], 2, &["two exports are to be `a`"]);

    let output = output("failures");
    let of = |name: &str, wat: &str| snapshot(&file(name, wat), &output, &[]);
    assert_fails(&of("snapshot-broken.wat", "(module (func"), 1, &["snapshot-broken.wat"]);
    assert_fails(&of("snapshot-params.wat", r#"(module (func (export "init") (param i32)))"#), 2, &["`init` is no initialiser"]);
    let memory = r#"(module (import "env" "memory" (memory 1)) (func (export "init")))"#;
    assert_fails(&of("snapshot-memory.wat", memory), 1, &["the memory `env.memory`"]);
    let global = r#"(module (import "env" "base" (global i32)) (func (export "init")))"#;
    assert_fails(&of("snapshot-global.wat", global), 1, &["unknown import `env::base`"]);
    assert_fails(&snapshot(Path::new("missing.wasm"), &output, &[]), 1, &["missing.wasm"]);
    assert!(!output.exists());
    let nowhere = Path::new("/nonexistent/folder/out.wasm");
    assert_fails(&snapshot(&module("nowhere", ""), nowhere, &[]), 1, &["/nonexistent/folder/out.wasm"]);
}

#[test]
fn the_output_replaces_a_file_entirely() {
    let path = module("replaced", "");
    let bytes = taken("replaced-once", "", &["--keep-init"]);
    fs::copy(&bytes, &path).unwrap();
    let done = snapshot(&path, &path, &["--keep-init"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    assert_eq!(invoke(&path, "count"), "2");
}
