//! Texts of the errors that end a container.

use std::error::Error as StdError;
use weir::{Error, LinkError, MemoryFault, Trap, UnknownImportError, WasmBacktrace};

/// Maximum number of frames that are printed.
const MAX_FRAMES: usize = 20;

/// A text that may have parts of an image, for terminals: control characters but the ends of lines are escaped.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::new();
    for character in text.chars() {
        if character.is_control() && character != '\n' {
            plain.extend(character.escape_default());
        } else {
            plain.push(character);
        }
    }
    plain
}

/// The bytes of a refusal, at most: the pipe to the shim has room for them, and so has standard error that nobody reads yet.
pub(crate) const MAX_REFUSAL: usize = 16 << 10;

/// [`plain`], truncated to [`MAX_REFUSAL`] bytes.
pub(crate) fn refusal(text: &str) -> String {
    let mut text = plain(text);
    text.truncate(text.floor_char_boundary(MAX_REFUSAL));
    text
}

/// The error and its causes in one line; for a trap, lines of the backtrace follow, innermost frame first.
pub(crate) fn of(error: &Error) -> String {
    let mut text = if error.is::<Trap>() { "trap: ".to_string() } else { String::new() };
    text.push_str(&causes(error));
    if let Some(backtrace) = error.wasm_backtrace() {
        text.push_str(&frames(backtrace));
    }
    text
}

/// The texts of the chain. That of the last link is replaced by its details, if the error has more than its type says.
fn causes(error: &Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut links = error.chain().filter(|link| !link.is::<WasmBacktrace>() && !link.is::<MemoryFault>()).peekable();
    while let Some(link) = links.next() {
        let details = error.details().filter(|_| links.peek().is_none());
        let text = match (link.downcast_ref::<Trap>(), details) {
            (Some(trap), Some(details)) => format!("{}: {details}", trap.message()),
            (Some(trap), None) => trap.message().into(),
            (None, Some(details)) => details.into(),
            (None, None) => text(link),
        };
        if texts.last() != Some(&text) {
            texts.push(text);
        }
    }
    texts.join(": ")
}

fn text(link: &(dyn StdError + 'static)) -> String {
    if let Some(import) = link.downcast_ref::<UnknownImportError>() {
        let (module, name) = (import.module(), import.name());
        return format!("unknown import `{module}::{name}`: expected {}, found nothing of that name", import.ty());
    }
    match link.downcast_ref::<LinkError>() {
        Some(LinkError::Incompatible { expected, found, .. }) => format!("{link}: expected {expected}, found {found}"),
        _ => link.to_string(),
    }
}

fn frames(backtrace: &WasmBacktrace) -> String {
    let frames = backtrace.frames();
    let lines = frames.iter().take(MAX_FRAMES).enumerate().map(|(i, frame)| format!("\n  {i:>3}: {frame}"));
    let mut text: String = std::iter::once("\nwasm backtrace (innermost first):".to_string()).chain(lines).collect();
    let more = backtrace.omitted() + frames.len().saturating_sub(MAX_FRAMES) as u64;
    if more > 0 {
        text.push_str(&format!("\n  … and {more} more"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters() {
        assert_eq!(refusal(&"\u{e9}".repeat(MAX_REFUSAL)).len(), MAX_REFUSAL);
        assert_eq!(plain("/a\u{1b}[2J\u{9b}1m\tb: \u{e9}\nnext"), "/a\\u{1b}[2J\\u{9b}1m\\tb: \u{e9}\nnext");
    }
}
