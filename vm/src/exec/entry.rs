//! Calls from Rust into the guest and from the guest into Rust.
//!
//! Rust calls the guest by [`invoke`]. The guest calls Rust by [`exec::host`](super::host): the stubs of compiled code call
//! it directly, the interpreter and the evaluator through [`HostRecord::call`](crate::records::host::HostRecord::call).
//!
//! An invocation restores `value_sp`, the chain of boundaries and the native limit, also after a trap or a panic.

use super::{hooks, native};
use crate::interp::{self, Exit};
use crate::records::attending::drop_dead;
use crate::records::call_hook::CallHook;
use crate::records::error::Error;
use crate::records::exceptions::InFlight;
use crate::records::failure::Failure;
#[cfg(feature = "async")]
use crate::records::fiber;
use crate::records::func_code::enter_code;
use crate::records::instance::{Owner, instance_of, owner_of};
use crate::records::stack;
use crate::records::store::{StoreRecord, take_failure};
use crate::records::walk::ALL_FRAMES;
use crate::sys::segment::Base;
use std::panic::resume_unwind;
use std::sync::atomic::Ordering;
use weir_bytecode::Trap;
use weir_contract::{FuncRef, InstanceCtx, StackCtx, Status};

/// Calls a function from Rust: `write` writes the arguments to slots, the guest runs, `read` reads the results from the
/// same slots. The call needs `words` words.
///
/// # Errors
/// A trap with its backtrace, or the error of a host function.
///
/// # Panics
/// With the panic of a host function that the guest called.
///
/// # Safety
/// `func` belongs to the live store `store`. No other code uses the store, and no reference into it is held. `write`
/// writes the function's parameters, of the right types, and nothing beyond; `read` reads no more than its results.
pub(crate) unsafe fn invoke<R>(
    store: *mut StoreRecord,
    func: *const FuncRef,
    words: usize,
    write: impl FnOnce(*mut u64),
    read: impl FnOnce(*mut u64) -> R,
) -> Result<R, Error> {
    // SAFETY: the caller's promise.
    unsafe {
        let _invocation = Invocation::begin(store)?;
        run(store, func, words, write, read)
    }
}

/// Calls a function from Rust, as [`invoke`] does, on the fiber that runs, around which nothing of the guest is on its stack.
///
/// # Errors
/// # Panics
/// As [`invoke`].
///
/// # Safety
/// As for [`invoke`]; the store's fiber runs.
#[cfg(feature = "async")]
pub(crate) unsafe fn invoke_on_fiber<R>(
    store: *mut StoreRecord,
    func: *const FuncRef,
    words: usize,
    write: impl FnOnce(*mut u64),
    read: impl FnOnce(*mut u64) -> R,
) -> Result<R, Error> {
    // SAFETY: the caller's promise.
    unsafe {
        if (*(*store).fiber).cancelled {
            return Err(fiber::cancelled());
        }
        let _invocation = Invocation::nested(store);
        run(store, func, words, write, read)
    }
}

/// Calls a function within an invocation.
///
/// # Errors
/// # Panics
/// As [`invoke`].
///
/// # Safety
/// As for [`invoke`]; an invocation has begun, which restores the state that the guest may change.
#[inline(always)]
unsafe fn run<R>(
    store: *mut StoreRecord,
    func: *const FuncRef,
    words: usize,
    write: impl FnOnce(*mut u64),
    read: impl FnOnce(*mut u64) -> R,
) -> Result<R, Error> {
    // SAFETY: the caller's promise.
    unsafe {
        let stack = &raw mut (*(*store).stack).ctx;
        let args = (*stack).value_sp;
        if args.wrapping_add(words) > (*stack).value_limit {
            return Err(stack_overflow());
        }
        if (*store).attention.is_needed() {
            return run_attended(store, func, words, write, read);
        }
        write(args);
        match dispatch(func, args, words) {
            Status::Return => {
                // The guest's calls of host functions have removed their roots. A destructor does not use the store, so results in slots
                // stay valid.
                if (*store).attention.is_needed() {
                    drop_dead(store);
                }
                Ok(read(args))
            }
            _ => Err(failed(store)),
        }
    }
}

/// Calls a function as [`run`] does, in a store whose [`attention`](StoreRecord::attention) something needs, with enough space on the value
/// stack.
///
/// # Errors
/// That of the store's hook; or as [`invoke`].
///
/// # Panics
/// As [`invoke`].
///
/// # Safety
/// As for [`run`].
#[cold]
#[inline(never)]
unsafe fn run_attended<R>(
    store: *mut StoreRecord,
    func: *const FuncRef,
    words: usize,
    write: impl FnOnce(*mut u64),
    read: impl FnOnce(*mut u64) -> R,
) -> Result<R, Error> {
    // SAFETY: the caller's promise. The hook leaves `value_sp` as it was.
    unsafe {
        hooks::pass(store, CallHook::CallingWasm)?;
        let args = (*(*store).stack).ctx.value_sp;
        write(args);
        let outer = (*store).begin_call();
        let status = dispatch(func, args, words);
        (*store).end_call(outer);
        let result = match status {
            Status::Return => {
                drop_dead(store);
                Ok(read(args))
            }
            _ => Err(failed(store)),
        };
        hooks::pass(store, CallHook::ReturningFromWasm)?;
        result
    }
}

