//! The built `weir`: exit statuses, and the output on each stream.

mod common;

use common::{assert_fails, file, program, stderr, stdout, weir};
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Imports of WASI, and a memory.
const WASI: &str = r#"
    (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ_sizes_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_get" (func $environ_get (param i32 i32) (result i32)))
    (memory (export "memory") 1)"#;

const LIBRARY: &str = r#"(module $library
    (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
    (func (export "swap") (param i64 f64) (result f64 i64) (local.get 1) (local.get 0))
    (func (export "half") (param f32) (result f32) (f32.mul (local.get 0) (f32.const 0.5)))
    (func (export "divide") (param i32 i32) (result i32) (call $divide (local.get 0) (local.get 1)))
    (func $divide (param i32 i32) (result i32) (i32.div_s (local.get 0) (local.get 1)))
    (func (export "forever") (loop $l (br $l)))
    (func $deeper (export "deeper") (result i32) (i32.add (i32.const 1) (call $deeper)))
    (func (export "fd") (param externref)))"#;

/// An error does not list thousands of names.
#[test]
fn a_library_without_a_start_names_some_of_its_functions() {
    let funcs: String = (0..40).map(|i| format!(r#"(func (export "f{i}"))"#)).collect();
    let library = file("many.wat", format!("(module {funcs})"));
    let some =
        "use --invoke with one of `f0`, `f1`, `f2`, `f3`, `f4`, `f5`, `f6`, `f7`, `f8`, `f9`, `f10`, `f11` and 28 more, which";
    assert_fails(&weir([&library]), 2, &["it exports no `_start`", some]);
    assert_fails(
        &weir(["--invoke".as_ref(), "g".as_ref(), library.as_os_str()]),
        2,
        &["no function `g`; it exports `f0`", "`f11` and 28 more"],
    );
}

#[test]
fn programs_run_with_their_arguments() {
    let output = weir([program("hello").as_os_str(), "you".as_ref(), "--tier".as_ref(), "them".as_ref()]);
    assert_eq!(stdout(&output), "Hello, you!\nHello, --tier!\nHello, them!\n");
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    for tier in ["auto", "interp", "native", "cranelift"] {
        if tier == "cranelift" && !cfg!(feature = "cranelift") {
            continue;
        }
        let output = weir(["run".as_ref(), "--tier".as_ref(), tier.as_ref(), program("fib").as_os_str(), "15".as_ref()]);
        assert_eq!((stdout(&output), output.status.code()), ("fib 15: 610\n".into(), Some(0)), "{tier}: {}", stderr(&output));
    }
    let output = weir(["--no-jit".as_ref(), program("fib").as_os_str(), "10".as_ref()]);
    assert_eq!(stdout(&output), "fib 10: 55\n");
}

#[test]
fn the_exit_status_is_the_programs() {
    for (status, seen) in [(0, 0), (1, 1), (42, 42), (255, 255), (256, 0)] {
        let text = format!(r#"(module {WASI} (func (export "_start") (call $proc_exit (i32.const {status})) unreachable))"#);
        let output = weir([file(&format!("exit{status}.wat"), text)]);
        assert_eq!(output.status.code(), Some(seen));
        assert_eq!(stderr(&output), "");
    }
}

#[test]
fn traps_exit_with_134_and_a_backtrace() {
    let library = file("traps.wat", LIBRARY);
    let invoke = |func: &str, args: &[&str]| weir([&["--invoke", func, library.to_str().expect("UTF-8")], args].concat());
    assert_fails(
        &invoke("divide", &["1", "0"]),
        134,
        &["trap: integer divide by zero\n", "0: library!divide at 0x", "1: library!"],
    );
    assert_fails(&invoke("deeper", &[]), 134, &["trap: call stack exhausted", "0: library!deeper", "more"]);
    let text = format!(r#"(module {WASI} (func $main (export "_start") (drop (i32.load (i32.const -1)))))"#);
    let says = "trap: out of bounds memory access: address 4294967295, and the memory has 65536 bytes\n";
    assert_fails(&weir([file("oob.wat", text)]), 134, &[says, "!main"]);
    let output = weir([file("start.wat", "(module (func $init unreachable) (start $init))")]);
    assert_fails(&output, 134, &["trap: unreachable", "!init"]);
    let output = weir([file("segment.wat", r#"(module (memory 1) (data (i32.const 65536) "x") (func (export "_start")))"#)]);
    assert_fails(&output, 134, &["out of bounds memory access"]);
}

#[test]
fn uncaught_exceptions_exit_with_134_and_say_what_was_thrown() {
    let text = r#"(module $library
        (tag $oops (export "oops") (param i32 f64))
        (func $thrower (throw $oops (i32.const -7) (f64.const 0.5)))
        (func (export "new") (call $thrower))
        (func $cleanup (export "cleanup")
            (block $all (result exnref) (try_table (catch_all_ref $all) (call $thrower)) (return))
            throw_ref)
        (func (export "legacy") (result i32) try (result i32) (call $cleanup) (i32.const 1) catch $oops (drop) end))"#;
    let library = file("exceptions.wat", text);
    let invoke = |func: &str, tier: &str| weir(["--tier", tier, "--invoke", func, library.to_str().expect("UTF-8")]);
    for tier in ["auto", "interp", "native"] {
        for func in ["new", "cleanup"] {
            let expected =
                ["weir: uncaught exception oops(-7, 0.5) thrown by thrower at offset 0xb, in the module 0x", "library!"];
            assert_fails(&invoke(func, tier), 134, &expected);
        }
        assert_eq!(stdout(&invoke("legacy", tier)), "-7\n");
    }
    let library = library.to_str().expect("UTF-8");
    assert_eq!(stdout(&weir(["validate", library])), "");
    assert!(stdout(&weir(["dump", library, "--func", "legacy"])).contains("try"));
}

#[test]
fn fuel_runs_out() {
    let library = file("fuel.wat", LIBRARY);
    for tier in ["interp", "auto"] {
        let args = ["--tier", tier, "--fuel", "100000", "--invoke", "forever", library.to_str().expect("UTF-8")];
        assert_fails(&weir(args), 134, &["trap: all fuel consumed"]);
    }
    let enough = ["--fuel", "100", "--invoke", "add", library.to_str().expect("UTF-8"), "1", "2"];
    assert_eq!(stdout(&weir(enough)), "3\n");
}

#[test]
fn bad_modules_exit_with_1() {
    assert_fails(&weir(["no-such-file.wasm"]), 1, &["no-such-file.wasm", "No such file"]);
    assert_fails(&weir([env!("CARGO_TARGET_TMPDIR")]), 1, &["s a directory"]);
    assert_fails(&weir([file("empty.wasm", "")]), 1, &["empty.wasm"]);
    assert_fails(&weir([file("cut.wasm", &fs::read(program("hello")).expect("hello")[..5000])]), 1, &["cut.wasm"]);
    assert_fails(&weir([file("version.wasm", b"\0asm\x02\0\0\0")]), 1, &["version.wasm"]);
    assert_fails(&weir([file("syntax.wat", "(module (func (export")]), 1, &["syntax.wat"]);
    assert_fails(
        &weir([file("noise.wasm", [0x7F, b'E', b'L', b'F', 0xFF])]),
        1,
        &["noise.wasm", "a binary module begins", "offset 0x0"],
    );
    assert_fails(&weir([file("type.wat", "(module (func (result i32) (i64.const 1)))")]), 1, &["type mismatch"]);
    let unlinkable = r#"(module (import "moon" "rise" (func)) (func (export "_start")))"#;
    assert_fails(&weir([file("moon.wat", unlinkable)]), 1, &["instantiating", "moon.wat", "moon", "rise", "unknown import"]);
    let wrong = r#"(module (import "wasi_snapshot_preview1" "proc_exit" (func (param i64))) (func (export "_start")))"#;
    assert_fails(&weir([file("wrong.wat", wrong)]), 1, &["incompatible import type", "proc_exit"]);
}

#[test]
fn functions_are_validated_when_they_are_called() {
    let text = "(module (func (export \"good\") (result i32) i32.const 7) (func $bad (export \"bad\") (result i32) i64.const 7))";
    let module = file("lazy.wat", text);
    let invoke = |name: &str| weir(["--lazy".as_ref(), "--invoke".as_ref(), name.as_ref(), module.as_os_str()]);
    assert_eq!(stdout(&invoke("good")), "7\n");
    assert_fails(&invoke("bad"), 134, &["trap: type mismatch", "!bad"]);
    assert_fails(&weir(["--invoke".as_ref(), "good".as_ref(), module.as_os_str()]), 1, &["type mismatch"]);
}

#[test]
fn wrong_usage_exits_with_2() {
    let library = file("usage.wat", LIBRARY);
    let library = library.to_str().expect("UTF-8");
    let invoke = |args: &[&str]| weir([&["--invoke"], args].concat());
    assert_fails(&weir([library]), 2, &["`_start`", "`add`", "`swap`"]);
    assert_fails(&invoke(&["sub", library]), 2, &["`sub`", "`add`"]);
    assert_fails(&invoke(&["add", library, "1"]), 2, &["add", "expected 2 arguments, found 1"]);
    assert_fails(&invoke(&["add", library, "1", "two"]), 2, &["`two`", "i32"]);
    assert_fails(&invoke(&["add", library, "1", "4294967296"]), 2, &["`4294967296`", "i32"]);
    assert_fails(&invoke(&["fd", library, "0"]), 2, &["externref"]);
    for args in [&["--tier", "warp", library][..], &["--fuel", "lots", library], &["--nonsense", library], &[], &["run"]] {
        assert_eq!(weir(args).status.code(), Some(2), "{args:?}");
    }
    let help = weir(["--help"]);
    assert_eq!(help.status.code(), Some(0));
    for word in ["Usage:", "Examples:", "--invoke", "validate", "134"] {
        assert!(stdout(&help).contains(word), "--help lacks {word}");
    }
    assert!(stdout(&weir(["--version"])).starts_with("weir "));
}

#[test]
fn invoke_prints_results_by_type() {
    let library = file("invoke.wat", LIBRARY);
    let library = library.to_str().expect("UTF-8");
    let invoke = |args: &[&str]| stdout(&weir([&["--invoke"], args].concat()));
    assert_eq!(invoke(&["add", library, "0x7fffffff", "1"]), "-2147483648\n");
    assert_eq!(invoke(&["add", library, "4294967295", "-1"]), "-2\n");
    assert_eq!(invoke(&["swap", library, "-9223372036854775808", "0.1"]), "0.1\n-9223372036854775808\n");
    assert_eq!(invoke(&["half", library, "inf"]), "inf\n");
    assert_eq!(invoke(&["half", library, "nan"]), "NaN\n");
    assert_eq!(invoke(&["half", library, "-0.0"]), "-0\n");
}

#[test]
fn vectors_are_arguments_and_results() {
    let text = r#"(module (func (export "add") (param v128 v128) (result v128) (i32x4.add (local.get 0) (local.get 1))))"#;
    let module = file("vectors.wat", text);
    let add = |a: &str, b: &str| weir(["--invoke".as_ref(), "add".as_ref(), module.as_os_str(), a.as_ref(), b.as_ref()]);
    assert_eq!(stdout(&add("i32x4:1,2,3,-1", "0x10")), "i32x4:17,2,3,-1\n");
    assert_fails(&add("1", "0x10"), 2, &["add: argument 1: expected a value of type v128, found `1`"]);
}

/// Clocks, random numbers and a NaN, as the program sees them.
const CHANCE: &str = r#"(module
    (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "\10\00\00\00\00\04\00\00")
    (func (export "_start") (local $clock i32)
        (loop $clocks
            (drop (call $clock (local.get $clock) (i64.const 1) (i32.add (i32.const 16) (i32.shl (local.get $clock) (i32.const 3)))))
            (br_if $clocks (i32.lt_u (local.tee $clock (i32.add (local.get $clock) (i32.const 1))) (i32.const 4))))
        (f64.store (i32.const 48) (f64.div (f64.const 0) (f64.const 0)))
        (drop (call $random (i32.const 56) (i32.const 900)))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#;

#[test]
fn deterministic_runs_are_the_same() {
    let module = file("chance.wat", CHANCE);
    let run = |flags: &[&str]| {
        let output = weir(flags.iter().map(OsStr::new).chain([module.as_os_str()]));
        assert!(output.status.success(), "{}", stderr(&output));
        output.stdout
    };
    let first = run(&["--deterministic"]);
    assert_eq!(first.len(), 1024);
    assert_eq!(first[32..40], 0x7FF8_0000_0000_0000u64.to_le_bytes(), "the canonical NaN");
    for tier in ["auto", "interp", "native", "cranelift"] {
        if tier != "cranelift" || cfg!(feature = "cranelift") {
            assert_eq!(run(&["--deterministic", "--tier", tier]), first, "{tier}");
        }
    }
    assert_ne!(run(&[]), first);
    assert_ne!(run(&[]), run(&[]), "and other runs are not the same");
}

#[test]
fn profilers_find_compiled_code() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("profilers");
    fs::create_dir_all(&folder).expect("a writable folder");
    let module = file("profilers.wat", r#"(module (func $seven (export "seven") (result i32) (i32.const 7)))"#);
    let run = |kind: &str, folder: &Path| {
        let mut command = common::command();
        command.args(["--profile", kind, "--tier", "native", "--invoke", "seven"]).arg(&module).current_dir(folder);
        let process = common::start(&mut command);
        (process.0.id(), process.finish())
    };

    let (pid, output) = run("perfmap", &folder);
    assert_eq!((output.status.code(), stdout(&output).trim()), (Some(0), "7"));
    let path = PathBuf::from(format!("/tmp/perf-{pid}.map"));
    let map = fs::read_to_string(&path).expect("the map is there");
    fs::remove_file(path).expect("it is ours");
    let [address, len, name] = map.trim().split(' ').collect::<Vec<_>>().try_into().expect("one function");
    assert!(u64::from_str_radix(address, 16).is_ok() && u64::from_str_radix(len, 16).is_ok_and(|len| len > 5), "{map}");
    assert_eq!(name, "seven");

    let (pid, output) = run("jitdump", &folder);
    assert_eq!((output.status.code(), stdout(&output).trim()), (Some(0), "7"));
    let path = folder.join(format!("jit-{pid}.dump"));
    let dump = fs::read(&path).expect("the dump is there");
    fs::remove_file(path).expect("it is ours");
    let word = |at: usize| u32::from_ne_bytes(dump[at..at + 4].try_into().expect("four bytes"));
    let long = |at: usize| u64::from_ne_bytes(dump[at..at + 8].try_into().expect("eight bytes"));
    assert_eq!([word(0), word(4), word(8), word(20)], [0x4A69_5444, 1, 40, pid]);
    assert_eq!([word(40), word(44), word(56)], [0, dump.len() as u32 - 40, pid], "one function");
    let (name, code) = dump[96..].split_at(6);
    assert_eq!((name, code.len() as u64), (&b"seven\0"[..], long(80)));

    let (_, output) = run("jitdump", Path::new("/proc"));
    assert_fails(&output, 1, &["the profiler's file can't be written"]);
}

#[test]
fn profiles_say_what_was_counted() {
    let text = r#"(module $m
        (type $t (func (result i32)))
        (table funcref (elem $one))
        (func $one (type $t) (i32.const 1))
        (func $untaken (if (i32.const 1) (then)))
        (func $spin (export "spin") (param i32)
            (loop
                (if (i32.and (local.get 0) (i32.const 1)) (then) (else))
                (block (block (br_table 0 1 (local.get 0))))
                (drop (call_indirect (type $t) (i32.const 0)))
                (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))"#;
    let module = file("profile.wat", text);
    let flags = ["--profile", "counts", "--tier", "interp", "--invoke", "spin"].map(OsStr::new);
    let output = weir(flags.iter().copied().chain([module.as_os_str(), "9".as_ref()]));
    let printed = stderr(&output);
    let head = printed.lines().nth(1).unwrap_or_default();
    assert!(head.starts_with("function 2 `spin`: ") && head.ends_with(", 100.0 %"), "only what was executed: {printed}");
    for line in ["if", "true 5, false 4", "default: 9", "call_indirect", "function 0 `one` 9", "taken 8, not taken 1"] {
        assert!(printed.contains(line), "`{line}` is missing in: {printed}");
    }
    assert_eq!(printed.lines().count(), 6, "{printed}");
}

#[test]
fn libraries_are_initialised_and_start_functions_run() {
    let text = r#"(module (global $g (mut i32) (i32.const 1))
        (func (export "_initialize") (global.set $g (i32.const 2)))
        (func (export "get") (result i32) (global.get $g)))"#;
    let reactor = file("reactor.wat", text);
    assert_eq!(stdout(&weir(["--invoke".as_ref(), "get".as_ref(), reactor.as_os_str()])), "2\n");
    let text = format!(r#"(module {WASI} (func $main (call $proc_exit (i32.const 5))) (start $main))"#);
    assert_eq!(weir([file("only-start.wat", text)]).status.code(), Some(5));
}

#[test]
fn the_environment_is_what_is_asked_for() {
    // Writes the environment's strings, as many bytes as there are.
    let text = format!(
        r#"(module {WASI} (func (export "_start")
            (drop (call $environ_sizes_get (i32.const 0) (i32.const 20)))
            (drop (call $environ_get (i32.const 1024) (i32.const 4096)))
            (i32.store (i32.const 16) (i32.const 4096))
            (drop (call $fd_write (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 0)))))"#
    );
    let path = file("environ.wat", text);
    let run = |flags: &[&str]| {
        let mut command = common::command();
        command.args(flags).arg(&path).env("WEIR_TEST_INHERITED", "yes").env_remove("WEIR_TEST_ABSENT");
        stdout(&common::start(&mut command).finish())
    };
    assert_eq!(run(&[]), "");
    let flags = ["--env", "A=b=c", "--env", "WEIR_TEST_INHERITED", "--env", "WEIR_TEST_ABSENT", "--env=EMPTY="];
    assert_eq!(run(&flags), "A=b=c\0WEIR_TEST_INHERITED=yes\0EMPTY=\0");
}

#[test]
fn input_is_read_and_output_passed_on() {
    // Copies standard input to standard output.
    let text = format!(
        r#"(module {WASI} (func (export "_start")
            (loop $next
                (i32.store (i32.const 0) (i32.const 1024))
                (i32.store (i32.const 4) (i32.const 3000))
                (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 4)))
                (if (i32.load (i32.const 4))
                    (then
                        (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
                        (br $next))))))"#
    );
    let mut process = common::start(common::command().arg(file("cat.wat", text)).stdin(Stdio::piped()));
    let sent: Vec<u8> = (0..20000u32).map(|i| (i % 251) as u8).collect();
    process.0.stdin.take().expect("a pipe").write_all(&sent).expect("it reads");
    let output = process.finish();
    assert!(output.stdout == sent, "{} bytes came back", output.stdout.len());
    assert_eq!(output.status.code(), Some(0));
}

/// Copies `in` to `out`, both in the first folder that is opened for it: one buffer full.
const COPY: &str = r#"(module
    (import "wasi_snapshot_preview1" "path_open"
        (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_prestat_dir_name" (func $name (param i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "in") (data (i32.const 8) "out") (data (i32.const 16) "\00\04\00\00\00\10\00\00")
    (func $check (param $errno i32) (if (local.get $errno) (then (call $proc_exit (local.get $errno)))))
    (func (export "_start") (local $fd i32)
        (call $check (call $path_open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 2) (i32.const 0)
            (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 32)))
        (call $check (call $fd_read (i32.load (i32.const 32)) (i32.const 16) (i32.const 1) (i32.const 20)))
        (call $check (call $path_open (i32.const 3) (i32.const 0) (i32.const 8) (i32.const 3) (i32.const 1)
            (i64.const 64) (i64.const 0) (i32.const 0) (i32.const 32)))
        (call $check (call $fd_write (i32.load (i32.const 32)) (i32.const 16) (i32.const 1) (i32.const 24)))
        (call $check (call $name (i32.const 3) (i32.const 1024) (i32.const 5)))
        (i32.store (i32.const 20) (i32.const 5))
        (call $check (call $fd_write (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 24)))))"#;

#[test]
fn folders_are_opened() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("folder");
    fs::create_dir_all(&folder).expect("a writable folder");
    fs::write(folder.join("in"), "contents").expect("a writable folder");
    let copy = file("copy.wat", COPY);
    let mut dir = folder.clone().into_os_string();
    dir.push("::/data");
    let output = weir(["--dir".as_ref(), dir.as_os_str(), copy.as_os_str()]);
    assert_eq!((output.status.code(), stdout(&output), stderr(&output)), (Some(0), "/data".into(), String::new()));
    assert_eq!(fs::read(folder.join("out")).expect("the copy"), b"contents");

    let output = common::start(common::command().args(["--dir", "."]).arg(&copy).current_dir(&folder)).finish();
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), ".onte".into()), "over what was read");
    assert_eq!(weir([copy.as_os_str()]).status.code(), Some(8), "no descriptor 3 without a folder");
    assert_fails(&weir(["--dir".as_ref(), "no/such/dir".as_ref(), copy.as_os_str()]), 2, &["--dir no/such/dir: No such file"]);
    assert_fails(&weir(["--dir".as_ref(), copy.as_os_str(), copy.as_os_str()]), 2, &["Not a directory"]);
}

