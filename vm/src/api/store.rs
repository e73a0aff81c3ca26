//! The store: the embedder's data and the records of all instances.

#[cfg(feature = "async")]
use crate::exec::resumable::end_all;
use crate::records::attention::Attention;
use crate::records::catches::Catches;
use crate::records::exceptions::InFlight;
use crate::records::heap::Heap;
use crate::records::limiter::{Limiter, ResourceLimiter};
use crate::records::quiescence::Word;
use crate::records::root_maps::RootMaps;
use crate::records::roots::Roots;
use crate::records::stack::StackRecord;
use crate::records::store::{AtFuel, Owned, StoreRecord, UpdateDeadline};
use crate::records::stripes::Stripe;
use crate::records::walk::ALL_FRAMES;
use crate::{Engine, Error, Result};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use weir_contract::StoreCtx;

/// Holds instances, their memories, tables and globals, host functions, and the embedder's `T`. Nothing in it is freed
/// before the store is dropped.
///
/// ```
/// use weir::{Engine, Store};
///
/// let mut store = Store::new(&Engine::default(), vec![1, 2]);
/// store.data_mut().push(3);
/// assert_eq!(store.into_data(), [1, 2, 3]);
/// ```
pub struct Store<T: 'static> {
    record: NonNull<StoreRecord>,
    marker: PhantomData<T>,
}

// SAFETY: the store owns everything that its records point to, except what its engine and modules share, which is
// `Sync`. Host functions and host values are `Send`.
unsafe impl<T: Send> Send for Store<T> {}
// SAFETY: a shared borrow allows reads only.
unsafe impl<T: Sync> Sync for Store<T> {}

/// A shared borrow of a [`Store`].
pub struct StoreContext<'a, T: 'static> {
    record: NonNull<StoreRecord>,
    marker: PhantomData<&'a T>,
}

/// An exclusive borrow of a [`Store`]; host functions receive one.
pub struct StoreContextMut<'a, T: 'static> {
    record: NonNull<StoreRecord>,
    marker: PhantomData<&'a mut T>,
}

// SAFETY: a borrow of a store whose data can be shared gives what a reference to the store gives.
unsafe impl<T: Sync> Send for StoreContext<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for StoreContext<'_, T> {}
// SAFETY: as above, for an exclusive reference.
unsafe impl<T: Send> Send for StoreContextMut<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for StoreContextMut<'_, T> {}

/// Types that can borrow a store for reading: [`Store`], [`Caller`](crate::Caller), and references to them.
pub trait AsContext {
    /// The type of the embedder's data.
    type Data: 'static;

    /// Borrows the store.
    fn as_context(&self) -> StoreContext<'_, Self::Data>;
}

/// Types that can borrow a store exclusively.
pub trait AsContextMut: AsContext {
    /// Borrows the store exclusively.
    fn as_context_mut(&mut self) -> StoreContextMut<'_, Self::Data>;
}

