//! Each rule fails where it is broken, and each list of exceptions fails where an entry is not needed.

use weir_tidy::exceptions::{self, Group};
use weir_tidy::finding::Finding;
use weir_tidy::graph::Graph;
use weir_tidy::rules::arrows::{self, Layer};
use weir_tidy::rules::packages::{self, ExternalPackage};
use weir_tidy::rules::{clients, commands, cycles, documents, engines, places, size, system, words};
use weir_tidy::workspace::{Package, Workspace};

fn read(files: &[(&str, &str)]) -> Graph {
    Graph::read(&Workspace::in_memory(files)).expect("the files are Rust")
}

fn keys(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.key.as_str()).collect()
}

fn group(entries: &[&str]) -> Group {
    Group { reason: "# because".to_owned(), entries: entries.iter().map(|entry| (*entry).to_owned()).collect() }
}

const PACKAGE: &[(&str, &str)] = &[
    ("p/src/lib.rs", "mod a; mod b; mod c; mod d;"),
    ("p/src/a.rs", "use crate::b::B; pub struct A;"),
    ("p/src/b.rs", "use crate::c::C; pub struct B;"),
    ("p/src/c.rs", "use crate::a::A; pub struct C;"),
    ("p/src/d.rs", "use crate::a::A;"),
];

fn cycle_problems(files: &[(&str, &str)], groups: &[Group]) -> Vec<String> {
    cycles::problems(&read(files), &["p".to_owned()], groups)
}

#[test]
fn a_cycle_is_found_with_an_example() {
    let problems = cycle_problems(PACKAGE, &[]);
    assert_eq!(problems.len(), 1, "{problems:?}");
    let example = "p/src/a.rs:1  crate::b::B  -> p/src/b.rs";
    assert!(problems[0].starts_with("cycle of 3 files") && problems[0].contains(example), "{}", problems[0]);
    assert!(!problems[0].contains("p/src/d.rs"), "{}", problems[0]);
}

#[test]
fn a_cycle_is_found_through_every_form_of_path() {
    let forms = [
        "use crate::{a::{A, Other}, c};",
        "mod inner { use super::super::a::A; }",
        "use crate::A;",
        "use crate::a::*;",
        "use super::a::*; fn f(a: A) {}",
        "fn f() -> crate::a::A { crate::a::A }",
        "fn f() { assert_eq!(crate::a::A, 1); }",
        "macro_rules! m { () => { $crate::a::A } }",
        "#[cfg(test)]\nmod tests;\nuse crate::a::A;",
        "pub use crate::a::A; fn f() -> A { A }",
    ];
    for form in forms {
        let b = format!("{form} pub struct B;");
        let files = [
            ("p/src/lib.rs", "mod a; mod b; mod c; pub use a::A;"),
            ("p/src/a.rs", "use crate::b::B; pub struct A; pub struct Other;"),
            ("p/src/b.rs", b.as_str()),
            ("p/src/c.rs", ""),
        ];
        assert_eq!(cycle_problems(&files, &[]).len(), 1, "{form}");
    }
}

#[test]
fn a_listed_cycle_must_be_exact() {
    let exact = group(&["p/src/a.rs", "p/src/b.rs", "p/src/c.rs"]);
    assert_eq!(cycle_problems(PACKAGE, std::slice::from_ref(&exact)), [""; 0]);
    let larger = [group(&["p/src/a.rs", "p/src/b.rs", "p/src/c.rs", "p/src/d.rs"])];
    assert_eq!(cycle_problems(PACKAGE, &larger).len(), 2, "smaller than listed, and the list is stale");
    assert_eq!(cycles::needed(&read(PACKAGE), &["p".to_owned()], &larger), [exact]);
    let smaller = [group(&["p/src/a.rs", "p/src/b.rs"])];
    assert_eq!(cycle_problems(PACKAGE, &smaller).len(), 2, "it has grown, and the list is stale");
    assert_eq!(cycles::needed(&read(PACKAGE), &["p".to_owned()], &smaller), [], "a cycle that has grown is not entered");
}

