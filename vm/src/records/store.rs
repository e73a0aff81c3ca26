//! The store's record: it owns instances, host functions, memories, tables, and everything that code refers to by
//! pointer.
//!
//! # Invariants
//!
//! - Every record is allocated once, when the store or one of its items is made, never moves, and is freed when the
//!   store is dropped. Engines and public handles therefore hold raw pointers to records, and dereference them only
//!   while they run, or borrow, the store.
//! - A record that extends a context of [`weir_contract`] has the context as its first field, so that one
//!   pointer serves both: see the assertions at the end of this file.
//! - Only one thread uses a store at a time. Nothing here is locked or atomic, except the data that modules share
//!   ([`ModuleRecord`](crate::records::module::ModuleRecord) and the engine).
//! - No reference into a record is held across a call of the guest or of a host function: these reach the same record
//!   by pointer. Records of instances and host functions are never mutated (their variable parts are each in a
//!   [`Cell`](std::cell::Cell)), so shared references to those may be held freely.

use crate::records::attention::Attention;
use crate::records::call_hook::CallHook;
use crate::records::catches::Catches;
use crate::records::engine::Engine;
use crate::records::error::{Error, Result};
use crate::records::exceptions::{ExnRecord, InFlight, Landing, Site, TagRecord};
use crate::records::failure::Failure;
use crate::records::fiber::Fiber;
#[cfg(feature = "async")]
use crate::records::fiber::Stopped;
use crate::records::heap::Heap;
use crate::records::instance::Owner;
use crate::records::limiter::{Asked, Limiter};
use crate::records::memory::{self, MemoryRecord, Plan};
use crate::records::pooling::Share;
use crate::records::quiescence::Word;
use crate::records::root_maps::RootMaps;
use crate::records::roots::{Root, Roots};
use crate::records::stack::StackRecord;
use crate::records::stripes::Stripe;
use crate::records::table::TableRecord;
use crate::sys::fork::Process;
use std::fmt;
use std::mem::offset_of;
use std::ops::Range;
#[cfg(feature = "async")]
use std::pin::Pin;
use std::ptr;
use std::sync::atomic::Ordering;
use weir_bytecode::Trap;
use weir_bytecode::types::{MemoryType, TableType};
use weir_contract::{InstanceCtx, MemoryCtx, StackCtx, StoreCtx, TableCtx, TableEntry};

/// The response to reaching a deadline: see [`Store::epoch_deadline_callback`](crate::Store::epoch_deadline_callback).
#[non_exhaustive]
pub enum UpdateDeadline {
    /// Let it trap with [`Trap::Interrupt`].
    Interrupt,
    /// Continue until the engine's epoch has advanced by this much from now.
    Continue(u64),
    /// Suspend the guest, which must have been called asynchronously, and wake its task at once. When it is polled again, continue
    /// until the engine's epoch has advanced by this much from then.
    #[cfg(feature = "async")]
    Yield(u64),
    /// Suspend the guest, which must have been called asynchronously, until this future has completed. Then continue until the engine's
    /// epoch has advanced by this much.
    #[cfg(feature = "async")]
    YieldCustom(u64, Pin<Box<dyn Future<Output = ()> + Send>>),
}

impl fmt::Debug for UpdateDeadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UpdateDeadline::Interrupt => f.write_str("Interrupt"),
            UpdateDeadline::Continue(ticks) => f.debug_tuple("Continue").field(ticks).finish(),
            #[cfg(feature = "async")]
            UpdateDeadline::Yield(ticks) => f.debug_tuple("Yield").field(ticks).finish(),
            #[cfg(feature = "async")]
            UpdateDeadline::YieldCustom(ticks, _) => f.debug_tuple("YieldCustom").field(ticks).finish_non_exhaustive(),
        }
    }
}

/// The callback of [`crate::Store::epoch_deadline_callback`]. It receives the store, into which no reference is held.
/// May panic.
pub(crate) type OnDeadline = dyn FnMut(*mut StoreRecord) -> Result<UpdateDeadline> + Send + Sync;

/// The hook of [`crate::Store::call_hook`]. It receives the store, into which no reference is held. May panic.
pub(crate) type OnCall = dyn FnMut(*mut StoreRecord, CallHook) -> Result<()> + Send + Sync;

