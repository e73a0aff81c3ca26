//! An activation, from the entry of its base frame to its end.

use super::control::Meter;
use super::exit::Exit;
use super::state::{End, Start, State};
use super::{calls, dispatch, frame, lazy, x64};
use crate::records::config::LoopKind;
use crate::records::failure::Failure;
use crate::records::instance::instance_of;
use crate::records::pc::Pc;
use crate::records::stack::native_overflow;
use crate::records::store::{StoreRecord, store_of};
use crate::records::walk::Activation;
use weir_bytecode::Trap;
use weir_contract::{InstanceCtx, StackCtx};

/// Runs function `func` of `instance`, with its arguments in slots at `fp`. Restores `StackCtx::value_sp`.
///
/// # Safety
/// `instance` is the context of an instance of a live store that no other thread uses, and into whose records no
/// reference is held; `func` is defined in its module. `fp` points to the function's arguments on the value stack, at
/// or below `value_limit`; `value_sp` is not above `fp`.
pub(crate) unsafe fn run(instance: *mut InstanceCtx, func: u32, fp: *mut u64) -> Exit {
    // SAFETY: the caller's promise.
    unsafe {
        let record = instance_of(instance);
        let scope = &raw const record.scope;
        let body = (*scope).bodies.add((func - (*scope).imported_funcs) as usize);
        let code = calls::tick(body, scope);
        if !code.is_null() {
            return Exit::Dispatch { func, instance, code, args: fp, osr: false };
        }
        let stack = (*instance).stack;
        let overflows = || native_overflow(stack) || frame::overflows(stack, fp, body, (*body).words());
        if overflows()
            && let refusal = lazy::refusal(&record.module, func).map(Failure::Host)
            // Another thread may have made the function ready meanwhile.
            && (refusal.is_some() || overflows())
        {
            let mut failure = refusal.unwrap_or_else(|| Failure::trap(Trap::StackOverflow));
            // The function has been entered, but has no frame.
            let limit = record.module.engine().config().max_backtrace;
            if let Some(frames) = failure.missing_backtrace(limit) {
                let start = record.module.bytecode().bodies[(func - (*scope).imported_funcs) as usize].start();
                frames.push(&record.module, func, limit, Pc::At(start));
                frames.extend(store_of(instance), limit);
            }
            (*store_of(instance)).failure = Some(failure);
            return Exit::Trap;
        }
        execute(instance, State::at_entry(scope, body, fp), Start::Segment, (*stack).value_sp)
    }
}

/// Continues function `func` of `instance` at the loop with this index, in the frame at `fp`, whose header is not written,
/// as the base frame of an activation. Restores `StackCtx::value_sp`.
///
/// # Safety
/// As for [`run`]. The frame's locals and operands at the `loop` opcode are in their slots, and nothing above `fp` is in use,
/// except by this frame. The frame fits as the head of [`weir_contract`] says.
#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
pub(crate) unsafe fn resume(instance: *mut InstanceCtx, func: u32, index: u32, fp: *mut u64) -> Exit {
    // SAFETY: the caller's promise.
    unsafe {
        let scope = &raw const instance_of(instance).scope;
        let body = (*scope).bodies.add((func - (*scope).imported_funcs) as usize);
        // Code of an earlier process may have run from the first call on.
        if let Some(refusal) = lazy::ensure(&instance_of(instance).module, func) {
            // The frame is that of the code, which is left with this failure.
            (*store_of(instance)).failure = Some(Failure::Host(refusal));
            return Exit::Trap;
        }
        execute(instance, State::at_loop(scope, body, fp, index), Start::Instruction, (*(*instance).stack).value_sp)
    }
}

/// Runs an activation that stubs began in the assembly, and that has now left it, to its end. `segment` is [`x64::Left::Segment`] if
/// the segment at the pc of `state` is still to be charged.
///
/// # Safety
/// As for [`run`]. `state` is that [`State`], except for the memory.
#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
pub(crate) unsafe fn proceed(state: *mut (), segment: u32) -> Exit {
    // SAFETY: the caller's promise.
    unsafe {
        let mut state = *state.cast::<State>();
        state.reload_memory();
        let start = if segment == x64::Left::Segment as u32 { Start::Segment } else { Start::Instruction };
        // The base frame's arguments were at `value_sp`.
        execute((*state.scope).ctx, state, start, state.base())
    }
}

/// Returns the instance of the state that is passed to [`proceed`].
///
/// # Safety
/// As for [`proceed`].
#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
pub(crate) unsafe fn instance_of_state(state: *const ()) -> *mut InstanceCtx {
    // SAFETY: the caller's promise.
    unsafe { (*(*state.cast::<State>()).scope).ctx }
}

/// Runs an activation from this state on. Sets `StackCtx::value_sp` to `value_sp` at the end.
#[inline(always)]
unsafe fn execute(instance: *mut InstanceCtx, state: State, start: Start, value_sp: *mut u64) -> Exit {
    // SAFETY: the caller's promise.
    unsafe {
        let (store, stack): (_, *mut StackCtx) = (store_of(instance), (*instance).stack);
        let activation = Activation::new(stack);
        activation.link(stack);
        let engine = (*store).engine.record();
        let kind = engine.loop_kind;
        let assembly = engine.config.has_assembly().then_some(kind);
        let exit = match kind {
            LoopKind::Plain => alternate::<false, false>(state, Meter::UNUSED, assembly, start),
            LoopKind::Profiling => alternate::<false, true>(state, Meter::UNUSED, assembly, start),
            LoopKind::Polling | LoopKind::Fuelled => alternate::<true, true>(state, meter(store), assembly, start),
        };
        activation.unlink(stack);
        (*stack).value_sp = value_sp;
        exit
    }
}

/// Runs an activation, alternating between the loops for the two widths of slots. `assembly` is the form of the handlers in
/// assembly, if they run. Inlined where the form is known; as a call it cost 29 instructions and 6 stores for each activation.
#[inline(always)]
unsafe fn alternate<const METERED: bool, const PROFILED: bool>(
    mut state: State,
    meter: Meter,
    assembly: Option<LoopKind>,
    mut start: Start,
) -> Exit {
    loop {
        // SAFETY: the caller's promise; the width is that of the function that runs next.
        let end = unsafe {
            match (*state.body).words() {
                1 => dispatch::run::<METERED, PROFILED, 1>(state, meter, assembly.and_then(x64::table_for), start),
                _ => dispatch::run::<METERED, PROFILED, 2>(state, meter, assembly.and_then(x64::wide_table_for), start),
            }
        };
        match end {
            End::Exit(exit) => return exit,
            End::Switch(next) => (state, start) = (next, Start::Segment),
            End::Repeat(next) => (state, start) = (next, Start::Instruction),
        }
    }
}

/// Returns the metering settings of the store's engine.
unsafe fn meter(store: *mut StoreRecord) -> Meter {
    // SAFETY: the store is live.
    unsafe {
        let config = (*store).engine.config();
        Meter {
            store: &raw mut (*store).ctx,
            fuel: config.consume_fuel,
            polls: config.polls(),
            canonical_nans: config.canonicalises_nans(),
        }
    }
}
