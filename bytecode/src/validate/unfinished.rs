//! A module without its bodies.

use super::code::Unvalidated;
use super::options::Options;
use super::sections::Sections;
use super::signatures::Signatures;
use super::tables::Placed;
use crate::account::ALLOCATION;
use crate::body::{Body, FuncBody};
use crate::bytes::Bytes;
use crate::module::Module;
use std::ops::Range;
use wasmparser::ValidatorResources;

/// A module without its bodies.
pub(super) struct Unfinished {
    pub module: Module,
    /// `None` if there are no bodies.
    pub unvalidated: Option<Unvalidated>,
    /// The bytes of each body.
    pub bodies: Vec<Range<u32>>,
}

impl Unfinished {
    /// The module with these sections. `resources` are the validator's after them; `None` if there are no bodies.
    pub fn of(
        bytes: Bytes,
        sections: Sections,
        resources: Option<ValidatorResources>,
        bodies: Vec<Range<u32>>,
        options: Options,
    ) -> Unfinished {
        let module = Module { bytes, ..sections.finish() };
        let unvalidated = resources.map(|resources| {
            let Module { types, globals, tables, memories, .. } = &module;
            let tables = tables.iter().map(|table| &table.ty);
            let signatures = options.accepts().then(|| Signatures::new(types, globals, tables, memories));
            Unvalidated::new(resources, types, globals, signatures, options)
        });
        Unfinished { module, unvalidated, bodies }
    }
}

/// The bytes that a body takes without its tables, with those that it takes only while the module is validated.
pub(super) fn of_body(options: &Options) -> usize {
    let place = size_of::<Range<u32>>() + size_of::<Body>();
    if options.lazy { place } else { place + size_of::<Placed>() + size_of::<FuncBody>() + ALLOCATION }
}
