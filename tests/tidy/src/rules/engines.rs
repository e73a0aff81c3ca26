//! Tests make engines with the helpers of `tests/src/engines.rs`, in whose engines a panic of the compiler ends the process.
//!
//! In `tests/` clippy checks that, by type; its settings apply to whole packages. This rule is for the tests of packages whose
//! library or program makes engines itself. It goes by names: `Engine::new`, `Engine::default` and `Linker::default`.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};

use crate::finding::Finding;

/// The functions that make an engine, each with its type.
const CONSTRUCTORS: [(&str, &str); 3] = [("Engine", "new"), ("Engine", "default"), ("Linker", "default")];

/// Finds files in one of `folders`, given by path and text, that make an engine. The key is `file Type::function`.
///
/// # Errors
///
/// A message, if a file is not Rust.
pub fn check<'t>(files: impl Iterator<Item = (&'t str, &'t str)>, folders: &[&str]) -> Result<Vec<Finding>, String> {
    let mut findings: Vec<Finding> = Vec::new();
    for (path, text) in files.filter(|(path, _)| folders.iter().any(|folder| path.starts_with(folder))) {
        let tokens: TokenStream = text.parse().map_err(|error| format!("{path}: {error}"))?;
        let mut made = Vec::new();
        constructors(tokens, &mut made);
        for (ty, function) in made {
            let key = format!("{path} {ty}::{function}");
            let message =
                format!("{path}:{} makes an engine without the tests' helpers: {ty}::{function}", ty.span().start().line);
            findings.push(Finding::new(key, message));
        }
    }
    findings.sort();
    findings.dedup_by(|next, first| next.key == first.key);
    Ok(findings)
}

/// Adds the uses of [`CONSTRUCTORS`] in `tokens`. Comments and strings contain none.
fn constructors(tokens: TokenStream, found: &mut Vec<(Ident, &'static str)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (i, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => constructors(group.stream(), found),
            TokenTree::Ident(ty) => {
                let mut path = tokens[i + 1..].iter().skip_while(|token| is_between(token));
                let Some(TokenTree::Ident(name)) = path.next() else { continue };
                let constructor = CONSTRUCTORS.iter().find(|(known, function)| ty == known && name == function);
                found.extend(constructor.map(|&(_, function)| (ty.clone(), function)));
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => (),
        }
    }
}

/// Whether the token may be between a type and the name of its function: in `Linker::<()>::default` and in
/// `<Engine as Default>::default`.
fn is_between(token: &TokenTree) -> bool {
    match token {
        TokenTree::Punct(punct) => matches!(punct.as_char(), ':' | '<' | '>'),
        TokenTree::Ident(word) => word == "as" || word == "Default",
        TokenTree::Group(group) => group.delimiter() == Delimiter::Parenthesis,
        TokenTree::Literal(_) => false,
    }
}
