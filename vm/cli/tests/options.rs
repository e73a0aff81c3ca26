//! Options of the built `weir`: units, stacks, what a program is given, unknown imports, help, completions, manual pages, and terminals.

mod common;

use common::{assert_fails, file, program, start, stderr, stdout, weir};
use std::fs;
use std::path::Path;

const LIBRARY: &str = r#"(module
    (memory 1)
    (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
    (func (export "forever") (loop $l (br $l)))
    (func $deep (export "deep") (param i32) (result i32)
        (if (result i32) (local.get 0)
            (then (i32.add (i32.const 1) (call $deep (i32.sub (local.get 0) (i32.const 1)))))
            (else (i32.const 0)))))"#;

#[test]
fn sizes_and_times_have_units() {
    let library = file("units.wat", LIBRARY);
    let library = library.to_str().expect("UTF-8");
    let grow = |limit: &str, pages: &str| weir(["--max-memory", limit, "--invoke", "grow", library, pages]);
    for limit in ["131072", "128K", "128KiB", "0.125M", "128k"] {
        assert_eq!(stdout(&grow(limit, "1")), "1\n", "{limit}");
        assert_eq!(stdout(&grow(limit, "2")), "-1\n", "{limit}");
    }
    assert_eq!(stdout(&grow("1G", "100")), "1\n");
    assert_fails(&grow("64", "0"), 134, &["65536 bytes exceeds"]);
    for (time, shown) in [("200ms", "0.2 s"), ("0.2s", "0.2 s"), ("0.2", "0.2 s")] {
        let output = weir(["--timeout", time, "--invoke", "forever", library]);
        assert_fails(&output, 134, &[&format!("trap: not done within {shown}: interrupt")]);
    }
    assert_eq!(stdout(&weir(["--timeout", "1m", "--invoke", "grow", library, "0"])), "1\n");
    for (option, wrong, says) in [
        ("--max-memory", "1X", "expected a size, such as 65536, 64K, 512M or 1G"),
        ("--max-stack", "0", "expected a size above zero"),
        ("--timeout", "5d", "expected a time, such as 5, 0.5s, 100ms, 2m or 1m30s"),
    ] {
        let output = weir([option, wrong, library]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()));
        assert!(stderr(&output).contains(says) && stderr(&output).contains(wrong), "{}", stderr(&output));
    }
    // A snapshot's initialiser has the same limits.
    let output = weir(["snapshot", library, "--init", "forever", "--timeout", "100ms", "--max-memory", "1M", "-o", "never.wasm"]);
    assert_fails(&output, 134, &["not done within 0.1 s"]);
}

#[test]
fn the_stack_is_limited() {
    let library = file("stack.wat", LIBRARY);
    let library = library.to_str().expect("UTF-8");
    for tier in ["interp", "native", "auto"] {
        let deep = |size: &str, depth: &str| weir(["--max-stack", size, "--tier", tier, "--invoke", "deep", library, depth]);
        assert_eq!(stdout(&deep("128K", "100")), "100\n", "{tier}");
        assert_fails(&deep("128K", "100000"), 134, &["trap: call stack exhausted"]);
        // Larger than the first thread's stack can be.
        assert_eq!(stdout(&deep("512M", "2000000")), "2000000\n", "{tier}");
    }
}

