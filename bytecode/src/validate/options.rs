//! Options of validation.

use crate::cost::Costs;
use std::sync::Arc;
pub use wasmparser::WasmFeatures;

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

/// A proposal that can be turned off, and so refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the proposals' names")]
pub enum Proposal {
    TailCall,
    ReferenceTypes,
    FunctionReferences,
    WideArithmetic,
    Simd,
    RelaxedSimd,
    BulkMemory,
    MultiValue,
    MultiMemory,
    Memory64,
    ExtendedConst,
    CustomPageSizes,
    Exceptions,
    /// The legacy instructions of exception handling.
    LegacyExceptions,
}

impl Proposal {
    fn feature(self) -> WasmFeatures {
        match self {
            Proposal::TailCall => WasmFeatures::TAIL_CALL,
            Proposal::ReferenceTypes => WasmFeatures::REFERENCE_TYPES,
            Proposal::FunctionReferences => WasmFeatures::FUNCTION_REFERENCES,
            Proposal::WideArithmetic => WasmFeatures::WIDE_ARITHMETIC,
            Proposal::Simd => WasmFeatures::SIMD,
            Proposal::RelaxedSimd => WasmFeatures::RELAXED_SIMD,
            Proposal::BulkMemory => WasmFeatures::BULK_MEMORY,
            Proposal::MultiValue => WasmFeatures::MULTI_VALUE,
            Proposal::MultiMemory => WasmFeatures::MULTI_MEMORY,
            Proposal::Memory64 => WasmFeatures::MEMORY64,
            Proposal::ExtendedConst => WasmFeatures::EXTENDED_CONST,
            Proposal::CustomPageSizes => WasmFeatures::CUSTOM_PAGE_SIZES,
            Proposal::Exceptions => WasmFeatures::EXCEPTIONS,
            Proposal::LegacyExceptions => WasmFeatures::LEGACY_EXCEPTIONS,
        }
    }
}

/// The proposals that modules may use. By default all that can be turned off, without the legacy instructions of exception handling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proposals(WasmFeatures);

impl Default for Proposals {
    fn default() -> Proposals {
        Proposals(FEATURES)
    }
}

impl Proposals {
    /// Returns all of them, the legacy instructions of exception handling included.
    #[must_use]
    pub fn all() -> Proposals {
        Proposals::default().with(Proposal::LegacyExceptions, true)
    }

    /// Adds or removes a proposal.
    pub fn set(&mut self, proposal: Proposal, enable: bool) {
        self.0.set(proposal.feature(), enable);
    }

    /// Adds or removes proposals, and parts of the language that are none, such as floating-point numbers. Returns those of them that no
    /// set has.
    pub fn set_features(&mut self, features: WasmFeatures, enable: bool) -> WasmFeatures {
        let all = Proposals::all().0;
        self.0.set(features & all, enable);
        features - all
    }

    /// Returns the set with or without a proposal.
    #[must_use]
    pub fn with(mut self, proposal: Proposal, enable: bool) -> Proposals {
        self.set(proposal, enable);
        self
    }

    /// Returns whether the proposal is in the set.
    pub fn contains(self, proposal: Proposal) -> bool {
        self.0.contains(proposal.feature())
    }
}

/// Options of validation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Maximum number of threads that validate function bodies, including this one; small modules use fewer.
    pub threads: usize,
    /// Leaves each body unvalidated until [`Module::validated_body`](crate::Module::validated_body) is called.
    pub lazy: bool,
    /// Whether bodies of common instructions are validated without wasmparser, which is several times as fast and has the same
    /// result. It is not done if a proposal is off that is on by default.
    pub accept: bool,
    /// Whether to estimate the work of calls and loop iterations, also in bodies that are validated later; otherwise
    /// each counts 1.
    pub work: bool,
    /// Whether to find the [fuel segments](crate::sidetable::Segment), which only engines that meter fuel need.
    pub segments: bool,
    /// What segments cost, if each instruction does not cost what [`Segment`](crate::sidetable::Segment) states.
    pub costs: Option<Arc<Costs>>,
    /// What modules may use.
    pub proposals: Proposals,
    /// The most steps that validating the bodies of a module may take: a step is a byte, an instruction, or a value of a type that is
    /// compared.
    pub max_steps: u64,
}

impl Options {
    /// The proposals that are on.
    pub(super) fn features(&self) -> WasmFeatures {
        self.proposals.0
    }

    /// Whether the acceptor validates bodies. It knows the instructions of every proposal.
    pub(super) fn accepts(&self) -> bool {
        self.accept && self.proposals.0.contains(FEATURES)
    }
}

impl Default for Options {
    fn default() -> Options {
        let proposals = Proposals::default();
        Options { threads: 1, lazy: false, accept: true, work: true, segments: true, costs: None, proposals, max_steps: u64::MAX }
    }
}