impl<T: 'static> Store<T> {
    /// Creates an empty store.
    ///
    /// # Panics
    /// If there is no address space for the value stack, or the engine was made before this process was forked: see [`Store::try_new`].
    pub fn new(engine: &Engine, data: T) -> Store<T> {
        Store::try_new(engine, data).expect("a store needs address space for its value stack")
    }

    /// Creates an empty store.
    ///
    /// # Errors
    /// There is no address space for the value stack; or [`ForkedEngine`](crate::ForkedEngine).
    pub fn try_new(engine: &Engine, data: T) -> Result<Store<T>> {
        /// As many as the policy sets later.
        const FIRST_MISSES: i64 = 1 << 12;
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        engine.record().check_process()?;
        let stack = Box::new(StackRecord::new(engine.config().value_stack_size, &engine.record().stacks)?);
        // Engines without deadlines may poll for fuel.
        let deadline = if engine.config().epoch_interruption { 0 } else { u64::MAX };
        let record = Box::new(StoreRecord {
            ctx: StoreCtx {
                fuel: 0,
                epoch: &raw const engine.record().epoch,
                deadline,
                trap_pc: 0,
                trap_fp: 0,
                trap: 0,
                osr_ticks: 0,
                misses: if engine.config().stress.is_some() { 0 } else { FIRST_MISSES },
                operand: 0,
                wake_fuel: i64::MAX,
                wake_epoch: 0,
            },
            engine: engine.clone(),
            stack: Box::into_raw(stack),
            failure: None,
            in_flight: InFlight::NONE,
            landing: None,
            catches: Catches::default(),
            pending: ptr::null_mut(),
            outer_frames: ALL_FRAMES,
            invocations: 0,
            process: engine.record().process,
            attention: Attention::new(engine.config().gc_stress),
            quiescence: Word::new(&engine.record().quiescence),
            stripe: Stripe::new(&engine.record().stripes),
            data: Box::into_raw(Box::new(data)).cast(),
            drop_data: drop_data::<T>,
            limiter: None,
            call_hook: None,
            on_deadline: None,
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            heap: Heap::new(engine.config().gc_stress),
            roots: Roots::default(),
            root_maps: RootMaps::default(),
            owned: Owned::default(),
            fiber: ptr::null_mut(),
            deadline,
            fuel_marks: [None; 2],
            needs_async: false,
            credit: None,
            #[cfg(feature = "async")]
            stopped: Vec::new(),
        });
        Ok(Store { record: NonNull::from(Box::leak(record)), marker: PhantomData })
    }

    /// Returns the embedder's data.
    pub fn data(&self) -> &T {
        self.as_context().into_data()
    }

    /// Returns the embedder's data, mutably.
    pub fn data_mut(&mut self) -> &mut T {
        self.as_context_mut().into_data_mut()
    }

    /// Frees the store and returns the embedder's data.
    pub fn into_data(self) -> T {
        let record = self.record.as_ptr();
        // SAFETY: no other reference to the store exists; its data came from a `Box<T>`, and is not freed a second
        // time.
        let data = unsafe {
            (*record).drop_data = |_| ();
            Box::from_raw((*record).data.cast::<T>())
        };
        drop(self);
        *data
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Engine {
        // SAFETY: a record's engine never changes.
        unsafe { &(*self.record.as_ptr()).engine }
    }

    /// Returns the remaining fuel.
    ///
    /// # Errors
    /// The engine does not consume fuel.
    pub fn get_fuel(&self) -> Result<u64> {
        self.as_context().get_fuel()
    }

    /// Sets the remaining fuel.
    ///
    /// # Errors
    /// The engine does not consume fuel.
    pub fn set_fuel(&mut self, fuel: u64) -> Result<()> {
        self.as_context_mut().set_fuel(fuel)
    }

    /// Makes running code trap with [`Trap::Interrupt`](crate::Trap::Interrupt) once the engine's epoch has advanced
    /// by `ticks_beyond_current` from now. The deadline of a new store has been
    /// reached: with [`Config::epoch_interruption`](crate::Config::epoch_interruption) it must be set before the guest runs.
    pub fn set_epoch_deadline(&mut self, ticks_beyond_current: u64) {
        self.as_context_mut().set_epoch_deadline(ticks_beyond_current);
    }

    /// Makes running code trap at the deadline, which is the default: see [`Store::epoch_deadline_callback`].
    pub fn epoch_deadline_trap(&mut self) {
        self.as_context_mut().epoch_deadline_trap();
    }

    /// Calls `callback` each time running code reaches the deadline. Its result says whether the code continues. It may
    /// use the store and call the guest.
    ///
    /// ```
    /// use weir::{Config, Engine, Instance, Module, Store, UpdateDeadline};
    ///
    /// let mut config = Config::new();
    /// config.epoch_interruption(true);
    /// let engine = Engine::new(&config)?;
    /// let module = Module::new(&engine, r#"(module (func (export "spin") (loop (br 0))))"#)?;
    /// let mut store = Store::new(&engine, 0);
    /// let instance = Instance::new(&mut store, &module, &[])?;
    ///
    /// store.set_epoch_deadline(0);
    /// store.epoch_deadline_callback(|mut store| {
    ///     *store.data_mut() += 1;
    ///     Ok(if *store.data() < 3 { UpdateDeadline::Continue(0) } else { UpdateDeadline::Interrupt })
    /// });
    /// let spin = instance.get_typed_func::<(), ()>(&mut store, "spin")?;
    /// assert!(spin.call(&mut store, ()).is_err());
    /// assert_eq!(*store.data(), 3);
    /// # Ok::<(), weir::Error>(())
    /// ```
    pub fn epoch_deadline_callback(
        &mut self,
        mut callback: impl FnMut(StoreContextMut<'_, T>) -> Result<UpdateDeadline> + Send + Sync + 'static,
    ) {
        // SAFETY: `deadline_reached`, the only caller, passes the record of this store, whose data is a `T`, and holds
        // no reference into it.
        let callback = move |record: *mut StoreRecord| callback(unsafe { StoreContextMut::from_raw(record) });
        // SAFETY: the store is borrowed.
        unsafe { (*self.record.as_ptr()).on_deadline = Some(Box::new(callback)) };
    }

    /// Calls the deadline's callback, if there is one, also at the first poll after each `interval` units of fuel, or no more. Polls are at the
    /// same places in every tier, so it is called with the same fuel in each. [`Store::set_fuel`] begins a new interval. This is not in
    /// wasmtime's API.
    ///
    /// # Errors
    /// The interval is 0; the engine does not consume fuel, or not poll: see [`Config::epoch_interruption`](crate::Config::epoch_interruption).
    pub fn fuel_callback_interval(&mut self, interval: Option<u64>) -> Result<()> {
        fuel_is_on(self.engine())?;
        if interval == Some(0) {
            return Err(Error::msg("the interval of fuel must not be 0"));
        }
        if interval.is_some() && !self.engine().config().epoch_interruption {
            return Err(Error::msg("the deadline's callback is not called without `Config::epoch_interruption`"));
        }
        // SAFETY: the store is borrowed.
        unsafe { (*self.record.as_ptr()).set_fuel_marks(AtFuel::Call, interval) };
        Ok(())
    }

    /// Sets the [`ResourceLimiter`] (found in the embedder's data) that is consulted before a memory or table is
    /// created or grows.
    pub fn limiter(&mut self, limiter: impl (FnMut(&mut T) -> &mut dyn ResourceLimiter) + Send + Sync + 'static) {
        // SAFETY: the callers of the limiter's methods pass the store's data and hold no reference to it.
        let limiter = unsafe { Limiter::new(limiter) };
        // SAFETY: the store is borrowed.
        unsafe { (*self.record.as_ptr()).limiter = Some(limiter) };
    }
}

unsafe fn drop_data<T>(data: *mut ()) {
    // SAFETY: the caller gives up the pointer, which came from a `Box<T>`.
    drop(unsafe { Box::from_raw(data.cast::<T>()) });
}

impl<T: 'static> Drop for Store<T> {
    fn drop(&mut self) {
        // SAFETY: the pointers came from boxes, are freed once, and no handle dereferences them without a borrow of
        // this store.
        unsafe {
            let StoreRecord { engine, data, drop_data, .. } = self.record.as_ref();
            if engine.record().is_inherited() {
                return drop_data(*data);
            }
            #[cfg(feature = "async")]
            end_all(self.record.as_ptr());
            let record = Box::from_raw(self.record.as_ptr());
            let engine = record.engine.record();
            let Owned { owners, memories, tables, globals, tags, .. } = &record.owned;
            owners.iter().for_each(|&owner| drop(Box::from_raw(owner)));
            memories.iter().for_each(|&memory| engine.reservations.put(*Box::from_raw(memory)));
            tables.iter().for_each(|&table| drop(Box::from_raw(table)));
            globals.iter().for_each(|&global| drop(Box::from_raw(global)));
            tags.iter().for_each(|&tag| drop(Box::from_raw(tag)));
            engine.quota.subtract(record.owned.held);
            engine.stacks.put(*Box::from_raw(record.stack));
            (record.drop_data)(record.data);
        }
    }
}

