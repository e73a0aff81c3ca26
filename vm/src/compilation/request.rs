//! What the compiler is asked for: the same request whether its code is to run or to be shown.

use crate::records::config::{Config, Tier};
use crate::records::module::ModuleRecord;
use std::borrow::Cow;
use weir_contract::profile::Profile;
use weir_jit::ir::Entry;
use weir_jit::{Backend, Options, Request};

/// The request to compile an entry of `module` with these counts.
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

/// The counts for the compilation of an entry: those of an earlier run if one is used and has some, else those of this run.
pub(crate) fn counts(module: &ModuleRecord, func: u32, entry: Entry) -> Option<Cow<'_, Profile>> {
    let used = module.kept_profile.as_ref().and_then(|kept| kept.used(func, entry));
    used.map(Cow::Borrowed).or_else(|| module.func_code(func).profile().map(Cow::Owned))
}

/// The back ends that are asked, one after the other, until one compiles what is to be compiled with `backend`.
pub(crate) fn back_ends(backend: Backend) -> &'static [Backend] {
    match backend {
        Backend::Native if cfg!(feature = "cranelift") => &[Backend::Native, Backend::Cranelift],
        Backend::Native => &[Backend::Native],
        Backend::Cranelift => &[Backend::Cranelift],
    }
}

/// The first back end that is asked with these settings; `None` if none is. Under stress it may be another.
pub(crate) fn back_end(config: &Config) -> Option<Backend> {
    match config.tier {
        Tier::Auto | Tier::Native => Some(Backend::Native),
        Tier::Cranelift => Some(Backend::Cranelift),
        Tier::Interpreter | Tier::Ssa => None,
    }
}
