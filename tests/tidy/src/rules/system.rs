//! The operating system is called in one module of a package.

use proc_macro2::{Ident, TokenStream, TokenTree};

use crate::finding::Finding;
use crate::graph::Graph;

/// The crates that call the operating system.
const CRATES: [&str; 3] = ["libc", "memmap2", "rustix"];

/// Types of `std::thread` that do not start a thread.
const THREAD_TYPES: [&str; 5] = ["AccessError", "JoinHandle", "LocalKey", "Thread", "ThreadId"];

/// The name of the operating system's part to which a path leads, if it does.
fn name_of(path: &[String]) -> Option<&str> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path.as_slice() {
        [name, ..] if CRATES.contains(name) => CRATES.iter().find(|known| *known == name).copied(),
        ["std", "fs", ..] => Some("std::fs"),
        // Importing the module alone has no effect.
        ["std", "thread"] => None,
        ["std", "thread", "current", ..] => None,
        ["std", "thread", name, ..] if THREAD_TYPES.contains(name) => None,
        ["std", "thread", ..] => Some("std::thread"),
        _ => None,
    }
}

/// Finds files in `folder`, but not in one of `inside`, that name the operating system. The key is `file name`.
pub fn check(graph: &Graph, folder: &str, inside: &[&str]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for (file, reason, path) in &graph.outside {
        let at = graph.path(*file);
        if !at.starts_with(folder) || inside.iter().any(|place| at.starts_with(place)) {
            continue;
        }
        if let Some(name) = name_of(path) {
            let message = format!("{at}:{} names the operating system: {}", reason.line, path.join("::"));
            findings.push(Finding::new(format!("{at} {name}"), message));
        }
    }
    findings.sort();
    findings.dedup_by(|next, first| next.key == first.key);
    findings
}

/// Finds files in `folder`, but not in one of `inside`, that name a crate which calls the operating system, tests included. (Tests
/// may start threads and read files.) The files are given by path and text.
///
/// # Errors
///
/// A message, if a file is not Rust.
pub fn check_crates<'t>(
    files: impl Iterator<Item = (&'t str, &'t str)>,
    folder: &str,
    inside: &[&str],
) -> Result<Vec<Finding>, String> {
    let outside = |path: &str| path.starts_with(folder) && !inside.iter().any(|place| path.starts_with(place));
    let mut findings = Vec::new();
    for (path, text) in files.filter(|(path, _)| outside(path)) {
        let tokens: TokenStream = text.parse().map_err(|error| format!("{path}: {error}"))?;
        if let Some(word) = named_crate(tokens) {
            let message = format!("{path}:{} names the operating system: {word}", word.span().start().line);
            findings.push(Finding::new(format!("{path} {word}"), message));
        }
    }
    Ok(findings)
}

/// The first name of one of [`CRATES`] in `tokens`. Comments and strings are no names.
fn named_crate(tokens: TokenStream) -> Option<Ident> {
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Group(group) => named_crate(group.stream()),
        TokenTree::Ident(word) => CRATES.iter().any(|name| word == name).then_some(word),
        TokenTree::Punct(_) | TokenTree::Literal(_) => None,
    })
}
