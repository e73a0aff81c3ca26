//! Limits on the resources of a store.

use crate::records::error::{Error, Result};
use crate::records::fiber::Fiber;
#[cfg(feature = "async")]
use crate::records::fiber::{Interrupted, Payload, wait_for};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
#[cfg(feature = "async")]
use std::pin::Pin;
#[cfg(feature = "async")]
use std::task::{Context, Poll, Waker};

/// Limits the memories, tables and instances of a store; see [`Store::limiter`](crate::Store::limiter).
/// [`StoreLimits`](crate::StoreLimits) serves most needs.
///
/// ```
/// use weir::{Engine, Memory, MemoryType, ResourceLimiter, Result, Store};
///
/// /// All memories together.
/// struct Budget(usize);
///
/// impl ResourceLimiter for Budget {
///     fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> Result<bool> {
///         let Some(left) = self.0.checked_sub(desired - current) else { return Ok(false) };
///         self.0 = left;
///         Ok(true)
///     }
///
///     fn table_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> Result<bool> {
///         Ok(desired <= 1000)
///     }
/// }
///
/// let mut store = Store::new(&Engine::default(), Budget(3 << 16));
/// store.limiter(|budget| budget);
/// let first = Memory::new(&mut store, MemoryType::new(1, None))?;
/// let second = Memory::new(&mut store, MemoryType::new(1, None))?;
/// assert!(first.grow(&mut store, 2).is_err());
/// assert_eq!(second.grow(&mut store, 1)?, 1);
/// # Ok::<(), weir::Error>(())
/// ```
pub trait ResourceLimiter: Send {
    /// Called before a memory is made (`current` is then 0) or grows. Sizes are in bytes. On `Ok(false)`, `memory.grow`
    /// returns -1.
    ///
    /// # Errors
    /// The error of making the memory; at `memory.grow` it ends the guest's execution. A panic is treated as an error.
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool>;

    /// Called before a table is made (`current` is then 0) or grows. Sizes are in elements. On `Ok(false)`,
    /// `table.grow` returns -1.
    ///
    /// # Errors
    /// As for memories.
    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool>;

    /// Called when a memory cannot grow for another reason: its maximum, or a lack of memory.
    ///
    /// # Errors
    /// Ends the guest's execution. By default `memory.grow` returns -1.
    fn memory_grow_failed(&mut self, _error: Error) -> Result<()> {
        Ok(())
    }

    /// Called when a table cannot grow for another reason: its maximum, or a lack of memory.
    ///
    /// # Errors
    /// As for memories.
    fn table_grow_failed(&mut self, _error: Error) -> Result<()> {
        Ok(())
    }

    /// Returns the maximum number of instances of the store.
    fn instances(&self) -> usize {
        DEFAULT_INSTANCE_LIMIT
    }

    /// Returns the maximum number of tables of the store.
    fn tables(&self) -> usize {
        DEFAULT_TABLE_LIMIT
    }

    /// Returns the maximum number of memories of the store.
    fn memories(&self) -> usize {
        DEFAULT_MEMORY_LIMIT
    }
}

/// The maximum number of instances of a store, if a limiter says nothing else.
pub const DEFAULT_INSTANCE_LIMIT: usize = 10_000;
/// The maximum number of tables of a store, if a limiter says nothing else.
pub const DEFAULT_TABLE_LIMIT: usize = 10_000;
/// The maximum number of memories of a store, if a limiter says nothing else.
pub const DEFAULT_MEMORY_LIMIT: usize = 10_000;