#[test]
fn a_socket_is_handed_over() {
    let text = r#"(module
        (import "wasi_snapshot_preview1" "sock_accept" (func $sock_accept (param i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
        (memory (export "memory") 1)
        (func (export "_start") (call $proc_exit (call $sock_accept (i32.const 3) (i32.const 1) (i32.const 0)))))"#;
    let accept = file("accept.wat", text);
    let output = weir(["--listen".as_ref(), "127.0.0.1:0".as_ref(), accept.as_os_str()]);
    assert_eq!(output.status.code(), Some(28), "the flag is refused, the descriptor not: {}", stderr(&output));
    assert_eq!(weir([accept.as_os_str()]).status.code(), Some(8));
    assert_fails(&weir(["--listen".as_ref(), "nowhere".as_ref(), accept.as_os_str()]), 2, &["--listen nowhere: "]);
}

#[test]
fn modules_are_linked_with_those_loaded_before() {
    let text = r#"(module (import "base" "n" (global $n i32)) (func (export "twice") (result i32)
        (i32.mul (global.get $n) (i32.const 2))))"#;
    let base = r#"(module (global (export "n") (mut i32) (i32.const 0)) (func (export "_initialize")))"#;
    let base = file("base.wat", base.replace("(mut i32) (i32.const 0)", "i32 (i32.const 21)"));
    let lib = file("lib.wat", text);
    let app = file("app.wat", r#"(module (import "lib" "twice" (func (result i32))) (export "twice" (func 0)))"#);
    let preload = |name: &str, path: &Path| format!("{name}={}", path.display());
    let (base, lib, app) = (preload("base", &base), preload("lib", &lib), app.to_str().expect("UTF-8"));
    let output = weir(["--preload", &base, "--preload", &lib, "--invoke", "twice", app]);
    assert_eq!((stdout(&output), stderr(&output)), ("42\n".into(), String::new()));
    assert_fails(&weir(["--preload", &lib, "--preload", &base, "--invoke", "twice", app]), 1, &["base", "unknown import"]);
    assert_fails(&weir(["--preload", "lib", "--invoke", "twice", app]), 2, &["--preload lib: expected NAME=FILE"]);
    assert_fails(&weir(["--preload", "lib=none.wat", "--invoke", "twice", app]), 1, &["none.wat", "No such file"]);
    assert_fails(&weir(["--preload", &base, "--preload", &base, "--invoke", "twice", app]), 1, &["base", "n"]);
}

#[test]
fn time_runs_out() {
    let library = file("time.wat", LIBRARY);
    for tier in ["interp", "native", "auto"] {
        let args = ["--tier", tier, "--timeout", "0.2", "--invoke", "forever", library.to_str().expect("UTF-8")];
        assert_fails(&weir(args), 134, &["trap: not done within 0.2 s: interrupt", "library!"]);
    }
    // In a host function, which notices nothing.
    let text = format!(
        r#"(module {WASI} (func (export "_start")
            (i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const 1))
            (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))))"#
    );
    let mut command = common::command();
    let mut process = common::start(command.args(["--timeout", "0.2"]).arg(file("read.wat", text)).stdin(Stdio::piped()));
    let input = process.0.stdin.take();
    assert_fails(&process.finish(), 134, &["trap: not done within 0.2 s"]);
    drop(input);
    assert_eq!(stdout(&weir(["--timeout", "60", "--invoke", "half", library.to_str().expect("UTF-8"), "3"])), "1.5\n");
}

