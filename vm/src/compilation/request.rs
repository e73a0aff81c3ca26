//! Requests to the compiler: the same whether the code is run or shown.

use crate::records::config::{Config, Tier};
use crate::records::module::ModuleRecord;
use std::borrow::Cow;
use weir_contract::profile::Profile;
use weir_jit::ir::Entry;
use weir_jit::{Backend, Options, Request};

/// Creates the request to compile an entry of `module` with these counts.
pub(crate) fn request<'a>(
    module: &'a ModuleRecord,
    func: u32,
    entry: Entry,
    backend: Backend,
    profile: Option<&'a Profile>,
    options: &'a Options,
) -> Request<'a> {
    let ModuleRecord { bytecode, sig_ids, .. } = module;
    Request { module: bytecode, func, entry, sig_ids, backend, profile, options }
}

/// Returns the counts for the compilation of an entry: those of a used profile or of one in the module if it has any, else [those of
/// runs](counted), and for what was not executed the module's hints.
pub(crate) fn counts(module: &ModuleRecord, func: u32, entry: Entry) -> Option<Cow<'_, Profile>> {
    let ModuleRecord { bytecode, hints, kept_profile, .. } = module;
    let used = kept_profile.as_ref().and_then(|kept| kept.used(func, entry));
    if let Some(used) = used.or_else(|| hints.exact(bytecode, func, entry)) {
        return Some(Cow::Borrowed(used));
    }
    match (counted(module, func), hints.profile(bytecode, func)) {
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
    let counts = module.func_code(func).profile(&module.bytecode, module.body(func)?);
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
