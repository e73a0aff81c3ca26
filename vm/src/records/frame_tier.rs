//! The engine of a frame of the guest.

use weir_contract::Entry;
use weir_contract::code::Backend;

/// What runs a frame of a guest's stack: see [`GuestFrame`](crate::GuestFrame).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum FrameTier {
    /// The interpreter.
    Interpreter,
    /// The evaluator of SSA: see [`Tier::Ssa`](crate::Tier::Ssa).
    Evaluator,
    /// Code of the baseline compiler.
    Baseline,
    /// Optimised code, of the native back end or of Cranelift, that was called.
    Optimised,
    /// Optimised code that continues a running loop.
    Osr,
    /// A host function.
    Host,
}

#[cfg_attr(not(feature = "profiling"), allow(dead_code, reason = "only profiles ask"))]
impl FrameTier {
    /// All of them.
    pub const ALL: [FrameTier; 6] = [
        FrameTier::Interpreter,
        FrameTier::Evaluator,
        FrameTier::Baseline,
        FrameTier::Optimised,
        FrameTier::Osr,
        FrameTier::Host,
    ];

    /// Returns its name, one word.
    pub fn name(self) -> &'static str {
        match self {
            FrameTier::Interpreter => "interpreter",
            FrameTier::Evaluator => "evaluator",
            FrameTier::Baseline => "baseline",
            FrameTier::Optimised => "optimised",
            FrameTier::Osr => "osr",
            FrameTier::Host => "host",
        }
    }

    /// Returns that of compiled code.
    pub(crate) fn of_code(backend: Backend, entry: Entry) -> FrameTier {
        match (backend, entry) {
            (Backend::Baseline, _) => FrameTier::Baseline,
            (Backend::Native | Backend::Cranelift, Entry::Call) => FrameTier::Optimised,
            (Backend::Native | Backend::Cranelift, Entry::Osr(_)) => FrameTier::Osr,
        }
    }
}
