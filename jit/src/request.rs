//! The input and output of a compilation: plain data that all stages use.

use crate::ir::Entry;
use crate::meter::Ended;
use crate::settings::{PropagationLimits, Refinements};
use std::fmt::Debug;
use weir_bytecode::Module;
use weir_bytecode::types::MemoryType;
use weir_contract::Bounds;
pub use weir_contract::code::{
    Backend, FrameLayout, FunctionText, InlinedCall, Inlining, Landing, PadAt, Padding, Reloc, RelocTarget, Roots, Stripe,
    TextForm, TrapEntry,
};
use weir_contract::profile::Profile;
use weir_contract::stats::Counters;

/// The register allocator of the native back end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Allocator {
    /// [Linear scan](crate::regalloc::allocate).
    #[default]
    LinearScan,
    /// The crate `regalloc2`.
    Regalloc2,
}

/// Options that affect the code, the same for all functions of an engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Charge fuel.
    pub fuel: bool,
    /// Poll the epoch.
    pub poll: bool,
    /// Memories have guard regions, whose faults become traps; needs `signals`.
    pub guard_regions: bool,
    /// Memories have the address space of guard regions, whether or not their faults become traps.
    pub reserves_guards: bool,
    /// Code of the native back end accesses memory 0 relative to `gs`, if the memory has a guard region: see the contract.
    pub segment: bool,
    /// Code may trap by a fault, because signal handlers are installed; otherwise it calls
    /// [`Helper::Raise`](weir_contract::Helper).
    pub signals: bool,
    /// After an explicit check of a memory's bounds, of a table index, or of a `br_table`'s, force the address or index to a harmless value
    /// where the check has failed, without a branch: speculative execution passes failed checks.
    pub spectre_mitigation: bool,
    /// Canonicalise NaNs whose bits the specification leaves open.
    pub canonical_nans: bool,
    /// Verify the SSA and the machine code after every phase, and the allocation; a violation panics.
    pub verify: bool,
    /// The register allocator of the native back end.
    pub allocator: Allocator,
    /// Names of passes that are switched off: see [`opt::passes`](crate::opt::passes).
    pub passes_off: Vec<String>,
    /// The number of rewrites that the passes may make in each function; `None` for no limit. For bisecting.
    pub rewrite_fuel: Option<u64>,
    /// The limits of constant propagation.
    pub limits: PropagationLimits,
    /// The refinements of the construction algorithm.
    pub refinements: Refinements,
    /// The number of bytes of code that an OSR body may duplicate in order to peel the loops around its entry.
    pub peel_limit: u32,
    /// Whether passes run wherever they can, however little they are expected to gain. For tests.
    pub opt_all: bool,
    /// Whether baseline code counts ticks and is left for optimised code.
    pub ticks: bool,
    /// Whether code of the native back end is prepared to be replaced: OSR bodies count ticks and can be left at loop headers, code of calls
    /// counts misses.
    pub leaves: bool,
    /// Whether baseline code counts the directions of branches and the targets of indirect calls.
    pub counts: bool,
    /// Whether ticks and counts go to the stripe of the instance's store, and not to the first one.
    pub striped: bool,
    /// The padding. Only the native back end uses it.
    pub padding: Padding,
    /// Whether to fill in [`Compiled::lines`].
    pub lines: bool,
    /// Texts of functions, which are compiled instead of their bytecode. For tests.
    pub texts: Vec<FunctionText>,
}

/// Default of [`Options::peel_limit`]: code of this size compiles within a few milliseconds.
const PEEL_LIMIT: u32 = 8 << 10;

impl Default for Options {
    fn default() -> Options {
        Options {
            fuel: false,
            poll: false,
            guard_regions: true,
            reserves_guards: true,
            segment: false,
            signals: true,
            spectre_mitigation: true,
            canonical_nans: false,
            verify: cfg!(debug_assertions),
            allocator: Allocator::default(),
            passes_off: Vec::new(),
            rewrite_fuel: None,
            limits: PropagationLimits::default(),
            refinements: Refinements::ALL,
            peel_limit: PEEL_LIMIT,
            opt_all: false,
            ticks: false,
            leaves: false,
            counts: false,
            striped: false,
            padding: Padding::default(),
            lines: false,
            texts: Vec::new(),
        }
    }
}

