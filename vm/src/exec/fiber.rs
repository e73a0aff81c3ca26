//! Runs guests on stacks of their own, so that they can be suspended: the future [`Run`].
//!
//! ```text
//! executor's stack            fiber
//! Run::poll ── resume ──────▶ body ─▶ invoke_on_fiber ─▶ frames of the guest ─▶ host function
//!     ◀───────────────────────────────────────────── wait_for(its future) ──────────┘
//!     polls the future: pending? then Run is pending
//!     ready ── resume ──────▶ the host function returns
//! ```
//!
//! # At each poll
//!
//! The thread is prepared to take traps, and the bounds of its stack become those of the fiber while that runs. The state that the store
//! has then is saved in [`Fiber::outer`] and replaced by the fiber's; the reverse when the poll ends. Between two polls nothing in the
//! store, and nothing of the thread, refers to the fiber, but for the entry in the store's list of suspended stacks, through which code
//! to which the stack returns is kept.
//!
//! While a host function's future is polled, the store has the fiber's state: a backtrace or a collection in that future finds the
//! frames of the guest. A guest that the future calls runs on another fiber, inside this one.
//!
//! # Dropping
//!
//! A future that is dropped while its guest is suspended ends the guest. The fiber is cancelled: from now on each wait, and each call of
//! a guest, on it or by the future that it waits for, fails at once. That future is dropped, on the dropping thread's stack. Then the
//! fiber is resumed: the wait returns an error of the host, which no guest catches. Its frames are left as after any trap; they are
//! never unwound by force. This holds during a panic, too.
//!
//! In a forked child of the engine's process, the code to which the guest's frames return is not there, and a future that is dropped leaves its
//! fiber as it is, with all that its frames own.
//!
//! A future that is leaked leaves its fiber suspended for ever. Its store may be used, and dropped, nevertheless.

use super::native;
use crate::records::engine::EngineRecord;
use crate::records::error::Result;
use crate::records::fiber::{Fiber, Links, Payload, Saved, Waiting, cancelled};
use crate::records::pooling::Share;
use crate::records::stack::{FiberStack, exchange_bounds};
use crate::records::store::{ASYNC_ONLY, StoreRecord};
use crate::records::walk::ALL_FRAMES;
use crate::sys::coroutine::{Coroutine, Resumed, Suspender};
use crate::sys::thread::is_panicking;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::ptr;
use std::task::{Context, Poll};
use weir_contract::NATIVE_STACK_RESERVE;

/// The result of code that may panic.
pub(super) type Outcome<R> = Result<R, Payload>;

/// Runs a body on a fiber of a store. The body's frames on the fiber belong to the guest and to this library only, whenever it waits.
pub(crate) struct Run<F, R> {
    store: *mut StoreRecord,
    state: State<F, R>,
}

enum State<F, R> {
    New(F),
    Live(Owned<Result<R>>),
    Done,
}

/// What belongs to a fiber. Code on the fiber uses it by pointer, so it does not move, and no reference to the whole is made.
pub(super) struct Live<R> {
    pub store: *mut StoreRecord,
    pub fiber: Fiber,
    /// The store's state on the fiber, while it does not run.
    pub inner: Saved,
    coroutine: Option<Coroutine<Option<Waiting>, Outcome<R>>>,
    bounds: Range<usize>,
    waiting: Option<Waiting>,
    begun: bool,
}

/// Owns what belongs to a fiber.
pub(super) struct Owned<R>(pub *mut Live<R>);

impl<R> Drop for Owned<R> {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a box, and the store is live. The fiber has ended, unless it is left as it is in a forked child.
        unsafe {
            if !(*(*self.0).store).engine.record().is_inherited() {
                drop(Box::from_raw(self.0));
            }
        }
    }
}

