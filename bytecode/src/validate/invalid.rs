//! The error for bytes that are not a module.

use crate::account::{ALLOCATION, ModuleMemoryExceeded};
use crate::bytes::Unreadable;
use crate::names::Plain;
use std::fmt;

/// The reason why bytes are not a module that Weir can run. `Display` writes wasmparser's message where that has found it, and the
/// offset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidModule {
    /// A description of the error, with the expected and the actual form, in one line; it begins with the proposals that are missing if
    /// these are the reason.
    pub message: String,
    /// The position of the error, in bytes from the start of the module.
    pub offset: usize,
    /// The function whose body is invalid.
    func: Option<u32>,
    /// Its name.
    name: Option<Box<str>>,
    /// wasmparser's message, if `message` differs from it.
    original: Option<Box<str>>,
    /// The reason, if it is that the module takes too much memory.
    exceeded: Option<Box<ModuleMemoryExceeded>>,
    /// The reason, if it is that bytes cannot be read.
    unreadable: Option<Unreadable>,
}

impl InvalidModule {
    pub(crate) fn new(message: impl Into<String>, offset: u64) -> InvalidModule {
        // Offsets are below the length of the bytes, which a `usize` holds.
        // It may quote a name of the module.
        let message = Plain(&message.into()).to_string();
        InvalidModule {
            message,
            offset: offset as usize,
            func: None,
            name: None,
            original: None,
            exceeded: None,
            unreadable: None,
        }
    }

    /// The error for something at this offset that takes more memory than is allowed.
    pub(crate) fn exceeding(exceeded: ModuleMemoryExceeded, offset: u64) -> InvalidModule {
        InvalidModule { exceeded: Some(Box::new(exceeded.clone())), ..InvalidModule::new(exceeded.to_string(), offset) }
    }

    /// The error for bytes from this offset on that cannot be read.
    pub(crate) fn of_unreadable(unreadable: Unreadable, offset: usize) -> InvalidModule {
        InvalidModule { unreadable: Some(unreadable), ..InvalidModule::new(unreadable.to_string(), offset as u64) }
    }

    /// The error with this message of wasmparser's.
    pub(super) fn found_as(self, original: &str) -> InvalidModule {
        InvalidModule { original: Some(Plain(original).to_string().into()), ..self }
    }

    /// The error in the body of a function.
    pub(crate) fn within(self, func: u32) -> InvalidModule {
        InvalidModule { func: Some(func), ..self }
    }

    /// The error with the name of its function, if that has one.
    pub(super) fn named(self, name: Option<&str>) -> InvalidModule {
        InvalidModule { name: name.map(Box::from), ..self }
    }

    /// Returns the name of the function whose body is invalid, if the name section has one.
    pub fn func_name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the index of the function whose body is invalid; `None` if something else is.
    pub fn func_index(&self) -> Option<u32> {
        self.func
    }

    /// Returns the limit, if the reason is that the module takes more memory than is allowed.
    pub fn exceeded(&self) -> Option<&ModuleMemoryExceeded> {
        self.exceeded.as_deref()
    }

    /// Returns the reason, if it is that the module's bytes cannot be read.
    pub fn unreadable(&self) -> Option<Unreadable> {
        self.unreadable
    }

    /// Returns the bytes that it takes.
    pub(crate) fn size(&self) -> usize {
        size_of::<InvalidModule>() + self.message.len() + self.original.as_ref().map_or(0, |text| text.len()) + 3 * ALLOCATION
    }

    /// Returns the message as `Display` writes it.
    pub fn original(&self) -> &str {
        self.original.as_deref().unwrap_or(&self.message)
    }
}

impl fmt::Display for InvalidModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at offset {:#x})", self.original(), self.offset)
    }
}

impl std::error::Error for InvalidModule {}

/// The message for bytes that do not begin as a module does.
const NO_MODULE: &str = "magic header not detected: a binary module begins with `\\0asm`";

impl From<wasmparser::Error> for InvalidModule {
    fn from(error: wasmparser::Error) -> InvalidModule {
        let message = match error.missing_wasm_feature() {
            None if error.message().starts_with("magic header not detected") => NO_MODULE.into(),
            // The message becomes one line, also if it shows text of several lines.
            None => error.message().split_whitespace().collect::<Vec<_>>().join(" "),
            Some(feature) => {
                let names: Vec<String> = feature.iter_names().map(|(name, _)| name.to_lowercase().replace('_', " ")).collect();
                format!("proposal not supported: {} ({})", names.join(", "), error.message())
            }
        };
        let original = (message != error.message()).then(|| error.message().into());
        InvalidModule { original, ..InvalidModule::new(message, error.offset()) }
    }
}
