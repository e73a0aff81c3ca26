//! Requests to the compiler: the same whether the code is run or shown.

use crate::records::config::{Config, Tier};
use crate::records::kept_profile::UsedCounts;
use crate::records::module::ModuleRecord;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use weir_contract::profile::Profile;
use weir_contract::profile_text::ModuleProfile;
use weir_jit::ir::Entry;
use weir_jit::request::CalleeCounts;
use weir_jit::{Backend, Options, Request};

/// Creates the request to compile an entry of `module` with these counts.
pub(crate) fn request<'a>(
    module: &'a ModuleRecord,
    func: u32,
    entry: Entry,
    backend: Backend,
    counts: Option<&'a Counts<'_>>,
    options: &'a Options,
) -> Request<'a> {
    let ModuleRecord { bytecode, sig_ids, .. } = module;
    let profile = counts.and_then(|counts| counts.own.as_deref());
    let callees = counts.map(|counts| counts as &dyn CalleeCounts);
    Request { module: bytecode, func, entry, sig_ids, backend, profile, callees, options }
}

/// The counts for the compilation of an entry: its own, and those of the functions that are inlined in its code.
pub(crate) struct Counts<'m> {
    module: &'m ModuleRecord,
    func: u32,
    entry: Entry,
    /// The profile from which they are: a used one, or one in the module. `None` if they are [those of runs](counted).
    saved: Option<&'m ModuleProfile>,
    own: Option<Cow<'m, Profile>>,
    /// What the compiler was told of inlined functions, if profiles are kept.
    inlined: RefCell<BTreeMap<u32, Profile>>,
}

impl<'m> Counts<'m> {
    /// Returns the counts for an entry. A used profile has precedence over one in the module, and that over [the counts of runs](counts_so_far).
    pub fn new(module: &'m ModuleRecord, func: u32, entry: Entry) -> Counts<'m> {
        let used = module.kept_profile.as_ref().and_then(|kept| kept.used());
        let has_counts = |saved: &&ModuleProfile| saved.has_counts(func, entry);
        let saved = used.filter(has_counts).or_else(|| module.hints.exact(&module.bytecode).filter(has_counts));
        let own = match saved {
            Some(saved) => saved.counts(func, entry).map(Cow::Borrowed),
            None => counts_so_far(module, func),
        };
        Counts { module, func, entry, saved, own, inlined: RefCell::default() }
    }

    /// Returns the counts that the compilation has used.
    pub fn used(self) -> UsedCounts {
        let mut inlined = self.inlined.into_inner();
        if self.own.as_ref().is_some_and(|own| own.is_empty()) {
            // A saved profile tells an entry that has counted nothing from one without a profile by its inlined functions.
            inlined.entry(self.func).or_default();
        }
        UsedCounts { own: self.own.map_or_else(Profile::default, Cow::into_owned), inlined }
    }
}

impl fmt::Debug for Counts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counts").field("func", &self.func).field("entry", &self.entry).finish_non_exhaustive()
    }
}

impl CalleeCounts for Counts<'_> {
    fn counts(&self, func: u32) -> Option<Profile> {
        // An entry without a profile has no place for them: a saved profile does not tell it from one that has counted nothing.
        self.own.as_ref()?;
        let profile = match self.saved {
            Some(saved) => saved.inlined(self.func, self.entry, func)?.clone(),
            // Also kept if it is empty, so that it is known that the entry had a profile.
            None => counts_so_far(self.module, func).unwrap_or_default().into_owned(),
        };
        if self.module.kept_profile.is_some() {
            self.inlined.borrow_mut().insert(func, profile.clone());
        }
        Some(profile)
    }
}

/// Returns a function's [counts of runs](counted). Instructions that no run has executed get their counts from the module's hints.
fn counts_so_far(module: &ModuleRecord, func: u32) -> Option<Cow<'_, Profile>> {
    match (counted(module, func), module.hints.profile(&module.bytecode, func)) {
        (Some(counts), Some(hints)) => {
            let mut counts = counts.into_owned();
            counts.fill(&hints);
            Some(Cow::Owned(counts))
        }
        (counts, hints) => counts.or(hints.map(Cow::Owned)),
    }
}

/// Returns the counts of this run and, of modules from the cache, of earlier ones.
pub(crate) fn counted(module: &ModuleRecord, func: u32) -> Option<Cow<'_, Profile>> {
    // A function without counters is not validated for this.
    let counters = module.func_code(func).counters();
    let counts = counters.and_then(|counters| Some(counters.snapshot(&module.bytecode, module.body(func)?)));
    let earlier = module.shelf.as_ref().and_then(|shelf| shelf.earlier().get(&func));
    match (counts, earlier) {
        (Some(mut counts), Some(earlier)) => {
            counts.merge(&earlier.profile());
            Some(Cow::Owned(counts))
        }
        (Some(counts), None) => Some(Cow::Owned(counts)),
        (None, earlier) => earlier.map(|earlier| Cow::Owned(earlier.profile())),
    }
}

/// Returns the back ends to try, in order, when `backend` is requested.
pub(crate) fn back_ends(backend: Backend) -> &'static [Backend] {
    match backend {
        Backend::Native if cfg!(feature = "cranelift") => &[Backend::Native, Backend::Cranelift],
        Backend::Native => &[Backend::Native],
        Backend::Cranelift => &[Backend::Cranelift],
        Backend::Baseline => &[Backend::Baseline],
    }
}

/// Returns the back end that these settings request first; `None` if nothing is compiled. Under stress the policy may
/// choose another.
pub(crate) fn back_end(config: &Config) -> Option<Backend> {
    match config.tier {
        Tier::Auto | Tier::Native => Some(Backend::Native),
        Tier::Cranelift => Some(Backend::Cranelift),
        Tier::Baseline => Some(Backend::Baseline),
        Tier::Interpreter | Tier::Ssa => None,
    }
}