// SAFETY: the frames on the fiber are those of the body, which is `Send`; of the guest, which belongs to no thread; and of host
// functions that wait, whose futures and arguments are `Send`. The store is borrowed by the code that has this value, whose own type says
// whether it is `Send`.
unsafe impl<F: Send, R: Send> Send for Run<F, R> {}

impl<F, R> Unpin for Run<F, R> {}

impl<F: FnOnce(*mut StoreRecord) -> Result<R>, R> Run<F, R> {
    /// Creates a future that runs `body` with the store.
    ///
    /// # Safety
    /// The store is live, not used by any other code, and no reference into it is held, as long as this value lives and is used. The
    /// body ends if each wait and each call of the guest fails. It keeps nothing of its thread while it waits.
    pub unsafe fn new(store: *mut StoreRecord, body: F) -> Run<F, R> {
        Run { store, state: State::New(body) }
    }
}

impl<F: FnOnce(*mut StoreRecord) -> Result<R>, R> Future for Run<F, R> {
    type Output = Result<R>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<R>> {
        let this = &mut *self;
        let store = this.store;
        // SAFETY: the promise to `Run::new`.
        let prepared = unsafe { prepare(store) };
        let live = match std::mem::replace(&mut this.state, State::Done) {
            State::Live(live) => live,
            State::Done => panic!("a future is not polled after it has completed"),
            // SAFETY: as above.
            State::New(body) => unsafe {
                if let Err(error) = prepared {
                    return Poll::Ready(Err(error));
                }
                match Live::begin(store, body) {
                    Ok(live) => live,
                    Err(error) => return Poll::Ready(Err(error)),
                }
            },
        };
        // SAFETY: as above.
        unsafe {
            if let Err(error) = prepared {
                return Poll::Ready(Live::cancel(live.0).map_or_else(|payload| resume_unwind(payload), |()| Err(error)));
            }
            match Live::run(live.0, cx) {
                Poll::Pending => {
                    this.state = State::Live(live);
                    Poll::Pending
                }
                Poll::Ready(Ok(result)) => Poll::Ready(result),
                Poll::Ready(Err(payload)) => resume_unwind(payload),
            }
        }
    }
}

impl<F, R> Drop for Run<F, R> {
    fn drop(&mut self) {
        if let State::Live(live) = std::mem::replace(&mut self.state, State::Done) {
            // SAFETY: the promise to `Run::new`.
            let ended = unsafe { Live::cancel(live.0) };
            if let Err(payload) = ended
                && !is_panicking()
            {
                resume_unwind(payload);
            }
        }
    }
}

/// Prepares the thread to take a trap.
///
/// # Errors
/// There is no alternate signal stack; or this is a forked child of the engine's process.
///
/// # Safety
/// The store is live.
pub(super) unsafe fn prepare(store: *mut StoreRecord) -> Result<()> {
    // SAFETY: the caller's promise.
    let engine = unsafe { (*store).engine.record() };
    engine.check_process()?;
    match engine.prepares_threads && !native::thread_is_prepared() {
        true => engine.engines.prepare_thread(),
        false => Ok(()),
    }
}

impl Saved {
    /// Returns the state of a store.
    ///
    /// # Safety
    /// The store is live.
    unsafe fn of(store: *mut StoreRecord) -> Saved {
        // SAFETY: the caller's promise.
        unsafe {
            let stack = &raw const (*(*store).stack).ctx;
            Saved {
                native_limit: (*stack).native_limit,
                value_sp: (*stack).value_sp,
                value_limit: (*stack).value_limit,
                overflow: (*stack).overflow,
                base: (*(*store).stack).base,
                links: Links::of(&*stack),
                outer_frames: (*store).outer_frames,
                invocations: (*store).invocations,
                fiber: (*store).fiber,
            }
        }
    }

