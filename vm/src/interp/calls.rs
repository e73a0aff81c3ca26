//! Calls: finding the callee, and all calls except those from one interpreted function to another, which the loop
//! executes itself.

use super::control::Meter;
use super::exit::Exit;
use super::failing::failed;
use super::frame::{self, Header};
use super::state::{End, State, Step};
use super::{decode, lazy, memory};
use crate::records::body::Body;
use crate::records::deadline::deadline_reached;
use crate::records::engines::Next;
use crate::records::func_code::enter_code;
use crate::records::host::HostRecord;
use crate::records::instance::{Owner, instance_of, owner_of};
use crate::records::scope::Scope;
use crate::records::store::store_of;
use std::ptr;
use std::sync::atomic::Ordering;
use weir_bytecode::sidetable::BranchEntry;
use weir_bytecode::{FuncBody, Trap};
use weir_contract::{FuncRef, StackCtx, Status, slot_words};

/// The callee of a call.
#[derive(Clone, Copy)]
pub(super) enum Callee {
    /// A guest function.
    Wasm {
        /// The function.
        body: *const Body,
        /// The instance.
        scope: *const Scope,
    },
    /// A host function.
    Host(*const HostRecord),
}

impl Callee {
    /// Returns the function of a reference.
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

/// Returns the callee of `call` and `return_call` with function index `func`.
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
    // SAFETY: the caller's promise; imports are linked before anything runs.
    unsafe { Callee::of(instance_of((*scope).ctx).func_ref(func)) }
}

/// Returns the callee of `call_indirect` and `return_call_indirect`, given the address `at` of the immediates and the
/// operand `index`, and the address after the immediates.
///
/// # Safety
/// Validated code in `scope`.
#[inline(never)]
pub(super) unsafe fn indirect(scope: *const Scope, at: *const u8, index: u64) -> Result<(Callee, *const u8), Trap> {
    // SAFETY: the caller's promise.
    unsafe {
        let (ty, at) = decode::u32(at);
        let (table, next) = decode::u32(at);
        let index = if (*scope).table(table).ty.table64 { index } else { index & u64::from(u32::MAX) };
        Ok((Callee::of((*scope).element(ty, table, index)?), next))
    }
}

/// Returns the callee of `call_ref` and `return_call_ref` with the operand `reference`.
///
/// # Safety
/// Validated code of a live store.
#[inline(never)]
pub(super) unsafe fn referenced(reference: u64) -> Result<Callee, Trap> {
    if reference == 0 {
        return Err(Trap::NullReference);
    }
    // SAFETY: the caller's promise: a function reference that is not null is the address of a `FuncRef`.
    Ok(unsafe { Callee::of(reference as *const FuncRef) })
}

/// Counts a call of `callee` in the profile of the caller, if that has begun. The call is the indirect one at the pc of
/// `state`.
///
/// # Safety
/// The instruction at the pc of `state` is an indirect call.
#[inline(always)]
pub(super) unsafe fn count_target(state: State, callee: Callee) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(counters) = (*(*state.body).code).counters() {
            let target = match callee {
                Callee::Wasm { body, scope } if scope == state.scope => Some((*body).func),
                Callee::Wasm { .. } | Callee::Host(_) => None,
            };
            let module = &instance_of((*state.scope).ctx).module.record().bytecode;
            let pc = state.pc.offset_from_unsigned((*state.scope).bytes) as u32;
            let source: &FuncBody = &*(*state.body).source;
            counters.call(module, source, pc, target);
        }
    }
}

/// Subtracts the work of a call of `body` from its ticks. Returns native code for it, or null to interpret it.
///
/// # Safety
/// `body` and `scope` are live.
#[inline(always)]
pub(super) unsafe fn tick(body: *const Body, scope: *const Scope) -> *const u8 {
    // SAFETY: the caller's promise.
    unsafe {
        let native = (*(*body).code).native.load(Ordering::Acquire);
        if !native.is_null() {
            return native;
        }
        count(body, scope, None, (*(*body).code).work.load(Ordering::Relaxed))
    }
}

/// Subtracts the work of an iteration of the loop of `body` that owns the side-table entry `entry`. Returns code
/// that is entered at the loop, or null to interpret it.
///
/// # Safety
/// As for [`tick`].
#[inline(always)]
pub(super) unsafe fn tick_loop(body: *const Body, scope: *const Scope, entry: &BranchEntry) -> *const u8 {
    // SAFETY: the caller's promise.
    unsafe { count(body, scope, Some(entry.pc), entry.drop) }
}

