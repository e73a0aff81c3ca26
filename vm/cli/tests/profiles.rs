//! `--profile-save`, `--profile-use`, and `explore` with the options of a run.

mod common;

use common::{assert_fails, assert_fails_after, file, stderr, weir};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

/// Creates an empty folder for a test.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a writable folder");
    folder
}

fn program(name: &str) -> String {
    format!("{}/../../programs/{name}/{name}.wasm", env!("CARGO_MANIFEST_DIR"))
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// Asserts that the command printed `printed` and failed with this status and one line that contains all of these texts.
fn assert_fails_in_one_line(output: &Output, printed: &str, status: i32, says: &[&str]) {
    assert_fails_after(output, printed, status, says);
    assert_eq!(stderr(output).lines().count(), 1, "{output:?}");
}

/// Returns the code in a file of `--profile jitdump`, by name, in the order of installation. The format is Linux's,
/// described in `tools/perf/Documentation/jitdump-specification.txt`.
fn jitdump(dump: &[u8]) -> Vec<(String, Vec<u8>)> {
    let u32_at = |at: usize| u32::from_le_bytes(dump[at..at + 4].try_into().expect("four bytes")) as usize;
    let mut at = u32_at(8);
    let mut found = Vec::new();
    while at < dump.len() {
        let (kind, size) = (u32_at(at), u32_at(at + 4));
        if kind == 0 {
            let name = dump[at + 56..].split(|&byte| byte == 0).next().expect("a name");
            let code = at + 56 + name.len() + 1;
            found.push((text(name), dump[code..code + u32_at(at + 40)].to_vec()));
        }
        at += size;
    }
    found
}

/// Returns whether the stage `bytes` in the output of `explore` is this code, except for relocated bytes.
fn shows(output: &str, code: &[u8]) -> bool {
    let stage = output.split_once(";; bytes\n").expect("the stage `bytes`").1;
    let lines = stage.lines().take_while(|line| !line.starts_with("reloc"));
    let shown: Vec<&str> = lines.flat_map(|line| line.split_whitespace().skip(1)).collect();
    shown.len() == code.len() && shown.iter().zip(code).all(|(shown, byte)| *shown == ".." || *shown == format!("{byte:02x}"))
}

/// Runs the program with the given access to files and these options. Checks that `explore`, with the same options and the saved
/// profile, shows the installed code. Returns the number of pieces of code that were shown, of functions and of loops.
fn explored(test: &str, (access, module, args): (&[&str], &str, &[&str]), options: &[&str]) -> (usize, usize) {
    let folder = folder(test);
    let profile = folder.join("run.prof");
    let run = ["--profile", "jitdump", "--profile-save", path(&profile)];
    let mut command = common::command();
    command.args([options, access, &run, &[module], args].concat()).current_dir(&folder).stdout(Stdio::null());
    let process = common::start(&mut command);
    let dump = folder.join(format!("jit-{}.dump", process.0.id()));
    let ran = process.finish();
    assert!(ran.status.success(), "{options:?}: {ran:?}");
    let (mut calls, mut loops) = (0, 0);
    for (name, code) in jitdump(&fs::read(dump).expect("the code")) {
        let (func, baseline) = match name.strip_suffix(" baseline") {
            Some(func) => (func, true),
            None => (&*name, false),
        };
        let (func, osr) = match func.split_once(" loop ") {
            Some((func, pc)) => (func, Some(pc)),
            None => (func, None),
        };
        let func = func.strip_prefix("function ").unwrap_or(func);
        let mut at = osr.map_or(vec![], |pc| vec!["--osr", pc]);
        if baseline {
            at.push("--baseline");
        }
        let profile = ["--profile-use", path(&profile), "--func", func, "--stage", "bytes"];
        let shown = weir([&["explore"][..], options, &profile, &at, &[module]].concat());
        assert!(shown.status.success(), "{options:?}, {name}: {}", text(&shown.stderr));
        assert!(shows(&text(&shown.stdout), &code), "{options:?}: other code is shown of {name} than ran");
        *if osr.is_some() { &mut loops } else { &mut calls } += 1;
    }
    (calls, loops)
}

#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn explore_shows_the_code_that_ran() {
    let json = |options: &[&str]| explored("explored", (&[], &program("json"), &["20"]), options);
    // How much the compiler's thread has done when the program ends is not certain.
    for options in [&[][..], &["--fuel", "1000000000000"]] {
        json(options);
    }
    for options in [
        &["--deterministic"][..],
        &["--deterministic", "--lazy"],
        &["--deterministic", "--no-signals", "--timeout", "600"],
        &["--deterministic", "--pass-off", "gvn", "--rewrite-fuel", "7"],
    ] {
        let (calls, loops) = json(options);
        assert!(calls > 0 && loops > 0, "{options:?}: {calls} calls and {loops} loops were compiled");
    }
    assert!(json(&["--tier", "native", "--allocator", "regalloc2"]).0 > 0);
    if cfg!(feature = "cranelift") {
        assert!(json(&["--tier", "cranelift"]).0 > 0);
    }
}

