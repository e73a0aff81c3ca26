//! The error for bytes that are not a module.

/// The reason why bytes are not a module that Weir can run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message} (at offset {offset:#x})")]
pub struct InvalidModule {
    /// A description of the error, with the expected and the actual form.
    pub message: String,
    /// The position of the error, in bytes from the start of the module.
    pub offset: usize,
}

impl InvalidModule {
    pub(crate) fn new(message: impl Into<String>, offset: u64) -> InvalidModule {
        // Offsets are below the length of the bytes, which a `usize` holds.
        InvalidModule { message: message.into(), offset: offset as usize }
    }
}

impl From<wasmparser::Error> for InvalidModule {
    fn from(error: wasmparser::Error) -> InvalidModule {
        let message = match error.missing_wasm_feature() {
            // The message becomes one line, also if it shows text of several lines.
            None => error.message().split_whitespace().collect::<Vec<_>>().join(" "),
            Some(feature) => {
                let names: Vec<String> = feature.iter_names().map(|(name, _)| name.to_lowercase().replace('_', " ")).collect();
                format!("proposal not supported: {} ({})", names.join(", "), error.message())
            }
        };
        InvalidModule::new(message, error.offset())
    }
}
