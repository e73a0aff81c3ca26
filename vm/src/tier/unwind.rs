//! The work between a trap in native code and its unwinding: determines the reason and takes the backtrace.

use super::state::{EngineState, engine_of};
use crate::code::{CallSite, CodeSpace, NativeFrame, Registers, Site};
use crate::records::collect::collect_before_throw;
use crate::records::engines::NativeSite;
use crate::records::exceptions::{CatchingFrame, Clause, Landing, Place};
use crate::records::failure::Failure;
use crate::records::frame_tier::FrameTier;
use crate::records::instance::instance_of;
use crate::records::module::Module;
use crate::records::module::ModuleRecord;
use crate::records::native_search::{NativeSearch, Unwound};
use crate::records::pc::Pc;
use crate::records::store::store_of;
use crate::records::unwind::{find, poll_after, uncaught, uncovered, write_operands, write_overflow};
use crate::sys::segment::set_base;
use std::any::Any;
use std::ops::ControlFlow;
use std::ptr;
use weir_bytecode::{FuncBody, Trap};
use weir_contract::{Boundary, FRAME_HEADER, InstanceCtx, StackCtx, TrapSite};

/// A frame of compiled code, for the records.
pub(super) fn native_site(site: Site, frame: NativeFrame) -> NativeSite {
    let (Site { module, func, pc, entry, backend }, NativeFrame { fp, code, call, landings, is_inlined, layout, tables }) =
        (site, frame);
    NativeSite {
        module,
        func,
        pc,
        tier: FrameTier::of_code(backend, entry),
        fp,
        code,
        call,
        landings,
        is_inlined,
        layout,
        tables,
    }
}

/// Implements [`Engines::search_native`](crate::records::engines::Engines::search_native), but for the frames to look at: those of code
/// with landings, and those before which the deadline or the fuel is to be checked. `visit` counts each function of such a frame.
///
/// # Safety
/// As there. The code is of this space.
pub(super) unsafe fn search_segment(
    space: &CodeSpace,
    exit_fp: usize,
    search: &mut NativeSearch,
    mut visit: impl FnMut(CallSite<'_>, usize, &mut NativeSearch) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let (mut fp, calls) = (exit_fp, space.calls());
    search.freed = space.freed();
    loop {
        // SAFETY: the caller's promise: native code keeps a chain of frames up to its boundary. There the return address is in a stub,
        // and this loop ends. This thread will return there, so the code has not been freed.
        unsafe {
            let return_address;
            [fp, return_address] = ptr::with_exposed_provenance::<[usize; 2]>(fp).read();
            let Some(call) = calls.at(return_address) else {
                if space.is_relocation(return_address) {
                    search.unwound.leave_relocation(fp);
                    continue;
                }
                return ControlFlow::Continue(());
            };
            if call.has_landings() || search.cost >= search.check_at {
                visit(call, fp, search)?;
            } else {
                search.cost += call.depth() as u64;
            }
            search.unwound.leave(fp, call.layout());
        }
    }
}

/// Visits the functions that are active in the frame at `fp`, and counts those that are left.
pub(super) fn visit_functions(
    call: CallSite<'_>,
    fp: usize,
    search: &mut NativeSearch,
    mut visit: impl FnMut(NativeSite, &mut NativeSearch) -> ControlFlow<()>,
) -> ControlFlow<()> {
    call.sites().try_for_each(|site| {
        visit(native_site(site, call.frame(fp)), search)?;
        search.cost += 1;
        ControlFlow::Continue(())
    })
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
                frames.push(&Module::from_running(site.module as *const ModuleRecord), site.func, limit, Pc::At(site.pc))
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
        let engines = &*(*store).engine.record().engines;
        debug_assert!((engines as &dyn Any).is::<EngineState>());
        // Native code runs, so the engine has this tier: see `engine_of`, which compares identities of types.
        let Ok(space) = (*ptr::from_ref(engines).cast::<EngineState>()).space() else { return 0 };
        collect_before_throw(store);
        if let Some(caught) = catch_known(instance, space, registers) {
            return match caught {
                Ok(()) => 1,
                Err(failure) => leave(instance, space, failure),
            };
        }
        let failure = match find(store) {
            Ok(true) => Failure::Thrown,
            Ok(false) => uncaught(store, None),
            Err(other) => other,
        };
        catch_or_leave(instance, space, failure, registers)
    }
}

