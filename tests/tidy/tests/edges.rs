//! Which paths are edges between files.

use weir_tidy::graph::Graph;
use weir_tidy::workspace::Workspace;

/// The edges of a workspace in memory, as `file -> file`.
fn edges(files: &[(&str, &str)]) -> Vec<String> {
    let graph = read(files);
    let mut edges: Vec<String> =
        graph.edges.keys().map(|&(from, to)| format!("{} -> {}", short(graph.path(from)), short(graph.path(to)))).collect();
    edges.sort();
    edges
}

fn read(files: &[(&str, &str)]) -> Graph {
    let graph = Graph::read(&Workspace::in_memory(files)).expect("the files are Rust");
    let unresolved: Vec<&str> = graph.unresolved.iter().map(|(_, reason)| reason.path.as_str()).collect();
    assert!(unresolved.is_empty(), "{unresolved:?}");
    graph
}

fn short(path: &str) -> &str {
    path.strip_prefix("p/src/").unwrap_or(path)
}

/// The edges of a package `p` with modules `a`, which contains this code, and `b`, which defines `Thing`, `make` and
/// `Kind`.
fn from_a(code: &str) -> Vec<String> {
    let b = "pub struct Thing; pub fn make() -> Thing { Thing } pub enum Kind { One, Two } pub const LIMIT: u32 = 1;";
    edges(&[("p/src/lib.rs", "pub mod a; pub mod b;"), ("p/src/a.rs", code), ("p/src/b.rs", b)])
}

const EDGE: [&str; 1] = ["a.rs -> b.rs"];
const NONE: [&str; 0] = [];

#[test]
fn an_import_is_an_edge() {
    assert_eq!(from_a("use crate::b::Thing;"), EDGE);
    assert_eq!(from_a("use super::b::Thing as Other;"), EDGE);
    assert_eq!(from_a("use crate::b::Kind::{One, Two};"), EDGE);
    assert_eq!(from_a("fn f() { use crate::b::make; }"), EDGE);
}

#[test]
fn each_branch_of_a_group_is_an_edge() {
    let files = [
        ("p/src/lib.rs", "mod a; mod b; mod c; mod d;"),
        ("p/src/a.rs", "use crate::{b::Thing, c::{self, d_of, Other}};"),
        ("p/src/b.rs", "pub struct Thing;"),
        ("p/src/c.rs", "pub struct Other; pub use crate::d::d_of;"),
        ("p/src/d.rs", "pub fn d_of() {}"),
    ];
    assert_eq!(edges(&files), ["a.rs -> b.rs", "a.rs -> c.rs", "a.rs -> d.rs"]);
}

#[test]
fn an_inline_path_is_an_edge() {
    assert_eq!(from_a("fn f() -> u32 { crate::b::LIMIT }"), EDGE);
    assert_eq!(from_a("struct S { kind: Option<crate::b::Kind> }"), EDGE);
    assert_eq!(from_a("fn f(x: u8) -> bool { matches!(x, 1) && <super::b::Thing as Clone>::clone; true }"), EDGE);
    assert_eq!(from_a("use crate::b; fn f() { match x { b::Kind::One => {} _ => {} } }"), EDGE);
    assert_eq!(from_a("use crate::b; fn f() { let b = 1; b::make(); }"), EDGE);
}

#[test]
fn super_of_super_is_followed() {
    let files = [
        ("p/src/lib.rs", "mod a; mod b;"),
        ("p/src/a/mod.rs", "mod inner;"),
        ("p/src/a/inner.rs", "mod deep { use super::super::super::b::Thing; }"),
        ("p/src/b.rs", "pub struct Thing;"),
    ];
    assert_eq!(edges(&files), ["a/inner.rs -> b.rs"]);
}

#[test]
fn a_child_that_uses_its_parent_is_an_edge() {
    let files =
        [("p/src/lib.rs", "mod a;"), ("p/src/a.rs", "mod child; struct Thing;"), ("p/src/a/child.rs", "use super::Thing;")];
    assert_eq!(edges(&files), ["a/child.rs -> a.rs"]);
}

#[test]
fn a_re_export_leads_to_the_defining_file() {
    let files = [
        ("p/src/lib.rs", "mod a; mod b; pub use b::Facade; mod d;"),
        ("p/src/a.rs", "use crate::Facade; use crate::b::make;"),
        ("p/src/b/mod.rs", "mod c; pub use c::Thing as Facade; pub use c::*;"),
        ("p/src/b/c.rs", "pub struct Thing; pub fn make() {}"),
        ("p/src/d.rs", "pub use crate::b::make; fn f() { make(); }"),
    ];
    assert_eq!(edges(&files), ["a.rs -> b/c.rs", "d.rs -> b/c.rs"]);
}

#[test]
fn modules_and_re_exports_are_no_edges() {
    assert_eq!(from_a("pub use crate::b::Thing; pub(crate) use super::b::*;"), NONE);
    assert_eq!(from_a("use crate::b;"), NONE);
    assert_eq!(from_a("/// See [`crate::b::Thing`].\nfn f() {}"), NONE);
    assert_eq!(from_a("fn f(make: u32) -> u32 { make }  fn g() { x.make(); let s = S { make: 1 }; }"), NONE);
}

