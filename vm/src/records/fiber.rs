//! Guests on stacks of their own: the record of such a stack, a *fiber*, and the waiting of its code for a future.
//!
//! `exec::fiber` makes fibers and runs them. A store has one stack record ([`StackCtx`]) and one value stack at all times. What of them
//! belongs to a native stack is [`Saved`], and is exchanged when a fiber is resumed and suspended. Fibers of a store nest: one that
//! begins while another waits for a host function's future is begun by that future, and ends, or is dropped, before the other continues.
//!
//! Code on a fiber suspends it only at three places: in the call of an asynchronous host function, in a question to an asynchronous
//! limiter, and at a deadline. The innermost frame of the guest is then directly around it. No Rust frame of the embedder is on a fiber
//! that is suspended: an embedder's future is polled on the stack of the code that polls the fiber. So nothing of the embedder that
//! is bound to a thread moves to another one.

#[cfg(feature = "async")]
use crate::records::error::Error;
#[cfg(feature = "async")]
use crate::sys::coroutine::Suspender;
#[cfg(feature = "async")]
use std::any::Any;
#[cfg(feature = "async")]
use std::panic::{AssertUnwindSafe, catch_unwind};
#[cfg(feature = "async")]
use std::pin::Pin;
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
    pub suspender: *const Suspender<Waiting>,
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
        let awaited = &raw mut awaited;
        let waiting: *mut (dyn Wait + '_) = awaited;
        // The lifetime is that of this call.
        let waiting: Waiting = std::mem::transmute::<*mut (dyn Wait + '_), Waiting>(waiting);
        (*(*fiber).suspender).suspend(waiting);
        match (*awaited).output.take() {
            Some(Ok(output)) => Ok(output),
            Some(Err(payload)) => Err(Interrupted::Panic(payload)),
            None => Err(Interrupted::Error(cancelled())),
        }
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
    Error::msg("the store has asynchronous functions or settings: it needs the methods whose names end in `_async`")
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
