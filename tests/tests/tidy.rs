//! The rules of the house that a compiler cannot check: which way arrows run, where `unsafe` and `dynasm!` may stand,
//! that the documents name files that exist.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the root").to_path_buf()
}

/// Every Rust file below `dir`, as a path relative to the root with its text.
fn sources(dir: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut todo = vec![root().join(dir)];
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).expect("a readable directory");
            todo.extend(entries.map(|entry| entry.expect("a readable entry").path()).filter(|path| !path.ends_with("target")));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root()).expect("it was found below the root").to_string_lossy().into_owned();
            found.push((name, std::fs::read_to_string(&path).expect("a readable file")));
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no Rust file below {dir}");
    found
}

/// The text without line comments and string contents, roughly: enough to look for keywords and paths.
fn code_of(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

#[test]
fn arrows_run_one_way() {
    // (folder, what it must not mention, why)
    let forbidden: &[(&str, &[&str], &str)] = &[
        ("bytecode/src", &["weir_jit", "weir::", "weir_wasi"], "bytecode knows nothing of execution"),
        ("jit/src", &["weir::", "weir_wasi"], "the JIT knows nothing of the vm"),
        (
            "jit/src/ir",
            &["crate::analysis::loops", "crate::construct", "crate::opt", "crate::x64", "crate::regalloc", "crate::cranelift"],
            "the IR is below everything",
        ),
        ("jit/src/analysis", &["crate::construct", "crate::opt", "crate::x64", "crate::cranelift"], "analyses change nothing"),
        ("jit/src/opt", &["crate::construct", "crate::x64", "crate::cranelift", "crate::regalloc"], "passes see SSA only"),
        (
            "jit/src/construct",
            &["crate::compile", "crate::x64", "crate::cranelift", "crate::regalloc"],
            "construction sees no machine",
        ),
        (
            "jit/src/regalloc",
            &["crate::x64", "crate::ir", "crate::construct", "crate::opt", "crate::cranelift"],
            "the allocator knows no opcodes",
        ),
        ("jit/src/x64", &["crate::compile", "crate::cranelift"], "a back end is called by the pipeline"),
        ("jit/src/cranelift", &["crate::compile", "crate::x64"], "a back end is called by the pipeline"),
        ("vm/src", &["weir_wasi", "clap", "weir_cli"], "the library knows neither WASI nor the command"),
    ];
    let mut wrong = Vec::new();
    for (folder, words, why) in forbidden {
        for (name, text) in sources(folder) {
            let code = code_of(&text);
            let tests = code.find("#[cfg(test)]").unwrap_or(code.len());
            for word in *words {
                if code[..tests].contains(word) {
                    wrong.push(format!("{name} mentions {word}: {why}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Files and folders in which `unsafe` may stand outside tests: the engines, the records and what is mapped; then the
/// public handles, which reach records by pointer.
const UNSAFE: &[&str] = &[
    "vm/src/interp/",
    "vm/src/code/",
    "vm/src/records/",
    "vm/src/tier/",
    "vm/src/exec/",
    "vm/src/api/externs.rs",
    "vm/src/api/func.rs",
    "vm/src/api/global.rs",
    "vm/src/api/instance.rs",
    "vm/src/api/limits.rs",
    "vm/src/api/memory.rs",
    "vm/src/api/module.rs",
    "vm/src/api/store.rs",
    "vm/src/api/table.rs",
    "vm/src/api/typed.rs",
    "vm/src/api/value.rs",
];

#[test]
fn unsafe_stands_in_named_places() {
    let mut wrong = Vec::new();
    for folder in ["bytecode/src", "jit/src", "vm/src", "vm/wasi/src", "vm/cli/src", "programs/bench/src", "tests/src"] {
        for (name, text) in sources(folder) {
            let code = code_of(&text);
            let tests = code.find("#[cfg(test)]").unwrap_or(code.len());
            let uses = code[..tests].split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe");
            if uses && !UNSAFE.iter().any(|place| name.starts_with(place)) {
                wrong.push(name);
            }
        }
    }
    assert!(wrong.is_empty(), "unsafe outside its places: {wrong:?}");
}

#[test]
fn machine_code_is_encoded_in_named_places() {
    for folder in ["bytecode/src", "jit/src", "vm/src"] {
        for (name, text) in sources(folder) {
            let code = code_of(&text);
            let tests = code.find("#[cfg(test)]").unwrap_or(code.len());
            if code[..tests].contains("naked_asm!(") {
                assert!(name.starts_with("vm/src/interp/x64/"), "naked_asm! in {name}");
            }
            if code[..tests].contains("dynasm!(") {
                assert!(name.starts_with("jit/src/x64/emit") || name.starts_with("vm/src/code/"), "dynasm! in {name}");
            }
        }
    }
}

#[test]
fn documents_name_files_that_exist() {
    for document in ["ARCHITECTURE.md", "README.md"] {
        let text = std::fs::read_to_string(root().join(document)).unwrap_or_else(|error| panic!("{document}: {error}"));
        let links = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
            .filter(|link| !link.contains("://") && !link.starts_with('#'));
        let quoted = text
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|word| word.contains('/') && !word.contains(char::is_whitespace) && !word.contains(['*', '<', ':', '$']));
        for path in links.chain(quoted) {
            let inside = ["bytecode/", "jit/", "vm/", "programs/", "tests/", ".ci/"].iter().any(|top| path.starts_with(top));
            if inside || path.ends_with(".md") {
                assert!(root().join(path).exists(), "{document} names {path}, which does not exist");
            }
        }
    }
}

#[test]
fn nothing_is_left_undone_in_comments() {
    for folder in ["bytecode", "jit", "vm", "programs/bench", "tests/src"] {
        for (name, text) in sources(folder) {
            for word in ["TODO", "FIXME", "XXX", "todo!(", "unimplemented!("] {
                assert!(!text.contains(word), "{name} contains {word}");
            }
        }
    }
}
