//! Guests on stacks of their own: the record of such a stack, a *fiber*, and the waiting of its code for a future.
//!
//! `exec::fiber` makes fibers and runs them. A store has one stack record ([`StackCtx`]) at all times. What in it belongs to a native stack is
//! [`Saved`], and is exchanged when a fiber is resumed and suspended. Each fiber has a value stack of its own, above its native one. Fibers of
//! asynchronous calls of a store nest: one that begins while another waits for a host function's future is begun by that future, and ends,
//! or is dropped, before the other continues.
//!
//! Code on a fiber suspends it only at three places: in the call of an asynchronous host function, in a question to an asynchronous
//! limiter, and at a deadline. The innermost frame of the guest is then directly around it. No Rust frame of the embedder is on a fiber
//! that is suspended: an embedder's future is polled on the stack of the code that polls the fiber. So nothing of the embedder that
//! is bound to a thread moves to another one.
//!
//! The fiber of a resumable call waits for no future. It is [stopped](stop) after a host function has returned an error, and at a poll
//! after fuel has run out. While it is stopped the store is used by others, in any order, and it is found by the
//! collector through [`StoreRecord::stopped`](crate::records::store::StoreRecord::stopped).

#[cfg(feature = "async")]
use crate::records::error::Error;
#[cfg(feature = "async")]
use crate::records::host::HostRecord;
#[cfg(feature = "async")]
use crate::sys::coroutine::Suspender;
#[cfg(feature = "async")]
use std::any::Any;
#[cfg(feature = "async")]
use std::panic::{AssertUnwindSafe, catch_unwind};
#[cfg(feature = "async")]
use std::pin::Pin;
#[cfg(feature = "async")]
use std::sync::Arc;
#[cfg(feature = "async")]
use std::sync::atomic::AtomicBool;
#[cfg(feature = "async")]
use std::task::{Context, Poll};
use weir_contract::StackCtx;

/// The parts of a store's state that belong to the native stack on which its guest runs.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "async"), allow(dead_code, reason = "without asynchronous calls there is no fiber"))]
pub(crate) struct Saved {
    /// [`StackCtx::native_limit`]
    pub native_limit: usize,
    /// [`StackCtx::value_sp`]
    pub value_sp: *mut u64,
    /// [`StackCtx::value_limit`]
    pub value_limit: *mut u64,
    /// [`StackCtx::overflow`]
    pub overflow: *mut u64,
    /// [`StackRecord::base`](crate::records::stack::StackRecord::base)
    pub base: *mut u64,
    /// The links of the stack.
    pub links: Links,
    /// [`StoreRecord::outer_frames`](crate::records::store::StoreRecord::outer_frames)
    pub outer_frames: usize,
    /// [`StoreRecord::invocations`](crate::records::store::StoreRecord::invocations)
    pub invocations: i32,
    /// [`StoreRecord::fiber`](crate::records::store::StoreRecord::fiber)
    pub fiber: *mut Fiber,
}

/// The innermost links of a native stack, from which it is walked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    /// [`StackCtx::activation`]
    pub activation: *const (),
    /// [`StackCtx::boundary`]
    pub boundary: usize,
    /// [`StackCtx::exit_fp`]
    pub exit_fp: usize,
}

impl Links {
    /// Those of a stack without frames of the guest.
    #[cfg(feature = "async")]
    pub const NONE: Links = Links { activation: std::ptr::null(), boundary: 0, exit_fp: 0 };

    /// Those of the stack that runs.
    pub fn of(stack: &StackCtx) -> Links {
        let &StackCtx { activation, boundary, exit_fp, .. } = stack;
        Links { activation, boundary, exit_fp }
    }
}

/// A native stack beside the thread's, on which a guest of a store runs.
#[cfg_attr(not(feature = "async"), allow(dead_code, reason = "without asynchronous calls there is no fiber"))]
pub(crate) struct Fiber {
    /// The state of the store around the fiber, while it runs or its host functions do.
    pub outer: Saved,
    /// Whether the current code is on it. Otherwise it waits for a future.
    pub running: bool,
    /// Whether its future has been dropped: nothing on it may wait, or enter the guest, any more.
    pub cancelled: bool,
    #[cfg(feature = "async")]
    pub suspender: *const Suspender<Option<Waiting>>,
    /// What a resumable call has besides; `None` for an asynchronous one.
    #[cfg(feature = "async")]
    pub resumable: Option<Resumable>,
}

/// What the fiber of a resumable call has besides others.
#[cfg(feature = "async")]
pub(crate) struct Resumable {
    /// The number of invocations on the stacks while the guest runs, with no other inside. Only then it can be stopped.
    pub invocations: i32,
    /// The number of fibers of resumable calls around it.
    pub depth: u32,
    /// Why it has been stopped.
    pub reason: Option<Stop>,
    /// Reads the results of the call from slots: given at each resumption.
    pub read: Transfer,
}

/// Writes arguments to slots, or reads results from them.
#[cfg(feature = "async")]
pub(crate) type Transfer = *mut dyn FnMut(*mut u64);

/// Why a resumable call has been stopped.
#[cfg(feature = "async")]
pub(crate) enum Stop {
    /// A host function has returned an error. Its results are expected at `slots`.
    Host { error: Error, host: *const HostRecord, slots: *mut u64 },
    /// Fuel has run out, and this much more has been consumed.
    Fuel { overdrawn: u64 },
}

