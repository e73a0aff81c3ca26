//! Functions that are validated before their first execution.
//!
//! Until it is validated, a function's [`Body`] has no code, no ticks, and a frame too big for any stack. Its first call takes the
//! path for exhausted ticks, which leads to [`prepare`]. If validation fails, the call then takes the path for a stack overflow, which
//! asks [`refused`] for the reason. So calls of validated functions cost nothing more.

use super::failing::failed;
use super::state::{State, Step};
use crate::records::body::{Body, Readiness};
use crate::records::error::Error;
use crate::records::failure::Failure;
use crate::records::instance::instance_of;
use crate::records::module::{Module, ModuleRecord};
use crate::records::scope::Scope;
use crate::records::store::store_of;
use weir_bytecode::module::FuncBody;

/// Validates function `func`, which is called, if that has not been done. Returns whether to ask the tier policy about it now: not if it
/// is invalid, or has just got its first ticks.
pub(super) fn prepare(module: &ModuleRecord, func: u32) -> bool {
    let mut ticks = 0;
    let publish = |source: &FuncBody| {
        let first = module.engine.record().engines.first_ticks(source.len());
        ticks = module.func_code(func).begin(first, source.work);
    };
    match module.bodies.prepare(&module.bytecode, func, publish) {
        Readiness::Before => true,
        Readiness::Now => ticks < 0,
        Readiness::Invalid => false,
    }
}

/// Why function `func` is invalid, if it has been found so.
pub(super) fn refusal(module: &Module, func: u32) -> Option<Error> {
    if !module.record().bodies.is_lazy() {
        return None;
    }
    let error = module.bytecode().validated_body(func)?.err()?;
    Some(Error::new(error.clone()))
}

/// Ends the activation, at a call of `body` whose frame does not fit, if that is because the function is invalid.
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
