//! What is validated, and how.

use wasmparser::WasmFeatures;

/// The proposals whose instructions are all in TABLE 1 and whose types are all in [`crate::types`].
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
    .union(WasmFeatures::CUSTOM_PAGE_SIZES);

/// How a module is validated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// How many threads may validate function bodies, this one included; fewer do where there is not code enough.
    pub threads: usize,
    /// Leaves each body until [`Module::validated_body`](crate::Module::validated_body) asks for it.
    pub lazy: bool,
    /// Whether the interpreter to come executes [superinstructions](crate::fusion). None are made in bodies left for later.
    pub fuse: bool,
    /// Whether to estimate the work of calls and loop iterations, also in bodies that are left for later; otherwise each counts 1.
    pub work: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { threads: 1, lazy: false, fuse: false, work: true }
    }
}
