//! The definition of a pass, and its context: analyses, fuel, options, counters.

use crate::analysis::{Cfg, Dominators, Homes};
use crate::ir::Func;
use crate::request::Options;
use bumpalo::Bump;
use std::cell::Cell;
use weir_bytecode::Module;
use weir_contract::stats::Counters;

/// A transformation of a function.
#[derive(Debug)]
pub struct Pass {
    /// How flags, dumps and statistics call it.
    pub name: &'static str,
    /// Does it.
    pub run: fn(&mut Func<'_>, &Context<'_>) -> Changed,
    /// The analyses that it uses.
    pub needs: &'static [Analysis],
    /// What still holds of a function that it has changed.
    pub keeps: &'static [Analysis],
}

/// How many rewrites a pass made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Changed(pub u32);

/// A cached analysis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Analysis {
    /// [`Cfg`]
    Cfg,
    /// [`Dominators`]
    Dominators,
    /// [`Homes`]
    Homes,
}

impl Analysis {
    /// All that depend on nothing but blocks and edges: what a pass that touches neither keeps.
    pub const OF_BLOCKS: &'static [Analysis] = &[Analysis::Cfg, Analysis::Dominators];
    /// All: what a pass keeps that only removes instructions.
    pub const ALL: &'static [Analysis] = &[Analysis::Cfg, Analysis::Dominators, Analysis::Homes];
}

/// What surrounds the passes of one function.
pub struct Context<'c> {
    /// The module, if there is one.
    pub module: Option<&'c Module>,
    /// Which passes run, and how far they go.
    pub options: &'c Options,
    /// Rewrites that may still be made; `None` for any number.
    pub fuel: Cell<Option<u64>>,
    /// What the passes counted besides their rewrites.
    pub counters: Cell<Counters>,
    /// Analyses that hold now.
    pub analyses: Analyses,
    /// Memory for the pass that runs, empty again after it. Worth keeping from function to function.
    pub scratch: Bump,
}

/// Cached analyses of the function that the passes run on.
#[derive(Default)]
pub struct Analyses {
    cfg: Option<Cfg>,
    dom: Option<Dominators>,
    homes: Option<Homes>,
}

impl<'c> Context<'c> {
    /// A context without a module, in which nothing has run.
    pub fn new(options: &'c Options) -> Context<'c> {
        Context {
            module: None,
            options,
            fuel: options.rewrite_fuel.into(),
            counters: Cell::default(),
            analyses: Analyses::default(),
            scratch: Bump::new(),
        }
    }

    /// Whether the pass does not run.
    pub fn is_off(&self, pass: &Pass) -> bool {
        self.options.passes_off.iter().any(|name| name == pass.name)
    }

    /// Adds to what the passes counted.
    pub fn count(&self, more: Counters) {
        let mut counters = self.counters.get();
        counters += more;
        self.counters.set(counters);
    }

    /// Takes the fuel of one rewrite and returns whether there was some. Without, a pass leaves the function as it is; it may ask
    /// again.
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

    /// Order and reachability.
    ///
    /// # Panics
    /// If the pass that runs does not list it among its needs; so do the others.
    pub fn cfg(&self) -> &Cfg {
        self.analyses.cfg.as_ref().expect("a pass that uses the order of blocks needs Analysis::Cfg")
    }

    /// The dominator tree.
    pub fn dom(&self) -> &Dominators {
        self.analyses.dom.as_ref().expect("a pass that uses dominators needs Analysis::Dominators")
    }

    /// The block of each value.
    pub fn homes(&self) -> &Homes {
        self.analyses.homes.as_ref().expect("a pass that uses the blocks of values needs Analysis::Homes")
    }
}

impl Analyses {
    pub(super) fn compute(&mut self, func: &Func<'_>, needs: &[Analysis]) {
        if needs.is_empty() {
            return;
        }
        if needs.contains(&Analysis::Homes) {
            self.homes.get_or_insert_with(|| Homes::compute(func));
        }
        let cfg = self.cfg.get_or_insert_with(|| Cfg::compute(func));
        if needs.contains(&Analysis::Dominators) {
            self.dom.get_or_insert_with(|| Dominators::compute(func, cfg));
        }
    }

    pub(super) fn forget_all_but(&mut self, keeps: &[Analysis]) {
        if !keeps.contains(&Analysis::Cfg) {
            self.cfg = None;
        }
        if !keeps.contains(&Analysis::Dominators) {
            self.dom = None;
        }
        if !keeps.contains(&Analysis::Homes) {
            self.homes = None;
        }
    }
}