/// The fiber of a resumable call that has been stopped.
#[cfg(feature = "async")]
pub(crate) struct Stopped {
    /// What `exec` has of it.
    pub guest: *mut (),
    /// From which its stack is walked.
    pub links: Links,
    /// Whether the embedder has dropped it.
    pub dropped: Arc<AtomicBool>,
    /// Ends the guest, which is no longer in the store's list.
    pub end: unsafe fn(*mut ()),
}

/// The future for which a fiber waits. It is in a frame of the fiber, and is used until it has completed or was dropped.
#[cfg(feature = "async")]
pub(crate) type Waiting = *mut dyn Wait;

/// A future and the place for its output.
#[cfg(feature = "async")]
pub(crate) trait Wait {
    /// Polls the future, unless it has completed. A panic is its output.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// Drops the future. Returns the panic of a destructor.
    fn cancel(&mut self) -> Result<(), Payload>;
}

/// The payload of a panic.
#[cfg(feature = "async")]
pub(crate) type Payload = Box<dyn Any + Send>;

/// Why a future for which a fiber waited has no output.
#[cfg(feature = "async")]
pub(crate) enum Interrupted {
    /// It cannot be waited for, or was dropped.
    Error(Error),
    /// It has panicked.
    Panic(Payload),
}

#[cfg(feature = "async")]
struct Awaited<'f, R> {
    future: Option<Pin<Box<dyn Future<Output = R> + Send + 'f>>>,
    output: Option<Result<R, Payload>>,
}

#[cfg(feature = "async")]
impl<R> Wait for Awaited<'_, R> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(future) = &mut self.future else { return Poll::Ready(()) };
        let output = match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(payload) => Err(payload),
        };
        self.output = Some(self.cancel().and(output));
        Poll::Ready(())
    }

    fn cancel(&mut self) -> Result<(), Payload> {
        let future = self.future.take();
        catch_unwind(AssertUnwindSafe(|| drop(future)))
    }
}

/// Suspends a fiber until a future has completed, and returns its output.
///
/// # Errors
/// `fiber` is null: the current code cannot wait; the fiber's future is dropped; the future panics.
///
/// # Safety
/// `fiber` is null, or the current code is on it and only the guest and this library have frames on it. The caller uses no data of the
/// thread that it had before the call.
#[cfg(feature = "async")]
pub(crate) unsafe fn wait_for<'f, R>(
    fiber: *mut Fiber,
    future: Pin<Box<dyn Future<Output = R> + Send + 'f>>,
) -> Result<R, Interrupted> {
    let mut awaited = Awaited { future: Some(future), output: None };
    if fiber.is_null() {
        return Err(Interrupted::Error(needs_async()));
    }
    // SAFETY: the caller's promise. The place of the future is used by pointer until the fiber is resumed, and not after it.
    unsafe {
        debug_assert!((*fiber).running, "only code that runs on a fiber suspends it");
        if (*fiber).cancelled {
            return Err(Interrupted::Error(cancelled()));
        }
        if (*fiber).resumable.is_some() {
            return Err(Interrupted::Error(needs_async()));
        }
        let awaited = &raw mut awaited;
        let waiting: *mut (dyn Wait + '_) = awaited;
        // The lifetime is that of this call.
        let waiting: Waiting = std::mem::transmute::<*mut (dyn Wait + '_), Waiting>(waiting);
        (*(*fiber).suspender).suspend(Some(waiting));
        match (*awaited).output.take() {
            Some(Ok(output)) => Ok(output),
            Some(Err(payload)) => Err(Interrupted::Panic(payload)),
            None => Err(Interrupted::Error(cancelled())),
        }
    }
}

/// Returns whether a guest can be stopped: it was called resumably, and no other call of the guest is inside that one.
///
/// # Safety
/// `fiber` is null, or that of a live store with this number of invocations.
#[cfg(feature = "async")]
pub(crate) unsafe fn can_stop(fiber: *mut Fiber, invocations: i32) -> bool {
    // SAFETY: the caller's promise.
    unsafe { fiber.as_ref() }.is_some_and(|fiber| {
        fiber.resumable.as_ref().is_some_and(|resumable| resumable.invocations == invocations) && !fiber.cancelled
    })
}

/// Stops a guest that [can be](can_stop), until the embedder resumes it.
///
/// # Errors
/// The embedder has dropped the call.
///
/// # Safety
/// As for [`wait_for`]; the fiber is not null.
#[cfg(feature = "async")]
pub(crate) unsafe fn stop(fiber: *mut Fiber, reason: Stop) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(resumable) = &mut (*fiber).resumable {
            resumable.reason = Some(reason);
        }
        (*(*fiber).suspender).suspend(None);
        if (*fiber).cancelled { Err(cancelled()) } else { Ok(()) }
    }
}

/// The future of a guest's call was dropped. The guest ends with this error, which nothing shows.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the future of the call was dropped")]
pub(crate) struct Cancelled;

/// Returns the error with which a guest ends when the future of its call is dropped. No guest catches it.
#[cfg(feature = "async")]
#[cold]
pub(crate) fn cancelled() -> Error {
    Error::new(Cancelled)
}

/// Returns the error of a synchronous call where an asynchronous one is needed.
#[cfg(feature = "async")]
#[cold]
pub(crate) fn needs_async() -> Error {
    Error::msg("store configuration requires that `*_async` functions are used instead")
}

/// Completes when it is polled for the second time. Wakes the task at the first.
#[cfg(feature = "async")]
#[derive(Default)]
pub(crate) struct YieldNow(bool);

#[cfg(feature = "async")]
impl Future for YieldNow {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
