//! What the built `weir` says: to a user who gives it what it cannot run, and about names, profiles and statistics.

mod common;

use common::{assert_fails, file, program, start, stderr, stdout, weir};
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

/// Functions that are named as compilers of Rust and C++ name them, or only exported, or neither.
const NAMED: &str = r#"(module $app
    (func $_ZN4core9panicking5panic17h0123456789abcdefE unreachable)
    (func $_Z3addii (call 0))
    (func (call 1))
    (func (export "start here") (export "_start") (call 2))
    (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))"#;

fn strings<const N: usize>(args: [&dyn AsRef<OsStr>; N]) -> Vec<&OsStr> {
    args.into_iter().map(AsRef::as_ref).collect()
}

#[test]
fn a_component_is_named_as_one() {
    let advice = "this is a component, and Weir runs core modules: build the program for the target wasm32-wasip1 instead of wasm32-wasip2";
    let binary = file("component.wasm", b"\0asm\x0d\0\x01\0");
    let text = file("component.wat", "(component (core module))");
    for module in [&binary, &text] {
        let name = module.file_name().and_then(OsStr::to_str).expect("a name");
        for subcommand in ["run", "validate", "dump", "explore", "compile"] {
            let output = weir([subcommand.as_ref(), module.as_os_str()]);
            assert_fails(&output, 1, &[name, advice, "`wasm-tools component unbundle`"]);
            assert!(!stderr(&output).contains("enable"), "{}", stderr(&output));
        }
    }
    let output = weir(["snapshot".as_ref(), binary.as_os_str(), "-o".as_ref(), "never.wasm".as_ref()]);
    assert_fails(&output, 1, &["component.wasm", advice]);
}

#[test]
fn names_are_those_of_the_source_or_of_exports() {
    let module = file("named.wat", NAMED);
    let output = weir([&module]);
    assert_fails(&output, 134, &["trap: unreachable\n"]);
    let frames: Vec<String> = stderr(&output).lines().skip(2).map(String::from).collect();
    let names: Vec<&str> = frames.iter().filter_map(|line| line[7..].split(" at 0x").next()).collect();
    assert_eq!(names, ["app!core::panicking::panic", "app!add(int, int)", "app!<wasm function 2>", "app!start here"]);
    let explored = stdout(&weir(strings([&"explore", &module, &"--stage", &"bytes"])));
    let headers: Vec<&str> = explored.lines().filter(|line| line.starts_with(";; function")).collect();
    let expected = [" 0 core::panicking::panic", " 1 add(int, int)", " 2 ", " 3 start here", " 4 add"];
    assert_eq!(headers, expected.map(|header| format!(";; function{header}")));
}

#[test]
fn words_that_are_no_files_are_taken_for_subcommands() {
    let nearest =
        [("compil", "compile"), ("dmup", "dump"), ("completions", "completion"), ("validat", "validate"), ("runn", "run")];
    for (word, name) in nearest {
        let says = format!("weir: `{word}` is neither a file nor a subcommand; did you mean `{name}`?\n");
        assert_fails(&weir([word, "app.wasm"]), 2, &[&says]);
    }
    assert_fails(&weir(["settings"]), 2, &["`settings` is neither a file nor a subcommand; `weir --help` lists the subcommands"]);
    let explore = "weir: `explore` comes after an option: a subcommand goes before all options, as in `weir explore …`\n";
    assert_fails(&weir(["--no-cache", "explore", "app.wasm"]), 2, &[explore]);
    // These name files.
    for path in ["compil.wasm", "./compil", "no/such", "-", "/compil"] {
        assert_fails(&weir([path]), 1, &["loading "]);
    }
    assert_fails(&weir(["run", "compil"]), 1, &["loading compil: No such file"]);
    // A file that has the name of a word is read.
    let folder = file("word", "(module").parent().expect("a folder").to_owned();
    assert_fails(&start(common::command().arg("word").current_dir(folder)).finish(), 1, &["loading word: expected `)`"]);
}

/// Runs the command with this standard input.
fn with_input(args: &[&str], input: &[u8]) -> Output {
    let mut process = start(common::command().args(args).stdin(Stdio::piped()));
    process.0.stdin.take().expect("a pipe").write_all(input).expect("it reads");
    process.finish()
}

