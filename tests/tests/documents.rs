//! Commands in the documents leave no untracked files in the repository, and the list of statistics agrees with the
//! code.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use weir::StatDeclaration;

/// A document, a command in it, and the file in the repository that the command writes.
const WRITES: &[(&str, &str, &str)] = &[
    ("README.md", "cargo run --release", "target/release/weir"),
    ("README.md", "--html fib.html", "fib.html"),
    ("README.md", "--profile-save app.prof", "app.prof"),
    ("CHANGELOG.md", "--profile perfmap|jitdump", "jit-12345.dump"),
    ("programs/README.md", "programs/fetch.py", "programs/real/quickjs.wasm"),
    ("programs/README.md", "cd programs/bench/embed", "programs/bench/embed/target/release/weir-embed-bench"),
    ("programs/README.md", "by callgrind", "callgrind.out.12345"),
    ("CONTRIBUTING.md", "cd tests/wasmtime", "tests/wasmtime/target/release/weir-wasmtime-tests"),
];

#[test]
fn files_that_documented_commands_write_are_ignored() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (document, words, file) in WRITES {
        let text = fs::read_to_string(root.join(document)).expect("a document");
        assert!(text.contains(words), "{document} does not say {words:?}: take the row away, or correct it");
        let mut git = Command::new("git");
        let status = git.args(["check-ignore", "--quiet", "--no-index", file]).current_dir(&root).status().expect("git");
        assert!(status.success(), "{document}: {words:?} leaves {file}, which .gitignore does not name: {status}");
    }
}

/// Modules, outputs and charts must not be ignored by git.
#[test]
fn sources_are_not_ignored() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for file in ["programs/fib/fib.wasm", "programs/bench/charts/curve-json.svg", "vm/cli/src/page.html", "tests/found/new.wat"] {
        let mut git = Command::new("git");
        let status = git.args(["check-ignore", "--quiet", "--no-index", file]).current_dir(&root).status().expect("git");
        assert_eq!(status.code(), Some(1), "{file}");
    }
}

/// The list of statistics is made of their declarations. `WEIR_BLESS=1` writes it.
#[test]
fn every_statistic_is_documented() {
    let mut table = String::new();
    for StatDeclaration { name, unit, about } in weir_cli::statistics() {
        writeln!(table, "| `{name}` | {unit} | {about} |").expect("a string");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/statistics.md");
    let document = fs::read_to_string(&path).expect("a document");
    let (head, found) = document.split_once("|---|---|---|\n").expect("a table");
    if weir_tests::blessing() {
        fs::write(&path, format!("{head}|---|---|---|\n{table}")).expect("a document");
    } else {
        assert_eq!(found, table, "docs/statistics.md is out of date: WEIR_BLESS=1 cargo test -p weir-tests --test documents");
    }
}
