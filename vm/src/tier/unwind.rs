//! The work between a trap in native code and its unwinding: determines the reason and takes the backtrace.

use super::state::engine_of;
use crate::code::{CodeSpace, NativeFrame, Registers, Site};
use crate::records::engines::NativeSite;
use crate::records::exceptions::{Landing, Place};
use crate::records::failure::Failure;
use crate::records::instance::instance_of;
use crate::records::module::Module;
use crate::records::module::ModuleRecord;
use crate::records::native_search::{NativeSearch, Unwound};
use crate::records::store::{StoreRecord, store_of};
use crate::records::unwind::{Search, uncaught, write_operands, write_overflow};
use std::ops::ControlFlow;
use std::ptr;
use weir_bytecode::{FuncBody, Trap};
use weir_contract::{Boundary, FRAME_HEADER, InstanceCtx, StackCtx, TrapSite};

/// A frame of compiled code, for the records.
pub(super) fn native_site(site: Site, frame: NativeFrame) -> NativeSite {
    let (Site { module, func, pc, .. }, NativeFrame { fp, code, call, landings, layout, roots }) = (site, frame);
    NativeSite { module, func, pc, fp, code, call, landings, layout, roots }
}

/// Implements [`Engines::search_native`](crate::records::engines::Engines::search_native).
///
/// # Safety
/// As there. The code is of this space.
pub(super) unsafe fn search_segment(
    space: &CodeSpace,
    exit_fp: usize,
    search: &mut NativeSearch,
    mut visit: impl FnMut(NativeSite, &mut NativeSearch) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let (mut fp, calls) = (exit_fp, space.calls());
    loop {
        // SAFETY: the caller's promise: native code keeps a chain of frames up to its boundary. There the return address is in a stub,
        // and this loop ends. This thread will return there, so the code has not been freed.
        unsafe {
            let return_address;
            [fp, return_address] = ptr::with_exposed_provenance::<[usize; 2]>(fp).read();
            let Some(call) = calls.at(return_address) else { return ControlFlow::Continue(()) };
            if call.has_landings() || search.left >= search.poll_at {
                for site in call.sites() {
                    visit(native_site(site, call.frame(fp)), search)?;
                    search.left += 1;
                }
            } else {
                search.left += call.depth() as u64;
            }
            search.unwound.leave(fp, call.layout());
        }
    }
}

/// Called by the landing pad before it unwinds. Stores the failure for a trap in native code, and takes the backtrace
/// if there is none yet. If a frame inside the innermost boundary that is not passed catches an exception, sets the registers with which
/// it continues, and returns 1.
pub(crate) unsafe extern "sysv64" fn on_unwind(
    instance: *mut InstanceCtx,
    pc: usize,
    fp: usize,
    registers: &mut Registers,
) -> u32 {
    // SAFETY: the stub's promise: native code of the store of `instance` is about to be unwound, its frames are still
    // there, and no other code uses the store, which owns its engine.
    unsafe {
        let store = store_of(instance);
        let engine = (*store).engine.record();
        let Ok(space) = engine_of(engine).space() else { return 0 };
        let mut failure = (*store).failure.take().unwrap_or_else(|| failure_at(space, instance, pc));
        if let Failure::Throw(_) = failure {
            // A host function or a helper threw, and `fp` is the frame of its stub.
            (*(*instance).stack).exit_fp = fp;
            failure.capture(store);
        }
        let limit = (*store).engine.config().max_backtrace;
        if let Some(frames) = failure.missing_backtrace(limit) {
            // The trapping function's own frame; its callers begin at `fp`.
            space.trap_frames(pc, |site| {
                frames.push(&Module::from_running(site.module as *const ModuleRecord), site.func, limit, || site.pc)
            });
            (*(*instance).stack).exit_fp = fp;
            frames.extend(store, limit);
        }
        catch_or_leave(instance, space, failure, registers)
    }
}

/// Called by the stubs of throws, whose frame is recorded as that from which compiled code has been left. The exception is in flight.
/// Continues as [`on_unwind`] does.
///
/// # Safety
/// Native code of the live store of `instance` throws, its frames are still there, and no other code uses the store.
pub(crate) unsafe fn on_throw(instance: *mut InstanceCtx, registers: &mut Registers) -> u32 {
    // SAFETY: the caller's promise.
    unsafe {
        let store = store_of(instance);
        let Ok(space) = engine_of((*store).engine.record()).space() else { return 0 };
        // The innermost segment is native, and most exceptions are caught in it.
        let StackCtx { exit_fp, boundary, .. } = *(*instance).stack;
        let (mut search, mut progress) = Search::begin(store);
        let visit = |site, progress: &mut NativeSearch| search.in_native_code(boundary, site, progress);
        if search_segment(space, exit_fp, &mut progress, visit).is_continue() {
            progress.unwound = Unwound::default();
            search.in_segments(&mut progress, 1);
        }
        let failure = match search.end(&progress) {
            Ok(true) => Failure::Thrown,
            Ok(false) => uncaught(store, None),
            Err(other) => other,
        };
        catch_or_leave(instance, space, failure, registers)
    }
}

