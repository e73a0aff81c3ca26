//! Code that gives way: it is taken out of the tables, and its memory is used again once no store can return to it.
//!
//! Code is reached through its function's cell, by native callers, through `FuncCode::native`, by the interpreter, and through the
//! module's entries, by whoever asks the policy. [`retire`] takes it out of all three under the lock under which alone anything is
//! put in. Whoever had it before is in the guest: it has been since before the time that the code is given, and
//! [`CodeSpace::free_retired`](crate::code::CodeSpace::free_retired) frees nothing that is younger than the oldest activation.
//!
//! What gives way: under a full budget what is not in use, found by second chance; code of a loop whose function has code that is
//! called; under stress anything.

use super::compiler::{Body, Code, Entries, EntryState, ModuleState, State};
use super::policy;
use crate::records::module::ModuleRecord;
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use weir_contract::Entry;

/// Points function `func` at its code. The module's entries are locked, and there the code is ready.
pub(super) fn promote(module: &ModuleRecord, func: u32, code: Code) {
    let counted = module.func_code(func);
    if counted.native.load(Ordering::Relaxed).is_null()
        && let Some(native) = module.tier.native(module)
    {
        native.code.cell(func).store(code.0.cast_mut(), Ordering::Release);
        counted.native.store(code.0.cast_mut(), Ordering::Release);
    }
}

/// Sends function `func` back to the interpreter, where its next call asks for its code. The module's entries are locked.
fn demote(module: &ModuleRecord, func: u32) {
    let Some(native) = module.tier.native(module) else { return };
    let counted = module.func_code(func);
    native.code.cell(func).store(native.code.thunk(func).cast_mut(), Ordering::Release);
    counted.native.store(ptr::null_mut(), Ordering::Release);
    counted.ticks.store(0, Ordering::Relaxed);
}

/// Takes the code of an entry, which is ready, out of all tables. Returns how many bytes will be free.
fn retire(module: &Arc<ModuleRecord>, entries: &mut Entries, func: u32, entry: Entry, code: Code) -> usize {
    let engine = module.engine.record();
    let Some(native) = module.tier.native(module) else { return 0 };
    if entry == Entry::Call {
        demote(module, func);
    }
    entries.set_back(&engine.tier.policy, func, entry, 0);
    native.code.retire(code.0, || engine.guests.advance())
}

/// Tells of code that was retired; no lock is held.
fn tell(module: &Arc<ModuleRecord>, func: u32, entry: Entry, bytes: usize) {
    let engine = &module.engine.record().tier;
    for record in [&module.tier.record, &engine.record] {
        record.lock().unwrap_or_else(PoisonError::into_inner).add_retired(bytes as u64);
    }
    engine.listeners.tell_retired(module, func, entry, bytes);
}

/// An entry's code is ready: it is among what may give way from now on. Code of the function's loops that has been entered is not
/// needed any more if this is the code for its calls.
pub(super) fn ready(module: &Arc<ModuleRecord>, func: u32, entry: Entry) {
    let body = Body { module: Arc::downgrade(module), func, entry };
    module.engine.record().tier.bodies.lock().unwrap_or_else(PoisonError::into_inner).push_back(body);
    if entry == Entry::Call {
        retire_all(module, func, |entry, used| entry != Entry::Call && used);
    }
}

/// Retires the code of `func` that `which` chooses by entry and whether it was asked for lately.
fn retire_all(module: &Arc<ModuleRecord>, func: u32, which: impl Fn(Entry, bool) -> bool) {
    let mut entries = module.tier.entries();
    if entries.osr_bodies.get(&func).is_none_or(|&bodies| bodies == 0) && !which(Entry::Call, true) {
        return;
    }
    let chosen = |(&(of, entry), state): (&(u32, Entry), &State)| match state.entry {
        EntryState::Ready(code, used) if of == func && which(entry, used) => Some((entry, code)),
        _ => None,
    };
    let chosen: Vec<(Entry, Code)> = entries.states.iter().filter_map(chosen).collect();
    let retired: Vec<(Entry, usize)> =
        chosen.into_iter().map(|(entry, code)| (entry, retire(module, &mut entries, func, entry, code))).collect();
    drop(entries);
    retired.into_iter().for_each(|(entry, bytes)| tell(module, func, entry, bytes));
}

