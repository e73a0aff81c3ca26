//! The module while it is made small.

use weir_bytecode::validate::{Options, Proposals, parse_with};

/// The smallest module that was found.
pub(super) struct Reduction<'p> {
    pub wasm: Vec<u8>,
    pub has_property: &'p mut dyn FnMut(&[u8]) -> bool,
}

impl Reduction<'_> {
    /// Takes a candidate if it is valid and has the property. Returns whether it was taken.
    pub fn attempt(&mut self, candidate: Vec<u8>) -> bool {
        let options = Options { proposals: Proposals::all(), ..Options::default() };
        let taken =
            candidate != self.wasm && parse_with(candidate.as_slice().into(), options).is_ok() && (self.has_property)(&candidate);
        if taken {
            self.wasm = candidate;
        }
        taken
    }
}
