//! What hostile modules try with the command: each is stopped with one clear message, and does not cost more than the limits allow.

mod common;

use common::{assert_fails, command, file, start, stderr, stdout, weir};
use std::process::Stdio;

/// A module whose only function has this many blocks inside each other.
fn nested(depth: usize) -> Vec<u8> {
    let body = [vec![0], [0x02, 0x40].repeat(depth), vec![0x0B; depth + 1]].concat();
    let sized = |bytes: &[u8]| {
        let mut size = bytes.len();
        let mut sized = Vec::new();
        while size > 0x7F {
            sized.push(size as u8 | 0x80);
            size >>= 7;
        }
        sized.push(size as u8);
        [&sized, bytes].concat()
    };
    let code = [vec![1], sized(&body)].concat();
    [&b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x0A"[..], &sized(&code)].concat()
}

#[test]
fn text_of_deep_nesting_is_not_quadratic() {
    const DEPTH: usize = 40_000;
    let path = file("nested.wasm", nested(DEPTH));
    let path = path.to_str().expect("UTF-8");
    for args in [&["dump", path][..], &["explore", "--func", "0", "--stage", "bytecode", path]] {
        let output = weir(args);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = stdout(&output);
        assert_eq!(text.matches("block").count(), DEPTH);
        assert!(text.len() < 400 * DEPTH, "{}", text.len());
    }
}

#[test]
fn names_reach_no_terminal_as_commands() {
    let text = r#"(module
        (func $f (export "\1b[2J\0aweir: all is well") unreachable)
        (func (export "_start") (call $f)))"#;
    let path = file("names.wat", text);
    let path = path.to_str().expect("UTF-8");
    for args in [&[path][..], &["--invoke", "none", path], &["dump", path], &["explore", "--func", "0", path]] {
        let output = weir(args);
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
        assert!(!text.contains('\u{1b}'), "{args:?}: {text:?}");
        assert!(!text.lines().any(|line| line == "weir: all is well"), "{args:?}: {text}");
    }
    let path = file("imports.wat", r#"(module (import "\1b[" "\0ax" (func)) (func (export "_start")))"#);
    assert_fails(&weir([path]), 1, &[r"unknown import `\u{1b}[::\nx`"]);
}

#[test]
fn tables_count_as_memory() {
    let tables = "(table 1000000 funcref)".repeat(3);
    let path = file("tables.wat", format!(r#"(module {tables} (func (export "_start")))"#));
    assert_fails(&weir(["--max-memory".as_ref(), "65M".as_ref(), path.as_os_str()]), 134, &["table", "exceeds"]);
    assert_eq!(weir(["--max-memory".as_ref(), "100M".as_ref(), path.as_os_str()]).status.code(), Some(0));
    let text = r#"(module (table 0 externref) (memory 1)
        (func (export "grow") (param i32 i32) (result i32 i32)
            (table.grow 0 (ref.null extern) (local.get 0)) (memory.grow (local.get 1))))"#;
    let path = file("grow-table.wat", text);
    let grow = |by: [&str; 2]| {
        stdout(&weir([&["--max-memory", "192K", "--invoke", "grow", path.to_str().expect("UTF-8")], &by[..]].concat()))
    };
    assert_eq!(grow(["4096", "0"]), "0\n1\n");
    assert_eq!(grow(["4097", "0"]), "-1\n1\n");
    assert_eq!(grow(["2048", "1"]), "0\n1\n");
    assert_eq!(grow(["2049", "1"]), "0\n-1\n", "both together");
    assert_eq!(grow(["4097", "1"]), "-1\n1\n", "a refused request uses nothing up");
}

#[test]
fn listings_of_directories_count_as_memory() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("listed");
    std::fs::create_dir_all(&folder).expect("a writable folder");
    for i in 0..1000 {
        std::fs::write(folder.join(format!("{i:0>200}")), "").expect("a writable folder");
    }
    // Opens the folder again and again, and reads the first entry. Returns how often that works, and the error.
    let text = r#"(module
        (import "wasi_snapshot_preview1" "path_open"
            (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_readdir" (func $read (param i32 i32 i32 i64 i32) (result i32)))
        (memory (export "memory") 1)
        (data (i32.const 2000) ".")
        (func (export "list") (param $times i32) (result i32 i32) (local $i i32) (local $error i32)
            (loop $next
                (call $open (i32.const 3) (i32.const 0) (i32.const 2000) (i32.const 1) (i32.const 2)
                    (i64.const 0x4000) (i64.const 0) (i32.const 0) (i32.const 16))
                (local.tee $error)
                (if (i32.eqz) (then
                    (local.set $error
                        (call $read (i32.load (i32.const 16)) (i32.const 3000) (i32.const 24) (i64.const 0) (i32.const 20)))))
                (if (local.get $error) (then (return (local.get $i) (local.get $error))))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br_if $next (i32.lt_u (local.get $i) (local.get $times))))
            (local.get $i) (i32.const 0)))"#;
    let path = file("list.wat", text);
    let list = |limit: &[&str], times: &str| {
        let rest = ["--dir", folder.to_str().expect("UTF-8"), "--invoke", "list", path.to_str().expect("UTF-8"), times];
        stdout(&weir([limit, &rest].concat()))
    };
    // ENOMEM is 48.
    assert_eq!(list(&[], "20"), "20\n0\n");
    let granted = list(&["--max-memory", "2M"], "20");
    assert!(granted.ends_with("\n48\n") && !granted.starts_with("0\n"), "{granted}");
    let unlimited = list(&[], "500");
    assert!(unlimited.ends_with("\n48\n"), "there is a limit without --max-memory, too: {unlimited}");
}

#[test]
fn the_time_limit_holds_while_the_module_is_loaded() {
    let mut process = start(command().args(["--timeout", "0.2", "-"]).stdin(Stdio::piped()));
    let input = process.0.stdin.take();
    assert_fails(&process.finish(), 134, &["trap: not done within 0.2 s"]);
    drop(input);
}

#[test]
fn random_bytes_of_a_call_are_limited() {
    let text = r#"(module
        (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
        (memory (export "memory") 1100)
        (func (export "get") (param i32) (result i32) (call $random (i32.const 0) (local.get 0))))"#;
    let path = file("random.wat", text);
    let get = |len: &str| weir(["--invoke".as_ref(), "get".as_ref(), path.as_os_str(), len.as_ref()]);
    assert_eq!(stdout(&get("67108864")), "0\n");
    assert_fails(&get("67108865"), 134, &["requested len 67108865 exceeds limit 67108864"]);
}

/// Each declaration of a function has a few bytes.
#[test]
fn locals_of_a_small_module_are_bounded() {
    let locals = "(local ".to_string() + &"i64 ".repeat(50_000) + ")";
    let text = format!("(module {})", format!("(func {locals})").repeat(41));
    let path = file("locals.wat", text);
    assert_fails(&weir([path]), 1, &["locals in all functions together are not supported"]);
}
