//! Compiles an entry, places its code in memory and publishes it.

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
    /// The code, if a back end succeeded.
    compiled: Option<Compiled>,
    /// The reasons why back ends refused, in the order in which they were tried.
    reasons: Vec<String>,
    /// Messages of panics in the compiler. They are also among the reasons.
    panics: Vec<String>,
    /// Time spent in attempts that failed.
    refused: Duration,
}

/// Compiles a queued entry and publishes its code. `wanted` is whether a thread waits for the code. Returns `None` if
/// every back end refused or there is no room. A panic in the compiler counts as a refusal.
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
    // An entry that does not fit is reported only the first time.
    let again = slot.backoffs() > 0;
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
        // SAFETY: the code is installed, the module lives, and only ready code can be retired.
        unsafe {
            engine.listeners.tell(module, func, entry, installed.as_ref().map(|(code, compiled)| (*code, compiled)), &reasons);
        }
    }
    let code = installed.map(|(code, _)| code);
    let mut entries = state.entries();
    match code {
        None if full => entries.no_room(func, entry, slot.failures() + 1, |count| policy.backoff(count)),
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

/// Places code in memory, evicting other code if necessary. `failures` is how often in a row the code did not fit.
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

/// Compiles an entry with `backend`, or with Cranelift if Weir's native back end refuses it.
fn compile<'m>(module: &'m ModuleRecord, func: u32, entry: Entry, backend: Backend, options: &Options) -> Attempt<'m> {
    thread_local! {
        static CONTEXT: RefCell<Context> = RefCell::default();
    }
    let profile = counts(module, func, entry);
    let mut attempt = Attempt { profile, compiled: None, reasons: Vec::new(), panics: Vec::new(), refused: Duration::ZERO };
    for &backend in back_ends(backend) {
        let request = request(module, func, entry, backend, attempt.profile.as_deref(), options);
        let started = Instant::now();
        // A panic in the compiler must end neither the host nor a compiler thread. The compiler's state is discarded.
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

/// Returns the message of a panic.
fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
