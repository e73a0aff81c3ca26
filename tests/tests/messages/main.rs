//! What a host sees of errors is the same as with wasmtime, to the letter, on every tier: `expected.txt` has wasmtime's messages, which
//! `programs/bench/embed/tests/messages.rs` has written down and compares with those of wasmtime itself.

use weir as wasmtime;

#[expect(clippy::clone_on_copy, clippy::disallowed_methods, reason = "it is a program for wasmtime")]
mod program;

use wasmtime::{Config, Tier};
use weir_tests::engines::abort_on_panics;

/// The cases whose messages are others.
const DIFFERENT: [(&str, &str); 1] =
    [("another kind of reference", "wasmtime takes a null `externref` for a null `funcref` in this message")];

/// Compares the messages on engines of this configuration with wasmtime's.
fn compare(configure: impl Fn(&mut Config)) {
    let text = program::transcript(&|config: &mut Config| {
        abort_on_panics(config, |_| ());
        configure(config);
    });
    let text = text.unwrap().replace("WEIR_BACKTRACE_DETAILS", "WASMTIME_BACKTRACE_DETAILS");
    if let Some(path) = std::env::var_os("WEIR_TRANSCRIPT") {
        std::fs::write(path, &text).unwrap();
    }
    let expected = include_str!("expected.txt");
    let (ours, theirs) = (cases(&text), cases(expected));
    assert_eq!(ours.len(), theirs.len(), "the number of cases");
    let mut texts = String::new();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let known = DIFFERENT.iter().any(|(name, _)| theirs.lines().next() == Some(name));
        if (ours == theirs) == known {
            texts += &format!("Weir: {ours}\nwasmtime: {theirs}\n");
        }
    }
    assert!(texts.is_empty(), "{texts}");
}

/// The cases of a transcript, each with its title and text.
fn cases(text: &str) -> Vec<&str> {
    text.split("\n## ").collect()
}

#[test]
fn on_the_default_tiers() {
    compare(|_| ());
}

#[test]
fn in_the_interpreter() {
    compare(|config| _ = config.tier(Tier::Interpreter));
}

#[test]
fn in_baseline_code() {
    compare(|config| _ = config.tier(Tier::Baseline));
}

#[test]
fn in_native_code() {
    compare(|config| _ = config.tier(Tier::Native).synchronous_compilation(true));
}

#[test]
fn in_cranelifts_code() {
    compare(|config| _ = config.tier(Tier::Cranelift).synchronous_compilation(true));
}

#[test]
fn evaluated_as_ssa() {
    compare(|config| _ = config.tier(Tier::Ssa));
}

#[test]
fn while_tiering_at_once() {
    compare(|config| _ = config.synchronous_compilation(true).tier_up_threshold(Some(1)));
}
