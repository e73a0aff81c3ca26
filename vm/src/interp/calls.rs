//! Calls: who the callee is, and everything that is not a call from one interpreted function to another, which the
//! loop does itself.

use super::control::Meter;
use super::dispatch::{State, Step};
use super::frame::{self, Body, Header, Scope};
use super::{Exit, decode};
use crate::runtime::entry;
use crate::runtime::records::{HostRecord, Owner, instance_of, owner_of, store_of, take_failure};
use crate::tier::{self, Next};
use std::ptr;
use std::sync::atomic::Ordering;
use weir_bytecode::Trap;
use weir_jit::contract::{FuncRef, NULL_SIG, StackCtx, Status};

/// A function to call.
#[derive(Clone, Copy)]
pub(super) enum Callee {
    /// One of the module of an instance.
    Wasm {
        /// The function.
        body: *const Body,
        /// The instance.
        scope: *const Scope,
    },
    /// One of the host.
    Host(*const HostRecord),
}

impl Callee {
    /// The function that a reference refers to.
    ///
    /// # Safety
    /// It is a reference of a live store.
    unsafe fn of(reference: *const FuncRef) -> Callee {
        // SAFETY: the caller's promise.
        unsafe {
            let FuncRef { instance, index, .. } = *reference;
            match owner_of(instance) {
                Owner::Host(host) => Callee::Host(host),
                Owner::Instance(instance) => {
                    let scope = &instance.scope;
                    Callee::Wasm { body: scope.bodies.add((index - scope.imported_funcs) as usize), scope }
                }
            }
        }
    }
}

/// The callee of `call` and `return_call` with function index `func`.
///
/// # Safety
/// Validated code in `scope`.
#[inline(always)]
pub(super) unsafe fn direct(scope: *const Scope, func: u32) -> Callee {
    // SAFETY: the caller's promise.
    unsafe {
        match func.checked_sub((*scope).imported_funcs) {
            Some(own) => Callee::Wasm { body: (*scope).bodies.add(own as usize), scope },
            None => imported(scope, func),
        }
    }
}

#[inline(never)]
unsafe fn imported(scope: *const Scope, func: u32) -> Callee {
    // SAFETY: the caller's; imports are linked before anything runs.
    unsafe { Callee::of(instance_of((*scope).ctx).func_ref(func)) }
}

/// The callee of `call_indirect` and `return_call_indirect` whose immediates are at `at` and whose operand is `index`;
/// `at` behind them.
///
/// # Safety
/// Validated code in `scope`.
#[inline(never)]
pub(super) unsafe fn indirect(scope: *const Scope, at: *const u8, index: u64) -> Result<(Callee, *const u8), Trap> {
    // SAFETY: the caller's promise; an entry with the signature of a function has one.
    unsafe {
        let (ty, at) = decode::u32(at);
        let (table, next) = decode::u32(at);
        let table = (*scope).table(table);
        let index = if table.ty.table64 { index } else { index & u64::from(u32::MAX) };
        if index >= table.ctx.len {
            return Err(Trap::UndefinedElement);
        }
        let entry = &*table.ctx.entries.add(index as usize);
        if entry.sig != (*scope).sig_id(ty) {
            let null = entry.sig == NULL_SIG;
            return Err(if null { Trap::UninitializedElement } else { Trap::IndirectCallTypeMismatch });
        }
        Ok((Callee::of(entry.reference as *const FuncRef), next))
    }
}

/// Counts a call of `body`: native code for it, or null to interpret it.
///
/// # Safety
/// It and `scope` are live.
#[inline(always)]
pub(super) unsafe fn tick(body: *const Body, scope: *const Scope) -> *const u8 {
    // SAFETY: the caller's promise.
    unsafe {
        let native = (*(*body).code).native.load(Ordering::Acquire);
        if native.is_null() { count(body, scope, None) } else { native }
    }
}

/// Counts an iteration of loop `index` of `body`: its OSR body, or null to interpret it.
///
/// # Safety
/// As for [`tick`].
#[inline(always)]
pub(super) unsafe fn tick_loop(body: *const Body, scope: *const Scope, index: u32) -> *const u8 {
    // SAFETY: the caller's promise.
    unsafe { count(body, scope, Some(index)) }
}

/// Takes one tick, and asks the policy when there are none left.
#[inline(always)]
unsafe fn count(body: *const Body, scope: *const Scope, at: Option<u32>) -> *const u8 {
    // SAFETY: the caller's.
    unsafe {
        let ticks = &(*(*body).code).ticks;
        let left = ticks.load(Ordering::Relaxed).wrapping_sub(1);
        ticks.store(left, Ordering::Relaxed);
        if left >= 0 { ptr::null() } else { ask(body, scope, at) }
    }
}

#[cold]
unsafe fn ask(body: *const Body, scope: *const Scope, at: Option<u32>) -> *const u8 {
    // SAFETY: the caller's.
    unsafe {
        match tier::ask(instance_of((*scope).ctx), (*body).func, at) {
            Next::Interpret => ptr::null(),
            Next::Enter(code) => code,
        }
    }
}

