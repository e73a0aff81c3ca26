//! Decodes and validates a module, and writes side tables in the same pass.
//!
//! wasmparser's parser divides the file into sections, and its validator checks them. `sections` converts the result to
//! plain data. `acceptor` validates the bodies that have common instructions only, and wasmparser the others: `bodies`
//! drives its validator over a function, instruction by instruction. `builder` observes either to write the side table.
//! It reads immediates (of branches, of accesses to locals) after validation, from bytes known to be well formed.
//!
//! ```text
//! invalid, options, convert                 the error, the features, wasmparser's types as plain types
//! signatures  the types of instructions and of a module's items, in bytes
//! code        what validating a body needs of its module                     (signatures)
//! tables      the side tables of several bodies
//! builder     the side table of a body                                       (code, tables)
//! acceptor    bodies of common instructions   (code, builder, signatures)
//! bodies      bodies, one or all              (code, builder, acceptor, tables)
//! sections    all but the bodies              (convert, module)
//! ```
//!
//! Bodies do not depend on each other, so `bodies` validates them on several threads, or each when it is first needed.

mod acceptor;
pub(crate) mod bodies;
mod builder;
pub(crate) mod code;
mod convert;
mod invalid;
mod options;
mod sections;
mod signatures;
mod tables;
mod well_formed;
mod work;

#[cfg(test)]
mod tests;

pub use code::Unvalidated;
pub use invalid::InvalidModule;
pub use options::Options;

use crate::body::Body;
use crate::module::Module;
use options::FEATURES;
use signatures::Signatures;
use wasmparser::{Parser, ValidPayload, Validator, ValidatorResources};

/// Decodes and validates a module from its own private bytes, on this thread.
///
/// # Errors
/// The first item that is malformed, invalid or not supported.
pub fn parse(bytes: Box<[u8]>) -> Result<Module, InvalidModule> {
    parse_with(bytes, Options::default())
}

/// Decodes and validates a module from its own private bytes.
///
/// # Errors
/// The first item that is malformed, invalid or not supported. Bodies that are left for later are not examined.
#[expect(clippy::wildcard_enum_match_arm, reason = "these are the parser's payloads, and it has validated them")]
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

/// Whether the bytes can be decoded as a module, valid or not. If so, a refusal by [`parse`] means that the module is
/// invalid or needs a proposal that Weir lacks. Otherwise the module is malformed.
pub fn is_well_formed(bytes: &[u8]) -> bool {
    well_formed::check(bytes, FEATURES)
}

/// Adds the bodies in these ranges to a module that has all else.
fn with_bodies(
    mut module: Module,
    resources: ValidatorResources,
    ranges: Vec<std::ops::Range<u32>>,
    options: Options,
) -> Result<Module, InvalidModule> {
    let Module { types, globals, tables, memories, .. } = &module;
    let signatures = options.accept.then(|| Signatures::new(types, globals, tables.iter().map(|table| &table.ty), memories));
    let unvalidated = Unvalidated::new(resources, types, globals, signatures, options);
    if options.lazy {
        module.bodies = ranges.into_iter().map(Body::unvalidated).collect();
        module.foreign_tail_calls = true;
        module.unvalidated = Some(unvalidated);
        return Ok(module);
    }
    let validated = bodies::validate_all(&module.code(&unvalidated), &ranges, options)?;
    (module.bodies, module.foreign_tail_calls) = (validated.bodies, validated.foreign_tail_calls);
    module.accepted = unvalidated.accepted();
    Ok(module)
}
