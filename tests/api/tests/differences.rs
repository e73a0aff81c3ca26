//! Two small crates, documented by the compiler that runs the tests: each kind of difference is found, and what means the same is none.

use std::path::{Path, PathBuf};
use std::process::Command;
use weir_api::api::Api;
use weir_api::compare::differences;
use weir_api::docs::Docs;

/// What both have, in other words.
const SAME: &str = "
    pub struct Same<T: 'static>(T);
    impl<LONG> Same<LONG> { pub fn get<NAME: Clone + Send>(&self, a: NAME) -> &LONG { loop {} } }
    impl<T> Clone for Same<T> { fn clone(&self) -> Self { loop {} } }
    mod hidden { pub fn shown(x: &str) -> Option<u8> { None } pub struct Private; }
    pub use hidden::*;";
const SAME_IN_OTHER_WORDS: &str = "
    pub struct Same<X>(X) where X: 'static;
    impl<T: 'static> Same<T> { pub fn get<'a, U>(&'a self, value: U) -> &'a T where U: Send, U: Clone { loop {} } }
    impl<T: 'static> Clone for Same<T> { fn clone(&self) -> Same<T> { loop {} } }
    pub fn shown<'a>(text: &'a str) -> Option<u8> { None }
    pub struct Private;";

const THEIRS: &str = "
    pub struct Gone { pub field: u8 }
    impl Gone { pub fn method(&self) {} }
    pub trait Kept { fn required(&self); fn provided(&self) {} }
    #[non_exhaustive] pub enum Choice { One, Two(u8) }
    pub struct Data { pub x: u8 }
    pub struct Sent(u8);
    impl Sent { pub fn f(&self, x: u32) -> u32 { x } pub fn g<T: Clone>(t: T) {} pub unsafe fn h() {} }
    impl Default for Sent { fn default() -> Sent { Sent(0) } }
    pub type Alias = u8;
    pub const C: u8 = 1;
    pub fn free() {}
    #[macro_export] macro_rules! m { () => {} }";
const OURS: &str = "
    pub trait Kept { fn required(&self); fn provided(&self); }
    pub enum Choice { One, Two(u16) }
    pub struct Data { pub x: u16, pub y: u8 }
    pub struct Sent(*const u8);
    impl Sent { pub fn f(&self, x: &u32) -> u32 { *x } pub fn g<T: Clone + Send>(t: T) {} pub fn h() {} }
    pub type Alias = u16;
    pub const C: u16 = 1;
    pub struct free;
    pub struct New;
    impl New { pub fn method(&self) {} }";

/// Documents a crate of this source.
fn api(name: &str, source: &str) -> Api {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{name}.rs"));
    std::fs::write(&file, source).unwrap();
    let mut rustdoc = Command::new("rustdoc");
    rustdoc.args([
        "-Z",
        "unstable-options",
        "--output-format",
        "json",
        "--crate-type",
        "lib",
        "--edition",
        "2024",
        "--cap-lints",
        "allow",
    ]);
    let status = rustdoc.arg(&file).arg("--out-dir").arg(&folder).env("RUSTC_BOOTSTRAP", "1").status();
    assert!(status.unwrap().success());
    let mut docs = Docs::default();
    docs.add(Path::new(&folder.join(format!("{name}.json")))).unwrap();
    Api::of(&docs, name)
}

#[test]
fn what_means_the_same_is_no_difference() {
    assert_eq!(differences(&api("theirs", SAME), &api("ours", SAME_IN_OTHER_WORDS)), Vec::<String>::new());
}

#[test]
fn each_kind_of_difference_is_found() {
    let found = differences(&api("before", THEIRS), &api("after", OURS));
    let expected = [
        "signature Alias | u8 | u16",
        "signature C | u8 | u16",
        "exhaustiveness Choice | non-exhaustive | -",
        "signature Choice::Two | (u8) | (u16)",
        "signature Data.x | u8 | u16",
        "added Data.y",
        "missing Gone",
        "kind Kept::provided | provided method | method",
        "added New",
        "missing Sent: Default",
        "auto Sent: Send | Send | !Send",
        "auto Sent: Sync | Sync | !Sync",
        "signature Sent::f | fn(&self, u32) -> u32 | fn(&self, &u32) -> u32",
        "bounds Sent::g | A: Clone | A: Clone + Send",
        "signature Sent::h | unsafe fn() | fn()",
        "kind free | function | struct",
        "missing m",
    ];
    let missing: Vec<_> = expected.iter().filter(|line| !found.iter().any(|other| other == *line)).collect();
    assert!(missing.is_empty(), "{missing:#?} in {found:#?}");
    // A free function that became a struct differs in its parts, too.
    assert!(found.iter().all(|line| expected.contains(&line.as_str()) || line.contains("free")), "{found:#?}");
}
