//! The definition of a pass, and its context: analyses, fuel, options, counters.

use crate::analysis::{Cfg, DefBlocks, Dominators};
use crate::ir::{Block, Func};
use crate::meter::{self, Ended, Meter};
use crate::request::{CalleeCounts, Options};
use bumpalo::Bump;
use std::cell::Cell;
use weir_bytecode::Module;
use weir_contract::profile::Profile;
use weir_contract::stats::Counters;

/// A transformation of a function.
#[derive(Debug)]
pub struct Pass {
    /// Its name in options, dumps and statistics.
    pub name: &'static str,
    /// The transformation.
    pub run: fn(&mut Func<'_>, &Context<'_>) -> Changed,
    /// The analyses that it uses.
    pub needs: &'static [Analysis],
    /// The analyses that remain valid when it has changed a function.
    pub keeps: &'static [Analysis],
}

/// Builds the SSA of a function of the module that is entered by a call; `None` if it has none.
pub type Build = for<'a> fn(&'a Bump, &Module, u32, &Options, &Meter<'_>) -> Option<Func<'a>>;

/// The number of rewrites that a pass made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Changed(pub u32);

/// A cached analysis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Analysis {
    /// [`Cfg`]
    Cfg,
    /// [`Dominators`]
    Dominators,
    /// [`DefBlocks`]
    DefBlocks,
}

impl Analysis {
    /// All analyses that depend only on blocks and edges; a pass that changes neither keeps them.
    pub const OF_BLOCKS: &'static [Analysis] = &[Analysis::Cfg, Analysis::Dominators];
    /// All analyses; a pass that only removes instructions keeps them.
    pub const ALL: &'static [Analysis] = &[Analysis::Cfg, Analysis::Dominators, Analysis::DefBlocks];
}

/// The environment of the passes of one function.
pub struct Context<'c> {
    /// The module, if there is one.
    pub module: Option<&'c Module>,
    /// The function's profile, if there is one.
    pub profile: Option<&'c Profile>,
    /// The counts of other functions of the module.
    pub callees: Option<&'c dyn CalleeCounts>,
    /// Makes the SSA of other functions of the module. (A pass uses nothing of construction.)
    pub build: Option<Build>,
    /// The options, which say which passes run.
    pub options: &'c Options,
    /// The remaining rewrites; `None` for no limit.
    pub fuel: Cell<Option<u64>>,
    /// The steps of the compilation.
    pub meter: Meter<'c>,
    /// Counters of the passes besides their rewrites.
    pub counters: Cell<Counters>,
    /// Whether the code is for the native back end or for the evaluator, and not for Cranelift.
    pub native: bool,
    /// Whether the back end has vectors of 256 bits.
    pub long_vectors: bool,
    /// The analyses that are valid now.
    pub analyses: Analyses,
    /// Scratch memory for the running pass; it is emptied after each pass. It is worth reusing for the next function.
    pub scratch: Bump,
}

/// Cached analyses of the function that the passes run on.
#[derive(Default)]
pub struct Analyses {
    cfg: Option<Cfg>,
    dom: Option<Dominators>,
    def_blocks: Option<DefBlocks>,
}

impl Analyses {
    /// The bytes that they take, about: an order of blocks, a tree of them, and the block of each value.
    pub fn size(&self, func: &Func<'_>) -> usize {
        const OF_BLOCK: usize = 16;
        let of_blocks = usize::from(self.cfg.is_some()) + usize::from(self.dom.is_some());
        let of_values = if self.def_blocks.is_some() { size_of::<Block>() } else { 0 };
        of_blocks * OF_BLOCK * func.num_blocks() + of_values * func.num_values()
    }
}

impl<'c> Context<'c> {
    /// A context without a module, for a function on which no pass has run.
    pub fn new(options: &'c Options) -> Context<'c> {
        Context {
            module: None,
            profile: None,
            callees: None,
            build: None,
            options,
            fuel: options.rewrite_fuel.into(),
            meter: Meter::default(),
            counters: Cell::default(),
            native: true,
            long_vectors: true,
            analyses: Analyses::default(),
            scratch: Bump::new(),
        }
    }

    /// Whether the options switch the pass off.
    pub fn is_off(&self, pass: &Pass) -> bool {
        self.options.passes_off.iter().any(|name| name == pass.name)
    }

    /// Adds to the passes' counters.
    pub fn count(&self, more: Counters) {
        let mut counters = self.counters.get();
        counters += more;
        self.counters.set(counters);
    }

    /// Uses the fuel of one rewrite and returns whether there was any. Without fuel, a pass leaves the function as it is; it
    /// may call this again.
    pub fn spend(&self) -> bool {
        match self.fuel.get() {
            None => true,
            Some(0) => false,
            Some(left) => {
                self.fuel.set(Some(left - 1));
                true
            }
        }
    }

    /// Counts steps of the running pass, and returns whether it may go on. Otherwise it returns at once, and what it has made of the
    /// function is discarded.
    pub fn goes_on(&self, steps: usize) -> bool {
        self.meter.spend_holding(steps, || meter::used(&self.scratch)).is_ok()
    }

    /// The control-flow graph: order and reachability.
    ///
    /// # Panics
    /// If the running pass does not list the analysis among its needs; this holds for the other analyses too.
    pub fn cfg(&self) -> &Cfg {
        self.analyses.cfg.as_ref().expect("a pass that uses the order of blocks needs Analysis::Cfg")
    }

    /// The dominator tree.
    pub fn dom(&self) -> &Dominators {
        self.analyses.dom.as_ref().expect("a pass that uses dominators needs Analysis::Dominators")
    }

    /// The block of each value.
    pub fn def_blocks(&self) -> &DefBlocks {
        self.analyses.def_blocks.as_ref().expect("a pass that uses the blocks of values needs Analysis::DefBlocks")
    }
}

impl Analyses {
    /// Computes those that are needed and not there.
    ///
    /// # Errors
    /// The compilation is to end. Then some are missing.
    pub(super) fn compute(&mut self, func: &Func<'_>, needs: &[Analysis], meter: &Meter<'_>) -> Result<(), Ended> {
        if needs.is_empty() {
            return Ok(());
        }
        if needs.contains(&Analysis::DefBlocks) && self.def_blocks.is_none() {
            self.def_blocks = Some(DefBlocks::compute(func));
            meter.ask()?;
        }
        if self.cfg.is_none() {
            self.cfg = Some(Cfg::compute(func));
            meter.ask()?;
        }
        if let (true, None, Some(cfg)) = (needs.contains(&Analysis::Dominators), &self.dom, &self.cfg) {
            self.dom = Some(Dominators::compute(func, cfg));
            meter.ask()?;
        }
        Ok(())
    }

    pub(super) fn forget_all_but(&mut self, keeps: &[Analysis]) {
        if !keeps.contains(&Analysis::Cfg) {
            self.cfg = None;
        }
        if !keeps.contains(&Analysis::Dominators) {
            self.dom = None;
        }
        if !keeps.contains(&Analysis::DefBlocks) {
            self.def_blocks = None;
        }
    }
}