/// Subtracts `work` ticks. Calls `tier_up` if they have run out.
#[inline(always)]
unsafe fn count(body: *const Body, scope: *const Scope, at: Option<u32>, work: u32) -> *const u8 {
    // SAFETY: the caller's promise.
    unsafe {
        // Non-negative ticks imply that the function is ready, even with lazy validation: see `lazy`.
        let ticks = &(*(*body).code).ticks;
        let left = ticks.load(Ordering::Acquire).saturating_sub_unsigned(work);
        ticks.store(left, Ordering::Release);
        if left >= 0 { ptr::null() } else { tier_up(body, scope, at) }
    }
}

#[cold]
unsafe fn tier_up(body: *const Body, scope: *const Scope, at: Option<u32>) -> *const u8 {
    // SAFETY: the caller's promise.
    unsafe {
        let instance = instance_of((*scope).ctx);
        if !lazy::prepare(instance.module.record(), (*body).func) {
            return ptr::null();
        }
        let engines = &instance.module.engine().record().engines;
        match engines.tier_up((*scope).ctx, (*body).func, at) {
            Next::Interpret => ptr::null(),
            Next::Enter(code) => code,
        }
    }
}

/// Calls a host function with the operands below `sp`, and continues at `next`.
///
/// # Safety
/// The instruction at the pc of `state` calls `host`.
#[inline(never)]
pub(super) unsafe fn host<const WORDS: usize>(mut state: State, host: &HostRecord, next: *const u8) -> Step {
    // SAFETY: the arguments are there, and the results fit in their place.
    unsafe {
        let ty = &host.func.ty;
        let args = state.sp.sub(ty.params.len() * WORDS);
        set_value_sp::<WORDS>(&state, args);
        state.record_position();
        if WORDS == 2 {
            frame::relayout(args, ty.params.len(), WORDS, slot_words(&ty.params));
        }
        if host.call(args) != Status::Return {
            return Step::Leave(failed(&state));
        }
        if WORDS == 2 {
            frame::relayout(args, ty.results.len(), slot_words(&ty.results), WORDS);
        }
        state.sp = args.add(ty.results.len() * WORDS);
        state.pc = next;
        state.reload_memory();
        Step::Continue(state)
    }
}

/// Calls native code of `body` with the operands below `sp`, and continues at `next`.
///
/// # Safety
/// The instruction at the pc of `state` is the call.
#[inline(never)]
pub(super) unsafe fn native<const WORDS: usize>(
    mut state: State,
    body: *const Body,
    scope: *const Scope,
    code: *const u8,
    next: *const u8,
) -> Step {
    // SAFETY: the arguments are there, and the results fit in their place. A function whose slots have one word calls
    // none with vectors.
    unsafe {
        let args = state.sp.sub((*body).params as usize * WORDS);
        set_value_sp::<WORDS>(&state, args);
        state.record_position();
        if WORDS == 2 {
            frame::relayout(args, (*body).params.into(), WORDS, (*body).param_words.into());
        }
        if (*(*body).code).call((*scope).ctx, code, args) != Status::Return {
            return Step::Leave(failed(&state));
        }
        if WORDS == 2 {
            frame::relayout(args, (*body).results.into(), (*body).result_words.into(), WORDS);
        }
        state.sp = args.add((*body).results as usize * WORDS);
        state.pc = next;
        state.reload_memory();
        Step::Continue(state)
    }
}

/// Calls an interpreted function of the other width with the operands below `sp`. The callee returns to `next`. The
/// loop does not do this itself, because execution continues in the loop for the other width.
///
/// # Errors
/// The value stack overflows; always, if the function has the same width.
///
/// # Safety
/// The instruction at the pc of `state` is the call.
#[cold]
pub(super) unsafe fn across<const WORDS: usize>(
    mut state: State,
    body: *const Body,
    scope: *const Scope,
    next: *const u8,
) -> Result<Step, Trap> {
    // SAFETY: the arguments are there. None is a vector, because one of the two functions has none.
    unsafe {
        let words = 3 - WORDS;
        let fp = state.sp.sub((*body).params as usize * WORDS);
        if frame::overflows(stack_of(&state), fp, body, words) {
            return lazy::refused(state, body, scope).ok_or(Trap::StackOverflow);
        }
        frame::relayout(fp, (*body).params.into(), WORDS, words);
        state.sp = frame::push(fp, body, state.header(next).with_other_width(), words);
        (state.fp, state.body) = (fp, body);
        (state.pc, state.stp) = ((*body).entry, (*body).branches);
        state.switch(scope);
        Ok(Step::Leave(End::Switch(state)))
    }
}