#[test]
#[ignore = "needs programs/fetch.py qjs-wasi"]
fn explore_shows_the_code_that_quickjs_ran_in() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let (module, folder) = (format!("{root}/programs/real/qjs-wasi.wasm"), format!("{root}/tests/real::/data"));
    assert!(Path::new(&module).exists(), "QuickJS is missing: run programs/fetch.py qjs-wasi");
    let (calls, loops) = explored("quickjs", (&["--dir", &folder], &module, &["-m", "/data/explored.js"]), &[]);
    println!("{calls} functions and {loops} OSR bodies are shown as they ran");
    assert!(calls > 20 && loops > 0, "{calls} calls and {loops} loops were compiled");
}

#[test]
fn tiers_without_a_back_end_are_explored_as_far_as_they_go() {
    let module = program("fib");
    let stages = |tier: &str| weir(["explore", "--tier", tier, "--func", "fib", &module]);
    assert_fails_in_one_line(&stages("interp"), "", 2, &["compiles nothing"]);
    let ssa = text(&stages("ssa").stdout);
    assert!(ssa.contains(";; build") && !ssa.contains(";; lower") && !ssa.contains(";; bytes"), "{ssa}");
}

#[test]
fn a_profile_of_one_run_guides_the_next() {
    let profile = folder("guided").join("fib.prof");
    let run = |options: &[&str]| weir([options, &[&program("fib"), "18"]].concat());
    assert_eq!(text(&run(&["--profile-save", path(&profile)]).stdout), "fib 18: 2584\n");
    let saved = fs::read_to_string(&profile).expect("the profile");
    assert!(saved.starts_with("weir profile 1\nmodule ") && saved.contains("\n  branch 0x"), "{saved}");
    for tier in ["auto", "interp", "native", "ssa"] {
        let ran = run(&["--tier", tier, "--profile-use", path(&profile), "--profile-save", path(&profile)]);
        assert_eq!((text(&ran.stdout), text(&ran.stderr)), ("fib 18: 2584\n".into(), String::new()), "{tier}");
    }
    // Only the profile itself is left.
    assert_eq!(fs::read_dir(profile.parent().expect("a folder")).expect("the folder").count(), 1);
    assert!(fs::read_to_string(&profile).expect("the profile").lines().count() >= saved.lines().count());
}

#[test]
fn a_profile_that_is_not_of_the_module_or_damaged_is_refused() {
    let folder = folder("refused");
    let profile = folder.join("fib.prof");
    let module = program("fib");
    let saved = weir(["--profile-save", path(&profile), &module, "15"]);
    assert_eq!(text(&saved.stdout), "fib 15: 610\n");
    let good = fs::read_to_string(&profile).expect("the profile");
    let file = |name: &str, contents: &[u8]| {
        let file = folder.join(name);
        fs::write(&file, contents).expect("a writable folder");
        file
    };
    let lines = good.lines().count();
    let damaged = [
        ("version", good.replacen("profile 1", "profile 2", 1).into_bytes(), "line 1: expected `weir profile 1`"),
        ("hash", good.replacen("module ", "module 0", 1).into_bytes(), "line 2: expected `module` and a hash"),
        ("line", format!("{good}  branch 0x10 ten 1\n").into_bytes(), &format!("line {}: expected a count", lines + 1)),
        ("fit", format!("{good}func 100000 call\n").into_bytes(), &format!("line {}: expected a function", lines + 1)),
        ("bytes", [good.as_bytes(), b"func \xff"].concat(), &format!("line {}: expected text", lines + 1)),
        ("empty", Vec::new(), "line 1: expected"),
    ];
    for (name, contents, says) in &damaged {
        let file = file(name, contents);
        for run in [&["run", "--profile-use", path(&file), &module][..], &["explore", "--profile-use", path(&file), &module]] {
            let output = weir(run);
            assert_fails_in_one_line(&output, "", 2, &["--profile-use", path(&file), says]);
        }
    }
    let other = program("hello");
    assert_fails_in_one_line(&weir(["--profile-use", path(&profile), &other]), "", 2, &["line 2", "another module"]);
    let missing = folder.join("none");
    assert_fails_in_one_line(&weir(["--profile-use", path(&missing), &module]), "", 2, &["--profile-use", path(&missing)]);
}

/// Runs the program once and returns a file with its profile.
fn saved(folder: &Path) -> PathBuf {
    let profile = folder.join("json.prof");
    let ran = weir(["--deterministic", "--profile-save", path(&profile), &program("json"), "20"]);
    assert!(ran.status.success(), "{ran:?}");
    profile
}