impl<T: Default + 'static> Default for Store<T> {
    /// Creates an empty store of an engine of its own.
    ///
    /// # Panics
    /// As [`Store::new`].
    fn default() -> Store<T> {
        Store::new(&Engine::default(), T::default())
    }
}

impl<T: std::fmt::Debug + 'static> std::fmt::Debug for Store<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("data", self.data()).finish_non_exhaustive()
    }
}

impl<'a, T: 'static> StoreContext<'a, T> {
    pub(crate) fn record(&self) -> *mut StoreRecord {
        self.record.as_ptr()
    }

    /// Returns the embedder's data.
    pub fn data(&self) -> &'a T {
        self.into_data()
    }

    /// Returns the engine.
    pub fn engine(&self) -> &'a Engine {
        // SAFETY: a record's engine never changes, and the store is borrowed for `'a`.
        unsafe { &(*self.record.as_ptr()).engine }
    }

    /// Returns the remaining fuel.
    ///
    /// # Errors
    /// The engine does not consume fuel.
    pub fn get_fuel(&self) -> Result<u64> {
        fuel_is_on(self.engine())?;
        // SAFETY: the store is borrowed. The counter is negative once fuel ran out.
        Ok(u64::try_from(unsafe { (*self.record.as_ptr()).fuel() }).unwrap_or(0))
    }

    pub(crate) fn into_data(self) -> &'a T {
        // SAFETY: the data is a `T`, and the store is borrowed for `'a`.
        unsafe { &*(*self.record.as_ptr()).data.cast::<T>() }
    }

    pub(crate) fn id(&self) -> u64 {
        // SAFETY: the store is borrowed.
        unsafe { (*self.record.as_ptr()).id }
    }
}