/// Writes the program's arguments and environment, each with a line feed.
const SHOW: &str = r#"(module
    (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_sizes_get" (func $env_sizes (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_get" (func $env (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 16)
    (func $print (param $at i32) (param $len i32)
        (i32.store (i32.const 16) (local.get $at))
        (i32.store (i32.const 20) (local.get $len))
        (drop (call $write (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 24))))
    (func (export "_start")
        (drop (call $args_sizes (i32.const 0) (i32.const 4)))
        (drop (call $args (i32.const 65536) (i32.const 131072)))
        (call $print (i32.const 131072) (i32.load (i32.const 4)))
        (drop (call $env_sizes (i32.const 0) (i32.const 4)))
        (drop (call $env (i32.const 196608) (i32.const 262144)))
        (call $print (i32.const 262144) (i32.load (i32.const 4)))))"#;

#[test]
fn programs_have_the_name_and_the_environment_that_are_asked_for() {
    let show = file("show.wat", SHOW);
    let run = |args: &[&str]| {
        let mut command = common::command();
        command.env_clear().env("XDG_CACHE_HOME", "/dev/null").env("A", "1").env("B", "2").args(args).arg(&show).arg("x");
        let output = start(&mut command).finish();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let mut words: Vec<String> = stdout(&output).split_terminator('\0').map(String::from).collect();
        words[2..].sort();
        words.join(" ").replace(show.to_str().expect("UTF-8"), "FILE")
    };
    assert_eq!(run(&[]), "FILE x");
    assert_eq!(run(&["--argv0", "busybox"]), "busybox x");
    assert_eq!(run(&["--inherit-env"]), "FILE x A=1 B=2 XDG_CACHE_HOME=/dev/null");
    assert_eq!(run(&["--inherit-env", "--env", "B=3", "--env", "C=4"]), "FILE x A=1 B=3 C=4 XDG_CACHE_HOME=/dev/null");
    assert_eq!(run(&["--env", "B", "--argv0="]), " x B=2");
}

/// Opens `file` in its first folder for reading, then creates one there, and exits with ten times the first error plus the second.
const CREATE: &str = r#"(module
    (import "wasi_snapshot_preview1" "path_open"
        (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "file") (data (i32.const 8) "made")
    (func $open (param $name i32) (param $how i32) (param $rights i64) (result i32)
        (call $path_open (i32.const 3) (i32.const 0) (local.get $name) (i32.const 4) (local.get $how)
            (local.get $rights) (i64.const 0) (i32.const 0) (i32.const 32)))
    (func (export "_start")
        (call $proc_exit (i32.add
            (i32.mul (i32.const 100) (call $open (i32.const 0) (i32.const 0) (i64.const 2)))
            (call $open (i32.const 8) (i32.const 1) (i64.const 64))))))"#;

#[test]
fn folders_are_opened_for_reading_only() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("read_only");
    fs::create_dir_all(&folder).expect("a writable folder");
    fs::write(folder.join("file"), "contents").expect("a writable folder");
    let _ = fs::remove_file(folder.join("made"));
    let create = file("create.wat", CREATE);
    let run = |option: &str, suffix: &str| {
        let dir = format!("{}{suffix}", folder.display());
        weir([option, &dir, create.to_str().expect("UTF-8")]).status.code()
    };
    for suffix in ["", "::/data"] {
        let refused = run("--dir-ro", suffix).expect("a status");
        // Reading succeeds; creating is refused as not permitted, or not capable.
        assert!([63, 69, 76].contains(&refused), "{refused}");
        assert!(!folder.join("made").exists());
    }
    assert_eq!(run("--dir", ""), Some(0));
    assert!(folder.join("made").exists());
    let missing = weir(["--dir-ro".as_ref(), "no/such/dir".as_ref(), create.as_os_str()]);
    assert_fails(&missing, 2, &["--dir-ro no/such/dir: No such file"]);
}

#[test]
fn unknown_imports_trap_or_have_defaults() {
    let text = r#"(module
        (import "env" "gone" (func $gone (param i32) (result i32 externref)))
        (func (export "call") (result i32) (call $gone (i32.const 5)) (drop))
        (func (export "not") (result i32) (i32.const 7)))"#;
    let module = file("unknown.wat", text);
    let module = module.to_str().expect("UTF-8");
    let run = |args: &[&str], func: &str| weir([args, &["--invoke", func, module]].concat());
    assert_fails(&run(&[], "not"), 1, &["unknown import `env::gone`"]);
    assert_eq!(stdout(&run(&["--unknown-imports", "trap"], "not")), "7\n");
    assert_fails(&run(&["--unknown-imports", "trap"], "call"), 134, &["unknown import `env::gone`", "0: <unknown>!call at"]);
    assert_eq!(stdout(&run(&["--unknown-imports=default"], "call")), "0\n");
    assert_eq!(run(&["--unknown-imports", "guess"], "not").status.code(), Some(2));
    // What exists is linked as ever.
    let output = weir(["--unknown-imports".as_ref(), "trap".as_ref(), program("hello").as_os_str()]);
    assert_eq!(stdout(&output), "Hello, world!\n");
    let memory = file("unknown_memory.wat", r#"(module (import "env" "m" (memory 1)) (func (export "_start")))"#);
    let output = weir(["--unknown-imports".as_ref(), "trap".as_ref(), memory.as_os_str()]);
    assert_fails(&output, 1, &["unknown import", "`env::m`"]);
}

