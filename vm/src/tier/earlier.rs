//! Installs code of earlier processes.

use super::entry::{Code, Key};
use super::install::{Unused, install_stored, place_all, publish_all};
use super::policy;
use super::state::{engine_of, state_of};
use super::stored::{grade, has};
use crate::records::module::ModuleRecord;
use crate::records::precompiled::format::{CodePlace, Grade};
use std::sync::Arc;
use weir_contract::Entry;
use weir_contract::unplaced::UnplacedCode;
use weir_jit::Backend;

/// Installs the stored code of an entry, if there is room.
///
/// # Errors
/// It is damaged, or there is no room for its counters: it is as if there were none from now on.
pub(super) fn install(module: &Arc<ModuleRecord>, key: Key) -> Result<Option<Code>, Unused> {
    let (shelf, grade) = (module.shelf.as_ref().ok_or(Unused)?, grade(key.level));
    let bytes = shelf.get(key.func, grade);
    match bytes.as_deref().and_then(|bytes| read(module, key.func, bytes, grade)) {
        Some(code) => {
            let installed = install_stored(module, key, code)?;
            if installed.is_some() {
                shelf.took(grade);
            }
            Ok(installed)
        }
        None => {
            shelf.discard(key.func, grade);
            Err(Unused)
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
    let most = policy::ahead_bytes(engine.max_code_size);
    // Some of the bytes are tables.
    let window_bytes = shelf.called_bytes(most) as usize / 4 * 3;
    let mut window = state.native(module).ok().and_then(|native| native.code.window(window_bytes));
    let mut placed = Vec::new();
    shelf.visit_called(most, |parts| {
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
            match bytes.and_then(|bytes| read(module, func, bytes, grade)) {
                Some(code) => {
                    // Other instances may run already, and ask for code.
                    entries.queued(key);
                    all.push((key, code));
                }
                None => shelf.discard(func, grade),
            }
        }
        drop(entries);
        placed.extend(place_all(module, all, window.as_mut()));
    });
    let failed = window.as_mut().is_some_and(|window| window.seal().is_err());
    let unsealed = window.as_ref().filter(|_| failed);
    publish_all(module, placed, unsealed).iter().for_each(|key| shelf.took(grade(key.level)));
}

/// Reads stored code of this tier, if it is not damaged, nor the body of its function if that may be needed while the code runs.
fn read<'b>(module: &ModuleRecord, func: u32, bytes: &'b [u8], grade: Grade) -> Option<UnplacedCode<'b>> {
    let backend = match grade {
        Grade::Baseline => Backend::Baseline,
        Grade::Optimised => Backend::Native,
    };
    let code = UnplacedCode::read(bytes, &module.bytecode).ok().filter(|code| code.backend == backend)?;
    // The body has the handlers of a frame, and which slots of baseline code are roots.
    let needs_body = !code.landings.is_empty() || grade == Grade::Baseline && module.bytecode.has_collected;
    (!needs_body || module.can_read_body(func)).then_some(code)
}
