//! What a rule finds.

/// A place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// What an exception names.
    pub key: String,
    /// The message to the reader.
    pub message: String,
}

impl Finding {
    /// A finding.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Finding {
        Finding { key: key.into(), message: message.into() }
    }
}