/// Calls a host function with the operands below `sp`, and comes back to `next`.
///
/// # Safety
/// `state` stands at the call of `host`.
#[inline(never)]
pub(super) unsafe fn host(mut state: State, host: &HostRecord, next: *const u8) -> Step {
    // SAFETY: the arguments are there, and the results fit where they were.
    unsafe {
        let ty = &host.func.ty;
        let args = state.sp.sub(ty.params.len());
        set_value_sp(&state, args);
        if entry::call_host(host, args) != Status::Return {
            return failed(&state);
        }
        state.sp = args.add(ty.results.len());
        state.pc = next;
        state.reload_memory();
        Step::Continue(state)
    }
}

/// Calls native code of `body` with the operands below `sp`, and comes back to `next`.
///
/// # Safety
/// `state` stands at the call.
#[inline(never)]
pub(super) unsafe fn native(mut state: State, body: *const Body, scope: *const Scope, code: *const u8, next: *const u8) -> Step {
    // SAFETY: the arguments are there, and the results fit where they were.
    unsafe {
        let args = state.sp.sub((*body).params as usize);
        set_value_sp(&state, args);
        if tier::call((*scope).ctx, (*body).func, code, args) != Status::Return {
            return failed(&state);
        }
        state.sp = args.add((*body).results as usize);
        state.pc = next;
        state.reload_memory();
        Step::Continue(state)
    }
}

/// Calls a function in place of the frame that calls it.
///
/// # Safety
/// `state` stands at the call.
#[inline(never)]
pub(super) unsafe fn tail(mut state: State, callee: Callee, meter: Option<Meter>) -> Result<Step, Trap> {
    // SAFETY: the arguments are the operands below `sp`, so they and the results fit where the frame is.
    unsafe {
        let caller = *frame::header(state.fp, state.body);
        let (body, scope) = match callee {
            Callee::Wasm { body, scope } => (body, scope),
            // It cannot make the chain of frames any longer: call, then return.
            Callee::Host(record) => {
                return Ok(match host(state, &*record, state.pc) {
                    Step::Continue(state) => state.leave(caller),
                    step => step,
                });
            }
        };
        let code = tick(body, scope);
        if code.is_null() && frame::overflows(stack_of(&state), state.fp, body) {
            return Err(Trap::StackOverflow);
        }
        frame::move_down(state.sp, (*body).params, state.fp);
        if !code.is_null() {
            return Ok(hand_over(state, caller, body, scope, code, false));
        }
        state.switch(scope);
        state.body = body;
        state.sp = frame::push(state.fp, body, caller);
        (state.pc, state.stp) = ((*body).entry, (*body).branches);
        if let Some(Err(trap)) = meter.map(|meter| meter.poll()) {
            frame::trapped(trap, state.scope, state.body, state.fp, state.pc);
            return Ok(Step::Exit(Exit::Trap));
        }
        Ok(Step::Continue(state))
    }
}

/// Continues the frame in the OSR body `code` of the loop at which `state` stands.
///
/// # Safety
/// It is that.
#[inline(never)]
pub(super) unsafe fn enter_loop(state: State, code: *const u8) -> Step {
    // SAFETY: the caller's promise.
    unsafe {
        let caller = *frame::header(state.fp, state.body);
        hand_over(state, caller, state.body, state.scope, code, true)
    }
}

/// Leaves the frame of `state`, whose header was `caller`, for native code of `body` that takes its place: called with
/// arguments at the frame's `fp`, or with `osr` entered at the loop at which the frame stands.
///
/// The base frame of the activation ends the activation. One above it is popped, and the code is called for the
/// caller, which continues.
unsafe fn hand_over(
    mut state: State,
    caller: Header,
    body: *const Body,
    scope: *const Scope,
    code: *const u8,
    osr: bool,
) -> Step {
    // SAFETY: the results fit where the frame is. What stays, and the arguments, are below `value_sp` while the
    // code runs; an OSR body reads its frame before it writes anything above.
    unsafe {
        let (func, instance, args) = ((*body).func, (*scope).ctx, state.fp);
        if caller.is_base() {
            return Step::Exit(Exit::Dispatch { func, instance, code, args, osr });
        }
        state.return_to(caller);
        set_value_sp(&state, args.add((*body).params as usize));
        let status = match osr {
            false => tier::call(instance, func, code, args),
            true => tier::call_osr(instance, func, code, args),
        };
        if status != Status::Return {
            let mut failure = take_failure(store_of(instance));
            frame::describe_from(&mut failure, caller);
            (*store_of(instance)).failure = Some(failure);
            return Step::Exit(Exit::Trap);
        }
        state.sp = args.add((*body).results as usize);
        state.reload_memory();
        Step::Continue(state)
    }
}

/// Protects the frame of `state`, and the slots below `used`, from whoever runs next.
unsafe fn set_value_sp(state: &State, used: *mut u64) {
    // SAFETY: the caller's state is valid.
    unsafe { (*stack_of(state)).value_sp = frame::end(state.fp, state.body).max(used) };
}

unsafe fn stack_of(state: &State) -> *mut StackCtx {
    // SAFETY: the caller's state is valid.
    unsafe { (*(*state.scope).ctx).stack }
}

/// Ends the activation, because what was called at `pc` ended with a failure.
unsafe fn failed(state: &State) -> Step {
    // SAFETY: the caller's state is valid, and an engine or a host function has just failed.
    unsafe {
        let store = store_of((*state.scope).ctx);
        let mut failure = take_failure(store);
        frame::describe(&mut failure, state.scope, state.body, state.fp, state.pc);
        (*store).failure = Some(failure);
        Step::Exit(Exit::Trap)
    }
}