/// Leaves native frames: for the handler of an exception that is thrown to one inside the boundary, for which it returns 1, or down to the
/// boundary.
///
/// # Safety
/// As for [`on_throw`]; if the failure is [`Failure::Thrown`], the search has found a handler.
#[inline]
unsafe fn catch_or_leave(instance: *mut InstanceCtx, space: &CodeSpace, failure: Failure, registers: &mut Registers) -> u32 {
    // SAFETY: the caller's promise.
    unsafe {
        let failure = match failure {
            Failure::Thrown => match caught(instance, space, registers) {
                Ok(true) => return 1,
                Ok(false) => Failure::Thrown,
                Err(other) => other,
            },
            other => other,
        };
        leave(instance, space, failure)
    }
}

/// Leaves native frames down to the boundary.
///
/// # Safety
/// As for [`on_throw`].
#[cold]
unsafe fn leave(instance: *mut InstanceCtx, space: &CodeSpace, mut failure: Failure) -> u32 {
    // SAFETY: the caller's promise.
    unsafe {
        let (store, stack) = (store_of(instance), (*instance).stack);
        failure.capture(store);
        (*store).failure = Some(failure);
        if let Some(crossings) = space.crossings() {
            crossings.unwound((*stack).native_limit..landing_boundary(stack));
        }
        0
    }
}

/// Leaves native frames for the handler in the store, if its frame is inside the innermost boundary that is not passed, and sets the
/// registers with which that continues.
///
/// # Errors
/// The handler needs an object, and the store's limiter refuses it.
///
/// # Safety
/// As for [`on_throw`]; the search has found that handler.
#[inline]
unsafe fn caught(instance: *mut InstanceCtx, space: &CodeSpace, registers: &mut Registers) -> Result<bool, Failure> {
    // SAFETY: the caller's promise.
    unsafe {
        let (store, stack) = (store_of(instance), (*instance).stack);
        let Some(landing) = &(*store).landing else { return Ok(false) };
        let caught = catch(store, stack, landing, registers)?;
        if let Some(crossings) = space.crossings()
            && caught
        {
            crossings.unwound((*stack).native_limit..registers.rbp);
        }
        Ok(caught)
    }
}

/// Prepares the frame of a handler inside the innermost boundary of `stack` that is not passed, and returns whether there is one. The
/// boundaries inside the frame's segment are those of activations without a record, and are unlinked: nothing else of such an activation
/// is linked.
///
/// # Errors
/// The handler needs an object, and the store's limiter refuses it.
///
/// # Safety
/// The exception of the live store is thrown to this handler, and the native frames inside are left now. `registers` has the values of
/// the preserved registers at the innermost of them.
unsafe fn catch(
    store: *mut StoreRecord,
    stack: *mut StackCtx,
    landing: &Landing,
    registers: &mut Registers,
) -> Result<bool, Failure> {
    let Place::Native { boundary, frame, end, target, instance, value_sp, unwound } = &landing.place else { return Ok(false) };
    let &boundary = boundary;
    // SAFETY: the caller's promise; the frame is as the contract says.
    unsafe {
        // Of two boundaries the one at the lower address is the inner one.
        if boundary > landing_boundary(stack) {
            return Ok(false);
        }
        match value_sp {
            &Some(at_entry) => {
                write_operands(store, landing)?;
                let source: &FuncBody = &*landing.source;
                let slots = source.locals.len() + source.max_operands as usize;
                let end = landing.fp.add(slots * source.words() + FRAME_HEADER as usize);
                (*stack).value_sp = end.max(at_entry);
            }
            None => {
                write_overflow(store, &*landing.handler)?;
                (*stack).value_sp = unwound.value_sp.unwrap_or((*stack).value_sp);
            }
        }
        (*stack).boundary = boundary;
        for (value, &at) in registers.preserved.iter_mut().zip(&unwound.preserved).filter(|(_, at)| **at != 0) {
            *value = ptr::with_exposed_provenance::<u64>(at).read();
        }
        (registers.rbp, registers.rsp, registers.instance, registers.target) = (*frame, *end, *instance, *target);
        Ok(true)
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
unsafe fn landing_boundary(stack: *const StackCtx) -> usize {
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