#[test]
fn modules_come_from_standard_input() {
    let binary = std::fs::read(program("hello")).expect("hello");
    assert_eq!(stdout(&with_input(&["-", "you"], &binary)), "Hello, you!\n");
    assert_eq!(stdout(&with_input(&["run", "-"], &binary)), "Hello, world!\n");
    assert_eq!(stdout(&with_input(&["--invoke", "add", "-", "2", "3"], NAMED.as_bytes())), "5\n");
    assert_eq!(with_input(&["validate", "-"], NAMED.as_bytes()).status.code(), Some(0));
    assert!(stdout(&with_input(&["dump", "-"], NAMED.as_bytes())).contains("\"add\": func 4"));
    assert!(stdout(&with_input(&["explore", "-", "--func", "add"], NAMED.as_bytes())).contains(";; asm"));
    assert_fails(&with_input(&["-"], b""), 1, &["loading standard input: it is empty"]);
    assert_fails(&with_input(&["validate", "-"], b"hello"), 1, &["loading standard input: it is neither a binary module"]);
    assert_fails(&with_input(&["-"], b"\0asm\x0d\0\x01\0"), 1, &["loading standard input: this is a component"]);
    let snapshot = Path::new(env!("CARGO_TARGET_TMPDIR")).join("of-input.wasm");
    let text = br#"(module (global (export "g") (mut i32) (i32.const 1)) (func (export "init") (global.set 0 (i32.const 2))))"#;
    let output = with_input(&["snapshot", "-", "--init", "init", "-o", snapshot.to_str().expect("UTF-8")], text);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(weir(strings([&"validate", &snapshot])).status.code(), Some(0));
}

#[test]
fn empty_files_are_called_empty() {
    for name in ["nothing-at-all.wasm", "nothing-at-all.wat"] {
        let output = weir([file(name, "")]);
        assert_fails(&output, 1, &[&format!("{name}: the file is empty")]);
        assert_eq!(stderr(&output).lines().count(), 1);
    }
}