/// A global that no instance defines.
#[repr(C, align(16))]
pub(crate) struct GlobalRecord {
    pub slot: [u64; 2],
    /// Whether it has a reference into the collected heap.
    pub is_collected: bool,
}

/// All of a store but the embedder's data.
#[repr(C)]
pub(crate) struct StoreRecord {
    /// First, so that [`InstanceCtx::store`] points to the whole: see [`store_of`].
    pub ctx: StoreCtx,
    pub engine: Engine,
    /// The stack that runs now.
    pub stack: *mut StackRecord,
    /// The reason of `Exit::Trap` or [`weir_contract::Status::Trap`]. The code that returns either sets it before
    /// native frames are unwound, and [`take_failure`] takes it when the failure is returned to Rust.
    pub failure: Option<Failure>,
    /// The exception that is being thrown.
    pub in_flight: InFlight,
    /// The handler to which it is thrown, while the failure is [`Failure::Thrown`].
    pub landing: Option<Landing>,
    /// The handlers that were found before.
    pub catches: Catches,
    /// The exception that the host has thrown or has received and not taken; null if there is none.
    pub pending: *mut ExnRecord,
    /// The frames of the guest around the innermost invocation are those at this address and above, on the native stack;
    /// [`ALL_FRAMES`](crate::records::walk::ALL_FRAMES) if there are none.
    pub outer_frames: usize,
    /// Number of invocations of the guest by Rust (`exec::entry`) on the native stack. With [`ASYNC_ONLY`] added where a synchronous one
    /// is refused.
    pub invocations: i32,
    /// The process that made the engine, for a check at each invocation.
    pub process: Process,
    /// What the next call between the embedder and the guest, or the end of the innermost one, has to do besides.
    pub attention: Attention,
    /// Whether there are any invocations, for the reclamation of code.
    pub quiescence: Word,
    /// Which counters the store's instances use.
    pub stripe: Stripe,
    /// The embedder's data, type-erased.
    pub data: *mut (),
    /// Frees `data`.
    pub drop_data: unsafe fn(*mut ()),
    pub limiter: Option<Limiter>,
    /// Called where execution passes between the embedder and the guest; `None` while it runs.
    pub call_hook: Option<Box<OnCall>>,
    /// Called at the deadline; `None` while it runs, and if the deadline is a trap.
    pub on_deadline: Option<Box<OnDeadline>>,
    /// Unique in the process; handles carry it.
    pub id: u64,
    /// Host values and exception objects.
    pub heap: Heap,
    /// The embedder's references into it.
    pub roots: Roots,
    /// Where frames of the interpreter and of baseline code have theirs.
    pub root_maps: RootMaps,
    pub owned: Owned,
    /// The innermost fiber whose frames are on the stacks; null if they are on the thread's own stack only.
    pub fiber: *mut Fiber,
    /// The deadline that was set. Polls see [`StoreCtx::deadline`], which may be earlier.
    pub deadline: u64,
    /// For each [`AtFuel`], the fuel at which it is done.
    pub fuel_marks: [Option<FuelMarks>; 2],
    /// Whether the store has functions or settings that suspend guests.
    pub needs_async: bool,
    /// How much of [`StoreCtx::fuel`] is lent, while a resumable call consumes fuel: see [`credit`](super::credit).
    pub credit: Option<i64>,
    /// The guests of resumable calls that are stopped.
    #[cfg(feature = "async")]
    pub stopped: Vec<Stopped>,
}

/// What is done after each interval of fuel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AtFuel {
    /// The guest is suspended.
    #[cfg(feature = "async")]
    Yield = 0,
    /// The deadline's callback is called.
    Call = 1,
}

/// Amounts of fuel at which something is done.
#[derive(Clone, Copy)]
pub(crate) struct FuelMarks {
    /// Units from one to the next; not 0.
    interval: i64,
    /// The next one: it is at the first poll with this much fuel or less.
    next: i64,
}

impl FuelMarks {
    /// Marks after each `interval`, from this much fuel on.
    fn new(interval: i64, fuel: i64) -> FuelMarks {
        FuelMarks { interval, next: fuel.saturating_sub(interval) }
    }