/// Not inlined: overflow is rare.
#[cold]
fn stack_overflow() -> Error {
    Error::new(Trap::StackOverflow)
}

/// Returns the error of a synchronous invocation where it is refused: in a store that needs asynchronous ones or is in one, and in a forked
/// child of the engine's process.
///
/// # Safety
/// The store is live.
#[cold]
pub(super) unsafe fn refused(store: *mut StoreRecord) -> Error {
    // SAFETY: the caller's promise.
    if let Err(error) = unsafe { (*store).engine.record().check_process() } {
        return error;
    }
    #[cfg(feature = "async")]
    // SAFETY: the caller's promise.
    unsafe {
        let StoreRecord { fiber, needs_async, .. } = &*store;
        if fiber.as_ref().is_some_and(|fiber| fiber.cancelled) {
            return fiber::cancelled();
        }
        if *needs_async {
            return fiber::needs_async();
        }
    }
    let _ = store;
    Error::msg("cannot do blocking `call` from an async context")
}

/// Returns the error of a guest that has just failed.
///
/// # Panics
/// With the panic of a host function.
///
/// # Safety
/// As for [`take_failure`].
#[cold]
unsafe fn failed(store: *mut StoreRecord) -> Error {
    // SAFETY: the caller's promise.
    unsafe {
        let error = error_of_guest(store);
        match (*store).engine.config().coredump {
            Some(attach) => attach(store.cast(), error),
            None => error,
        }
    }
}

/// [`failed`], without a core dump.
///
/// # Panics
/// As there.
///
/// # Safety
/// As there.
unsafe fn error_of_guest(store: *mut StoreRecord) -> Error {
    // SAFETY: the caller's promise.
    let failure = unsafe { take_failure(store) };
    match failure {
        Failure::Trap { trap, detail, fault, frames } => {
            let error = Error::detailed(trap, detail);
            let error = match fault {
                Some(fault) => error.around(fault),
                None => error,
            };
            error.with_backtrace(frames.unwrap_or_default())
        }
        // A host function that Rust has called threw it.
        Failure::Throw(Some(error)) => {
            // SAFETY: as above. A host function throws objects.
            unsafe {
                (*store).pending = (*store).in_flight.object;
                (*store).in_flight = InFlight::NONE;
            }
            error
        }
        Failure::Throw(None) | Failure::Thrown => unreachable!("the guest's exceptions are errors when they leave it"),
        Failure::Host(error) => error,
        Failure::Panic(payload) => resume_unwind(payload),
    }
}

/// Runs a function in the engine that its code pointer selects at this moment. Its arguments are in `words` words at
/// `args`, which is `value_sp`; `value_sp` may be higher afterwards.
///
/// # Safety
/// As for [`invoke`], within an invocation.
#[inline]
pub(crate) unsafe fn dispatch(func: *const FuncRef, args: *mut u64, words: usize) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        let FuncRef { instance, index, .. } = *func;
        let record = match owner_of(instance) {
            Owner::Host(host) => return host.call(args),
            Owner::Instance(record) => record.module.record(),
        };
        let func_code = record.func_code(index);
        let code = func_code.native.load(Ordering::Acquire);
        if code.is_null() {
            Base::now().or_of((*instance).memory0_base);
            return interpret(instance, index, args);
        }
        (*(*instance).stack).value_sp = args.wrapping_add(words);
        func_code.call(instance, code, args)
    }
}

/// Runs function `index`, starting in the interpreter.
///
/// # Safety
/// As for [`dispatch`].
#[inline(never)]
unsafe fn interpret(instance: *mut InstanceCtx, index: u32, args: *mut u64) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        match interp::run(instance, index, args) {
            Exit::Return => Status::Return,
            Exit::Trap => Status::Trap,
            Exit::Dispatch { func, instance, code, args, osr } => {
                let module = instance_of(instance).module.record();
                // An OSR body reads its frame before it calls anything that could write above `value_sp`.
                (*(*instance).stack).value_sp = args.wrapping_add(module.words(func));
                match osr {
                    false => module.func_code(func).call(instance, code, args),
                    true => {
                        let enter = module.engine.record().engines.enter_osr(instance, func);
                        enter_code(enter, instance, code, args)
                    }
                }
            }
        }
    }
}

