//! Decoding and validation in one pass, writing the side table on the way.
//!
//! The work is wasmparser's: its parser cuts the file into sections, its validator checks them. [`sections`] turns
//! what it decodes into plain data; [`body`] drives the validator over each function, instruction by instruction, and
//! [`builder`] watches it to write the side table. What this crate reads a second time (immediates of branches, local
//! indices) it reads behind the validator, from bytes already proved well formed.
//!
//! On one core it is 0.65 to 0.7 times as fast as validation alone (PHP, esbuild), and the side table takes 1.3 to 1.4 times the
//! machine instructions; [superinstructions](crate::fusion) add a tenth to the time.
//! Bodies do not depend on each other, so [`body`] validates them on several threads, or each when it is first needed.

mod body;
mod builder;
mod sections;

#[cfg(test)]
mod tests;

pub use body::Unvalidated;

use crate::Module;
use crate::module::Body;
use wasmparser::{Parser, ValidPayload, Validator, ValidatorResources, WasmFeatures};

/// Why bytes are not a module that Weir can run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message} (at offset {offset:#x})")]
pub struct InvalidModule {
    /// What was expected and what was found.
    pub message: String,
    /// Where, in bytes from the start of the module.
    pub offset: usize,
}

/// The proposals whose instructions are all in TABLE 1 and whose types are all in [`crate::types`].
const FEATURES: WasmFeatures = WasmFeatures::WASM1
    .union(WasmFeatures::SATURATING_FLOAT_TO_INT)
    .union(WasmFeatures::SIGN_EXTENSION)
    .union(WasmFeatures::MULTI_VALUE)
    .union(WasmFeatures::BULK_MEMORY)
    .union(WasmFeatures::REFERENCE_TYPES)
    .union(WasmFeatures::GC_TYPES)
    .union(WasmFeatures::SIMD)
    .union(WasmFeatures::RELAXED_SIMD)
    .union(WasmFeatures::TAIL_CALL)
    .union(WasmFeatures::EXTENDED_CONST)
    .union(WasmFeatures::MULTI_MEMORY)
    .union(WasmFeatures::MEMORY64)
    .union(WasmFeatures::FUNCTION_REFERENCES)
    .union(WasmFeatures::WIDE_ARITHMETIC)
    .union(WasmFeatures::CUSTOM_PAGE_SIZES);

/// How a module is validated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// How many threads may validate function bodies, this one included; fewer do where there is not code enough.
    pub threads: usize,
    /// Leaves each body until [`Module::validated_body`] asks for it.
    pub lazy: bool,
    /// Whether the interpreter to come executes [superinstructions](crate::fusion). None are made in bodies left for later.
    pub fuse: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { threads: 1, lazy: false, fuse: false }
    }
}

/// Decodes and validates a module from its own private bytes, on this thread.
///
/// # Errors
/// The first thing that is malformed, invalid or not supported.
pub fn parse(bytes: Box<[u8]>) -> Result<Module, InvalidModule> {
    parse_with(bytes, Options::default())
}

/// Decodes and validates a module from its own private bytes.
///
/// # Errors
/// The first thing that is malformed, invalid or not supported; bodies that are left for later are not looked at.
pub fn parse_with(bytes: Box<[u8]>, options: Options) -> Result<Module, InvalidModule> {
    if u32::try_from(bytes.len()).is_err() {
        return Err(InvalidModule { message: "modules of 4 GiB and more are not supported".into(), offset: 0 });
    }
    let mut parser = Parser::new(0);
    parser.set_features(FEATURES);
    let mut validator = Validator::new_with_features(FEATURES);
    let mut sections = sections::Sections::default();
    let mut resources = None;
    let mut ranges = Vec::new();
    for payload in parser.parse_all(&bytes) {
        let payload = payload?;
        match validator.payload(&payload)? {
            ValidPayload::Func(func, body) => {
                resources = Some(func.resources);
                // Offsets fit: the file is below 4 GiB.
                ranges.push(body.range().start as u32..body.range().end as u32);
            }
            _ => sections.read(payload)?,
        }
    }
    let module = Module { bytes, ..sections.finish() };
    match resources {
        Some(resources) => with_bodies(module, resources, ranges, options),
        None => Ok(module),
    }
}

/// Adds the bodies in these ranges to a module that has all else.
fn with_bodies(
    mut module: Module,
    resources: ValidatorResources,
    ranges: Vec<std::ops::Range<u32>>,
    options: Options,
) -> Result<Module, InvalidModule> {
    let unvalidated = Unvalidated::new(resources, &module);
    if options.lazy {
        module.bodies = ranges.into_iter().map(Body::unvalidated).collect();
        module.foreign_tail_calls = true;
        module.unvalidated = Some(unvalidated);
        return Ok(module);
    }
    let code = body::Code::of(&module, &unvalidated);
    let validated = body::validate_all(&code, &ranges, options)?;
    for (pc, byte) in validated.patches.into_iter().flatten() {
        module.bytes[pc as usize] = byte;
    }
    (module.bodies, module.foreign_tail_calls) = (validated.bodies, validated.foreign_tail_calls);
    Ok(module)
}

impl InvalidModule {
    fn new(message: impl Into<String>, offset: u64) -> InvalidModule {
        // Offsets are below the length of the bytes, which a `usize` holds.
        InvalidModule { message: message.into(), offset: offset as usize }
    }
}

impl From<wasmparser::Error> for InvalidModule {
    fn from(error: wasmparser::Error) -> InvalidModule {
        let message = match error.missing_wasm_feature() {
            // One line, whatever is shown in it.
            None => error.message().split_whitespace().collect::<Vec<_>>().join(" "),
            Some(feature) => {
                let names: Vec<String> = feature.iter_names().map(|(name, _)| name.to_lowercase().replace('_', " ")).collect();
                format!("proposal not supported: {} ({})", names.join(", "), error.message())
            }
        };
        InvalidModule::new(message, error.offset())
    }
}