/// Returns to the caller, with the results below `sp`.
///
/// # Safety
/// `caller` is the frame's header, read before the results were moved.
#[inline(always)]
pub(super) unsafe fn leave<const WORDS: usize>(mut state: State, caller: Header) -> Step {
    // SAFETY: the results fit in the place of the frame.
    unsafe {
        state.sp = frame::move_down(state.sp, (*state.body).results as usize * WORDS, state.fp);
        if caller.leaves_loop() {
            return leave_loop::<WORDS>(state, caller);
        }
        state.return_to(caller);
        Step::Continue(state)
    }
}

/// Returns to a caller for which [`Header::leaves_loop`] holds, with the results at `fp`.
///
/// # Safety
/// `state` is that of the frame that returns, and `caller` was its header.
#[cold]
pub(super) unsafe fn leave_loop<const WORDS: usize>(mut state: State, caller: Header) -> Step {
    // SAFETY: the results are there. Where the width changes, none is a vector.
    unsafe {
        let (at, results) = (state.fp, (*state.body).results.into());
        if caller.is_base() {
            frame::relayout(at, results, WORDS, (*state.body).result_words.into());
            return Step::Leave(End::Exit(Exit::Return));
        }
        let words = caller.caller_words(WORDS);
        frame::relayout(at, results, WORDS, words);
        state.return_to(caller);
        state.sp = at.add(results * words);
        Step::Leave(End::Switch(state))
    }
}

/// Executes a tail call: the callee replaces the frame of the caller.
///
/// # Safety
/// The instruction at the pc of `state` is the call.
#[inline(never)]
pub(super) unsafe fn tail<const WORDS: usize>(mut state: State, callee: Callee, meter: Option<Meter>) -> Result<Step, Trap> {
    // SAFETY: the arguments are the operands below `sp`, so they and the results fit in the place of the frame.
    // Where the width changes, none is a vector.
    unsafe {
        let caller = *frame::header(state.fp, state.body, WORDS);
        let (body, scope) = match callee {
            Callee::Wasm { body, scope } => (body, scope),
            // A host function does not tail-call, so calling it and then returning takes constant stack, too.
            Callee::Host(record) => {
                return Ok(match host::<WORDS>(state, &*record, state.pc) {
                    Step::Continue(state) => leave::<WORDS>(state, caller),
                    step => step,
                });
            }
        };
        let code = tick(body, scope);
        let words = (*body).words();
        if code.is_null() && frame::overflows(stack_of(&state), state.fp, body, words) {
            return lazy::refused(state, body, scope).ok_or(Trap::StackOverflow);
        }
        let params = (*body).params.into();
        frame::move_down(state.sp, params * WORDS, state.fp);
        if !code.is_null() {
            frame::relayout(state.fp, params, WORDS, (*body).param_words.into());
            return Ok(hand_over::<WORDS>(state, caller, body, scope, code, false));
        }
        frame::relayout(state.fp, params, WORDS, words);
        state.switch(scope);
        state.body = body;
        (state.pc, state.stp) = ((*body).entry, (*body).branches);
        if words != WORDS {
            state.sp = frame::push(state.fp, body, caller.with_other_width(), words);
            return Ok(Step::Leave(End::Switch(state)));
        }
        state.sp = frame::push(state.fp, body, caller, words);
        match meter.is_some_and(|meter| meter.is_due()) {
            true => Ok(deadline::<WORDS>(state)),
            false => Ok(Step::Continue(state)),
        }
    }
}

/// Continues the frame in `code`, which is entered at the loop at the pc of `state`.
///
/// # Safety
/// The instruction is that `loop`, and `code` is entered there, with the interpreter's frame.
#[inline(never)]
pub(super) unsafe fn enter_loop<const WORDS: usize>(state: State, code: *const u8) -> Step {
    // SAFETY: the caller's promise.
    unsafe {
        let height = state.sp.offset_from_unsigned(frame::header(state.fp, state.body, WORDS).add(1).cast::<u64>()) / WORDS;
        debug_assert!(frame::is_at_loop(stack_of(&state), state.body, state.fp, height as u32), "operands up to {height}");
        let caller = *frame::header(state.fp, state.body, WORDS);
        hand_over::<WORDS>(state, caller, state.body, state.scope, code, true)
    }
}

