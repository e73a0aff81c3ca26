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
use weir_jit::contract::{FuncRef, InstanceCtx, NULL_SIG, Status};

/// A function to call: of the module of an instance, or a host function.
#[derive(Clone, Copy)]
pub(super) struct Callee {
    /// Null for a host function.
    pub body: *const Body,
    /// What it runs in.
    pub ctx: *mut InstanceCtx,
}

impl Callee {
    /// The function that a reference refers to.
    ///
    /// # Safety
    /// It is a reference of a live store.
    unsafe fn of(reference: *const FuncRef) -> Callee {
        // SAFETY: the caller's promise.
        unsafe {
            let FuncRef { instance: ctx, index, .. } = *reference;
            let body = match owner_of(ctx) {
                Owner::Host(_) => ptr::null(),
                Owner::Instance(instance) => {
                    let record = instance.module.record();
                    &raw const record.bodies[(index - record.bytecode.imported_funcs) as usize]
                }
            };
            Callee { body, ctx }
        }
    }
}

/// The callee of `call` and `return_call` with function index `func`.
///
/// # Safety
/// Validated code in `scope`.
#[inline(always)]
pub(super) unsafe fn direct(scope: &Scope, func: u32) -> Callee {
    // SAFETY: the caller's promise; an import is linked before anything runs.
    unsafe {
        match func.checked_sub(scope.imported_funcs) {
            Some(own) => Callee { body: scope.bodies.add(own as usize), ctx: scope.ctx },
            None => imported(scope.ctx, func),
        }
    }
}

#[inline(never)]
unsafe fn imported(ctx: *mut InstanceCtx, func: u32) -> Callee {
    // SAFETY: the caller's.
    unsafe { Callee::of(instance_of(ctx).func_ref(func)) }
}

/// The callee of `call_indirect` and `return_call_indirect` whose immediates are at `at` and whose operand is `index`;
/// `at` behind them.
///
/// # Safety
/// Validated code in an instance with context `ctx`.
#[inline(never)]
pub(super) unsafe fn indirect(ctx: *mut InstanceCtx, at: *const u8, index: u64) -> Result<(Callee, *const u8), Trap> {
    // SAFETY: the caller's promise; an entry of another type than null's or an extern's has a function.
    unsafe {
        let (ty, at) = decode::u32(at);
        let (table, next) = decode::u32(at);
        let instance = instance_of(ctx);
        let table = &*instance.table(table);
        let index = if table.ty.table64 { index } else { index & u64::from(u32::MAX) };
        if index >= table.ctx.len {
            return Err(Trap::UndefinedElement);
        }
        let entry = &*table.ctx.entries.add(index as usize);
        if entry.sig != instance.module.record().sig_ids[ty as usize] {
            let null = entry.sig == NULL_SIG;
            return Err(if null { Trap::UninitializedElement } else { Trap::IndirectCallTypeMismatch });
        }
        Ok((Callee::of(entry.reference as *const FuncRef), next))
    }
}

/// Counts a call of `body` in an instance with context `ctx`: native code for it, or null to interpret it.
///
/// # Safety
/// Both are live.
#[inline(always)]
pub(super) unsafe fn tick(body: *const Body, ctx: *mut InstanceCtx) -> *const u8 {
    // SAFETY: the caller's promise.
    unsafe {
        let code = &*(*body).code;
        let native = code.native.load(Ordering::Acquire);
        if !native.is_null() {
            return native;
        }
        let ticks = code.ticks.load(Ordering::Relaxed).wrapping_sub(1);
        code.ticks.store(ticks, Ordering::Relaxed);
        if ticks >= 0 { ptr::null() } else { ask(body, ctx, None) }
    }
}

/// Counts an iteration of loop `index` of `body`: its OSR body, or null to interpret it.
///
/// # Safety
/// As for [`tick`].
#[inline(always)]
pub(super) unsafe fn tick_loop(body: *const Body, ctx: *mut InstanceCtx, index: u32) -> *const u8 {
    // SAFETY: the caller's promise.
    unsafe {
        let code = &*(*body).code;
        let ticks = code.ticks.load(Ordering::Relaxed).wrapping_sub(1);
        code.ticks.store(ticks, Ordering::Relaxed);
        if ticks >= 0 { ptr::null() } else { ask(body, ctx, Some(index)) }
    }
}

#[cold]
unsafe fn ask(body: *const Body, ctx: *mut InstanceCtx, at: Option<u32>) -> *const u8 {
    // SAFETY: the caller's.
    unsafe {
        match tier::ask(instance_of(ctx), (*body).func, at) {
            Next::Interpret => ptr::null(),
            Next::Enter(code) => code,
        }
    }
}

