//! The parts of JSON that a profile needs.

use std::fmt::{self, Display, Write};

/// A string as JSON.
pub(super) struct Quoted<'s>(pub &'s str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                // The latter end a script in HTML, or a line in old ones.
                c if c.is_control() || matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}') => {
                    write!(f, "\\u{:04x}", c as u32)?
                }
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

/// A list as JSON.
pub(super) struct List<I>(pub I);

impl<I: Iterator<Item: Display> + Clone> Display for List<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('[')?;
        for (i, item) in self.0.clone().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(f, "{comma}{item}")?;
        }
        f.write_char(']')
    }
}

/// A number or, without one, null.
pub(super) struct OrNull<T>(pub Option<T>);

impl<T: Display> Display for OrNull<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("null"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted() {
        let quoted = Quoted("a\"\\\n\u{1}</script>&\u{2028}é").to_string();
        assert_eq!(quoted, r#""a\"\\\u000a\u0001\u003c/script\u003e\u0026\u2028é""#);
    }

    #[test]
    fn lists_have_commas() {
        let list = List([OrNull(Some(1)), OrNull(None)].iter()).to_string();
        assert_eq!(list, "[1,null]");
        assert_eq!(List([0_u8; 0].iter()).to_string(), "[]");
    }
}