    /// Returns whether a mark has been passed with this much fuel, and sets the next one.
    fn pass(&mut self, fuel: i64) -> bool {
        let FuelMarks { interval, next } = *self;
        let passed = fuel <= next;
        if passed {
            self.next = next.saturating_sub((next - fuel) / interval * interval + interval);
        }
        passed
    }
}

/// In [`StoreRecord::invocations`]: synchronous invocations are refused. It makes the number negative.
#[cfg(feature = "async")]
pub(crate) const ASYNC_ONLY: i32 = i32::MIN;

/// Everything that is freed with the store. Every pointer comes from `Box::into_raw`.
#[derive(Default)]
pub(crate) struct Owned {
    pub owners: Vec<*mut Owner>,
    pub memories: Vec<*mut MemoryRecord>,
    pub tables: Vec<*mut TableRecord>,
    pub globals: Vec<*mut GlobalRecord>,
    pub tags: Vec<*mut TagRecord>,
    /// The instances, and the memories and tables that belong to them. Those that the host has made are not limited in number.
    pub counted: Share,
    /// What the store holds of the engine's limits, until it is dropped.
    pub held: Share,
}

/// Returns the store that an instance belongs to.
///
/// # Safety
/// `instance` is the context of an instance or host function of a live store.
#[inline]
pub(crate) unsafe fn store_of(instance: *mut InstanceCtx) -> *mut StoreRecord {
    // SAFETY: the caller's promise; the `StoreCtx` is the first field of a `StoreRecord`.
    unsafe { (*instance).store.cast() }
}

/// Creates the fixed part of a context.
///
/// # Safety
/// `store` is live.
pub(crate) unsafe fn context(store: *mut StoreRecord, owner: *mut Owner) -> InstanceCtx {
    // SAFETY: the caller's promise.
    let (stack, engines, stripe) = unsafe { ((*store).stack.cast(), &(*store).engine.record().engines, (*store).stripe.index) };
    let (helpers, counters) = (engines.helpers(), engines.counters(stripe));
    InstanceCtx { store: store.cast(), stack, memory0_base: ptr::null_mut(), helpers, owner: Owner::record(owner), counters }
}

/// Takes the failure of a store whose guest has just trapped.
///
/// # Safety
/// `store` is live, and an engine has just returned a trap from it.
pub(crate) unsafe fn take_failure(store: *mut StoreRecord) -> Failure {
    // SAFETY: the caller's promise; no other reference to the field exists.
    let failure = unsafe { (*store).failure.take() };
    failure.expect("every trap records its reason, native code's in the landing pad")
}

/// Subtracts `cost` from `fuel`, which stays negative once it has run out.
///
/// # Errors
/// [`Trap::OutOfFuel`]
#[inline(always)]
pub(crate) fn charge(fuel: &mut i64, cost: i64) -> Result<(), Trap> {
    *fuel = fuel.saturating_sub(cost);
    if *fuel < 0 { Err(Trap::OutOfFuel) } else { Ok(()) }
}

impl StoreRecord {
    /// Sets the deadline to `ticks` from now, if guests are interrupted at deadlines.
    pub fn set_deadline(&mut self, ticks: u64) {
        if self.engine.config().epoch_interruption {
            self.deadline = self.engine.record().epoch.load(Ordering::Relaxed).saturating_add(ticks);
            self.set_poll();
        }
    }

    /// Does this after each `interval` of fuel, or never.
    pub fn set_fuel_marks(&mut self, what: AtFuel, interval: Option<u64>) {
        let interval = interval.map(|interval| i64::try_from(interval).unwrap_or(i64::MAX));
        self.fuel_marks[what as usize] = interval.map(|interval| FuelMarks::new(interval, self.ctx.fuel));
        self.set_poll();
    }

    /// Begins the intervals of fuel with the fuel that there is now.
    pub fn restart_fuel_marks(&mut self) {
        for marks in self.fuel_marks.iter_mut().flatten() {
            *marks = FuelMarks::new(marks.interval, self.ctx.fuel);
        }
        self.set_poll();
    }

    /// Adds to the amounts of fuel at which something is done.
    #[cfg(feature = "async")]
    pub fn shift_fuel_marks(&mut self, fuel: i64) {
        for marks in self.fuel_marks.iter_mut().flatten() {
            marks.next = marks.next.saturating_add(fuel);
        }
        self.set_poll();
    }