/// An invocation of the guest by Rust. Dropping it restores the stack's state, also after a panic in `write` or `read`.
struct Invocation {
    store: *mut StoreRecord,
    native_limit: usize,
    value_sp: *mut u64,
    boundary: usize,
    outer_frames: usize,
}

impl Invocation {
    /// Begins an invocation. The outermost one sets the native stack's limit from the current stack pointer.
    ///
    /// # Errors
    /// [`Trap::StackOverflow`] if a nested one finds less native stack than the guest may use; or that of [`refused`], also for a nested one.
    // Inlined: a result returned in memory would be copied with accesses of other sizes than it was written with, which
    // defeats store-to-load forwarding.
    #[inline(always)]
    unsafe fn begin(store: *mut StoreRecord) -> Result<Invocation, Error> {
        // SAFETY: the promise of `invoke`.
        unsafe {
            let here = approximate_stack_pointer();
            let StackCtx { native_limit, value_sp, boundary, .. } = (*(*store).stack).ctx;
            let mut outer_frames = ALL_FRAMES;
            if (*store).invocations < 0 || !(*store).process.is_current() {
                return Err(refused(store));
            }
            match (*store).invocations {
                ..=0 => enter_guest(store, here)?,
                1.. if here < native_limit => return Err(stack_overflow()),
                1.. => outer_frames = std::mem::replace(&mut (*store).outer_frames, innermost_link(store)),
            }
            (*store).invocations += 1;
            Ok(Invocation { store, native_limit, value_sp, boundary, outer_frames })
        }
    }

    /// Begins an invocation on the store's fiber, whose limit is set.
    #[cfg(feature = "async")]
    unsafe fn nested(store: *mut StoreRecord) -> Invocation {
        // SAFETY: the promise of `invoke_on_fiber`.
        unsafe {
            let StackCtx { native_limit, value_sp, boundary, .. } = (*(*store).stack).ctx;
            let outer_frames = std::mem::replace(&mut (*store).outer_frames, innermost_link(store));
            (*store).invocations += 1;
            Invocation { store, native_limit, value_sp, boundary, outer_frames }
        }
    }
}

impl Drop for Invocation {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the promise of `invoke`: the store outlives the invocation.
        unsafe {
            let stack = &raw mut (*(*self.store).stack).ctx;
            (*stack).native_limit = self.native_limit;
            (*stack).value_sp = self.value_sp;
            (*stack).boundary = self.boundary;
            (*self.store).invocations -= 1;
            if (*self.store).invocations == 0 {
                native::leave(&(*self.store).quiescence);
            } else {
                (*self.store).outer_frames = self.outer_frames;
            }
        }
    }
}

/// Returns the lower address of the innermost boundary and the innermost activation, whose frames are around the invocation that
/// begins.
///
/// # Safety
/// The store is live.
unsafe fn innermost_link(store: *mut StoreRecord) -> usize {
    // SAFETY: the caller's promise.
    let StackCtx { boundary, activation, .. } = unsafe { &(*(*store).stack).ctx };
    let link = |address: usize| if address == 0 { ALL_FRAMES } else { address };
    link(*boundary).min(link(activation.addr()))
}

/// Begins the outermost invocation, with the native stack at about `here`.
///
/// # Errors
/// The thread can't be prepared to take a trap.
///
/// # Safety
/// As for [`invoke`].
unsafe fn enter_guest(store: *mut StoreRecord, here: usize) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    unsafe {
        if (*store).engine.record().prepares_threads && !native::thread_is_prepared() {
            return prepare_and_enter(store, here);
        }
        set_limit_and_enter(store, here);
    }
    Ok(())
}

/// Prepares the thread, and then begins the outermost invocation as [`enter_guest`] does. The call of this function is a tail
/// call, so [`enter_guest`] saves no registers for the call through the trait object.
///
/// # Errors
/// As for [`enter_guest`].
///
/// # Safety
/// As for [`enter_guest`].
#[cold]
#[inline(never)]
unsafe fn prepare_and_enter(store: *mut StoreRecord, here: usize) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    unsafe {
        (*store).engine.record().engines.prepare_thread()?;
        set_limit_and_enter(store, here);
    }
    Ok(())
}

/// Sets the native stack's limit, and begins the store's section.
///
/// # Safety
/// As for [`enter_guest`].
#[inline(always)]
unsafe fn set_limit_and_enter(store: *mut StoreRecord, here: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let max_wasm_stack = (*store).engine.config().max_wasm_stack;
        (*(*store).stack).ctx.native_limit = stack::native_limit(here, max_wasm_stack);
        native::enter(&(*store).quiescence);
    }
}

/// Returns an address in the caller's frame or just below it.
#[inline]
fn approximate_stack_pointer() -> usize {
    let local = 0u8;
    std::hint::black_box(&raw const local).addr()
}