/// Leaves native frames for the handler in the innermost segment, which is native, if searches have found before what becomes of each frame
/// up to it that has landings: most exceptions are caught where one was caught before. Otherwise, or if the fuel does not cover this, changes
/// nothing and returns `None`.
///
/// # Errors
/// The handler needs an object and the store's limiter refuses it.
///
/// # Safety
/// As for [`on_throw`].
#[inline(always)]
unsafe fn catch_known(instance: *mut InstanceCtx, space: &CodeSpace, registers: &mut Registers) -> Option<Result<(), Failure>> {
    // SAFETY: the caller's promise; for the chain of frames, see `search_segment`.
    unsafe {
        let store = store_of(instance);
        let (config, tag, freed) = ((*store).engine.config(), (*store).in_flight.tag, space.freed());
        let uncovered = uncovered(store);
        let check_at = poll_after(config).min(uncovered);
        if config.backtrace_on_throw {
            return None;
        }
        let (mut fp, mut left, mut cost) = ((*(*instance).stack).exit_fp, 0, 0);
        let mut unwound = Unwound::default();
        loop {
            let return_address;
            [fp, return_address] = ptr::with_exposed_provenance::<[usize; 2]>(fp).read();
            if left >= check_at {
                return None;
            }
            let (depth, layout) = match (*store).catches.find(freed, return_address, fp, tag) {
                Some(catch) => {
                    cost += catch.tested;
                    if cost + left >= uncovered {
                        return None;
                    }
                    if let Some((target, clause)) = catch.landing {
                        if config.consume_fuel {
                            (*store).ctx.fuel -= (cost + left) as i64;
                        }
                        let (frame, locals) = CatchingFrame::new(fp, &catch.layout, target, unwound);
                        return Some(land(instance, space, &frame, locals, clause, registers));
                    }
                    (1, &catch.layout)
                }
                None if space.is_relocation(return_address) => {
                    unwound.leave_relocation(fp);
                    continue;
                }
                None => {
                    let call = space.calls().at(return_address).filter(|call| !call.has_landings())?;
                    (call.depth() as u64, call.layout())
                }
            };
            left += depth;
            unwound.leave(fp, layout);
        }
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
        let Some(landing) = &(*store_of(instance)).landing else { return Ok(false) };
        catch(instance, space, landing, registers)
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
    instance: *mut InstanceCtx,
    space: &CodeSpace,
    landing: &Landing,
    registers: &mut Registers,
) -> Result<bool, Failure> {
    let &Landing { place: Place::Native { boundary, ref frame }, fp, clause } = landing else { return Ok(false) };
    // SAFETY: the caller's promise; the frame is as the contract says.
    unsafe {
        let stack = (*instance).stack;
        // Of two boundaries the one at the lower address is the inner one.
        if boundary > landing_boundary(stack) {
            return Ok(false);
        }
        land(instance, space, frame, fp, clause, registers)?;
        (*stack).boundary = boundary;
        Ok(true)
    }
}

/// Prepares a frame whose local 0 is at `fp`, and the registers, for the clause that catches.
///
/// # Errors
/// The handler needs an object, and the store's limiter refuses it.
///
/// # Safety
/// As for [`catch`].
#[inline(always)]
unsafe fn land(
    thrower: *mut InstanceCtx,
    space: &CodeSpace,
    frame: &CatchingFrame,
    fp: *mut u64,
    clause: Clause,
    registers: &mut Registers,
) -> Result<(), Failure> {
    let &CatchingFrame { rbp, end, target, instance, value_sp, unwound } = frame;
    // SAFETY: the caller's promise; the frame is as the contract says.
    unsafe {
        let (store, stack) = (store_of(thrower), (*thrower).stack);
        match value_sp {
            Some(at_entry) => {
                write_operands(store, fp, clause)?;
                let source: &FuncBody = &*clause.source;
                let slots = source.locals.len() + source.max_operands as usize;
                let end = fp.add(slots * source.words() + FRAME_HEADER as usize);
                (*stack).value_sp = end.max(at_entry);
            }
            None => {
                write_overflow(store, &*clause.handler)?;
                (*stack).value_sp = unwound.value_sp.unwrap_or((*stack).value_sp);
            }
        }
        for (value, &at) in registers.preserved.iter_mut().zip(&unwound.preserved).filter(|(_, at)| **at != 0) {
            *value = ptr::with_exposed_provenance::<u64>(at).read();
        }
        (registers.rbp, registers.rsp, registers.instance, registers.target) = (rbp, end, instance, target);
        if let Some(base) = unwound.segment {
            set_base(base);
        }
        if let Some(crossings) = space.crossings() {
            crossings.unwound((*stack).native_limit..rbp);
        }
        Ok(())
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
