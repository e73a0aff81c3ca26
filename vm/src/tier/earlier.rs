//! Installs code of earlier processes.

use super::entry::{Code, Key};
use super::install::{install_all, install_stored};
use super::policy;
use super::state::{engine_of, state_of};
use super::stored::{grade, has};
use crate::records::module::ModuleRecord;
use crate::records::precompiled::format::{CodePlace, Grade};
use std::sync::Arc;
use weir_bytecode::stored::Damaged;
use weir_contract::Entry;
use weir_contract::unplaced::UnplacedCode;
use weir_jit::Backend;

/// Installs the stored code of an entry. If it is damaged, it is as if there were none from now on. Returns whether it is not.
pub(super) fn install(module: &Arc<ModuleRecord>, key: Key) -> Result<Option<Code>, Damaged> {
    let (shelf, grade) = (module.shelf.as_ref().ok_or(Damaged)?, grade(key.level));
    let bytes = shelf.get(key.func, grade);
    match bytes.as_deref().and_then(|bytes| read(module, bytes, grade)) {
        Some(code) => {
            shelf.took(grade);
            Ok(install_stored(module, key, code))
        }
        None => {
            shelf.discard(key.func, grade);
            Err(Damaged)
        }
    }
}

/// Installs code of an earlier process before it is called, because most of it will be, and because installing a function alone takes ten
/// times as long.
pub(super) fn install_ahead(module: &Arc<ModuleRecord>) {
    let Some(shelf) = &module.shelf else { return };
    let (engine, state) = (engine_of(module.engine.record()), state_of(module));
    if !engine.policy.installs_ahead() {
        return;
    }
    state.entries().reserve(shelf.called_functions());
    shelf.visit_called(policy::ahead_bytes(engine.max_code_size), |parts| {
        let mut all = Vec::with_capacity(parts.len());
        let mut entries = state.entries();
        for (CodePlace { func, grade, .. }, bytes) in parts {
            let [top, simple] = [Key::top(func, Entry::Call), Key::baseline(func)];
            let key = if grade == Grade::Optimised { top } else { simple };
            let is_defined =
                func.checked_sub(module.bytecode.imported_funcs).is_some_and(|own| (own as usize) < module.code.len());
            if !is_defined || !has(module, key) || !entries.is_cold(top) || !entries.is_cold(simple) {
                continue;
            }
            match bytes.and_then(|bytes| read(module, bytes, grade)) {
                Some(code) => {
                    // Other instances may run already, and ask for code.
                    entries.queued(key);
                    all.push((key, code));
                }
                None => shelf.discard(func, grade),
            }
        }
        drop(entries);
        let keys: Vec<Key> = all.iter().map(|(key, _)| *key).collect();
        if install_all(module, all) {
            keys.iter().for_each(|key| shelf.took(grade(key.level)));
        } else {
            let mut entries = state.entries();
            keys.iter().for_each(|key| entries.dropped(*key));
        }
    });
}

/// Reads stored code of this tier, if it is not damaged.
fn read<'b>(module: &ModuleRecord, bytes: &'b [u8], grade: Grade) -> Option<UnplacedCode<'b>> {
    let backend = match grade {
        Grade::Baseline => Backend::Baseline,
        Grade::Optimised => Backend::Native,
    };
    UnplacedCode::read(bytes, &module.bytecode).ok().filter(|code| code.backend == backend)
}