/// Limits the memories, tables and instances of a store as [`ResourceLimiter`] does, with answers that the guest waits for; see
/// [`Store::limiter_async`](crate::Store::limiter_async).
///
/// The two asynchronous methods are written as the attribute `async_trait` of the crate of that name writes them, so an
/// implementation may have that attribute and `async fn`.
///
/// ```
/// use std::pin::Pin;
/// use weir::{Engine, ResourceLimiterAsync, Result, Store};
///
/// /// All memories together.
/// struct Budget(usize);
///
/// impl ResourceLimiterAsync for Budget {
///     fn memory_growing<'l, 'f>(
///         &'l mut self,
///         current: usize,
///         desired: usize,
///         _maximum: Option<usize>,
///     ) -> Pin<Box<dyn Future<Output = Result<bool>> + Send + 'f>>
///     where
///         'l: 'f,
///         Self: 'f,
///     {
///         Box::pin(async move {
///             let Some(left) = self.0.checked_sub(desired - current) else { return Ok(false) };
///             self.0 = left;
///             Ok(true)
///         })
///     }
///
///     fn table_growing<'l, 'f>(
///         &'l mut self,
///         _current: usize,
///         desired: usize,
///         _maximum: Option<usize>,
///     ) -> Pin<Box<dyn Future<Output = Result<bool>> + Send + 'f>>
///     where
///         'l: 'f,
///         Self: 'f,
///     {
///         Box::pin(async move { Ok(desired <= 1000) })
///     }
/// }
///
/// let mut store = Store::new(&Engine::default(), Budget(3 << 16));
/// store.limiter_async(|budget| budget);
/// ```
#[cfg(feature = "async")]
pub trait ResourceLimiterAsync: Send {
    /// See [`ResourceLimiter::memory_growing`].
    ///
    /// # Errors
    /// As there.
    fn memory_growing<'life0, 'async_trait>(
        &'life0 mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Answer<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait;

    /// See [`ResourceLimiter::table_growing`].
    ///
    /// # Errors
    /// As there.
    fn table_growing<'life0, 'async_trait>(
        &'life0 mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Answer<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait;

    /// See [`ResourceLimiter::memory_grow_failed`].
    ///
    /// # Errors
    /// As there.
    fn memory_grow_failed(&mut self, _error: Error) -> Result<()> {
        Ok(())
    }

    /// See [`ResourceLimiter::table_grow_failed`].
    ///
    /// # Errors
    /// As there.
    fn table_grow_failed(&mut self, _error: Error) -> Result<()> {
        Ok(())
    }

    /// Returns the maximum number of instances of the store.
    fn instances(&self) -> usize {
        DEFAULT_INSTANCE_LIMIT
    }

    /// Returns the maximum number of tables of the store.
    fn tables(&self) -> usize {
        DEFAULT_TABLE_LIMIT
    }

    /// Returns the maximum number of memories of the store.
    fn memories(&self) -> usize {
        DEFAULT_MEMORY_LIMIT
    }
}

/// The future answer of a limiter.
#[cfg(feature = "async")]
type Answer<'f> = Pin<Box<dyn Future<Output = Result<bool>> + Send + 'f>>;

/// A limiter in the embedder's data. It is found anew for each call.
pub(crate) enum Limiter {
    Sync(Box<Find>),
    #[cfg(feature = "async")]
    Async(Box<FindAsync>),
}

/// Calls a closure with the limiter in the embedder's data.
type Find = dyn FnMut(*mut (), &mut dyn FnMut(&mut dyn ResourceLimiter)) + Send + Sync;

/// Returns the limiter in the embedder's data.
#[cfg(feature = "async")]
type FindAsync = dyn FnMut(*mut ()) -> FoundAsync + Send + Sync;

#[cfg(feature = "async")]
type FoundAsync = *mut dyn ResourceLimiterAsync;

impl Limiter {
    /// Creates a limiter that `find` finds.
    ///
    /// # Safety
    /// The pointers passed to the methods point to a live `T` to which no reference is held.
    pub unsafe fn new<T>(mut find: impl (FnMut(&mut T) -> &mut dyn ResourceLimiter) + Send + Sync + 'static) -> Limiter {
        Limiter::Sync(Box::new(move |data, call| {
            // SAFETY: the promise to this function.
            call(find(unsafe { &mut *data.cast::<T>() }));
        }))
    }

    /// Creates a limiter that `find` finds and whose answers are waited for.
    ///
    /// # Safety
    /// As for [`Limiter::new`].
    #[cfg(feature = "async")]
    pub unsafe fn new_async<T: 'static>(
        mut find: impl (FnMut(&mut T) -> &mut dyn ResourceLimiterAsync) + Send + Sync + 'static,
    ) -> Limiter {
        // SAFETY: the promise to this function.
        Limiter::Async(Box::new(move |data| find(unsafe { &mut *data.cast::<T>() })))
    }

    /// Returns the maximum numbers of instances, memories and tables.
    pub fn counts(&mut self, data: *mut ()) -> Result<(usize, usize, usize)> {
        self.query(
            data,
            |limiter| Ok((limiter.instances(), limiter.memories(), limiter.tables())),
            #[cfg(feature = "async")]
            |limiter| Ok((limiter.instances(), limiter.memories(), limiter.tables())),
        )
    }

    /// Calls one of the two functions with the limiter. A panic is caught, because compiled code may be below on the stack.
    fn query<R>(
        &mut self,
        data: *mut (),
        mut query: impl FnMut(&mut dyn ResourceLimiter) -> Result<R>,
        #[cfg(feature = "async")] query_async: impl FnOnce(&mut dyn ResourceLimiterAsync) -> Result<R>,
    ) -> Result<R> {
        let mut result = None;
        let called = catch_unwind(AssertUnwindSafe(|| match self {
            Limiter::Sync(find) => find(data, &mut |limiter| result = Some(query(limiter))),
            #[cfg(feature = "async")]
            // SAFETY: the promise to `Limiter::new_async`.
            Limiter::Async(find) => result = Some(query_async(unsafe { &mut *find(data) })),
        }));
        match (called, result) {
            (Ok(()), Some(result)) => result,
            _ => Err(panicked()),
        }
    }
}

fn panicked() -> Error {
    Error::msg("the resource limiter panicked")
}

/// A limiter that can be asked, with the embedder's data and the fiber that waits for an asynchronous answer; null if nothing can wait.
pub(crate) struct Asked<'l> {
    pub limiter: &'l mut Limiter,
    pub data: *mut (),
    #[cfg_attr(not(feature = "async"), allow(dead_code, reason = "there are no asynchronous calls"))]
    pub fiber: *mut Fiber,
}

