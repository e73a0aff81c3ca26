//! Options of validation.

use wasmparser::WasmFeatures;

/// The proposals whose instructions are all in TABLE 1 and whose types are all in [`crate::types`], without the legacy instructions of
/// exception handling.
pub(super) const FEATURES: WasmFeatures = WasmFeatures::WASM1
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
    .union(WasmFeatures::EXCEPTIONS)
    .union(WasmFeatures::CUSTOM_PAGE_SIZES);

impl Options {
    /// The proposals that are on.
    pub(super) fn features(self) -> WasmFeatures {
        let mut features = FEATURES;
        features.set(WasmFeatures::EXCEPTIONS, self.exceptions);
        features.set(WasmFeatures::LEGACY_EXCEPTIONS, self.legacy_exceptions);
        features
    }
}

/// Options of validation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Maximum number of threads that validate function bodies, including this one; small modules use fewer.
    pub threads: usize,
    /// Leaves each body unvalidated until [`Module::validated_body`](crate::Module::validated_body) is called.
    pub lazy: bool,
    /// Whether bodies of common instructions are validated without wasmparser, which is several times as fast and has the same
    /// result.
    pub accept: bool,
    /// Whether to estimate the work of calls and loop iterations, also in bodies that are validated later; otherwise
    /// each counts 1.
    pub work: bool,
    /// Whether to find the [fuel segments](crate::sidetable::Segment), which only engines that meter fuel need.
    pub segments: bool,
    /// Whether modules may have tags, `throw`, `throw_ref` and `try_table`.
    pub exceptions: bool,
    /// Whether modules may have the legacy instructions: `try`, `catch`, `catch_all`, `delegate`, `rethrow`.
    pub legacy_exceptions: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { threads: 1, lazy: false, accept: true, work: true, segments: true, exceptions: true, legacy_exceptions: false }
    }
}