#[test]
fn a_glob_is_an_edge_if_it_brings_items() {
    assert_eq!(from_a("use crate::b::*;"), EDGE);
    assert_eq!(from_a("use super::b::Kind::*;"), EDGE);
    let files = [
        ("p/src/lib.rs", "mod a; mod b;"),
        ("p/src/a.rs", "use crate::b::*; fn f() { make(); }"),
        ("p/src/b/mod.rs", "mod c; mod unused; pub use c::*; pub use unused::*;"),
        ("p/src/b/c.rs", "pub fn make() {}"),
        ("p/src/b/unused.rs", "pub fn other() {}"),
    ];
    assert_eq!(edges(&files), ["a.rs -> b/c.rs"]);
}

#[test]
fn paths_in_the_arguments_of_macros_are_edges() {
    assert_eq!(from_a("fn f() { assert!(x == crate::b::LIMIT); }"), EDGE);
    assert_eq!(from_a("use crate::b; fn f() { let _ = vec![Some(b::make()); 3]; }"), EDGE);
    assert_eq!(from_a("fn f() { dynasm!(ops ; mov eax, DWORD super::b::LIMIT as i32); }"), EDGE);
    assert_eq!(from_a("thread_local! { static X: Cell<crate::b::Kind> = const { Cell::new(1) }; }"), EDGE);
    assert_eq!(from_a("fn f() { each!($crate::b::LIMIT, a.b.make, x => make: 1); }"), EDGE);
    assert_eq!(from_a("fn f() { each!(a.make, make: 1); let make = 1; format!(\"{}\", make); }"), NONE);
}

#[test]
fn macros_are_items() {
    let files = [
        ("p/src/lib.rs", "mod a; mod b; mod c;"),
        ("p/src/a.rs", "fn f() { crate::exported!(); shared!(); } use crate::b::shared;"),
        (
            "p/src/b.rs",
            "#[macro_export] macro_rules! exported { () => {} } macro_rules! shared { () => {} } pub(crate) use shared;",
        ),
        ("p/src/c.rs", "macro_rules! uses { ($b:ident) => { use $crate::b::{shared}; $b::nothing() } }"),
    ];
    assert_eq!(edges(&files), ["a.rs -> b.rs", "c.rs -> b.rs"]);
}

#[test]
fn items_made_by_a_macro_belong_to_the_file_that_calls_it() {
    let files = [
        ("p/src/lib.rs", "mod a; mod b; mod c;"),
        ("p/src/a.rs", "use crate::b::{Row, Index};"),
        ("p/src/b.rs", "use crate::c::rows; rows!(Index); "),
        ("p/src/c.rs", "macro_rules! rows { ($name:ident) => { pub struct Row; pub struct $name; } } pub(crate) use rows;"),
    ];
    assert_eq!(edges(&files), ["a.rs -> b.rs", "b.rs -> c.rs"]);
}

#[test]
fn code_after_the_tests_counts_and_tests_do_not() {
    assert_eq!(from_a("#[cfg(test)] mod tests;\nuse crate::b::Thing;"), EDGE);
    assert_eq!(from_a("#[cfg(test)] mod tests { use crate::b::Thing; }"), NONE);
    assert_eq!(from_a("#[cfg(all(test, unix))] use crate::b::Thing;"), NONE);
    assert_eq!(from_a("#[cfg(any(test, unix))] use crate::b::Thing;"), EDGE);
    assert_eq!(from_a("#[cfg(not(test))] use crate::b::Thing;"), EDGE);
    assert_eq!(from_a("impl S { #[cfg(test)] fn f() { crate::b::make(); } }"), NONE);
    assert_eq!(from_a("fn f() { #[cfg(test)] crate::b::make(); }"), NONE);
    assert_eq!(from_a("make! { #[cfg(test)] fn f() { crate::b::make() } fn g() {} }"), NONE);
    assert_eq!(from_a("make! { #[cfg(test)] fn f() {} fn g() { crate::b::make() } }"), EDGE);
}

#[test]
fn a_path_attribute_names_the_file() {
    let files = [
        ("p/src/lib.rs", "mod a; #[cfg(unix)] #[path = \"two.rs\"] mod one; #[cfg(not(unix))] mod one;"),
        ("p/src/a.rs", "use crate::one::Thing;"),
        ("p/src/one.rs", "pub struct Thing;"),
        ("p/src/two.rs", "pub struct Thing;"),
    ];
    assert_eq!(edges(&files), ["a.rs -> one.rs", "a.rs -> two.rs"]);
}

#[test]
fn packages_see_each_other_by_name() {
    let files = [
        ("low/src/lib.rs", "mod inner; pub use inner::Thing;"),
        ("low/src/inner.rs", "pub struct Thing;"),
        ("p/src/lib.rs", "use low::Thing; fn f() { std::mem::drop(1) }"),
    ];
    assert_eq!(edges(&files), ["lib.rs -> low/src/inner.rs"]);
}
