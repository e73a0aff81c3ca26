//! Functions that are made ready at their first call, or when compiled code continues in the interpreter: they get superinstructions, if
//! the interpreter executes any, and they are validated, if the module was loaded with `lazy_validation`.
//!
//! The [`Body`] of a function that is not ready has no code, no ticks, and a frame size larger than any stack. Its first
//! call takes the path for exhausted ticks, which calls [`prepare`]. If validation fails, the call then takes the path
//! for a stack overflow, which calls [`refused`] for the reason. So this adds no cost to other calls.

use super::failing::failed;
use super::state::{State, Step};
use crate::records::body::{Body, Readiness};
use crate::records::error::Error;
use crate::records::failure::Failure;
use crate::records::instance::instance_of;
use crate::records::module::{Module, ModuleRecord};
use crate::records::precompiled::format::Grade;
use crate::records::scope::Scope;
use crate::records::store::store_of;
use weir_bytecode::module::FuncBody;

/// Makes function `func`, which is being called, ready if it is not. Returns whether to call `tier_up` now: not if the
/// function is invalid, or has just received its first ticks.
pub(super) fn prepare(module: &ModuleRecord, func: u32) -> bool {
    let mut ticks = 0;
    let publish = |source: &FuncBody| {
        // Stored code is entered at the first call.
        let is_stored =
            module.shelf.as_ref().is_some_and(|shelf| shelf.has(func, Grade::Optimised) || shelf.has(func, Grade::Baseline));
        let first = if is_stored { 0 } else { module.engine.record().engines.first_ticks(source.len()) };
        ticks = module.func_code(func).begin(first, source.work);
    };
    match module.bodies.prepare(&module.bytecode, func, publish) {
        Readiness::Before => true,
        Readiness::Now => ticks < 0,
        Readiness::Invalid => false,
    }
}

/// Makes function `func` ready, whose stored code is left. Returns the reason if that is not possible.
#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
pub(super) fn ensure(module: &Module, func: u32) -> Option<Error> {
    loop {
        prepare(module.record(), func);
        let refusal = refusal(module, func);
        if refusal.is_some() || module.record().bodies.is_ready(module.bytecode(), func) {
            return refusal;
        }
    }
}

/// Returns the reason why function `func` could not be made ready.
pub(super) fn refusal(module: &Module, func: u32) -> Option<Error> {
    module.record().bodies.refusal(module.bytecode(), func).map(Error::new)
}

/// Ends the activation at a call of `body` whose frame does not fit, if the reason is that the function is invalid.
///
/// # Safety
/// The state is valid, `body` is a function of the instance of `scope`.
#[cold]
pub(super) unsafe fn refused(state: State, body: *const Body, scope: *const Scope) -> Option<Step> {
    // SAFETY: the caller's promise.
    unsafe {
        let refusal = refusal(&instance_of((*scope).ctx).module, (*body).func)?;
        (*store_of((*scope).ctx)).failure = Some(Failure::Host(refusal));
        Some(Step::Leave(failed(&state)))
    }
}
