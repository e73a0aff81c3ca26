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

/// Returns the counts for the compilation of an entry: those of a used profile if it has any, else those of this run and, of modules from
/// the cache, of earlier ones.
pub(crate) fn counts(module: &ModuleRecord, func: u32, entry: Entry) -> Option<Cow<'_, Profile>> {
    let used = module.kept_profile.as_ref().and_then(|kept| kept.used(func, entry));
    used.map(Cow::Borrowed).or_else(|| {
        let body = module.body(func)?;
        let counts = module.func_code(func).profile(&module.bytecode, body);
        let earlier = module.shelf.as_ref().and_then(|shelf| shelf.earlier().get(&func));
        match (counts, earlier) {
            (Some(mut counts), Some(earlier)) => {
                counts.merge(&earlier.profile);
                Some(Cow::Owned(counts))
            }
            (Some(counts), None) => Some(Cow::Owned(counts)),
            (None, earlier) => earlier.map(|earlier| Cow::Borrowed(&earlier.profile)),
        }
    })
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
