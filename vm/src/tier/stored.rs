//! Code that outlives a process: what it depends on, which entries have some of an earlier process, and keeping that of this one.

use super::entry::{Key, Level};
use super::policy;
use super::state::{EngineState, engine_of};
use crate::records::config::{Config, ModuleVersionStrategy, Tier};
use crate::records::engine::EngineRecord;
use crate::records::module::ModuleRecord;
use crate::records::precompiled::format::{Grade, Identity};
use weir_bytecode::validate;
use weir_contract::Entry;
use weir_jit::{Backend, x64};

/// Returns what the code of an engine depends on besides the module. All options of the compiler and of validation are in it, as
/// their debugging text, so that a new one is too.
///
/// `None` if code is not stored: nothing is compiled, or only by Cranelift, whose code has the engine's type identities in it; or
/// settings choose at random.
pub(crate) fn identity(engine: &EngineRecord) -> Option<Identity> {
    identity_on(engine, x64::has_avx2())
}

/// The same on a processor with or without AVX2, which is the only extension that code may lack but for that in the options.
fn identity_on(engine: &EngineRecord, has_avx2: bool) -> Option<Identity> {
    let Config { tier: Tier::Auto | Tier::Native, stress: None, .. } = engine.config else { return None };
    let EngineState { options, .. } = engine_of(engine);
    let validation = validate::Options { threads: 0, lazy: false, ..engine.config.validation(false) };
    let settings = format!("{options:?} {validation:?} avx2 {has_avx2}");
    let version = &engine.config.module_version;
    Some(Identity::of(&settings, (*version != ModuleVersionStrategy::None).then(|| version.as_str())))
}

/// Returns whether there is stored code for an entry that the policy would compile.
pub(super) fn has(module: &ModuleRecord, key: Key) -> bool {
    let Some(shelf) = &module.shelf else { return false };
    let Key { func, entry, level } = key;
    let config = module.engine.config();
    let chosen = || config.interprets(&module.bytecode, func) || config.compiles_simply(&module.bytecode, func);
    entry == Entry::Call && shelf.has(func, grade(level)) && !chosen() && !engine_of(module.engine.record()).policy.is_stressed()
}

/// Keeps the code of an entry, which is packed as `bytes`, for later processes, if the module's code outlives this one and it is not too large.
pub(super) fn keep(module: &ModuleRecord, Key { func, entry, level }: Key, backend: Backend, bytes: Vec<u8>) {
    let Some(shelf) = &module.shelf else { return };
    let is_kept = match backend {
        Backend::Native => level == Level::Top,
        Backend::Baseline => level == Level::Baseline,
        Backend::Cranelift => false,
    };
    if entry == Entry::Call && is_kept && bytes.len() <= policy::MAX_KEPT {
        shelf.keep(&module.bytecode.account, func, grade(level), bytes.into());
    }
}

/// Returns the tier of stored code of this level.
pub(super) fn grade(level: Level) -> Grade {
    match level {
        Level::Baseline => Grade::Baseline,
        Level::Top => Grade::Optimised,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::precompiled::artifact::Artifact;
    use crate::records::precompiled::format::{Builder, Unusable};
    use std::io::Cursor;

    #[test]
    fn code_is_not_used_on_a_processor_with_other_extensions() {
        let engine = crate::Engine::default();
        let [with, without] = [true, false].map(|has_avx2| identity_on(engine.record(), has_avx2).unwrap());
        let written =
            Builder::new(Cursor::new(Vec::new())).and_then(|builder| builder.finish(with, [0; 32])).unwrap().into_inner();
        let opened = |identity| Artifact::open(Box::new(written.clone().into_boxed_slice()), identity).map(drop);
        assert_eq!((opened(&with), opened(&without)), (Ok(()), Err(Unusable::Settings)));
    }
}
