//! From an entry to its code: compiling, placing, making known.

use super::entry::Code;
use super::publish;
use super::state::{NativeModule, engine_of, state_of};
use super::{evict, policy};
use crate::code::CodeError;
use crate::compilation::request::{back_ends, counts, request};
use crate::records::module::ModuleRecord;
use std::any::Any;
use std::borrow::Cow;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use weir_contract::Entry;
use weir_contract::profile::Profile;
use weir_jit::compile::{Context, Options};
use weir_jit::{Backend, Compiled};

/// The result of compiling.
struct Attempt<'m> {
    /// The counts that were used, if any.
    profile: Option<Cow<'m, Profile>>,
    /// The code, if a back end made some.
    compiled: Option<Compiled>,
    /// Why back ends made none, in the order in which they were asked.
    reasons: Vec<String>,
    /// Messages of panics in the compiler, which are among the reasons.
    panics: Vec<String>,
    /// What attempts took that came to nothing.
    refused: Duration,
}

/// Compiles an entry, which is queued, and makes its code reachable, `wanted` by a thread that waits for it or by none. `None`:
/// every back end refused, or there is no room now. Does not panic if the compiler does.
pub(super) fn compile_and_install(
    module: &Arc<ModuleRecord>,
    func: u32,
    entry: Entry,
    backend: Backend,
    wanted: bool,
) -> Option<Code> {
    let (engine, state) = (engine_of(module.engine.record()), state_of(module));
    let policy = &engine.policy;
    let native = state.native(module).ok()?;
    let Attempt { profile, compiled, mut reasons, panics, refused } = compile(module, func, entry, backend, &engine.options);
    let slot = state.entries().get(func, entry);
    // A second time nothing new would be told of one that finds no room.
    let again = slot.setbacks() > 0;
    let mut full = false;
    let installed = compiled.and_then(|compiled| match place(module, native, func, entry, &compiled, slot.failures()) {
        Ok(code) => Some((code, compiled)),
        Err(error) => {
            full = true;
            reasons.push(error.to_string());
            None
        }
    });
    if let (Some(kept), Some(_)) = (&module.kept_profile, &installed) {
        kept.compiled(func, entry, profile.map_or_else(Profile::default, Cow::into_owned));
    }
    if !(again && full) {
        for record in [&state.record, &engine.record] {
            let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
            record.add(module, func, entry, installed.as_ref().map(|(_, compiled)| compiled), again, &reasons);
            record.add_panics(panics.len());
            if !reasons.is_empty() {
                record.add_refused(refused);
            }
        }
        panics.iter().for_each(|message| engine.listeners.tell_panic(module, func, entry, message));
        // SAFETY: it is installed, the module is here, and nobody can retire what is not ready.
        unsafe {
            engine.listeners.tell(module, func, entry, installed.as_ref().map(|(code, compiled)| (*code, compiled)), &reasons);
        }
    }
    let code = installed.map(|(code, _)| code);
    let mut entries = state.entries();
    match code {
        None if full => entries.no_room(func, entry, slot.failures() + 1, |setbacks| policy.rest(setbacks)),
        None => entries.refused(func, entry, false),
        Some(code) => {
            publish::introduce(module, native, func);
            entries.installed(func, entry, code, wanted);
            if entry == Entry::Call {
                publish::publish(module, native, func, code);
            }
            drop(entries);
            evict::ready(module, func, entry);
        }
    }
    code
}

/// Places code in memory, for which other code may have to go; it found no room this many times in a row.
fn place(
    module: &Arc<ModuleRecord>,
    native: &NativeModule,
    func: u32,
    entry: Entry,
    compiled: &Compiled,
    failures: u32,
) -> Result<Code, CodeError> {
    let mut placed = native.code.install(func, entry, compiled.unplaced());
    if placed.is_err() && evict::make_room(module, policy::wanted(compiled.code.len(), failures)) {
        placed = native.code.install(func, entry, compiled.unplaced());
    }
    placed.map(Code)
}

/// Compiles an entry with `backend`, and if Weir's own refuses, with Cranelift.
fn compile<'m>(module: &'m ModuleRecord, func: u32, entry: Entry, backend: Backend, options: &Options) -> Attempt<'m> {
    thread_local! {
        static CONTEXT: RefCell<Context> = RefCell::default();
    }
    let profile = counts(module, func, entry);
    let mut attempt = Attempt { profile, compiled: None, reasons: Vec::new(), panics: Vec::new(), refused: Duration::ZERO };
    for &backend in back_ends(backend) {
        let request = request(module, func, entry, backend, attempt.profile.as_deref(), options);
        let started = Instant::now();
        // A fault of the compiler must end neither the host nor a compiler thread. What it leaves behind is thrown away.
        let result = catch_unwind(AssertUnwindSafe(|| {
            #[cfg(test)]
            super::tests::fault(module, func, backend);
            CONTEXT.with_borrow_mut(|context| weir_jit::compile(context, &request))
        }));
        match result {
            Ok(Ok(compiled)) => {
                attempt.compiled = Some(compiled);
                break;
            }
            Ok(Err(refusal)) => attempt.reasons.push(refusal.to_string()),
            Err(payload) => {
                CONTEXT.set(Context::default());
                let message = message_of(&*payload);
                attempt.reasons.push(format!("the compiler panicked: {message}"));
                attempt.panics.push(message);
            }
        }
        attempt.refused += started.elapsed();
    }
    attempt
}

/// What a panic says.
fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
