//! `unsafe` and machine code are written only in listed places.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;

use crate::finding::Finding;
use crate::graph::Graph;

/// The macros whose arguments are machine code.
const MACHINE_CODE: [&str; 4] = ["dynasm", "naked_asm", "asm", "global_asm"];

/// The method of the encoder whose argument is machine code.
const RAW: &str = "machine_code";

/// Finds files with `unsafe` outside tests. The key is the file.
pub fn unsafe_code(graph: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &graph.modules.files {
        if let Some(line) = unsafe_word(file.tree.to_token_stream()) {
            findings.push(Finding::new(&file.path, format!("{}:{line}: unsafe outside its places", file.path)));
        }
    }
    findings
}

/// Finds files with machine code outside tests. The key is `macro! file` or `.method() file`.
pub fn machine_code(graph: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &graph.modules.files {
        let tokens: Vec<TokenTree> = file.tree.to_token_stream().into_iter().collect();
        for name in MACHINE_CODE {
            if let Some(line) = call_of(&tokens, name) {
                let key = format!("{name}! {}", file.path);
                findings.push(Finding::new(key, format!("{}:{line}: {name}! outside its places", file.path)));
            }
        }
        if let Some(line) = method_call(&tokens, RAW) {
            let key = format!(".{RAW}() {}", file.path);
            findings.push(Finding::new(key, format!("{}:{line}: .{RAW}() outside its places", file.path)));
        }
    }
    findings
}

/// The line of the first `unsafe` among the tokens.
fn unsafe_word(tokens: TokenStream) -> Option<usize> {
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Ident(word) => (word == "unsafe").then(|| word.span().start().line),
        TokenTree::Group(group) => unsafe_word(group.stream()),
        TokenTree::Punct(_) | TokenTree::Literal(_) => None,
    })
}

/// The line of the first `name!` among the tokens.
fn call_of(tokens: &[TokenTree], name: &str) -> Option<usize> {
    tokens.iter().enumerate().find_map(|(index, token)| match token {
        TokenTree::Ident(word) if word == name => match tokens.get(index + 1) {
            Some(TokenTree::Punct(mark)) if mark.as_char() == '!' => Some(word.span().start().line),
            _ => None,
        },
        TokenTree::Group(group) => call_of(&group.stream().into_iter().collect::<Vec<_>>(), name),
        _ => None,
    })
}

/// The line of the first `.name(…)` among the tokens.
fn method_call(tokens: &[TokenTree], name: &str) -> Option<usize> {
    let is_call = |index: usize, word: &proc_macro2::Ident| {
        let dot = index.checked_sub(1).and_then(|before| tokens.get(before));
        let dotted = matches!(dot, Some(TokenTree::Punct(mark)) if mark.as_char() == '.');
        let called =
            matches!(tokens.get(index + 1), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis);
        word == name && dotted && called
    };
    tokens.iter().enumerate().find_map(|(index, token)| match token {
        TokenTree::Ident(word) => is_call(index, word).then(|| word.span().start().line),
        TokenTree::Group(group) => method_call(&group.stream().into_iter().collect::<Vec<_>>(), name),
        TokenTree::Punct(_) | TokenTree::Literal(_) => None,
    })
}
