//! The input and output of a compilation: plain data that all stages use.

use crate::ir::Entry;
use crate::settings::{PropagationLimits, Refinements};
use weir_bytecode::Module;
use weir_contract::code::UnplacedCode;
pub use weir_contract::code::{
    Backend, FunctionText, InlinedCall, Inlining, PadAt, Padding, Reloc, RelocTarget, TextForm, TrapEntry,
};
use weir_contract::profile::Profile;
use weir_contract::stats::Counters;

/// Which allocator gives the native back end's values their registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Allocator {
    /// [Linear scan](crate::regalloc::allocate).
    #[default]
    LinearScan,
    /// The crate `regalloc2`.
    Regalloc2,
}

/// What shapes the code, the same for all functions of an engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Charge fuel.
    pub fuel: bool,
    /// Poll the epoch.
    pub poll: bool,
    /// Memories have guard regions, whose faults become traps; needs `signals`.
    pub guard_regions: bool,
    /// Code may fault where it traps, because signal handlers are installed; without, it calls [`Helper::Raise`](weir_contract::Helper).
    pub signals: bool,
    /// Replace NaNs whose bits the specification leaves open by the canonical one.
    pub canonical_nans: bool,
    /// Check the SSA after every stage and the allocation after it is made; panics on a violation.
    pub verify: bool,
    /// The register allocator of the native back end.
    pub allocator: Allocator,
    /// Names of passes that do not run: see [`opt::passes`](crate::opt::passes).
    pub passes_off: Vec<String>,
    /// How many rewrites the passes may make in each function; `None` for any number. For bisecting.
    pub rewrite_fuel: Option<u64>,
    /// How far constant propagation goes.
    pub limits: PropagationLimits,
    /// What construction does beyond the plain algorithm.
    pub refinements: Refinements,
    /// Bytes of code that an OSR body may hold again so that the loops around its entry are peeled.
    pub peel_limit: u32,
    /// Baseline code counts ticks, and is left for better code.
    pub ticks: bool,
    /// The requested padding. Only the native back end uses it.
    pub padding: Padding,
    /// Fill in [`Compiled::lines`].
    pub lines: bool,
    /// Functions that are compiled from these texts and not from their bytecode. For tests.
    pub texts: Vec<FunctionText>,
}

/// Default of [`Options::peel_limit`]: code of this size compiles within some milliseconds.
const PEEL_LIMIT: u32 = 8 << 10;

impl Default for Options {
    fn default() -> Options {
        Options {
            fuel: false,
            poll: false,
            guard_regions: true,
            signals: true,
            canonical_nans: false,
            verify: cfg!(debug_assertions),
            allocator: Allocator::default(),
            passes_off: Vec::new(),
            rewrite_fuel: None,
            limits: PropagationLimits::default(),
            refinements: Refinements::ALL,
            peel_limit: PEEL_LIMIT,
            ticks: false,
            padding: Padding::default(),
            lines: false,
            texts: Vec::new(),
        }
    }
}

/// What to compile.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The module.
    pub module: &'a Module,
    /// A function defined in it.
    pub func: u32,
    /// By call or by OSR.
    pub entry: Entry,
    /// Engine-wide signature identities, by the module's type index: what table elements are compared with.
    pub sig_ids: &'a [u32],
    /// The back end.
    pub backend: Backend,
    /// Its profile from the interpreter.
    pub profile: Option<&'a Profile>,
    /// How.
    pub options: &'a Options,
}

/// Machine code, not yet placed in memory. Position independent but for its relocations.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The back end that made it.
    pub backend: Backend,
    /// The code, entered at its first byte; 16-byte alignment is assumed.
    pub code: Vec<u8>,
    /// Places to patch, ascending.
    pub relocs: Vec<Reloc>,
    /// Trap sites, ascending by offset.
    pub traps: Vec<TrapEntry>,
    /// Return addresses of calls, ascending, with the pc of the call: for backtraces.
    pub calls: Vec<(u32, u32)>,
    /// Which traps and calls are in code of inlined functions.
    pub inlining: Inlining,
    /// Where in the code the machine instructions for another Wasm instruction begin, and its pc, 0 for none; ascending. Only
    /// if [`Options::lines`].
    pub lines: Vec<(u32, u32)>,
    /// What happened on the way.
    pub stats: CompileStats,
}

impl Compiled {
    /// The code with the tables that placing it takes.
    pub fn unplaced(&self) -> UnplacedCode<'_> {
        let Compiled { backend, code, relocs, traps, calls, inlining, lines: _, stats: _ } = self;
        UnplacedCode { backend: *backend, code, relocs, traps, calls, inlining }
    }
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

/// Adds to the number that goes by `name` in `sums`, which keep the order in which the names first came.
pub fn add_to(sums: &mut Vec<(&'static str, u64)>, name: &'static str, more: u64) {
    match sums.iter_mut().find(|sum| sum.0 == name) {
        Some(sum) => sum.1 += more,
        None => sums.push((name, more)),
    }
}

/// Why a function was not compiled. It stays with the interpreter, or goes to the other back end.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The back end has no code for something in it.
    #[error("{backend:?} has no code for {what}")]
    Unsupported {
        /// The back end that refused.
        backend: Backend,
        /// An instruction or a feature.
        what: String,
    },
    /// It holds something for which there is no SSA, whatever the back end.
    #[error("there is no SSA for {what}")]
    Untranslated {
        /// An instruction or a feature.
        what: &'static str,
    },
    /// It exceeds a stated budget.
    #[error("{what} exceeds the budget of {limit}")]
    Budget {
        /// The back end that refused; `None` for what comes before the back ends.
        backend: Option<Backend>,
        /// What is too big.
        what: &'static str,
        /// How big it may be.
        limit: usize,
    },
}

impl Refusal {
    /// The back end that refused; `None` if the function has no SSA for any.
    pub fn backend(&self) -> Option<Backend> {
        match self {
            Refusal::Unsupported { backend, .. } => Some(*backend),
            Refusal::Untranslated { .. } => None,
            Refusal::Budget { backend, .. } => *backend,
        }
    }
}