impl<T: 'static> Clone for StoreContext<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: 'static> Copy for StoreContext<'_, T> {}

impl<'a, T: 'static> StoreContextMut<'a, T> {
    /// Borrows a store by its record.
    ///
    /// # Safety
    /// The store's data is a `T`, the store lives for `'a`, and no other code uses it or its data in that time.
    pub(crate) unsafe fn from_raw(record: *mut StoreRecord) -> StoreContextMut<'a, T> {
        // SAFETY: a record is not at address 0.
        StoreContextMut { record: unsafe { NonNull::new_unchecked(record) }, marker: PhantomData }
    }

    /// Returns the embedder's data.
    pub fn data(&self) -> &T {
        self.as_context().into_data()
    }

    /// Returns the embedder's data, mutably.
    pub fn data_mut(&mut self) -> &mut T {
        self.as_context_mut().into_data_mut()
    }

    /// Returns the engine.
    pub fn engine(&self) -> &'a Engine {
        // SAFETY: a record's engine never changes, and the store is borrowed for `'a`.
        unsafe { &(*self.record.as_ptr()).engine }
    }

    /// Returns the remaining fuel.
    ///
    /// # Errors
    /// The engine does not consume fuel.
    pub fn get_fuel(&self) -> Result<u64> {
        self.as_context().get_fuel()
    }

    /// Sets the remaining fuel, at most `i64::MAX`.
    ///
    /// # Errors
    /// The engine does not consume fuel.
    pub fn set_fuel(&mut self, fuel: u64) -> Result<()> {
        fuel_is_on(self.engine())?;
        // SAFETY: the store is borrowed.
        unsafe {
            let record = self.record.as_ptr();
            (*record).set_fuel(i64::try_from(fuel).unwrap_or(i64::MAX));
        }
        Ok(())
    }

    /// See [`Store::set_epoch_deadline`].
    pub fn set_epoch_deadline(&mut self, ticks_beyond_current: u64) {
        // SAFETY: the store is borrowed.
        unsafe { (*self.record.as_ptr()).set_deadline(ticks_beyond_current) };
    }

    /// See [`Store::epoch_deadline_trap`].
    pub fn epoch_deadline_trap(&mut self) {
        // SAFETY: the store is borrowed.
        unsafe { (*self.record.as_ptr()).on_deadline = None };
    }

    /// Asks the store's limiter whether memory that the host holds for the guest may grow from `current` to `desired` bytes. To the limiter, it
    /// is one more memory, without a maximum. `true` without a limiter. An asynchronous limiter must answer at once.
    ///
    /// # Errors
    /// Those of the limiter.
    pub fn host_memory_growing(&mut self, current: usize, desired: usize) -> Result<bool> {
        // SAFETY: the store is borrowed.
        let asked = unsafe { StoreRecord::asked(self.record.as_ptr(), std::ptr::null_mut()) };
        asked.map_or(Ok(true), |mut asked| asked.memory_growing_at_once(current, desired))
    }

    pub(crate) fn into_data_mut(self) -> &'a mut T {
        // SAFETY: the data is a `T`, and the store is borrowed for `'a`.
        unsafe { &mut *(*self.record.as_ptr()).data.cast::<T>() }
    }

    pub(crate) fn id(&self) -> u64 {
        // SAFETY: the store is borrowed.
        unsafe { (*self.record.as_ptr()).id }
    }

    pub(crate) fn record(&self) -> *mut StoreRecord {
        self.record.as_ptr()
    }
}