/// Replaces the frame of `state`, whose header was `caller`, by native code of `body`: the function called with
/// arguments at the frame's `fp`, or with `osr` code that is entered at the loop at the frame's pc.
///
/// If the frame is the base frame, the activation ends. Otherwise the frame is popped, and its caller calls the code
/// and continues.
unsafe fn hand_over<const WORDS: usize>(
    mut state: State,
    caller: Header,
    body: *const Body,
    scope: *const Scope,
    code: *const u8,
    osr: bool,
) -> Step {
    // SAFETY: the results fit in the place of the frame. The remaining frames and the arguments are below `value_sp`
    // while the code runs. Code that is entered at a loop reads its frame before it writes above.
    unsafe {
        let (func, instance, args) = ((*body).func, (*scope).ctx, state.fp);
        if caller.is_base() {
            return Step::Leave(End::Exit(Exit::Dispatch { func, instance, code, args, osr }));
        }
        let words = caller.caller_words(WORDS);
        state.return_to(caller);
        let used = args.add((*body).params as usize * (*body).param_words as usize);
        match words {
            1 => set_value_sp::<1>(&state, used),
            _ => set_value_sp::<2>(&state, used),
        }
        // The position of the caller; its `sp` is not known yet.
        state.sp = ptr::null_mut();
        state.record_position();
        let status = match osr {
            false => (*(*body).code).call(instance, code, args),
            true => {
                let engines = &instance_of(instance).module.engine().record().engines;
                enter_code(engines.enter_osr(instance, func), instance, code, args)
            }
        };
        if status != Status::Return {
            return Step::Leave(failed(&state));
        }
        let results = (*body).results.into();
        frame::relayout(args, results, (*body).result_words.into(), words);
        state.sp = args.add(results * words);
        state.reload_memory();
        if words == WORDS { Step::Continue(state) } else { Step::Leave(End::Switch(state)) }
    }
}

/// Calls the store's deadline callback, which decides whether the frame of `state` continues.
///
/// # Safety
/// `state` is valid.
#[cold]
pub(super) unsafe fn deadline<const WORDS: usize>(mut state: State) -> Step {
    // SAFETY: the operands are within the frame.
    unsafe {
        set_value_sp::<WORDS>(&state, state.sp);
        state.record_position();
        let store = store_of((*state.scope).ctx);
        if let Err(failure) = deadline_reached(store) {
            (*store).failure = Some(failure);
            return Step::Leave(failed(&state));
        }
        state.reload_memory();
        Step::Continue(state)
    }
}

/// Sets `value_sp` above the frame of `state` and above `used`, for the code that is called next.
pub(super) unsafe fn set_value_sp<const WORDS: usize>(state: &State, used: *mut u64) {
    // SAFETY: the caller's state is valid.
    unsafe { (*stack_of(state)).value_sp = frame::end(state.fp, state.body, WORDS).max(used) };
}

unsafe fn stack_of(state: &State) -> *mut StackCtx {
    // SAFETY: the caller's state is valid.
    unsafe { (*(*state.scope).ctx).stack }
}

/// Executes the `memory.grow` at the pc of `state`, with its immediate at `at`. Returns the address of the next
/// instruction, or `None` to end execution for the reason in the store.
///
/// # Safety
/// The instruction at the pc of `state` is `memory.grow`.
#[inline(never)]
pub(super) unsafe fn grow_memory<const WORDS: usize>(state: State, at: *const u8) -> Option<*const u8> {
    // SAFETY: the caller's promise.
    unsafe {
        state.record_position();
        memory::grow(at, state.sp.sub(WORDS), (*state.scope).ctx)
    }
}

/// Executes `table.grow`; otherwise as [`grow_memory`].
///
/// # Safety
/// As for [`grow_memory`].
#[inline(never)]
pub(super) unsafe fn grow_table<const WORDS: usize>(state: State, at: *const u8) -> Option<*const u8> {
    // SAFETY: the caller's promise.
    unsafe {
        state.record_position();
        let top = state.sp.sub(WORDS);
        memory::grow_table(at, top.sub(WORDS), top, (*state.scope).ctx)
    }
}
