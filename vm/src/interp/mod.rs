//! The in-place interpreter: it executes the module's own bytes, with the side table that validation left for its
//! branches. Setting up costs nothing but one [`frame::Body`] per function.
//!
//! [`dispatch`] is the loop. What its arms do is in [`numeric`], [`vector`], [`memory`], [`calls`] and [`control`]; [`frame`]
//! lays out the value stack, [`x64`] has the fast paths in assembly, [`decode`] reads immediates, [`lazy`] sees to functions that are validated when first called.
//!
//! Calls between interpreted functions push frames on the value stack and never recurse natively, whichever instances
//! they run in. One *activation*, a call of [`run`], ends when its base frame returns, or leaves for native code.
//!
//! # What `unsafe` relies on here
//!
//! The bytes were validated and are immutable. So at every pc that control reaches
//!
//! - an opcode of TABLE 1 stands, with complete immediates and indices in range, before the end of the body;
//! - the operands it takes are there, of the types it takes, and what it pushes stays below the frame's end;
//! - `stp` is the entry of the next branch or loop of the body, and that entry's target is such a pc.
//!
//! Contexts and records obey `records::store`: they live as long as the store, never move, and no reference into one
//! is held across a call of the guest or of the host. Frames end at or below `StackCtx::value_limit`.

mod calls;
mod control;
mod decode;
mod dispatch;
mod frame;
mod lazy;
mod memory;
mod numeric;
mod vector;
#[cfg(target_arch = "x86_64")]
mod x64;
#[cfg(not(target_arch = "x86_64"))]
#[path = "absent.rs"]
mod x64;

pub(crate) use calls::element;
pub(crate) use frame::Scope;
pub(crate) use lazy::Bodies;

use crate::records::store::{Failure, StoreRecord, instance_of, store_of};
use control::Meter;
use dispatch::{End, State};
use weir_bytecode::Trap;
use weir_contract::{InstanceCtx, StackCtx};

/// How an activation ends.
#[derive(Debug)]
pub(crate) enum Exit {
    /// The results are at the `fp` that [`run`] was given.
    Return,
    /// The reason is in [`StoreRecord::failure`].
    Trap,
    /// With native code, which whoever called [`run`] now has to enter, with nothing of this activation left behind.
    /// Its results, which are those that [`run`] was asked for, belong at `args`, which is the `fp` that [`run`] was given.
    Dispatch {
        /// The function it belongs to.
        func: u32,
        /// What to run it in.
        instance: *mut InstanceCtx,
        /// Its address.
        code: *const u8,
        /// The arguments; for an OSR body, the frame.
        args: *mut u64,
        /// Whether it is an OSR body.
        osr: bool,
    },
}

/// Runs function `func` of `instance`, with its arguments in slots at `fp`. `StackCtx::value_sp` is as it was
/// afterwards.
///
/// # Safety
/// `instance` is the context of an instance of a live store that no other thread uses, and into whose records no
/// reference is held; `func` is defined in its module. `fp` points into the value stack, at or below `value_limit`,
/// where `value_sp` is or below, and the function's arguments are there.
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
        let store = store_of(instance);
        let stack = (*instance).stack;
        if native_overflow(stack) || frame::overflows(stack, fp, body, (*body).words()) {
            let refusal = lazy::refusal(&record.module, func).map(Failure::Host);
            let mut failure = refusal.unwrap_or_else(|| Failure::trap(Trap::StackOverflow));
            failure.push_frame(
                &record.module,
                func,
                record.module.bytecode().bodies[(func - (*scope).imported_funcs) as usize].range().start,
            );
            (*store).failure = Some(failure);
            return Exit::Trap;
        }
        let value_sp = (*stack).value_sp;
        let meter = meter(store);
        let state = State::at_entry(scope, body, fp);
        let config = (*store).engine.config();
        let table = if config.has_assembly() { x64::table_for(config) } else { None };
        let exit = match (config.is_metered(), config.profiles()) {
            (true, _) => alternate::<true, true>(state, meter, table),
            (false, true) => alternate::<false, true>(state, meter, table),
            (false, false) => alternate::<false, false>(state, meter, table),
        };
        (*stack).value_sp = value_sp;
        exit
    }
}

/// Runs an activation, in the loop for one width of slots after the other.
unsafe fn alternate<const METERED: bool, const PROFILED: bool>(
    mut state: State,
    meter: Meter,
    table: Option<&x64::Table>,
) -> Exit {
    loop {
        // SAFETY: the caller's promise; the width is that of the function that is to run.
        let end = unsafe {
            match (*state.body).words() {
                1 => dispatch::run::<METERED, PROFILED, 1>(state, meter, table),
                _ => dispatch::run::<METERED, PROFILED, 2>(state, meter, None),
            }
        };
        match end {
            End::Exit(exit) => return exit,
            End::Switch(next) => state = next,
        }
    }
}

/// What the store's engine meters.
unsafe fn meter(store: *mut StoreRecord) -> Meter {
    // SAFETY: the store is live.
    unsafe {
        let config = (*store).engine.config();
        Meter {
            store: &raw mut (*store).ctx,
            fuel: config.consume_fuel,
            polls: config.epoch_interruption,
            canonical_nans: config.deterministic,
        }
    }
}

/// Whether the native stack has no room for an activation: host functions that call the guest again, and code
/// that calls interpreted functions, nest activations.
///
/// # Safety
/// The stack is live.
#[inline(always)]
pub(crate) unsafe fn native_overflow(stack: *const StackCtx) -> bool {
    let here = 0u8;
    // SAFETY: the stack's context is live.
    std::hint::black_box(&raw const here).addr() < unsafe { (*stack).native_limit }
}

#[cfg(test)]
mod tests;
