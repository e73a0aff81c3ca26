//! What goes into a compilation and what comes out: plain data, which every stage names and none owns.

use crate::construct::Refinements;
use crate::ir::Entry;
use crate::opt::constprop::{Limits, Proved};
use weir_bytecode::Module;
use weir_contract::TrapSite;
use weir_contract::profile::Profile;

/// Which back end turns SSA into machine code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Backend {
    /// Weir's own, for x86-64.
    Native,
    /// Cranelift.
    Cranelift,
}

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
    /// Code may fault where it traps, because signal handlers stand by; without, it calls [`Helper::Raise`](weir_contract::Helper).
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
    pub limits: Limits,
    /// What construction does beyond the plain algorithm.
    pub refinements: Refinements,
    /// Bytes of code that an OSR body may hold again so that the loops around its entry are peeled.
    pub peel_limit: u32,
    /// Fill in [`Compiled::lines`].
    pub lines: bool,
    /// Machine code that the native back end takes for these functions instead of lowering them. For tests.
    pub machine_code: Vec<MachineText>,
}

/// The text of a function's machine code, after any phase: see [`mir::print`](crate::mir::print).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MachineText {
    /// The function.
    pub func: u32,
    /// How it is entered.
    pub entry: Entry,
    /// The text.
    pub text: String,
}

/// [`Options::peel_limit`], if nobody asks for another: what is compiled within some milliseconds.
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
            limits: Limits::default(),
            refinements: Refinements::ALL,
            peel_limit: PEEL_LIMIT,
            lines: false,
            machine_code: Vec::new(),
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
    /// Who compiles it.
    pub backend: Backend,
    /// What was seen of it when it was interpreted.
    pub profile: Option<&'a Profile>,
    /// How.
    pub options: &'a Options,
}

/// The traps and calls of [`Compiled`] that are in code of inlined functions. The pc of such an entry is an instruction of the innermost
/// inlined function; the chain says which calls were inlined around it. No pass inlines calls yet, so that this is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inlining {
    /// Index in [`Compiled::traps`] and index of the chain's innermost link in `links`, ascending.
    pub traps: Vec<(u32, u32)>,
    /// The same of [`Compiled::calls`].
    pub calls: Vec<(u32, u32)>,
    /// The links of all chains. Entries share the outer links that they have in common.
    pub links: Vec<InlinedCall>,
}

/// A call that was inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlinedCall {
    /// The function that was called.
    pub func: u32,
    /// The pc of the call, in the function that the next link names, or in the compiled function.
    pub pc: u32,
    /// The index of the link around this one, which is lower than its own; `None` if the call is in the compiled function itself.
    pub outer: Option<u32>,
}

impl Inlining {
    /// The functions that are active at an entry, innermost first, each with its pc: `func` is the compiled function, `pc` the entry's
    /// pc, and `link` the innermost link of its chain, if it has one.
    pub fn expand(&self, func: u32, pc: u32, link: Option<u32>) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut next = Some((pc, link));
        std::iter::from_fn(move || {
            let (pc, link) = next?;
            let Some(link) = link.map(|link| self.links[link as usize]) else {
                next = None;
                return Some((func, pc));
            };
            next = Some((link.pc, link.outer));
            Some((link.func, pc))
        })
    }

    /// The innermost link of the trap with this index.
    pub fn of_trap(&self, index: usize) -> Option<u32> {
        Inlining::find(&self.traps, index)
    }

    /// The innermost link of the call with this index.
    pub fn of_call(&self, index: usize) -> Option<u32> {
        Inlining::find(&self.calls, index)
    }

    fn find(entries: &[(u32, u32)], index: usize) -> Option<u32> {
        let i = entries.binary_search_by_key(&index, |&(index, _)| index as usize).ok()?;
        Some(entries[i].1)
    }
}

/// Machine code, not yet placed in memory. Position independent but for its relocations.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// Who made it.
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

/// A 32-bit pc-relative field: `cell(func) + addend - address of the field` is to be stored at `offset`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reloc {
    /// Offset of the field in the code.
    pub offset: u32,
    /// The function of this module whose cell is meant.
    pub func: u32,
    /// To be added; -4 for a field that ends its instruction.
    pub addend: i32,
}

/// An instruction that may fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TrapEntry {
    /// Offset of the instruction in the code.
    pub offset: u32,
    /// What a fault there means.
    pub site: TrapSite,
    /// Offset of the Wasm instruction in the module.
    pub pc: u32,
}

/// Counts and times of one compilation.
#[derive(Clone, Debug, Default)]
pub struct CompileStats {
    /// Phis that construction placed and that stayed.
    pub phis: u32,
    /// Phis that construction placed and found trivial.
    pub trivial_phis: u32,
    /// Instructions of the SSA that the back end began with.
    pub values: u32,
    /// Stores of a register to a spill slot.
    pub spills: u32,
    /// Loads from a spill slot.
    pub reloads: u32,
    /// Copies that the allocator made between registers.
    pub copies: u32,
    /// Operations that construction found to be computed already.
    pub shared: u32,
    /// What constant propagation proved by gates, and could not have without.
    pub gated: Proved,
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
        /// Who refused.
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
        /// What is too big.
        what: &'static str,
        /// How big it may be.
        limit: usize,
    },
}