/// The text of a stage for a function, without offsets in the module.
fn explored_stage(options: &[&str], module: &str, func: &str, stage: &str) -> String {
    let shown = weir([&["explore", "--func", func, "--stage", stage][..], options, &[module]].concat());
    assert!(shown.status.success(), "{shown:?}");
    let output = text(&shown.stdout);
    let without = |word: &'_ str| word.split_once("0x").map_or(word, |(before, _)| before).to_owned();
    output.lines().map(|line| line.split_whitespace().map(without).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join("\n")
}

#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn a_profile_in_the_module_is_used_as_one_in_a_file() {
    let folder = folder("embedded");
    let (profile, module, with) = (saved(&folder), program("json"), folder.join("with.wasm"));
    let (profile, with) = (path(&profile), path(&with));
    let written = weir(["profile", "embed", &module, "--profile-use", profile, "-o", with]);
    assert!(written.status.success() && stderr(&written).contains("for the profile"), "{written:?}");
    let saved = fs::read_to_string(profile).expect("the profile");
    let funcs: Vec<&str> = saved.lines().filter_map(|line| line.strip_prefix("func ")?.strip_suffix(" call")).collect();
    let mut guided = 0;
    for func in &funcs {
        let expected = explored_stage(&["--profile-use", profile], &module, func, "layout");
        assert!(explored_stage(&[], with, func, "layout") == expected, "function {func} has other code");
        guided += usize::from(explored_stage(&[], &module, func, "layout") != expected);
    }
    assert!(guided > 2, "the profile changes {guided} of {} functions", funcs.len());
    let printed = text(&weir([&module, "20"]).stdout);
    for tier in ["auto", "interp", "native", "baseline", "ssa"] {
        let ran = weir(["--tier", tier, with, "20"]);
        assert_eq!((text(&ran.stdout), text(&ran.stderr)), (printed.clone(), String::new()), "{tier}");
    }
    // Ahead of time, the same code from the file and from the module.
    let compiled = |options: &[&str], module: &str| {
        let out = folder.join("json.cwasm");
        let done = weir([&["compile", "-o", path(&out)][..], options, &[module]].concat());
        assert!(done.status.success(), "{done:?}");
        let ran = weir(["--allow-precompiled", path(&out), "20"]);
        assert_eq!((text(&ran.stdout), text(&ran.stderr)), (printed.clone(), String::new()));
        fs::read(out).expect("the compiled module")
    };
    let plain = compiled(&[], &module);
    let guided = compiled(&["--profile-use", profile], &module);
    assert_ne!(plain, guided);
    compiled(&[], with);
    // A profile is of the module without it.
    let again = folder.join("again.wasm");
    let refused = weir(["profile", "embed", with, "--profile-use", profile, "-o", path(&again)]);
    assert_fails_in_one_line(&refused, "", 2, &["--profile-use", "another module"]);
    let refused = weir(["compile", &program("fib"), "--profile-use", profile, "-o", path(&again)]);
    assert_fails_in_one_line(&refused, "", 2, &["--profile-use", "another module"]);
    assert!(!again.exists());
}

#[test]
fn a_profile_that_cannot_be_written_is_an_error() {
    let nowhere = folder("unwritable").join("none/fib.prof");
    for option in ["--profile-save", "--coredump"] {
        // It is known before the run.
        let ran = weir([option, path(&nowhere), &program("fib"), "15"]);
        assert_fails_in_one_line(&ran, "", 1, &[option, path(&nowhere)]);
    }
    // A folder is not replaced.
    let target = folder("unwritable-file");
    let ran = weir(["--profile-save", path(&target), &program("fib"), "15"]);
    assert_fails_in_one_line(&ran, "fib 15: 610\n", 1, &["--profile-save", path(&target)]);
    // The program's own failure is the status; both are reported.
    let trap = folder("trap").join("trap.wat");
    fs::write(&trap, r#"(module (func (export "f") unreachable))"#).expect("a writable folder");
    let ran = weir(["--profile-save", path(&target), "--invoke", "f", path(&trap)]);
    let message = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(134), "{message}");
    assert!(message.contains("--profile-save") && message.contains("unreachable"), "{message}");
}

#[test]
fn a_program_that_traps_leaves_a_core_dump() {
    use wasmparser::{KnownCustom, Parser, Payload};
    let app = file("dumped.wat", "(module $app (memory 1) (func $crash unreachable) (func (export \"_start\") (call $crash)))");
    let dump = app.with_extension("coredump");
    let run = |dump: &Path| weir(["--coredump".as_ref(), dump.as_os_str(), app.as_os_str()]);
    assert_fails(&run(&dump), 134, &["trap: unreachable", "app!crash"]);
    let bytes = fs::read(&dump).expect("the dump");
    let mut frames = Vec::new();
    for payload in Parser::new(0).parse_all(&bytes) {
        if let Payload::CustomSection(section) = payload.expect("a module")
            && let KnownCustom::CoreDumpStack(stack) = section.as_known()
        {
            frames = stack.frames.iter().map(|frame| frame.funcidx).collect();
        }
    }
    assert_eq!(frames, [0, 1]);
    let folder = folder("dumped");
    let ran = run(&folder);
    let message = stderr(&ran);
    assert_eq!(ran.status.code(), Some(134), "{message}");
    assert!(message.contains(&format!("--coredump {}", folder.display())) && message.contains("trap: unreachable"), "{message}");
}