/// Calls a function that is not interpreted, native code of it or a host function, and comes back to `next`.
///
/// # Safety
/// `state` stands at the call, and `native` is code of `callee` unless that is a host function.
#[inline(never)]
pub(super) unsafe fn call(mut state: State, callee: Callee, native: *const u8, next: *const u8) -> Step {
    // SAFETY: the arguments are the operands below `sp`, and the results fit where they were. The frame is below
    // `value_sp` while others run.
    unsafe {
        let (params, results) = arity(callee);
        let args = state.sp.sub(params);
        (*(*state.scope.ctx).stack).value_sp = frame::end(state.fp, state.body);
        let status = match owner_of(callee.ctx) {
            Owner::Host(host) => entry::call_host(host, args),
            Owner::Instance(_) => tier::call(callee.ctx, (*callee.body).func, native, args),
        };
        if status != Status::Return {
            let mut failure = take_failure(store_of(state.scope.ctx));
            frame::describe(&mut failure, state.scope.ctx, state.body, state.fp, state.pc);
            (*store_of(state.scope.ctx)).failure = Some(failure);
            return Step::Exit(Exit::Trap);
        }
        state.sp = args.add(results);
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
pub(super) unsafe fn tail_call(mut state: State, callee: Callee, meter: Option<Meter>) -> Result<Step, Trap> {
    // SAFETY: the arguments are the operands below `sp`, so they and the results fit where the frame is.
    unsafe {
        if callee.body.is_null() {
            // It cannot take the frame's place, but nor can it make the chain of frames any longer: call, then return.
            return Ok(match call(state, callee, ptr::null(), state.pc) {
                Step::Continue(state) => Step::Return(state),
                step => step,
            });
        }
        let native = tick(callee.body, callee.ctx);
        let stack = (*callee.ctx).stack;
        if native.is_null() && frame::overflows(stack, state.fp, callee.body) {
            return Err(Trap::StackOverflow);
        }
        let caller = *frame::header(state.fp, state.body);
        frame::move_down(state.sp, (*callee.body).params, state.fp);
        if !native.is_null() {
            return Ok(leave(state, caller, callee, native, false));
        }
        if callee.ctx != state.scope.ctx {
            state.switch(callee.ctx);
        }
        state.body = callee.body;
        state.sp = frame::push(state.fp, callee.body, caller);
        state.pc = (*callee.body).entry;
        state.stp = (*callee.body).branches;
        if let Some(Err(trap)) = meter.map(|meter| meter.poll()) {
            frame::trapped(trap, state.scope.ctx, state.body, state.fp, state.pc);
            return Ok(Step::Exit(Exit::Trap));
        }
        Ok(Step::Continue(state))
    }
}

/// Leaves the frame of `state`, whose header was `caller`, for native code that takes its place: of `callee`, called
/// with the arguments at the frame's `fp`, or an OSR body for the loop at which the frame stands.
///
/// The base frame of the activation leaves the activation; one above it is popped and the code is called for the
/// caller, which continues.
///
/// # Safety
/// As said, `code` being such code.
#[inline(never)]
pub(super) unsafe fn leave(mut state: State, caller: Header, callee: Callee, code: *const u8, osr: bool) -> Step {
    // SAFETY: the results fit where the frame is. The frames that stay, and the arguments, are below `value_sp`
    // while the code runs; an OSR body reads its frame before it writes anything above.
    unsafe {
        let (func, args) = ((*callee.body).func, state.fp);
        if caller.is_base() {
            return Step::Exit(Exit::Dispatch { func, instance: callee.ctx, code, args, osr });
        }
        if caller.instance != state.scope.ctx {
            state.switch(caller.instance);
        }
        state.return_to(caller);
        let stack = (*state.scope.ctx).stack;
        let params = (*callee.body).params as usize;
        (*stack).value_sp = frame::end(state.fp, state.body).max(args.add(params));
        let status = match osr {
            false => tier::call(callee.ctx, func, code, args),
            true => tier::call_osr(callee.ctx, func, code, args),
        };
        if status != Status::Return {
            let mut failure = take_failure(store_of(state.scope.ctx));
            frame::describe_from(&mut failure, caller);
            (*store_of(state.scope.ctx)).failure = Some(failure);
            return Step::Exit(Exit::Trap);
        }
        state.sp = args.add((*callee.body).results as usize);
        state.reload_memory();
        Step::Continue(state)
    }
}

/// How many slots are the parameters, and how many the results.
unsafe fn arity(callee: Callee) -> (usize, usize) {
    // SAFETY: the callee is live.
    unsafe {
        match owner_of(callee.ctx) {
            Owner::Host(HostRecord { func, .. }) => (func.ty.params.len(), func.ty.results.len()),
            Owner::Instance(_) => ((*callee.body).params as usize, (*callee.body).results as usize),
        }
    }
}