/// Makes room for `bytes` of code, as far as that is possible: what is retired and out of everyone's reach is freed, and if that is
/// not enough, what was not used lately gives way. Returns whether anything was freed.
pub(super) fn make_room(module: &ModuleRecord, bytes: usize) -> bool {
    let engine = module.engine.record();
    let Some(space) = engine.tier.space() else { return false };
    let free = || space.free_retired(|| engine.guests.oldest());
    let freed = free();
    // What is retired but not free yet makes room later.
    let mut missing = bytes.saturating_sub(freed + space.retired_bytes());
    let mut to_look_at = policy::LOOK_AT * bytes;
    let bodies = || engine.tier.bodies.lock().unwrap_or_else(PoisonError::into_inner);
    let count = bodies().len();
    for _ in 0..count {
        if missing == 0 || to_look_at == 0 {
            break;
        }
        let Some(body) = bodies().pop_front() else { break };
        let Some(owner) = body.module.upgrade() else { continue };
        match look_at(&owner, body.func, body.entry) {
            Look::Gone => {}
            Look::Used(bytes) => {
                to_look_at = to_look_at.saturating_sub(bytes);
                bodies().push_back(body);
            }
            Look::Retired(bytes) => {
                missing = missing.saturating_sub(bytes);
                tell(&owner, body.func, body.entry, bytes);
            }
        }
    }
    freed + free() > 0
}

/// What a look at code found, and of how many bytes.
enum Look {
    /// It is not there any more.
    Gone,
    /// It was used since the last look, and has to be once more before the next.
    Used(usize),
    /// It was not, and has given way.
    Retired(usize),
}

/// Whether code was used since the last look. Of a called function that shows in its pointers: the look takes them away, and the
/// next call puts them back.
fn look_at(module: &Arc<ModuleRecord>, func: u32, entry: Entry) -> Look {
    let mut entries = module.tier.entries();
    let Some(state) = entries.states.get_mut(&(func, entry)) else { return Look::Gone };
    let EntryState::Ready(code, used) = &mut state.entry else { return Look::Gone };
    let code = *code;
    let was_used = match entry {
        Entry::Call => !module.func_code(func).native.load(Ordering::Relaxed).is_null(),
        Entry::Osr(_) => std::mem::take(used),
    };
    if was_used {
        if entry == Entry::Call {
            demote(module, func);
        }
        return Look::Used(module.tier.native(module).map_or(0, |native| native.code.len_of(code.0)));
    }
    Look::Retired(retire(module, &mut entries, func, entry, code))
}

/// How often a function loses its code under stress: compiling again and again finds nothing new.
const MAX_SETBACKS: u32 = 50;

/// Under stress: function `func` goes back to the interpreter; with `retired` it loses its code and that of its loops, and what was
/// refused may be tried again. What no store can reach is freed.
pub(super) fn at_random(module: &Arc<ModuleRecord>, func: u32, retired: bool) {
    let entries = module.tier.entries();
    let setbacks = entries.states.get(&(func, Entry::Call)).map_or(0, |state| state.setbacks);
    if !retired || setbacks >= MAX_SETBACKS {
        return demote(module, func);
    }
    drop(entries);
    retire_all(module, func, |_, _| true);
    let engine = module.engine.record();
    let mut entries = module.tier.entries();
    let refused = entries.states.iter().filter(|((of, _), state)| *of == func && matches!(state.entry, EntryState::Refused));
    let refused: Vec<Entry> = refused.map(|(&(_, entry), _)| entry).collect();
    refused.into_iter().for_each(|entry| entries.set_back(&engine.tier.policy, func, entry, 0));
    drop(entries);
    if let Some(space) = engine.tier.space() {
        space.free_retired(|| engine.guests.oldest());
    }
}

impl ModuleState {
    /// Bytes of the module's code whose memory was given back while the module lived.
    pub(super) fn freed_bytes(&self, module: &ModuleRecord) -> u64 {
        self.native(module).map_or(0, |native| native.code.freed_bytes())
    }
}