const LAYERS: &[Layer] = &[
    Layer { name: "p::low", places: &["p/src/low/"], uses: &[] },
    Layer { name: "p::high", places: &["p/src/", "p/src/low/but_high.rs"], uses: &["p::low"] },
];

#[test]
fn a_forbidden_arrow_is_found() {
    let files = [
        ("p/src/lib.rs", "mod low; mod high; pub use high::High;"),
        ("p/src/low/mod.rs", "mod but_high; mod inner; pub struct Low;"),
        ("p/src/low/inner.rs", "use crate::High;"),
        ("p/src/low/but_high.rs", "use crate::High;"),
        ("p/src/high.rs", "use crate::low::Low; pub struct High;"),
    ];
    let findings = arrows::check(&read(&files), LAYERS);
    assert_eq!(keys(&findings), ["p::low -> p/src/high.rs"]);
    let message = "p::low must not use p::high: p/src/low/inner.rs:1  crate::High -> p/src/high.rs";
    assert_eq!(findings[0].message, message);
}

#[test]
fn a_file_in_no_layer_is_found() {
    let findings = arrows::check(&read(&[("q/src/lib.rs", "")]), LAYERS);
    assert_eq!(keys(&findings), ["q/src/lib.rs"]);
}

#[test]
fn an_analysis_without_a_client_is_found() {
    let files = [
        ("p/src/lib.rs", "mod analysis; mod opt;"),
        ("p/src/analysis/mod.rs", "pub mod dom; mod order; pub mod loops; pub mod live; pub use loops::Loops;"),
        ("p/src/analysis/dom.rs", "use super::order::Order; pub struct Dom;"),
        ("p/src/analysis/order.rs", "pub struct Order;"),
        ("p/src/analysis/loops.rs", "use super::dom::Dom; pub struct Loops;"),
        ("p/src/analysis/live.rs", "pub struct Live;"),
        ("p/src/opt.rs", "use crate::analysis::dom::Dom; #[cfg(test)] mod tests { use crate::analysis::live::Live; }"),
    ];
    let findings = clients::check(&read(&files), &["p/src/analysis/"], &["p/src/opt.rs"], &[]);
    assert_eq!(keys(&findings), ["p/src/analysis/loops.rs", "p/src/analysis/live.rs"]);
}

#[test]
fn a_checker_is_no_client_of_an_analysis() {
    let files = [
        ("p/src/lib.rs", "mod analysis; mod opt;"),
        ("p/src/analysis/mod.rs", "pub mod dom; pub mod loops; pub mod live; pub mod verify;"),
        ("p/src/analysis/dom.rs", "pub struct Dom;"),
        ("p/src/analysis/loops.rs", "pub struct Loops;"),
        ("p/src/analysis/live.rs", "pub struct Live;"),
        ("p/src/analysis/verify.rs", "use super::loops::Loops; pub fn verify() {}"),
        ("p/src/opt/mod.rs", "mod pass; mod check;"),
        ("p/src/opt/pass.rs", "use crate::analysis::dom::Dom; fn run() { crate::analysis::verify::verify() }"),
        ("p/src/opt/check.rs", "use crate::analysis::live::Live;"),
    ];
    let found = |checkers| clients::check(&read(&files), &["p/src/analysis/"], &["p/src/opt/"], checkers);
    assert_eq!(keys(&found(&[])), [""; 0]);
    let checkers = &["p/src/analysis/verify.rs", "p/src/opt/check.rs"];
    assert_eq!(keys(&found(checkers)), ["p/src/analysis/loops.rs", "p/src/analysis/live.rs"]);
}

#[test]
fn a_long_file_is_found() {
    let (short, long) = ("//\n".repeat(size::LINES), "//\n".repeat(size::LINES + 1));
    let findings = size::check([("short.rs", short.as_str()), ("long.rs", long.as_str())].into_iter());
    assert_eq!(keys(&findings), ["long.rs"]);
}