pub(super) fn fuel_is_on(engine: &Engine) -> Result<()> {
    match engine.config().consume_fuel {
        true => Ok(()),
        false => Err(Error::msg("fuel is not configured in this store")),
    }
}

impl<T: 'static> AsContext for Store<T> {
    type Data = T;

    fn as_context(&self) -> StoreContext<'_, T> {
        StoreContext { record: self.record, marker: PhantomData }
    }
}

impl<T: 'static> AsContextMut for Store<T> {
    fn as_context_mut(&mut self) -> StoreContextMut<'_, T> {
        StoreContextMut { record: self.record, marker: PhantomData }
    }
}

impl<T: 'static> AsContext for StoreContext<'_, T> {
    type Data = T;

    fn as_context(&self) -> StoreContext<'_, T> {
        StoreContext { record: self.record, marker: PhantomData }
    }
}

impl<T: 'static> AsContext for StoreContextMut<'_, T> {
    type Data = T;

    fn as_context(&self) -> StoreContext<'_, T> {
        StoreContext { record: self.record, marker: PhantomData }
    }
}

impl<T: 'static> AsContextMut for StoreContextMut<'_, T> {
    fn as_context_mut(&mut self) -> StoreContextMut<'_, T> {
        StoreContextMut { record: self.record, marker: PhantomData }
    }
}

impl<'a, C: AsContext> From<&'a C> for StoreContext<'a, C::Data> {
    fn from(store: &'a C) -> StoreContext<'a, C::Data> {
        store.as_context()
    }
}

impl<'a, C: AsContext> From<&'a mut C> for StoreContext<'a, C::Data> {
    fn from(store: &'a mut C) -> StoreContext<'a, C::Data> {
        C::as_context(store)
    }
}

impl<'a, T: 'static> From<StoreContextMut<'a, T>> for StoreContext<'a, T> {
    fn from(store: StoreContextMut<'a, T>) -> StoreContext<'a, T> {
        StoreContext { record: store.record, marker: PhantomData }
    }
}

impl<'a, C: AsContextMut> From<&'a mut C> for StoreContextMut<'a, C::Data> {
    fn from(store: &'a mut C) -> StoreContextMut<'a, C::Data> {
        store.as_context_mut()
    }
}

impl<C: AsContext> AsContext for &C {
    type Data = C::Data;

    fn as_context(&self) -> StoreContext<'_, C::Data> {
        C::as_context(self)
    }
}

impl<C: AsContext> AsContext for &mut C {
    type Data = C::Data;

    fn as_context(&self) -> StoreContext<'_, C::Data> {
        C::as_context(self)
    }
}

impl<C: AsContextMut> AsContextMut for &mut C {
    fn as_context_mut(&mut self) -> StoreContextMut<'_, C::Data> {
        C::as_context_mut(self)
    }
}
