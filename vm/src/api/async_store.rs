//! What a store has for asynchronous calls: limiters that guests wait for, yields at deadlines and after fuel, memories and tables.

use crate::api::caller::Caller;
use crate::api::rooted::GcHeapOutOfMemory;
use crate::api::store::{AsContextMut, Store, StoreContextMut, fuel_is_on};
use crate::api::value::Ref;
use crate::exec::fiber::Run;
use crate::records::limiter::{Limiter, ResourceLimiterAsync};
use crate::records::store::{AtFuel, StoreRecord, UpdateDeadline};
use crate::{Error, ExnRef, ExnRefPre, ExternRef, Memory, MemoryType, Result, Rooted, Table, TableType, Tag, Val};
use std::any::Any;

impl<T: 'static> Store<T> {
    /// Sets the [`ResourceLimiterAsync`] (found in the embedder's data) that is consulted before a memory or table is created or grows.
    /// The guest is suspended until it answers. The store then needs the methods whose names end in `_async`.
    ///
    /// When the guest or the embedder makes references, the limiter is asked for their memory, too. It must answer that at once.
    pub fn limiter_async(&mut self, limiter: impl (FnMut(&mut T) -> &mut dyn ResourceLimiterAsync) + Send + Sync + 'static) {
        let record = self.as_context_mut().record();
        // SAFETY: the store is borrowed. The callers of the limiter's methods pass the store's data and hold no reference to it.
        unsafe {
            (*record).limiter = Some(Limiter::new_async(limiter));
            (*record).require_async();
        }
    }

    /// See [`Store::gc`].
    ///
    /// # Errors
    /// None at present.
    ///
    /// # Panics
    /// As [`Store::gc`].
    pub async fn gc_async(&mut self, why: Option<&GcHeapOutOfMemory<()>>) -> Result<()>
    where
        T: Send,
    {
        self.gc(why)
    }

    /// Suspends running guests each time they reach the deadline, which is then set to `delta` ticks from that time: see
    /// [`UpdateDeadline::Yield`]. The store then needs the methods whose names end in `_async`.
    pub fn epoch_deadline_async_yield_and_update(&mut self, delta: u64) {
        self.as_context_mut().epoch_deadline_async_yield_and_update(delta);
    }

    /// Suspends running guests each time they have consumed this much fuel, and wakes their tasks at once. `None`: never, which is the
    /// default. The fuel that a guest consumes is the same. A guest is suspended where a function or a loop begins, and so may
    /// consume more before it is. Such a store needs the methods whose names end in `_async`.
    ///
    /// # Errors
    /// The engine does not consume fuel; [`Config::async_support`](crate::Config::async_support) is off; or the interval is 0.
    pub fn fuel_async_yield_interval(&mut self, interval: Option<u64>) -> Result<()> {
        self.as_context_mut().fuel_async_yield_interval(interval)
    }
}

impl<T: 'static> StoreContextMut<'_, T> {
    /// See [`Store::gc`].
    ///
    /// # Errors
    /// None at present.
    ///
    /// # Panics
    /// As [`Store::gc`].
    pub async fn gc_async(&mut self, why: Option<&GcHeapOutOfMemory<()>>) -> Result<()>
    where
        T: Send + 'static,
    {
        self.gc(why)
    }

    /// See [`Store::epoch_deadline_async_yield_and_update`].
    pub fn epoch_deadline_async_yield_and_update(&mut self, delta: u64) {
        let record = self.record();
        // SAFETY: the store is borrowed.
        unsafe {
            (*record).on_deadline = Some(Box::new(move |_| Ok(UpdateDeadline::Yield(delta))));
            (*record).require_async();
        }
    }

    /// See [`Store::fuel_async_yield_interval`].
    ///
    /// # Errors
    /// As there.
    pub fn fuel_async_yield_interval(&mut self, interval: Option<u64>) -> Result<()> {
        fuel_is_on(self.engine())?;
        if interval == Some(0) {
            return Err(Error::msg("fuel_async_yield_interval must not be 0"));
        }
        if interval.is_some() && !self.engine().config().polls() {
            return Err(Error::msg("no guest yields in an engine with `Config::async_support(false)`"));
        }
        let record = self.record();
        // SAFETY: the store is borrowed.
        unsafe {
            (*record).set_fuel_marks(AtFuel::Yield, interval);
            if interval.is_some() {
                (*record).require_async();
            }
        }
        Ok(())
    }
}

