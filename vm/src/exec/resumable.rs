//! Resumable calls: a guest on a [fiber](super::fiber) of its own that stops after an error of a host function, or when fuel has run
//! out, until the embedder resumes it.
//!
//! A stopped guest does not borrow the store, so calls of one store end in any order. Each fiber has a value stack of its own,
//! and the store has a list of stopped guests, in which the collector finds their frames and the store's end finds what is left. The
//! embedder's handle has no pointer, but a flag that says that it was dropped. Guests whose handle was dropped are ended when the
//! store is used for a resumable call again: their stop returns an error that no guest catches, as with a future that is dropped.
//!
//! # Fuel
//!
//! Running out of fuel is a trap, after which code cannot continue. So code that can be stopped runs with a [credit](crate::records::credit) beyond the
//! store's fuel, and asks at each poll. At the first poll at which it lives on credit it is stopped, and the fuel that it has
//! overdrawn is charged when it is resumed: the sum is exact, unless the guest traps before that poll. Polls are at functions' entries
//! and loops, and one is at the end. What bulk operations, which may take long, can overdraw between them is limited; beyond it they
//! trap.

use super::entry::{invoke_on_fiber, refused};
use super::fiber::{Live, Outcome, Owned, prepare};
use super::hooks;
use crate::records::call_hook::CallHook;
use crate::records::credit::stop_overdrawn;
use crate::records::error::{Error, Result};
use crate::records::fiber::{Resumable, Stop, Stopped, Transfer};
use crate::records::store::{ASYNC_ONLY, StoreRecord};
use std::mem::ManuallyDrop;
use std::panic::resume_unwind;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_bytecode::Trap;
use weir_contract::FuncRef;

/// Resumable calls of one store that are inside each other, through host functions: each has a native stack.
const MAX_DEPTH: u32 = 100;

/// The embedder's handle of a stopped guest. Dropping it gives the guest up.
#[derive(Debug)]
pub(crate) struct Handle {
    /// The identity of the store.
    pub store: u64,
    /// The address of what this module has of the guest, for comparison only.
    guest: usize,
    dropped: Arc<AtomicBool>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Release, for what the embedder did before.
        self.dropped.store(true, Ordering::Release);
    }
}

/// What became of a resumable call.
pub(crate) enum Step {
    Finished,
    Stopped(Stop, Handle),
}

/// Begins a resumable call: see [`invoke`](super::entry::invoke) for the arguments. `read` may be called after this returns, only in
/// [`resume`], which is given another one.
///
/// # Errors
/// # Panics
/// As for `invoke`; or the engine's code cannot be stopped when fuel runs out.
///
/// # Safety
/// As for `invoke`.
pub(crate) unsafe fn begin(
    store: *mut StoreRecord,
    func: *const FuncRef,
    words: usize,
    write: impl FnOnce(*mut u64),
    read: &mut dyn FnMut(*mut u64),
) -> Result<Step> {
    let mut write = Some(write);
    let mut write = |slots: *mut u64| {
        if let Some(write) = write.take() {
            write(slots);
        }
    };
    // SAFETY: the caller's promise. The arguments are written before the guest runs, and so before this returns.
    unsafe {
        check(store)?;
        sweep(store);
        let outer = (*store).invocations;
        let depth = (*store).fiber.as_ref().and_then(|fiber| fiber.resumable.as_ref()).map_or(0, |resumable| resumable.depth + 1);
        if depth > MAX_DEPTH {
            return Err(Error::new(Trap::StackOverflow));
        }
        let write = erase(&mut write);
        let body = move |store: *mut StoreRecord| {
            let fiber = (*store).fiber;
            let read = |slots: *mut u64| {
                // What the last frame has overdrawn is charged before it returns.
                while (*store).is_overdrawn() {
                    if stop_overdrawn(store).is_err() {
                        return;
                    }
                }
                if let Some(resumable) = &(*fiber).resumable {
                    (*resumable.read)(slots);
                }
            };
            invoke_on_fiber(store, func, words, |slots| (*write)(slots), read)
        };
        let guest = Live::begin(store, body)?;
        let live = guest.0;
        let inner = &mut (*live).inner;
        inner.invocations = outer + 1;
        let invocations = inner.invocations + 1;
        (*live).fiber.resumable = Some(Resumable { invocations, depth, reason: None, read: erase(read) });
        run(guest)
    }
}

/// Resumes a guest that was stopped for fuel, or one whose host function's results have been written by `results`.
///
/// # Errors
/// # Panics
/// As [`begin`]; or that of `results`, after which the guest is given up.
///
/// # Safety
/// As for [`begin`]; the handle is of this store.
pub(crate) unsafe fn resume(
    store: *mut StoreRecord,
    handle: Handle,
    stop: &Stop,
    results: impl FnOnce(*mut u64) -> Result<()>,
    read: &mut dyn FnMut(*mut u64),
) -> Result<Step> {
    // SAFETY: the caller's promise. A guest whose handle exists is in its store's list.
    unsafe {
        check(store)?;
        sweep(store);
        if let Stop::Fuel { overdrawn } = *stop {
            let fuel = (*store).fuel().max(0).saturating_sub_unsigned(overdrawn);
            (*store).set_fuel(fuel.max(0));
            if fuel < 0 {
                return Ok(Step::Stopped(Stop::Fuel { overdrawn: fuel.unsigned_abs() }, handle));
            }
        }
        hooks::pass(store, CallHook::CallingWasm)?;
        // Nothing collects from here on, so references in the slots stay valid.
        if let Stop::Host { slots, .. } = *stop {
            results(slots)?;
        }
        let at = (*store).stopped.iter().position(|stopped| stopped.guest.addr() == handle.guest);
        let stopped = (*store).stopped.swap_remove(at.expect("a stopped guest is in its store's list"));
        let guest: Owned<Result<()>> = Owned(stopped.guest.cast());
        if let Some(resumable) = &mut (*guest.0).fiber.resumable {
            resumable.read = erase(read);
            // Calls around it may be others than before.
            let base = (*store).invocations + 1;
            resumable.invocations = base + 1;
            (*guest.0).inner.invocations = base + 1;
        }
        run(guest)
    }
}