#[test]
fn memory_is_limited() {
    let text = r#"(module (memory 1) (memory 1)
        (func (export "grow") (param i32 i32) (result i32 i32)
            (memory.grow 0 (local.get 0)) (memory.grow 1 (local.get 1))))"#;
    let path = file("grow.wat", text);
    let grow = |limit: &str, args: [&str; 2]| {
        weir([&["--max-memory", limit, "--invoke", "grow", path.to_str().expect("UTF-8")], &args[..]].concat())
    };
    assert_eq!(stdout(&grow("262144", ["1", "1"])), "1\n1\n");
    assert_eq!(stdout(&grow("262144", ["2", "1"])), "1\n-1\n", "both together");
    assert_fails(&grow("131071", ["0", "0"]), 134, &["65536 bytes exceeds"]);
}

#[test]
fn every_access_can_be_checked() {
    let text = format!(r#"(module {WASI} (func $main (export "_start") (drop (i32.load (i32.const -1)))))"#);
    let path = file("checked.wat", text);
    for tier in ["interp", "native"] {
        let output = weir(["--no-signals".as_ref(), "--tier".as_ref(), tier.as_ref(), path.as_os_str()]);
        assert_fails(&output, 134, &["trap: out of bounds memory access", "!main"]);
        let output = weir(["--no-signals".as_ref(), "--tier".as_ref(), tier.as_ref(), program("sort").as_os_str(), "9".as_ref()]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}

/// Shells report 130 for a process that ends by signal 2.
#[test]
fn interruption_ends_the_program() {
    let text = format!(
        r#"(module {WASI} (data (i32.const 0) "\08\00\00\00\06\00\00\00ready\0a")
            (func (export "_start")
                (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))
                (loop $forever (br $forever))))"#
    );
    // The signal may be ignored in the process that runs the tests.
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", common::WEIR, "--timeout", "60"]).arg(file("interrupted.wat", text));
    let mut process = common::start(command.stdout(Stdio::piped()));
    let mut line = [0; 6];
    process.0.stdout.as_mut().expect("a pipe").read_exact(&mut line).expect("the program has started");
    assert_eq!(&line, b"ready\n");
    let sent = Command::new("kill").args(["-INT", &process.0.id().to_string()]).status().expect("kill starts");
    assert!(sent.success());
    assert_eq!(process.finish().status.signal(), Some(2));
}

#[test]
fn modules_are_dumped() {
    let text = r#"(module $dumped (type (func)) (import "m" "f" (func (param i32))) (memory 1 2) (table 3 funcref)
        (global (mut i64) (i64.const 1)) (elem (i32.const 1) func 0) (data (i32.const 8) "abc")
        (func $body (export "g") (loop (br_if 0 (i32.const 0)))))"#;
    let path = file("dump.wat", text);
    let output = weir(["dump".as_ref(), path.as_os_str()]);
    let text = stdout(&output);
    let expected = [
        "code, ",
        "custom `name`",
        "\"m\".\"f\": func",
        "0: 1 to 2 pages of 65536 bytes",
        "0: 3 or more funcref",
        "0: mutable i64",
        "\"g\": func 1",
        "0: 1 of funcref, table 0 at I32(1)",
        "3 bytes, memory 0 at I32(8)",
        "func 1",
        "br_if",
    ];
    for part in expected {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
    let only = stdout(&weir(["dump".as_ref(), "--func".as_ref(), "body".as_ref(), path.as_os_str()]));
    assert!(only.starts_with("func 1") && text.ends_with(&only), "{only}");
    assert_fails(&weir(["dump".as_ref(), "--func".as_ref(), "0".as_ref(), path.as_os_str()]), 2, &["imported"]);
    assert_fails(&weir(["dump", "none.wasm"]), 1, &["none.wasm"]);
    // Every real program, whole.
    assert!(stdout(&weir(["dump".as_ref(), program("picture").as_os_str()])).lines().count() > 1000);
}

/// Reads a little of the output of a program that writes for ever, then closes the pipe.
#[test]
fn a_closed_pipe_ends_the_program_quietly() {
    let text = format!(
        r#"(module {WASI} (data (i32.const 0) "\08\00\00\00\08\00\00\00again..\0a")
            (func (export "_start")
                (loop $next (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16))) (br $next))))"#
    );
    let mut process = common::start(common::command().arg(file("yes.wat", text)));
    let mut start = [0; 8];
    process.0.stdout.take().expect("a pipe").read_exact(&mut start).expect("it writes");
    assert_eq!(&start, b"again..\n");
    let output = process.finish();
    assert_eq!((output.status.code(), stderr(&output)), (Some(141), String::new()));
}

