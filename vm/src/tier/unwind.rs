//! The work between a trap in native code and its unwinding: determines the reason and takes the backtrace.

use super::state::engine_of;
use crate::code::CodeSpace;
use crate::records::failure::Failure;
use crate::records::instance::instance_of;
use crate::records::module::Module;
use crate::records::module::ModuleRecord;
use crate::records::store::store_of;
use std::ptr;
use weir_bytecode::Trap;
use weir_contract::{Boundary, InstanceCtx, StackCtx, TrapSite};

/// Called by the landing pad before it unwinds. Stores the failure for a trap in native code, and takes the backtrace
/// if there is none yet.
pub(crate) unsafe extern "sysv64" fn on_unwind(instance: *mut InstanceCtx, pc: usize, fp: usize) {
    // SAFETY: the stub's promise: native code of the store of `instance` is about to be unwound, its frames are still
    // there, and no other code uses the store.
    unsafe {
        let store = store_of(instance);
        let engine = (*store).engine.clone();
        let Ok(space) = engine_of(engine.record()).space() else { return };
        let mut failure = (*store).failure.take().unwrap_or_else(|| failure_at(space, instance, pc));
        if let Failure::Throw(_) = failure {
            // A host function threw, and `fp` is the frame of its stub.
            (*(*instance).stack).exit_fp = fp;
            failure.capture(store);
        }
        if let Some(frames) = failure.missing_backtrace() {
            // The trapping function's own frame; its callers begin at `fp`.
            space.trap_frames(pc, |site| {
                frames.push(&Module::from_running(site.module as *const ModuleRecord), site.func, || site.pc)
            });
            (*(*instance).stack).exit_fp = fp;
            frames.extend(store);
        }
        (*store).failure = Some(failure);
        if let Some(crossings) = space.crossings() {
            let stack = (*instance).stack;
            crossings.unwound((*stack).native_limit..landing(stack));
        }
    }
}

/// Returns the failure for the trap at native address `pc`.
unsafe fn failure_at(space: &CodeSpace, instance: *mut InstanceCtx, pc: usize) -> Failure {
    // SAFETY: the caller's promise: code of this instance has just trapped at `pc`.
    unsafe {
        let (site, trap) = space.trap_at(pc).expect("the handler resumes only at trap sites");
        let trap = match trap {
            TrapSite::Trap(trap) => trap,
            TrapSite::Stored => Trap::from_code((*(*instance).store).trap as u8).expect("a helper stored a trap"),
        };
        Failure::trap_at(trap, instance_of(instance), site.pc)
    }
}

/// Returns the innermost boundary of `stack` to which a trap returns, 0 if there is none.
///
/// # Safety
/// The boundaries of the live `stack` are on the native stack.
unsafe fn landing(stack: *const StackCtx) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        let mut at = (*stack).boundary;
        while at != 0 {
            let boundary = ptr::with_exposed_provenance::<Boundary>(at).read();
            if ptr::eq(boundary.stack, stack) {
                break;
            }
            at = boundary.prev;
        }
        at
    }
}