    /// Sets the deadline that polls see, and the fuel. Where fuel suspends or stops the guest, or calls the embedder, the stub of polls
    /// compares it.
    pub fn set_poll(&mut self) {
        let marks = self.fuel_marks.iter().flatten().map(|marks| marks.next);
        let overdrawn = self.credit.map(|credit| credit.saturating_sub(1));
        let mark = marks.chain(overdrawn).max();
        self.ctx.deadline = if mark.is_some() { 0 } else { self.deadline };
        (self.ctx.wake_fuel, self.ctx.wake_epoch) = (mark.unwrap_or(i64::MAX), self.deadline);
    }

    /// Returns whether the deadline is reached.
    pub fn is_due(&self) -> bool {
        self.engine.record().epoch.load(Ordering::Relaxed) >= self.deadline
    }

    /// Returns whether this is to be done at this poll because of the fuel that was consumed, and sets the next time.
    pub fn passes_fuel_mark(&mut self, what: AtFuel) -> bool {
        let passes = self.fuel_marks[what as usize].as_mut().is_some_and(|marks| marks.pass(self.ctx.fuel));
        if passes {
            self.set_poll();
        }
        passes
    }

    /// From now on, synchronous invocations are refused.
    #[cfg(feature = "async")]
    pub fn require_async(&mut self) {
        self.needs_async = true;
        self.invocations |= ASYNC_ONLY;
    }

    /// Returns whether no invocation of the guest is on the stacks.
    #[cfg(feature = "async")]
    pub fn is_at_rest(&self) -> bool {
        self.invocations & !ASYNC_ONLY == 0
    }

    /// Adds to what the store holds of the engine's limits, until it is dropped. Stacks are held by the guests that run on them.
    ///
    /// # Errors
    /// A limit of the engine is reached; nothing is added.
    pub fn hold(&mut self, share: Share) -> Result<()> {
        self.engine.record().quota.add(share)?;
        self.owned.held = self.owned.held.plus(share);
        Ok(())
    }

    /// Returns the store's limiter, if it has one, to be asked by code on this fiber, or on none.
    ///
    /// # Safety
    /// The store is live, and nothing else uses its limiter as long as the result is used. Of its other data, references to none are
    /// held while the limiter is asked, if there is a fiber.
    pub unsafe fn asked<'s>(store: *mut StoreRecord, fiber: *mut Fiber) -> Option<Asked<'s>> {
        // SAFETY: the caller's promise.
        let (limiter, data) = unsafe { (&mut (*store).limiter, (*store).data) };
        limiter.as_mut().map(|limiter| Asked { limiter, data, fiber })
    }

    /// Creates a memory of at most `max` bytes.
    ///
    /// # Errors
    /// The errors of [`MemoryRecord::new`].
    ///
    /// # Safety
    /// As for [`StoreRecord::asked`].
    pub unsafe fn add_memory(
        store: *mut StoreRecord,
        ty: MemoryType,
        max: usize,
        fiber: *mut Fiber,
    ) -> Result<*mut MemoryRecord> {
        // SAFETY: the caller's promise. A store's engine does not change.
        unsafe {
            let engine = &(*store).engine;
            let (config, engine) = (engine.config(), engine.record());
            let min = memory::byte_len(&ty, ty.limits.min).unwrap_or(usize::MAX);
            let (guard_regions, unguarded) = (config.reserves_guards(), config.unguarded_reservation(min));
            let plan = Plan { guard_regions, unguarded, max, host: config.host_memory.as_ref() };
            let memory = MemoryRecord::new(ty, plan, &engine.reservations, StoreRecord::asked(store, fiber))?;
            let memory = Box::into_raw(Box::new(memory));
            (*store).owned.memories.push(memory);
            Ok(memory)
        }
    }

    /// Creates a table of at most `max` elements, filled with a reference. A concrete element type is given by its engine-wide identity.
    ///
    /// # Errors
    /// The errors of [`TableRecord::new`].
    ///
    /// # Safety
    /// As for [`StoreRecord::asked`].
    pub unsafe fn add_table(
        store: *mut StoreRecord,
        ty: TableType,
        reference: u64,
        max: u64,
        fiber: *mut Fiber,
    ) -> Result<*mut TableRecord> {
        // SAFETY: the caller's promise.
        unsafe {
            let table = TableRecord::new(ty, reference, max, StoreRecord::asked(store, fiber))?;
            let table = Box::into_raw(Box::new(table));
            (*store).owned.tables.push(table);
            Ok(table)
        }
    }