#[test]
fn help_is_grouped() {
    for args in [&["--help"][..], &["run", "--help"]] {
        let help = stdout(&weir(args));
        let at = |heading: &str| help.find(&format!("\n{heading}:\n")).unwrap_or_else(|| panic!("{heading}: {help}"));
        let headings = ["The program", "Limits", "Code, profiles and reports", "The engine", "Debugging Weir"].map(at);
        assert!(headings.is_sorted(), "{help}");
        let in_group = |option: &str, group: usize| {
            let found = help.find(&format!(" {option}")).unwrap_or_else(|| panic!("{option}: {help}"));
            headings[group] < found && headings.get(group + 1).is_none_or(|next| found < *next)
        };
        assert!(
            in_group("--env ", 0) && in_group("--dir-ro ", 0) && in_group("--timeout ", 1) && in_group("--max-stack ", 1),
            "{help}"
        );
        assert!(in_group("--stats", 2) && in_group("--tier ", 3) && in_group("--stress ", 4), "{help}");
    }
    // The short form has no options for the authors of Weir, and no examples.
    let short = stdout(&weir(["-h"]));
    assert!(short.contains("--timeout") && !short.contains("--rewrite-fuel") && !short.contains("Debugging Weir"), "{short}");
}

#[test]
fn shells_and_man_know_the_options() {
    for (shell, mark) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef weir"),
        ("fish", "complete -c weir"),
        ("elvish", "edit:"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let script = stdout(&weir(["completion", shell]));
        assert!(script.contains(mark) && script.contains("explore") && script.contains("max-stack"), "{shell}: {script}");
    }
    let output = weir(["completion", "korn"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()));

    let page = stdout(&weir(["man"]));
    for part in [".TH weir 1", ".SH NAME", "weir\\-explore(1)", "\\-\\-max\\-stack", "Exit status"] {
        assert!(page.contains(part), "`{part}` is missing in {page}");
    }
    let page = stdout(&weir(["man", "explore"]));
    assert!(page.contains(".TH weir-explore 1") && page.contains("\\-\\-osr"), "{page}");
    assert_fails(&weir(["man", "magic"]), 2, &["there is no subcommand `magic`"]);
}

/// Completions in bash itself, where it is installed.
#[test]
fn bash_completes() {
    let script = file("completion.bash", stdout(&weir(["completion", "bash"])));
    let ask = format!(
        "source {} && COMP_WORDS=(weir --max) COMP_CWORD=1 && _weir weir --max weir && echo \"${{COMPREPLY[@]}}\"",
        script.display()
    );
    let Ok(output) = std::process::Command::new("bash").args(["--norc", "-c", &ask]).output() else { return };
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "--max-memory --max-stack\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Colours go to terminals, where nothing says otherwise. A variable makes any stream count as one.
#[test]
fn colours_follow_the_conventions() {
    let run = |variables: &[(&str, &str)], args: &[&str]| {
        let mut command = common::command();
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").envs(variables.iter().copied()).args(args);
        let output = start(&mut command).finish();
        stderr(&output) + &stdout(&output)
    };
    let trap = file("red.wat", "(module (func $f unreachable) (start $f))");
    let trap = trap.to_str().expect("UTF-8");
    let forced = ("CLICOLOR_FORCE", "1");
    for args in [&[trap][..], &["--bogus"], &["--help"], &["no-such-file.wasm"], &["explore", trap]] {
        assert!(!run(&[], args).contains('\x1b'), "{args:?} into a pipe");
        assert!(!run(&[forced, ("NO_COLOR", "1")], args).contains('\x1b'), "{args:?} with NO_COLOR");
        assert!(run(&[forced], args).contains('\x1b'), "{args:?} on what counts as a terminal");
    }
    let coloured = run(&[forced], &[trap]);
    assert!(coloured.starts_with("\x1b[1m\x1b[31mweir: trap:\x1b[0m unreachable\n"), "{coloured:?}");
}