    /// Gives a store this state.
    ///
    /// # Safety
    /// The store is live, and code on that stack runs next, or walks it.
    unsafe fn restore(&self, store: *mut StoreRecord) {
        let &Saved {
            native_limit, value_sp, value_limit, overflow, base, links: Links { activation, boundary, exit_fp }, ..
        } = self;
        // SAFETY: the caller's promise.
        unsafe {
            let stack = &raw mut (*(*store).stack).ctx;
            (*stack).native_limit = native_limit;
            (*stack).value_sp = value_sp;
            (*stack).value_limit = value_limit;
            (*stack).overflow = overflow;
            (*(*store).stack).base = base;
            (*stack).activation = activation;
            (*stack).boundary = boundary;
            (*stack).exit_fp = exit_fp;
            (*store).outer_frames = self.outer_frames;
            (*store).invocations = self.invocations;
            (*store).fiber = self.fiber;
        }
    }
}

impl<R> Live<R> {
    /// Creates a fiber that has not run.
    ///
    /// # Errors
    /// There is no stack, or there may be no more; or the fiber around it is cancelled.
    ///
    /// # Safety
    /// As for [`Run::new`].
    pub unsafe fn begin<F: FnOnce(*mut StoreRecord) -> R>(store: *mut StoreRecord, body: F) -> Result<Owned<R>> {
        // SAFETY: the caller's promise. The fiber does not move, and lives until the coroutine is done.
        unsafe {
            let outer = Saved::of(store);
            if outer.fiber.as_ref().is_some_and(|fiber| fiber.cancelled) {
                return Err(cancelled());
            }
            let config = (*store).engine.config();
            let EngineRecord { fiber_stacks, quota, .. } = (*store).engine.record();
            quota.add(Share::STACK)?;
            let taken = fiber_stacks.take(config.fiber_stack(), config.value_stack_size);
            let FiberStack { stack, base, limit, overflow } = taken.inspect_err(|_| quota.subtract(Share::STACK))?;
            let bounds = stack.bounds();
            let native_limit = bounds.end.saturating_sub(config.max_wasm_stack).max(bounds.start + NATIVE_STACK_RESERVE);
            let inner = Saved {
                native_limit,
                value_sp: base,
                value_limit: limit,
                overflow,
                base,
                links: Links::NONE,
                outer_frames: ALL_FRAMES,
                invocations: ASYNC_ONLY | 1,
                fiber: ptr::null_mut(),
            };
            let fiber = Fiber { outer, running: false, cancelled: false, suspender: ptr::null(), resumable: None };
            let live = Live { store, fiber, inner, coroutine: None, bounds, waiting: None, begun: false };
            let live = Box::new(live);
            let live = Box::into_raw(live);
            let fiber = &raw mut (*live).fiber;
            (*live).inner.fiber = fiber;
            let body = move |suspender: &Suspender<Option<Waiting>>| {
                (*fiber).suspender = suspender;
                catch_unwind(AssertUnwindSafe(|| body(store)))
            };
            (*live).coroutine = Some(Coroutine::new(stack, body));
            Ok(Owned(live))
        }
    }

    /// Runs the fiber until it has ended, or a future for which it waits is pending.
    ///
    /// # Safety
    /// As for [`Run::new`]; the thread is prepared.
    unsafe fn run(this: *mut Live<R>, cx: &mut Context<'_>) -> Poll<Outcome<R>> {
        // SAFETY: the caller's promise. The future that the fiber waits for is in a frame of it.
        unsafe {
            Live::enter(this);
            loop {
                if let Some(waiting) = (*this).waiting {
                    if (*waiting).poll(cx).is_pending() {
                        Live::suspend(this);
                        return Poll::Pending;
                    }
                    (*this).waiting = None;
                }
                if let Some(result) = Live::resume(this) {
                    Live::leave(this);
                    return Poll::Ready(result);
                }
            }
        }
    }

