//! The built `weir` used wrongly, or on a host or in a build that lacks a requested tier; and used as the documents say.

mod common;

use common::{assert_fails, file, stderr, stdout, weir};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const ADD: &str = r#"(module
    (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
    (func (export "forever") (loop $l (br $l))))"#;

#[test]
fn files_that_are_no_modules_are_errors() {
    let neither = "neither a binary module, which begins with `\\0asm`, nor one in the text format";
    assert_fails(&weir([file("prose.txt", "hello world")]), 1, &["prose.txt", neither, "expected `(`"]);
    assert_fails(&weir([file("text.wasm", "(this is not")]), 1, &["text.wasm:1:2"]);
    let output = weir([file("comment.wat", " ;; a comment\n(modul)")]);
    assert_fails(&output, 1, &["comment.wat:2:2"]);
    assert!(!stderr(&output).contains(neither));
    let bytes = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bytes.wasm");
    fs::write(&bytes, b"garbage\xff").expect("a file");
    let no_module = "bytes.wasm: magic header not detected: a binary module begins with `\\0asm` (at offset 0x0)\n";
    assert_fails(&weir([bytes]), 1, &[no_module]);
    let script = weir(["wast".as_ref(), file("prose.wast", "hello").as_os_str()]);
    assert_fails(&script, 1, &["expected `(`", "prose.wast:1:1"]);
}

/// Options of `weir` in commands that documents give: subcommand and option. The changelog names those that are gone, too.
fn documented_options() -> Vec<(&'static str, String)> {
    const DOCUMENTS: [&str; 6] = ["README", "CONTRIBUTING", "SECURITY", "ARCHITECTURE", "BENCHMARKS", "programs/README"];
    const SUBCOMMANDS: [&str; 10] =
        ["run", "validate", "dump", "explore", "compile", "snapshot", "cache", "wast", "completion", "man"];
    let mut options = Vec::new();
    for document in DOCUMENTS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../{document}.md"));
        for line in fs::read_to_string(path).expect("a document").lines() {
            let quoted = line.split('`').skip(1).step_by(2);
            for command in quoted.chain([line]).filter_map(|text| text.strip_prefix("weir ")) {
                let mut words = command.split(['#', '`']).next().unwrap_or_default().split_whitespace();
                let first = words.clone().next().unwrap_or_default();
                let subcommand = SUBCOMMANDS.into_iter().find(|&name| name == first).unwrap_or("run");
                // After its module are the options of a program.
                let of_weir = |word: &&str| subcommand != "run" || !word.ends_with(".wasm");
                let names = words.by_ref().take_while(of_weir).filter(|word| word.starts_with("--"));
                options.extend(names.map(|word| (subcommand, word.split(['=', '|']).next().unwrap_or(word).to_string())));
            }
        }
    }
    options
}

#[test]
fn documented_options_exist() {
    let options = documented_options();
    assert!(options.len() > 15, "{options:?}");
    for (subcommand, option) in options {
        let help = stdout(&weir([subcommand, "--help"]));
        let exists = help.split(|c: char| c.is_whitespace() || ",[]=<>".contains(c)).any(|word| word == option);
        assert!(exists || option == "--help", "weir {subcommand} {option}");
    }
}

#[test]
#[cfg(not(feature = "cranelift"))]
fn a_tier_that_this_build_lacks_exits_with_2() {
    assert_fails(
        &weir(["--tier".as_ref(), "cranelift".as_ref(), common::program("hello").as_os_str()]),
        2,
        &["does not have Cranelift"],
    );
    for tier in ["native", "baseline"] {
        let output = weir(["--tier".as_ref(), tier.as_ref(), common::program("hello").as_os_str()]);
        assert_eq!(output.status.code(), Some(0), "{tier}: {}", stderr(&output));
    }
}

/// Runs `weir` with so little address space that there is none for code.
fn without_code_memory(args: &[&str]) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -v 400000 && exec \"$0\" \"$@\"", common::WEIR]).args(args);
    common::start(shell.stdin(Stdio::null()).stdout(Stdio::piped())).finish()
}

#[test]
fn refused_code_memory_exits_with_1_where_a_compiler_was_asked_for() {
    let library = file("no_code_memory.wat", ADD);
    let library = library.to_str().expect("UTF-8");
    let run = |tier: &str| without_code_memory(&["--tier", tier, "--invoke", "add", library, "40", "2"]);
    for tier in ["native", "baseline", "cranelift"] {
        if tier != "cranelift" || cfg!(feature = "cranelift") {
            assert_fails(&run(tier), 1, &["no native code", "executable memory", "os error 12"]);
        }
    }
    for tier in ["auto", "interp"] {
        let output = run(tier);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "42\n"), "{tier}: {}", stderr(&output));
    }
    // A hot function would be compiled, and both forms of `--stats` have the reason why it was not.
    for (form, key) in [("--stats", "no native code: "), ("--stats=json", "\"no_native_code\":\"")] {
        let message = stderr(&without_code_memory(&[form, "--fuel", "1000000", "--invoke", "forever", library]));
        let reason = message.split_once(key).map_or("", |(_, reason)| reason);
        assert!(reason.contains("executable memory") && reason.contains("os error 12"), "{form}: {message}");
    }
}