impl Options {
    /// Whether an access to a memory of type `ty` at constant `offset` is masked after its explicit check. Where all that its address can reach
    /// belongs to the memory's reservation, speculative execution finds nothing.
    pub fn masks(&self, ty: &MemoryType, offset: u64) -> bool {
        self.spectre_mitigation && Bounds::of(ty, offset, self.reserves_guards) == Bounds::Explicit
    }
}

/// The profiles of the functions that a function may call.
pub trait CalleeCounts: Debug {
    /// Returns the profile of a function, if it has one. A compilation asks at most once for each function, and only for functions whose code it is about to copy.
    fn counts(&self, func: u32) -> Option<Profile>;
}

/// A request to compile one function.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The module.
    pub module: &'a Module,
    /// A function defined in it.
    pub func: u32,
    /// How the code is entered: by call or by OSR.
    pub entry: Entry,
    /// Engine-wide signature identities, by the module's type index, with which those of table elements are compared. Only
    /// Cranelift's code depends on them: in other code they are relocations.
    pub sig_ids: &'a [u32],
    /// The back end.
    pub backend: Backend,
    /// The function's profile from the interpreter.
    pub profile: Option<&'a Profile>,
    /// The profiles of other functions, for those that are inlined.
    pub callees: Option<&'a dyn CalleeCounts>,
    /// The options.
    pub options: &'a Options,
}

/// Machine code that is not placed in memory yet. It is position-independent except for its relocations.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The back end that compiled it.
    pub backend: Backend,
    /// The code, which is entered at its first byte and must be aligned to 16 bytes.
    pub code: Vec<u8>,
    /// Places to patch, ascending.
    pub relocs: Vec<Reloc>,
    /// Trap sites, ascending by offset.
    pub traps: Vec<TrapEntry>,
    /// Return addresses of calls, ascending, with the pc of the call: for backtraces.
    pub calls: Vec<(u32, u32)>,
    /// Entries at loops, in the convention of OSR bodies: the index of the loop and the offset in the code, ascending. Only
    /// baseline code has them, and only if [`Options::ticks`].
    pub headers: Vec<(u32, u32)>,
    /// The landings of handlers of exceptions, ascending.
    pub landings: Vec<Landing>,
    /// The layout of the native frame.
    pub frame: FrameLayout,
    /// The places of roots in the frame.
    pub roots: Roots,
    /// The traps and calls that are in code of inlined functions.
    pub inlining: Inlining,
    /// The offsets in the code at which the machine instructions of another Wasm instruction begin, ascending, each with its pc
    /// or 0 for none. Only filled in with [`Options::lines`].
    pub lines: Vec<(u32, u32)>,
    /// Counts and times of the compilation.
    pub stats: CompileStats,
}

/// Counts and times of one compilation.
#[derive(Clone, Debug, Default)]
pub struct CompileStats {
    /// Counts.
    pub counters: Counters,
    /// Rewrites by pass, in order.
    pub changes: Vec<(&'static str, u32)>,
    /// Nanoseconds by phase, in order.
    pub phases: Vec<(&'static str, u64)>,
}

/// The reason why a function was not compiled. It stays in the interpreter, or is compiled by the other back end.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The back end has no code for something in the function.
    #[error("{backend:?} has no code for {what}")]
    Unsupported {
        /// The back end that refused.
        backend: Backend,
        /// An instruction or a feature.
        what: String,
    },
    /// The function contains something that has no SSA, whatever the back end.
    #[error("there is no SSA for {what}")]
    Untranslated {
        /// An instruction or a feature.
        what: &'static str,
    },
    /// The function exceeds a stated budget.
    #[error("{what} exceeds the budget of {limit}")]
    Budget {
        /// The back end that refused, or `None` if a phase before the back ends did.
        backend: Option<Backend>,
        /// The quantity that is too large.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The compilation has taken too many steps or too much memory, or is no longer wanted.
    #[error(transparent)]
    Ended(#[from] Ended),
}

impl Refusal {
    /// The back end that refused, or `None` if all would.
    pub fn backend(&self) -> Option<Backend> {
        match self {
            Refusal::Unsupported { backend, .. } => Some(*backend),
            Refusal::Untranslated { .. } | Refusal::Ended(_) => None,
            Refusal::Budget { backend, .. } => *backend,
        }
    }
}