    /// Ends the guest, which has begun; does nothing in a forked child of the engine's process. Returns the panic of a destructor.
    ///
    /// # Safety
    /// As for [`Run::new`].
    pub unsafe fn cancel(this: *mut Live<R>) -> Outcome<()> {
        let mut panic = Ok(());
        // SAFETY: the caller's promise.
        unsafe {
            if (*(*this).store).engine.record().is_inherited() {
                return panic;
            }
            (*this).fiber.cancelled = true;
            Live::enter(this);
            loop {
                if let Some(waiting) = (*this).waiting.take() {
                    panic = panic.and((*waiting).cancel());
                }
                if let Some(result) = Live::resume(this) {
                    let dropped = result.and_then(|result| catch_unwind(AssertUnwindSafe(|| drop(result))));
                    Live::leave(this);
                    return panic.and(dropped);
                }
            }
        }
    }

    /// Gives the store the fiber's state, for a poll.
    ///
    /// # Safety
    /// As for [`Run::new`].
    pub unsafe fn enter(this: *mut Live<R>) {
        // SAFETY: the caller's promise.
        unsafe {
            let store = (*this).store;
            (*this).fiber.outer = Saved::of(store);
            if (*this).begun {
                native::resume(&(*store).quiescence, Live::id(this));
            } else if (*store).is_at_rest() {
                native::enter(&(*store).quiescence);
            }
            (*this).begun = true;
            (*this).inner.restore(store);
        }
    }

    /// Resumes the fiber. Returns the result of the body if it has ended.
    ///
    /// # Safety
    /// Between [`Live::enter`] and the end of the poll.
    pub unsafe fn resume(this: *mut Live<R>) -> Option<Outcome<R>> {
        // SAFETY: the caller's promise. The reference is to the coroutine alone, which its own code does not use.
        unsafe {
            let coroutine = (*this).coroutine.as_mut().expect("a fiber that has not ended has a coroutine");
            (*this).fiber.running = true;
            let outside = exchange_bounds(Some(((*this).bounds.start, (*this).bounds.end)));
            let resumed = coroutine.resume();
            exchange_bounds(outside);
            (*this).fiber.running = false;
            match resumed {
                Resumed::Suspended(waiting) => {
                    (*this).waiting = waiting;
                    None
                }
                Resumed::Returned(result) => Some(result),
            }
        }
    }

    /// Ends a poll after which the fiber is suspended.
    ///
    /// # Safety
    /// As for [`Live::resume`].
    pub unsafe fn suspend(this: *mut Live<R>) {
        // SAFETY: the caller's promise.
        unsafe {
            let store = (*this).store;
            (*this).inner = Saved::of(store);
            Live::restore_outer(this);
            let Links { boundary, exit_fp, .. } = (*this).inner.links;
            native::suspend(&(*store).quiescence, Live::id(this), (boundary, exit_fp), (*store).is_at_rest());
        }
    }

    /// Ends the poll in which the fiber has ended.
    ///
    /// # Safety
    /// As for [`Live::resume`].
    pub unsafe fn leave(this: *mut Live<R>) {
        // SAFETY: the caller's promise.
        unsafe {
            let store = (*this).store;
            Live::restore_outer(this);
            if (*store).is_at_rest() {
                native::leave(&(*store).quiescence);
            }
            if let Some(coroutine) = (*this).coroutine.take() {
                let EngineRecord { fiber_stacks, quota, .. } = (*store).engine.record();
                fiber_stacks.put(coroutine.into_stack());
                quota.subtract(Share::STACK);
            }
        }
    }

    /// Gives the store the state that it had before the poll.
    ///
    /// # Safety
    /// As for [`Live::resume`].
    unsafe fn restore_outer(this: *mut Live<R>) {
        // SAFETY: the caller's promise.
        unsafe {
            (*this).fiber.outer.restore((*this).store);
            if (*(*this).store).needs_async {
                // That may be new.
                (*(*this).store).require_async();
            }
        }
    }

    /// Identifies the fiber among those of its store.
    fn id(this: *mut Live<R>) -> usize {
        // SAFETY: no memory is read.
        unsafe { (&raw const (*this).fiber).addr() }
    }
}
