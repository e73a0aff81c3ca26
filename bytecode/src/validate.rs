//! Decodes and validates a module, and writes side tables in the same pass.
//!
//! wasmparser's parser divides the file into sections, and its validator checks them. `sections` converts the result to
//! plain data. `acceptor` validates the bodies that have common instructions only, and wasmparser the others: `bodies`
//! drives its validator over a function, instruction by instruction. `builder` observes either to write the side table.
//! It reads immediates (of branches, of accesses to locals) after validation, from bytes known to be well formed.
//!
//! ```text
//! invalid, options, convert                 the error, the features, wasmparser's types as plain types
//! memory      what wasmparser takes for sections
//! signatures  the types of instructions and of a module's items, in bytes
//! code        what validating a body needs of its module                     (signatures)
//! tables      the side tables of several bodies
//! builder     the side table of a body                                       (code, tables)
//! acceptor    bodies of common instructions   (code, builder, signatures)
//! bodies      bodies, one after the other     (code, builder, acceptor, tables)
//! sections    all but the bodies              (convert, module)
//! unfinished  a module without its bodies     (sections)
//! threads     all bodies, on several threads  (bodies, unfinished)
//! again       a module that was valid before  (unfinished)
//! ```
//!
//! Bodies do not depend on each other, so they are validated on several threads, or each when it is first needed.

mod acceptor;
mod again;
pub(crate) mod bodies;
mod builder;
pub(crate) mod code;
mod convert;
mod invalid;
mod memory;
mod options;
mod sections;
mod signatures;
mod tables;
mod threads;
mod unfinished;
mod well_formed;
mod work;

#[cfg(test)]
mod tests;

pub use code::Unvalidated;
pub use invalid::InvalidModule;
pub use options::{Options, Proposal, Proposals, WasmFeatures};

use crate::account::Account;
use crate::body::Body;
use crate::bytes::Bytes;
use crate::effects::Effects;
use crate::module::Module;
use options::FEATURES;
use std::sync::Arc;
use unfinished::{Unfinished, of_body};
use wasmparser::{Chunk, Parser, Payload, ValidPayload, Validator};

/// Decodes and validates a module from its own private bytes, on this thread. It may use every proposal, the legacy instructions of
/// exception handling included.
///
/// # Errors
/// The first item that is malformed, invalid or not supported.
pub fn parse(bytes: Bytes) -> Result<Module, InvalidModule> {
    let proposals = Proposals::all();
    parse_with(bytes, Options { proposals, ..Options::default() })
}

/// The version and layer in the header of a component.
const COMPONENT: [u8; 4] = [0x0d, 0, 1, 0];
/// The error for a component, which the validator would take for a module with a proposal that could be enabled.
const IS_COMPONENT: &str = "this is a component, and Weir runs core modules: build the program for the target wasm32-wasip1 instead of \
    wasm32-wasip2, or take the core modules out of it with `wasm-tools component unbundle`";

/// Decodes and validates a module from its own private bytes.
///
/// # Errors
/// The first item that is malformed, invalid or not supported. Bodies that are left for later are not examined.
pub fn parse_with(bytes: Bytes, options: Options) -> Result<Module, InvalidModule> {
    parse_within(bytes, options, Account::default())
}

/// The same, within the limit of an account. What the module takes is charged there, also later, and given back when it is dropped.
///
/// # Errors
/// As [`parse_with`], and the module [takes more memory](InvalidModule::exceeded) than is allowed. It is refused before it has taken much more
/// than that.
pub fn parse_within(bytes: Bytes, options: Options, account: Account) -> Result<Module, InvalidModule> {
    if u32::try_from(bytes.len()).is_err() {
        return Err(InvalidModule::new("modules of 4 GiB and more are not supported", 0));
    }
    if bytes.places().is_some() && options.lazy {
        return unfinished(again::sections(bytes, options, account)?);
    }
    if bytes.get(4..8) == Some(&COMPONENT) && bytes.starts_with(b"\0asm") {
        return Err(InvalidModule::new(IS_COMPONENT, 0));
    }
    if !options.lazy {
        let threads = options.threads;
        return threads::validate_all(bytes.len(), threads, |start| sections(bytes, options, account, start));
    }
    unfinished(sections(bytes, options, account, &mut |_| ())?)
}

/// A module whose bodies are left for later.
fn unfinished(Unfinished { mut module, unvalidated, bodies }: Unfinished) -> Result<Module, InvalidModule> {
    module.bodies = bodies.into_iter().map(Body::unvalidated).collect();
    module.effects = Effects::ALL;
    let Module { types, imports, exports, .. } = &module;
    let kept = unvalidated.as_ref().map_or(0, |unvalidated| unvalidated.size(types, imports.len(), exports.len()));
    module.unvalidated = unvalidated;
    threads::settle(&module, kept)?;
    Ok(module)
}

/// Decodes and validates all of a module but its bodies. Calls `code` with the bytes of the code section before it reads on.
fn sections(bytes: Bytes, options: Options, account: Account, code: &mut dyn FnMut(usize)) -> Result<Unfinished, InvalidModule> {
    let account = Arc::new(account);
    let charge = |bytes: usize, at: usize| account.charge(bytes).map_err(|error| InvalidModule::exceeding(error, at as u64));
    charge(bytes.held(), 0)?;
    let mut parser = Parser::new(0);
    parser.set_features(options.features());
    let mut validator = Validator::new_with_features(options.features());
    let mut sections = sections::Sections::new(account.clone());
    let mut resources = None;
    let mut bodies = Vec::new();
    let mut at = 0;
    loop {
        let Chunk::Parsed { consumed, payload } = parser.parse(&bytes[at..], true)? else {
            unreachable!("there are no more bytes")
        };
        let start = at;
        at += consumed;
        if let Payload::DataSection(section) = &payload
            && sections.read_data(|| {
                let range = section.range();
                sections::plain_segments(&bytes, range.start as usize..range.end as usize, &options)
            })
        {
            continue;
        }
        charge(memory::of_section(&payload)?, start)?;
        match (validator.payload(&payload)?, payload) {
            (ValidPayload::Func(func, body), _) => {
                resources = Some(func.resources);
                // Offsets fit: the file is below 4 GiB.
                bodies.push(body.range().start as u32..body.range().end as u32);
            }
            (_, Payload::CodeSectionStart { count, size, .. }) => {
                // Each body takes a byte, and all of them are within the module.
                charge((count.min(size) as usize).min(bytes.len()) * of_body(&options), at)?;
                code(size as usize);
                // Its number of bodies is before them.
                let section = at..at.saturating_add(size as usize);
                if let Some((all, first)) = sections::bodies(&bytes, count, section.clone()) {
                    (bodies, at) = (all, section.end);
                    resources = Some(validator.code_section_entry(&first)?.resources);
                    parser.skip_section();
                } else {
                    // Each body takes a byte, so this is bounded by the section's size, which is within the file.
                    bodies.reserve_exact(count.min(size) as usize);
                }
            }
            (_, Payload::End(_)) => break,
            (_, payload) => sections.read(payload)?,
        }
    }
    Ok(Unfinished::of(bytes, sections, resources, bodies, options))
}

/// Whether the bytes can be decoded as a module, valid or not. If so, a refusal by [`parse`] means that the module is
/// invalid, or needs a proposal that Weir lacks or legacy exceptions where they are off. Otherwise the module is malformed.
pub fn is_well_formed(bytes: &[u8]) -> bool {
    well_formed::check(bytes, FEATURES.union(wasmparser::WasmFeatures::LEGACY_EXCEPTIONS))
}