#[test]
fn unfinished_work_is_found() {
    let undone = format!("fn f() {{\n    {}(\"later\")\n}}", ["to", "do!"].concat());
    let findings = words::check([("a.rs", undone.as_str()), ("b.rs", "fn f() { do_it() }")].into_iter());
    assert_eq!(keys(&findings), ["a.rs"]);
    assert!(findings[0].message.starts_with("a.rs:2 "), "{findings:?}");
}

#[test]
fn unsafe_is_found_after_tests_and_in_macros() {
    let unsafe_in = |code: &str| keys(&places::unsafe_code(&read(&[("p/src/lib.rs", code)]))).len();
    assert_eq!(unsafe_in("#[cfg(test)] mod tests; unsafe fn f() {}"), 1);
    assert_eq!(unsafe_in("fn f() { vec![unsafe { g() }]; }"), 1);
    assert_eq!(unsafe_in("macro_rules! m { () => { unsafe impl Send for X {} } }"), 1);
    assert_eq!(unsafe_in("#[cfg(test)] mod tests { unsafe fn f() {} } // unsafe\nconst A: &str = \"unsafe\";"), 0);
}

#[test]
fn machine_code_is_found() {
    let found = places::machine_code(&read(&[("p/src/lib.rs", "fn f() { if x { dynasm!(ops ; ret) } } fn naked_asm() {}")]));
    assert_eq!(keys(&found), ["dynasm! p/src/lib.rs"]);
    let found =
        places::machine_code(&read(&[("p/src/lib.rs", "#[cfg(test)] mod t; fn f() { core::arch::naked_asm!(\"ret\") }")]));
    assert_eq!(keys(&found), ["naked_asm! p/src/lib.rs"]);
    // The encoder takes bytes too.
    let found = places::machine_code(&read(&[("p/src/lib.rs", "fn f() { if x { self.out.machine_code(&[0xC3]) } }")]));
    assert_eq!(keys(&found), [".machine_code() p/src/lib.rs"]);
    let found = places::machine_code(&read(&[("p/src/lib.rs", "pub fn machine_code(x: &[u8]) { places::machine_code(x) }")]));
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn the_operating_system_is_found_by_what_a_path_means() {
    let found_in = |code: &str| {
        let files = [("p/src/lib.rs", "mod a; mod sys;"), ("p/src/a.rs", code), ("p/src/sys.rs", "use std::fs::File;")];
        let findings = system::check(&read(&files), "p/src/", &["p/src/sys.rs"]);
        keys(&findings).join(", ")
    };
    assert_eq!(found_in("use std::fs::File;"), "p/src/a.rs std::fs");
    assert_eq!(found_in("use std::{io, thread}; fn f() { thread::spawn(g); }"), "p/src/a.rs std::thread");
    assert_eq!(found_in("fn f() { std::thread::Builder::new(); }"), "p/src/a.rs std::thread");
    assert_eq!(found_in("fn f() { assert!(::std::fs::exists(x)); }"), "p/src/a.rs std::fs");
    assert_eq!(found_in("use std::thread::{self, ThreadId}; fn f() -> ThreadId { thread::current().id() }"), "");
    assert_eq!(found_in("mod fs { pub fn read() {} } fn f() { fs::read() }"), "");
    assert_eq!(found_in("#[cfg(test)] mod t { use std::fs; }"), "");
}

#[test]
fn the_crates_of_the_operating_system_are_found_in_tests_too() {
    let found_in = |code: &str| {
        let files = [("p/src/a.rs", code), ("p/src/sys.rs", "use libc::raise;"), ("q/src/b.rs", "use libc::raise;")];
        keys(&system::check_crates(files.into_iter(), "p/src/", &["p/src/sys.rs"]).unwrap()).join(", ")
    };
    assert_eq!(found_in("#[cfg(test)] mod t { fn f() { g!(unsafe { libc::raise(1) }) } }"), "p/src/a.rs libc");
    assert_eq!(found_in("#[test] fn f() { use rustix::fs; }"), "p/src/a.rs rustix");
    assert_eq!(found_in("//! Without libc.\nconst A: &str = \"libc\"; fn libc_of() { std::thread::spawn(f); }"), "");
    assert!(system::check_crates([("p/src/a.rs", "fn f( {")].into_iter(), "p/src/", &[]).is_err());
}

/// A package's tests are beside its sources, so they are a folder of their own.
#[test]
fn the_crates_of_the_operating_system_are_found_in_folders_of_tests() {
    let files =
        [("p/tests/a.rs", "fn f() { unsafe { libc::sigaltstack(&none, null_mut()) } }"), ("p/src/a.rs", "use libc::raise;")];
    assert_eq!(keys(&system::check_crates(files.into_iter(), "p/tests/", &[]).unwrap()), ["p/tests/a.rs libc"]);
}

#[test]
fn engines_that_tests_make_themselves_are_found() {
    let found_in = |code: &str| {
        let files = [("p/tests/a.rs", code), ("p/src/lib.rs", "fn f() { Engine::default() }")];
        keys(&engines::check(files.into_iter(), &["p/tests/"]).unwrap()).join(", ")
    };
    assert_eq!(found_in("fn f() { let e = weir::Engine::new(&config).unwrap(); }"), "p/tests/a.rs Engine::new");
    assert_eq!(found_in("fn f() { g!(Engine::default(), Engine::default()) }"), "p/tests/a.rs Engine::default");
    assert_eq!(found_in("fn f() { configs.map(Engine::new) }"), "p/tests/a.rs Engine::new");
    assert_eq!(found_in("fn f() { <Engine as Default>::default() }"), "p/tests/a.rs Engine::default");
    assert_eq!(found_in("fn f() { Linker::<()>::default() }"), "p/tests/a.rs Linker::default");
    assert_eq!(found_in("fn f(e: &Engine) -> Linker<()> { Linker::new(e); common::engine(&config) } // Engine::new()"), "");
    assert_eq!(found_in("impl Default for Engine { fn default() -> Engine { new() } }"), "");
    assert!(engines::check([("p/tests/a.rs", "fn f( {")].into_iter(), &["p/tests/"]).is_err());
}

#[test]
fn a_path_that_does_not_exist_is_found() {
    let exists = |path: &str| ["docs/a.md", "vm/src/lib.rs", "docs"].contains(&path);
    let text = "[a](a.md#top) [b](../docs/b.md) [c](https://x.y/z.md) `vm/src/lib.rs` `vm/src/gone.rs` `a/b`\n```\n`vm/src/gone2.rs`\n```\n";
    let findings = documents::check("docs/c.md", text, exists);
    assert_eq!(keys(&findings), ["docs/c.md ../docs/b.md", "docs/c.md vm/src/gone.rs"]);
}

#[test]
fn a_document_that_is_too_long_is_found() {
    assert_eq!(keys(&documents::size("a.md", "x\n⟶⟶\n", 2, 2)), [""; 0]);
    assert_eq!(keys(&documents::size("a.md", "x\n⟶⟶⟶\nx", 2, 2)), ["a.md", "a.md:2"]);
}

#[test]
fn markers_of_a_merge_conflict_are_found() {
    let text = "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> 0123abc (subject)\nx <<<<<<< y\n<<<<<<<<\n";
    assert_eq!(keys(&documents::conflicts("a.toml", text)), ["a.toml:2", "a.toml:6"]);
}

#[test]
fn commands_that_name_nothing_are_found() {
    let package = Package {
        name: "p".into(),
        features: vec!["f".into()],
        commands: vec![("bin".into(), "b".into()), ("test".into(), "t".into())],
        ..Package::default()
    };
    let check = |text: &str| {
        let findings = commands::check("a.md", text, std::slice::from_ref(&package), |path| path == "here");
        findings.into_iter().map(|finding| finding.key).collect::<Vec<_>>()
    };
    assert_eq!(check("cargo run -p p --bin b --features f -- --bin other"), [""; 0]);
    assert_eq!(check("`cargo test -p p --features p/f --test t` and cargo install --path here"), [""; 0]);
    assert_eq!(check("a cargo of --bin things"), [""; 0]);
    assert_eq!(check("cargo run -p gone"), ["a.md -p gone"]);
    assert_eq!(check("| a | `cargo test -p p --test b` |"), ["a.md --test b"]);
    assert_eq!(check("cargo run --example t   # --bin c"), ["a.md --example t"]);
    assert_eq!(check("cargo build -p p --features f,g"), ["a.md --features f,g"]);
    assert_eq!(check("cargo build --features q/f && cargo install --path there"), ["a.md --features q/f", "a.md --path there"]);
    assert_eq!(check("```sh\ncd there\ncargo run -p gone\n```\ncargo run -p gone"), ["a.md -p gone"]);
}

#[test]
fn licences_are_met_or_named() {
    let package = |licence: &str| ExternalPackage { name: "x".into(), version: "1.0.0".into(), licence: licence.into() };
    let problems = |licence: &str, allowed: &[&str]| {
        let allowed: Vec<String> = allowed.iter().map(|licence| (*licence).to_owned()).collect();
        packages::licences(&[package(licence)], &allowed)
    };
    assert_eq!(problems("MIT OR Apache-2.0", &["MIT"]), [""; 0]);
    assert_eq!(problems("Apache-2.0/MIT", &["MIT"]), [""; 0]);
    assert_eq!(problems("(MIT OR Apache-2.0) AND Unicode-3.0", &["MIT", "Unicode-3.0"]), [""; 0]);
    assert_eq!(problems("(MIT OR Apache-2.0) AND Unicode-3.0", &["Unicode-3.0"]).len(), 2);
    assert_eq!(problems("GPL-3.0", &["MIT"]), ["x 1.0.0: licence `GPL-3.0`", "no package needs the licence MIT"]);
    assert_eq!(problems("Apache-2.0 WITH LLVM-exception", &["Apache-2.0"]).len(), 2, "with an exception it is another licence");
    assert_eq!(problems("", &[]).len(), 1, "no licence is none");
}

#[test]
fn incompatible_versions_are_found() {
    let package =
        |name: &str, version: &str| ExternalPackage { name: name.into(), version: version.into(), licence: "MIT".into() };
    let found = packages::duplicates(&[
        package("a", "1.2.3"),
        package("a", "1.3.0"),
        package("b", "0.1.2"),
        package("b", "0.2.0"),
        package("c", "9.0.0"),
        package("c", "10.1.0"),
    ]);
    assert_eq!(keys(&found), ["b 0.1 0.2", "c 10 9"]);
}

#[test]
fn exceptions_need_reasons_and_must_be_needed() {
    assert!(exceptions::parse("a.rs\n").is_err());
    assert!(exceptions::parse("#\na.rs\n").is_err());
    assert!(exceptions::parse("# a reason for nothing\n").is_err());
    let groups = exceptions::parse("# one\na.rs\n\n\n# two\n# lines\nfolder/\ngone.rs\n").expect("it is well formed");
    assert_eq!(exceptions::parse(&exceptions::print(&groups)), Ok(groups.clone()));
    let findings = ["a.rs", "folder/b.rs", "new.rs"].map(|key| Finding::new(key, format!("{key} is wrong")));
    let problems = exceptions::problems(&findings, &groups);
    assert_eq!(problems, ["new.rs is wrong", "the exception `gone.rs` is no longer needed"]);
    let needed = exceptions::needed(&findings, &groups);
    assert_eq!(needed[1].entries, ["folder/"]);
}