/// Ends all stopped guests of a store.
///
/// # Safety
/// The store is live, runs no guest, and nothing else uses it.
pub(crate) unsafe fn end_all(store: *mut StoreRecord) {
    // SAFETY: the caller's promise. What is removed from the list is ended once.
    unsafe {
        while let Some(stopped) = (*store).stopped.pop() {
            (stopped.end)(stopped.guest);
        }
    }
}

/// Ends the guests whose handles have been dropped.
///
/// # Safety
/// The store is live, nothing else uses it, and no reference into it is held.
unsafe fn sweep(store: *mut StoreRecord) {
    // SAFETY: the caller's promise.
    unsafe {
        while let Some(at) = (*store).stopped.iter().position(|stopped| stopped.dropped.load(Ordering::Acquire)) {
            let stopped = (*store).stopped.swap_remove(at);
            (stopped.end)(stopped.guest);
        }
    }
}

/// Checks that a guest can be called resumably, and prepares the thread.
///
/// # Errors
/// It cannot.
///
/// # Safety
/// As for [`begin`].
unsafe fn check(store: *mut StoreRecord) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        if (*store).invocations < 0 {
            return Err(refused(store));
        }
        let config = (*store).engine.config();
        if config.consume_fuel && !config.polls() {
            return Err(Error::msg("no code that consumes fuel is resumed in an engine with `Config::async_support(false)`"));
        }
        prepare(store)
    }
}

/// Runs a guest until it ends or is stopped.
///
/// # Errors
/// # Panics
/// As [`begin`].
///
/// # Safety
/// As for [`begin`]. The guest is in no list.
unsafe fn run(guest: Owned<Result<()>>) -> Result<Step> {
    let this = guest.0;
    // SAFETY: the caller's promise.
    unsafe {
        let store = (*this).store;
        let outside = Outside::leave(store);
        Live::enter(this);
        let lent = (*store).lend();
        let result = Live::resume(this);
        (*store).settle(lent);
        match result {
            Some(result) => {
                Live::leave(this);
                outside.enter(store);
                match result {
                    Ok(result) => result.map(|()| Step::Finished),
                    Err(payload) => resume_unwind(payload),
                }
            }
            None => {
                Live::suspend(this);
                outside.enter(store);
                let reason = (*this).fiber.resumable.as_mut().and_then(|resumable| resumable.reason.take());
                let mut reason = reason.expect("a guest that stops says why");
                if let Stop::Fuel { overdrawn } = &mut reason {
                    // What is overdrawn is charged when the guest is resumed.
                    let fuel = (*store).fuel();
                    *overdrawn = fuel.min(0).unsigned_abs();
                    (*store).set_fuel(fuel.max(0));
                }
                let guest = ManuallyDrop::new(guest).0.cast::<()>();
                let dropped = Arc::new(AtomicBool::new(false));
                let handle = Handle { store: (*store).id, guest: guest.addr(), dropped: dropped.clone() };
                let links = (*this).inner.links;
                (*store).stopped.push(Stopped { guest, links, dropped, end });
                hooks::pass(store, CallHook::ReturningFromWasm)?;
                Ok(Step::Stopped(reason, handle))
            }
        }
    }
}

/// Ends a stopped guest. Nothing of the embedder runs, so nothing panics.
///
/// # Safety
/// `guest` is that of a [`Stopped`] that is in no list; its store is live, and nothing else uses it.
unsafe fn end(guest: *mut ()) {
    let guest: Owned<Result<()>> = Owned(guest.cast());
    // SAFETY: the caller's promise. The guest cannot call anything, so its results are not read.
    unsafe {
        let this = guest.0;
        let store = (*this).store;
        let outside = Outside::leave(store);
        // On a fiber that is cancelled the guest cannot be called.
        (*this).inner.invocations |= ASYNC_ONLY;
        // The hook has seen the stop as a return.
        let hook = (*store).call_hook.take();
        let _: Outcome<()> = Live::cancel(this);
        (*store).call_hook = hook;
        outside.enter(store);
    }
}

/// What a call around a resumable one has in the store and is exchanged for that: its scoped roots.
struct Outside {
    base: usize,
}

impl Outside {
    /// Begins a scope for the guest.
    ///
    /// # Safety
    /// The store is live.
    unsafe fn leave(store: *mut StoreRecord) -> Outside {
        // SAFETY: the caller's promise.
        Outside { base: unsafe { (*store).begin_call() } }
    }

    /// Ends the scope. Roots that have been added since, the results, belong to the call around it.
    ///
    /// # Safety
    /// The store is live.
    unsafe fn enter(self, store: *mut StoreRecord) {
        // SAFETY: the caller's promise.
        unsafe { (*store).continue_call(self.base) };
    }
}

/// Erases the lifetime of a closure that is called only until the function that received it returns.
fn erase(transfer: &mut dyn FnMut(*mut u64)) -> Transfer {
    let transfer: *mut (dyn FnMut(*mut u64) + '_) = ptr::from_mut(transfer);
    // SAFETY: the types differ by the lifetime only.
    unsafe { std::mem::transmute::<*mut (dyn FnMut(*mut u64) + '_), Transfer>(transfer) }
}
