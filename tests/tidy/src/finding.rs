//! The result of a rule.

/// A place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The key by which an exception names it.
    pub key: String,
    /// The message to the reader.
    pub message: String,
}

impl Finding {
    /// A finding with this key and message.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Finding {
        Finding { key: key.into(), message: message.into() }
    }
}