#[test]
fn the_optimiser_can_be_restrained() {
    let changes = |flags: &[&str]| -> serde_json::Map<String, serde_json::Value> {
        let fixed = ["--tier", "native", "--stats=json"];
        let program = program("fib");
        let program = program.to_str().expect("UTF-8");
        let output = weir([&fixed[..], flags, &[program, "12"]].concat());
        assert_eq!(stdout(&output), "fib 12: 144\n", "{flags:?}");
        let stats: serde_json::Value = serde_json::from_str(&stderr(&output)).expect("one JSON object");
        stats["opt"].as_object().expect("counts by pass").clone()
    };
    let rewrites = |opt: &serde_json::Map<String, serde_json::Value>| opt.values().filter_map(|n| n.as_u64()).sum::<u64>();
    let all = changes(&[]);
    assert!(all.contains_key("simplify") && all.contains_key("dce") && rewrites(&all) > 10, "{all:?}");
    let without = changes(&["--pass-off", "simplify", "--pass-off", "dce"]);
    assert!(without.contains_key("gvn") && !without.contains_key("simplify") && !without.contains_key("dce"), "{without:?}");
    assert_eq!(rewrites(&changes(&["--rewrite-fuel", "0"])), 0);
    let unknown = weir(["--pass-off", "magic", "a.wasm"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("magic") && stderr(&unknown).contains("simplify"), "{}", stderr(&unknown));
}

/// The names that `--stats=json` prints. Programs read them: none may change.
const STATISTICS: &str = "wall_ms validate_ms body_bytes accepted_bytes functions stored compiler_panics no_native_code \
    osr_entries osr_exits resumed crossings interpreted_bytes tier_up compile_ms bytecode_bytes_compiled code_bytes recompiled retired \
    retired_bytes freed_bytes opt traps peak_memory ssa gates steps spills reloads copies";

/// The names in an object, in order.
fn names(object: &serde_json::Value) -> String {
    object.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn stats_go_to_standard_error() {
    let output = weir(["--stats=json".as_ref(), program("fib").as_os_str(), "12".as_ref()]);
    assert_eq!(stdout(&output), "fib 12: 144\n");
    let stats: serde_json::Value = serde_json::from_str(&stderr(&output)).expect("one JSON object");
    assert!(stats["wall_ms"].as_f64().is_some_and(|ms| ms > 0.0), "{stats}");
    assert!(stats["functions"]["total"].as_u64() > stats["functions"]["called"].as_u64(), "{stats}");
    assert!(stats["functions"]["called"].as_u64() > Some(0), "{stats}");
    assert_eq!(names(&stats), STATISTICS);
    assert_eq!(names(&stats["functions"]), "total called interpreted native cranelift baseline evaluated fallbacks");
    assert_eq!(names(&stats["stored"]), "cache unwritten optimised baseline damaged module_read");
    assert_eq!(names(&stats["ssa"]), "phis trivial_removed folded simplified reduced shared pruned values");
    assert_eq!(names(&stats["gates"]), "constants branches blocks");
    let missing: Vec<_> = stats.as_object().into_iter().flatten().filter(|(_, value)| value.is_null()).collect();
    assert_eq!(missing.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["no_native_code"], "{stats}");

    let output = weir(["--stats".as_ref(), program("hello").as_os_str()]);
    assert_eq!(stdout(&output), "Hello, world!\n");
    assert!(stderr(&output).contains(" functions "), "{}", stderr(&output));

    let library = file("stats.wat", LIBRARY);
    let output = weir(["--stats=json", "--invoke", "divide", library.to_str().expect("UTF-8"), "1", "0"]);
    assert_eq!(output.status.code(), Some(134));
    assert!(stderr(&output).contains(r#""traps":1"#) && stderr(&output).contains("divide by zero"), "{}", stderr(&output));
}

/// A program that is one call, whose first OSR body was compiled before it took the other arm: it leaves that for a second one.
#[test]
fn stats_tell_that_a_loop_was_compiled_again() {
    let text = r#"(module
        (func (export "run") (param $n i32) (param $switch i32) (result i64) (local $i i32) (local $sum i64)
            (loop $again
                (if (i32.lt_u (local.get $i) (local.get $switch))
                    (then (local.set $sum (i64.add (local.get $sum) (i64.extend_i32_u (local.get $i)))))
                    (else (local.set $sum (i64.xor (i64.rotl (local.get $sum) (i64.const 5)) (i64.const 77)))))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br_if $again (i32.lt_u (local.get $i) (local.get $n))))
            (local.get $sum)))"#;
    let module = file("phases.wat", text);
    let run = |tier: &str| {
        let fixed = ["--deterministic", "--stats=json", "--invoke", "run", "--tier", tier];
        let module = module.to_str().expect("UTF-8");
        let output = weir([&fixed[..], &[module, "20000000", "100000"]].concat());
        let stats: serde_json::Value = serde_json::from_str(&stderr(&output)).expect("one JSON object");
        (stdout(&output), stats)
    };
    let ((expected, once), (result, stats)) = (run("native"), run("auto"));
    assert_eq!(result, expected);
    let of = |stats: &serde_json::Value, name: &str| stats[name].as_u64();
    assert_eq!((of(&once, "osr_exits"), of(&stats, "osr_exits")), (Some(0), Some(1)), "{stats}");
    assert!(of(&stats, "recompiled") >= Some(1) && of(&stats, "osr_entries") >= Some(3), "{stats}");
}

/// Neither local is constant, but the same condition decides both, and the first is always greater.
#[test]
fn stats_tell_what_only_gates_proved() {
    let text = r#"(module (func (export "f") (param i32) (result i32) (local i32 i32)
        (if (local.get 0)
            (then (local.set 1 (i32.const 2)) (local.set 2 (i32.const 1)))
            (else (local.set 1 (i32.const 4)) (local.set 2 (i32.const 3))))
        (i32.gt_s (local.get 1) (local.get 2))))"#;
    let path = file("gates.wat", text);
    let run = |flags: &[&str]| {
        let call = ["--tier", "native", "--invoke", "f", path.to_str().expect("UTF-8"), "7"];
        let output = weir([flags, &call].concat());
        assert_eq!(stdout(&output), "1\n", "{}", stderr(&output));
        stderr(&output)
    };
    let gates = |flags: &[&str]| {
        let stats: serde_json::Value = serde_json::from_str(&run(flags)).expect("one JSON object");
        stats["gates"].clone()
    };
    let expected = serde_json::json!({"constants": 1, "branches": 0, "blocks": 0});
    assert_eq!(gates(&["--stats=json"]), expected);
    let none = serde_json::json!({"constants": 0, "branches": 0, "blocks": 0});
    assert_eq!(gates(&["--stats=json", "--pass-off", "constprop"]), none);
    let text = run(&["--stats=compiler"]);
    assert!(text.contains("proved by gates alone: constants 1, branches 0, dead blocks 0"), "{text}");
}