#[test]
fn options_after_the_module_are_explained() {
    let library =
        file("misplaced.wat", r#"(module (func (export "inc") (param i32) (result i32) (i32.add (local.get 0) (i32.const 1))))"#);
    let library = library.to_str().expect("UTF-8");
    let hint = |name: &str| {
        format!(
            "\n`--{name}` comes after the module, so it is an argument of the program: weir's own options go before the module\n"
        )
    };
    assert_fails(&weir([library, "--invoke", "inc", "1"]), 2, &["it exports no `_start`", &hint("invoke")]);
    assert_fails(&weir(["--invoke", "inc", library, "1", "--stats=json"]), 2, &["expected 1 argument, found 2", &hint("stats")]);
    assert_fails(&weir(["run", "--invoke", "inc", library, "--fuel", "9"]), 2, &[&hint("fuel")]);
    for foreign in ["--colour", "stats", "-v", "--"] {
        let output = weir(["--invoke", "inc", library, "1", foreign]);
        assert_fails(&output, 2, &["expected 1 argument, found 2"]);
        assert!(!stderr(&output).contains("before the module"), "{}", stderr(&output));
    }
    // A program that runs has them as its arguments.
    let output = weir(strings([&program("hello"), &"--invoke", &"--fuel"]));
    assert_eq!((stdout(&output), stderr(&output)), ("Hello, --invoke!\nHello, --fuel!\n".into(), String::new()));
}

#[test]
fn segments_out_of_bounds_are_named() {
    let start = r#"(func (export "_start"))"#;
    let run = |name: &str, fields: &str| weir([file(name, format!("(module {fields} {start})"))]);
    let data =
        r#"(memory 1) (memory 0) (data (i32.const 65534) "ab") (data (memory 1) (i32.const 0) "") (data (i32.const 70000) "x")"#;
    let says = "trap: out of bounds memory access: data segment 2, 1 byte at 70000, and the memory has 65536 bytes\n";
    assert_fails(&run("data.wat", data), 134, &[says]);
    let says = "data segment 0, 3 bytes at 4294967295, and the memory has 0 bytes\n";
    assert_fails(&run("data_high.wat", r#"(memory 0) (data (i32.const -1) "abc")"#), 134, &[says]);
    let elements = "(table 1 funcref) (elem (i32.const 0) func 0) (elem (i32.const 0) func 0 0)";
    let says =
        "trap: undefined element: out of bounds table access: element segment 1, 2 elements at 0, and the table has 1 element\n";
    assert_fails(&run("elem.wat", elements), 134, &[says]);
}

#[test]
fn null_references_are_arguments_and_results() {
    let text = r#"(module
        (func (export "extern") (param externref) (result externref) (local.get 0))
        (func (export "func") (param funcref) (result funcref i32) (local.get 0) (ref.is_null (local.get 0)))
        (func $some (export "some") (param (ref func))))"#;
    let module = file("null.wat", text);
    let invoke = |name: &str, arg: &str| weir(strings([&"--invoke", &name, &module, &arg]));
    assert_eq!(stdout(&invoke("extern", "null")), "null\n");
    assert_eq!(stdout(&invoke("func", "null")), "null\n1\n");
    assert_fails(&invoke("extern", "1"), 2, &["argument 1: of the values of type externref, only `null` can be given"]);
    assert_fails(&invoke("some", "null"), 2, &["argument 1: expected a value of type (ref func), found `null`"]);
}

#[test]
fn vectors_are_printed_as_they_are_given() {
    let text = r#"(module (func (export "add") (param v128 v128) (result v128) (i32x4.add (local.get 0) (local.get 1))))"#;
    let module = file("shapes.wat", text);
    let add = |a: &str, b: &str| stdout(&weir(strings([&"--invoke", &"add", &module, &a, &b])));
    assert_eq!(add("i32x4:1,2,3,-1", "0x10"), "i32x4:17,2,3,-1\n");
    assert_eq!(add("0x10", "i16x8:1,0,2,0,3,0,-1,-1"), "i16x8:17,0,2,0,3,0,-1,-1\n");
    assert_eq!(add("0x10", "0x01"), "0x00000000000000000000000000000011\n");
    assert_eq!(add("f64x2:0.5,-1", "0x0"), "f64x2:0.5,-1\n");
}

/// `--stats` is for the program's author, `--stats=compiler` for the compiler's.
#[test]
fn statistics_are_for_users_or_for_authors_of_the_compiler() {
    let run = |format: &str| {
        let output = weir(strings([&format, &"--deterministic", &"--no-cache", &program("nqueens"), &"8"]));
        assert_eq!(stdout(&output), "nqueens 8: 92\n");
        stderr(&output)
    };
    let (text, compiler) = (run("--stats"), run("--stats=compiler"));
    for part in [
        " s, ",
        " of memory at most; validated in ",
        "\nweir: of ",
        " only interpreted, ",
        "\nweir: compiled ",
        "\nweir: hot, the first one first: ",
    ] {
        assert!(text.contains(part) && compiler.contains(part), "`{part}` is missing in: {text}{compiler}");
    }
    for part in ["% of the bodies validated without wasmparser", "optimised in ", "by gates alone", "compilation in ms: "] {
        assert!(!text.contains(part) && compiler.contains(part), "`{part}`: {text}{compiler}");
    }
    assert!(text.lines().chain(compiler.lines()).all(|line| line.starts_with("weir: ")), "{text}{compiler}");
    assert_eq!(weir(["--stats=all", "x.wasm"]).status.code(), Some(2));
}

#[test]
fn counts_are_sorted_and_have_totals() {
    let text = r#"(module $m
        (func $rare (param i32) (if (local.get 0) (then)))
        (func $_ZN3app4loopEv (export "run") (param i32)
            (loop
                (call $rare (i32.eqz (local.get 0)))
                (br_if 0 (i32.and (local.get 0) (i32.const 0x10000)))
                (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))"#;
    let module = file("counts.wat", text);
    let run =
        |arg: &str| stderr(&weir(strings([&"--profile", &"counts", &"--tier", &"interp", &"--invoke", &"run", &module, &arg])));
    let printed = run("900");
    let lines: Vec<&str> = printed.lines().collect();
    let total = |line: &str| line.split_once(": ").and_then(|(_, rest)| rest.split(',').next()?.parse::<u64>().ok());
    assert!(lines[0].starts_with("weir: counted ") && lines[0].contains(" in 2 functions"), "{printed}");
    assert!(lines[1].starts_with("function 1 `app::loop()`: "), "{printed}");
    let second = lines.iter().position(|line| line.starts_with("function 0 `rare`: ")).expect("the other function");
    let (first, other) = (total(lines[1]).expect("a number"), total(lines[second]).expect("a number"));
    assert!(first > other && lines[0].contains(&format!(" {} branches", first + other)), "{printed}");
    assert!(lines[1].ends_with(" %") && lines[second + 1].starts_with("  0x"), "{printed}");

    let none = file("no_counts.wat", r#"(module (func (export "run") (param i32)))"#);
    let printed = stderr(&weir(strings([&"--profile", &"counts", &"--invoke", &"run", &none, &"1"])));
    assert!(printed.starts_with("weir: nothing was counted: "), "{printed}");
}

#[test]
#[cfg(feature = "cranelift")]
fn code_of_no_instruction_has_no_offset() {
    let module = file("prologue.wat", NAMED);
    let asm = stdout(&weir(strings([&"explore", &"--func", &"add", &"--stage", &"asm", &"--tier", &"cranelift", &module])));
    assert!(asm.contains(" push rbp\n") && asm.contains("@0x") && !asm.contains("0xffffffff"), "{asm}");
}