impl<T: 'static> Caller<'_, T> {
    /// See [`Store::gc`].
    ///
    /// # Errors
    /// None at present.
    ///
    /// # Panics
    /// As [`Store::gc`].
    pub async fn gc_async(&mut self, why: Option<&GcHeapOutOfMemory<()>>) -> Result<()>
    where
        T: Send + 'static,
    {
        self.gc(why)
    }

    /// See [`Store::fuel_async_yield_interval`].
    ///
    /// # Errors
    /// As there.
    pub fn fuel_async_yield_interval(&mut self, interval: Option<u64>) -> Result<()> {
        self.as_context_mut().fuel_async_yield_interval(interval)
    }
}

impl ExternRef {
    /// Adds a value to a store as [`ExternRef::new`] does. A limiter must answer at once.
    ///
    /// # Errors
    /// # Panics
    /// As [`ExternRef::new`].
    pub async fn new_async<T: 'static + Any + Send + Sync>(store: impl AsContextMut, value: T) -> Result<Rooted<ExternRef>> {
        ExternRef::new(store, value)
    }
}

impl ExnRef {
    /// Makes an exception as [`ExnRef::new`] does. A limiter must answer at once.
    ///
    /// # Errors
    /// # Panics
    /// As [`ExnRef::new`].
    pub async fn new_async(store: impl AsContextMut, pre: &ExnRefPre, tag: &Tag, fields: &[Val]) -> Result<Rooted<ExnRef>> {
        ExnRef::new(store, pre, tag, fields)
    }
}

impl Memory {
    /// Creates a memory as [`Memory::new`] does, and waits for an asynchronous limiter.
    ///
    /// # Errors
    /// As [`Memory::new`].
    pub async fn new_async(mut store: impl AsContextMut, ty: MemoryType) -> Result<Memory> {
        let store = store.as_context_mut();
        // SAFETY: this future borrows the store, and making a memory ends if nothing can be waited for.
        let run = unsafe {
            Run::new(store.record(), move |record: *mut StoreRecord| {
                let memory = StoreRecord::add_memory(record, ty, usize::MAX, (*record).fiber)?;
                Ok(Memory::from_raw((*record).id, memory))
            })
        };
        run.await
    }

    /// Grows the memory as [`Memory::grow`] does, and waits for an asynchronous limiter.
    ///
    /// # Errors
    /// As [`Memory::grow`].
    pub async fn grow_async(&self, mut store: impl AsContextMut, delta: u64) -> Result<u64> {
        let store = store.as_context_mut();
        let memory = *self;
        // SAFETY: this future borrows the store, and growing ends if nothing can be waited for.
        let run =
            unsafe { Run::new(store.record(), move |record: *mut StoreRecord| memory.grow_on(record, delta, (*record).fiber)) };
        run.await
    }
}

impl Table {
    /// Creates a table as [`Table::new`] does, and waits for an asynchronous limiter.
    ///
    /// # Errors
    /// As [`Table::new`].
    pub async fn new_async(mut store: impl AsContextMut, ty: TableType, init: Ref) -> Result<Table> {
        let store = store.as_context_mut();
        // SAFETY: this future borrows the store, and making a table ends if nothing can be waited for.
        let run = unsafe {
            Run::new(store.record(), move |record: *mut StoreRecord| {
                let init = init.to_slot(record, ty.element)?;
                let table = StoreRecord::add_table(record, ty, init, u64::MAX, (*record).fiber)?;
                Ok(Table::from_raw((*record).id, table))
            })
        };
        run.await
    }

    /// Grows the table as [`Table::grow`] does, and waits for an asynchronous limiter.
    ///
    /// # Errors
    /// As [`Table::grow`].
    pub async fn grow_async(&self, mut store: impl AsContextMut, delta: u64, init: Ref) -> Result<u64> {
        let store = store.as_context_mut();
        let table = *self;
        // SAFETY: this future borrows the store, and growing ends if nothing can be waited for.
        let run = unsafe {
            Run::new(store.record(), move |record: *mut StoreRecord| table.grow_on(record, delta, init, (*record).fiber))
        };
        run.await
    }
}