#[test]
fn validate_reports_the_first_bad_module() {
    let good = file("good.wat", LIBRARY);
    let bad = file("bad.wat", "(module (func (result i32)))");
    let output = weir(["validate".as_ref(), good.as_os_str(), program("picture").as_os_str()]);
    assert_eq!((output.status.code(), stdout(&output), stderr(&output)), (Some(0), String::new(), String::new()));
    let output = weir(["validate".as_ref(), good.as_os_str(), bad.as_os_str()]);
    assert_fails(&output, 1, &["bad.wat"]);
    assert_fails(&weir(["validate", "no-such-file.wasm"]), 1, &["no-such-file.wasm"]);
}

#[test]
fn stress_prints_nothing_of_its_own_and_changes_no_result() {
    for seed in ["0", "1", "18446744073709551615"] {
        let output = weir(["--stress".as_ref(), seed.as_ref(), program("nqueens").as_os_str(), "5".as_ref()]);
        assert_eq!((stdout(&output), output.status.code()), ("nqueens 5: 10\n".into(), Some(0)), "seed {seed}");
    }
}

#[test]
fn scripts_report_what_fails() {
    let add = r#"(module (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))"#;
    let right = r#"(assert_return (invoke "add" (i32.const 1) (i32.const 2)) (i32.const 3))"#;
    let wrong = r#"(assert_return (invoke "add" (i32.const 1) (i32.const 2)) (i32.const 4))"#;
    let output = weir(["wast".as_ref(), file("right.wast", format!("{add}\n{right}\n")).as_os_str()]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let output = weir(["wast".as_ref(), file("wrong.wast", format!("{add}\n{right}\n{wrong}\n")).as_os_str()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("wrong.wast:3"), "{}", stdout(&output));
    assert_fails(&weir(["wast", "no-such.wast"]), 1, &["no-such.wast"]);
}

#[test]
fn explore_shows_the_stages() {
    let text = r#"(module
        (func $sum (export "total") (param i32) (result i32) (local i32)
            (loop $next
                (local.set 1 (i32.add (local.get 1) (local.get 0)))
                (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
            (local.get 1))
        (func (export "one") (result i32) (i32.const 1)))"#;
    let path = file("explore.wat", text);
    let explore = |args: &[&str]| weir([&["explore", path.to_str().expect("UTF-8")], args].concat());
    let all = stdout(&explore(&[]));
    for line in [";; function 0 sum", ";; function 1 one", ";; bytecode", ";; sidetable", ";; build", ";; asm"] {
        assert!(all.lines().any(|found| found.trim_end() == line), "`{line}` is missing in:\n{all}");
    }
    for name in ["0", "sum", "total"] {
        let build = stdout(&explore(&["--func", name, "--stage", "build"]));
        assert!(build.contains("phi") && build.contains("func 0 (i32) -> i32") && !build.contains("asm"), "{build}");
    }
    let text =
        "(module (table 3 funcref) (elem (i32.const 0) $a $b $a) (table (export \"t\") 1 funcref) (func $a) (func $b (param i32))
        (func $f (call_indirect (i32.const 0)) (call_indirect (param i64) (i64.const 0) (i32.const 0))
            (call_indirect 1 (i32.const 0))))";
    let table = file("targets.wat", text);
    let targets = stdout(&weir(["explore", table.to_str().expect("UTF-8"), "--func", "2", "--stage", "targets"]));
    let ends: Vec<&str> = targets.lines().filter_map(|line| line.split_once(": ")).map(|(_, targets)| targets).collect();
    assert_eq!(ends, ["f0", "none, it traps", "any, the table is not private"], "{targets}");
    let osr = stdout(&explore(&["--func", "sum", "--stage", "build", "--osr", "0"]));
    assert!(osr.contains("osr"), "{osr}");
    for wrong in [&["--func", "2"][..], &["--func", "nobody"], &["--func", "1", "--osr", "0"]] {
        assert_fails(&explore(wrong), 2, &["no "]);
    }
    let output = explore(&["--func", "1", "--stage", "magic"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("`magic`") && stderr(&output).contains("build"), "{}", stderr(&output));
}

/// The offsets that each pane of a page links its lines to, by the pane's name; and how many lines it has.
fn panes(html: &str) -> Vec<(&str, Vec<&str>, usize)> {
    let panes = html.split("<section id=\"stage-").skip(1).map(|pane| pane.split("</section>").next().unwrap_or(pane));
    panes
        .map(|pane| {
            let name = pane.split('"').next().expect("the name is quoted");
            let at = pane.split(" data-at=\"").skip(1).flat_map(|at| at.split('"').next().expect("quoted").split(' '));
            (name, at.collect(), pane.matches("\n<div").count())
        })
        .collect()
}

#[test]
fn explore_writes_a_page() {
    let text = r#"(module
        (func $"a<b>&c" (export "total") (param i32 i32) (result i32) (local i32)
            (loop $next
                (if (local.get 1) (then (local.set 2 (i32.add (local.get 2) (i32.mul (i32.const 0) (local.get 0))))))
                (local.set 2 (i32.add (local.get 2) (local.get 0)))
                (br_if $next (i32.ne (i32.const 0) (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
            (local.get 2)))"#;
    let (path, out) = (file("page.wat", text), file("page.html", ""));
    let (module, page) = (path.to_str().expect("UTF-8"), out.to_str().expect("UTF-8"));
    let all = stdout(&weir(["explore", module, "--func", "total"]));
    let output = weir(["explore", module, "--func", "total", "--html", page]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), ""), "{}", stderr(&output));
    let html = std::fs::read_to_string(&out).expect("the page was written");

    // The page is self-contained, and text of the module is escaped.
    for foreign in ["http:", "https:", "src=", "href=", "url(", "@import", "{{", "a<b>", "<b>"] {
        assert!(!html.contains(foreign), "`{foreign}` in the page");
    }
    assert!(html.contains("<h1>a&lt;b&gt;&amp;c</h1>"));

    // Every stage that is printed is there, with every line of it, in the same order.
    let shown = panes(&html);
    let stages: Vec<&str> = all.lines().filter_map(|line| line.strip_prefix(";; ")).skip(1).collect();
    assert_eq!(shown.len(), stages.len(), "{stages:?} and {shown:?}");
    for (stage, (name, _, _)) in stages.iter().zip(&shown) {
        assert!(name.starts_with(stage), "{stages:?} and {shown:?}");
        assert!(html.contains(&format!("data-stage=\"{name}\" aria-pressed")), "no button for {name}");
    }
    let pane = |wanted: &str| shown.iter().find(|(name, ..)| *name == wanted).unwrap_or_else(|| panic!("no {wanted}"));

    // Every instruction is linked by its offset, and all other stages by offsets of instructions.
    let dump = stdout(&weir(["dump", module, "--func", "total"]));
    let offsets: Vec<String> = dump
        .lines()
        .filter_map(|line| line.strip_prefix("0x"))
        .map(|line| line.split(' ').next().expect("an offset").trim_start_matches('0').to_string())
        .collect();
    assert!(offsets.len() > 20 && pane("bytecode").1 == offsets, "{offsets:?} and {:?}", pane("bytecode").1);
    for (name, at, lines) in &shown {
        let lost: Vec<_> = at.iter().filter(|offset| !offsets.iter().any(|known| known == *offset)).collect();
        assert!(lost.is_empty(), "{name} is linked to {lost:?}, where no instruction is");
        assert!(*lines > 0, "{name} is empty");
    }
    for name in ["build", "gates-of-build", "simplify", "lower", "regalloc", "asm"] {
        assert!(!pane(name).1.is_empty(), "no line of {name} is linked");
    }
    // Changed lines are marked.
    assert!(html.contains("<div class=\"new\"") && html.contains("<div class=\"old\""));

    for wrong in [&["--func", "0", "--html", page, "--stage", "asm"][..], &["--func", "0", "--html", "no/such/x"]] {
        let output = weir([&["explore", module], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", stderr(&output));
    }
}