impl Asked<'_> {
    /// Whether the limiter answers asynchronously and nothing here can wait for it: then asking is an error.
    pub fn must_wait(&self) -> bool {
        match self.limiter {
            Limiter::Sync(_) => false,
            #[cfg(feature = "async")]
            Limiter::Async(_) => self.fiber.is_null(),
        }
    }

    /// [`ResourceLimiter::memory_growing`]
    pub fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        #[cfg(feature = "async")]
        if let Limiter::Async(find) = self.limiter {
            // SAFETY: the promise to `Limiter::new_async`.
            let mut ask = |data| unsafe { (*find(data)).memory_growing(current, desired, maximum) };
            return answer(self.fiber, catch_unwind(AssertUnwindSafe(|| ask(self.data))));
        }
        self.query(
            |limiter| limiter.memory_growing(current, desired, maximum),
            #[cfg(feature = "async")]
            |_| Ok(false),
        )
    }

    /// [`ResourceLimiter::memory_growing`], with an answer that is not waited for.
    pub fn memory_growing_at_once(&mut self, current: usize, desired: usize) -> Result<bool> {
        #[cfg(feature = "async")]
        if let Limiter::Async(find) = self.limiter {
            // SAFETY: as for `memory_growing`.
            let mut ask = |data| unsafe { (*find(data)).memory_growing(current, desired, None) };
            let polled = catch_unwind(AssertUnwindSafe(|| ask(self.data).as_mut().poll(&mut Context::from_waker(Waker::noop()))));
            return match polled {
                Ok(Poll::Ready(answer)) => answer,
                Ok(Poll::Pending) => Err(Error::msg("an asynchronous limiter must answer at once when references are made")),
                Err(_) => Err(panicked()),
            };
        }
        self.memory_growing(current, desired, None)
    }

    /// [`ResourceLimiter::table_growing`]
    pub fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        #[cfg(feature = "async")]
        if let Limiter::Async(find) = self.limiter {
            // SAFETY: as for memories.
            let mut ask = |data| unsafe { (*find(data)).table_growing(current, desired, maximum) };
            return answer(self.fiber, catch_unwind(AssertUnwindSafe(|| ask(self.data))));
        }
        self.query(
            |limiter| limiter.table_growing(current, desired, maximum),
            #[cfg(feature = "async")]
            |_| Ok(false),
        )
    }

    /// [`ResourceLimiter::memory_grow_failed`]
    pub fn memory_grow_failed(&mut self, error: Error) -> Result<()> {
        let error = Cell::new(Some(error));
        self.query(
            |limiter| error.take().map_or(Ok(()), |error| limiter.memory_grow_failed(error)),
            #[cfg(feature = "async")]
            |limiter| error.take().map_or(Ok(()), |error| limiter.memory_grow_failed(error)),
        )
    }

    /// [`ResourceLimiter::table_grow_failed`]
    pub fn table_grow_failed(&mut self, error: Error) -> Result<()> {
        let error = Cell::new(Some(error));
        self.query(
            |limiter| error.take().map_or(Ok(()), |error| limiter.table_grow_failed(error)),
            #[cfg(feature = "async")]
            |limiter| error.take().map_or(Ok(()), |error| limiter.table_grow_failed(error)),
        )
    }

    fn query<R>(
        &mut self,
        query: impl FnMut(&mut dyn ResourceLimiter) -> Result<R>,
        #[cfg(feature = "async")] query_async: impl FnOnce(&mut dyn ResourceLimiterAsync) -> Result<R>,
    ) -> Result<R> {
        self.limiter.query(
            self.data,
            query,
            #[cfg(feature = "async")]
            query_async,
        )
    }
}

/// Waits for the answer of a limiter on a fiber.
#[cfg(feature = "async")]
fn answer(fiber: *mut Fiber, answer: Result<Answer<'_>, Payload>) -> Result<bool> {
    let Ok(answer) = answer else { return Err(panicked()) };
    if fiber.is_null() {
        return Err(Error::msg("when using an async resource limiter `*_async` functions must be used instead"));
    }
    // SAFETY: an `Asked` has the fiber whose guest grows something, or on which this library makes something; or none.
    match unsafe { wait_for(fiber, answer) } {
        Ok(answer) => answer,
        Err(Interrupted::Error(error)) => Err(error),
        Err(Interrupted::Panic(_)) => Err(panicked()),
    }
}