    /// Adds a tag.
    pub fn add_tag(&mut self, tag: TagRecord) -> *mut TagRecord {
        let tag = Box::into_raw(Box::new(tag));
        self.owned.tags.push(tag);
        tag
    }

    /// Adds an exception object whose payload is in slots at `payload`. Never collects.
    ///
    /// # Errors
    /// The limiter refuses it, or there is no memory.
    ///
    /// # Safety
    /// The tag is live, and the slots have values of its types.
    pub unsafe fn add_exception(&mut self, tag: *const TagRecord, site: Site, payload: *const u64) -> Result<*mut ExnRecord> {
        // SAFETY: the caller's promise; the words have just been allocated.
        unsafe {
            let words = ExnRecord::words(tag);
            self.ask_for_objects(words)?;
            let reference = self.heap.allocate(words)?;
            let object = self.heap.new_exception(reference);
            ExnRecord::write(object, tag, site, payload);
            Ok(object)
        }
    }

    /// Asks the limiter for the memory of an object of this many words. To it, the heap is a memory that grows by 64 KiB or more. An
    /// asynchronous limiter must answer at once, because exceptions are thrown where no guest can be suspended.
    ///
    /// # Errors
    /// It refuses; or the engine's stores have as many heaps as they may.
    pub fn ask_for_objects(&mut self, words: usize) -> Result<()> {
        let Some(Range { start, end }) = self.heap.wanted(words) else { return Ok(()) };
        if self.owned.held.heaps == 0 {
            self.hold(Share::HEAP)?;
        }
        let asked = self.limiter.as_mut().map(|limiter| Asked { limiter, data: self.data, fiber: ptr::null_mut() });
        if let Some(mut asked) = asked
            && !asked.memory_growing_at_once(start, end)?
        {
            return Err(Error::msg("the store's limit of memory does not allow another reference"));
        }
        self.heap.grant(end);
        Ok(())
    }

    /// Returns the reference of a root.
    ///
    /// # Errors
    /// Its scope has ended.
    ///
    /// # Panics
    /// It is one of another store.
    pub fn reference(&self, root: Root) -> Result<u32> {
        assert_eq!(root.store, self.id, "a reference was used with a store that is not its own");
        self.roots.get(root).ok_or_else(|| Error::msg("attempted to use a garbage-collected object that has been unrooted"))
    }

    /// Counts an instance with this many memories and tables of its own.
    ///
    /// # Errors
    /// They exceed a limit of the store; nothing is counted.
    pub fn count(&mut self, share: Share) -> Result<()> {
        let counted = self.owned.counted.plus(share);
        if let Some(limiter) = &mut self.limiter {
            let limits = limiter.counts(self.data)?;
            let counts = [
                ("instance", counted.instances, limits.0),
                ("memory", counted.memories, limits.1),
                ("table", counted.tables, limits.2),
            ];
            if let Some((what, count, _)) = counts.into_iter().find(|(_, count, limit)| *count as usize > *limit) {
                return Err(Error::msg(format!("resource limit exceeded: {what} count too high at {count}")));
            }
        }
        self.owned.counted = counted;
        Ok(())
    }
}

// Assumptions of the pointers in contexts.
const _: () = {
    assert!(offset_of!(StoreRecord, ctx) == 0 && size_of::<StoreCtx>() <= size_of::<StoreRecord>());
    assert!(offset_of!(StackRecord, ctx) == 0 && size_of::<StackCtx>() <= size_of::<StackRecord>());
    assert!(offset_of!(MemoryRecord, ctx) == 0 && size_of::<MemoryCtx>() <= size_of::<MemoryRecord>());
    assert!(offset_of!(TableRecord, ctx) == 0 && size_of::<TableCtx>() <= size_of::<TableRecord>());
    assert!(offset_of!(GlobalRecord, slot) == 0);
    assert!(size_of::<TableEntry>() == 32 && size_of::<usize>() == size_of::<u64>());
    assert!(size_of::<InstanceCtx>().is_multiple_of(8) && align_of::<InstanceCtx>() <= 16);
};
